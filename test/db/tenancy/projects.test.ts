import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createApiKey, listApiKeys } from '../../../src/tenancy/api-keys.ts'
import { createProject, getProject, listProjects, removeProject, updateProject } from '../../../src/tenancy/projects.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { ALL, addCheck, anOrganization, START, useOrganization } from '../auth/fixtures.ts'

const NOT_FOUND = { name: 'AppError', code: 'not_found', message: 'project not found' }
const FORBIDDEN = { name: 'AppError', code: 'forbidden' }

const { test, clock, organization: acme, context } = useOrganization(() => START + 0.125)
const other = useEach(() => anOrganization(test.database, 'other'))

const listIds = async (tenant = acme.caller) => (await listProjects(context(), tenant, ALL)).rows.map(({ id }) => id)

describe('changing a project', () => {
  it('keeps its slug', async () => {
    const made = await createProject(context(), acme.caller, { name: 'Jobs' })
    expect(await updateProject(context(), acme.caller, made.id, { name: 'Backups' })).toEqual({
      ...made,
      name: 'Backups',
    })
    expect(await updateProject(context(), acme.caller, made.id, {})).toEqual({ ...made, name: 'Backups' })
    expect(await getProject(context(), acme.caller, made.id)).toEqual({ ...made, name: 'Backups' })
  })

  it('is possible for callers that see it', async () => {
    const [own, sibling] = [await acme.addProject('own'), await acme.addProject('sibling')]
    const bound = acme.boundTo(own)
    expect(await updateProject(context(), bound, own, { name: 'Mine' })).toMatchObject({ id: own, name: 'Mine' })
    for (const [caller, id] of [
      [bound, sibling],
      [other.caller, own],
      [acme.caller, randomUUID()],
      [acme.caller, '1'],
    ] as const) {
      await expect(updateProject(context(), caller, id, { name: 'x' })).rejects.toMatchObject(NOT_FOUND)
      await expect(getProject(context(), caller, id)).rejects.toMatchObject(NOT_FOUND)
    }
  })
})

describe('creating a project', () => {
  it('sets its id, its time and a slug derived from its name', async () => {
    const project = await createProject(context(), acme.caller, { name: 'Nightly Jobs' })
    expect(project).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{14}7/),
      name: 'Nightly Jobs',
      slug: 'nightly-jobs',
      createdAt: START + 0.125,
    })
    expect((await listProjects(context(), acme.caller, ALL)).rows).toEqual([project])
  })

  it('uses a given slug, and rejects one that is taken', async () => {
    expect(await createProject(context(), acme.caller, { name: 'Jobs', slug: 'nightly' })).toMatchObject({
      slug: 'nightly',
    })
    const clash = createProject(context(), acme.caller, { name: 'Other jobs', slug: 'nightly' })
    await expect(clash).rejects.toMatchObject({
      code: 'slug_taken',
      message: 'another project has the slug "nightly": choose another',
      field: 'slug',
    })
    expect(await listIds()).toHaveLength(1)
  })

  it('numbers a derived slug that is taken, also for calls at the same time', async () => {
    const made = await Promise.all(
      Array.from({ length: 6 }, () => createProject(context(), acme.caller, { name: 'Jobs' })),
    )
    expect(made.map(({ slug }) => slug).sort()).toEqual(['jobs', 'jobs-2', 'jobs-3', 'jobs-4', 'jobs-5', 'jobs-6'])
  })

  it('ignores the slugs of other organizations', async () => {
    await createProject(context(), other.caller, { name: 'Jobs', slug: 'jobs' })
    expect(await createProject(context(), acme.caller, { name: 'Jobs' })).toMatchObject({ slug: 'jobs' })
    await expect(createProject(context(), acme.caller, { name: 'Jobs', slug: 'jobs' })).rejects.toMatchObject({
      code: 'slug_taken',
    })
  })

  it('is forbidden for a caller that is bound to a project', async () => {
    const bound = acme.boundTo(await acme.addProject('one'))
    await expect(createProject(context(), bound, { name: 'Two' })).rejects.toMatchObject(FORBIDDEN)
  })
})

describe('listing projects', () => {
  it('returns the projects of the organization in order, page by page', async () => {
    const ids = []
    for (const [place, name] of ['one', 'two', 'three', 'four', 'five'].entries()) {
      // A microsecond apart: the place of a page is no coarser.
      clock.time = START + place / 1_000
      ids.push((await createProject(context(), acme.caller, { name })).id)
    }
    await createProject(context(), other.caller, { name: 'foreign' })
    const first = await listProjects(context(), acme.caller, { limit: 2, after: null })
    const second = await listProjects(context(), acme.caller, { limit: 2, after: first.next })
    const third = await listProjects(context(), acme.caller, { limit: 2, after: second.next })
    expect([first, second, third].map(({ rows }) => rows.map(({ id }) => id))).toEqual([
      ids.slice(0, 2),
      ids.slice(2, 4),
      ids.slice(4),
    ])
    expect(third.next).toBeNull()
  })

  it('returns only its own project to a bound caller', async () => {
    const one = await acme.addProject('one')
    await acme.addProject('two')
    expect(await listIds(acme.boundTo(one))).toEqual([one])
    expect(await listIds(acme.boundTo(await other.addProject('foreign')))).toEqual([])
  })
})

describe('removing a project', () => {
  it('also removes the keys that are bound to it', async () => {
    const one = await acme.addProject('one')
    const two = await acme.addProject('two')
    await createApiKey(context(), acme.caller, { name: 'bound', scope: 'read', projectId: one })
    await createApiKey(context(), acme.caller, { name: 'free', scope: 'read' })
    await removeProject(context(), acme.caller, one)
    expect(await listIds()).toEqual([two])
    expect((await listApiKeys(context(), acme.caller, ALL)).rows.map(({ name }) => name)).toEqual(['free'])
    await expect(removeProject(context(), acme.caller, one)).rejects.toMatchObject(NOT_FOUND)
  })

  it.each([
    [1, 'the project holds 1 check: delete them first'],
    [3, 'the project holds 3 checks: delete them first'],
  ])('is rejected while it holds %i checks', async (count, message) => {
    const one = await acme.addProject('one')
    for (let number = 1; number <= count; number += 1) await addCheck(test.database, one, `check-${number}`)
    await expect(removeProject(context(), acme.caller, one)).rejects.toMatchObject({
      code: 'project_not_empty',
      message,
    })
    expect(await listIds()).toEqual([one])
  })

  it('waits for a check that is being added, and is rejected then', async () => {
    const one = await acme.addProject('one')
    const { removed } = await test.database.transaction(async (tx) => {
      await addCheck(tx, one, 'check')
      const removed = Promise.allSettled([removeProject(context(), acme.caller, one)])
      await untilWaiting(test, 1)
      return { removed }
    })
    expect(await removed).toMatchObject([{ status: 'rejected', reason: { code: 'project_not_empty' } }])
    expect(await listIds()).toEqual([one])
  })

  it('throws not_found for an unknown, foreign or malformed id', async () => {
    const foreign = await other.addProject('foreign')
    for (const id of [foreign, randomUUID(), 'one', '', "' or true --", `${foreign}x`]) {
      await expect(removeProject(context(), acme.caller, id)).rejects.toMatchObject(NOT_FOUND)
    }
    expect(await listIds(other.caller)).toEqual([foreign])
  })

  it('is forbidden for a caller that is bound to it', async () => {
    const one = await acme.addProject('one')
    await expect(removeProject(context(), acme.boundTo(one), one)).rejects.toMatchObject(FORBIDDEN)
    expect(await listIds()).toEqual([one])
  })
})
