/** What /metrics shows of every check, in one statement; for the replica that holds the lease (exporter.ts). */

import { type CheckState, type FlipReason, type Instant, type Run, STATUSES } from '../../domain/check.ts'
import type { Database } from '../postgres/database.ts'
import { type Column, columnOf, fieldsOf, type Marked, marked, positionsOf } from './column-lists.ts'
import { lastSuccessOf, SPEC, STATE, type StoredSpec, statusCode } from './columns.ts'

type ExportedSpec = Pick<StoredSpec, Marked<typeof SPEC, 'isExported'>>
type ExportedState = Pick<CheckState, Marked<typeof STATE, 'isExported'>>

export interface CheckSeriesRow extends ExportedSpec, ExportedState {
  /** Empty for a check without a resource. */
  readonly namespace: string
  /** The project's slug. */
  readonly project: string
  /** The resource's name, else the slug. */
  readonly name: string
  readonly cluster: string | null
  /** The reason of the newest flip of a check that is down. */
  readonly downReason: FlipReason | null
}

const EXPORTED = { ...marked(STATE, 'isExported'), ...marked(SPEC, 'isExported') }
/** An instant as a number: to parse one costs twice as much, and every check has four. */
const MS = (at: string) => `(date_part('epoch', ${at}) * 1000)::int8`
const SELECTED = fieldsOf(EXPORTED).map((field) => {
  const column = `s.${columnOf(field)}`
  const { type }: Column<never> = EXPORTED[field]
  return type === 'timestamptz' ? MS(column) : column
})
const FIRST = 5
const AT = positionsOf(EXPORTED)

/**
 * Passes each check to `onCheck`, in the order of their keys: of checks with the same labels the oldest comes first. Returns false,
 * without any check, when the lease is not `holder`'s at that moment. The reason is a scalar subquery, since a join would look for the
 * reasons of all checks.
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
          select coalesce(c.kubernetes_namespace, ''), p.slug, coalesce(c.kubernetes_name, c.slug), c.kubernetes_cluster,
            case when s.status = ${statusCode('down')} then
              (select f.reason from flips f where f.check_key = s.check_key order by f.id desc limit 1) end,
            ${SELECTED.join(', ')}
          from checks c join projects p on p.id = c.project_id join check_states s on s.check_key = c.key
          order by c.key) x on true
        where e.holder = $1 and e.expires_at > now()`,
      values: [holder],
    },
    (row) => {
      isHolder = true
      if (row[0] !== null) onCheck(toCheckSeries(row))
    },
  )
  return isHolder
}

/** A literal like `toState`, for the same reason. */
function toCheckSeries(row: readonly unknown[]): CheckSeriesRow {
  const status = STATUSES[row[FIRST + AT.status] as number]!
  const lastPingAt = row[FIRST + AT.lastPingAt] as Instant | null
  return {
    namespace: row[0] as string,
    project: row[1] as string,
    name: row[2] as string,
    cluster: row[3] as string | null,
    downReason: row[4] as FlipReason | null,
    status,
    lastPingAt,
    lastSuccessAt: lastSuccessOf(status, lastPingAt, row[FIRST + AT.lastSuccessAt] as Instant | null),
    lastDurationMs: row[FIRST + AT.lastDurationMs] as number | null,
    expectedAt: row[FIRST + AT.expectedAt] as Instant | null,
    dueAt: row[FIRST + AT.dueAt] as Instant | null,
    runs: (row[FIRST + AT.runs] as readonly Run[] | null) ?? [],
    periodSeconds: row[FIRST + AT.periodSeconds] as number | null,
    graceSeconds: row[FIRST + AT.graceSeconds] as number,
  }
}
