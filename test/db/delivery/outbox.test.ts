import { beforeEach, describe, expect, it, vi } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { retryDelivery } from '../../../src/channels/retry-delivery.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import type { Attempt, Outcome } from '../../../src/delivery/outcome.ts'
import { MAX_SLOTS } from '../../../src/delivery/slots.ts'
import { CLAIM_MS } from '../../../src/domain/retry.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR, MINUTE, SECOND } from '../../support/builders.ts'
import { settle } from '../../support/until.ts'
import { AWAY, createReceiver, DELIVERED, useDelivery } from './fixture.ts'

const fixture = useDelivery()

const fail = (check: CheckRecord) => fixture.ping(check, { type: 'fail', exitCode: 3 })
const recover = (check: CheckRecord) => fixture.ping(check)
const failNew = async () => fail(await fixture.addCheck())
const reasonOf = ({ event }: Attempt) => (event.type === 'channel.test' ? '' : event.facts.reason)
const namesOf = (attempts: readonly Attempt[], name: string) => attempts.filter(({ channel }) => channel.name === name)

/** A receiver of the channels named `Hung` that responds when `finish` is called. The others respond at once. */
function aHangingReceiver() {
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
  const receiver = createReceiver(async ({ channel }) => {
    if (channel.name === 'Hung') await finished
    return DELIVERED
  })
  return { ...receiver, finish }
}

/** Polls, without a wait for running attempts, until `isDone` or 60 times. */
async function pollUntil(outbox: { run(signal: AbortSignal): Promise<unknown> }, isDone: () => boolean) {
  for (let polls = 0; polls < 60 && !isDone(); polls += 1) {
    await outbox.run(AbortSignal.abort())
    await settle()
  }
}

describe('a delivery', () => {
  beforeEach(() => fixture.addChannel())

  it('is sent once, and its outcome is stored', async () => {
    await failNew()
    const { send, got } = createReceiver()
    const outbox = fixture.createOutbox(send)
    await outbox.drain()
    await outbox.drain()
    expect(got).toHaveLength(1)
    const settings = { url: 'https://hooks.example.com/x' }
    expect(got[0]!.channel).toMatchObject({ name: 'Team', isTrusted: false, settings })
    const delivered = { status: 1, attempts: 1, next_attempt_at: null, last_status: 200, last_error: null }
    expect(await fixture.deliveries()).toMatchObject([{ ...delivered, delivered_at: fixture.clock.now() }])
    expect(outbox.reports).toMatchObject([{ result: 'delivered', nextAttemptAt: null }])
  })

  it('shares the unsealed settings of its channel with the others of a poll', async () => {
    for (let n = 0; n < 3; n += 1) await failNew()
    const { send, got } = createReceiver()
    const open = vi.fn(fixture.sealer.open)
    await fixture.createOutbox(send, { sealer: { ...fixture.sealer, open } }).drain()
    expect(got).toHaveLength(3)
    expect(open).toHaveBeenCalledTimes(1)
  })

  it('is retried when it is due, not before, with the same event, and failed in the end', async () => {
    await failNew()
    const { send, got } = createReceiver(() => (got.length === 2 ? { ...AWAY, retryAfterMs: 90 * MINUTE } : AWAY))
    const outbox = fixture.createOutbox(send)
    await outbox.drain()
    for (const waitMs of [5 * SECOND, 90 * MINUTE]) {
      const [row] = await fixture.deliveries()
      expect(row!.next_attempt_at! - fixture.clock.now()).toBe(waitMs)
      await fixture.clock.advance(waitMs - 1)
      const before = got.length
      await outbox.drain()
      expect(got).toHaveLength(before)
      await fixture.clock.advance(1)
      await outbox.drain()
    }
    await fixture.database.query('update deliveries set give_up_at = created_at, attempts = 5')
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect(new Set(got.map(({ event }) => event.id)).size).toBe(1)
    expect(await fixture.deliveries()).toMatchObject([
      { status: 2, attempts: 6, next_attempt_at: null, last_status: null, last_error: 'connection refused' },
    ])
    expect(outbox.reports.map(({ result }) => result)).toEqual(['retried', 'retried', 'retried', 'failed'])
  })

  it('that is rejected fails at once', async () => {
    await failNew()
    const outbox = fixture.createOutbox(async () => ({ kind: 'rejected', status: 410, error: 'gone' }))
    await outbox.drain()
    expect(await fixture.deliveries()).toMatchObject([{ status: 2, attempts: 1, last_status: 410, last_error: 'gone' }])
    expect(outbox.reports).toMatchObject([{ result: 'failed' }])
  })

  it('that is refused is tried again for an hour from the first refusal, and has the error meanwhile', async () => {
    await failNew()
    let outcome: Outcome = AWAY
    const outbox = fixture.createOutbox(async () => outcome)
    const startedAt = fixture.clock.now()
    const attempt = async () => {
      const [row] = await fixture.deliveries()
      if (row!.next_attempt_at !== null) await fixture.clock.advance(row!.next_attempt_at - fixture.clock.now())
      await outbox.drain()
      return (await fixture.deliveries())[0]!
    }
    // Two hours away, then its proxy is back before it.
    while (fixture.clock.now() < startedAt + 2 * HOUR) await attempt()
    outcome = { kind: 'retry', status: 404, error: 'no such route', isRefusal: true }
    expect(await attempt()).toMatchObject({ status: 0, last_status: 404, last_error: 'no such route' })
    const refusedAt = fixture.clock.now()
    outcome = AWAY
    await attempt()
    outcome = { kind: 'retry', status: 404, error: 'no such route', isRefusal: true }
    // The hour begins again, because the receiver did something else in between.
    expect(await attempt()).toMatchObject({ status: 0 })
    expect(fixture.clock.now() - refusedAt).toBeGreaterThan(HOUR)
    expect(await attempt()).toMatchObject({ status: 2, last_status: 404, last_error: 'no such route' })
  })

  it('that is refused from the first attempt on is tried eight times within the hour', async () => {
    await failNew()
    const outbox = fixture.createOutbox(async () => ({ kind: 'retry', status: 410, error: 'gone', isRefusal: true }))
    const startedAt = fixture.clock.now()
    for (;;) {
      await outbox.drain()
      const [row] = await fixture.deliveries()
      if (row!.next_attempt_at === null) break
      await fixture.clock.advance(row!.next_attempt_at - fixture.clock.now())
    }
    expect(await fixture.deliveries()).toMatchObject([{ status: 2, attempts: 8, last_status: 410 }])
    expect(fixture.clock.now() - startedAt).toBe(HOUR)
  })

  it('is retried after an error in a sender, and after an error text that PostgreSQL does not store', async () => {
    await failNew()
    let outcome: () => Outcome = () => {
      throw new TypeError('an error of ours')
    }
    const outbox = fixture.createOutbox(async () => outcome())
    await outbox.drain()
    expect(outbox.bugs).toHaveLength(1)
    const last_error = 'an error in the service itself: its log has the details'
    expect(await fixture.deliveries()).toMatchObject([{ status: 0, last_error }])
    outcome = () => ({ kind: 'retry', status: 500, error: `\0${'😀'.repeat(400)}` })
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect((await fixture.deliveries())[0]!.last_error).toMatch(/^(😀)+\uFFFD?$/u)
  })

  it('is retried when a sender ignores its signal', async () => {
    await failNew()
    let isAborted = false
    const hang = (_attempt: Attempt, signal: AbortSignal) =>
      new Promise<Outcome>(() => signal.addEventListener('abort', () => (isAborted = true)))
    await fixture.createOutbox(hang, { timeoutMs: 50 }).drain()
    expect(isAborted).toBe(true)
    const last_error = 'no response within 0.05 s'
    expect(await fixture.deliveries()).toMatchObject([{ status: 0, attempts: 1, last_error }])
  })

  it('waits when its channel cannot be unsealed', async () => {
    await failNew()
    const { send, got } = createReceiver()
    await fixture.createOutbox(send, { sealer: createSealer(Buffer.alloc(32, 8), []) }).drain()
    expect(await fixture.deliveries()).toMatchObject([
      { status: 0, last_error: expect.stringContaining('PREVIOUS_SECRET_KEYS') },
    ])
    expect(got).toEqual([])
  })

  it('is not sent to a channel that was muted after its event', async () => {
    await failNew()
    await fixture.database.query('update channels set muted = true')
    const { send, got } = createReceiver()
    await fixture.createOutbox(send).drain()
    expect(got).toEqual([])
    expect(await fixture.deliveries()).toMatchObject([{ status: 2, last_error: 'the channel was muted' }])
  })

  it('does not begin when its claim has nearly expired', async () => {
    await failNew()
    const { send, got } = createReceiver()
    const { database, clock } = fixture
    const slow: typeof database = {
      ...database,
      // Only claims use a session.
      async session(use) {
        const result = await database.session(use)
        await clock.advance(CLAIM_MS)
        return result
      },
    }
    await fixture.createOutbox(send, { database: slow }).run(AbortSignal.abort())
    expect(got).toEqual([])
  })
})

it('the channel of the installation is trusted, hides its addresses, and waits for a replica that has them', async () => {
  const installationUrls = ['http://10.0.0.1:9093']
  await setInstallationChannel({ database: fixture.database, clock: fixture.clock }, true)
  await failNew()
  const { send, got } = createReceiver()
  await fixture.createOutbox(send).drain()
  expect(await fixture.deliveries()).toMatchObject([{ status: 0, attempts: 0 }])
  const error = '10.0.0.1:9093 refused the connection'
  const outbox = fixture.createOutbox(async () => ({ kind: 'retry', status: null, error }), { installationUrls })
  await outbox.drain()
  expect(outbox.reports).toMatchObject([{ outcome: { error } }])
  expect((await fixture.deliveries())[0]!.last_error).toMatch(/^the Alertmanager of the installation did not accept/)
  await fixture.clock.advance(MINUTE)
  await fixture.createOutbox(send, { installationUrls }).drain()
  const settings = { kind: 'alertmanager', urls: installationUrls }
  expect(got[0]!.channel).toMatchObject({ isTrusted: true, settings })
  expect(await fixture.deliveries()).toMatchObject([{ status: 1, last_error: null }])
})

it('a kind that only a newer version knows is left to that version, and holds nothing up', async () => {
  const newer = await fixture.addChannel()
  await fixture.database.query(`update channels set kind = 'pigeon' where id = $1`, [newer])
  const known = await fixture.addChannel()
  await failNew()
  await fixture.createOutbox(createReceiver().send).drain()
  const rows = await fixture.deliveries()
  const found = new Map(rows.map(({ channel_id, status, attempts }) => [channel_id, { status, attempts }]))
  expect(found.get(newer)).toEqual({ status: 0, attempts: 0 })
  expect(found.get(known)).toEqual({ status: 1, attempts: 1 })
})

it('what the channel of the installation remarks on a delivery is for its operator', async () => {
  const installationUrls = ['http://10.0.0.1:9093']
  await setInstallationChannel({ database: fixture.database, clock: fixture.clock }, true)
  await failNew()
  const note = '10.0.0.1:9093 refused the connection'
  const outbox = fixture.createOutbox(async () => ({ ...DELIVERED, note }), { installationUrls })
  await outbox.drain()
  expect(await fixture.deliveries()).toMatchObject([
    { status: 1, last_error: 'the log of the service has a note about it' },
  ])
  expect(outbox.reports).toMatchObject([{ outcome: { note } }])
})

describe('the deliveries of a check', () => {
  it('arrive in order after the receiver was away', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    let isAway = true
    const { send, got, types } = createReceiver(() => (isAway ? AWAY : DELIVERED))
    const outbox = fixture.createOutbox(send)
    for (const flip of [fail, recover, fail]) {
      await flip(check)
      await outbox.drain()
    }
    expect(new Set(types())).toEqual(new Set(['check.down']))
    isAway = false
    got.length = 0
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect(types()).toEqual(['check.down', 'check.up', 'check.down'])
  })

  it('wait for no other check and no other channel', async () => {
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
      namesOf(got, name)
        .filter(({ checkKey }) => checkKey === key)
        .map(({ event }) => event.type)
    for (const [name, check] of [
      ['Well', one],
      ['Well', two],
      ['Picky', two],
    ] as const)
      expect(seen(name, check)).toEqual(['check.down', 'check.up'])
    expect(seen('Picky', one)).toEqual(['check.down'])
  })

  it('arrive in order and once when two replicas send them', async () => {
    await fixture.addChannel()
    const checks: CheckRecord[] = []
    for (let i = 0; i < 10; i += 1) checks.push(await fixture.addCheck())
    const { send, got } = createReceiver(async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 3))
      return DELIVERED
    })
    const outboxes = [fixture.createOutbox(send), fixture.createOutbox(send)]
    for (const flip of [fail, recover, fail, recover, fail]) for (const check of checks) await flip(check)
    await Promise.all(outboxes.map((outbox) => outbox.drain()))
    // One of them may have seen nothing due while the other held it.
    for (const outbox of outboxes) await outbox.drain()
    expect(got).toHaveLength(50)
    for (const { key } of checks)
      expect(
        got
          .filter(({ checkKey }) => checkKey === key)
          .map(reasonOf)
          .join(' '),
      ).toBe('failed recovered failed recovered failed')
  })

  it('are not sent twice at the same time when an older one is requested again', async () => {
    await fixture.addChannel()
    const check = await fixture.addCheck()
    await fail(check)
    await recover(check)
    const { promise: finished, resolve: finish } = Promise.withResolvers<void>()
    let isRejecting = true
    const { send, types } = createReceiver(async ({ event }) => {
      if (event.type === 'check.down') return isRejecting ? { kind: 'rejected', status: 400, error: 'no' } : DELIVERED
      await finished
      return DELIVERED
    })
    const [one, two] = [fixture.createOutbox(send), fixture.createOutbox(send)]
    await pollUntil(one, () => types().includes('check.up'))
    isRejecting = false
    const [down] = await fixture.deliveries()
    await retryDelivery(fixture, fixture.tenant(), down!.id)
    let polls = 0
    await pollUntil(two, () => ++polls > 6)
    // check.up is still being sent: it has arrived once.
    expect(types()).toEqual(['check.down', 'check.up', 'check.down'])
    finish()
    await one.stop()
    await two.stop()
    expect((await fixture.deliveries()).map(({ status }) => status)).toEqual([1, 1])
  })
})

describe('a dead receiver', () => {
  it('has one attempt at a time, and more when it accepts again', async () => {
    await fixture.addChannel({ name: 'Dead' })
    await fixture.addChannel({ name: 'Well' })
    for (let i = 0; i < 20; i += 1) await failNew()
    let isDead = true
    let [running, most] = [0, 0]
    const { send, got } = createReceiver(async ({ channel }) => {
      if (channel.name === 'Well') return DELIVERED
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setTimeout(resolve, 5))
      running -= 1
      return isDead ? AWAY : DELIVERED
    })
    const outbox = fixture.createOutbox(send)
    await outbox.drain()
    expect(namesOf(got, 'Well')).toHaveLength(20)
    most = 0
    await fixture.clock.advance(10 * SECOND)
    await outbox.drain()
    expect(most).toBe(1)
    isDead = false
    await fixture.clock.advance(HOUR)
    await outbox.drain()
    expect(most).toBeGreaterThan(1)
    expect(most).toBeLessThanOrEqual(MAX_SLOTS)
    expect((await fixture.deliveries()).every(({ status }) => status === 1)).toBe(true)
  })

  it('leaves a first attempt to every channel, however many receivers hang', async () => {
    const { send, got, finish } = aHangingReceiver()
    const outbox = fixture.createOutbox(send, { maxRunning: 8 })
    for (let i = 0; i < 3; i += 1) await fixture.addChannel({ name: 'Hung' })
    for (let i = 0; i < 5; i += 1) await failNew()
    let polls = 0
    await pollUntil(outbox, () => ++polls > 10)
    // A third of the eight each, rounded up.
    expect(got).toHaveLength(9)
    await fixture.addChannel({ name: 'Well' })
    await failNew()
    await pollUntil(outbox, () => namesOf(got, 'Well').length > 0)
    expect(namesOf(got, 'Well')).toHaveLength(1)
    finish()
    await outbox.stop()
  })
})

describe('the outbox', () => {
  beforeEach(() => fixture.addChannel())

  it('yields to pings before its first statement', async () => {
    await failNew()
    const { send, got } = createReceiver()
    const { promise: stored, resolve: store } = Promise.withResolvers<void>()
    const database = vi.fn(fixture.database.query)
    const outbox = fixture.createOutbox(send, {
      yieldToPings: () => stored,
      database: { ...fixture.database, query: database as typeof fixture.database.query },
    })
    const polled = outbox.run(AbortSignal.abort())
    await settle()
    expect(database).not.toHaveBeenCalled()
    store()
    await polled
    expect(got).toHaveLength(1)
  })

  it('writes outcomes again after the database was away', async () => {
    await failNew()
    const { database } = fixture
    let isAway = false
    const flaky: typeof database = {
      ...database,
      query: (statement, values) =>
        isAway ? Promise.reject(new Error('the database is away')) : database.query(statement, values),
    }
    const { send, got } = createReceiver(() => {
      isAway = true
      return DELIVERED
    })
    const outbox = fixture.createOutbox(send, { database: flaky })
    for (let polls = 0; polls < 2; polls += 1) await expect(outbox.drain()).rejects.toThrow('away')
    expect(await fixture.deliveries()).toMatchObject([{ status: 0 }])
    isAway = false
    await outbox.drain()
    expect(await fixture.deliveries()).toMatchObject([{ status: 1 }])
    expect(got).toHaveLength(1)
  })

  it('waits at its stop for running attempts, and stores their outcomes', async () => {
    await failNew()
    const { promise: response, resolve: respond } = Promise.withResolvers<Outcome>()
    const outbox = fixture.createOutbox(() => response)
    await outbox.run(AbortSignal.abort())
    const stopping = outbox.stop()
    respond(DELIVERED)
    await stopping
    expect(await fixture.deliveries()).toMatchObject([{ status: 1 }])
  })
})
