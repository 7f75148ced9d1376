/** How far each spool is recorded: moved by the transaction that records its pings, so that each is recorded once. */

import type { Queryable } from '../postgres/database.ts'

/**
 * The position up to which this spool is recorded; 0 of a new one. Its row is locked until a transaction ends. The row
 * may be gone: a standby that was promoted never had it, or it was pruned.
 */
export async function lockSpoolPosition(tx: Queryable, id: string): Promise<number> {
  const rows = await tx.queryColumns({
    name: 'lock_spool',
    text: 'insert into spools (id) values ($1) on conflict (id) do update set used_at = now() returning read_to',
    values: [id],
  })
  return rows[0]![0] as number
}

export async function moveSpoolPosition(tx: Queryable, id: string, readTo: number): Promise<void> {
  await tx.queryColumns({
    name: 'move_spool',
    text: `insert into spools (id, read_to) values ($1, $2)
      on conflict (id) do update set read_to = excluded.read_to, used_at = now()`,
    values: [id, readTo],
  })
}

/** Which of these pings are stored, as the hex digits of their ids. Read under the locks of their checks. */
export async function findStoredPings(
  tx: Queryable,
  pings: readonly { readonly key: number; readonly id: Buffer }[],
): Promise<Set<string>> {
  const rows = await tx.queryColumns({
    name: 'find_stored_pings',
    text: `select encode(uuid_send(p.id), 'hex') from unnest($1::int8[], $2::uuid[]) i (key, id) join pings p on p.check_key = i.key and p.id = i.id`,
    values: [pings.map(({ key }) => key), pings.map(({ id }) => id.toString('hex'))],
  })
  return new Set(rows.map(([id]) => id as string))
}
