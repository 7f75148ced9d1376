/**
 * Which replica exports the checks' series: a row that its holder renews and everybody else takes when it is old. Only PostgreSQL's
 * clock counts, so replicas with wrong clocks agree, and one that was frozen for a while is told like everybody else.
 */

import type { Queryable } from '../postgres/database.ts'

/**
 * Takes or renews the lease for `lastsMs` from now. False: another replica has it. Whoever cannot have it writes nothing: each
 * replica asks every second.
 */
export async function claimExport(tx: Queryable, holder: string, lastsMs: number): Promise<boolean> {
  const { rowCount } = await tx.query({
    name: 'claim_export',
    text: `insert into exporter as e (holder, expires_at)
      select $1::uuid, now() + $2 * interval '1 millisecond'
      where not exists (select from exporter where holder <> $1 and expires_at > now())
      on conflict (only_row) do update set holder = excluded.holder, expires_at = excluded.expires_at
        where e.holder = excluded.holder or e.expires_at <= now()`,
    values: [holder, lastsMs],
  })
  return rowCount > 0
}

/** Nothing when it is another's. */
export async function releaseExport(tx: Queryable, holder: string): Promise<void> {
  await tx.query('delete from exporter where holder = $1', [holder])
}
