import { beforeEach, describe, expect, it } from 'vitest'
import { HOUR } from '../../support/builders.ts'
import { ISO } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** A project of its own for each test. */
let project: string

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const create = (fields: object = {}) =>
  api.client.post('/checks', { project_id: project, name: 'Nightly backup', ...fields })
const created = (fields: object = {}) => api.addCheck({ project_id: project, ...fields })

describe('creating a check', () => {
  it('answers with the full check, and defaults for what was left out', async () => {
    expect(await created()).toEqual({
      id: expect.stringMatching(UUID_V7),
      public_id: expect.stringMatching(UUID_V4),
      ping_url: expect.stringMatching(/^https:\/\/ping\.example\.com\/ping\/[0-9a-f-]{36}$/),
      project_id: project,
      name: 'Nightly backup',
      slug: 'nightly-backup',
      description: null,
      tags: [],
      labels: {},
      status: 'new',
      status_since: expect.stringMatching(ISO),
      status_reason: 'created',
      status_detail: null,
      flapping: false,
      period_seconds: 86_400,
      grace_seconds: 3_600,
      schedule: null,
      time_zone: null,
      max_runtime_seconds: null,
      warn_exit_codes: [],
      failures_before_down: 1,
      misses_before_down: 1,
      remind_every_seconds: null,
      remind_on_each_run: false,
      resume_on_ping: false,
      channels: null,
      depends_on: [],
      last_ping_at: null,
      last_outcome: null,
      last_success_at: null,
      last_start_at: null,
      last_duration_ms: null,
      consecutive_failures: 0,
      consecutive_misses: 0,
      acknowledged: null,
      pause: null,
      pings_total: 0,
      created_at: expect.stringMatching(ISO),
      updated_at: expect.stringMatching(ISO),
      expected_at: null,
      due_at: null,
      running: 0,
      managed_by: 'api',
      kubernetes: null,
    })
  })

  it('armed expects the first completion from now on, so that a job that never runs is detected', async () => {
    const { created_at, expected_at, due_at, status } = await created({
      armed: true,
      period_seconds: 60,
      grace_seconds: 10,
    })
    const expectedAt = Date.parse(expected_at)
    expect([expectedAt - Date.parse(created_at), Date.parse(due_at) - expectedAt, status]).toEqual([
      60_000,
      10_000,
      'new',
    ])
    const { rows } = await api.database.query<{ wake_at: number }>(
      'select wake_at from check_states where wake_at is not null',
    )
    expect(rows.map(({ wake_at }) => wake_at)).toContain(Date.parse(due_at))
    expect(await created({ armed: false })).toMatchObject({ expected_at: null, due_at: null })
    expect((await create({ armed: 1 })).body.error).toBe('armed must be true or false')
  })

  it('takes every field, from its least to its greatest value', async () => {
    const none = { slug: '7', description: null, tags: [], labels: {}, max_runtime_seconds: null }
    const text = { name: '💾'.repeat(100), slug: 'a'.repeat(100), description: '💾'.repeat(4_096) }
    for (const fields of [
      { ...none, period_seconds: 10, grace_seconds: 0, warn_exit_codes: [] },
      { warn_exit_codes: [1, 255] },
      { warn_exit_codes: Array.from({ length: 20 }, (_, index) => index + 1) },
      { description: 'line 1\n\tline 2', tags: ['z', 'a'], labels: { team: 'shop' }, max_runtime_seconds: 30 },
      { ...text, period_seconds: 31_536_000, grace_seconds: 31_536_000, max_runtime_seconds: 31_536_000 },
    ])
      expect(await created(fields)).toMatchObject(fields)
    expect(await created({ name: '  x \n' })).toMatchObject({ name: 'x' })
    expect(await created({ warn_exit_codes: [24, 3] })).toMatchObject({ warn_exit_codes: [3, 24] })
  })

  it('reads a schedule as cron does: 7 is Sunday, and what cannot be seen is rejected with its code and place', async () => {
    expect(await created({ schedule: '0 3 * * 7', armed: true })).toMatchObject({ schedule: '0 3 * * 7' })
    const { expected_at } = await created({ schedule: '0 3 * * 5-7/2', time_zone: 'UTC', armed: true })
    expect([5, 0]).toContain(new Date(expected_at).getUTCDay())
    expect(await create({ schedule: '*/5 6-23\u034f * * *' })).toMatchObject({
      status: 400,
      body: { error: expect.stringMatching(/^schedule has U\+034F as character 9, after "\*\/5 6-23": /) },
    })
  })

  it('takes a schedule in place of the period', async () => {
    expect(await created({ schedule: '0 2 * * *', time_zone: 'Europe/Berlin' })).toMatchObject({
      period_seconds: null,
      schedule: '0 2 * * *',
      time_zone: 'Europe/Berlin',
    })
    expect(await created({ schedule: '@hourly' })).toMatchObject({
      period_seconds: null,
      schedule: '@hourly',
      time_zone: 'UTC',
    })
  })

  it('takes numbers as JSON writes them, and a project id in capitals', async () => {
    const body = `{"project_id": "${project.toUpperCase()}", "name": "x", "period_seconds": 6.00e1, "grace_seconds": -0}`
    const answer = await api.client.call('POST', '/checks', {
      body,
      headers: { 'content-type': 'application/json; charset="UTF-8"' },
    })
    expect(answer.body).toMatchObject({ project_id: project, period_seconds: 60, grace_seconds: 0 })
  })

  // Each field is wired to its rule; the rules themselves: test/unit/http/api/check-fields.test.ts.
  const CODES = 'must be a list of at most 20 different numbers from 1 to 255'
  const INTEGER = (min: number) => `must be an integer from ${min} to 31536000`
  it.each<[object, string]>([
    [{ name: 7 }, 'name must be text of 1 to 100 characters, without control characters'],
    [{ slug: null }, 'slug cannot be null'],
    [
      { description: 'x'.repeat(4_097) },
      'description must be text of at most 4096 characters, without control characters other than line breaks and tabs',
    ],
    [{ period_seconds: 9 }, `period_seconds ${INTEGER(10)}`],
    [{ grace_seconds: -1 }, `grace_seconds ${INTEGER(0)}`],
    [{ max_runtime_seconds: 0 }, `max_runtime_seconds ${INTEGER(1)}`],
    [{ warn_exit_codes: Array.from({ length: 21 }, (_, index) => index + 1) }, `warn_exit_codes ${CODES}`],
    [{ warn_exit_codes: [3, 3] }, `warn_exit_codes ${CODES}`],
    [{ warn_exit_codes: 3 }, `warn_exit_codes ${CODES}`],
    [{ warn_exit_codes: null }, 'warn_exit_codes cannot be null'],
    [{ project_id: undefined }, 'project_id is required'],
    [{ schedule: '* '.repeat(101) }, 'schedule must be a cron expression of at most 200 characters'],
    [{ managed_by: 'api' }, 'managed_by is not a known field'],
  ])('refuses %j', async (fields, error) => {
    const { status, body } = await create(fields)
    expect({ status, error: body.error }).toEqual({ status: 400, error })
    const [name] = error.split(' ')
    expect(body.details).toEqual([{ path: `body.${name}`, message: error.slice(name!.length + 1) }])
  })

  it.each<[object, string]>([
    [{ period_seconds: 60, schedule: '@daily' }, 'schedule'],
    [{ time_zone: 'UTC' }, 'time_zone'],
    [{ schedule: 'every day' }, 'schedule'],
    [{ schedule: '@daily', time_zone: 'Mars/Olympus' }, 'time_zone'],
  ])('refuses what does not go together, by the rules of read-spec.test.ts: %j', async (fields, field) => {
    const { status, body } = await create(fields)
    expect(status).toBe(400)
    expect(body.error).toMatch(new RegExp(`^${field} `))
    expect(body.details).toMatchObject([{ path: `body.${field}` }])
  })

  it('names every bad field, and the first one in the message', async () => {
    const { body } = await create({ grace_seconds: 1.5, name: 7, surprise: 1, more: 2 })
    expect(body.error).toMatch(/^name must be/)
    expect(body.details.map(({ path }: { path: string }) => path)).toEqual([
      'body.name',
      'body.grace_seconds',
      'body.surprise',
      'body.more',
    ])
  })

  it('knows neither an unknown nor a foreign project', async () => {
    for (const project_id of ['01999999-9999-7999-8999-999999999999', foreign.project]) {
      const { status, body } = await create({ project_id })
      expect({ status, body }).toEqual({ status: 404, body: { error: 'project not found', code: 'not_found' } })
    }
  })
})

describe('getting a check', () => {
  it('gives what creating it gave', async () => {
    const check = await created({ description: 'x' })
    expect((await api.client.get(`/checks/${check.id}`)).body).toEqual(check)
  })

  it('hides the right to ping from those who may only read', async () => {
    const { id, public_id } = await created()
    const [read, write] = await Promise.all(
      [api.keys.read, api.keys.write].map(async (key) => (await api.client.get(`/checks/${id}`, { key })).body),
    )
    expect([read.public_id, read.ping_url]).toEqual([null, null])
    expect([write.public_id, write.ping_url]).toEqual([public_id, `https://ping.example.com/ping/${public_id}`])
  })

  it('shows since when and why it has its status, how long its last run took, and counts every stored ping', async () => {
    const { id, public_id, created_at } = await created()
    const get = async () => (await api.client.get(`/checks/${id}`)).body
    await api.ping(public_id, { durationMs: 1_234 })
    const up = await get()
    expect(up).toMatchObject({ status_reason: 'first_success', status_since: up.last_ping_at, last_duration_ms: 1_234 })
    for (const type of ['log', 'start', 'success', 'fail', 'fail'] as const) await api.ping(public_id, { type })
    const down = await get()
    expect(down).toMatchObject({ status: 'down', status_reason: 'failed', pings_total: 6, last_duration_ms: null })
    expect(down.status_since <= down.last_ping_at && down.status_since >= up.status_since).toBe(true)
    await api.client.patch(`/checks/${id}/pause`)
    expect(await get()).toMatchObject({ status_reason: 'paused', pings_total: 6, updated_at: created_at })
    await api.client.patch(`/checks/${id}/resume`)
    expect(await get()).toMatchObject({ status_reason: 'resumed', updated_at: created_at })
  })

  it('moves updated_at with the configuration alone', async () => {
    const { id, updated_at, created_at } = await created({ tags: ['a'], labels: { a: 'b' } })
    expect(updated_at).toBe(created_at)
    let last = updated_at
    for (const change of [{ name: 'Other' }, { tags: [] }, { labels: {} }, { grace_seconds: 1 }, { slug: 'other' }]) {
      const { body } = await api.client.put(`/checks/${id}`, change)
      expect(body.updated_at > last, JSON.stringify(change)).toBe(true)
      expect((await api.client.put(`/checks/${id}`, change)).body).toEqual(body)
      expect((await api.client.get(`/checks/${id}`)).body).toEqual(body)
      last = body.updated_at
    }
  })

  it('flaps after eleven changes within ten minutes', async () => {
    const { id, public_id } = await created()
    const get = async () => (await api.client.get(`/checks/${id}`)).body
    for (let change = 1; change <= 10; change += 1)
      await api.ping(public_id, { type: change % 2 === 1 ? 'fail' : 'success' })
    expect(await get()).toMatchObject({ status: 'up', flapping: false })
    await api.ping(public_id, { type: 'fail' })
    expect(await get()).toMatchObject({ status: 'down', flapping: true })
  })

  it('tells times, deadlines and open runs', async () => {
    const { id, public_id } = await created({ period_seconds: 3_600, grace_seconds: 300 })
    await api.ping(public_id)
    await api.ping(public_id, { type: 'start', exitCode: null })
    const { body } = await api.client.get(`/checks/${id}`)
    expect(body).toMatchObject({
      status: 'up',
      running: 1,
      last_ping_at: expect.stringMatching(ISO),
      last_start_at: expect.stringMatching(ISO),
    })
    const pingedAt = Date.parse(body.last_ping_at)
    expect(Date.parse(body.expected_at)).toBe(pingedAt + HOUR)
    expect(Date.parse(body.due_at)).toBe(pingedAt + HOUR + 300_000)
    expect(Date.parse(body.last_start_at)).toBeGreaterThanOrEqual(pingedAt)
  })

  it('gives the deadline of a run as what is due', async () => {
    const { id, public_id } = await created({ period_seconds: 3_600, max_runtime_seconds: 60 })
    await api.ping(public_id, { type: 'start', exitCode: null })
    const { body } = await api.client.get(`/checks/${id}`)
    expect(body.expected_at).toBeNull()
    expect(Date.parse(body.due_at)).toBe(Date.parse(body.last_start_at) + 60_000)
  })

  it('gives the last completion, and that a warning is a success in time', async () => {
    const { id, public_id } = await created({ period_seconds: 3_600, warn_exit_codes: [3] })
    const read = async () => (await api.client.get(`/checks/${id}`)).body
    await api.ping(public_id, { type: 'fail', exitCode: 3 })
    const warned = await read()
    expect(warned).toMatchObject({ status: 'up', last_outcome: 'warn', last_success_at: warned.last_ping_at })
    await api.ping(public_id, { type: 'fail', exitCode: 4 })
    expect(await read()).toMatchObject({
      status: 'down',
      last_outcome: 'fail',
      last_success_at: warned.last_success_at,
    })
    await api.ping(public_id)
    expect(await read()).toMatchObject({ status: 'up', last_outcome: 'success' })
    const { pings } = (await api.client.get(`/checks/${id}/pings`)).body
    expect(pings).toMatchObject([{ type: 'success' }, { type: 'fail', exit_code: 4 }, { type: 'warn', exit_code: 3 }])
    expect((await api.client.get(`/checks/${id}/pings?type=warn`)).body.pings).toMatchObject([{ exit_code: 3 }])
  })

  it('says late after the expected time', async () => {
    const { id, public_id } = await created({ period_seconds: 60 })
    await api.ping(public_id)
    api.moveClock(61_000)
    expect((await api.client.get(`/checks/${id}`)).body.status).toBe('late')
  })
})

describe('changing a check', () => {
  it('keeps what is left out', async () => {
    const check = {
      ...(await created({ description: 'x', max_runtime_seconds: 5, warn_exit_codes: [3] })),
      updated_at: expect.stringMatching(ISO),
    }
    const put = (fields: object) => api.client.put(`/checks/${check.id}`, fields)
    expect(await put({})).toMatchObject({ status: 200, body: check })
    expect((await put({ name: ' New ' })).body).toEqual({ ...check, name: 'New' })
    expect((await put({ period_seconds: 60, grace_seconds: 1, slug: 'new' })).body).toEqual({
      ...check,
      name: 'New',
      period_seconds: 60,
      grace_seconds: 1,
      slug: 'new',
    })
    const changed = { description: null, max_runtime_seconds: null, warn_exit_codes: [4] }
    expect((await put(changed)).body).toMatchObject(changed)
    expect((await put({ warn_exit_codes: [] })).body).toMatchObject({ warn_exit_codes: [] })
  })

  it('changes the one form into the other', async () => {
    const { id } = await created()
    const put = async (fields: object) => (await api.client.put(`/checks/${id}`, fields)).body
    expect(await put({ schedule: '0 2 * * *' })).toMatchObject({
      period_seconds: null,
      schedule: '0 2 * * *',
      time_zone: 'UTC',
    })
    expect(await put({ time_zone: 'Asia/Tokyo' })).toMatchObject({ schedule: '0 2 * * *', time_zone: 'Asia/Tokyo' })
    expect(await put({ period_seconds: 60 })).toMatchObject({ period_seconds: 60, schedule: null, time_zone: null })
  })

  it.each<[object, string]>([
    [{ name: null }, 'name cannot be null'],
    [{ period_seconds: null }, 'period_seconds cannot be null'],
    [{ time_zone: 'UTC' }, 'time_zone goes with schedule; this check has period_seconds'],
    [{ period_seconds: 60, schedule: '@daily' }, 'schedule must be left out beside period_seconds: give one of them'],
    [{ project_id: null }, 'project_id cannot be changed: create a check in the other project instead'],
    [
      { status: 'paused' },
      'status is not a known field; POST /checks/{id}/pause and POST /checks/{id}/resume change the status',
    ],
    [{ timezone: 'UTC' }, 'timezone is not a known field; the nearest known one is time_zone'],
  ])('refuses %j, says what to do, and changes nothing', async (fields, error) => {
    const check = await created()
    const { status, body } = await api.client.put(`/checks/${check.id}`, fields)
    expect({ status, error: body.error }).toEqual({ status: 400, error })
    expect(body.details).toMatchObject([{ path: `body.${error.split(' ')[0]}` }])
    expect((await api.client.get(`/checks/${check.id}`)).body).toEqual(check)
  })
})

describe('removing a check', () => {
  it('answers 204 without a body, and 404 the second time', async () => {
    const { id } = await created()
    const first = await api.client.delete(`/checks/${id}`)
    expect([first.status, first.body]).toEqual([204, null])
    const second = await api.client.delete(`/checks/${id}`)
    expect([second.status, second.body]).toEqual([404, { error: 'check not found', code: 'not_found' }])
    const { body } = await api.client.get(`/checks?project_id=${project}`)
    expect(body).toEqual({ checks: [], next_cursor: null })
  })
})
