/** Who gets a check back, and where an adopted check stays (design, section 6). */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { Declaration, Place } from '../../../src/checks/declare/declare-check.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { addCheck, addProject, addTenant, countRows } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const place = (namespaceUid: string | null, clusterUid: string | null = 'cluster-1', isFresh = true): Place => ({
  namespaceUid,
  clusterUid,
  isFresh,
})
const declare = (given: Partial<Declaration> = {}) =>
  t.declare({ isNew: true, revival: 'uid', place: place('shop-1'), ...given })
const uidsOf = async (id: string) =>
  (
    await t.database.query<{ uids: string[] }>(
      'select array[kubernetes_namespace_uid, kubernetes_cluster_uid] as uids from checks where id = $1 union all select array[kubernetes_namespace_uid, kubernetes_cluster_uid] from tombstones where id = $1',
      [id],
    )
  ).rows[0]?.uids

describe.each(['Delete', 'Retain'] as const)('REVIVAL=uid, deletionPolicy %s', (policy) => {
  const back = policy === 'Delete' ? 'revived' : 'readopted'
  const keep = async () => {
    const { check } = await declare()
    await t.retire(policy)
    return check
  }

  it('the check comes back in the same namespace', async () => {
    const { id } = await keep()
    expect(await declare()).toMatchObject({ change: back, check: { id } })
  })

  it('it comes back in a new cluster, whose namespaces are all new', async () => {
    const { id } = await keep()
    expect(await declare({ place: place('shop-2', 'cluster-2') })).toMatchObject({ change: back, check: { id } })
    expect(await uidsOf(id)).toEqual(['shop-2', 'cluster-2'])
  })

  it.each([
    ['another namespace of its name', place('shop-2')],
    ['another namespace of its name, in a cluster that is not known', place('shop-2', null)],
    ['a namespace that is not known', place(null)],
    ['a place that is not known', undefined],
  ])('it does not come back in %s: there is a new check, and the old one stays as it is', async (_, where) => {
    const { id, publicId, key } = await keep()
    const { check, change } = await t.declare({ isNew: true, revival: 'uid', ...(where && { place: where }) })
    expect(change).toBe('created')
    expect(check.publicId).not.toBe(publicId)
    expect(await countRows(t, policy === 'Delete' ? 'tombstones' : 'retained_checks', key)).toBe(1)
    if (policy === 'Retain') expect(await getCheck(t.context, t.tenant, id)).toMatchObject({ managedBy: 'api' })
  })

  it('it comes back in any namespace of its name by default', async () => {
    const { id } = await keep()
    expect(await declare({ revival: 'name', place: place('shop-2') })).toMatchObject({ change: back, check: { id } })
    expect(await uidsOf(id)).toEqual(['shop-2', 'cluster-1'])
  })
})

describe('REVIVAL=uid and a check whose resource went without its finalizer', () => {
  it('a new namespace gets a new check, and the old one is removed', async () => {
    const { check: old } = await declare()
    const { check, change } = await declare({ place: place('shop-2') })
    expect(change).toBe('created')
    expect(check.slug).toBe('nightly-backup')
    expect([check.id, check.publicId]).not.toContain(old.id)
    expect(await countRows(t, 'tombstones', old.key)).toBe(1)
    await expect(getCheck(t.context, t.tenant, old.id)).rejects.toMatchObject({ code: 'not_found' })
  })

  it.each([
    ['the same namespace keeps it', place('shop-1')],
    ['so does a new cluster', place('shop-2', 'cluster-2')],
    ['a place that may be outdated decides nothing', place('shop-2', 'cluster-1', false)],
    ['nor does one that is not known', place(null)],
  ])('%s', async (_, where) => {
    const { check: old } = await declare()
    expect(await declare({ isNew: false, place: where })).toMatchObject({ change: 'unchanged', check: { id: old.id } })
  })
})

describe('the place of a check', () => {
  it('is stored with a check that has none yet, without a change that people see', async () => {
    const { check } = await t.declare()
    expect(await declare({ isNew: false, place: place('shop-1', 'cluster-1', false) })).toMatchObject({
      change: 'unchanged',
      check: { updatedAt: check.updatedAt },
    })
    expect(await uidsOf(check.id)).toEqual(['shop-1', 'cluster-1'])
    const before = await t.versionsOf(check.key)
    await declare({ isNew: false, place: place('shop-1', 'cluster-1', false) })
    expect(await t.versionsOf(check.key)).toEqual(before)
  })

  it('follows the cluster, but no other namespace unless the read is fresh', async () => {
    const { check } = await declare()
    const seen = async (where: Place) => {
      await declare({ isNew: false, place: where })
      return uidsOf(check.id)
    }
    expect(await seen(place('shop-1', 'cluster-2', false))).toEqual(['shop-1', 'cluster-2'])
    expect(await seen(place('shop-2', 'cluster-1', false))).toEqual(['shop-1', 'cluster-2'])
    expect(await seen(place(null, null, false))).toEqual(['shop-1', 'cluster-2'])
  })
})

describe('an adopted check stays in its project', () => {
  const adopt = async () => {
    const { id } = await addCheck(t, t.tenant)
    await t.declare({ adoptId: id })
    return id
  }

  it('when its resource is deleted and declared again in another project: that has a new check', async () => {
    const id = await adopt()
    await t.retire()
    const projectId = await addProject(t, t.tenant)
    const { check, change } = await t.declare({ isNew: true, projectId })
    expect([change, check.id === id]).toEqual(['created', false])
    await expect(t.declare({ resource: { ...RESOURCE, name: 'x' }, projectId, adoptId: id })).rejects.toMatchObject({
      code: 'not_found',
    })
  })

  it('when its resource is declared again with its id in another project', async () => {
    const id = await adopt()
    await t.retire()
    const projectId = await addProject(t, t.tenant)
    await expect(t.declare({ projectId, adoptId: id })).rejects.toMatchObject({ code: 'forbidden', field: 'adoptId' })
    expect(await t.declare()).toMatchObject({ change: 'revived', check: { id } })
  })

  it('when its resource was deleted and declared again in between, or retained', async () => {
    const id = await adopt()
    const projectId = await addProject(t, t.tenant)
    for (const policy of ['Delete', 'Retain'] as const) {
      await t.retire(policy)
      expect((await t.declare()).check.id).toBe(id)
      await t.retire(policy)
      expect((await t.declare({ projectId })).check.id).not.toBe(id)
      await t.database.query('delete from checks where project_id = $1', [projectId])
      if (policy === 'Retain') expect(await getCheck(t.context, t.tenant, id)).toMatchObject({ managedBy: 'api' })
    }
  })

  it('when its namespace is in another project now: the resource is rejected', async () => {
    const id = await adopt()
    const projectId = await addProject(t, t.tenant)
    const before = await t.read()
    const rejected = await t.declare({ projectId }).catch((error) => error)
    expect(rejected).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining(`the check ${id} was adopted`),
    })
    expect(await t.read()).toEqual(before)
  })

  it('and its own one moves with the resource, also after it was retained, or its owner was lost', async () => {
    const own = await t.declare()
    await t.retire('Retain')
    expect(await t.declare()).toMatchObject({ change: 'readopted', check: { id: own.check.id } })
    const projectId = await addProject(t, t.tenant)
    expect(await t.declare({ projectId })).toMatchObject({ change: 'updated', check: { id: own.check.id, projectId } })
    await t.database.query(
      "update checks set managed_by = 'api', kubernetes_cluster = null, kubernetes_namespace = null, kubernetes_name = null, kubernetes_adopted = false",
    )
    expect(await t.declare({ projectId, knownId: own.check.id })).toMatchObject({ change: 'updated' })
    const { check, change } = await t.declare()
    expect([change, check.id, check.projectId]).toEqual(['updated', own.check.id, t.tenant.project])
  })

  it('when its owner was lost: what is unknown counts as adopted', async () => {
    const { check } = await t.declare()
    await t.retire('Retain')
    await t.database.query('delete from retained_checks')
    await t.declare({ knownId: check.id })
    const projectId = await addProject(t, t.tenant)
    await expect(t.declare({ projectId })).rejects.toMatchObject({ code: 'forbidden' })
  })

  it('and one that its resource created moves with it, as before', async () => {
    const { check } = await t.declare()
    const projectId = await addProject(t, t.tenant)
    expect(await t.declare({ projectId })).toMatchObject({ change: 'updated', check: { id: check.id, projectId } })
  })
})

describe('a check that the database has lost', () => {
  const LOST = '0190b8a0-0000-4000-8000-00000000000a'

  it('has the public id that its job still pings', async () => {
    expect(await t.declare({ publicId: LOST })).toMatchObject({ change: 'restored', check: { publicId: LOST } })
  })

  it.each([
    ['a check', async () => (await addCheck(t, t.tenant)).publicId],
    [
      'a tombstone',
      async () => {
        const resource = { ...RESOURCE, name: 'x' }
        const { check } = await t.declare({ resource })
        await t.retire('Delete', resource)
        return check.publicId
      },
    ],
    ['nothing that is an id', async () => 'nonsense'],
  ])('has a new one when that is the public id of %s', async (_, find) => {
    const publicId = await find()
    const { check, change } = await t.declare({ publicId })
    expect(change).toBe('replaced')
    expect(check.publicId).not.toBe(publicId)
  })

  it('has the public id of what it has published, which is read only then', async () => {
    const { check } = await t.declare()
    const unread = async () => expect.unreachable('the published object')
    expect(await t.declare({ findPublicId: unread })).toMatchObject({ change: 'unchanged' })
    await t.database.query('delete from checks')
    const declared = await t.declare({ knownId: check.id, findPublicId: async () => LOST })
    expect(declared).toMatchObject({ change: 'restored', check: { publicId: LOST } })
    expect(declared).not.toHaveProperty('fault')
  })

  it('is made only when what it has published can be read; a tombstone is enough to revive one', async () => {
    const { check } = await t.declare()
    const findPublicId = () => Promise.reject(new Error('no right to read'))
    await t.retire()
    const revived = await t.declare({ knownId: check.id, findPublicId })
    expect(revived).toMatchObject({ change: 'revived', check: { publicId: check.publicId } })
    await t.database.query('delete from checks')
    await expect(t.declare({ knownId: check.id, findPublicId })).rejects.toThrow('no right to read')
    expect(await t.read()).toBeNull()
  })

  it('has a new one where its URL is lost too', async () => {
    const knownId = randomUUID()
    expect(await t.declare({ knownId, findPublicId: async () => null })).toMatchObject({ change: 'replaced' })
  })

  it.each([
    ['of an annotation that its status repeats', (id: string) => ({ adoptId: id.toUpperCase(), knownId: id })],
    ['of an annotation, and its status names none', (id: string) => ({ adoptId: id })],
  ])('is replaced and says so: %s', async (_, idsOf) => {
    const id = randomUUID()
    const { adoptId, ...ids } = { ...idsOf(id), findPublicId: async () => LOST }
    const { change, check, fault } = await t.declare({ adoptId, ...ids })
    expect([change, check.publicId]).toEqual(['restored', LOST])
    const message = `this resource has the check ${check.id} already and cannot adopt ${adoptId}`
    expect(fault).toMatchObject({ code: 'conflict', field: 'adoptId', message: expect.stringContaining(message) })
    // Then there is a check, of another id.
    await expect(t.declare({ adoptId, ...ids })).rejects.toMatchObject({ code: 'conflict', field: 'adoptId' })
  })

  it('is not replaced where a person chooses another check, which is not there', async () => {
    const ids = { adoptId: randomUUID(), knownId: randomUUID(), findPublicId: async () => LOST }
    await expect(t.declare(ids)).rejects.toMatchObject({ code: 'not_found', field: 'adoptId' })
    await expect(t.declare({ adoptId: ids.adoptId })).rejects.toMatchObject({ code: 'not_found', field: 'adoptId' })
    expect(await t.read()).toBeNull()
  })

  it('is not what its status names of others: it begins anew, with neither id nor URL of that', async () => {
    const others = [
      (await t.declare({ resource: { ...RESOURCE, name: 'x' } })).check,
      await addCheck(t, await addTenant(t)),
    ]
    for (const { id: knownId } of others) {
      // A person who asks for it gets an answer.
      await expect(t.declare({ adoptId: knownId, knownId })).rejects.toMatchObject({ field: 'adoptId' })
      const { check, change } = await t.declare({ knownId, findPublicId: async () => LOST })
      expect(change).toBe('created')
      expect([knownId, LOST]).not.toContain(check.id)
      expect(check.publicId).not.toBe(LOST)
      await t.database.query('delete from checks where id = $1', [check.id])
    }
  })

  it('has its own from its tombstone all the same', async () => {
    const { check } = await t.declare()
    await t.retire()
    expect(await t.declare({ publicId: LOST })).toMatchObject({
      change: 'revived',
      check: { publicId: check.publicId },
    })
  })
})
