/** All that /metrics says of every check, in one statement: for the replica that holds the lease (exporter.ts), and for no other. */

import { type FlipReason, type Instant, type Run, STATUSES, type StoredStatus } from '../../domain/check.ts'
import type { Database } from '../postgres/database.ts'

export interface CheckSeriesRow {
  /** Empty for a check that no resource declares. */
  readonly namespace: string
  /** The project's slug. */
  readonly project: string
  /** The resource's name, else the slug. */
  readonly name: string
  readonly cluster: string | null
  readonly status: StoredStatus
  readonly lastPingAt: Instant | null
  readonly lastSuccessAt: Instant | null
  readonly expectedAt: Instant | null
  readonly dueAt: Instant | null
  readonly lastDurationMs: number | null
  readonly periodSeconds: number | null
  readonly graceSeconds: number
  readonly runs: readonly Run[]
  /** Of a check that is down: its newest flip's. */
  readonly downReason: FlipReason | null
}

/** As lastSuccessOf has it. */
const LAST_SUCCESS = `case when s.status = ${STATUSES.indexOf('up')} then s.last_ping_at else s.last_success_at end`
/** Parsed as a number, which costs half of an instant: there are four for each of all checks. */
const MS = (at: string) => `(date_part('epoch', ${at}) * 1000)::int8`

/**
 * Hands over each check once, in the order of their keys: of those that look alike outside, the oldest comes first. False, and
 * none: the lease was not `holder`'s at that moment. The reason is a scalar subquery, since a join would look for those of all.
 */
export async function readCheckSeries(
  database: Pick<Database, 'eachRow'>,
  holder: string,
  onCheck: (check: CheckSeriesRow) => void,
): Promise<boolean> {
  let isHolder = false
  await database.eachRow(
    {
      text: `select x.* from exporter e
        left join (
          select coalesce(c.kubernetes_namespace, ''), p.slug, coalesce(c.kubernetes_name, c.slug), c.kubernetes_cluster, s.status,
            ${MS('s.last_ping_at')}, ${MS(LAST_SUCCESS)}, ${MS('s.expected_at')}, ${MS('s.due_at')},
            s.last_duration_ms, s.period_seconds, s.grace_seconds, s.runs,
            case when s.status = ${STATUSES.indexOf('down')} then
              (select f.reason from flips f where f.check_key = s.check_key order by f.id desc limit 1) end
          from checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key
          order by c.key) x on true
        where e.holder = $1 and e.expires_at > now()`,
      values: [holder],
    },
    (row) => {
      isHolder = true
      if (row[4] !== null) onCheck(toCheckSeries(row))
    },
  )
  return isHolder
}

function toCheckSeries(row: unknown[]): CheckSeriesRow {
  const [
    namespace,
    project,
    name,
    cluster,
    status,
    lastPingAt,
    lastSuccessAt,
    expectedAt,
    dueAt,
    lastDurationMs,
    periodSeconds,
    graceSeconds,
    runs,
    downReason,
  ] = row as [
    string,
    string,
    string,
    string | null,
    number,
    Instant | null,
    Instant | null,
    Instant | null,
    Instant | null,
    number | null,
    number | null,
    number,
    Run[] | null,
    FlipReason | null,
  ]
  return {
    namespace,
    project,
    name,
    cluster,
    status: STATUSES[status]!,
    lastPingAt,
    lastSuccessAt,
    expectedAt,
    dueAt,
    lastDurationMs,
    periodSeconds,
    graceSeconds,
    runs: runs ?? [],
    downReason,
  }
}
