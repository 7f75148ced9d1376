/** The public key that processes without SECRET_KEY seal for (channels/seal-box.ts). */

import type { Queryable } from '../postgres/database.ts'

export async function saveSealingKey(db: Queryable, key: Buffer): Promise<void> {
  await db.query(
    `insert into installation (sealing_key) values ($1)
      on conflict (is_only) do update set sealing_key = excluded.sealing_key
      where installation.sealing_key is distinct from excluded.sealing_key`,
    [key],
  )
}

/** Null: no process with SECRET_KEY has saved one yet. */
export async function findSealingKey(db: Queryable): Promise<Buffer | null> {
  const { rows } = await db.query<{ key: Buffer | null }>('select sealing_key as key from installation')
  return rows[0]?.key ?? null
}
