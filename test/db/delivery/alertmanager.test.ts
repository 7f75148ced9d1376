/** The sender of events over the table that keeps what Alertmanagers believe; they are fakes that behave as the real one does. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AlertmanagerSettings } from '../../../src/channels/kinds/alertmanager/config.ts'
import { createAlertmanagerSender } from '../../../src/channels/kinds/alertmanager/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { OpenChannel } from '../../../src/domain/channel.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { aFlipEvent, aTestEvent } from '../../support/events.ts'
import { createFakeAlertmanagers, type FakeAlertmanagers } from '../../support/fake-alertmanagers.ts'
import { createFixture, type Fixture } from './fixture.ts'

let fixture: Fixture
let fakes: FakeAlertmanagers
let check: CheckRecord
let channel: OpenChannel<AlertmanagerSettings>
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.close())
beforeEach(async () => {
  await fixture.clear()
  fakes = createFakeAlertmanagers(fixture.clock.now)
  const settings = {
    kind: 'alertmanager',
    urls: ['http://a:9093', 'http://b:9093'],
    labels: { team: 'storage' },
  } as const
  const id = await fixture.addChannel({ settings })
  channel = { id, name: 'Team', isTrusted: false, settings }
  check = await fixture.addCheck()
  await fixture.ping(check, { type: 'fail' })
})

const links = createLinks(() => 'https://heartbeat.example.com/api/v1')
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

describe('check.down', () => {
  it('fires at every peer, and is kept to be told again in a minute', async () => {
    expect(await send()).toEqual({ kind: 'delivered', status: 200 })
    const now = fixture.clock.now()
    const alert = {
      labels: {
        alertname: 'HeartbeatCheckDown',
        check: 'nightly-backup',
        project: 'shop',
        reason: 'failed',
        severity: 'critical',
        team: 'storage',
      },
      startsAt: new Date(now).toISOString(),
      endsAt: new Date(now + 15 * MINUTE).toISOString(),
      generatorURL: `https://heartbeat.example.com/api/v1/checks/${check.id}`,
    }
    expect(fakes.posts).toMatchObject([
      { host: 'a:9093', isTrusted: false, alerts: [alert] },
      { host: 'b:9093', isTrusted: false, alerts: [alert] },
    ])
    expect(await rows()).toEqual([{ labels: alert.labels, starts_at: now, resolved_at: null, tell_at: now + MINUTE }])
  })

  it('that one peer has is delivered, and the others are told soon', async () => {
    fakes.answer('b:9093', 'refuse')
    expect(await send()).toMatchObject({ kind: 'delivered', note: expect.stringContaining('b:9093') })
    expect(await rows()).toMatchObject([{ tell_at: fixture.clock.now() + 10 * SECOND }])
  })

  it.each([
    ['refuse', 'retry', 10 * SECOND],
    [400, 'rejected', MINUTE],
  ] as const)('that nobody takes (%s) is a %s, and the keeper goes on with it', async (how, kind, waitMs) => {
    fakes.answer('a:9093', how)
    fakes.answer('b:9093', how)
    expect((await send()).kind).toBe(kind)
    expect(await rows()).toMatchObject([{ resolved_at: null, tell_at: fixture.clock.now() + waitMs }])
  })

  it('is written before it is told: who dies in between is replaced when the claim ends', async () => {
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

  it('of a check that is not down any more is due at once', async () => {
    const down = anEvent()
    await fixture.ping(check)
    await createSender()({ channel, event: down, checkKey: check.key }, new AbortController().signal)
    expect(fakes.firing('a:9093')).toEqual(['nightly-backup'])
    expect((await rows())[0]!.tell_at).toBe(0)
  })

  it('comes again with each repeat, and stays one alert', async () => {
    const event = anEvent()
    const sender = createSender()
    for (let attempt = 0; attempt < 2; attempt += 1)
      await sender({ channel, event, checkKey: check.key }, new AbortController().signal)
    expect(fakes.posts).toHaveLength(4)
    expect(fakes.posts[2]!.alerts).toEqual(fakes.posts[0]!.alerts)
    expect(await rows()).toHaveLength(1)
  })

  it('with another reason ends the alert that it takes the place of', async () => {
    await send()
    await fixture.clock.advance(MINUTE)
    await send({ facts: { reason: 'missed' } })
    const [ended, firing] = fakes.posts.at(-1)!.alerts
    expect(ended).toMatchObject({
      labels: { reason: 'failed' },
      endsAt: endAt(fixture.clock.now()),
    })
    expect(firing).toMatchObject({ labels: { reason: 'missed' } })
    expect(fakes.firing('a:9093')).toHaveLength(1)
  })

  it('of before does not replace a later one', async () => {
    const early = anEvent()
    await fixture.clock.advance(MINUTE)
    await send({ facts: { reason: 'missed' } })
    const outcome = await createSender()({ channel, event: early, checkKey: check.key }, new AbortController().signal)
    expect(outcome).toMatchObject({ kind: 'delivered', status: null, note: expect.stringContaining('later alert') })
    expect(fakes.posts).toHaveLength(2)
    expect(await rows()).toMatchObject([{ labels: { reason: 'missed' }, starts_at: fixture.clock.now() }])
  })
})

describe.each(['check.up', 'check.paused'] as const)('%s', (type) => {
  it('ends the alert with its labels and texts, now', async () => {
    await send()
    const startedAt = fixture.clock.now()
    await fixture.clock.advance(MINUTE)
    expect(await send({ type })).toEqual({ kind: 'delivered', status: 200 })
    const now = fixture.clock.now()
    const { endsAt: _, ...fired } = fakes.posts[0]!.alerts[0]!
    expect(fakes.posts.slice(2).map(({ alerts }) => alerts)).toEqual([
      [{ ...fired, endsAt: endAt(now) }],
      [{ ...fired, endsAt: endAt(now) }],
    ])
    expect([fakes.firing('a:9093'), fakes.firing('b:9093')]).toEqual([[], []])
    expect(await rows()).toMatchObject([{ starts_at: startedAt, resolved_at: now, tell_at: now + 10 * SECOND }])
  })

  it('has nothing to say when nothing was firing', async () => {
    expect(await send({ type })).toEqual({
      kind: 'delivered',
      status: null,
      note: 'no alert of the check was firing',
    })
    expect(fakes.posts).toEqual([])
  })
})

describe('check.up', () => {
  it('that is repeated ends the alert when it ended', async () => {
    await send()
    await recover()
    const endedAt = fixture.clock.now()
    await fixture.clock.advance(MINUTE)
    await recover()
    expect(await rows()).toMatchObject([{ resolved_at: endedAt }])
    expect(fakes.posts.at(-1)!.alerts[0]!.endsAt).toBe(endAt(endedAt, endedAt))
  })

  it('of before does not end an alert that began later', async () => {
    const up = anEvent({ type: 'check.up' })
    await fixture.clock.advance(MINUTE)
    await send()
    const outcome = await createSender()({ channel, event: up, checkKey: check.key }, new AbortController().signal)
    expect(outcome).toMatchObject({ kind: 'delivered', status: null })
    expect(fakes.firing('a:9093')).toEqual(['nightly-backup'])
  })

  it('that nobody takes is a retry, and the keeper goes on with it', async () => {
    await send()
    fakes.answer('a:9093', 'refuse')
    fakes.answer('b:9093', 'refuse')
    expect((await recover()).kind).toBe('retry')
    expect(await rows()).toMatchObject([
      { resolved_at: fixture.clock.now(), tell_at: fixture.clock.now() + 10 * SECOND },
    ])
  })

  it('followed by check.down fires again from then on', async () => {
    await send()
    await fixture.clock.advance(MINUTE)
    await recover()
    await fixture.clock.advance(MINUTE)
    await send()
    expect(fakes.firing('b:9093')).toEqual(['nightly-backup'])
    expect(await rows()).toMatchObject([{ starts_at: fixture.clock.now(), resolved_at: null }])
  })
})

it.each(['check.resumed', 'check.unknown'] as const)('is not told of %s', async (type) => {
  expect(await send({ type })).toMatchObject({ kind: 'delivered', status: null, note: expect.stringContaining(type) })
  expect(fakes.posts).toEqual([])
})

it('sends a test that nobody has to take back', async () => {
  const outcome = await createSender()(
    { channel, event: { ...aTestEvent, at: fixture.clock.now() }, checkKey: null },
    new AbortController().signal,
  )
  expect(outcome).toEqual({ kind: 'delivered', status: 200 })
  expect(fakes.posts[0]!.alerts).toMatchObject([
    {
      labels: { alertname: 'HeartbeatTest', severity: 'info', team: 'storage' },
      endsAt: new Date(fixture.clock.now() + MINUTE).toISOString(),
    },
  ])
  expect(await rows()).toEqual([])
})

it('keeps alerts of several channels and checks apart', async () => {
  await send()
  const other = { ...channel, id: await fixture.addChannel({ settings: channel.settings }) }
  await createSender()({ channel: other, event: anEvent(), checkKey: check.key }, new AbortController().signal)
  expect(await rows()).toHaveLength(2)
  await recover()
  expect((await rows()).filter(({ resolved_at }) => resolved_at === null)).toHaveLength(1)
})

it('is a retry while the database is away', async () => {
  const away = createDatabase({ url: 'postgres://127.0.0.1:1/nobody', name: 'away', connections: 1 })
  const outcome = await createSender(away)(
    { channel, event: anEvent(), checkKey: check.key },
    new AbortController().signal,
  )
  expect(outcome).toMatchObject({ kind: 'retry', error: expect.stringContaining('database') })
  await away.close()
})
