import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { retryDelivery } from '../../../src/channels/retry-delivery.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import type { Attempt, Outcome } from '../../../src/delivery/outcome.ts'
import { MOST_SLOTS } from '../../../src/delivery/slots.ts'
import { CLAIM_MS, PATIENCE_MS } from '../../../src/domain/retry.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import {
  claimDeliveries,
  finishAttempts,
  listDueChannels,
  oldestPendingSeconds,
} from '../../../src/store/outbox/deliveries.ts'
import { instantArray, uuidArray } from '../../../src/store/postgres/binary-arrays.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { until } from '../../support/until.ts'
import { AWAY, createFixture, createReceiver, DELIVERED, type Fixture } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.close())
beforeEach(() => fixture.clear())

const FAILED = { type: 'fail', exitCode: 3 } as const
const fail = (check: CheckRecord) => fixture.ping(check, FAILED)
const recover = (check: CheckRecord) => fixture.ping(check)
const reasonOf = ({ event }: Attempt) => (event.type === 'channel.test' ? '' : event.facts.reason)

describe('a delivery', () => {
  it('goes out once, and says what became of it', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    const outbox = fixture.createOutbox(send)
    await outbox.drain()
    await outbox.drain()
    expect(got).toHaveLength(1)
    expect(got[0]!.channel).toMatchObject({
      name: 'Team',
      isTrusted: false,
      settings: { url: 'https://hooks.example.com/x' },
    })
    expect(await fixture.deliveries()).toMatchObject([
      {
        status: 1,
        attempts: 1,
        next_attempt_at: null,
        last_status: 200,
        last_error: null,
        delivered_at: fixture.clock.now(),
      },
    ])
    expect(outbox.reports).toMatchObject([{ result: 'delivered', nextAttemptAt: null }])
  })

  it('does not have the settings of its channel opened for itself: those of a turn share them', async () => {
    await fixture.addChannel()
    for (let n = 0; n < 3; n += 1) await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    const open = vi.fn(fixture.sealer.open)
    await fixture.createOutbox(send, { sealer: { ...fixture.sealer, open } }).drain()
    expect(got).toHaveLength(3)
    expect(open).toHaveBeenCalledTimes(1)
  })

  it('that was not taken is tried again, with the same event, after longer and longer waits, for a day', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const { send, got } = createReceiver(() => AWAY)
    const outbox = fixture.createOutbox(send)
    const startedAt = fixture.clock.now()
    const waits: number[] = []
    await outbox.drain()
    for (;;) {
      const [row] = await fixture.deliveries()
      if (row!.status !== 0) break
      waits.push(row!.next_attempt_at! - fixture.clock.now())
      // A millisecond before it is due nothing goes out.
      await fixture.clock.advance(row!.next_attempt_at! - fixture.clock.now() - 1)
      const before = got.length
      await outbox.drain()
      expect(got).toHaveLength(before)
      await fixture.clock.advance(1)
      await outbox.drain()
    }
    const hourly = waits.slice(6)
    expect(waits.slice(0, 6)).toEqual([5 * SECOND, 15 * SECOND, MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE])
    expect(hourly.slice(0, -1).every((wait) => wait === HOUR)).toBe(true)
    expect(fixture.clock.now() - startedAt).toBe(PATIENCE_MS)
    expect(new Set(got.map(({ event }) => event.id)).size).toBe(1)
    expect(await fixture.deliveries()).toMatchObject([
      { status: 2, attempts: got.length, next_attempt_at: null, last_status: null, last_error: 'connection refused' },
    ])
    expect(outbox.reports.map(({ result }) => result)).toEqual([...waits.map(() => 'retried'), 'failed'])
  })

  it('that is refused for good is given up at once', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const outbox = fixture.createOutbox(async () => ({ kind: 'refused', status: 410, error: 'gone' }))
    await outbox.drain()
    expect(await fixture.deliveries()).toMatchObject([{ status: 2, attempts: 1, last_status: 410, last_error: 'gone' }])
    expect(outbox.reports).toMatchObject([{ result: 'failed' }])
  })

  it('waits as long as the receiver asks', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    await fixture
      .createOutbox(async () => ({ kind: 'retry', status: 429, error: 'slow down', retryAfterMs: 90 * MINUTE }))
      .drain()
    const [row] = await fixture.deliveries()
    expect(row!.next_attempt_at! - fixture.clock.now()).toBe(90 * MINUTE)
  })

  it('survives a fault of a sender, and text that PostgreSQL would not take', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    let outcome: () => Outcome = () => {
      throw new TypeError('a fault of ours')
    }
    const outbox = fixture.createOutbox(async () => outcome())
    await outbox.drain()
    expect(outbox.faults).toHaveLength(1)
    expect(await fixture.deliveries()).toMatchObject([
      { status: 0, last_error: 'a fault of the service itself; its log says more' },
    ])
    outcome = () => ({ kind: 'retry', status: 500, error: `\0${'😀'.repeat(400)}` })
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect((await fixture.deliveries())[0]!.last_error).toMatch(/^(😀)+\uFFFD?$/u)
  })

  it('does not wait for a sender that never ends', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    let isAborted = false
    const hang = (_attempt: Attempt, signal: AbortSignal) =>
      new Promise<Outcome>(() => signal.addEventListener('abort', () => (isAborted = true)))
    await fixture.createOutbox(hang, { timeoutMs: 50 }).drain()
    expect(isAborted).toBe(true)
    expect(await fixture.deliveries()).toMatchObject([
      { status: 0, attempts: 1, last_error: 'no answer within 0.05 s' },
    ])
  })

  it('whose event is lost, or whose channel cannot be opened, says so', async () => {
    await fixture.addChannel()
    const lost = await fixture.addCheck()
    await fail(lost)
    await fixture.database.query('delete from events')
    const foreign = await fixture.addChannel()
    const { send, got } = createReceiver()
    await fixture.createOutbox(send).drain()
    expect(await fixture.deliveries()).toMatchObject([
      { status: 2, last_error: 'what it should say is no longer stored' },
    ])

    await recover(lost)
    await fixture.createOutbox(send, { sealer: createSealer(Buffer.alloc(32, 8), []) }).drain()
    const rows = (await fixture.deliveries()).filter((row) => row.channel_id === foreign)
    expect(rows).toMatchObject([{ status: 0, last_error: expect.stringContaining('PREVIOUS_SECRET_KEYS') }])
    expect(got).toEqual([])
  })

  it('to the Alertmanager of the installation is trusted, and waits where its address is not known', async () => {
    await setInstallationChannel({ database: fixture.database, clock: fixture.clock }, true)
    await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    await fixture.createOutbox(send).drain()
    expect(await fixture.deliveries()).toMatchObject([{ status: 0, attempts: 0 }])
    await fixture.clock.advance(MINUTE)
    const error = '10.0.0.1:9093 refuses connections'
    const away = createReceiver(() => ({ kind: 'retry', status: null, error }))
    const outbox = fixture.createOutbox(away.send, { installationUrls: ['http://10.0.0.1:9093'] })
    await outbox.drain()
    // Where it is stays in the log.
    expect(outbox.reports).toMatchObject([{ outcome: { error } }])
    expect((await fixture.deliveries())[0]!.last_error).toMatch(/^the Alertmanager of the installation did not take it/)
    await fixture.clock.advance(MINUTE)
    await fixture.createOutbox(send, { installationUrls: ['http://10.0.0.1:9093'] }).drain()
    expect(got[0]!.channel).toMatchObject({
      isTrusted: true,
      settings: { kind: 'alertmanager', urls: ['http://10.0.0.1:9093'] },
    })
  })
})

it('of a muted channel that slipped in is not sent, a test is', async () => {
  const channel = await fixture.addChannel()
  await fail(await fixture.addCheck())
  await fixture.database.query('update channels set muted = true')
  const { send, got } = createReceiver()
  await fixture.createOutbox(send).drain()
  expect(got).toEqual([])
  expect(await fixture.deliveries()).toMatchObject([
    { channel_id: channel, status: 2, last_error: 'the channel was muted' },
  ])
})

describe('the order of a check', () => {
  it('is kept when the receiver was away: both come, oldest first', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    let isAway = true
    const { send, got } = createReceiver(() => (isAway ? AWAY : DELIVERED))
    const outbox = fixture.createOutbox(send)
    await fail(check)
    await outbox.drain()
    await recover(check)
    await outbox.drain()
    await fail(check)
    await outbox.drain()
    expect(new Set(got.map(({ event }) => event.type))).toEqual(new Set(['check.down']))
    isAway = false
    got.length = 0
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect(got.map(({ event }) => event.type)).toEqual(['check.down', 'check.up', 'check.down'])
  })

  it('lets the next one go when the one before it is given up', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    await fail(check)
    await recover(check)
    const { send, types } = createReceiver(({ event }) =>
      event.type === 'check.down' ? { kind: 'refused', status: 400, error: 'no' } : DELIVERED,
    )
    await fixture.createOutbox(send).drain()
    expect(types()).toEqual(['check.down', 'check.up'])
    expect((await fixture.deliveries()).map(({ status }) => status)).toEqual([2, 1])
  })

  it('holds nobody up but that check and that channel', async () => {
    await fixture.addChannel({ name: 'Well' })
    await fixture.addChannel({ name: 'Picky' })
    const [one, two] = [await fixture.addCheck(), await fixture.addCheck()]
    for (const check of [one, two]) {
      await fail(check)
      await recover(check)
    }
    const { send, got } = createReceiver(({ channel, checkKey }) =>
      channel.name === 'Picky' && checkKey === one.key ? AWAY : DELIVERED,
    )
    await fixture.createOutbox(send).drain()
    const seen = (name: string, { key }: CheckRecord) =>
      got.filter(({ channel, checkKey }) => channel.name === name && checkKey === key).map(({ event }) => event.type)
    expect(seen('Well', one)).toEqual(['check.down', 'check.up'])
    expect(seen('Well', two)).toEqual(['check.down', 'check.up'])
    expect(seen('Picky', two)).toEqual(['check.down', 'check.up'])
    expect(seen('Picky', one)).toEqual(['check.down'])
  })

  it('is kept by two replicas under load, each event once', async () => {
    await fixture.addChannel()
    const checks: CheckRecord[] = []
    for (let i = 0; i < 20; i += 1) checks.push(await fixture.addCheck())
    const { send, got } = createReceiver(async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      return DELIVERED
    })
    const outboxes = [fixture.createOutbox(send), fixture.createOutbox(send)]
    for (let round = 0; round < 5; round += 1)
      for (const check of checks) await (round % 2 === 0 ? fail : recover)(check)
    await Promise.all(outboxes.map((outbox) => outbox.drain()))
    // One of them may have seen nothing to do while the other was at it.
    for (const outbox of outboxes) await outbox.drain()
    expect(got).toHaveLength(100)
    for (const { key } of checks) {
      const own = got.filter(({ checkKey }) => checkKey === key)
      expect(own.map(reasonOf)).toEqual(['failed', 'recovered', 'failed', 'recovered', 'failed'])
    }
  })
})

describe('the look for due channels', () => {
  // A plan lives as long as its connection, and is often made while nothing is pending.
  it('reads one delivery a channel, also by a plan from when there was none', async () => {
    const database = createDatabase({ url: fixture.url, name: 'look', connections: 1, looksUp: true })
    try {
      for (let look = 0; look < 10; look += 1) await listDueChannels(database, fixture.clock.now())
      const channels = [await fixture.addChannel(), await fixture.addChannel()]
      const { organizationId } = fixture.tenant()
      await database.query(
        `insert into deliveries (event_id, channel_id, id, check_key, organization_id, type, next_attempt_at, give_up_at, created_at)
         select gen_random_uuid(), c, gen_random_uuid(), n, $2, 'check.down', ($3::timestamptz[])[1], ($3::timestamptz[])[1], ($3::timestamptz[])[1]
         from unnest($1::uuid[]) c, generate_series(1, 500) n`,
        [uuidArray(channels), organizationId, instantArray([fixture.clock.now()])],
      )
      expect((await listDueChannels(database, fixture.clock.now())).map(({ id }) => id).sort()).toEqual(channels.sort())
      const { rows } = await database.query<{ 'QUERY PLAN': Plan[] }>(
        `explain (analyze, format json) execute list_due_channels ('{2100-01-01}')`,
      )
      const scans = scansOf(rows[0]!['QUERY PLAN'].map((entry) => entry.Plan!)).filter(
        (scan) => scan['Relation Name'] === 'deliveries',
      )
      expect(scans.length).toBeGreaterThan(0)
      for (const scan of scans) expect(scan['Actual Rows']! * scan['Actual Loops']!).toBeLessThanOrEqual(2)
    } finally {
      await database.close()
    }
  })

  interface Plan {
    readonly Plan?: Plan
    readonly Plans?: Plan[]
    readonly 'Relation Name'?: string
    readonly 'Actual Rows'?: number
    readonly 'Actual Loops'?: number
  }
  const scansOf = (plans: readonly Plan[]): Plan[] => plans.flatMap((plan) => [plan, ...scansOf(plan.Plans ?? [])])
})

describe('a claim', () => {
  const claim = async (free = 10) => {
    const now = fixture.clock.now()
    const rows = await fixture.deliveries()
    const wanted = [...new Set(rows.map((row) => row.channel_id))].map((channelId) => ({ channelId, free }))
    return claimDeliveries(fixture.database, wanted, { now, until: now + CLAIM_MS })
  }
  const end = (delivery: Awaited<ReturnType<typeof claim>>['claimed'][number], status: 'delivered' | 'failed') =>
    finishAttempts(
      fixture.database,
      [{ delivery, status, nextAttemptAt: null, lastStatus: 200, lastError: null }],
      fixture.clock.now(),
    )

  it('runs out when its holder died, and not before', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    expect((await claim()).claimed).toHaveLength(1)
    await fixture.clock.advance(CLAIM_MS - 1)
    expect((await claim()).claimed).toEqual([])
    await fixture.clock.advance(1)
    expect((await claim()).claimed).toMatchObject([{ attempts: 2, attempt: 2 }])
  })

  it('changes no index: none knows who is at a delivery', async () => {
    const { rows } = await fixture.database.query<{ definition: string }>(
      `select indexdef as definition from pg_indexes where tablename = 'deliveries'`,
    )
    expect(rows.length).toBeGreaterThan(0)
    for (const { definition } of rows) expect(definition).not.toMatch(/claimed_until|attempts/)
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const [before] = await fixture.deliveries()
    await claim()
    const claimed = { attempts: 1, claimed_until: fixture.clock.now() + CLAIM_MS }
    expect(await fixture.deliveries()).toEqual([{ ...before, ...claimed }])
  })

  it('is over with its end, however long the wait for the next attempt is', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const [only] = (await claim()).claimed
    const end = { delivery: only!, status: 'pending', lastStatus: 503, lastError: 'away' } as const
    const nextAttemptAt = fixture.clock.now() + 5 * SECOND
    await finishAttempts(fixture.database, [{ ...end, nextAttemptAt }], fixture.clock.now())
    await fixture.clock.advance(5 * SECOND - 1)
    expect((await claim()).claimed).toEqual([])
    await fixture.clock.advance(1)
    expect((await claim()).claimed).toHaveLength(1)
  })

  it('that ran out counts no failure any more, while a success always counts', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const [first] = (await claim()).claimed
    await fixture.clock.advance(CLAIM_MS)
    const [second] = (await claim()).claimed
    await end(first!, 'failed')
    expect((await fixture.deliveries())[0]).toMatchObject({ status: 0 })
    await end(first!, 'delivered')
    await end(second!, 'failed')
    expect((await fixture.deliveries())[0]).toMatchObject({ status: 1, last_status: 200 })
  })

  it('that succeeded counts also when the delivery was given up meanwhile', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const [only] = (await claim()).claimed
    await fixture.database.query(
      `update deliveries set status = 2, next_attempt_at = null, last_error = 'the channel was muted'`,
    )
    await end(only!, 'delivered')
    expect((await fixture.deliveries())[0]).toMatchObject({ status: 1, last_error: null })
  })

  it('takes no delivery that waits behind another, and moves it to that one', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    await fail(check)
    await recover(check)
    const { claimed, moved } = await claim()
    expect(claimed).toHaveLength(1)
    expect(moved).toBe(1)
    const [, younger] = await fixture.deliveries()
    expect(younger).toMatchObject({ attempts: 0, next_attempt_at: fixture.clock.now() + CLAIM_MS })
    // Nothing is due now, so nothing is looked at again and again behind a dead receiver.
    expect(await claim()).toEqual({ claimed: [], moved: 0 })
    await end(claimed[0]!, 'delivered')
    expect((await fixture.deliveries())[1]!.next_attempt_at).toBe(fixture.clock.now())
  })

  it('brings the next one back, also when somebody moves it at that very moment', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    await fail(check)
    const [first] = (await claim()).claimed
    await recover(check)
    const { database, clock } = fixture
    const younger = async () => (await fixture.deliveries())[1]!
    const { event_id: id } = await younger()
    let ending = Promise.resolve()
    await database.transaction(async (tx) => {
      await tx.query('select from deliveries where event_id = $1 for no key update', [id])
      ending = end(first!, 'delivered')
      await until(async () => (await database.query('select from pg_locks where not granted')).rowCount > 0)
      await tx.query(`update deliveries set next_attempt_at = next_attempt_at + interval '30 s' where event_id = $1`, [
        id,
      ])
    })
    await ending
    expect(await younger()).toMatchObject({ status: 0, next_attempt_at: clock.now() })
  })

  it('takes as many as are free, longest due first', async () => {
    await fixture.addChannel()
    for (let i = 0; i < 5; i += 1) await fail(await fixture.addCheck())
    const oldest = (await fixture.deliveries()).slice(0, 2).map((row) => row.event_id)
    const { claimed } = await claim(2)
    expect(claimed.map(({ eventId }) => eventId)).toEqual(oldest)
    expect((await claim(10)).claimed).toHaveLength(3)
  })

  it('that is nearly over is not acted upon', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    const { database, clock } = fixture
    const slow: typeof database = {
      ...database,
      // Only claims need a session.
      async session(use) {
        const answer = await database.session(use)
        await clock.advance(CLAIM_MS)
        return answer
      },
    }
    const outbox = fixture.createOutbox(send, { database: slow })
    await outbox.run(AbortSignal.timeout(20))
    expect(got).toEqual([])
  })
})

it('of a check is not sent twice at once since an older one was asked for again', async () => {
  await fixture.addChannel()
  const check = await fixture.addCheck()
  await fail(check)
  await recover(check)
  const onTheWay = new Map<string, number>()
  let most = 0
  const { promise: over, resolve: endWait } = Promise.withResolvers<void>()
  let isRefused = true
  const { send, types } = createReceiver(async ({ event }) => {
    if (event.type === 'check.down') return isRefused ? { kind: 'refused', status: 400, error: 'no' } : DELIVERED
    onTheWay.set(event.id, (onTheWay.get(event.id) ?? 0) + 1)
    most = Math.max(most, onTheWay.get(event.id)!)
    await over
    return DELIVERED
  })
  const [one, two] = [fixture.createOutbox(send), fixture.createOutbox(send)]
  const turn = (outbox: typeof one) => outbox.run(AbortSignal.timeout(20))
  while (!types().includes('check.up')) await turn(one)
  isRefused = false
  const [down] = await fixture.deliveries()
  await retryDelivery({ ...fixture, sealer: fixture.sealer }, fixture.tenant(), down!.id)
  for (let i = 0; i < 6; i += 1) await turn(two)
  endWait()
  await one.stop()
  await two.stop()
  expect(most).toBe(1)
  expect(types()).toEqual(['check.down', 'check.up', 'check.down'])
  expect((await fixture.deliveries()).map(({ status }) => status)).toEqual([1, 1])
})

describe('a dead receiver', () => {
  it('holds one connection, however much waits for it, and gets more when it answers', async () => {
    await fixture.addChannel({ name: 'Dead' })
    await fixture.addChannel({ name: 'Well' })
    for (let i = 0; i < 40; i += 1) await fail(await fixture.addCheck())
    let isDead = true
    let onTheWay = 0
    let most = 0
    const { send, got } = createReceiver(async ({ channel }) => {
      if (channel.name === 'Well') return DELIVERED
      onTheWay += 1
      most = Math.max(most, onTheWay)
      await new Promise((resolve) => setTimeout(resolve, 5))
      onTheWay -= 1
      return isDead ? AWAY : DELIVERED
    })
    const outbox = fixture.createOutbox(send)
    await outbox.drain()
    expect(got.filter(({ channel }) => channel.name === 'Well')).toHaveLength(40)
    most = 0
    await fixture.clock.advance(10 * SECOND)
    await outbox.drain()
    expect(most).toBe(1)
    isDead = false
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(MOST_SLOTS)
    expect((await fixture.deliveries()).every(({ status }) => status === 1)).toBe(true)
  })

  it('or many of them leave a first place to everybody', async () => {
    const { promise: over, resolve: endHang } = Promise.withResolvers<void>()
    const { send, got } = createReceiver(async ({ channel }) => {
      if (channel.name === 'Hung') await over
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send, { mostOnTheWay: 8 })
    const turn = () => outbox.run(AbortSignal.timeout(20))
    for (let i = 0; i < 3; i += 1) await fixture.addChannel({ name: 'Hung' })
    for (let i = 0; i < 5; i += 1) await fail(await fixture.addCheck())
    for (let i = 0; i < 4; i += 1) await turn()
    await fixture.addChannel({ name: 'Well' })
    await fail(await fixture.addCheck())
    for (let i = 0; i < 4; i += 1) await turn()
    expect(got.filter(({ channel }) => channel.name === 'Well')).toHaveLength(1)
    endHang()
    await outbox.stop()
  })

  it('that hangs delays no other channel', async () => {
    await fixture.addChannel({ name: 'Hung' })
    await fixture.addChannel({ name: 'Well' })
    const { promise: over, resolve: endHang } = Promise.withResolvers<void>()
    const { send, got } = createReceiver(async ({ channel }) => {
      if (channel.name === 'Hung') await over
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send)
    const signal = new AbortController().signal
    for (let i = 0; i < 30; i += 1) await fail(await fixture.addCheck())
    const wellGot = () => got.filter(({ channel }) => channel.name === 'Well').length
    for (let turns = 0; turns < 60 && wellGot() < 30; turns += 1)
      await outbox.run(AbortSignal.any([signal, AbortSignal.timeout(20)]))
    expect(wellGot()).toBe(30)
    endHang()
    await outbox.stop()
  })
})

describe('the outbox', () => {
  it('gives way before its first statement, before its claim, and after each send', async () => {
    await fixture.addChannel()
    for (let n = 0; n < 2; n += 1) await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    const asked: { claimed: number; sent: number }[] = []
    const giveWay = async () => {
      const rows = await fixture.deliveries()
      asked.push({ claimed: rows.filter((row) => row.attempts > 0).length, sent: got.length })
    }
    await fixture.createOutbox(send, { giveWay }).run(AbortSignal.abort())
    expect(asked).toEqual([
      { claimed: 0, sent: 0 },
      { claimed: 0, sent: 0 },
      { claimed: 2, sent: 1 },
      { claimed: 2, sent: 2 },
    ])
  })

  it('gives way for a tenth of a second in a turn and no longer, where others never rest', async () => {
    await fixture.addChannel()
    for (let n = 0; n < 4; n += 1) await fail(await fixture.addCheck())
    const { send, got } = createReceiver()
    let asked = 0
    const giveWay = async () => {
      asked += 1
      await fixture.clock.advance(50)
    }
    await fixture.createOutbox(send, { giveWay }).run(AbortSignal.abort())
    expect(got).toHaveLength(4)
    expect(asked).toBe(2)
  })

  it('writes what it knows when it can, after the database was away', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const { database } = fixture
    let isAway = false
    const flaky: typeof database = {
      ...database,
      query(statement, values) {
        if (isAway) return Promise.reject(new Error('the database is away'))
        return database.query(statement, values)
      },
    }
    const { send, got } = createReceiver(() => {
      isAway = true
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send, { database: flaky })
    await expect(outbox.drain()).rejects.toThrow('away')
    await expect(outbox.drain()).rejects.toThrow('away')
    expect(await fixture.deliveries()).toMatchObject([{ status: 0 }])
    isAway = false
    await outbox.drain()
    expect(await fixture.deliveries()).toMatchObject([{ status: 1 }])
    expect(got).toHaveLength(1)
  })

  it('stops by letting end what is on the way', async () => {
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    const { promise: answered, resolve: answer } = Promise.withResolvers<Outcome>()
    const outbox = fixture.createOutbox(() => answered)
    const running = outbox.run(AbortSignal.timeout(20))
    await running
    const stopping = outbox.stop()
    answer(DELIVERED)
    await stopping
    expect(await fixture.deliveries()).toMatchObject([{ status: 1 }])
  })

  it('knows how long the oldest has been waiting', async () => {
    const oldest = () => oldestPendingSeconds(fixture.database, fixture.clock.now())
    expect(await oldest()).toBe(0)
    await fixture.addChannel()
    await fail(await fixture.addCheck())
    await fixture.clock.advance(90 * SECOND)
    expect(await oldest()).toBe(90)
    await fixture.createOutbox(createReceiver().send).drain()
    expect(await oldest()).toBe(0)
  })
})
