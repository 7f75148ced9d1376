import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createCheck } from '../../../src/checks/create-check.ts'
import { SYSTEM } from '../../../src/domain/access.ts'
import { type ProjectRequest, resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { createProject, listProjects, removeProject } from '../../../src/tenancy/projects.ts'
import { addCheck, contextWithin, openTransaction, periodSpec } from '../checks/fixture.ts'
import { useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const request = (given: Partial<ProjectRequest> = {}): ProjectRequest => ({
  cluster: 'default',
  namespace: 'payments',
  allowed: null,
  wanted: null,
  ...given,
})
const resolve = (given: Partial<ProjectRequest> = {}) => resolveProject(t.context, request(given))
const create = (slug: string) => createProject(t.context, t.tenant, { name: slug, slug })
/** Of the projects that a test made, by name. */
async function slugs(): Promise<string[]> {
  const { rows } = await listProjects(t.context, t.tenant, { limit: 100, after: null })
  return rows.flatMap(({ id, slug }) => (id === t.tenant.project ? [] : [slug])).sort()
}

describe('a namespace without an annotation', () => {
  it('has a project of its own, made once', async () => {
    const project = await resolve()
    expect(project).toMatchObject({ id: expect.stringMatching(/^[0-9a-f-]{36}$/), slug: 'payments' })
    expect((await resolve()).id).toBe(project.id)
    expect((await resolve({ wanted: 'payments' })).id).toBe(project.id)
    expect((await resolve({ allowed: [] })).id).toBe(project.id)
    expect(await slugs()).toEqual(['payments'])
  })

  it('has its own in each cluster, with the name of the cluster in the slug', async () => {
    expect((await resolve({ cluster: 'eu-1' })).slug).toBe('eu-1-payments')
    expect((await resolve()).slug).toBe('payments')
    expect((await resolve({ cluster: 'eu', namespace: '1-payments' })).slug).toBe('eu-1-payments-2')
  })

  it('never gets access to another project by its name', async () => {
    const theirs = await create('payments')
    const own = await resolve()
    expect(own.slug).toBe('payments-2')
    expect(own.id).not.toBe(theirs.id)
    expect((await resolve({ wanted: 'payments-2' })).id).toBe(own.id)
    await expect(resolve({ wanted: 'payments' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('nor by asking for it before it has its own', async () => {
    await create('payments')
    await expect(resolve({ wanted: 'payments' })).rejects.toMatchObject({ code: 'forbidden' })
    expect(await slugs()).toEqual(['payments'])
  })

  it('may ask for its own by the slug that it will have', async () => {
    expect((await resolve({ wanted: 'payments' })).slug).toBe('payments')
    expect((await resolve({ cluster: 'eu-1', wanted: 'eu-1-payments' })).slug).toBe('eu-1-payments')
  })

  it('has a slug of the allowed length whatever its cluster is called', async () => {
    const { slug } = await resolve({ cluster: 'C'.repeat(90), namespace: 'n'.repeat(63) })
    expect(slug).toBe(`${'c'.repeat(90)}-${'n'.repeat(9)}`)
    const other = await resolve({ cluster: 'C'.repeat(90), namespace: `${'n'.repeat(62)}m` })
    expect(other.slug).toBe(`${'c'.repeat(90)}-${'n'.repeat(7)}-2`)
  })

  it('gets another one when its own was removed', async () => {
    const { id } = await resolve()
    await removeProject(t.context, t.tenant, id)
    const again = await resolve()
    expect(again).toMatchObject({ slug: 'payments' })
    expect(again.id).not.toBe(id)
  })

  it('must wait for the first start', async () => {
    await t.clear()
    await expect(resolve()).rejects.toMatchObject({ code: 'unavailable' })
  })
})

describe('a namespace whose annotation names projects', () => {
  it('gets the first of them, or the one that the resource asks for', async () => {
    const [one, two] = [await create('one'), await create('two')]
    expect(await resolve({ allowed: ['one', 'two'] })).toMatchObject({ id: one.id, slug: 'one' })
    expect(await resolve({ allowed: ['one', 'two'], wanted: 'two' })).toMatchObject({ id: two.id })
    expect(await slugs()).toEqual(['one', 'two'])
  })

  it('may still ask for its own', async () => {
    await create('one')
    expect((await resolve({ allowed: ['one'], wanted: 'payments' })).slug).toBe('payments')
    expect((await resolve({ allowed: ['payments'] })).slug).toBe('payments')
  })

  it('may name an allowed project that has its own name', async () => {
    const theirs = await create('payments')
    expect((await resolve({ allowed: ['payments'] })).id).toBe(theirs.id)
  })

  it('is rejected for another project, with what to do', async () => {
    await create('one')
    await create('two')
    const message =
      'namespace payments may not use the project "two": it may use one and its own. Remove spec.project, or let an administrator add "two" to the annotation heartbeat-operator.io/projects of the Namespace'
    await expect(resolve({ allowed: ['one'], wanted: 'two' })).rejects.toMatchObject({ code: 'forbidden', message })
    const alone = expect.stringContaining('it may use its own project only')
    await expect(resolve({ wanted: 'two' })).rejects.toMatchObject({ code: 'forbidden', message: alone })
    await expect(resolve({ wanted: 'none' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('is rejected for a project that does not exist', async () => {
    const message = expect.stringContaining('there is none with that slug: create it')
    await expect(resolve({ allowed: ['one'] })).rejects.toMatchObject({ code: 'not_found', message })
    await resolve()
    await expect(resolve({ allowed: ['one'], wanted: 'one' })).rejects.toMatchObject({ code: 'not_found', message })
  })

  it('never gets one of another organization', async () => {
    const organizationId = randomUUID()
    await t.database.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Other'])
    await createProject(t.context, { ...SYSTEM, organizationId, projectId: null }, { name: 'x', slug: 'one' })
    await expect(resolve({ allowed: ['one'] })).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('resolving at the same time', () => {
  it('two controllers make one project', async () => {
    const first = await openTransaction(t, (tx) => resolveProject(contextWithin(t, tx), request()))
    const second = first.commitBefore(() => resolve())
    const { id } = await second
    expect(await resolve()).toMatchObject({ id, slug: 'payments' })
    expect(await slugs()).toEqual(['payments'])
  })

  it('many at once, of several namespaces', async () => {
    const namespaces = ['a', 'b', 'c', 'a', 'b', 'c', 'a', 'b', 'c']
    const projects = await Promise.all(namespaces.map((namespace) => resolve({ namespace })))
    expect(projects.map(({ slug }) => slug)).toEqual(namespaces)
    expect(new Set(projects.map(({ id }) => id)).size).toBe(3)
  })

  it('a namespace that names a slug which another project takes meanwhile gets no access to it', async () => {
    const creating = await openTransaction(t, (tx) =>
      createProject(contextWithin(t, tx), t.tenant, { name: 'Theirs', slug: 'payments' }),
    )
    const asking = creating.commitBefore(() => resolve({ wanted: 'payments' }))
    await expect(asking).rejects.toMatchObject({ code: 'forbidden' })
    expect((await resolve()).slug).toBe('payments-2')
  })
})

describe('the namespace default', () => {
  const inDefault = (given: Partial<ProjectRequest> = {}) => resolve({ namespace: 'default', ...given })
  /** The tenant's project is the oldest one. */
  const setSlug = () => t.database.query("update projects set slug = 'default' where id = $1", [t.tenant.project])

  it.each([null, 'default'])('gets the project of the first start, also if it asks for it: %j', async (wanted) => {
    await setSlug()
    expect(await inDefault({ wanted })).toEqual(expect.objectContaining({ id: t.tenant.project, slug: 'default' }))
    expect(await slugs()).toEqual([])
    await addCheck(t, t.tenant)
    expect((await inDefault()).id).toBe(t.tenant.project)
    const { rows } = await t.database.query("select action, detail from audit_log where action = 'project.changed'")
    expect(rows).toEqual([{ action: 'project.changed', detail: { changed: ['namespace'] } }])
  })

  it('gets one of its own if that one holds a check, and may not ask for that one', async () => {
    await setSlug()
    await addCheck(t, t.tenant)
    await expect(inDefault({ wanted: 'default' })).rejects.toMatchObject({ code: 'forbidden' })
    expect((await inDefault()).slug).toBe('default-2')
  })

  it('gets one of its own if that one is bound to another namespace', async () => {
    await setSlug()
    await t.database.query(
      "update projects set kubernetes_cluster = 'eu-1', kubernetes_namespace = 'x' where id = $1",
      [t.tenant.project],
    )
    expect((await inDefault()).slug).toBe('default-2')
  })

  it('gets one of its own if an administrator created that one later', async () => {
    await t.database.query('update projects set created_at = to_timestamp(0) where id = $1', [t.tenant.project])
    await create('default')
    expect((await inDefault()).slug).toBe('default-2')
  })

  it.each([
    ['another namespace', { namespace: 'payments' }, 'payments'],
    ['the one of another cluster', { cluster: 'eu-1' }, 'eu-1-default'],
  ])('is no other: %s', async (_, given, slug) => {
    await setSlug()
    expect((await inDefault(given)).slug).toBe(slug)
  })

  it('waits for a check that is created at the same time', async () => {
    await setSlug()
    const creation = await openTransaction(t, (tx) =>
      createCheck(contextWithin(t, tx), t.tenant, { projectId: t.tenant.project, name: 'x', spec: periodSpec() }),
    )
    expect((await creation.commitBefore(() => inDefault())).slug).toBe('default-2')
  })
})

describe('projects by configuration', () => {
  it('are named as the place to change', async () => {
    const place = 'its projects in the variable PROJECTS (chart value projects)'
    const decidedBy = 'configuration'
    await create('one')
    await expect(resolve({ allowed: null, wanted: 'one', decidedBy })).rejects.toMatchObject({
      message: expect.stringContaining(`let an administrator add "one" to ${place}`),
    })
    await expect(resolve({ allowed: ['two'], decidedBy })).rejects.toMatchObject({
      message: expect.stringContaining(`in spec.project or in ${place}`),
    })
  })
})
