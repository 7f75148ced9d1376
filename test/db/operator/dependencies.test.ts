/** The names of `spec.dependsOn`, as they are stored. */

import { beforeEach, describe, expect, it } from 'vitest'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { addCheck, openTransaction } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
const resource = (name: string) => ({ ...RESOURCE, name })
const declare = (name: string, ...dependencies: string[]) => t.declare({ resource: resource(name), name, dependencies })
const dependenciesOf = async (name: string) => (await t.read(resource(name)))?.dependsOn
const listsOf = async (id: string) => {
  const text = 'select count(*) as count from checks where depends_on @> array[$1::uuid]'
  return (await t.database.query<{ count: number }>(text, [id])).rows[0]!.count
}
let database: string
beforeEach(async () => {
  database = (await declare('database')).check.id
})

describe('the names that a resource depends on', () => {
  it('are those of its namespace, in their order; a name without a check is left out until there is one', async () => {
    await t.declare({ resource: { ...resource('network'), namespace: 'other' }, name: 'Network' })
    const { change, check, dependencies } = await declare('backup', 'network', 'database')
    expect(change).toBe('created')
    expect(check.dependsOn).toEqual([database])
    expect(dependencies).toEqual({ ids: [database], missing: ['network'], ringed: [] })
    const { id } = (await declare('network')).check
    const again = await declare('backup', 'network', 'database')
    expect(again).toMatchObject({ change: 'updated', dependencies: { ids: [id, database], missing: [] } })
    expect(await declare('backup', 'network', 'database')).toMatchObject({ change: 'unchanged', check: again.check })
    expect((await declare('backup')).check.dependsOn).toEqual([])
  })

  it('are none when one is deleted, and are there again when it is', async () => {
    await declare('backup', 'database')
    await t.retire('Delete', resource('database'))
    expect(await dependenciesOf('backup')).toEqual([])
    expect(await declare('backup', 'database')).toMatchObject({
      change: 'unchanged',
      dependencies: { missing: ['database'] },
    })
    expect(await declare('database')).toMatchObject({ change: 'revived', check: { id: database } })
    expect(await declare('backup', 'database')).toMatchObject({ change: 'updated', check: { dependsOn: [database] } })
  })

  it('make no ring in what is stored, but for the time that another one needs to give its own up', async () => {
    await declare('backup', 'database')
    const ringed = await declare('database', 'backup', 'database')
    expect(ringed).toMatchObject({ change: 'unchanged', dependencies: { ids: [], ringed: ['backup', 'database'] } })
    const { check } = await declare('backup')
    expect((await declare('database', 'backup')).check.dependsOn).toEqual([check.id])
  })

  it('make no ring when they are declared at the same time', async () => {
    await declare('backup')
    const first = await openTransaction(t, (tx) =>
      t.declareWithin(tx, { resource: resource('backup'), name: 'backup', dependencies: ['database'] }),
    )
    const second = await first.commitBefore(() => declare('database', 'backup'))
    expect(second.dependencies).toMatchObject({ ids: [], ringed: ['backup'] })
  })

  it('are not in any list when one goes, or its namespace without our finalizer', async () => {
    for (let count = 0; count < 101; count += 1) await addCheck(t, t.tenant, { dependsOn: [database] })
    expect(await t.retire('Delete', resource('database'))).toBe('removed')
    expect(await listsOf(database)).toBe(0)

    const place = (namespaceUid: string) => ({ place: { namespaceUid, clusterUid: 'c', isFresh: true } })
    const given = { resource: resource('network'), revival: 'uid' } as const
    const { id } = (await t.declare({ ...given, ...place('first') })).check
    await addCheck(t, t.tenant, { dependsOn: [id] })
    expect((await t.declare({ ...given, ...place('second') })).change).toBe('created')
    expect(await listsOf(id)).toBe(0)
  })

  it('make no ring with those that an adopted check is needed by', async () => {
    const own = await addCheck(t, t.tenant)
    await declare('backup')
    const { id } = (await declare('between')).check
    const other = await addCheck(t, t.tenant, { dependsOn: [own.id] })
    await t.database.query('update checks set depends_on = array[$1::uuid] where id = $2', [other.id, id])
    const adopted = await t.declare({ resource: resource('own'), adoptId: own.id, dependencies: ['between'] })
    expect(adopted).toMatchObject({ change: 'adopted', dependencies: { ids: [], ringed: ['between'] } })
  })

  it('are of the organization of its project', async () => {
    const { id } = (await declare('backup')).check
    await updateCheck(t.context, t.tenant, (await addCheck(t, t.tenant)).id, { dependsOn: [id] })
    await t.database.query(
      `with o as (insert into organizations (id, name, created_at) values (gen_random_uuid(), 'x', now()) returning id),
        p as (insert into projects (id, organization_id, name, slug, created_at) select gen_random_uuid(), id, 'x', 'x', now() from o returning id)
        update checks set project_id = p.id from p where kubernetes_name = 'database'`,
    )
    expect((await declare('backup', 'database')).dependencies?.missing).toEqual(['database'])
  })
})
