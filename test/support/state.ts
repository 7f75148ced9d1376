/** What the database holds of a check, read by SQL where no verb of the service tells it. */

import type { Queryable } from '../../src/store/postgres/database.ts'

type Store = { readonly database: Queryable }
type Key = { readonly key: number }

/** When the evaluator looks at the check. */
export async function wakeOf({ database }: Store, { key }: Key): Promise<number | null> {
  const { rows } = await database.query<{ wakeAt: number | null }>(
    'select wake_at as "wakeAt" from check_states where check_key = $1',
    [key],
  )
  return rows[0]!.wakeAt
}

/** Row versions: they move with each write, whatever it writes. */
export async function versionsOf({ database }: Store, { key }: Key): Promise<unknown> {
  const { rows } = await database.query(
    'select c.xmin::text as c, s.xmin::text as s, s.stamped_at from checks c join check_states s on s.check_key = c.key where c.key = $1',
    [key],
  )
  return rows
}

/** The types of its events, oldest first. */
export async function eventTypesOf({ database }: Store, { key }: Key): Promise<string[]> {
  const { rows } = await database.query<{ type: string }>('select type from events where check_key = $1 order by id', [
    key,
  ])
  return rows.map(({ type }) => type)
}
