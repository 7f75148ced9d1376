/**
 * The series of each check as Prometheus' text (design, section 11).
 *
 * Why not prom-client, which writes all other metrics: a scrape of 100,000 checks (1.25 million samples) takes 5.99 s with its gauges, 903 MB of
 * heap, and the event loop blocked for 5.7 s. Here it takes 0.65 s, 32 MB and 23 ms (docs/benchmarks.md): a check is its labels and a few numbers.
 *
 * In the text all samples of a metric are together, so all checks are held until the end. The text is made in pieces, as the reader asks
 * for them. Checks of one project stand together, in the order of their names: a line that is like the one before compresses well.
 */

import type { ExportedCheck } from '../../checks/export-checks.ts'
import { type FlipReason, type Instant, SHOWN_STATUSES, type ShownStatus } from '../../domain/check.ts'
import { RUN_OUTCOMES } from '../../domain/last-run.ts'
import { yieldTurn } from '../../runtime/clock.ts'

/** Characters in a piece. */
const PIECE_LENGTH = 65_536
/** Checks that are sorted at once, in a few milliseconds. A larger project consists of several sorted runs. */
const RUN_LENGTH = 2_000
const FIRST_CAPACITY = 1_024

const DOWN_REASONS: readonly (FlipReason | null)[] = ['missed', 'failed', 'overran']

/** The numbers of a check, in this order. NaN: the check has no such value. */
const COLUMNS = {
  status: 0,
  downReason: 1,
  lastPing: 2,
  lastSuccess: 3,
  deadline: 4,
  lastDuration: 5,
  period: 6,
  grace: 7,
  running: 8,
  flapping: 9,
  lastRun: 10,
} as const
const WIDTH = Object.keys(COLUMNS).length

/** Checks whose labels differ only in the check's name. */
interface Group {
  readonly labels: string
  readonly names: Set<string>
  /** The indexes of its checks, sorted by name once they are arranged. */
  readonly indexes: number[]
}

export class CheckSeries {
  readonly #groups = new Map<string, Group>()
  /** Escaped, and followed by the check's labels; one for each check. */
  readonly #names: string[] = []
  #numbers = new Float64Array(FIRST_CAPACITY * WIDTH)
  #dropped = 0
  #arranged: Promise<readonly Group[]> | undefined
  /** The check added last and its group, which is mostly that of the next one too. */
  #last: { readonly check: ExportedCheck; readonly group: Group } | undefined

  /** The beginnings of what follows a check's name: for each of its labels the end of the value before and the label's name. */
  readonly #labelHeads: readonly string[]

  /** @param labelNames the names in the text of `ExportedCheck.labels` */
  constructor(labelNames: readonly string[] = []) {
    this.#labelHeads = labelNames.map((name) => `",${name}="`)
  }

  /** Checks left out because another one has the same names, as in two organizations: Prometheus would reject the whole text. */
  get dropped(): number {
    return this.#dropped
  }

  readonly add = (check: ExportedCheck): void => {
    const group = this.#groupOf(check)
    const { name } = check
    if (group.names.has(name)) {
      this.#dropped += 1
      return
    }
    group.names.add(name)
    const index = this.#names.push(escapeValue(name) + this.#formatLabels(check)) - 1
    group.indexes.push(index)
    if (this.#names.length * WIDTH > this.#numbers.length) {
      const smaller = this.#numbers
      this.#numbers = new Float64Array(smaller.length * 2)
      this.#numbers.set(smaller)
    }
    writeNumbers(this.#numbers, index * WIDTH, check)
  }

  /** A label that the check lacks is left out: to Prometheus that is the same as an empty one. */
  #formatLabels({ labels }: ExportedCheck): string {
    let text = ''
    for (let index = 0; index < this.#labelHeads.length; index += 1) {
      const value = labels[index]
      if (value) text += this.#labelHeads[index]! + escapeValue(value)
    }
    return text
  }

  #groupOf(check: ExportedCheck): Group {
    const { namespace, project, cluster } = check
    const last = this.#last?.check
    const isSame = last?.project === project && last.namespace === namespace && last.cluster === cluster
    let group = isSame ? this.#last?.group : undefined
    if (group === undefined) {
      const labels = formatLabels(check)
      group = this.#groups.get(labels) ?? { labels, names: new Set(), indexes: [] }
      this.#groups.set(labels, group)
      this.#last = { check, group }
    }
    return group
  }

  /**
   * Yields whole lines. To be called after all checks were added, also by several readers at the same time. `pace` resolves when the next piece
   * may be made.
   */
  async *render(pace = yieldTurn): AsyncGenerator<string> {
    this.#arranged ??= this.#arrange()
    const groups = await this.#arranged
    let text = ''
    for (const { name: metric, help, sample } of METRICS) {
      text += `# HELP ${metric} ${help}\n# TYPE ${metric} gauge\n`
      for (const { labels, indexes } of groups) {
        const head = `${metric}{${labels},check="`
        for (const index of indexes) {
          text += sample(head, this.#names[index]!, this.#numbers, index * WIDTH)
          if (text.length < PIECE_LENGTH) continue
          yield text
          text = ''
          await pace()
        }
      }
    }
    yield text
  }

  async #arrange(): Promise<readonly Group[]> {
    const names = this.#names
    let sorted = 0
    for (const { indexes } of this.#groups.values()) {
      for (let start = 0; start < indexes.length; start += RUN_LENGTH) {
        const run = indexes.slice(start, start + RUN_LENGTH)
        run.sort((one, other) => (names[one]! < names[other]! ? -1 : 1))
        for (let index = 0; index < run.length; index += 1) indexes[start + index] = run[index]!
        sorted += run.length
        if (sorted < RUN_LENGTH) continue
        await yieldTurn()
        sorted = 0
      }
    }
    return [...this.#groups.values()].sort((one, other) => (one.labels < other.labels ? -1 : 1))
  }
}

/** The labels before the check's name, which comes after them so that similar lines share a long beginning. */
function formatLabels({ namespace, project, cluster }: ExportedCheck): string {
  const labels = `namespace="${escapeValue(namespace)}",project="${escapeValue(project)}"`
  return cluster === null ? labels : `${labels},cluster="${escapeValue(cluster)}"`
}

const ESCAPES: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

function escapeValue(value: string): string {
  return /[\\"\n]/.test(value) ? value.replace(/[\\"\n]/g, (character) => ESCAPES[character]!) : value
}

/** Times are whole seconds: fractions change with each ping, say nothing, and would be a third of the compressed text. */
function writeNumbers(numbers: Float64Array, at: number, check: ExportedCheck): void {
  numbers[at + COLUMNS.status] = SHOWN_STATUSES.indexOf(check.status)
  numbers[at + COLUMNS.downReason] = DOWN_REASONS.indexOf(check.downReason)
  numbers[at + COLUMNS.lastPing] = Math.floor(toSeconds(check.lastPingAt))
  numbers[at + COLUMNS.lastSuccess] = Math.floor(toSeconds(check.lastSuccessAt))
  // Rounded up, so that it is never before the check goes down.
  numbers[at + COLUMNS.deadline] = Math.ceil(toSeconds(check.deadlineAt))
  numbers[at + COLUMNS.lastDuration] = toSeconds(check.lastDurationMs)
  numbers[at + COLUMNS.period] = check.periodSeconds ?? Number.NaN
  numbers[at + COLUMNS.grace] = check.graceSeconds
  numbers[at + COLUMNS.running] = check.isRunning ? 1 : 0
  numbers[at + COLUMNS.flapping] = check.isFlapping ? 1 : 0
  numbers[at + COLUMNS.lastRun] = check.lastRunOutcome === undefined ? -1 : RUN_OUTCOMES.indexOf(check.lastRunOutcome)
}

function toSeconds(ms: Instant | null): number {
  return ms === null ? Number.NaN : ms / 1_000
}

interface CheckMetric {
  readonly name: string
  readonly help: string
  /** Returns whole lines, or an empty text. `head`: the part of a line before the check's name. */
  readonly sample: (head: string, name: string, numbers: Float64Array, at: number) => string
}

const UP_VALUES: Record<ShownStatus, number | null> = { new: null, up: 1, late: 1, down: 0, paused: null }
const UP_TAILS = SHOWN_STATUSES.map((status) => (UP_VALUES[status] === null ? null : `"} ${UP_VALUES[status]}\n`))
/** For each status of a check, what follows the name in each of its lines. */
const STATUS_TAILS = SHOWN_STATUSES.map((own) =>
  SHOWN_STATUSES.map((status) => `",status="${status}"} ${status === own ? 1 : 0}\n`),
)
const OUTCOME_TAILS = RUN_OUTCOMES.map((own) =>
  RUN_OUTCOMES.map((outcome) => `",outcome="${outcome}"} ${outcome === own ? 1 : 0}\n`),
)

const METRICS: readonly CheckMetric[] = [
  {
    name: 'heartbeat_check_up',
    help: 'Whether the job reports as it should: 1 while up or late, 0 while down, no sample while new or paused',
    sample(head, name, numbers, at) {
      const tail = UP_TAILS[numbers[at + COLUMNS.status]!]!
      return tail === null ? '' : head + name + tail
    },
  },
  {
    name: 'heartbeat_check_status',
    help: '1 for the current status of the check, 0 for the other statuses',
    sample(head, name, numbers, at) {
      let text = ''
      for (const tail of STATUS_TAILS[numbers[at + COLUMNS.status]!]!) text += head + name + tail
      return text
    },
  },
  {
    name: 'heartbeat_check_down',
    help: 'Why the check is down; no sample while it is not',
    sample(head, name, numbers, at) {
      const reason = DOWN_REASONS[numbers[at + COLUMNS.downReason]!]
      return reason === undefined ? '' : `${head}${name}",reason="${reason}"} 1\n`
    },
  },
  numberOf('lastPing', 'heartbeat_check_last_ping_timestamp_seconds', 'When the last run ended, successful or not'),
  numberOf('lastSuccess', 'heartbeat_check_last_success_timestamp_seconds', 'When the last successful run ended'),
  numberOf(
    'deadline',
    'heartbeat_check_deadline_timestamp_seconds',
    'When the check goes down unless its job reports before',
  ),
  numberOf('lastDuration', 'heartbeat_check_last_duration_seconds', 'How long the last run took, if known'),
  numberOf('period', 'heartbeat_check_period_seconds', 'How often the job must report; no sample for a cron schedule'),
  numberOf('grace', 'heartbeat_check_grace_seconds', 'How late the job may be before the check goes down'),
  numberOf('running', 'heartbeat_check_running', '1 while a run has started and not ended, else 0'),
  numberOf(
    'flapping',
    'heartbeat_check_flapping',
    '1 while the check goes down and up so often that its changes are not notified, else 0',
  ),
  {
    name: 'heartbeat_check_last_run_outcome',
    help: '1 for the outcome of the newest run of the CronJob that the check follows, 0 for the other outcomes; no sample without a CronJob',
    sample(head, name, numbers, at) {
      let text = ''
      for (const tail of OUTCOME_TAILS[numbers[at + COLUMNS.lastRun]!] ?? []) text += head + name + tail
      return text
    },
  },
]

function numberOf(column: keyof typeof COLUMNS, name: string, help: string): CheckMetric {
  const offset = COLUMNS[column]
  return {
    name,
    help,
    sample(head, name, numbers, at) {
      const value = numbers[at + offset]!
      return Number.isNaN(value) ? '' : `${head}${name}"} ${value}\n`
    },
  }
}
