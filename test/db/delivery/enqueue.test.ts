import { beforeEach, describe, expect, it } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { acknowledgeCheck } from '../../../src/checks/acknowledge.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { DELIVERY_STATUSES, INSTALLATION_CHANNEL_ID } from '../../../src/domain/channel.ts'
import type { NotifiedCheck } from '../../../src/domain/event.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { insertTestEvent } from '../../../src/store/outbox/events.ts'
import { useEach } from '../../support/use.ts'
import { createReceiver, useDelivery } from './fixture.ts'

const fixture = useDelivery()
const check = useEach(() => fixture.addCheck())

const SUPPRESSED = DELIVERY_STATUSES.indexOf('suppressed')
const FAILED = { type: 'fail', exitCode: 3 } as const
const context = () => ({ database: fixture.database, clock: fixture.clock })

/** The events that a channel would receive now. */
async function receivedEvents(): Promise<NotifiedCheck[]> {
  const { send, got } = createReceiver()
  await fixture.createOutbox(send).drain()
  return got.map(({ event }) => event as NotifiedCheck)
}

describe('which channels an event goes to', () => {
  const typesFor = async (channel: string) =>
    (await fixture.deliveries())
      .filter((row) => row.channel_id === channel && row.status !== SUPPRESSED)
      .map(({ type }) => type)
  const suppressedFor = async (channel: string) =>
    (await fixture.deliveries())
      .filter((row) => row.channel_id === channel && row.status === SUPPRESSED)
      .map(({ type, reason, cause, next_attempt_at }) => ({ type, reason, cause, next_attempt_at }))

  it('is one delivery for each channel that serves the project, is not muted and wants it', async () => {
    const { project: projectId, organizationId } = fixture.tenant()
    const { rows } = await fixture.database.query<{ id: string }>(
      `insert into projects (id, organization_id, name, slug) values (gen_random_uuid(), $1, 'Other', 'other') returning id`,
      [organizationId],
    )
    const whole = await fixture.addChannel()
    const own = await fixture.addChannel({ projectId })
    const other = await fixture.addChannel({ projectId: rows[0]!.id })
    const muted = await fixture.addChannel({ muted: true })
    const picky = await fixture.addChannel({ eventTypes: ['check.up'] })

    await fixture.ping(check)
    expect(await fixture.deliveries()).toEqual([])
    await fixture.ping(check, FAILED)
    await fixture.ping(check, FAILED)
    await fixture.ping(check)

    expect(await typesFor(whole)).toEqual(['check.down', 'check.up'])
    expect(await typesFor(own)).toEqual(['check.down', 'check.up'])
    expect(await typesFor(picky)).toEqual(['check.up'])
    expect(await typesFor(other)).toEqual([])
    expect(await typesFor(muted)).toEqual([])
    const why = { reason: 'muted', cause: { kind: 'channel', id: muted }, next_attempt_at: null }
    expect(await suppressedFor(muted)).toEqual([
      { type: 'check.down', ...why },
      { type: 'check.up', ...why },
    ])
    expect(await suppressedFor(other)).toEqual([])
    expect((await receivedEvents()).map(({ type }) => type)).not.toContain('check.paused')
  })

  it('sends an Alertmanager the events that fire and end alerts, and no other', async () => {
    const settings = { kind: 'alertmanager', urls: ['http://a.example.com'], labels: {} } as const
    const chosen = await fixture.addChannel({ settings, eventTypes: ['check.down'] })
    const all = await fixture.addChannel({ settings, eventTypes: ['check.down', 'check.resumed', 'check.unknown'] })
    const none = await fixture.addChannel({ settings, eventTypes: ['check.resumed'] })
    await fixture.ping(check, FAILED)
    await pauseCheck(context(), fixture.tenant(), check.id)
    await resumeCheck(context(), fixture.tenant(), check.id)
    await fixture.ping(check, FAILED)
    await fixture.ping(check)
    expect(await typesFor(chosen)).toEqual(['check.down', 'check.paused', 'check.down', 'check.up'])
    expect(await typesFor(all)).toEqual(['check.down', 'check.paused', 'check.down', 'check.up'])
    expect(await typesFor(none)).toEqual(['check.paused', 'check.up'])
  })

  it('sends what keeps incidents that a person has one, if the service can know it, and no other channel', async () => {
    const pagerduty = await fixture.addChannel({
      settings: { kind: 'pagerduty', routing_key: 'k'.repeat(32) } as const,
    })
    const alertmanager = await fixture.addChannel({
      settings: { kind: 'alertmanager', urls: ['http://a.example.com'], labels: {} } as const,
    })
    const chat = await fixture.addChannel()
    await fixture.ping(check, FAILED)
    await acknowledgeCheck(context(), fixture.tenant(), check.id)
    await acknowledgeCheck(context(), fixture.tenant(), check.id, { forSeconds: 300 })
    expect(await typesFor(pagerduty)).toEqual(['check.down', 'check.acknowledged'])
    expect(await typesFor(alertmanager)).toEqual(['check.down'])
    expect(await typesFor(chat)).toEqual(['check.down'])
  })

  it('down, paused, resumed, success: each channel that got check.down and wants check.up gets it', async () => {
    const both = await fixture.addChannel()
    const downOnly = await fixture.addChannel({ eventTypes: ['check.down'] })
    const muted = await fixture.addChannel()
    const removed = await fixture.addChannel()
    const settings = { kind: 'alertmanager', urls: ['http://a.example.com'], labels: {} } as const
    const alertmanager = await fixture.addChannel({ settings, eventTypes: ['check.down'] })
    await fixture.ping(check)
    await fixture.ping(check, FAILED)
    await pauseCheck(context(), fixture.tenant(), check.id)
    await fixture.database.query('update channels set muted = true where id = $1', [muted])
    await fixture.database.query('delete from channels where id = $1', [removed])
    await resumeCheck(context(), fixture.tenant(), check.id)
    await fixture.ping(check)
    expect(await typesFor(both)).toEqual(['check.down', 'check.paused', 'check.resumed', 'check.up'])
    expect(await typesFor(downOnly)).toEqual(['check.down'])
    expect(await typesFor(muted)).toEqual(['check.down', 'check.paused'])
    expect((await suppressedFor(muted)).map(({ type }) => type)).toEqual(['check.resumed', 'check.up'])
    expect(await typesFor(removed)).toEqual(['check.down', 'check.paused'])
    expect(await typesFor(alertmanager)).toEqual(['check.down', 'check.paused', 'check.up'])
    const up = (await receivedEvents()).find(({ type }) => type === 'check.up')
    expect(up).toMatchObject({
      facts: { reason: 'recovered', status: 'up', previous_status: 'new', down_for_seconds: 60 },
      lastPing: { type: 'success' },
    })
  })

  it('includes the channel of the installation while it is configured', async () => {
    await setInstallationChannel(context(), true)
    await setInstallationChannel(context(), true)
    await fixture.ping(check, FAILED)
    expect(await typesFor(INSTALLATION_CHANNEL_ID)).toEqual(['check.down'])
    // A replica without it does not decide alone: a rollout may be running.
    await setInstallationChannel(context(), false)
    await fixture.ping(check)
    expect(await typesFor(INSTALLATION_CHANNEL_ID)).toEqual(['check.down', 'check.up'])
    await fixture.clock.advance(5 * 60_000)
    await setInstallationChannel(context(), false)
    await fixture.ping(check, FAILED)
    expect(await typesFor(INSTALLATION_CHANNEL_ID)).toEqual(['check.down', 'check.up'])
  })

  it('excludes channels of other organizations', async () => {
    await fixture.addChannel()
    const mine = fixture.tenant()
    const { rows } = await fixture.database.query<{ id: string }>(
      `with o as (insert into organizations (id, name) values (gen_random_uuid(), 'Foreign') returning id)
        insert into projects (id, organization_id, name, slug) select gen_random_uuid(), id, 'P', 'p' from o returning id`,
    )
    await fixture.database.query('update checks set project_id = $1 where id = $2', [rows[0]!.id, check.id])
    await fixture.ping(check, FAILED)
    expect(mine.organizationId).toBeDefined()
    expect(await fixture.deliveries()).toEqual([])
  })

  it('sends a test to its channel only, muted or not', async () => {
    await fixture.addChannel()
    const channelId = await fixture.addChannel({ muted: true })
    const id = () => newId(fixture.clock.now())
    const { organizationId } = fixture.tenant()
    const at = fixture.clock.now()
    await insertTestEvent(fixture.database, {
      eventId: id(),
      deliveryId: id(),
      channelId,
      organizationId,
      projectId: null,
      at,
    })
    const { send, got } = createReceiver()
    await fixture.createOutbox(send).drain()
    expect(got.map(({ channel, event, checkKey }) => [channel.id, event.type, checkKey])).toEqual([
      [channelId, 'channel.test', null],
    ])
  })
})

describe('an event', () => {
  beforeEach(() => fixture.addChannel())

  it('contains the check and the ping of its time, and never the public id', async () => {
    const check = await fixture.addCheck({ name: 'Nightly "backup"', tags: ['b', 'a'], labels: { team: 'shop' } })
    await fixture.ping(check, { ...FAILED, durationMs: 1_500, body: Buffer.from('disk full') })
    const at = fixture.clock.now()
    await fixture.ping(check, { body: Buffer.from('fine again') })
    await fixture.database.query(
      `update checks set name = 'renamed', slug = 'renamed', tags = '{c}', labels = '{}' where key = $1`,
      [check.key],
    )

    const [down, up] = await receivedEvents()
    expect(down).toMatchObject({
      type: 'check.down',
      at,
      facts: { reason: 'failed', status: 'down', previous_status: 'new' },
      check: {
        id: check.id,
        name: 'Nightly "backup"',
        slug: check.slug,
        tags: ['b', 'a'],
        labels: { team: 'shop' },
        project: { id: check.projectId, slug: 'test' },
        kubernetes: null,
      },
      lastPing: {
        type: 'fail',
        exit_code: 3,
        duration_ms: 1_500,
        created_at: new Date(at).toISOString(),
        body: 'disk full',
      },
    })
    expect(up).toMatchObject({
      type: 'check.up',
      facts: { down_for_seconds: 60 },
      lastPing: { type: 'success', body: 'fine again' },
    })
    expect(JSON.stringify([down, up])).not.toContain(check.publicId)
  })

  it('contains the newest ping when no ping caused it, and null before the first one', async () => {
    await pauseCheck(context(), fixture.tenant(), check.id)
    await resumeCheck(context(), fixture.tenant(), check.id)
    await fixture.ping(check, { body: Buffer.from('first') })
    await fixture.ping(check, { type: 'log', exitCode: null, body: Buffer.from('second') })
    await pauseCheck(context(), fixture.tenant(), check.id)
    expect((await receivedEvents()).map(({ lastPing }) => lastPing?.body)).toEqual([undefined, undefined, 'second'])
  })

  it.each([
    ['4,096 bytes whole', `${'a'.repeat(4_095)}z`, `${'a'.repeat(4_095)}z`],
    ['the last 4,096 of one more', `b${'a'.repeat(4_095)}z`, `${'a'.repeat(4_095)}z`],
    ['no half character at the cut', `€${'a'.repeat(4_094)}`, 'a'.repeat(4_094)],
    ['no half character of four bytes', `😀${'a'.repeat(4_093)}`, 'a'.repeat(4_093)],
    ['an empty body', '', ''],
  ])('contains %s of a body', async (_what, sent, kept) => {
    await fixture.ping(check, { ...FAILED, body: Buffer.from(sent) })
    expect((await receivedEvents())[0]!.lastPing!.body).toBe(kept)
  })

  it.each([
    ['in the middle', [0x66, 0xff, 0x00, 0x67], 'f\uFFFD\0g'],
    ['at the beginning, where nothing is cut', [0xa9, 0x80, 0x66], '\uFFFD\uFFFDf'],
  ])('contains replacement characters for bytes that are not text %s', async (_where, sent, kept) => {
    await fixture.ping(check, { ...FAILED, body: Buffer.from(sent) })
    expect((await receivedEvents())[0]!.lastPing!.body).toBe(kept)
  })

  it('contains the resource of a declared check', async () => {
    await fixture.database.query(
      `update checks set kubernetes_cluster = 'c', kubernetes_namespace = 'ns', kubernetes_name = 'job', managed_by = 'kubernetes'`,
    )
    await fixture.ping(check, FAILED)
    expect((await receivedEvents())[0]!.check.kubernetes).toEqual({ cluster: 'c', namespace: 'ns', name: 'job' })
  })
})

describe('what an event says beside what happened', () => {
  const MINUTES = 60_000

  it('is the description, the last success, and the median of the durations of the last runs', async () => {
    const described = await fixture.addCheck({ description: 'Ask the database team' })
    await fixture.addChannel()
    for (const minutes of [1, 9, 2]) await fixture.ping(described, { durationMs: minutes * MINUTES })
    const lastSuccessAt = fixture.clock.now()
    await fixture.ping(described, { ...FAILED, durationMs: 1 })
    const [event] = await receivedEvents()
    expect(event).toMatchObject({
      check: { description: 'Ask the database team' },
      facts: { last_success_at: new Date(lastSuccessAt).toISOString(), usual_ms: 2 * MINUTES },
    })
  })

  it('of a warning is the success before it', async () => {
    await fixture.addChannel()
    await fixture.ping(check)
    const lastSuccessAt = fixture.clock.now()
    await fixture.ping(check, { type: 'warn', exitCode: null })
    const [event] = await receivedEvents()
    expect(event).toMatchObject({
      type: 'check.warned',
      facts: { last_success_at: new Date(lastSuccessAt).toISOString() },
    })
  })

  it('is left out where there is none', async () => {
    await fixture.addChannel()
    await fixture.ping(check, FAILED)
    const [event] = await receivedEvents()
    expect(event!.check).not.toHaveProperty('description')
    for (const name of ['last_success_at', 'usual_ms', 'missed_runs']) expect(event!.facts).not.toHaveProperty(name)
  })
})
