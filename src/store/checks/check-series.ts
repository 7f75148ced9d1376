/** What /metrics shows of every check, in one statement; for the replica that holds the lease (exporter.ts). */

import {
  type CheckState,
  DEFAULT_CLUSTER,
  type FlipReason,
  type Instant,
  isFlapping,
  isRunning,
  type Pause,
  type Run,
  type ShownStatus,
  STATUSES,
  shownStatus,
} from '../../domain/check.ts'
import type { RunOutcome } from '../../domain/last-run.ts'
import { deadlineOf } from '../../domain/transition.ts'
import type { Database, Queryable } from '../postgres/database.ts'
import { COVERS, findHolding } from '../silences/silences.ts'
import { pingTypeCode, type StoredSpec, statusCode } from './columns.ts'

/** A check as monitoring knows it, by names that outlive a reinstall: no id, and nothing that a job has sent. */
export interface ExportedCheck
  extends Pick<StoredSpec, 'periodSeconds' | 'graceSeconds'>,
    Pick<CheckState, 'lastPingAt' | 'lastSuccessAt' | 'lastDurationMs'> {
  /** Empty for a check without a resource. */
  readonly namespace: string
  /** The project's slug. */
  readonly project: string
  /** The resource's name, else the slug. */
  readonly name: string
  /** Null for a cluster without a name of its own, and for a check without a resource. */
  readonly cluster: string | null
  readonly status: ShownStatus
  /** The reason of the last flip of a check that is down. */
  readonly downReason: FlipReason | null
  /** When it goes down unless something happens; null when nothing is awaited. */
  readonly deadlineAt: Instant | null
  readonly isRunning: boolean
  readonly isFlapping: boolean
  /** Its last completion was a warning. */
  readonly isWarning: boolean
  /** A silence covers it. */
  readonly isSilenced: boolean
  /** Of the newest run of the CronJob that it follows. Left out without one. */
  readonly lastRunOutcome?: RunOutcome | undefined
  /** The values of its labels of these names, in their order; null for a label that it lacks. */
  readonly labels: readonly (string | null)[]
}

/** An instant as a number: to parse one costs twice as much, and every check has four. */
const MS = (at: string) => `(date_part('epoch', ${at}) * 1000)::int8`
/** Where a row has the labels. */
const LABELS = 19
const NO_LABELS: readonly (string | null)[] = []

const NAMESPACE = `coalesce(c.kubernetes_namespace, '')`
const NAME = 'coalesce(c.kubernetes_name, c.slug)'
const CLUSTER = `nullif(c.kubernetes_cluster, '${DEFAULT_CLUSTER}')`
/** By bytes, whatever the language of the database. */
const ORDER = [NAMESPACE, 'p.slug', CLUSTER, NAME].map((text) => `${text} collate "C"`).join(', ')

/**
 * Passes each check, as it is at `now`, to `onCheck`. Checks of a project stand together, in the order of their names;
 * of checks with the same names the oldest comes first. Returns false, without any check, when the lease is not
 * `holder`'s at that moment.
 */
export async function readCheckSeries(
  database: Pick<Database, 'eachRow'> & Queryable,
  holder: string,
  labelNames: readonly string[],
  now: Instant,
  onCheck: (check: ExportedCheck) => void,
): Promise<boolean> {
  const silences = await findHolding(database, now)
  const coversOne = `exists (select from silences q where q.id = any($2::uuid[]) and ${COVERS})`
  let isHolder = false
  await database.eachRow(
    {
      text: `select x.* from exporter e
        left join (
          select ${NAMESPACE}, p.slug, ${NAME}, ${CLUSTER},
            case when s.status = ${statusCode('down')} then s.reason end,
            j.last_run ->> 'outcome', s.status, ${MS('s.last_ping_at')}, ${MS('s.last_success_at')}, s.last_duration_ms,
            ${MS('s.expected_at')}, ${MS('s.due_at')}, s.runs, ${MS('s.quiet_at')}, s.period_seconds, s.grace_seconds,
            s.last_outcome is not distinct from ${pingTypeCode('warn')}, s.pause,
            cardinality($2::uuid[]) > 0${silences.length === 0 ? '' : ` and ${coversOne}`}
            ${labelNames.map((_, index) => `, c.labels ->> $${3 + index}::text`).join('')}
          from checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key
            left join cron_jobs j on j.check_key = c.key
          order by ${ORDER}, c.key) x on true
        where e.holder = $1 and e.expires_at > now()`,
      values: [holder, silences, ...labelNames],
    },
    (row) => {
      isHolder = true
      if (row[0] !== null) onCheck(toExported(row, labelNames.length, now))
    },
  )
  return isHolder
}

function toExported(row: readonly unknown[], labels: number, now: Instant): ExportedCheck {
  const state = {
    status: STATUSES[row[6] as number]!,
    expectedAt: row[10] as Instant | null,
    dueAt: row[11] as Instant | null,
    runs: (row[12] as readonly Run[] | null) ?? [],
    quietAt: row[13] as Instant | null,
    pause: row[17] as Pause | null,
  }
  return {
    namespace: row[0] as string,
    project: row[1] as string,
    name: row[2] as string,
    cluster: row[3] as string | null,
    status: shownStatus(state, now),
    downReason: row[4] as FlipReason | null,
    deadlineAt: deadlineOf(state),
    isRunning: state.runs.some((run) => isRunning(run, now)),
    isFlapping: isFlapping(state),
    isWarning: row[16] as boolean,
    isSilenced: row[18] as boolean,
    lastRunOutcome: (row[5] as RunOutcome | null) ?? undefined,
    lastPingAt: row[7] as Instant | null,
    lastSuccessAt: row[8] as Instant | null,
    lastDurationMs: row[9] as number | null,
    periodSeconds: row[14] as number | null,
    graceSeconds: row[15] as number,
    labels: labels === 0 ? NO_LABELS : (row.slice(LABELS) as (string | null)[]),
  }
}
