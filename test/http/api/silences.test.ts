/** Silences over the API, and what becomes of messages while they hold. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { MAX_SILENCES } from '../../../src/silences/create-silence.ts'
import { HOUR, SECOND } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

const iso = (ms: number) => new Date(api.context.clock.now() + ms).toISOString()
const aSilence = (fields: object = {}) => ({
  project_id: api.project,
  ends_at: iso(HOUR),
  comment: 'The disks are replaced',
  ...fields,
})
const create = (fields?: object, key?: string) =>
  api.client.post('/silences', aSilence(fields), key === undefined ? {} : { key })
const faultOf = async (fields: object) => {
  const { status, body } = await create(fields)
  return [status, body.details?.map(({ path, message }: Record<string, string>) => `${path} ${message}`)]
}
const deliveries = async (id: string) =>
  (await api.client.get(`/deliveries?check_id=${id}&limit=100`)).body.deliveries.toReversed()

describe('a silence', () => {
  it('is shown as it was given, with who made it, whether it holds and until when', async () => {
    const { id: checkId } = await api.addCheck()
    const endsAt = iso(HOUR)
    const { status, body } = await create({ check_id: checkId, ends_at: endsAt }, api.keys.write)
    expect(status).toBe(201)
    expect(body).toEqual({
      id: expect.any(String),
      project_id: api.project,
      check_id: checkId,
      tag: null,
      starts_at: body.created_at,
      ends_at: endsAt,
      schedule: null,
      time_zone: null,
      duration_seconds: null,
      comment: 'The disks are replaced',
      by: { kind: 'api_key', id: expect.any(String), name: 'write' },
      managed_by: 'api',
      created_at: expect.stringMatching(/Z$/),
      active: true,
      active_until: endsAt,
      next_starts_at: null,
    })
    expect((await api.client.get(`/silences/${body.id}`)).body).toEqual(body)
    expect(api.audited.at(-1)).toMatchObject({ action: 'silence.created', target: { kind: 'silence', id: body.id } })
    expect((await api.client.delete(`/silences/${body.id}`)).status).toBe(204)
    expect(api.audited.at(-1)).toMatchObject({ action: 'silence.removed', target: { id: body.id } })
    for (const gone of [body.id, randomUUID(), 'x'])
      expect((await api.client.delete(`/silences/${gone}`)).status).toBe(404)
  })

  it('with a schedule says when it begins next, in its zone', async () => {
    const { status, body } = await create({
      ends_at: undefined,
      schedule: '0 2 * * 0',
      time_zone: 'Europe/Berlin',
      duration_seconds: 7_200,
    })
    expect(status).toBe(201)
    expect(body).toMatchObject({ starts_at: null, ends_at: null, schedule: '0 2 * * 0', duration_seconds: 7_200 })
    expect(new Date(body.next_starts_at).toLocaleString('en', { timeZone: 'Europe/Berlin', weekday: 'short' })).toBe(
      'Sun',
    )
  })

  it('is listed by project, and by the check that it covers', async () => {
    const { body: project } = await api.client.post('/projects', { name: 'Listed' })
    const check = await api.addCheck({ project_id: project.id, tags: ['db'] })
    const of = (fields: object) => create({ project_id: project.id, ...fields }).then(({ body }) => body.id)
    const ids = [await of({}), await of({ tag: 'db' }), await of({ check_id: check.id }), await of({ tag: 'web' })]
    const list = async (query: string) =>
      (await api.client.get(`/silences?${query}`)).body.silences.map(({ id }: { id: string }) => id)
    expect(await list(`project_id=${project.id}`)).toEqual(ids)
    expect(await list(`check_id=${check.id}`)).toEqual(ids.slice(0, 3))
    expect(await list(`project_id=${api.project}&check_id=${check.id}`)).toEqual([])
    const first = (await api.client.get(`/silences?project_id=${project.id}&limit=3`)).body
    expect(first.silences).toHaveLength(3)
    expect(await list(`project_id=${project.id}&cursor=${first.next_cursor}`)).toEqual(ids.slice(3))
  })

  it.each<[string, () => object, string]>([
    ['neither an end nor a schedule', () => ({ ends_at: undefined }), 'body.ends_at or schedule must be given'],
    ['an end in the past', () => ({ ends_at: iso(-SECOND) }), 'body.ends_at must be in the future'],
    [
      'an end less than a second after its beginning',
      () => ({ starts_at: '2030-01-01T00:00:00.001Z', ends_at: '2030-01-01T00:00:01Z' }),
      'body.ends_at must be at least a second after the beginning',
    ],
    [
      'an end beside a schedule',
      () => ({ schedule: '0 2 * * 0', duration_seconds: 60 }),
      'body.ends_at must be left out beside schedule',
    ],
    [
      'a beginning beside a schedule',
      () => ({ ends_at: undefined, starts_at: iso(0), schedule: '0 2 * * 0', duration_seconds: 60 }),
      'body.starts_at must be left out beside schedule',
    ],
    [
      'a schedule without a duration',
      () => ({ ends_at: undefined, schedule: '0 2 * * 0' }),
      'body.duration_seconds must be given with schedule',
    ],
    ['a duration without a schedule', () => ({ duration_seconds: 60 }), 'body.duration_seconds goes with schedule'],
    ['a zone without a schedule', () => ({ time_zone: 'UTC' }), 'body.time_zone goes with schedule'],
    [
      'a schedule that names no date',
      () => ({ ends_at: undefined, schedule: '0 0 30 2 *', duration_seconds: 60 }),
      'body.schedule must come at some time: "0 0 30 2 *" names no real date',
    ],
    [
      'a zone that does not exist',
      () => ({ ends_at: undefined, schedule: '@daily', time_zone: 'Mars', duration_seconds: 60 }),
      'body.time_zone must be an IANA time zone like Europe/Berlin, not "Mars"',
    ],
    [
      'a duration that is too short',
      () => ({ ends_at: undefined, schedule: '@daily', duration_seconds: 9 }),
      'body.duration_seconds must be an integer from 10 to 2592000',
    ],
    [
      'a duration that is too long',
      () => ({ ends_at: undefined, schedule: '@daily', duration_seconds: 2_592_001 }),
      'body.duration_seconds must be an integer from 10 to 2592000',
    ],
    [
      'a comment that is too long',
      () => ({ comment: 'x'.repeat(201) }),
      'body.comment must be text of at most 200 characters, without control characters',
    ],
    ['no comment', () => ({ comment: undefined }), 'body.comment is required'],
    ['no project', () => ({ project_id: undefined }), 'body.project_id must be given'],
  ])('with %s is refused', async (_, fields, says) => {
    expect(await faultOf(fields())).toEqual([400, [says]])
  })

  it.each<[string, () => object]>([
    ['a second', () => ({ starts_at: '2030-01-01T00:00:00Z', ends_at: '2030-01-01T00:00:01Z' })],
    ['10 s from each slot on', () => ({ ends_at: undefined, schedule: '@daily', duration_seconds: 10 })],
    ['30 days from each slot on', () => ({ ends_at: undefined, schedule: '@monthly', duration_seconds: 2_592_000 })],
    ['a comment of 200 characters', () => ({ comment: 'x'.repeat(200) })],
  ])('of %s is accepted', async (_, fields) => {
    expect((await create(fields())).status).toBe(201)
  })

  it('is of a project and a check that the caller has', async () => {
    const elsewhere = await api.addOrganization()
    const check = await api.addCheck()
    const { body: project } = await api.client.post('/projects', { name: 'Another' })
    expect((await create({ project_id: elsewhere.project })).status).toBe(404)
    expect((await create({ project_id: randomUUID() })).status).toBe(404)
    expect((await create({ project_id: project.id, check_id: check.id })).status).toBe(404)
    expect((await create({ check_id: randomUUID() })).status).toBe(404)
    const { body: silence } = await create()
    expect((await api.client.get(`/silences/${silence.id}`, { key: elsewhere.keys.admin })).status).toBe(404)
    expect((await api.client.delete(`/silences/${silence.id}`, { key: elsewhere.keys.admin })).status).toBe(404)
    expect((await api.client.get('/silences', { key: elsewhere.keys.admin })).body.silences).toEqual([])
    expect((await create({}, api.keys.read)).status).toBe(403)
    const bound = (await api.client.post('/api-keys', { name: 'b', scope: 'write', project_id: project.id })).body.key
    expect((await create({ project_id: undefined }, bound)).body.project_id).toBe(project.id)
    expect((await create({}, bound)).status).toBe(404)
    expect((await api.client.get(`/silences/${silence.id}`, { key: bound })).status).toBe(404)
  })

  it(`is one of at most ${MAX_SILENCES} that have not ended`, async () => {
    const { body: project } = await api.client.post('/projects', { name: 'Full' })
    const { body: first } = await create({ project_id: project.id })
    await api.database.query(
      `insert into silences (id, organization_id, project_id, starts_at, ends_at, comment, created_by, created_at)
        select gen_random_uuid(), organization_id, project_id, starts_at, case when n = 0 then now() - interval '1 s' else ends_at end,
          comment, created_by, created_at from silences, generate_series(0, $2::int) n where id = $1`,
      [first.id, MAX_SILENCES - 2],
    )
    expect((await create({ project_id: project.id })).status).toBe(201)
    const { status, body } = await create({ project_id: project.id })
    expect([status, body.error]).toEqual([
      409,
      `the project has ${MAX_SILENCES} silences that have not ended, the maximum: remove one first`,
    ])
  })
})

describe('while it holds', () => {
  it('nothing is sent, which is said with the silence; removed, the check that is down is notified at once', async () => {
    const { body: project } = await api.client.post('/projects', { name: 'Quiet' })
    await api.addChannel({ project_id: project.id })
    const check = await api.addCheck({ project_id: project.id })
    const { body: silence } = await create({ project_id: project.id, check_id: check.id })
    await api.ping(check.public_id, { type: 'fail', exitCode: 3 })
    const [held] = await deliveries(check.id)
    expect(held).toMatchObject({
      status: 'suppressed',
      reason: 'silenced',
      cause: { kind: 'silence', id: silence.id },
      type: 'check.down',
    })
    await evaluate(api, check.id)
    expect(await deliveries(check.id)).toHaveLength(1)
    await api.client.delete(`/silences/${silence.id}`)
    const { rows: due } = await api.database.query(
      'select wake_at <= now() as due from check_states s join checks c on c.key = s.check_key where c.id = $1',
      [check.id],
    )
    expect(due).toEqual([{ due: true }])
    await evaluate(api, check.id)
    const [, sent] = await deliveries(check.id)
    expect(sent).toMatchObject({ status: 'pending', reason: null, type: 'check.down' })
    const { rows } = await api.database.query('select data from events where id = $1', [sent.event_id])
    expect((rows[0] as { data: object }).data).toMatchObject({ silenced_from: silence.starts_at, reason: 'failed' })
    await api.ping(check.public_id)
    expect((await deliveries(check.id)).map(({ status }: { status: string }) => status)).toEqual([
      'suppressed',
      'pending',
      'pending',
    ])
  })

  it('a check of another tag is notified, and one that loses the tag is at once', async () => {
    const { body: project } = await api.client.post('/projects', { name: 'Tagged' })
    await api.addChannel({ project_id: project.id })
    const covered = await api.addCheck({ project_id: project.id, tags: ['db'] })
    const other = await api.addCheck({ project_id: project.id, tags: ['web'] })
    await create({ project_id: project.id, tag: 'db' })
    for (const check of [covered, other]) await api.ping(check.public_id, { type: 'fail', exitCode: 3 })
    const statuses = async (id: string) => (await deliveries(id)).map(({ status }: { status: string }) => status)
    expect([...new Set(await statuses(other.id))]).toEqual(['pending'])
    expect([...new Set(await statuses(covered.id))]).toEqual(['suppressed'])
    await api.client.patch(`/checks/${covered.id}`, { tags: ['web'] })
    const { rows } = await api.database.query(
      'select wake_at <= now() as due from check_states s join checks c on c.key = s.check_key where c.id = $1',
      [covered.id],
    )
    expect(rows).toEqual([{ due: true }])
    await evaluate(api, covered.id)
    expect([...new Set((await statuses(covered.id)).slice(-1))]).toEqual(['pending'])
  })

  it('a test of a channel, and an acknowledgement, are sent', async () => {
    const channel = await api.addChannel({ name: 'Tested' })
    const check = await api.addCheck()
    await create({ check_id: check.id })
    expect((await api.client.post(`/channels/${channel.id}/test`)).status).toBe(202)
    await api.ping(check.public_id, { type: 'fail', exitCode: 3 })
    expect((await api.client.post(`/checks/${check.id}/acknowledge`)).status).toBe(200)
  })
})
