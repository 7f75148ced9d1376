/** Acknowledging by the link of a message, beside what else happens to the check. */

import { beforeEach, expect, it } from 'vitest'
import { acknowledgeByLink, findIncident } from '../../../src/checks/acknowledge-by-link.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { MINUTE } from '../../support/builders.ts'
import { addCheck, contextWithin, NOW, openTransaction, ping, useFixture } from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
let check: CheckRecord
beforeEach(async () => {
  check = await addCheck(fixture, tenant)
  await pinged('fail', NOW)
  fixture.clock.time = NOW + MINUTE
})

const pinged = (type: 'success' | 'fail', at: number) => fixture.database.transaction((tx) => ping(tx, check, type, at))
const incident = () => ({ checkId: check.id, since: NOW })
const press = (name = 'Ada') => acknowledgeByLink(fixture.context, incident(), { name, address: '192.0.2.1' })
const entries = async () => {
  const { rows } = await fixture.database.query(
    `select organization_id, project_id, actor_kind, actor_name, address from audit_log where action = 'check.acknowledged'`,
  )
  return rows
}

it('is an entry of the audit log of the organization and the project', async () => {
  expect(await press()).toMatchObject({ isNew: true, acknowledged: { by: { kind: 'link', name: 'Ada' } } })
  expect(await entries()).toEqual([
    {
      organization_id: tenant.organizationId,
      project_id: tenant.project,
      actor_kind: 'link',
      actor_name: 'Ada',
      address: '192.0.2.1',
    },
  ])
})

it('of many at once, one is the first, and the others see it', async () => {
  const all = await Promise.all(['Ada', 'Bob', 'Cyd', 'Dan'].map(press))
  expect(all.filter((one) => one?.isNew)).toHaveLength(1)
  expect(new Set(all.map((one) => one?.acknowledged.by.name)).size).toBe(1)
  expect(await entries()).toHaveLength(1)
})

it('changes nothing when a success is committed while it waits', async () => {
  expect(await findIncident(fixture.context, incident())).not.toBeNull()
  const recovering = await openTransaction(fixture, (tx) => ping(tx, check, 'success', NOW + MINUTE))
  expect(await recovering.commitBefore(() => press())).toBeNull()
  expect(await entries()).toEqual([])
  expect(await findIncident(fixture.context, incident())).toBeNull()
})

it('changes nothing when the check is removed while it waits', async () => {
  const removing = await openTransaction(fixture, (tx) => removeCheck(contextWithin(fixture, tx), tenant, check.id))
  expect(await removing.commitBefore(() => press())).toBeNull()
  expect(await findIncident(fixture.context, incident())).toBeNull()
  expect(await press()).toBeNull()
  expect(await entries()).toEqual([])
})

it('is for the incident that the link names, also after a pause within it', async () => {
  await pauseCheck(fixture.context, tenant, check.id)
  expect(await press()).toBeNull()
  await resumeCheck(fixture.context, tenant, check.id)
  expect(await press()).toBeNull()
  await pinged('fail', NOW + MINUTE)
  expect(await press()).toMatchObject({ isNew: true })
  await pinged('success', NOW + MINUTE)
  await pinged('fail', NOW + MINUTE)
  expect(await press()).toBeNull()
})

it('is for an incident whose beginning has microseconds, which no link has', async () => {
  await fixture.database.query(`update check_states set incident_since = incident_since + interval '999 microseconds'`)
  expect(await findIncident(fixture.context, incident())).toMatchObject({ check: { id: check.id }, acknowledged: null })
  expect(await press()).toMatchObject({ isNew: true })
})
