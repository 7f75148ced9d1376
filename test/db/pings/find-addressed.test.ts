import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFindAddressed, type FindAddressedOptions } from '../../../src/checks/ping/find-addressed.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { AppError, unavailable } from '../../../src/domain/errors.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { insertPushToken } from '../../../src/store/checks/push-tokens.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createProjectKey, revokeProjectKey } from '../../../src/tenancy/project-keys.ts'
import { takeCall, takeCreation } from '../../../src/tenancy/rate-limit.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addProject, addTenant, useFixture } from '../checks/fixture.ts'

const fixture = useFixture()

/** Replicas, each with its own connections. */
let databases: Database[]
let created: string[]
let pingKey: string

function createReplica(limits: Partial<Pick<FindAddressedOptions, 'countCreation' | 'maxChecks'>> = {}) {
  const database = createDatabase({
    url: fixture.url,
    name: 'replica',
    connections: 2,
    genericPlans: true,
    looksUp: true,
  })
  databases.push(database)
  const countCreation = async (projectId: string) => void created.push(projectId)
  return createFindAddressed({ database, context: fixture.context, now: systemClock.now, countCreation, ...limits })
}

beforeEach(() => {
  databases = []
  created = []
})
const one = useEach(createReplica)
const two = useEach(createReplica)
beforeEach(async () => {
  pingKey = await newKey()
})
afterEach(() => Promise.all(databases.map((database) => database.close())))

const newKey = (project = fixture.tenant.project) => createProjectKey(fixture.context, fixture.tenant, project, 'ping')
const countChecks = async () =>
  (await fixture.database.query<{ count: number }>('select count(*) from checks')).rows[0]!.count

describe('the check of a ping by name', () => {
  it('is that of the project of the key', async () => {
    const other = await addProject(fixture, fixture.tenant)
    const otherKey = await newKey(other)
    const ours = await addCheck(fixture, fixture.tenant, { slug: 'job' })
    const theirs = await addCheck(fixture, fixture.tenant, { slug: 'job', projectId: other })
    const names = [pingKey, otherKey, 'x'.repeat(22)].map((key) => ({ pingKey: key, slug: 'job' }))
    expect(await Promise.all(names.map((name) => one.byName(name, false)))).toEqual([
      { publicId: ours.publicId, isNew: false },
      { publicId: theirs.publicId, isNew: false },
      null,
    ])
  })

  it('is never one of before: each change counts at once on every replica', async () => {
    const name = { pingKey, slug: 'job' }
    const both = async (of = name) => Promise.all([one.byName(of, false), two.byName(of, false)])
    const found = (publicId: string) => Array(2).fill({ publicId, isNew: false })
    const first = await addCheck(fixture, fixture.tenant, { slug: 'job' })
    expect(await both()).toEqual(found(first.publicId))
    await fixture.database.query(`update checks set slug = 'renamed' where key = $1`, [first.key])
    expect(await both()).toEqual([null, null])
    expect(await both({ pingKey, slug: 'renamed' })).toEqual(found(first.publicId))
    const second = await addCheck(fixture, fixture.tenant, { slug: 'job' })
    expect(await both()).toEqual(found(second.publicId))
    await removeCheck(fixture.context, fixture.tenant, second.id)
    expect(await both()).toEqual([null, null])
    const third = await addCheck(fixture, fixture.tenant, { slug: 'job' })
    expect(await both()).toEqual(found(third.publicId))
    const next = await newKey()
    expect(await both()).toEqual([null, null])
    expect(await both({ pingKey: next, slug: 'job' })).toEqual(found(third.publicId))
    await revokeProjectKey(fixture.context, fixture.tenant, fixture.tenant.project, 'ping')
    expect(await both({ pingKey: next, slug: 'job' })).toEqual([null, null])
  })

  it('is created once by pings that arrive at the same time, on several replicas', async () => {
    const asked = Array.from({ length: 20 }, (_, place) =>
      (place % 2 ? one : two).byName({ pingKey, slug: 'job' }, true),
    )
    const found = await Promise.all(asked)
    expect(new Set(found.map((check) => check?.publicId)).size).toBe(1)
    expect(found.filter((check) => check?.isNew)).toHaveLength(1)
    expect(await countChecks()).toBe(1)
  })

  it('is created under the limit of creations of the project, and found above it', async () => {
    const limited = createReplica({ countCreation: (projectId) => takeCreation(fixture.context, projectId, 10) })
    const slugs = Array.from({ length: 10 }, (_, place) => `job-${place}`)
    for (const slug of slugs) expect(await limited.byName({ pingKey, slug }, true)).toMatchObject({ isNew: true })
    await expect(limited.byName({ pingKey, slug: 'more' }, true)).rejects.toMatchObject({
      code: 'too_many_requests',
      retryAfterSeconds: expect.any(Number),
      message: expect.stringContaining('pings have created 10 checks of this project within a minute'),
    })
    expect(await countChecks()).toBe(slugs.length)
    expect(await limited.byName({ pingKey, slug: slugs[0]! }, true)).toMatchObject({ isNew: false })
    expect(await limited.byName({ pingKey, slug: 'more' }, false)).toBeNull()

    const another = await newKey(await addProject(fixture, fixture.tenant))
    expect(await limited.byName({ pingKey: another, slug: 'more' }, true)).toMatchObject({ isNew: true })
    const { organizationId } = fixture.tenant
    expect(await takeCall(fixture.context, organizationId, 'read', 2), 'no call is used up').toMatchObject({
      isAllowed: true,
      remaining: 0,
    })
  })

  it('is created while the project has fewer checks than the limit, of whichever kind, and found above it', async () => {
    const limited = createReplica({ maxChecks: 2 })
    await addCheck(fixture, fixture.tenant, { slug: 'of-the-api' })
    expect(await limited.byName({ pingKey, slug: 'job' }, true)).toMatchObject({ isNew: true })
    await expect(limited.byName({ pingKey, slug: 'more' }, true)).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('the project has 2 checks or more'),
    })
    for (const slug of ['job', 'of-the-api'])
      expect(await limited.byName({ pingKey, slug }, true)).toMatchObject({ isNew: false })
    expect(await limited.byName({ pingKey, slug: 'more' }, false)).toBeNull()
    const another = await newKey(await addProject(fixture, fixture.tenant))
    expect(await limited.byName({ pingKey: another, slug: 'more' }, true)).toMatchObject({ isNew: true })

    await addCheck(fixture, fixture.tenant, { slug: 'third-of-the-api' })
    expect(await countChecks()).toBe(4)
    const { id } = await addCheck(fixture, fixture.tenant, { slug: 'to-be-removed' })
    await removeCheck(fixture.context, fixture.tenant, id)
    await expect(limited.byName({ pingKey, slug: 'more' }, true)).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('is not created beyond the limit of checks by pings at the same time, on several replicas', async () => {
    const replicas = [createReplica({ maxChecks: 3 }), createReplica({ maxChecks: 3 })]
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, place) =>
        replicas[place % 2]!.byName({ pingKey, slug: `job-${place % 6}` }, true).then(
          () => 'found',
          ({ code }) => code,
        ),
      ),
    )
    expect(await countChecks()).toBe(3)
    // Each of the three was asked for twice.
    expect(outcomes.sort()).toEqual([...Array(6).fill('forbidden'), ...Array(6).fill('found')])
  })

  it('counts a creation for the project of the key', async () => {
    const other = await addTenant(fixture, 'theirs')
    const otherKey = await createProjectKey(fixture.context, other, other.project, 'ping')
    await one.byName({ pingKey: otherKey, slug: 'job' }, true)
    await one.byName({ pingKey: otherKey, slug: 'job' }, true)
    expect(created).toEqual([other.project])
  })
})

describe('a look-up', () => {
  it('takes all that wait at once, of any kind and number', async () => {
    const checks = await Promise.all(['a', 'b'].map((slug) => addCheck(fixture, fixture.tenant, { slug })))
    await fixture.database.transaction((tx) => insertPushToken(tx, 'token', checks[0]!.key))
    const asked = Array.from({ length: 1_200 }, (_, place) => {
      const slug = ['a', 'b', 'c'][place % 3]!
      return one.byName({ pingKey, slug }, false).then((found) => found?.publicId ?? null)
    })
    const tokens = ['token', 'unknown', 'token'].map((token) => one.byToken(token))
    const ids = [checks[0]!.publicId, checks[1]!.publicId, null]
    expect(await Promise.all(asked)).toEqual(asked.map((_, place) => ids[place % 3]))
    expect(await Promise.all(tokens)).toEqual([ids[0], null, ids[0]])
  })

  it('fails with `unavailable` while the database cannot be asked', async () => {
    const away = createDatabase({ url: 'postgres://x@127.0.0.1:1/x', name: 'away', connections: 1 })
    databases.push(away)
    const { byName, byToken } = createFindAddressed({
      database: away,
      context: fixture.context,
      now: systemClock.now,
      countCreation: async () => {},
    })
    for (const asked of [byName({ pingKey, slug: 'job' }, true), byToken('token')]) {
      const error = await asked.catch((error) => error)
      expect(error).toBeInstanceOf(AppError)
      expect(error.code).toBe('unavailable')
    }
  })

  it('of what was found before finds the same while the database is away, and what is true once it answers again', async () => {
    const { publicId } = await addCheck(fixture, fixture.tenant, { slug: 'job' })
    const pushed = await addCheck(fixture, fixture.tenant, { slug: 'pushed' })
    await fixture.database.transaction((tx) => insertPushToken(tx, 'token', pushed.key))
    const database = createDatabase({ url: fixture.url, name: 'replica', connections: 1, looksUp: true })
    databases.push(database)
    let isAway = false
    const session: Database['session'] = (use) => (isAway ? Promise.reject(unavailable()) : database.session(use))
    const { byName, byToken } = createFindAddressed({
      database: { ...database, session },
      context: fixture.context,
      now: systemClock.now,
      countCreation: async () => {},
    })
    const name = { pingKey, slug: 'job' }
    const ask = () => Promise.all([byName(name, true), byToken('token')])
    const before = [{ publicId, isNew: false }, pushed.publicId]
    expect(await ask()).toEqual(before)
    isAway = true
    await revokeProjectKey(fixture.context, fixture.tenant, fixture.tenant.project, 'ping')
    await removeCheck(fixture.context, fixture.tenant, pushed.id)
    expect(await ask()).toEqual(before)
    isAway = false
    expect(await ask()).toEqual([null, null])
    isAway = true
    for (const asked of [byName(name, true), byToken('token')])
      await expect(asked).rejects.toMatchObject({ code: 'unavailable' })
  })
})
