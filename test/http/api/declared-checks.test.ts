/** Checks that a HeartbeatCheck declares, as the management API shows and guards them (design, section 3.2). */

import { beforeEach, describe, expect, it } from 'vitest'
import { declareCheck, type GivenDeclaration } from '../../../src/checks/declare/declare-check.ts'
import { retireCheck } from '../../../src/checks/declare/retire-check.ts'
import type { JobEntry } from '../../../src/checks/jobs/job-report.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import { saveSource } from '../../../src/store/jobs/cron-jobs.ts'
import { resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'nightly-backup' }
const OBJECT = 'HeartbeatCheck payments/nightly-backup in cluster default'

let projectId: string
let check: StoredCheck

const api = use(startTestApi)
beforeEach(async () => {
  await retireCheck(api.context, RESOURCE, 'Delete')
  projectId = (await resolveProject(api.context, { ...RESOURCE, allowed: null, wanted: null })).id
  check = await declare()
})

async function declare(given: Partial<GivenDeclaration> = {}): Promise<StoredCheck> {
  const spec = { ...NO_SPEC, schedule: '0 2 * * *', graceSeconds: 60 }
  const declaration = { resource: RESOURCE, projectId, name: 'Nightly', ...NO_TEXTS, spec, suspend: null }
  return (await declareCheck(api.context, { ...declaration, adoptId: null, ...given })).check
}

describe('a check that follows a CronJob', () => {
  const spec = { ...NO_SPEC, schedule: '0 2 * * *', graceSeconds: 300, jobArea: RESOURCE.cluster }
  const ENDED = '2026-06-15T02:01:33Z'
  const FAILED = {
    job: 'nightly-backup-1',
    startTime: '2026-06-15T02:00:00Z',
    completionTime: ENDED,
    outcome: 'Failed',
    exitCode: 137,
    reason: 'OOMKilled',
    message: 'container backup was OOMKilled (exit code 137)',
  } as const

  it('is shown with its newest run, and with what its Jobs reported', async () => {
    check = await declare({ spec })
    const cronJob = async () => (await api.client.get(`/checks/${check.id}`)).body.kubernetes
    expect(await cronJob()).toEqual({ ...RESOURCE, source: null })
    await saveSource(api.context.database, check.key, 'nightly')
    expect(await cronJob()).toEqual({ ...RESOURCE, source: { kind: 'CronJob', name: 'nightly', last_run: null } })
    const runId = '0199aaaa-0000-7000-8000-00000000000a'
    const entry = {
      type: 'fail',
      at: Date.parse(ENDED),
      durationMs: 93_000,
      exitCode: 137,
      body: FAILED.message,
    } as const
    const report = { resource: RESOURCE, source: 'nightly', runId, job: FAILED.job, entries: [entry], lastRun: FAILED }
    expect(await recordJobs(api.context, [report])).toEqual(['recorded'])
    const { job, startTime, completionTime, exitCode, ...rest } = FAILED
    expect(await cronJob()).toEqual({
      ...RESOURCE,
      source: {
        kind: 'CronJob',
        name: 'nightly',
        last_run: {
          ...rest,
          name: job,
          start_time: startTime,
          completion_time: completionTime,
          outcome: 'failed',
          exit_code: exitCode,
        },
      },
    })
    const [listed] = (await api.client.get(`/checks?project_id=${projectId}`)).body.checks
    expect(listed.kubernetes).toEqual({ ...RESOURCE, source: { kind: 'CronJob', name: 'nightly' } })
    const { body } = await api.client.get(`/checks/${check.id}/pings`)
    expect(body.pings).toMatchObject([
      {
        type: 'fail',
        source: 'job',
        run_id: runId,
        created_at: '2026-06-15T02:01:33.000Z',
        duration_ms: 93_000,
        body: FAILED.message,
      },
    ])
  })

  it('is shown with a run that ended with a warning', async () => {
    check = await declare({ spec: { ...spec, warnExitCodes: [137] } })
    const at = Date.parse('2026-06-16T02:01:33Z')
    const entry = { type: 'fail', at, durationMs: 93_000, exitCode: 137, body: FAILED.message } as const
    const lastRun = { ...FAILED, job: 'nightly-backup-2', startTime: '2026-06-16T02:00:00Z' }
    const run = { runId: '0199aaaa-0000-7000-8000-00000000000b', job: lastRun.job, lastRun }
    await recordJobs(api.context, [{ resource: RESOURCE, source: 'nightly', entries: [entry], ...run }])
    const { body } = await api.client.get(`/checks/${check.id}`)
    expect(body).toMatchObject({ status: 'up', last_outcome: 'warn', warn_exit_codes: [137] })
    expect(body.kubernetes.source.last_run).toMatchObject({ outcome: 'warned', exit_code: 137 })
  })
})

describe('why a check that follows a CronJob has its status', () => {
  const spec = {
    ...NO_SPEC,
    schedule: '0 2 * * *',
    graceSeconds: 300,
    maxRuntimeSeconds: 60,
    jobArea: RESOURCE.cluster,
  }
  const HOSTILE = '</script><script>alert("1")</script>\u202e'
  const report = (job: string, ...entries: readonly JobEntry[]) =>
    recordJobs(api.context, [
      {
        resource: RESOURCE,
        source: 'nightly',
        runId: crypto.randomUUID(),
        job,
        entries,
        lastRun: {
          job,
          startTime: null,
          completionTime: null,
          outcome: 'Failed',
          exitCode: 1,
          reason: null,
          message: null,
        },
      },
    ])
  const read = async () => {
    const { body: one } = await api.client.get(`/checks/${check.id}`)
    const { body: list } = await api.client.get(`/checks?project_id=${projectId}`)
    const [listed] = list.checks
    expect([listed.status, listed.status_detail]).toEqual([one.status, one.status_detail])
    const { body: history } = await api.client.get(`/checks/${check.id}/flips`)
    return [one.status, one.status_detail, history.flips[0].detail]
  }

  it('is in the check, in the list and in its flips, until the next change', async () => {
    check = await declare({ spec })
    expect(await read()).toEqual(['new', null, null])
    const at = api.context.clock.now()
    const fail = { type: 'fail', at: at + 1, durationMs: null, exitCode: 1, body: `${HOSTILE}\nmore` } as const
    expect(await report('nightly-1', fail)).toEqual(['recorded'])
    const first = '</script><script>alert("1")</script>'
    expect(await read()).toEqual(['down', expect.stringContaining(first), expect.stringContaining(first)])
    // An entry about an outage, or about a miss while the check is down, changes no status.
    for (const reason of ['outage', 'missed']) {
      await api.database.query(
        `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, detail)
          select 'ffffffff-ffff-7fff-bfff-ffffffffffff', $1, now(), now(), 2, 2, $2, 'of another run'`,
        [check.key, reason],
      )
      expect((await read())[1]).toContain(first)
      await api.database.query(`delete from flips where from_status = to_status`)
    }
    await report('nightly-2', { type: 'success', at: at + 2, durationMs: null })
    expect(await read()).toEqual(['up', null, null])
    check = await declare({ spec, suspend: true, pauseDetail: 'the CronJob nightly is suspended' })
    const paused = 'the CronJob nightly is suspended'
    expect(await read()).toEqual(['paused', paused, paused])
  })
})

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
