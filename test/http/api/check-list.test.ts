import { beforeEach, describe, expect, it } from 'vitest'
import { CHECK_SORTS } from '../../../src/domain/check-order.ts'
import { LABEL_NAME_RULE, LABEL_VALUE_RULE } from '../../../src/domain/labels.ts'
import { HOUR } from '../../support/builders.ts'
import { addManyChecks } from '../../support/check.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

/** A project of its own for each test. */
let project: string

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const created = (fields: object = {}) => api.addCheck({ project_id: project, ...fields })
const list = (query = '') => api.client.get(`/checks?project_id=${project}${query}`)

describe('listing checks', () => {
  it('gives whole checks, oldest first', async () => {
    const first = await created({ name: 'b', description: 'Dumps the shop.', labels: { team: 'shop' }, tags: ['a'] })
    const second = await created({ name: 'a', schedule: '@daily', armed: true, max_runtime_seconds: 60, channels: [] })
    expect(second.due_at).not.toBeNull()
    const { body, status } = await list()
    expect(status).toBe(200)
    expect(body).toEqual({ checks: [first, second], next_cursor: null })
  })

  it('shows the right to ping from the scope write on', async () => {
    const { public_id, ping_url } = await created()
    const shown = async (scope: 'read' | 'write') =>
      (await api.client.get(`/checks?project_id=${project}`, { key: api.keys[scope] })).body.checks
    expect(await shown('write')).toMatchObject([{ public_id, ping_url }])
    expect(await shown('read')).toMatchObject([{ public_id: null, ping_url: null }])
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
    expect(await found('&status=late&status=up')).toEqual(['Database backup'])
    expect(await found('&status=new&status=up&status=new')).toEqual(['Database backup', '100% sure_thing'])
    expect(await found('&slug=database-backup')).toEqual(['Database backup'])
    expect(await found('&slug=Not%20a%20slug')).toEqual([])
    expect(await found('&q=BACK')).toEqual(['Database backup'])
    expect(await found('&q=%25')).toEqual(['100% sure_thing'])
  })

  it('filters by the last outcome', async () => {
    const [warned, failed, up, mended] = [
      await created({ name: 'warned' }),
      await created({ name: 'failed' }),
      await created({ name: 'up' }),
      await created({ name: 'mended' }),
    ]
    await created({ name: 'new' })
    await api.ping(warned.public_id, { type: 'warn', exitCode: null })
    await api.ping(failed.public_id, { type: 'fail', exitCode: null })
    for (const { public_id } of [up, mended]) await api.ping(public_id)
    await api.ping(mended.public_id, { type: 'warn', exitCode: null })
    await api.ping(mended.public_id)
    const found = async (query: string) => (await list(query)).body.checks.map(({ name }: { name: string }) => name)
    expect(await found('&outcome=warn')).toEqual(['warned'])
    expect(await found('&outcome=success')).toEqual(['up', 'mended'])
    expect(await found('&outcome=warn&outcome=fail')).toEqual(['warned', 'failed'])
    expect(await found('&outcome=warn&status=down')).toEqual([])
    expect(await found('&outcome=warn&status=up')).toEqual(['warned'])
  })

  it('filters by labels, all of them, and by who manages the check', async () => {
    await created({ name: 'shop', labels: { team: 'shop', tier: '' } })
    await created({ name: 'web', labels: { team: 'web', 'example.com/tier': '1' } })
    await created({ name: 'none' })
    await api.database.query(`update checks set managed_by = 'kubernetes' where project_id = $1 and name = 'web'`, [
      project,
    ])
    const found = async (query: string) => (await list(query)).body.checks.map(({ name }: { name: string }) => name)
    expect(await found('&label=team=shop')).toEqual(['shop'])
    expect(await found('&label=team=web&label=example.com/tier=1')).toEqual(['web'])
    expect(await found('&label=team=web&label=tier=1')).toEqual([])
    expect(await found('&label=team=web&label=team=shop')).toEqual([])
    expect(await found('&label=tier=')).toEqual(['shop'])
    expect(await found('&label=team=')).toEqual([])
    expect(await found('&label=team%3Dshop')).toEqual(['shop'])
    expect(await found('&managed_by=kubernetes')).toEqual(['web'])
    expect(await found('&managed_by=api&label=team=shop&status=new')).toEqual(['shop'])
    expect(await found(`${'&label=team=shop'.repeat(32)}`)).toEqual(['shop'])
  })

  it.each([
    ['', 'project_id is required'],
    ['project_id=', 'project_id must be a UUID'],
    ['project_id=%ff', 'project_id must be a UUID'],
    ['project_id=$&project_id=$', 'project_id is given more than once'],
    ['project_id=$&limit=0', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=1.5', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=', 'limit must be an integer of at least 1'],
    ['project_id=$&limit=1&limit=2', 'limit is given more than once'],
    ['project_id=$&cursor=x', 'cursor must be the next_cursor of an earlier response'],
    ['project_id=$&status=UP', 'status must be one of new, up, late, down, paused'],
    ['project_id=$&status=up&status=UP', 'status must be one of new, up, late, down, paused'],
    ['project_id=$&outcome=log', 'outcome must be one of success, warn, fail'],
    ['project_id=$&outcome=warn&outcome=', 'outcome must be one of success, warn, fail'],
    ['project_id=$&label=team', 'label must be name=value'],
    ['project_id=$&label=', 'label must be name=value'],
    ['project_id=$&label==shop', 'label must be name=value'],
    ['project_id=$&label=a%20b=shop', `label ${LABEL_NAME_RULE}`],
    ['project_id=$&label=__proto__=shop', `label ${LABEL_NAME_RULE}`],
    ['project_id=$&label=team=a=b', `label ${LABEL_VALUE_RULE}`],
    [`project_id=$${'&label=a=b'.repeat(33)}`, 'label must be given at most 32 times'],
    ['project_id=$&managed_by=me', 'managed_by must be one of api, kubernetes'],
    ['project_id=$&managed_by=api&managed_by=api', 'managed_by is given more than once'],
    ['project_id=$&sort=size', `sort must be one of ${CHECK_SORTS.join(', ')}`],
    ['project_id=$&sort=name&sort=name', 'sort is given more than once'],
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

describe('the order of checks', () => {
  const at = (hours: number) => new Date(Date.now() + hours * HOUR).toISOString()
  /** The columns of the states, by the names of the checks. */
  const set = async (rows: Record<string, Record<string, unknown>>) => {
    for (const [name, columns] of Object.entries(rows)) {
      const setters = Object.keys(columns).map((column, index) => `${column} = $${index + 3}`)
      await api.database.query(
        `update check_states s set ${setters} from checks c
          where c.key = s.check_key and c.project_id = $1 and c.name = $2`,
        [project, name, ...Object.values(columns)],
      )
    }
  }
  const namesOf = (checks: readonly { name: string }[]) => checks.map(({ name }) => name)
  /** All names, in pages of two. */
  async function read(sort: string): Promise<string[]> {
    const names: string[] = []
    let cursor = ''
    do {
      const { body } = await list(`&sort=${sort}&limit=2${cursor}`)
      names.push(...namesOf(body.checks))
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    return names
  }
  beforeEach(async () => {
    for (const name of ['delta', 'Alpha', 'charlie', 'bravo', 'alpha']) await created({ name })
  })

  it('is that of creation and of the name, and their reverse', async () => {
    expect(await read('created')).toEqual(['delta', 'Alpha', 'charlie', 'bravo', 'alpha'])
    expect(await read('-created')).toEqual(['alpha', 'bravo', 'charlie', 'Alpha', 'delta'])
    expect(await read('name')).toEqual(['Alpha', 'alpha', 'bravo', 'charlie', 'delta'])
    expect(await read('-name')).toEqual(['delta', 'charlie', 'bravo', 'alpha', 'Alpha'])
  })

  it('is that of the status, what needs attention first', async () => {
    const up = { status: 1, expected_at: at(1), due_at: at(2) }
    const late = { ...up, expected_at: at(-1) }
    await set({ delta: { status: 2 }, Alpha: late, charlie: up, bravo: { status: 3 } })
    expect(await read('status')).toEqual(['delta', 'Alpha', 'alpha', 'charlie', 'bravo'])
    expect(await read('-status')).toEqual(['bravo', 'charlie', 'alpha', 'Alpha', 'delta'])
  })

  it('is that of the last ping, with what was never pinged at one end', async () => {
    await set({ delta: { last_ping_at: at(-1) }, charlie: { last_ping_at: at(-2) }, alpha: { last_ping_at: at(-3) } })
    const never = ['Alpha', 'bravo']
    expect(await read('last_ping')).toEqual([...never, 'alpha', 'charlie', 'delta'])
    expect(await read('-last_ping')).toEqual(['delta', 'charlie', 'alpha', ...never.toReversed()])
  })

  it('is that of due_at, as it is shown, with what is not due at one end', async () => {
    const running = JSON.stringify([{ id: null, startedAt: Date.now(), deadlineAt: Date.now() + HOUR }])
    await set({
      delta: { due_at: at(3) },
      Alpha: { due_at: at(4), runs: running },
      charlie: { due_at: at(2) },
      bravo: { due_at: at(0.5), status: 2 },
    })
    expect(await read('due')).toEqual(['Alpha', 'charlie', 'delta', 'bravo', 'alpha'])
    const { checks } = (await list('&sort=-due')).body
    expect(namesOf(checks)).toEqual(['alpha', 'bravo', 'delta', 'charlie', 'Alpha'])
    expect(checks.slice(0, 2)).toMatchObject([{ due_at: null }, { due_at: null }])
  })

  it('belongs to its cursors', async () => {
    for (const [sort, other] of [
      ['created', '-created'],
      ['name', 'created'],
      ['due', 'last_ping'],
    ]) {
      const { next_cursor } = (await list(`&limit=2&sort=${sort}`)).body
      const { status, body } = await list(`&sort=${other}&cursor=${next_cursor}`)
      const message = `must be the next_cursor of an earlier response with the same sort, not with sort=${sort}`
      expect([status, body.details]).toEqual([400, [{ path: 'query.cursor', message }]])
    }
    const { next_cursor } = (await list('&limit=2')).body
    expect(namesOf((await list(`&sort=created&cursor=${next_cursor}`)).body.checks)[0]).toBe('charlie')
    const { status, body } = await list(`&cursor=${next_cursor.slice(0, -1)}`)
    expect([status, body.error]).toEqual([400, 'cursor must be the next_cursor of an earlier response'])
  })
})

describe('a page of large checks', () => {
  const LIMIT = { least: 800_000, most: 1_100_000 }

  it('ends near a megabyte, and the next one follows', async () => {
    await addManyChecks(api, project, { to: 250, description: 'ä'.repeat(4_000) })
    const sizes: number[] = []
    const names = new Set<string>()
    let cursor = ''
    do {
      const { body } = await list(`&sort=-name${cursor}`)
      sizes.push(Buffer.byteLength(JSON.stringify(body)))
      for (const { name } of body.checks) names.add(name)
      cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
    } while (cursor !== '')
    expect(names.size).toBe(250)
    expect(sizes).toHaveLength(3)
    for (const size of sizes) expect(size).toBeLessThan(LIMIT.most)
    for (const size of sizes.slice(0, -1)) expect(size).toBeGreaterThan(LIMIT.least)
  })
})

describe('a key that is bound to a project', () => {
  it('sees that project and nothing else', async () => {
    const inside = await created()
    const outside = await api.addCheck({ name: 'elsewhere' })
    const { key } = (await api.client.post('/api-keys', { name: 'bound', scope: 'admin', project_id: project })).body
    expect((await api.client.get(`/checks/${inside.id}`, { key })).status).toBe(200)
    expect((await api.client.get(`/checks/${outside.id}`, { key })).body).toMatchObject({
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
  const search = async (query: string) => {
    const { checks, ...rest } = (await list(`&limit=2&${query}`)).body
    return { slugs: checks.map(({ slug }: { slug: string }) => slug), ...rest }
  }

  it('fits an index, and finds every match however few letters it has', async () => {
    await addManyChecks(api, project, { to: LIMIT })
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
    await addManyChecks(api, project, { from: LIMIT + 1, to: LIMIT + 2 })
    expect(await search('q=B-10002')).toEqual({ slugs: ['job-10002'], next_cursor: null })
    expect(await search('q=b-99')).toEqual({ slugs: ['job-99', 'job-990'], next_cursor: expect.any(String) })
    // Two letters are too few for the index.
    await api.database.query(`update checks set name = 'zz' where slug = 'job-10002'`)
    expect(await search('q=zZ')).toEqual({ slugs: ['job-10002'], next_cursor: null })
    expect(await search('q=zz-')).toEqual({ slugs: [], next_cursor: null })
  })
})
