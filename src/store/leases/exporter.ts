/**
 * The lease of the replica that exports the series of the checks: a row that its holder renews, and that another replica takes when it has
 * expired. Only PostgreSQL's clock counts, so that replicas with wrong clocks agree, also one that was frozen for a while.
 */

import type { Queryable } from '../postgres/database.ts'

/**
 * Acquires or renews the lease for `lastsMs` from now. False when another replica holds it; then nothing is written, because
 * every replica tries every second.
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

/** Releases the lease. Does nothing when another replica holds it. */
export async function releaseExport(tx: Queryable, holder: string): Promise<void> {
  await tx.query('delete from exporter where holder = $1', [holder])
}
