/** Whose checks each verb finds: those of the caller's organization, and of the project that the caller is bound to. */

import { expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { listPingEnds } from '../../../src/checks/find-history.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { reviewCheck } from '../../../src/checks/review-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import type { Principal } from '../../../src/domain/access.ts'
import { listFlips, listPings } from '../../support/lists.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, addProject, addTenant, useFixture } from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
const check = useEach(() => addCheck(fixture, tenant))
const page = { limit: 10, after: null }

it.each<[string, (who: Principal, id: string) => Promise<unknown>]>([
  ['reading', (who, id) => getCheck(fixture.context, who, id)],
  ['reviewing', (who, id) => reviewCheck(fixture.context, who, id, null)],
  ['updating', (who, id) => updateCheck(fixture.context, who, id, { name: 'x' })],
  ['pausing', (who, id) => pauseCheck(fixture.context, who, id)],
  ['resuming', (who, id) => resumeCheck(fixture.context, who, id)],
  ['removing', (who, id) => removeCheck(fixture.context, who, id)],
  ['its pings', (who, id) => listPings(fixture.context, who, id, page)],
  ['the ends of its texts', (who, id) => listPingEnds(fixture.context, who, id, {}, page)],
  ['its flips', (who, id) => listFlips(fixture.context, who, id, page)],
])('%s: strangers find no check, nor does anyone by another id', async (_, act) => {
  const notFound = { code: 'not_found', message: 'check not found' }
  const bound = { ...tenant, projectId: await addProject(fixture, tenant) }
  const stored = await getCheck(fixture.context, tenant, check.id)
  for (const who of [await addTenant(fixture), bound]) await expect(act(who, check.id)).rejects.toMatchObject(notFound)
  for (const id of ['', 'no-uuid', '00000000-0000-4000-8000-000000000000', check.publicId, `${check.id}'`])
    await expect(act(tenant, id)).rejects.toMatchObject(notFound)
  expect(await getCheck(fixture.context, tenant, check.id)).toEqual(stored)
  // One that is bound to the project of the check is no stranger.
  await act({ ...bound, projectId: tenant.project }, check.id.toUpperCase())
})
