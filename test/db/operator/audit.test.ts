import { expect, it } from 'vitest'
import { listEntries } from '../../../src/audit/find-entries.ts'
import { resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { cronSpec } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

/** Oldest first. */
async function entries() {
  const { rows } = await listEntries({ database: t.database }, t.tenant, {}, { limit: 100, after: null })
  for (const { actor, address } of rows)
    expect({ actor, address }).toEqual({ actor: { kind: 'controller', id: null, name: 'default' }, address: null })
  return rows.toReversed().map(({ action, target, detail }) => [action, target!.name, detail])
}

it('the controller acts on the check of a resource', async () => {
  const { check } = await t.declare()
  const hourly = { name: 'Hourly', spec: cronSpec('0 * * * *') }
  for (const step of [
    () => t.declare(),
    () => t.declare(hourly),
    () => t.declare({ ...hourly, suspend: true }),
    () => t.declare({ ...hourly, suspend: false }),
    () => t.retire(),
    () => t.declare(),
    () => t.retire('Retain'),
    () => t.retire(),
    () => t.declare({ adoptId: check.id }),
  ]) {
    t.clock.time += 1
    await step()
  }
  const changed = ['name', 'period_seconds', 'schedule', 'time_zone']
  expect(await entries()).toEqual([
    ['check.created', 'Nightly backup', { managed_by: 'kubernetes' }],
    ['check.changed', 'Hourly', { changed: expect.arrayContaining(changed) }],
    ['check.paused', 'Hourly', {}],
    ['check.resumed', 'Hourly', {}],
    ['check.removed', 'Hourly', {}],
    ['check.created', 'Nightly backup', { managed_by: 'kubernetes', revived: true }],
    ['check.changed', 'Nightly backup', { changed: ['managed_by'] }],
    ['check.changed', 'Nightly backup', { changed: ['managed_by'] }],
  ])
})

it('M4: the controller creates the project of a namespace', async () => {
  const { id } = await resolveProject(t.context, { ...RESOURCE, allowed: null, wanted: null })
  expect(await entries()).toEqual([['project.created', 'payments', { slug: 'payments' }]])
  await resolveProject(t.context, { ...RESOURCE, allowed: null, wanted: null })
  expect(await entries()).toHaveLength(1)
  const { rows } = await t.database.query<{ projectId: string }>('select project_id as "projectId" from audit_log')
  expect(rows).toEqual([{ projectId: id }])
})
