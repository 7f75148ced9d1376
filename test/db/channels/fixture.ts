/** Channels, deliveries, and a manual clock. */

import { randomUUID } from 'node:crypto'
import type { ChannelContext } from '../../../src/channels/context.ts'
import { createChannel, type NewChannel } from '../../../src/channels/create-channel.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import { SYSTEM } from '../../../src/domain/access.ts'
import type { ChannelSettings } from '../../../src/domain/channel.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { newId } from '../../../src/runtime/ids.ts'
import type { Database } from '../../../src/store/postgres/database.ts'
import { manualClock } from '../auth/fixtures.ts'

export const KEY = Buffer.alloc(32, 7)

/** Channels may reach every address. */
export const REACH = { findObjection: () => null, hasSmtp: true }

export function contextOf(database: Database, overrides: Partial<ChannelContext> = {}) {
  return { database, clock: manualClock(), sealer: createSealer(KEY), reach: REACH, ...overrides }
}

export function aChannel(
  context: ChannelContext,
  organizationId: string,
  overrides: Partial<NewChannel> = {},
): ReturnType<typeof createChannel> {
  const channel = { kind: 'webhook', name: 'Pager', config: { url: 'https://example.com/hook' } } as const
  return createChannel(context, { ...SYSTEM, organizationId, projectId: null }, { ...channel, ...overrides })
}

export async function openStored({ database, sealer }: ChannelContext, id: string): Promise<ChannelSettings> {
  return sealer.open(id, await readSealed(database, id))
}

export async function readSealed(database: Database, id: string): Promise<{ sealed: Buffer; sealedWith: Buffer }> {
  const { rows } = await database.query<{ sealed: Buffer; sealedWith: Buffer }>(
    'select sealed, sealed_with as "sealedWith" from channels where id = $1',
    [id],
  )
  return rows[0]!
}

export interface SeededDelivery {
  readonly channelId: string
  readonly status?: 'pending' | 'delivered' | 'failed'
  readonly type?: string
}

/** Returns its id. */
export async function aDelivery(
  database: Database,
  organizationId: string,
  { channelId, status = 'pending', type = 'check.down' }: SeededDelivery,
): Promise<string> {
  const id = newId(systemClock.now())
  await database.query(
    `insert into deliveries (event_id, channel_id, id, organization_id, type, status, next_attempt_at, give_up_at, created_at, last_error)
      values ($1, $2, $3, $4, $5, $6::int, case when $6::int = 0 then now() end, now(), now(), 'before')`,
    [randomUUID(), channelId, id, organizationId, type, ['pending', 'delivered', 'failed'].indexOf(status)],
  )
  return id
}

/** Inserts `count` pending deliveries. */
export async function manyDeliveries(database: Database, organizationId: string, channelId: string, count: number) {
  await database.query(
    `insert into deliveries (event_id, channel_id, id, organization_id, type, status, next_attempt_at, give_up_at, created_at)
      select gen_random_uuid(), $1, gen_random_uuid(), $2, 'check.down', 0, now(), now(), now() from generate_series(1, $3)`,
    [channelId, organizationId, count],
  )
}

export async function readDeliveries(database: Database, channelId: string) {
  const { rows } = await database.query<{ id: string; status: number; due: boolean; error: string }>(
    `select id, status, next_attempt_at is not null as due, last_error as error from deliveries where channel_id = $1 order by id`,
    [channelId],
  )
  return rows
}
