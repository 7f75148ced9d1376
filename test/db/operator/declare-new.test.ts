/** The first declaration of a resource, and what can be in its way. */

import { describe, expect, it } from 'vitest'
import type { Declaration } from '../../../src/checks/declare/declare-check.ts'
import { removeProject } from '../../../src/tenancy/projects.ts'
import { addCheck, contextWithin, NOW, openTransaction, periodSpec, untilWaiting } from '../checks/fixture.ts'
import { useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const declare = (given: Partial<Declaration> = {}) => t.declare({ isNew: true, ...given })

const checks = async () => (await t.database.query('select from checks')).rowCount

describe('a resource that has something in its way', () => {
  it('keeps the check that it has', async () => {
    const { check } = await t.declare()
    expect(await declare()).toEqual({ check, change: 'unchanged' })
    expect(await declare({ name: 'Renamed' })).toMatchObject({ change: 'updated', check: { id: check.id } })
    expect(await checks()).toBe(1)
  })

  it('gets back what its tombstone kept', async () => {
    const { check } = await t.declare()
    await t.retire()
    expect(await declare()).toMatchObject({ change: 'revived', check: { publicId: check.publicId } })
  })

  it('gets the next number when its slug is taken', async () => {
    await addCheck(t, t.tenant, { name: 'nightly-backup', slug: 'nightly-backup' })
    expect(await declare()).toMatchObject({ change: 'created', check: { slug: 'nightly-backup-2' } })
  })

  it('is rejected for a project that is gone', async () => {
    const projectId = '0190b8a0-0000-7000-8000-000000000000'
    await expect(declare({ projectId })).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
    expect(await checks()).toBe(0)
  })

  it('is paused when it says so', async () => {
    const { check, change } = await declare({ suspend: true })
    expect({ change, status: check.state.status }).toEqual({ change: 'created', status: 'paused' })
    expect(await t.read()).toEqual(check)
  })

  it('adopts the check that it names', async () => {
    const own = await addCheck(t, t.tenant)
    expect(await declare({ adoptId: own.id })).toMatchObject({ change: 'adopted', check: { id: own.id } })
  })
})

describe('a new resource at the same time as others', () => {
  it('waits for another declaration, and finds its check', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    const second = first.commitBefore(() => declare({ name: 'Renamed' }))
    expect(await second).toMatchObject({ change: 'updated', check: { name: 'Renamed', slug: 'nightly-backup' } })
    expect(await checks()).toBe(1)
  })

  it('creates the check when the other declaration fails', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    const second = first.rollbackBefore(() => declare())
    expect(await second).toMatchObject({ change: 'created', check: { slug: 'nightly-backup', createdAt: NOW } })
  })

  it('gets one check from twelve declarations', async () => {
    const outcomes = await Promise.all(Array.from({ length: 12 }, () => declare()))
    expect(outcomes.filter(({ change }) => change === 'created')).toHaveLength(1)
    expect(new Set(outcomes.map(({ check }) => check.publicId)).size).toBe(1)
    expect(await checks()).toBe(1)
  })

  it('waits for a deletion, and revives the check', async () => {
    const { check } = await t.declare()
    const retiring = await openTransaction(t, (tx) => t.retireWithin(tx))
    const declaring = retiring.commitBefore(() => declare({ name: 'Renamed' }))
    expect(await declaring).toMatchObject({ change: 'revived', check: { id: check.id } })
  })

  it('waits for an adoption, and finds the adopted check', async () => {
    const own = await addCheck(t, t.tenant, { spec: periodSpec() })
    const adopting = await openTransaction(t, (tx) => t.declareWithin(tx, { adoptId: own.id }))
    expect((await adopting.commitBefore(() => declare())).check.id).toBe(own.id)
    expect(await checks()).toBe(1)
  })

  it('waits for the removal of its project, and is rejected once that is gone', async () => {
    const remove = () => openTransaction(t, (tx) => removeProject(contextWithin(t, tx), t.tenant, t.tenant.project))
    const removing = await remove()
    const declaring = declare()
    declaring.catch(() => {})
    await untilWaiting(t, 1)
    await removing.rollback()
    expect((await declaring).change).toBe('created')
    await t.reset()
    const gone = await remove()
    const late = declare()
    late.catch(() => {})
    await untilWaiting(t, 1)
    await gone.commit()
    await expect(late).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
  })
})
