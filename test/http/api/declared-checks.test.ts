/** Checks that a HeartbeatCheck declares, as the management API shows and guards them (design, section 3.2). */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Declaration, declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { retireCheck } from '../../../src/checks/declare/retire-check.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import { resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { startTestApi, type TestApi } from '../../support/service.ts'

const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'nightly-backup' }
const OBJECT = 'HeartbeatCheck payments/nightly-backup in cluster default'

let api: TestApi
let projectId: string
let check: StoredCheck

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())
beforeEach(async () => {
  await retireCheck(api.context, RESOURCE, 'Delete')
  projectId = (await resolveProject(api.context, { ...RESOURCE, allowed: null, wanted: null })).id
  check = await declare()
})

async function declare(given: Partial<Declaration> = {}): Promise<StoredCheck> {
  const spec = { periodSeconds: null, schedule: '0 2 * * *', timeZone: null, graceSeconds: 60, maxRuntimeSeconds: null }
  const declaration = { resource: RESOURCE, projectId, name: 'Nightly', ...NO_TEXTS, spec, suspend: null }
  return (await declareCheck(api.context, { ...declaration, adoptId: null, ...given })).check
}

describe('a declared check', () => {
  it('is shown with the resource that manages it, in its namespace’s project', async () => {
    const { status, body } = await api.client.get(`/checks/${check.id}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      public_id: check.publicId,
      project_id: projectId,
      slug: 'nightly-backup',
      status: 'new',
      schedule: '0 2 * * *',
      time_zone: 'UTC',
      managed_by: 'kubernetes',
      kubernetes: RESOURCE,
    })
    expect(body.due_at).toEqual(expect.any(String))
    const { body: list } = await api.client.get(`/checks?project_id=${projectId}`)
    expect(list.checks).toHaveLength(1)
    const { body: projects } = await api.client.get('/projects')
    expect(projects.projects).toContainEqual(expect.objectContaining({ id: projectId, slug: 'payments' }))
  })

  it('refuses a change and a removal, naming the object', async () => {
    for (const call of [
      () => api.client.put(`/checks/${check.id}`, { name: 'Mine' }),
      () => api.client.delete(`/checks/${check.id}`),
    ]) {
      const { status, body } = await call()
      expect(status).toBe(409)
      expect(body.error).toBe(`check is managed by ${OBJECT}; change the resource instead`)
    }
  })

  it('may be paused and resumed while spec.suspend is unset; the next reconcile leaves that alone', async () => {
    expect((await api.client.patch(`/checks/${check.id}/pause`)).body.status).toBe('paused')
    expect((await declare()).state.status).toBe('paused')
    expect((await api.client.patch(`/checks/${check.id}/resume`)).body.status).toBe('new')
  })

  it.each([true, false])('refuses to be paused or resumed while spec.suspend is %s', async (suspend) => {
    await declare({ suspend })
    for (const act of ['pause', 'resume']) {
      const { status, body } = await api.client.patch(`/checks/${check.id}/${act}`)
      expect(status).toBe(409)
      expect(body.error).toBe(
        `${OBJECT} sets spec.suspend to ${suspend}; change or remove it there to ${act} the check`,
      )
    }
  })

  it('keeps its project', async () => {
    const { status, body } = await api.client.delete(`/projects/${projectId}`)
    expect(status).toBe(409)
    expect(body.error).toBe('the project holds 1 check: delete them first')
  })

  it('is the API’s own after Retain, with the same address', async () => {
    await retireCheck(api.context, RESOURCE, 'Retain')
    const { status, body } = await api.client.put(`/checks/${check.id}`, { name: 'Mine' })
    expect(status).toBe(200)
    expect(body).toMatchObject({ name: 'Mine', managed_by: 'api', kubernetes: null, public_id: check.publicId })
    expect((await api.client.delete(`/checks/${check.id}`)).status).toBe(204)
  })

  it('is unknown after Delete, history too, and its project can be removed', async () => {
    await retireCheck(api.context, RESOURCE, 'Delete')
    for (const path of ['', '/flips', '/pings'])
      expect((await api.client.get(`/checks/${check.id}${path}`)).status).toBe(404)
    expect((await api.client.delete(`/projects/${projectId}`)).status).toBe(204)
  })
})
