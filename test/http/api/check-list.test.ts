import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApi, type TestApi, type TestOrganization } from '../../support/service.ts'

let api: TestApi
let foreign: TestOrganization
/** A project of its own for each test. */
let project: string

beforeAll(async () => {
  api = await startTestApi()
  foreign = await api.addOrganization()
})
afterAll(() => api.close())
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const created = async (fields: object = {}) => {
  const { status, body } = await api.client.post('/checks', { project_id: project, name: 'Nightly backup', ...fields })
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}
const list = (query = '') => api.client.get(`/checks?project_id=${project}${query}`)

describe('listing checks', () => {
  it('gives the fields of the interface and a few more, oldest first', async () => {
    const first = await created({ name: 'b' })
    const second = await created({ name: 'a', schedule: '@daily', armed: true })
    expect(second.due_at).not.toBeNull()
    const { body, status } = await list()
    expect(status).toBe(200)
    expect(body).toEqual({
      next_cursor: null,
      checks: [first, second].map(
        ({
          id,
          name,
          slug,
          status,
          period_seconds,
          grace_seconds,
          last_ping_at,
          schedule,
          time_zone,
          running,
          ...more
        }) => ({
          id,
          name,
          slug,
          status,
          status_since: more.status_since,
          status_reason: more.status_reason,
          status_detail: null,
          period_seconds,
          grace_seconds,
          last_ping_at,
          expected_at: more.expected_at,
          due_at: more.due_at,
          schedule,
          time_zone,
          running,
          managed_by: 'api',
        }),
      ),
    })
  })

  it('is empty for a project without checks', async () => {
    expect((await list()).body).toEqual({ checks: [], next_cursor: null })
  })

  it('goes on where a page ended, whatever is removed meanwhile', async () => {
    const names = ['1', '2', '3', '4', '5']
    for (const name of names) await created({ name })
    const first = await list('&limit=2')
    expect(first.body.checks.map(({ name }: { name: string }) => name)).toEqual(['1', '2'])
    await api.client.delete(`/checks/${first.body.checks[1].id}`)
    const second = await list(`&limit=2&cursor=${first.body.next_cursor}`)
    expect(second.body.checks.map(({ name }: { name: string }) => name)).toEqual(['3', '4'])
    const third = await list(`&limit=2&cursor=${second.body.next_cursor}`)
    expect(third.body).toEqual({ checks: [expect.objectContaining({ name: '5' })], next_cursor: null })
  })

  it('a cursor of another list is rejected with its name', async () => {
    for (const name of ['1', '2']) await created({ name })
    const { next_cursor } = (await list('&limit=1')).body
    const { body } = await api.client.get(`/projects?cursor=${next_cursor}`)
    const message = 'must be the next_cursor of an earlier response of this list, not of the list checks'
    const details = [{ path: 'query.cursor', message }]
    expect(body).toEqual({ error: `cursor ${message}`, code: 'invalid_request', details })
  })

  it('filters by status, slug and words', async () => {
    const up = await created({ name: 'Database backup' })
    await created({ name: '100% sure_thing' })
    await api.ping(up.public_id)
    const found = async (query: string) => (await list(query)).body.checks.map(({ name }: { name: string }) => name)
    expect(await found('&status=up')).toEqual(['Database backup'])
    expect(await found('&status=late')).toEqual([])
    expect(await found('&slug=database-backup')).toEqual(['Database backup'])
    expect(await found('&slug=Not%20a%20slug')).toEqual([])
    expect(await found('&q=BACK')).toEqual(['Database backup'])
    expect(await found('&q=%25')).toEqual(['100% sure_thing'])
  })

  it.each([
    ['', 'project_id is required'],
    ['project_id=', 'project_id must be a UUID'],
    ['project_id=x', 'project_id must be a UUID'],
    ['project_id=%ff', 'project_id must be a UUID'],
    ['project_id=$&project_id=$', 'project_id is given more than once'],
    ['project_id=$&limit=0', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=-1', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=1.5', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=1e3', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=x', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=1&limit=2', 'limit is given more than once'],
    ['project_id=$&cursor=x', 'cursor must be the next_cursor of an earlier response'],
    ['project_id=$&cursor=', 'cursor must be the next_cursor of an earlier response'],
    ['project_id=$&status=UP', 'status must be one of new, up, late, down, paused'],
    ['project_id=$&status=', 'status must be one of new, up, late, down, paused'],
    ['project_id=$&q=%00', 'q must be text of at most 100 characters, without control characters'],
    ['project_id=$&slug=%00', 'slug must be text of at most 100 characters, without control characters'],
  ])('refuses ?%s', async (query, error) => {
    const { status, body } = await api.client.get(`/checks?${query.replaceAll('$', project)}`)
    expect({ status, error: body.error }).toEqual({ status: 400, error })
    expect(body.details).toEqual([
      { path: `query.${error.split(' ')[0]}`, message: error.slice(error.indexOf(' ') + 1) },
    ])
  })

  it.each(['1001', '99999999999999999999999', '0001000'])('takes limit=%s as 1000', async (limit) => {
    expect((await list(`&limit=${limit}`)).status).toBe(200)
  })

  it('knows neither an unknown nor a foreign project', async () => {
    for (const id of ['01999999-9999-7999-8999-999999999999', foreign.project]) {
      const { status, body } = await api.client.get(`/checks?project_id=${id}`)
      expect({ status, body }).toEqual({ status: 404, body: { error: 'project not found', code: 'not_found' } })
    }
  })
})

describe('a key that is bound to a project', () => {
  it('sees that project and nothing else', async () => {
    const inside = await created()
    const outside = await api.client.post('/checks', { project_id: api.project, name: 'elsewhere' })
    const { key } = (await api.client.post('/api-keys', { name: 'bound', scope: 'admin', project_id: project })).body
    expect((await api.client.get(`/checks/${inside.id}`, { key })).status).toBe(200)
    expect((await api.client.get(`/checks/${outside.body.id}`, { key })).body).toMatchObject({
      error: 'check not found',
    })
    expect((await api.client.get(`/checks?project_id=${api.project}`, { key })).body).toMatchObject({
      error: 'project not found',
    })
    expect((await api.client.get('/projects', { key })).body.projects.map(({ id }: { id: string }) => id)).toEqual([
      project,
    ])
  })
})

describe('a search among more than 10,000 checks', () => {
  const LIMIT = 10_000
  const fill = (from: number, to: number) =>
    api.database.query(
      `with made as (
          insert into checks (id, public_id, project_id, name, slug, created_at)
          select gen_random_uuid(), gen_random_uuid(), $1, 'Job ' || n, 'job-' || n, timestamptz '2026-01-01' + n * interval '1 s'
          from generate_series($2::int, $3::int) n returning key, created_at)
        insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at)
        select key, 3600, 300, 0, created_at, created_at from made`,
      [project, from, to],
    )
  const search = async (query: string) => {
    const { checks, ...rest } = (await list(`&limit=2&${query}`)).body
    return { slugs: checks.map(({ slug }: { slug: string }) => slug), ...rest }
  }

  it('fits an index, and finds every match however few letters it has', async () => {
    await fill(1, LIMIT)
    await api.database.query('analyze checks')
    const plan = await api.database.transaction(async (tx) => {
      // At this size the planner reads the table; what counts is that the index fits the condition.
      await tx.query('set local enable_seqscan = off')
      const { rows } = await tx.query<{ 'QUERY PLAN': string }>(
        'explain select key from checks c where c.name ilike $1 or c.slug ilike $1',
        ['%b-9999%'],
      )
      return rows.map((row) => row['QUERY PLAN']).join()
    })
    expect(plan).toContain('checks_search')
    await fill(LIMIT + 1, LIMIT + 2)
    expect(await search('q=B-10002')).toEqual({ slugs: ['job-10002'], next_cursor: null })
    expect(await search('q=b-99')).toEqual({ slugs: ['job-99', 'job-990'], next_cursor: expect.any(String) })
    // Two letters are too few for the index.
    await api.database.query(`update checks set name = 'zz' where slug = 'job-10002'`)
    expect(await search('q=zZ')).toEqual({ slugs: ['job-10002'], next_cursor: null })
    expect(await search('q=zz-')).toEqual({ slugs: [], next_cursor: null })
  })
})
