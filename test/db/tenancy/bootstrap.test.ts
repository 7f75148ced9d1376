import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logIn } from '../../../src/auth/log-in.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { lockBootstrap } from '../../../src/store/tenancy/organizations.ts'
import { bootstrap } from '../../../src/tenancy/bootstrap.ts'
import { createTestDatabase, untilWaiting } from '../../support/database.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { use } from '../../support/use.ts'
import { anOrganization, manualClock, PASSWORD, START, tokensOf } from '../auth/fixtures.ts'

const EMAIL = 'admin@example.com'
const API_KEY = `hbk_chosen_${'a'.repeat(40)}`

const clock = manualClock()

const test = use(createTestDatabase)
beforeEach(() => test.clear())

const context = () => ({ database: test.database, clock, passwordCost: LOW_COST })
/** Everything that a bootstrap writes, without ids. */
const readAll = async () => {
  const read = async (sql: string) => (await test.database.query<object>(sql)).rows
  return {
    organizations: await read('select name from organizations'),
    projects: await read('select name, slug from projects'),
    users: await read('select email, scope from users'),
    apiKeys: await read('select name, prefix, scope, project_id, expires_at from api_keys'),
  }
}
const MADE = {
  organizations: [{ name: 'default' }],
  projects: [{ name: 'Default', slug: 'default' }],
  users: [{ email: EMAIL, scope: 'admin' }],
}

describe('the first start', () => {
  it('generates what is not given', async () => {
    const { projectId, made } = await bootstrap(context(), { email: EMAIL })
    expect(made).toEqual({
      email: EMAIL,
      password: expect.stringMatching(/^[0-9A-Za-z]{24}$/),
      apiKey: expect.stringMatching(/^hbk_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}$/),
    })
    const { password, apiKey } = made!
    const prefix = apiKey.split('_')[1]
    const key = { name: 'bootstrap', prefix, scope: 'admin', project_id: null, expires_at: null }
    expect(await readAll()).toEqual({ ...MADE, apiKeys: [key] })
    const { rows } = await test.database.query<{ id: string }>('select id from projects')
    expect(rows).toEqual([{ id: projectId }])

    const caller = await createAuthenticate(context(), tokensOf(clock))(`Bearer ${apiKey}`, '192.0.2.1')
    expect(caller).toMatchObject({ kind: 'api_key', scope: 'admin', projectId: null })
    const login = { email: EMAIL, password, address: '192.0.2.1' }
    expect(await logIn(context(), tokensOf(clock), login)).toMatchObject({ expiresIn: 900 })
  })

  it('uses what is given', async () => {
    const projectId = randomUUID()
    const given = { email: EMAIL, password: PASSWORD, apiKey: API_KEY, projectId: projectId.toUpperCase() }
    const made = { email: EMAIL, password: PASSWORD, apiKey: API_KEY }
    expect(await bootstrap(context(), given)).toEqual({ projectId, made })
    const caller = await createAuthenticate(context(), tokensOf(clock))(`Bearer ${API_KEY}`, '192.0.2.1')
    expect(caller).toMatchObject({ kind: 'api_key', scope: 'admin' })
    const login = { email: EMAIL, password: PASSWORD, address: '192.0.2.1' }
    expect(await logIn(context(), tokensOf(clock), login)).toMatchObject({ expiresIn: 900 })
  })

  it('leaves no plain text in the database', async () => {
    const { made } = await bootstrap(context(), { email: EMAIL })
    const { rows } = await test.database.query<{ row: string }>(
      'select u::text as row from users u union all select k::text from api_keys k',
    )
    expect(rows).toHaveLength(2)
    for (const { row } of rows) {
      expect(row).not.toContain(made!.password)
      expect(row).not.toContain(made!.apiKey.split('_')[2])
    }
  })

  it('of several replicas at the same time makes one organization, and one of them returns the secrets', async () => {
    // Patient: on a busy machine the last one needs longer to come to the lock than a service would wait at it.
    const databases = Array.from({ length: 4 }, () =>
      createDatabase({ url: test.url, name: 'replica', connections: 1, patient: true }),
    )
    const [holder, ...replicas] = databases
    // All of them have found no organization, and wait, before the first may make one.
    const { starting } = await holder!.transaction(async (tx) => {
      await lockBootstrap(tx)
      const starting = replicas.map((database) => bootstrap({ database, clock }, { email: EMAIL }))
      await untilWaiting(test, starting.length)
      return { starting }
    })
    const results = await Promise.all(starting)
    await Promise.all(databases.map((database) => database.close()))
    expect(new Set(results.map(({ projectId }) => projectId)).size).toBe(1)
    const reports = results.filter(({ made }) => made !== null)
    expect(reports).toHaveLength(1)
    const { apiKeys, ...rest } = await readAll()
    expect(rest).toEqual(MADE)
    expect(apiKeys).toMatchObject([{ prefix: reports[0]!.made!.apiKey.split('_')[1] }])
  })
})

describe('a later start', () => {
  it('changes nothing, whatever is given', async () => {
    const { projectId } = await bootstrap(context(), { email: EMAIL })
    const before = await readAll()
    const given = { email: 'other@example.com', password: PASSWORD, apiKey: API_KEY, projectId: randomUUID() }
    expect(await bootstrap(context(), given)).toEqual({ projectId, made: null })
    expect(await bootstrap(context(), { email: 'not looked at' })).toEqual({ projectId, made: null })
    expect(await readAll()).toEqual(before)
  })

  it('returns the oldest project of the oldest organization', async () => {
    const younger = await anOrganization(test.database, 'younger')
    await younger.addProject('first of all', START - 9_000)
    await test.database.query('update organizations set created_at = created_at + interval $$1 hour$$')
    const older = await anOrganization(test.database, 'older')
    await older.addProject('second', START + 1_000)
    const oldest = await older.addProject('first', START)
    expect(await bootstrap(context(), { email: EMAIL })).toEqual({ projectId: oldest, made: null })
  })

  it('makes only a project when the organization has none', async () => {
    const organization = await anOrganization(test.database)
    const projectId = randomUUID()
    expect(await bootstrap(context(), { email: EMAIL, projectId })).toEqual({ projectId, made: null })
    expect(await readAll()).toEqual({
      organizations: [{ name: 'acme' }],
      projects: [{ name: 'Default', slug: 'default' }],
      users: [],
      apiKeys: [],
    })
    const { rows } = await test.database.query<{ id: string }>('select organization_id as id from projects')
    expect(rows).toEqual([{ id: organization.id }])
  })
})
