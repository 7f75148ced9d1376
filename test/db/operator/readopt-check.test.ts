/** A retained check and the resource that declared it, declared again (design, section 6). */

import { describe, expect, it } from 'vitest'
import { declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { retireCheck } from '../../../src/checks/declare/retire-check.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import { findUrlHolder } from '../../../src/store/checks/retained-checks.ts'
import { HOUR } from '../../support/builders.ts'
import { addProject, contextWithin, NOW, openTransaction } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
const OTHER = { ...RESOURCE, name: 'other' }
const SECRET = { kind: 'Secret', name: 'nightly-backup-heartbeat' }

async function retain(): Promise<StoredCheck> {
  const { check } = await t.declare()
  await retireCheck(t.context, RESOURCE, 'Retain', SECRET)
  return check
}
const marks = async () => (await t.database.query('select from retained_checks')).rowCount
const existing = { code: 'conflict', field: 'retained' }

describe('a retained check', () => {
  it.each([true, false])(
    'is that of its resource again, with id, URL, slug and history (first reconcile: %j)',
    async (isNew) => {
      const check = await retain()
      await t.pinged(check, 'success', NOW + 1_000)
      t.clock.time = NOW + HOUR
      const back = await t.declare({ isNew, name: 'Again' })
      expect(back).toMatchObject({
        change: 'readopted',
        check: {
          ...{ id: check.id, publicId: check.publicId, key: check.key, slug: check.slug },
          ...{ name: 'Again', managedBy: 'kubernetes', kubernetes: RESOURCE, state: { status: 'up' } },
        },
      })
      expect(await t.read()).toEqual(back.check)
      expect(await marks()).toBe(0)
      expect((await t.declare({ name: 'Again' })).change).toBe('unchanged')
    },
  )

  it('is so as often as it is retained, at any age', async () => {
    const check = await retain()
    for (let round = 0; round < 2; round += 1) {
      t.clock.time += 365 * 24 * HOUR
      expect(await t.declare({ isNew: true })).toMatchObject({ change: 'readopted', check: { id: check.id } })
      await t.retire('Retain')
    }
  })

  it('is so although the API has paused it: the pause stays', async () => {
    const { id } = await retain()
    await pauseCheck(t.context, t.tenant, id)
    expect(await t.declare()).toMatchObject({ change: 'readopted', check: { id, state: { status: 'paused' } } })
  })

  it('is rejected when the API has changed it since, with both solutions', async () => {
    const { id } = await retain()
    t.clock.time = NOW + HOUR
    const changed = await updateCheck(t.context, t.tenant, id, { name: 'Mine' })
    for (const isNew of [true, false]) {
      const rejected = await t.declare({ isNew }).catch((error) => error)
      expect(rejected).toMatchObject(existing)
      expect(rejected.message).toContain(`set the annotation heartbeat-operator.io/adopt-check-id: "${id}"`)
      expect(rejected.message).toContain(`DELETE /api/v1/checks/${id}`)
    }
    expect(await getCheck(t.context, t.tenant, id)).toMatchObject({ name: 'Mine', updatedAt: changed.updatedAt })
    expect(await t.read()).toBeNull()
  })

  it('the first solution: the resource adopts it by its id', async () => {
    const { id } = await retain()
    t.clock.time = NOW + HOUR
    await updateCheck(t.context, t.tenant, id, { name: 'Mine' })
    expect(await t.declare({ adoptId: id })).toMatchObject({ change: 'adopted', check: { id, name: 'Nightly backup' } })
    expect(await marks()).toBe(0)
  })

  it('the second solution: it is removed through the API, and the resource gets a new one', async () => {
    const { id } = await retain()
    t.clock.time = NOW + HOUR
    await updateCheck(t.context, t.tenant, id, { name: 'Mine' })
    await removeCheck(t.context, t.tenant, id)
    expect(await marks()).toBe(0)
    expect(await t.declare({ isNew: true })).toMatchObject({ change: 'created', check: { slug: 'nightly-backup' } })
  })

  it('is left alone by a resource of another project: that gets a new check', async () => {
    const { id, projectId } = await retain()
    const elsewhere = await addProject(t, t.tenant)
    const { check, change } = await t.declare({ isNew: true, projectId: elsewhere })
    expect([change, check.projectId]).toEqual(['created', elsewhere])
    expect(await getCheck(t.context, t.tenant, id)).toMatchObject({ managedBy: 'api', projectId })
  })

  it('is left alone by other resources, which may adopt it by its id', async () => {
    const { id } = await retain()
    expect((await t.declare({ isNew: true, resource: OTHER })).change).toBe('created')
    await t.retire('Delete', OTHER)
    expect((await t.declare({ resource: OTHER, adoptId: id })).change).toBe('adopted')
    expect(await t.declare({ isNew: true })).toMatchObject({ change: 'created' })
  })

  it('is followed by the newest: a tombstone or a retained check that came later comes first', async () => {
    const retained = await retain()
    t.clock.time = NOW + 1_000
    const { check: later } = await t.declare({ projectId: await addProject(t, t.tenant) })
    t.clock.time = NOW + 2_000
    await t.retire()
    expect(await t.declare()).toMatchObject({ change: 'revived', check: { id: later.id } })
    t.clock.time = NOW + 3_000
    await t.retire('Retain')
    expect(await t.declare()).toMatchObject({ change: 'readopted', check: { id: later.id } })
    expect(await getCheck(t.context, t.tenant, retained.id)).toMatchObject({ managedBy: 'api' })
  })

  it('keeps its URL in its object until it is gone or managed again', async () => {
    const { id, publicId } = await retain()
    const kept = (object = SECRET, namespace = RESOURCE.namespace, publicIds: string[] = []) =>
      findUrlHolder(t.database, { cluster: 'default', namespace }, object, publicIds)
    expect(await kept()).toEqual({ id, resource: null })
    expect(await kept({ kind: 'ConfigMap', name: SECRET.name })).toBeNull()
    expect(await kept(SECRET, 'elsewhere')).toBeNull()
    expect(await kept(SECRET, 'elsewhere', [publicId])).toEqual({ id, resource: null })
    await t.declare()
    expect(await kept()).toBeNull()
    expect(await kept(SECRET, 'elsewhere', [publicId])).toEqual({ id, resource: RESOURCE.name })
  })
})

describe('a retained check and others at the same time', () => {
  it('an update through the API that was first is seen', async () => {
    const { id } = await retain()
    t.clock.time = NOW + HOUR
    const update = await openTransaction(t, (tx) => updateCheck(contextWithin(t, tx), t.tenant, id, { name: 'Mine' }))
    const declaring = update.commitBefore(() => t.declare())
    await expect(declaring).rejects.toMatchObject(existing)
  })

  it('an update through the API that came second hears that the check is managed', async () => {
    const { id } = await retain()
    const declaring = await openTransaction(t, (tx) => t.declareWithin(tx))
    const update = declaring.commitBefore(() => updateCheck(t.context, t.tenant, id, { name: 'Mine' }))
    await expect(update).rejects.toMatchObject({ code: 'managed_by_kubernetes' })
  })

  it('a removal through the API that was first leaves a new check to the resource', async () => {
    const { id } = await retain()
    const removal = await openTransaction(t, (tx) => removeCheck(contextWithin(t, tx), t.tenant, id))
    const declaring = removal.commitBefore(() => t.declare())
    expect(await declaring).toMatchObject({ change: 'created' })
  })

  it('another resource that adopted it first has it', async () => {
    const { id } = await retain()
    const adoption = await openTransaction(t, (tx) => t.declareWithin(tx, { resource: OTHER, adoptId: id }))
    const declaring = adoption.commitBefore(() => declareCheck(t.context, t.declaration({ isNew: true })))
    expect(await declaring).toMatchObject({ change: 'created' })
    expect((await t.read(OTHER))?.id).toBe(id)
  })
})
