/** The row for the channel of ALERTMANAGER_URL. It has no settings: each replica has them in its configuration. */

import type { Instant } from '../../domain/check.ts'
import type { CheckEventType } from '../../domain/event.ts'
import { instantArray, textArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'

/** Creates or updates the channel, and stores that a replica has it at `now`. */
export async function saveInstallationChannel(
  db: Queryable,
  channel: {
    readonly id: string
    readonly name: string
    readonly eventTypes: readonly CheckEventType[]
    readonly now: Instant
  },
): Promise<void> {
  await db.query(
    `insert into channels (id, kind, name, event_types, created_at, seen_at) values ($1, 'alertmanager', $2, $3, ($4::timestamptz[])[1], ($4::timestamptz[])[1])
      on conflict (id) do update set name = excluded.name, event_types = excluded.event_types, seen_at = excluded.seen_at`,
    [channel.id, channel.name, textArray(channel.eventTypes), instantArray([channel.now])],
  )
}

/** Deletes the channel, unless a replica has saved it since `unseenSince`. Pruning deletes its deliveries. */
export async function deleteInstallationChannel(db: Queryable, id: string, unseenSince: Instant): Promise<void> {
  await db.query('delete from channels where id = $1 and seen_at < ($2::timestamptz[])[1]', [
    id,
    instantArray([unseenSince]),
  ])
}
