import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { HOUR } from '../../support/builders.ts'
import { ISO, UUID } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const UNKNOWN = '01999999-9999-7999-8999-999999999999'

let boundKey: string
let otherProject: string

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeAll(async () => {
  boundKey = (await api.client.post('/api-keys', { name: 'bound', scope: 'write', project_id: api.project })).body.key
  otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
})
beforeEach(async () => {
  await api.database.query('truncate deliveries, channels, events')
})

const makeChannel = async (fields?: object, key?: string): Promise<string> => (await api.addChannel(fields, key)).id
/** A check that goes down: one delivery for each channel that serves it. */
const makeDown = async (project = api.project, key = api.keys.admin): Promise<string> => {
  const { id, public_id } = await api.addCheck({ project_id: project, name: 'Backup' }, key)
  await api.ping(public_id, { type: 'fail', exitCode: null })
  return id
}
const list = async (query = '', key = api.keys.read) => {
  const { status, body } = await api.client.get(`/deliveries${query}`, { key })
  expect(status).toBe(200)
  return body.deliveries
}
const idsOf = (deliveries: { id: string }[]) => deliveries.map(({ id }) => id)
const set = (id: string, assignments: string) =>
  api.database.query(`update deliveries set ${assignments} where id = $1`, [id])
const DELIVERED = `status = 1, attempts = 2, next_attempt_at = null, last_status = 200, delivered_at = '2026-01-02T03:04:05.678Z'`
const FAILED = `status = 2, attempts = 9, next_attempt_at = null, last_status = 500, last_error = 'example.com responded 500'`
const retry = (id: string, key = api.keys.write) => api.client.post(`/deliveries/${id}/retry`, undefined, { key })

describe('the list of deliveries', () => {
  it('has the state of each', async () => {
    const channel = await makeChannel()
    const check = await makeDown()
    const [delivery] = await list()
    expect(delivery).toEqual({
      id: expect.stringMatching(UUID),
      event_id: expect.stringMatching(UUID),
      type: 'check.down',
      channel_id: channel,
      check_id: check,
      status: 'pending',
      reason: null,
      cause: null,
      attempts: 0,
      next_attempt_at: expect.stringMatching(ISO),
      last_status: null,
      last_error: null,
      created_at: expect.stringMatching(ISO),
      delivered_at: null,
      digest_id: null,
    })
    await set(delivery.id, DELIVERED)
    const delivered = { status: 'delivered', attempts: 2, last_status: 200, delivered_at: '2026-01-02T03:04:05.678Z' }
    expect(await list()).toEqual([{ ...delivery, ...delivered, next_attempt_at: null }])
    const digest_id = '01999999-9999-7999-8999-00000000d19e'
    await set(delivery.id, `digest_id = '${digest_id}'`)
    expect(await list()).toEqual([{ ...delivery, ...delivered, next_attempt_at: null, digest_id }])
    await set(delivery.id, `${FAILED}, delivered_at = null, digest_id = null`)
    const failed = { status: 'failed', attempts: 9, last_status: 500, last_error: 'example.com responded 500' }
    expect(await list()).toEqual([{ ...delivery, ...failed, next_attempt_at: null }])
  })

  it('says of what is not sent why, and what suppresses it', async () => {
    const muted = await makeChannel({ muted: true })
    const other = await makeChannel()
    const check = await makeDown()
    const [suppressed, ...more] = await list('?status=suppressed')
    expect(more).toEqual([])
    expect(suppressed).toMatchObject({
      channel_id: muted,
      check_id: check,
      status: 'suppressed',
      reason: 'muted',
      cause: { kind: 'channel', id: muted },
      attempts: 0,
      next_attempt_at: null,
    })
    expect(await list('?status=pending')).toMatchObject([{ channel_id: other, reason: null, cause: null }])
    expect(await api.client.get('/deliveries?status=suppressed', { key: foreign.keys.read })).toMatchObject({
      body: { deliveries: [] },
    })
  })

  it('has the newest first, page by page', async () => {
    await makeChannel()
    const checks = [await makeDown(), await makeDown(), await makeDown()]
    const all = await list()
    expect(all.map(({ check_id }: { check_id: string }) => check_id)).toEqual(checks.reverse())
    const first = (await api.client.get('/deliveries?limit=2')).body
    expect(first.deliveries).toEqual(all.slice(0, 2))
    expect((await api.client.get(`/deliveries?cursor=${first.next_cursor}`)).body).toEqual({
      deliveries: all.slice(2),
      next_cursor: null,
    })
  })

  it('is filtered by channel, check and status', async () => {
    const channels = [await makeChannel(), await makeChannel()]
    const checks = [await makeDown(), await makeDown()]
    const all = await list()
    expect(all).toHaveLength(4)
    await set(all[0].id, DELIVERED)
    await set(all[1].id, FAILED)
    type Shown = { channel_id: string; check_id: string; status: string }
    const now: Shown[] = await list()
    for (const [query, isWanted] of [
      [`?channel_id=${channels[0]}`, (one: Shown) => one.channel_id === channels[0]],
      [`?check_id=${checks[1]!.toUpperCase()}`, (one: Shown) => one.check_id === checks[1]],
      ['?status=pending', (one: Shown) => one.status === 'pending'],
      ['?status=delivered', (one: Shown) => one.status === 'delivered'],
      ['?status=failed', (one: Shown) => one.status === 'failed'],
      [
        `?status=pending&channel_id=${channels[1]}&check_id=${checks[0]}`,
        (one: Shown) => one.status === 'pending' && one.channel_id === channels[1] && one.check_id === checks[0],
      ],
      [`?channel_id=${UNKNOWN}`, () => false],
      [`?check_id=${UNKNOWN}`, () => false],
    ] as const)
      expect(await list(query), query).toEqual(now.filter(isWanted))
  })

  it('is filtered by time: from the time of an event on, with it', async () => {
    await makeChannel()
    await makeDown()
    const [{ created_at: at }] = await list()
    api.moveClock(1_000)
    await makeDown()
    const all = await list()
    expect(await list(`?since=${at}`)).toEqual(all)
    const after = new Date(Date.parse(at) + 1).toISOString()
    expect(await list(`?since=${after}`)).toEqual(all.slice(0, 1))
    expect(await list(`?since=${after}&limit=1`)).toEqual(all.slice(0, 1))
    expect(await list('?since=2099-01-01T00:00:00%2B01:00')).toEqual([])
  })

  it.each([
    ['since=yesterday', 'since must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z'],
    ['status=late', 'status must be one of pending, delivered, failed, suppressed'],
    ['channel_id=1', 'channel_id must be a UUID'],
    ['check_id=x', 'check_id must be a UUID'],
  ])('rejects the query %s', async (query, error) => {
    expect(await api.client.get(`/deliveries?${query}`)).toMatchObject({ status: 400, body: { error } })
  })

  it('has those of the organization of the caller, and of its project if the key is bound to one', async () => {
    await makeChannel()
    await makeChannel({}, foreign.keys.admin)
    const [here, elsewhere] = [await makeDown(), await makeDown(otherProject)]
    const theirs = await makeDown(foreign.project, foreign.keys.admin)
    const checksOf = async (key: string, query = '') =>
      (await list(query, key)).map(({ check_id }: { check_id: string }) => check_id)
    expect(await checksOf(api.keys.read)).toEqual([elsewhere, here])
    expect(await checksOf(boundKey)).toEqual([here])
    expect(await checksOf(foreign.keys.read)).toEqual([theirs])
    expect(await checksOf(api.keys.read, `?check_id=${theirs}`)).toEqual([])
    expect(await checksOf(boundKey, `?check_id=${elsewhere}`)).toEqual([])
  })

  it('has none of a removed channel', async () => {
    const channel = await makeChannel()
    await makeDown()
    expect(await list()).toHaveLength(1)
    await api.database.query('delete from channels where id = $1', [channel])
    expect(await list()).toEqual([])
  })
})

describe('retrying a delivery', () => {
  const read = async (id: string) => {
    const { rows } = await api.database.query<Record<string, number>>(
      `select status, attempts, attempts_before, next_attempt_at, give_up_at, created_at, digest_id from deliveries where id = $1`,
      [id],
    )
    return rows[0]!
  }
  const makeDelivery = async () => {
    const channel = await makeChannel()
    await makeDown()
    const [delivery] = await list()
    return { channel, delivery }
  }

  it.each([
    ['failed', FAILED, 9, 'example.com responded 500', 500],
    ['was delivered', `${DELIVERED}, digest_id = '01999999-9999-7999-8999-00000000d19e'`, 2, null, 200],
  ])('that %s starts it again', async (_, assignments, attempts, lastError, lastStatus) => {
    const { delivery } = await makeDelivery()
    await set(delivery.id, `${assignments}, give_up_at = now() - interval '1 day'`)
    const before = api.context.clock.now()
    const { status, body } = await retry(delivery.id)
    const after = api.context.clock.now()
    expect({ status, body }).toEqual({
      status: 202,
      body: {
        ...delivery,
        status: 'pending',
        attempts,
        next_attempt_at: expect.stringMatching(ISO),
        last_status: lastStatus,
        last_error: lastError,
      },
    })
    expect(await list()).toEqual([body])
    const row = await read(delivery.id)
    expect(row).toMatchObject({ status: 0, attempts, attempts_before: attempts, digest_id: null })
    expect(row.next_attempt_at).toBeGreaterThanOrEqual(before - 0.001)
    expect(row.next_attempt_at).toBeLessThanOrEqual(after)
    expect(row.give_up_at).toBeCloseTo(row.next_attempt_at! + 24 * HOUR, 2)
  })

  it('that waits for its next attempt makes it due, and changes nothing else', async () => {
    const { delivery } = await makeDelivery()
    await set(
      delivery.id,
      `attempts = 3, attempts_before = 1, next_attempt_at = now() + interval '20 minutes', last_status = 503`,
    )
    const before = await read(delivery.id)
    const { status, body } = await retry(delivery.id)
    expect({ status, body }).toMatchObject({ status: 202, body: { status: 'pending', attempts: 3, last_status: 503 } })
    const after = await read(delivery.id)
    expect({ ...after, next_attempt_at: 0 }).toEqual({ ...before, next_attempt_at: 0 })
    expect(after.next_attempt_at).toBeLessThanOrEqual(api.context.clock.now())
    expect(Date.parse(body.next_attempt_at)).toBe(Math.floor(after.next_attempt_at!))
  })

  it.each([
    ['is on its way', `attempts = 1, claimed_until = now() + interval '29 seconds'`],
    ['is due within seconds', `attempts = 1, next_attempt_at = now() + interval '29 seconds'`],
    ['is due', `next_attempt_at = now() - interval '1 minute'`],
  ])('that %s leaves it alone', async (_, assignments) => {
    const { delivery } = await makeDelivery()
    await set(delivery.id, assignments)
    const before = await read(delivery.id)
    expect(await retry(delivery.id)).toMatchObject({ status: 202, body: { id: delivery.id, status: 'pending' } })
    expect(await read(delivery.id)).toEqual(before)
  })

  it('of one that is being sent shows when its claim expires', async () => {
    const { delivery } = await makeDelivery()
    await set(delivery.id, `claimed_until = '2100-01-02T03:04:05Z'`)
    const { body } = await api.client.get('/deliveries')
    expect(body.deliveries).toMatchObject([
      { id: delivery.id, status: 'pending', next_attempt_at: '2100-01-02T03:04:05.000Z' },
    ])
  })

  it('sends what was suppressed, once its channel is not muted', async () => {
    const channel = await makeChannel({ muted: true })
    await makeDown()
    const [{ id }] = await list()
    expect(await retry(id)).toMatchObject({ status: 409, body: { code: 'muted' } })
    await api.client.put(`/channels/${channel}`, { muted: false })
    expect(await retry(id)).toMatchObject({ status: 202, body: { status: 'pending', reason: null, cause: null } })
  })

  it('is rejected while its channel is muted', async () => {
    const { channel, delivery } = await makeDelivery()
    await api.client.put(`/channels/${channel}`, { muted: true })
    const { status, body } = await retry(delivery.id)
    expect({ status, body }).toEqual({
      status: 409,
      body: { error: 'the channel of the delivery is muted: unmute it first', code: 'muted' },
    })
    expect(await list()).toEqual([
      { ...delivery, status: 'failed', next_attempt_at: null, last_error: 'the channel was muted' },
    ])
    await api.client.put(`/channels/${channel}`, { muted: false })
    expect((await retry(delivery.id)).status).toBe(202)
  })

  it('is rejected when its channel was removed', async () => {
    const { delivery } = await makeDelivery()
    await set(delivery.id, FAILED)
    await api.database.query('delete from channels')
    const error = 'the channel of the delivery was removed'
    expect(await retry(delivery.id)).toMatchObject({ status: 409, body: { error } })
    expect(await read(delivery.id)).toMatchObject({ status: 2 })
  })

  it('is possible only for its organization and project', async () => {
    await makeChannel()
    await makeDown()
    await makeDown(otherProject)
    const [elsewhere, here] = idsOf(await list())
    for (const [id, key] of [
      [here, foreign.keys.admin],
      [elsewhere, boundKey],
      [UNKNOWN, api.keys.admin],
    ] as const)
      expect(await retry(id!, key)).toMatchObject({ status: 404, body: { error: 'delivery not found' } })
    expect((await retry(here!, boundKey)).status).toBe(202)
  })
})
