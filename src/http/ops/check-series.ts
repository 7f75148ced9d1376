/**
 * The series of each check as Prometheus' text (design, section 11). prom-client takes 6 s and 900 MB for 100,000
 * checks, and blocks the event loop (docs/internals/benchmarks.md). The text is made in pieces, as the reader asks for
 * them. Checks of one project stand together: similar lines compress well.
 */

import type { ExportedCheck } from '../../checks/export-checks.ts'
import { SHOWN_STATUSES, type ShownStatus } from '../../domain/check.ts'
import { RUN_OUTCOMES } from '../../domain/last-run.ts'
import { yieldTurn } from '../../runtime/clock.ts'

const PIECE_LENGTH = 65_536

/** What is kept of a check. `labels`: those of all its series, without the last quotation mark. */
type Row = Omit<ExportedCheck, 'namespace' | 'project' | 'cluster' | 'name' | 'labels'> & { readonly labels: string }

export type CheckSeries = ReturnType<typeof createCheckSeries>

/** `labelNames`: the names in the text of `ExportedCheck.labels`. */
export function createCheckSeries(labelNames: readonly string[] = []) {
  const rows: Row[] = []
  let last: ExportedCheck | undefined
  /** The labels that the checks of the last project share: one text for all of them. */
  let head = ''
  let dropped = 0
  return {
    /** Checks left out because another one has the same names: Prometheus would reject the whole text. */
    dropped: () => dropped,
    /** In the order of `Exporter.read`: checks with the same names stand together. */
    add(check: ExportedCheck): void {
      const { namespace, project, cluster, name, labels, ...values } = check
      const isOfProject = last?.project === project && last.namespace === namespace && last.cluster === cluster
      if (isOfProject && last?.name === name) {
        dropped += 1
        return
      }
      last = check
      if (!isOfProject) head = formatHead(check)
      // A label that the check lacks is left out: to Prometheus that is the same as an empty one.
      const others = labelNames.map((label, index) => labelOf(label, labels[index]))
      rows.push({ ...values, labels: head + escapeValue(name) + others.join('') })
    },
    /** Yields whole lines, after all checks were added, also to several readers. The next piece waits for `pace`. */
    async *render(pace = yieldTurn): AsyncGenerator<string> {
      let text = ''
      for (const { name: metric, help, tails } of METRICS) {
        text += `# HELP ${metric} ${help}\n# TYPE ${metric} gauge\n`
        for (const row of rows) {
          for (const tail of tails(row)) text += `${metric}{${row.labels}${tail}`
          if (text.length < PIECE_LENGTH) continue
          yield text
          text = ''
          await pace()
        }
      }
      yield text
    },
  }
}

/** The labels before the check's name, which comes behind them, so that similar lines share a long beginning. */
function formatHead({ namespace, project, cluster }: ExportedCheck): string {
  const ofCluster = cluster === null ? '' : `,cluster="${escapeValue(cluster)}"`
  return `namespace="${escapeValue(namespace)}",project="${escapeValue(project)}"${ofCluster},check="`
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

function escapeValue(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, (character) => ESCAPES[character]!) : value
}

/** The beginning of a label is the end of the one before. */
function labelOf(name: string, value: string | null | undefined): string {
  return value ? `",${name}="${escapeValue(value)}` : ''
}

interface CheckMetric {
  readonly name: string
  readonly help: string
  /** What follows the check's labels in each of its lines. */
  readonly tails: (row: Row) => readonly string[]
}

const NONE: readonly string[] = []
const UP_TAILS: Record<ShownStatus, readonly string[]> = {
  new: NONE,
  up: [tailOf(1)],
  late: [tailOf(1)],
  down: [tailOf(0)],
  paused: NONE,
}
const STATUS_TAILS = tailsOfEach('status', SHOWN_STATUSES)
const OUTCOME_TAILS = tailsOfEach('outcome', RUN_OUTCOMES)

const METRICS: readonly CheckMetric[] = [
  {
    name: 'heartbeat_check_up',
    help: 'Whether the job reports as it should: 1 while up or late, 0 while down, no sample while new or paused',
    tails: ({ status }) => UP_TAILS[status],
  },
  {
    name: 'heartbeat_check_status',
    help: '1 for the current status of the check, 0 for the other statuses',
    tails: ({ status }) => STATUS_TAILS[status],
  },
  {
    name: 'heartbeat_check_down',
    help: 'Why the check is down; no sample while it is not',
    tails: ({ downReason }) => (downReason === null ? NONE : [`",reason="${downReason}"} 1\n`]),
  },
  // Whole: fractions change with each ping, say nothing, and would be a third of the compressed text.
  numberOf('heartbeat_check_last_ping_timestamp_seconds', 'When the last run ended, successful or not', (row) =>
    toSeconds(row.lastPingAt, Math.floor),
  ),
  numberOf('heartbeat_check_last_success_timestamp_seconds', 'When the last successful run ended', (row) =>
    toSeconds(row.lastSuccessAt, Math.floor),
  ),
  // Rounded up, so that it is never before the check goes down.
  numberOf(
    'heartbeat_check_deadline_timestamp_seconds',
    'When the check goes down unless its job reports before',
    (row) => toSeconds(row.deadlineAt, Math.ceil),
  ),
  numberOf('heartbeat_check_last_duration_seconds', 'How long the last run took, if known', (row) =>
    toSeconds(row.lastDurationMs, Number),
  ),
  numberOf(
    'heartbeat_check_period_seconds',
    'How often the job must report; no sample for a cron schedule',
    (row) => row.periodSeconds,
  ),
  numberOf(
    'heartbeat_check_grace_seconds',
    'How late the job may be before the check goes down',
    (row) => row.graceSeconds,
  ),
  numberOf('heartbeat_check_running', '1 while a run has started and not ended, else 0', (row) =>
    Number(row.isRunning),
  ),
  numberOf(
    'heartbeat_check_flapping',
    '1 while the check goes down and up so often that its changes are not notified, else 0',
    (row) => Number(row.isFlapping),
  ),
  numberOf('heartbeat_check_warning', '1 while the last completion was a warning, else 0', (row) =>
    Number(row.isWarning),
  ),
  numberOf('heartbeat_check_silenced', '1 while a silence covers the check, else 0', (row) => Number(row.isSilenced)),
  {
    name: 'heartbeat_check_last_run_outcome',
    help: '1 for the outcome of the newest run of the CronJob that the check follows, 0 for the other outcomes; no sample without a CronJob',
    tails: ({ lastRunOutcome }) => (lastRunOutcome === undefined ? NONE : OUTCOME_TAILS[lastRunOutcome]),
  },
]

function numberOf(name: string, help: string, read: (row: Row) => number | null): CheckMetric {
  const tails = (row: Row) => {
    const value = read(row)
    return value === null ? NONE : [tailOf(value)]
  }
  return { name, help, tails }
}

function toSeconds(ms: number | null, round: (seconds: number) => number): number | null {
  return ms === null ? null : round(ms / 1_000)
}

function tailOf(value: number): string {
  return `"} ${value}\n`
}

function tailsOfEach<Value extends string>(label: string, values: readonly Value[]) {
  const tailsOf = (own: Value) => values.map((value) => `",${label}="${value}${tailOf(value === own ? 1 : 0)}`)
  return Object.fromEntries(values.map((own) => [own, tailsOf(own)])) as Record<Value, string[]>
}
