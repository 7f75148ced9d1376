/** Digests: which deliveries are sent in one message, what becomes of them, and what does not belong in one. */

import { beforeEach, describe, expect, it } from 'vitest'
import { retryDelivery } from '../../../src/channels/retry-delivery.ts'
import { testChannel } from '../../../src/channels/test-channel.ts'
import type { Outcome } from '../../../src/delivery/outcome.ts'
import { MAX_SLOTS } from '../../../src/delivery/slots.ts'
import { DIGEST } from '../../../src/domain/digest.ts'
import { CLAIM_MS } from '../../../src/domain/retry.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { settle } from '../../support/until.ts'
import { AWAY, createDigestReceiver, createReceiver, DELIVERED, keysFrom, useDelivery } from './fixture.ts'

let channel: string
const fixture = useDelivery()
beforeEach(async () => {
  channel = await fixture.addChannel()
})

/** A receiver of digests, and an outbox that sends to it. */
function open(...given: Parameters<typeof createDigestReceiver>) {
  const receiver = createDigestReceiver(...given)
  return { ...receiver, outbox: fixture.createOutbox(receiver.send) }
}
const CROWD = DIGEST.crowd + 1
const addCrowd = (count = CROWD, first = 1) => fixture.addEvents(channel, keysFrom(first, count))
const statuses = async () => (await fixture.deliveries()).map(({ status }) => status)
const digestIds = async () => new Set((await fixture.deliveries()).map((row) => row.digest_id))
const reach = { findObjection: () => null, hasSmtp: true }
const sendTest = () => testChannel({ ...fixture, reach }, fixture.tenant(), channel)
/** One poll. The attempts at receivers that respond at once have ended. */
async function once(outbox: { run(signal: AbortSignal): Promise<unknown> }): Promise<void> {
  await outbox.run(AbortSignal.abort())
  await settle()
}

describe('a crowd', () => {
  it('of 20 deliveries is none: each is sent alone', async () => {
    await addCrowd(20)
    const { send, got, digests } = createDigestReceiver()
    await fixture.createOutbox(send).drain()
    expect([got.length, digests.length]).toEqual([20, 0])
    expect(await digestIds()).toEqual(new Set([null]))
  })

  it('of 21 deliveries is one message, and each of them is delivered', async () => {
    await addCrowd(21)
    const { outbox, got, digests } = open()
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([0, 1])
    const { digest, channel: opened } = digests[0]!
    expect(opened).toMatchObject({ id: channel, name: 'Team' })
    expect(digest).toMatchObject({ at: fixture.clock.now(), events: 21, counts: [{ type: 'check.down', checks: 21 }] })
    expect(digest.named.map(({ check }) => check.name)).toContain('Job 21')
    const delivered = {
      status: 1,
      attempts: 1,
      last_status: 200,
      digest_id: digest.id,
      next_attempt_at: null,
      claimed_until: null,
    }
    const rows = await fixture.deliveries()
    expect(rows).toHaveLength(21)
    for (const row of rows) expect(row).toMatchObject({ ...delivered, delivered_at: fixture.clock.now() })
    expect(outbox.reports).toMatchObject([{ result: 'delivered', count: 21, message: { digest: { id: digest.id } } }])
  })

  it('of a kind without digests is sent one by one', async () => {
    await addCrowd()
    const { send, got } = createReceiver()
    await fixture.createOutbox(send).drain()
    expect(got).toHaveLength(CROWD)
    expect(await digestIds()).toEqual(new Set([null]))
  })

  it('is of one channel: another one that is quiet gets its events alone', async () => {
    const quiet = await fixture.addChannel({ name: 'Quiet' })
    await addCrowd()
    await fixture.addEvents(quiet, keysFrom(1, 3))
    const { send, got, digests } = createDigestReceiver()
    await fixture.createOutbox(send).drain()
    expect(got.map((attempt) => attempt.channel.name)).toEqual(['Quiet', 'Quiet', 'Quiet'])
    expect(digests.map((attempt) => attempt.channel.name)).toEqual(['Team'])
  })

  it('begins with the 21st within ten seconds, also when the first were sent alone', async () => {
    await addCrowd(15)
    const { outbox, got, digests } = open()
    await outbox.drain()
    await fixture.clock.advance(DIGEST.windowMs)
    await addCrowd(6, 100)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([15, 1])
    expect(digests[0]!.digest.events).toBe(6)
  })

  it('is over when the first of 21 are older than ten seconds', async () => {
    await addCrowd(15)
    const { outbox, got, digests } = open()
    await outbox.drain()
    await fixture.clock.advance(DIGEST.windowMs + 1)
    await addCrowd(6, 100)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([21, 0])
  })

  it('that lasts is a message every five seconds, and what is left alone at its end is sent alone', async () => {
    const { outbox, got, digests } = open()
    await addCrowd()
    await outbox.drain()
    await addCrowd(3, 100)
    await fixture.clock.advance(DIGEST.pauseMs - 1)
    await addCrowd(4, 200)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([0, 1])
    await fixture.clock.advance(1)
    await outbox.drain()
    expect(digests.map(({ digest }) => digest.events)).toEqual([CROWD, 7])
    await addCrowd(1, 300)
    await fixture.database.query(
      `update events set last_ping = '{"type": "fail"}', last_body = 'disk full' where check_key = 300`,
    )
    await fixture.clock.advance(DIGEST.pauseMs)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([1, 2])
    expect(got[0]!.event).toMatchObject({ lastPing: { body: 'disk full' } })
    expect((await fixture.deliveries()).at(-1)).toMatchObject({ status: 1, digest_id: null })
  })

  it('of many channels are sent three in a poll, and those that have waited for longest come first', async () => {
    const channels = [channel]
    for (const name of ['B', 'C', 'D', 'E']) channels.push(await fixture.addChannel({ name }))
    const addAll = async (first: number) => {
      for (const one of channels) await fixture.addEvents(one, keysFrom(first, CROWD))
    }
    const { outbox, digests } = open()
    await addAll(1)
    await once(outbox)
    expect(digests).toHaveLength(3)
    await fixture.clock.advance(DIGEST.pauseMs)
    await addAll(100)
    await once(outbox)
    expect(digests).toHaveLength(6)
    expect(new Set(digests.map((attempt) => attempt.channel.id))).toEqual(new Set(channels))
    await outbox.drain()
    await fixture.clock.advance(DIGEST.pauseMs)
    await outbox.drain()
    expect((await fixture.deliveries()).map((row) => row.status)).toEqual(Array(10 * CROWD).fill(1))
  })

  it('has a bound: what is above it is the next message', async () => {
    await addCrowd(DIGEST.deliveries + CROWD)
    const { outbox, digests } = open()
    await outbox.drain()
    await fixture.clock.advance(DIGEST.pauseMs)
    await outbox.drain()
    expect(digests.map(({ digest }) => digest.events)).toEqual([DIGEST.deliveries, CROWD])
    expect(digests[0]!.digest.counts).toEqual([{ type: 'check.down', checks: DIGEST.deliveries }])
    expect(digests[0]!.digest.named).toHaveLength(DIGEST.named)
  })

  it('has its outcomes written in one statement, and those of a second one in another when both are too many', async () => {
    const other = await fixture.addChannel({ name: 'Other' })
    const half = DIGEST.deliveries / 2 + 1
    for (const one of [channel, other]) await fixture.addEvents(one, keysFrom(1, half))
    const { database } = fixture
    const written: number[] = []
    const counting: typeof database = {
      ...database,
      async query(statement, values) {
        const result = await database.query(statement, values)
        if (typeof statement === 'object' && statement.name === 'finish_attempts') {
          const { rows } = await database.query<{ count: number }>(
            'select count(*) as count from deliveries where status = 1',
          )
          written.push(rows[0]!.count)
        }
        return result as never
      },
    }
    const { send, digests } = createDigestReceiver()
    await fixture.createOutbox(send, { database: counting }).drain()
    expect(digests).toHaveLength(2)
    expect(written).toEqual([half, 2 * half])
  })
})

describe('a digest that is not accepted', () => {
  it('is tried again by the usual rules, as one message', async () => {
    await addCrowd()
    const { send, got, digests } = createDigestReceiver(() => (digests.length < 3 ? AWAY : DELIVERED))
    const outbox = fixture.createOutbox(send, { random: Math.random })
    for (const [attempt, waitMs] of [5 * SECOND, 15 * SECOND].entries()) {
      await outbox.drain()
      const rows = await fixture.deliveries()
      expect(new Set(rows.map((row) => row.next_attempt_at)).size).toBe(1)
      const after = rows[0]!.next_attempt_at! - fixture.clock.now()
      expect(after / waitMs).toBeGreaterThanOrEqual(0.9)
      expect(after / waitMs).toBeLessThanOrEqual(1.1)
      for (const row of rows)
        expect(row).toMatchObject({
          status: 0,
          attempts: attempt + 1,
          last_error: 'connection refused',
          digest_id: null,
        })
      await fixture.clock.advance(1.1 * waitMs)
    }
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([0, 3])
    expect(await digestIds()).toEqual(new Set([digests[2]!.digest.id]))
    expect(outbox.reports.map(({ result, count }) => [result, count])).toEqual([
      ['retried', CROWD],
      ['retried', CROWD],
      ['delivered', CROWD],
    ])
  })

  it('waits as long as the receiver asks for', async () => {
    await addCrowd()
    const { send } = createDigestReceiver(() => ({ ...AWAY, retryAfterMs: 90 * MINUTE }))
    await fixture.createOutbox(send).drain()
    for (const row of await fixture.deliveries()) expect(row.next_attempt_at! - fixture.clock.now()).toBe(90 * MINUTE)
  })

  it('is given up where its deliveries are at their end, and tried again where they are not', async () => {
    await addCrowd()
    await fixture.database.query('update deliveries set give_up_at = created_at, attempts = 5 where check_key <= 4')
    const { outbox } = open(() => AWAY)
    await outbox.drain()
    expect((await statuses()).sort()).toEqual([...Array(CROWD - 4).fill(0), ...Array(4).fill(2)])
    expect(outbox.reports.map(({ result, count }) => [result, count])).toEqual([
      ['retried', CROWD - 4],
      ['failed', 4],
    ])
  })

  it('that is refused is tried again for an hour from the first refusal, then each of them fails', async () => {
    await addCrowd()
    const { send, got, digests } = createDigestReceiver(() => ({
      kind: 'retry',
      status: 404,
      error: 'no such route',
      isRefusal: true,
    }))
    const outbox = fixture.createOutbox(send)
    const end = fixture.clock.now() + HOUR
    const refused = { last_status: 404, last_error: 'no such route' }
    await outbox.drain()
    for (;;) {
      const rows = await fixture.deliveries()
      expect(rows).toHaveLength(CROWD)
      for (const row of rows) expect(row).toMatchObject({ ...refused, status: 0 })
      const nextAt = rows[0]!.next_attempt_at!
      // The last attempt is at the end of the hour, not after it.
      expect(nextAt).toBeLessThanOrEqual(end)
      if (nextAt === end) break
      await fixture.clock.advance(nextAt - fixture.clock.now())
      await outbox.drain()
    }
    const before = digests.length
    await fixture.clock.advance(end - 1 - fixture.clock.now())
    await outbox.drain()
    expect([digests.length, new Set(await statuses())]).toEqual([before, new Set([0])])
    await fixture.clock.advance(1)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([0, before + 1])
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ ...refused, status: 2, next_attempt_at: null })
  })

  it('that is rejected fails each of them, and a manual retry sends one alone', async () => {
    await addCrowd()
    let isRejecting = true
    const { outbox, got, digests } = open(() =>
      isRejecting ? { kind: 'rejected', status: 404, error: 'no such hook' } : DELIVERED,
    )
    await outbox.drain()
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ status: 2, last_status: 404, last_error: 'no such hook', digest_id: null })
    isRejecting = false
    await fixture.clock.advance(MINUTE)
    await retryDelivery(fixture, fixture.tenant(), (await fixture.deliveries())[3]!.id)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([1, 1])
  })

  it('is left by what is sent again alone', async () => {
    await addCrowd()
    const { outbox, got } = open()
    await outbox.drain()
    const [row] = await fixture.deliveries()
    expect(row!.digest_id).not.toBeNull()
    await fixture.clock.advance(MINUTE)
    await retryDelivery(fixture, fixture.tenant(), row!.id)
    await outbox.drain()
    expect(got).toHaveLength(1)
    expect((await fixture.deliveries())[0]).toMatchObject({ id: row!.id, status: 1, attempts: 2, digest_id: null })
  })

  it('is sent again by another replica after a crash between sending and storing', async () => {
    await addCrowd()
    const { send, digests } = createDigestReceiver()
    const { database, clock } = fixture
    const dying: typeof database = {
      ...database,
      query: (statement, values) =>
        typeof statement === 'object' && statement.name === 'finish_attempts'
          ? Promise.reject(new Error('killed'))
          : database.query(statement, values),
    }
    await expect(fixture.createOutbox(send, { database: dying }).drain()).rejects.toThrow('killed')
    expect(digests).toHaveLength(1)
    const other = fixture.createOutbox(send)
    await clock.advance(CLAIM_MS - 1)
    await other.drain()
    expect(digests).toHaveLength(1)
    await clock.advance(1)
    await other.drain()
    expect(digests.map(({ digest }) => digest.events)).toEqual([CROWD, CROWD])
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ status: 1, attempts: 2, digest_id: digests[1]!.digest.id })
  })
})

describe('a digest that is refused as a message', () => {
  const REFUSED: Outcome = { kind: 'rejected', status: 413, error: 'too large', isOfMessage: true }
  /** Takes no digest; `answer` decides about single messages. */
  const refusing = (answer: () => Outcome | Promise<Outcome> = () => DELIVERED) =>
    open((attempt) => ('digest' in attempt ? REFUSED : answer()))

  it('fails no delivery: each is sent alone, at once', async () => {
    await addCrowd()
    const { outbox, got, digests } = refusing()
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([CROWD, 1])
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ status: 1, attempts: 2, last_status: 200, last_error: null, digest_id: null })
    expect(outbox.reports[0]).toMatchObject({ result: 'retried', count: CROWD, outcome: REFUSED })
  })

  it('is not one that was refused alone: that fails, and the next crowd gets a digest', async () => {
    const { outbox, got, digests } = open(() => REFUSED)
    const id = await fixture.addChannel()
    await fixture.addEvents(id, keysFrom(1, 1))
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([1, 0])
    expect(await fixture.deliveries()).toMatchObject([{ status: 2, attempts: 1, last_error: 'too large' }])
    await fixture.addEvents(id, keysFrom(2, CROWD))
    await once(outbox)
    expect(digests).toHaveLength(1)
    await outbox.stop()
  })

  it('says so in its deliveries until these are sent', async () => {
    await addCrowd()
    const { send } = refusing()
    const one = fixture.createOutbox(send)
    await once(one)
    await one.stop()
    const due = { status: 0, attempts: 1, claimed_until: null, next_attempt_at: fixture.clock.now(), digest_id: null }
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ ...due, last_status: 413, last_error: 'too large' })
  })

  it('loses none when a replica dies before it has stored that, and another one later', async () => {
    await addCrowd()
    const { send, got } = refusing()
    const { database, clock } = fixture
    let writes = 0
    const dyingAt = (write: number): typeof database => ({
      ...database,
      query: (statement, values) =>
        typeof statement === 'object' && statement.name === 'finish_attempts' && ++writes === write
          ? Promise.reject(new Error('killed'))
          : database.query(statement, values),
    })
    await expect(fixture.createOutbox(send, { database: dyingAt(1) }).drain()).rejects.toThrow('killed')
    await clock.advance(CLAIM_MS)
    await expect(fixture.createOutbox(send, { database: dyingAt(3) }).drain()).rejects.toThrow('killed')
    await clock.advance(CLAIM_MS)
    await fixture.createOutbox(send).drain()
    expect(new Set(got.map(({ event }) => event.id)).size).toBe(CROWD)
    expect(await statuses()).toEqual(Array(CROWD).fill(1))
  })

  it('leaves each of them to the usual rules, without another digest', async () => {
    await addCrowd(2 * CROWD)
    let answer = AWAY
    const { outbox, got, digests } = refusing(() => answer)
    await outbox.drain()
    await fixture.database.query('update deliveries set next_attempt_at = $1::timestamptz where status = 0', [
      new Date(fixture.clock.now() + MINUTE).toISOString(),
    ])
    await fixture.clock.advance(MINUTE)
    await outbox.drain()
    answer = { kind: 'rejected', status: 404, error: 'no such hook' }
    await fixture.clock.advance(MINUTE)
    await outbox.drain()
    expect(digests).toHaveLength(1)
    expect(got).toHaveLength(6 * CROWD)
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ status: 2, attempts: 4, last_error: 'no such hook', digest_id: null })
  })

  it('gives those at their end one attempt alone', async () => {
    await addCrowd()
    await fixture.database.query('update deliveries set give_up_at = created_at, attempts = 5')
    const { send, got } = refusing(() => AWAY)
    await fixture.createOutbox(send).drain()
    expect(got).toHaveLength(CROWD)
    expect(await statuses()).toEqual(Array(CROWD).fill(2))
  })

  it('floods no receiver: as many are in flight as of a webhook', async () => {
    await addCrowd(5 * CROWD)
    let [running, most] = [0, 0]
    const { send, got } = refusing(async () => {
      running += 1
      most = Math.max(most, running)
      await settle()
      running -= 1
      return DELIVERED
    })
    await fixture.createOutbox(send).drain()
    expect(got).toHaveLength(5 * CROWD)
    expect(most).toBeLessThanOrEqual(MAX_SLOTS)
  })

  it('is sent once by each of two replicas, and then all deliveries in the order of each check', async () => {
    for (const type of ['check.down', 'check.up', 'check.down'] as const) {
      await fixture.addEvents(channel, [1], type)
      await fixture.clock.advance(1)
    }
    await addCrowd(3 * CROWD, 100)
    let [running, most] = [0, 0]
    const { send, got, digests } = createDigestReceiver(async (attempt) => {
      if ('digest' in attempt) return REFUSED
      if (attempt.checkKey !== 1) return DELIVERED
      running += 1
      most = Math.max(most, running)
      await settle()
      running -= 1
      return DELIVERED
    })
    const [one, two] = [fixture.createOutbox(send), fixture.createOutbox(send)]
    await once(one)
    await once(one)
    // One sends singles already; the other one takes the next turn.
    await fixture.clock.advance(DIGEST.pauseMs)
    await once(two)
    await Promise.all([one.drain(), two.drain()])
    for (const outbox of [one, two]) await outbox.drain()
    expect(digests).toHaveLength(2)
    const ofCheck = got.filter(({ checkKey }) => checkKey === 1)
    expect(ofCheck.map(({ event }) => event.type)).toEqual(['check.down', 'check.up', 'check.down'])
    expect(most).toBe(1)
    expect(new Set(await statuses())).toEqual(new Set([1]))
  })

  it('leaves its channel without digests for ten minutes, and no other channel', async () => {
    const other = await fixture.addChannel({ name: 'Other' })
    let isRefusing = true
    const { send, got, digests } = createDigestReceiver((attempt) =>
      'digest' in attempt && isRefusing ? REFUSED : DELIVERED,
    )
    const outbox = fixture.createOutbox(send)
    await addCrowd()
    await outbox.drain()
    isRefusing = false
    await fixture.clock.advance(10 * MINUTE - 1)
    await addCrowd(CROWD, 100)
    await fixture.addEvents(other, keysFrom(100, CROWD))
    await outbox.drain()
    expect(got.map((attempt) => attempt.channel.name)).toEqual(Array(2 * CROWD).fill('Team'))
    expect(digests.map((attempt) => attempt.channel.name)).toEqual(['Team', 'Other'])
    await fixture.clock.advance(1)
    await addCrowd(CROWD, 200)
    await outbox.drain()
    expect(got).toHaveLength(2 * CROWD)
    expect(digests.map((attempt) => attempt.channel.name)).toEqual(['Team', 'Other', 'Team'])
    expect(await statuses()).toEqual(Array(4 * CROWD).fill(1))
  })
})

describe('two replicas', () => {
  it('put each delivery into one digest, and do not share a crowd', async () => {
    await addCrowd(3 * CROWD)
    const { send, got, digests } = createDigestReceiver(async () => {
      await settle()
      return DELIVERED
    })
    const outboxes = [fixture.createOutbox(send), fixture.createOutbox(send), fixture.createOutbox(send)]
    await Promise.all(outboxes.map((outbox) => outbox.drain()))
    for (const outbox of outboxes) await outbox.drain()
    expect(got).toEqual([])
    expect(digests.map(({ digest }) => digest.events)).toEqual([3 * CROWD])
    for (const row of await fixture.deliveries()) expect(row).toMatchObject({ status: 1, attempts: 1 })
  })

  it('do not claim what a digest of the other one is still sending', async () => {
    await addCrowd()
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    const { send, digests } = createDigestReceiver(async () => {
      await finished
      return DELIVERED
    })
    const [one, two] = [fixture.createOutbox(send), fixture.createOutbox(send)]
    await once(one)
    await fixture.clock.advance(DIGEST.pauseMs)
    await addCrowd(CROWD, 100)
    await once(two)
    expect(digests.map(({ digest }) => digest.events)).toEqual([CROWD, CROWD])
    finish()
    await one.stop()
    await two.stop()
    const ids = (await fixture.deliveries()).map((row) => row.digest_id)
    expect(new Set(ids)).toEqual(new Set(digests.map(({ digest }) => digest.id)))
  })
})

describe('the order of a check', () => {
  const flap = async (key: number) => {
    for (const type of ['check.down', 'check.up', 'check.down', 'check.up'] as const) {
      await fixture.addEvents(channel, [key], type)
      await fixture.clock.advance(1)
    }
  }
  const ofCheck = async (key: number) => (await fixture.deliveries()).filter((row) => row.check_key === key)

  it('is kept in a digest: it has the newest event, and all are delivered at once', async () => {
    await flap(1)
    await addCrowd(CROWD, 100)
    const { send, got, digests } = createDigestReceiver()
    await fixture.createOutbox(send).drain()
    expect([got.length, digests.length]).toEqual([0, 1])
    const { digest } = digests[0]!
    expect(digest).toMatchObject({
      events: CROWD + 4,
      counts: [
        { type: 'check.down', checks: CROWD },
        { type: 'check.up', checks: 1 },
      ],
    })
    expect(digest.named.filter(({ check }) => check.name === 'Job 1').map(({ type }) => type)).toEqual(['check.up'])
    for (const row of await ofCheck(1)) expect(row).toMatchObject({ status: 1, digest_id: digest.id, attempts: 1 })
  })

  it('is kept when the digest fails: all of them wait, and go together', async () => {
    await flap(1)
    await addCrowd(CROWD, 100)
    const { outbox, got, digests } = open(() => (digests.length === 1 ? AWAY : DELIVERED))
    await outbox.drain()
    expect((await ofCheck(1)).map(({ status, attempts }) => [status, attempts])).toEqual(Array(4).fill([0, 1]))
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect([got.length, digests.length]).toEqual([0, 2])
    expect(digests[1]!.digest.events).toBe(CROWD + 4)
  })

  it('is kept against a delivery that waits for its next attempt: what is behind it is postponed', async () => {
    await flap(1)
    await addCrowd(CROWD, 100)
    const [head] = await ofCheck(1)
    await fixture.database.query(
      `update deliveries set next_attempt_at = next_attempt_at + interval '1 hour' where id = $1`,
      [head!.id],
    )
    const { outbox, got, digests } = open()
    await outbox.drain()
    expect(digests[0]!.digest.events).toBe(CROWD)
    expect((await ofCheck(1)).map(({ status, attempts }) => [status, attempts])).toEqual(Array(4).fill([0, 0]))
    await fixture.clock.advance(2 * HOUR)
    await outbox.drain()
    expect(got.map(({ event }) => event.type)).toEqual(['check.down', 'check.up', 'check.down', 'check.up'])
  })

  it('is kept against one that is being sent alone', async () => {
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    const { send, got, digests } = createDigestReceiver(async (attempt) => {
      if ('event' in attempt) await finished
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send)
    await fixture.addEvents(channel, [1])
    await once(outbox)
    await fixture.clock.advance(1)
    await fixture.addEvents(channel, [1], 'check.up')
    await addCrowd(CROWD, 100)
    await once(outbox)
    expect(got).toHaveLength(1)
    expect(digests[0]!.digest.named.map(({ check }) => check.name)).not.toContain('Job 1')
    finish()
    await outbox.drain()
    await fixture.clock.advance(MINUTE)
    await outbox.drain()
    expect(got.map(({ event }) => event.type)).toEqual(['check.down', 'check.up'])
  })
})

describe('what does not belong in a digest', () => {
  it('a test of the channel is sent alone and at once, also while a crowd waits', async () => {
    const { outbox, got, digests } = open()
    await addCrowd()
    await sendTest()
    await outbox.drain()
    expect(digests.map(({ digest }) => digest.events)).toEqual([CROWD])
    expect(got.map(({ event }) => event.type)).toEqual(['channel.test'])
    await addCrowd(CROWD, 100)
    await sendTest()
    await outbox.drain()
    expect(digests).toHaveLength(1)
    expect(got.map(({ event }) => event.type)).toEqual(['channel.test', 'channel.test'])
    expect((await fixture.deliveries()).filter(({ type }) => type === 'channel.test')).toMatchObject([
      { status: 1, digest_id: null },
      { status: 1, digest_id: null },
    ])
  })

  it('a test is sent before the events that wait for a slot of the channel', async () => {
    await addCrowd(DIGEST.crowd)
    await fixture.clock.advance(1)
    await sendTest()
    const { send, got } = createReceiver()
    const outbox = fixture.createOutbox(send)
    await once(outbox)
    expect(got.length).toBeLessThan(DIGEST.crowd)
    expect(got.map(({ event }) => event.type)).toContain('channel.test')
    await outbox.drain()
    expect(got).toHaveLength(DIGEST.crowd + 1)
  })

  it('a test waits for the digest when the receiver has one slot only, and is sent after it, alone', async () => {
    await addCrowd()
    const { outbox, got, digests } = open(() => (digests.length < 2 ? AWAY : DELIVERED))
    await outbox.drain()
    await fixture.clock.advance(DIGEST.windowMs + 1)
    await sendTest()
    await outbox.drain()
    expect(digests.map(({ digest }) => digest.events)).toEqual([CROWD, CROWD])
    expect(got.map(({ event }) => event.type)).toEqual(['channel.test'])
  })

  it('a test is no part of a crowd', async () => {
    await addCrowd(DIGEST.crowd)
    await sendTest()
    const { send, got, digests } = createDigestReceiver()
    await fixture.createOutbox(send).drain()
    expect([got.length, digests.length]).toEqual([CROWD, 0])
  })

  it('nothing is sent to a channel that was muted after the events', async () => {
    await addCrowd()
    await fixture.database.query('update channels set muted = true')
    const { send, got, digests } = createDigestReceiver()
    await fixture.createOutbox(send).drain()
    expect([got.length, digests.length]).toEqual([0, 0])
    for (const row of await fixture.deliveries())
      expect(row).toMatchObject({ status: 2, last_error: 'the channel was muted' })
  })

  it('a channel that is removed while its digest is on its way spoils nothing', async () => {
    const other = await fixture.addChannel({ name: 'Other' })
    await addCrowd()
    await fixture.addEvents(other, keysFrom(1, CROWD))
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    const { send, digests } = createDigestReceiver(async () => {
      await finished
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send)
    await once(outbox)
    expect(digests).toHaveLength(2)
    await fixture.database.query('delete from channels where id = $1', [channel])
    finish()
    await outbox.stop()
    await outbox.drain()
    const rows = (await fixture.deliveries()).filter((row) => row.channel_id === other)
    expect(rows.map(({ status }) => status)).toEqual(Array(CROWD).fill(1))
  })

  it('a turn that another transaction holds up is skipped, and delays no other channel', async () => {
    const other = await fixture.addChannel({ name: 'Other' })
    await addCrowd()
    await fixture.addEvents(other, [1])
    const { outbox, got, digests } = open()
    await fixture.database.transaction(async (tx) => {
      await tx.query('select from channels where id = $1 for update', [channel])
      await outbox.drain()
      expect([got.length, digests.length]).toEqual([1, 0])
    })
    await outbox.drain()
    expect(digests).toHaveLength(1)
  })
})
