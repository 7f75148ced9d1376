/** Checks, channels, and an outbox with a manual clock. PostgreSQL is real; the receivers are functions of the test. */

import { beforeEach } from 'vitest'
import type { UrlSettings } from '../../../src/channels/kinds/url-config.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import { createPingRecorder, type Ping } from '../../../src/checks/ping/record.ts'
import { type AttemptReport, createOutbox, type OutboxOptions } from '../../../src/delivery/outbox.ts'
import type { Attempt, Outcome, Send, SendDigest, Senders } from '../../../src/delivery/outcome.ts'
import { CHANNEL_KINDS, type ChannelSettings } from '../../../src/domain/channel.ts'
import { type CheckEventType, STANDARD_EVENT_TYPES } from '../../../src/domain/event.ts'
import { PATIENCE_MS } from '../../../src/domain/retry.ts'
import { newId } from '../../../src/runtime/ids.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { insertChannel } from '../../../src/store/outbox/channels.ts'
import { insertTestEvent } from '../../../src/store/outbox/events.ts'
import { jsonbArray } from '../../../src/store/postgres/binary-arrays.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { NOON } from '../../support/builders.ts'
import { addCheck, type CheckInput } from '../../support/check.ts'
import { createTestDatabase } from '../../support/database.ts'
import { aFlipEvent } from '../../support/events.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { addTenant, type TestTenant } from '../../support/tenant.ts'
import { settle } from '../../support/until.ts'
import { use } from '../../support/use.ts'

const SLACK: UrlSettings<'slack'> = { kind: 'slack', url: 'https://hooks.example.com/x' }
export const DELIVERED: Outcome = { kind: 'delivered', status: 200 }
export const AWAY: Outcome = { kind: 'retry', status: null, error: 'connection refused' }

export interface DeliveryRow {
  readonly id: string
  readonly event_id: string
  readonly channel_id: string
  readonly type: string
  readonly status: number
  readonly attempts: number
  readonly next_attempt_at: number | null
  readonly claimed_until: number | null
  readonly last_status: number | null
  readonly last_error: string | null
  readonly delivered_at: number | null
  readonly check_key: number | null
  readonly digest_id: string | null
  readonly reason: string | null
  readonly cause: object | null
}

export async function createFixture() {
  const test = await createTestDatabase()
  const pingDatabase = createDatabase({
    url: test.url,
    name: 'pings',
    connections: 4,
    genericPlans: true,
    looksUp: true,
  })
  const { database } = test
  const clock = createManualClock(NOON)
  const sealer = createSealer(Buffer.alloc(32, 7), [])
  const recorder = createPingRecorder({
    database: pingDatabase,
    now: clock.now,
    onGroup: () => {},
    onError: (error) => {
      throw error
    },
  })
  let tenant: TestTenant

  return {
    database,
    url: test.url,
    clock,
    sealer,
    tenant: () => tenant,
    async clear() {
      await test.clear()
      tenant = await addTenant({ database })
    },
    async [Symbol.asyncDispose]() {
      await recorder.stop()
      await pingDatabase.close()
      await test.close()
    },
    addCheck: (input: CheckInput = {}) => addCheck({ database, clock }, tenant, input),

    async addChannel<Settings extends ChannelSettings>(
      overrides: Partial<Parameters<typeof insertChannel>[1]> & {
        settings?: Settings
      } = {},
    ) {
      const { settings = SLACK as ChannelSettings, ...rest } = overrides
      const id = newId(clock.now())
      const { sealed, sealedWith } = sealer.seal(id, settings)
      await insertChannel(database, {
        id,
        organizationId: tenant.organizationId,
        projectId: null,
        kind: settings.kind,
        name: 'Team',
        sealed,
        sealedWith,
        eventTypes: STANDARD_EVENT_TYPES,
        muted: false,
        afterSeconds: 0,
        createdAt: clock.now(),
        ...rest,
      })
      return id
    },

    /** Stores a ping a minute later, so that events have an order in time. */
    async ping(check: Pick<CheckRecord, 'publicId'>, ping: Partial<Ping> = {}) {
      await clock.advance(60_000)
      const standard = { type: 'success', exitCode: 0, durationMs: null, runId: null, body: null } as const
      const result = await recorder.record({ publicId: check.publicId, ...standard, at: clock.now(), ...ping })
      if (result !== 'stored') throw new Error(`the ping was not stored: ${result}`)
    },

    /** An event of each of these checks, and its delivery to the channel, as a flood of flips leaves them: they happen now. */
    async addEvents(channelId: string, checkKeys: readonly number[], type: CheckEventType = 'check.down') {
      const at = clock.now()
      const { facts, check } = aFlipEvent()
      const rows = checkKeys.map((key) => ({
        id: newId(at),
        delivery: newId(at),
        key,
        check: { ...check, id: `check ${key}`, name: `Job ${key}` },
      }))
      await database.query(
        `with given as (select r ->> 'id' as id, r ->> 'delivery' as delivery, (r ->> 'key')::int8 as key, r -> 'check' as subject
            from unnest($1::jsonb[]) r),
          added as (
            insert into events (id, check_key, type, data, created_at, subject)
            select id::uuid, key, $2, $3, to_timestamp($4::float8), subject from given)
        insert into deliveries (event_id, channel_id, id, check_key, organization_id, type, next_attempt_at, give_up_at, created_at)
        select id::uuid, $5, delivery::uuid, key, $6, $2, to_timestamp($4::float8), to_timestamp($7::float8), to_timestamp($4::float8) from given`,
        [jsonbArray(rows), type, facts, at / 1_000, channelId, tenant.organizationId, (at + PATIENCE_MS) / 1_000],
      )
    },

    /**
     * One event as it was stored, now, and its delivery to the channel. `changes`: of a missed run. `output`: the bytes of
     * its ping, instead of a text.
     */
    async addEvent(
      channelId: string,
      checkKey: number,
      changes: Parameters<typeof aFlipEvent>[0] = {},
      output: Buffer | null = null,
    ) {
      const at = clock.now()
      const { type, facts, check, lastPing } = aFlipEvent(changes)
      const { body = null, ...ping } = lastPing ?? {}
      const id = newId(at)
      await database.query(
        `with added as (
            insert into events (id, check_key, type, data, created_at, subject, last_ping, last_body)
            values ($1, $2, $3, $4, to_timestamp($5::float8), $6, $7, $8))
          insert into deliveries (event_id, channel_id, id, check_key, organization_id, type, next_attempt_at, give_up_at, created_at)
          values ($1, $9, $10, $2, $11, $3, to_timestamp($5::float8), to_timestamp($12::float8), to_timestamp($5::float8))`,
        [
          ...[id, checkKey, type, facts, at / 1_000, check, lastPing === null ? null : ping],
          ...[output ?? (body === null ? null : Buffer.from(body)), channelId, newId(at), tenant.organizationId],
          (at + PATIENCE_MS) / 1_000,
        ],
      )
    },

    addTest: (channelId: string) =>
      insertTestEvent(database, {
        eventId: newId(clock.now()),
        deliveryId: newId(clock.now()),
        channelId,
        organizationId: tenant.organizationId,
        projectId: null,
        at: clock.now(),
      }),

    async deliveries(): Promise<DeliveryRow[]> {
      const { rows } = await database.query<DeliveryRow>('select * from deliveries order by channel_id, event_id')
      return rows
    },

    /** `send` stands for every kind of receiver. */
    createOutbox(send: Send, overrides: Partial<OutboxOptions> = {}) {
      const reports: AttemptReport[] = []
      const bugs: unknown[] = []
      const outbox = createOutbox({
        database,
        senders: Object.fromEntries(CHANNEL_KINDS.map((kind) => [kind, send])) as Senders,
        sealer,
        installationUrls: [],
        now: clock.now,
        clock,
        random: () => 0.5,
        yieldToPings: async () => {},
        onAttempt: (report) => reports.push(report),
        onBug: (error) => bugs.push(error),
        ...overrides,
      })
      /** Polls until nothing is due and no attempt is running. */
      const drain = async () => {
        // Aborted: no poll rests, on a clock that stands still.
        while ((await outbox.run(AbortSignal.abort())) === 'again') await settle()
      }
      return { ...outbox, drain, reports, bugs }
    },
  }
}

export type Fixture = Awaited<ReturnType<typeof createFixture>>

/** A fixture for all tests of a file; before each of them its database is emptied and gets a tenant. */
export function useDelivery(): Fixture {
  const fixture = use(createFixture)
  beforeEach(() => fixture.clear())
  return fixture
}

/** A receiver that records its attempts. `answer` decides about the outcome. */
export function createReceiver(answer: (attempt: Attempt) => Outcome | Promise<Outcome> = () => DELIVERED) {
  const got: Attempt[] = []
  const send: Send = async (attempt) => {
    got.push(attempt)
    return answer(attempt)
  }
  return { send, got, types: () => got.map(({ event }) => event.type) }
}

/** One that takes digests, too. */
export function createDigestReceiver(
  answer: (attempt: Attempt | Parameters<SendDigest>[0]) => Outcome | Promise<Outcome> = () => DELIVERED,
) {
  const { send, got } = createReceiver(answer)
  const digests: Parameters<SendDigest>[0][] = []
  const sendDigest: SendDigest = async (attempt) => {
    digests.push(attempt)
    return answer(attempt)
  }
  return { send: Object.assign(send, { sendDigest }), got, digests }
}

export const keysFrom = (first: number, count: number) => Array.from({ length: count }, (_, index) => first + index)
