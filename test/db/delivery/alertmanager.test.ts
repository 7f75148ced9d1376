/** The sender of events and the table of alerts; the Alertmanagers are fakes that behave as the real one does. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { AlertmanagerSettings } from '../../../src/channels/kinds/alertmanager/config.ts'
import { createAlertmanagerSender } from '../../../src/channels/kinds/alertmanager/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { OpenChannel } from '../../../src/domain/channel.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { aFlipEvent, aTestEvent } from '../../support/events.ts'
import { createFakeAlertmanagers, type FakeAlertmanagers } from '../../support/fake-alertmanagers.ts'
import { useEach } from '../../support/use.ts'
import { useDelivery } from './fixture.ts'

let fakes: FakeAlertmanagers
let channel: OpenChannel<AlertmanagerSettings>
const fixture = useDelivery()
beforeEach(async () => {
  fakes = createFakeAlertmanagers(fixture.clock.now)
  const settings = {
    kind: 'alertmanager',
    urls: ['http://a:9093', 'http://b:9093'],
    labels: { team: 'storage' },
  } as const
  const id = await fixture.addChannel({ settings })
  channel = { id, name: 'Team', isTrusted: false, settings }
})
const check = useEach(() => fixture.addCheck())
beforeEach(() => fixture.ping(check, { type: 'fail' }))

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const createSender = (database = fixture.database) =>
  createAlertmanagerSender({ client: fakes, clock: fixture.clock, links, database })

type Changes = Parameters<typeof aFlipEvent>[0]

/** A flip of the check now. */
function anEvent({ facts, ...changes }: NonNullable<Changes> = {}) {
  const at = fixture.clock.now()
  return aFlipEvent({
    at,
    check: { id: check.id, slug: check.slug },
    facts: { reason: 'failed', occurred_at: new Date(at).toISOString(), ...facts },
    ...changes,
  })
}

const send = (changes: Changes = {}, signal = new AbortController().signal) =>
  createSender()({ channel, event: anEvent(changes), checkKey: check.key }, signal)
const recover = () => send({ type: 'check.up', facts: { reason: 'recovered' } })

/** As it is posted: a little earlier, for clocks that are behind, and not before the alert began. */
const endAt = (at: number, startedAt = 0) => new Date(Math.max(at - 2 * SECOND, startedAt)).toISOString()

async function rows() {
  const { rows } = await fixture.database.query<{
    labels: Record<string, string>
    starts_at: number
    resolved_at: number | null
    tell_at: number
  }>('select labels, starts_at, resolved_at, tell_at from alerts order by check_key')
  return rows
}

/** Sends an event that happened before, at its own time. */
const sendEvent = (event: ReturnType<typeof anEvent>) =>
  createSender()({ channel, event, checkKey: check.key }, new AbortController().signal)

describe('check.down', () => {
  it('fires the alert at every peer, and is due again in a minute', async () => {
    expect(await send()).toEqual({ kind: 'delivered', status: 200 })
    const now = fixture.clock.now()
    const labels = {
      alertname: 'HeartbeatCheckDown',
      check: 'nightly-backup',
      project: 'shop',
      reason: 'failed',
      severity: 'critical',
      team: 'storage',
    }
    const alert = {
      labels,
      startsAt: new Date(now).toISOString(),
      endsAt: new Date(now + 15 * MINUTE).toISOString(),
      generatorURL: `https://heartbeat.example.com/checks/${check.id}`,
    }
    expect(fakes.posts).toMatchObject([
      { host: 'a:9093', isTrusted: false, alerts: [alert] },
      { host: 'b:9093', isTrusted: false, alerts: [alert] },
    ])
    expect(await rows()).toEqual([{ labels, starts_at: now, resolved_at: null, tell_at: now + MINUTE }])
  })

  it.each([
    ['refuse', 200, 'delivered', 10 * SECOND],
    ['refuse', 'refuse', 'retry', 10 * SECOND],
    [400, 400, 'rejected', MINUTE],
  ] as const)('is stored for the keeper when the peers respond %s and %s', async (a, b, kind, waitMs) => {
    fakes.answer('a:9093', a)
    fakes.answer('b:9093', b)
    expect((await send()).kind).toBe(kind)
    expect(await rows()).toMatchObject([{ resolved_at: null, tell_at: fixture.clock.now() + waitMs }])
  })

  it('is stored before it is posted: when its replica dies, the lease expires', async () => {
    await send()
    await recover()
    const hold = fakes.hold('a:9093')
    const sending = send()
    await hold.arrived
    const [row] = await rows()
    const now = fixture.clock.now()
    expect(row!.resolved_at).toBeNull()
    expect(row!.tell_at).toBeGreaterThanOrEqual(now + 30 * SECOND)
    expect(row!.tell_at).toBeLessThan(now + MINUTE)
    hold.release()
    await sending
  })

  it('of a check that is up again is due at once', async () => {
    const down = anEvent()
    await fixture.ping(check)
    await sendEvent(down)
    expect(fakes.firing('a:9093')).toEqual(['nightly-backup'])
    expect((await rows())[0]!.tell_at).toBe(0)
  })

  it('that is repeated stays one alert', async () => {
    const event = anEvent()
    for (let attempt = 0; attempt < 2; attempt += 1) await sendEvent(event)
    expect(fakes.posts).toHaveLength(4)
    expect(fakes.posts[2]!.alerts).toEqual(fakes.posts[0]!.alerts)
    expect(await rows()).toHaveLength(1)
  })

  it('with another reason ends the alert that it replaces', async () => {
    await send()
    await fixture.clock.advance(MINUTE)
    await send({ facts: { reason: 'missed' } })
    const [ended, firing] = fakes.posts.at(-1)!.alerts
    expect(ended).toMatchObject({ labels: { reason: 'failed' }, endsAt: endAt(fixture.clock.now()) })
    expect(firing).toMatchObject({ labels: { reason: 'missed' } })
    expect(fakes.firing('a:9093')).toHaveLength(1)
  })

  it('does not replace a later alert', async () => {
    const early = anEvent()
    await fixture.clock.advance(MINUTE)
    await send({ facts: { reason: 'missed' } })
    const note = expect.stringContaining('later alert')
    expect(await sendEvent(early)).toMatchObject({ kind: 'delivered', status: null, note })
    expect(fakes.posts).toHaveLength(2)
    expect(await rows()).toMatchObject([{ labels: { reason: 'missed' }, starts_at: fixture.clock.now() }])
  })
})

describe.each(['check.up', 'check.paused'] as const)('%s', (type) => {
  it('ends the alert now, with its labels and annotations', async () => {
    await send()
    const startedAt = fixture.clock.now()
    await fixture.clock.advance(MINUTE)
    expect(await send({ type })).toEqual({ kind: 'delivered', status: 200 })
    const now = fixture.clock.now()
    const { endsAt: _, ...fired } = fakes.posts[0]!.alerts[0]!
    const ended = [{ ...fired, endsAt: endAt(now) }]
    expect(fakes.posts.slice(2).map(({ alerts }) => alerts)).toEqual([ended, ended])
    expect([fakes.firing('a:9093'), fakes.firing('b:9093')]).toEqual([[], []])
    expect(await rows()).toMatchObject([{ starts_at: startedAt, resolved_at: now, tell_at: now + 10 * SECOND }])
  })

  it('posts nothing when no alert was firing', async () => {
    const note = 'no alert of the check was firing'
    expect(await send({ type })).toEqual({ kind: 'delivered', status: null, note })
    expect(fakes.posts).toEqual([])
  })
})

describe('check.up', () => {
  it('that is repeated keeps the end of the alert', async () => {
    await send()
    await recover()
    const endedAt = fixture.clock.now()
    await fixture.clock.advance(MINUTE)
    await recover()
    expect(await rows()).toMatchObject([{ resolved_at: endedAt }])
    expect(fakes.posts.at(-1)!.alerts[0]!.endsAt).toBe(endAt(endedAt, endedAt))
  })

  it('does not end an alert that began later', async () => {
    const up = anEvent({ type: 'check.up' })
    await fixture.clock.advance(MINUTE)
    await send()
    expect(await sendEvent(up)).toMatchObject({ kind: 'delivered', status: null })
    expect(fakes.firing('a:9093')).toEqual(['nightly-backup'])
  })

  it('that no peer accepts is retried, and stored for the keeper', async () => {
    await send()
    for (const host of ['a:9093', 'b:9093']) fakes.answer(host, 'refuse')
    expect((await recover()).kind).toBe('retry')
    const now = fixture.clock.now()
    expect(await rows()).toMatchObject([{ resolved_at: now, tell_at: now + 10 * SECOND }])
  })

  it('followed by check.down fires again', async () => {
    await send()
    await fixture.clock.advance(MINUTE)
    await recover()
    await fixture.clock.advance(MINUTE)
    await send()
    expect(fakes.firing('b:9093')).toEqual(['nightly-backup'])
    expect(await rows()).toMatchObject([{ starts_at: fixture.clock.now(), resolved_at: null }])
  })
})

it.each(['check.resumed', 'check.unknown'] as const)('%s is not sent to an Alertmanager', async (type) => {
  expect(await send({ type })).toMatchObject({ kind: 'delivered', status: null, note: expect.stringContaining(type) })
  expect(fakes.posts).toEqual([])
})

it('a test is an alert that ends by itself', async () => {
  const event = { ...aTestEvent, at: fixture.clock.now() }
  expect(await createSender()({ channel, event, checkKey: null }, new AbortController().signal)).toEqual({
    kind: 'delivered',
    status: 200,
  })
  const labels = { alertname: 'HeartbeatTest', severity: 'info', team: 'storage' }
  const endsAt = new Date(fixture.clock.now() + MINUTE).toISOString()
  expect(fakes.posts[0]!.alerts).toMatchObject([{ labels, endsAt }])
  expect(await rows()).toEqual([])
})

it('each channel has its own alert of a check', async () => {
  await send()
  const other = { ...channel, id: await fixture.addChannel({ settings: channel.settings }) }
  await createSender()({ channel: other, event: anEvent(), checkKey: check.key }, new AbortController().signal)
  await recover()
  const all = await rows()
  expect([all.length, all.filter(({ resolved_at }) => resolved_at === null).length]).toEqual([2, 1])
})

it('a delivery is retried while the database is away', async () => {
  const away = createDatabase({ url: 'postgres://127.0.0.1:1/nobody', name: 'away', connections: 1 })
  const attempt = { channel, event: anEvent(), checkKey: check.key }
  const outcome = await createSender(away)(attempt, new AbortController().signal)
  expect(outcome).toMatchObject({ kind: 'retry', error: expect.stringContaining('database') })
  await away.close()
})
