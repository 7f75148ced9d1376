/** How large the history is, for metrics. */

import type { Queryable } from '../postgres/database.ts'

export const HISTORY_KINDS = ['pings', 'flips', 'events', 'deliveries'] as const
export type HistoryKind = (typeof HISTORY_KINDS)[number]

/** Up to this number rows are counted; a scrape must not read a table of a hundred million rows. */
export const COUNTED_ROWS = 10_000

/** The rows of each table: counted up to COUNTED_ROWS, above it PostgreSQL's own estimate (live rows since its statistics began, or at the last vacuum). */
export async function countHistoryRows(tx: Queryable): Promise<Record<HistoryKind, number>> {
  const { rows } = await tx.query<{ kind: HistoryKind; count: number }>(
    HISTORY_KINDS.map(
      (kind) => `select '${kind}' as kind, case when estimate > ${COUNTED_ROWS} then estimate
          else (select count(*) from (select from ${kind} limit ${COUNTED_ROWS}) few) end as count
        from (select greatest(pg_stat_get_live_tuples(oid), reltuples::int8) as estimate from pg_class where oid = '${kind}'::regclass) e`,
    ).join(' union all '),
  )
  return Object.fromEntries(rows.map(({ kind, count }) => [kind, count])) as Record<HistoryKind, number>
}
