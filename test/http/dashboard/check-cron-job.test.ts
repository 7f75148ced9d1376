/** The page of a check that follows a CronJob: its last run, why it is down, and which entry of its history is from whom. */

import { expect, it } from 'vitest'
import { abandonRuns } from '../../../src/checks/jobs/abandon-runs.ts'
import type { JobEntry } from '../../../src/checks/jobs/job-report.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import type { LastRun } from '../../../src/domain/last-run.ts'
import { MINUTE } from '../../support/builders.ts'
import { readText as read } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(() => startTestApi({ kept: { days: 90, flips: 1_000 } }))
const visitor = use(() => visit(api))

const HOSTILE = `<script>alert("1")</script>'&\u202Eevil`
let count = 0

/** A check that follows the CronJob of its name, since an hour. */
async function follow(cronJob = `job-${++count}`) {
  const body = await api.addCheck({ name: cronJob, schedule: '0 * * * *', grace_seconds: 300 })
  await api.database.query(
    `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'payments',
       kubernetes_name = $2, created_at = created_at - interval '1 hour' where id = $1`,
    [body.id, cronJob],
  )
  await api.database.query(
    `update check_states s set job_area = 'default', since = since - interval '1 hour' from checks c where c.key = s.check_key and c.id = $1`,
    [body.id],
  )
  await api.database.query('insert into cron_jobs (check_key, name) select key, $2 from checks where id = $1', [
    body.id,
    cronJob,
  ])
  return { id: body.id as string, publicId: body.public_id as string, cronJob }
}

async function report(
  cronJob: string,
  entries: readonly JobEntry[],
  { runId = crypto.randomUUID(), ...lastRun }: Partial<LastRun> & { readonly runId?: string } = {},
): Promise<void> {
  const nothing = { startTime: null, completionTime: null, exitCode: null, reason: null, message: null }
  const resource = { cluster: 'default', namespace: 'payments', name: cronJob }
  const { job = `${cronJob}-29384620` } = lastRun
  const run = { ...nothing, job, outcome: 'Running' as const, ...lastRun }
  const outcomes = await recordJobs(api.context, [{ resource, source: cronJob, runId, job, entries, lastRun: run }])
  expect(outcomes).toEqual(['recorded'])
}

async function open(id: string): Promise<string> {
  const { status, text } = await visitor.get(`/checks/${id}`)
  expect(status).toBe(200)
  return text
}

it('names the CronJob and asks for no ping, before its first run', async () => {
  const { id, cronJob } = await follow()
  const page = await open(id)
  const text = read(page)
  expect(text).toContain(`Of the CronJob payments/${cronJob} , whose Jobs report by themselves.`)
  expect(text).toContain('No run has started since it is monitored.')
  expect(text).toContain('it was created, and no run has ended yet')
  expect(text).not.toMatch(/no ping|first ping|last ping|How to ping|the job has/i)
  for (const command of [
    `kubectl describe cronjob ${cronJob} -n payments`,
    'kubectl get jobs,pods -n payments',
    `kubectl events --for hbc/${cronJob} -n payments`,
  ])
    expect(page).toContain(`>${command}</code>`)
  expect(read((await visitor.get('/checks')).text)).not.toContain('after its first ping')
  const how = read((await visitor.get(`/checks/${id}/how`)).text)
  expect(how).toContain('the HeartbeatCheck publishes no ping URL by default (spec.publish.kind None)')
})

it('says why its last run failed, and from whom each entry of its history is', async () => {
  const { id, publicId, cronJob } = await follow()
  const now = api.context.clock.now()
  const [startedAt, endedAt] = [now - 5 * MINUTE, now - 2 * MINUTE]
  const message = 'container backup was OOMKilled (exit code 137)'
  const log = '--- last lines of container backup\ndumping payments'
  await report(
    cronJob,
    [
      { type: 'start', at: startedAt, slotAt: startedAt },
      { type: 'fail', at: endedAt, durationMs: 3 * MINUTE, exitCode: 137, body: `${message}\n${log}` },
    ],
    {
      outcome: 'Failed',
      startTime: new Date(startedAt).toISOString(),
      completionTime: new Date(endedAt).toISOString(),
      exitCode: 137,
      reason: 'OOMKilled',
      message,
    },
  )
  await api.ping(publicId, { type: 'log', body: Buffer.from('from the container') })
  const page = await open(id)
  const text = read(page)
  expect(text).toMatch(/Down since \d\d:\d\d UTC \([^)]+\): container backup was OOMKilled \(exit code 137\) /)
  expect(text).toContain(`Outcome Failed`)
  expect(text).toContain(`Job ${cronJob}-29384620 Started`)
  expect(text).toMatch(/Ended 2 (min|minutes) ago , took 3 min/)
  expect(text).toContain(`Exit code 137 Reason OOMKilled Why ${message}`)
  expect(page).toContain(`>kubectl logs job/${cronJob}-29384620 -n payments --all-containers</code>`)
  expect(text).toMatch(/Failure from its Job · exit code 137 · 3 min · run [0-9a-f]{8}/)
  expect(text).toMatch(/Start from its Job · run [0-9a-f]{8}/)
  expect(text).toMatch(/Log from a ping/)
  expect(text).toContain('dumping payments')
  expect(text).toMatch(/Down a run failed: \S*container backup was OOMKilled \(exit code 137\)\S* \( ?report ?\)/)
  const [failure] = (await api.client.get(`/checks/${id}/pings?type=fail`)).body.pings
  expect(read((await visitor.get(`/checks/${id}/pings/${failure.id}`)).text)).toContain('Source the Job of a CronJob')
})

/** As the evaluator stores it: down since the deadline, by the run of `job`. */
async function goDown(id: string, reason: 'missed' | 'overran', { job, detail }: { job: string; detail: string }) {
  const at = new Date(api.context.clock.now() - MINUTE)
  await api.database.query(
    `with down as (update check_states s set status = 2, reason = $2, since = $5, expected_at = null, due_at = null
        from checks c where c.key = s.check_key and c.id = $1 returning s.check_key)
      insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, detail, job)
      select 'ffffffff-0000-7000-8000-000000000000', check_key, $5, $5, 1, 2, $2, $3, $4 from down`,
    [id, reason, detail, job, at],
  )
}

const NEXT_RUN = 'by its schedule the job runs next at'

it('of a run that takes too long names the Job, the limit and the next step, until the Job has ended', async () => {
  const { id, cronJob } = await follow()
  const job = `${cronJob}-29384620`
  const startedAt = api.context.clock.now() - 4 * MINUTE
  const startTime = new Date(startedAt).toISOString()
  const runId = crypto.randomUUID()
  await report(cronJob, [{ type: 'start', at: startedAt, slotAt: startedAt }], { runId, startTime })
  const detail = `Job ${job} has run for longer than 180 s (annotation heartbeat-operator.io/max-runtime-seconds of its CronJob)`
  await goDown(id, 'overran', { job, detail })
  const page = await open(id)
  const text = read(page)
  expect(text).toMatch(new RegExp(`Down since [^:]*:\\d\\d UTC \\(1 minute\\): ${detail.replaceAll(/[()]/g, '\\$&')}`))
  expect(text).toMatch(new RegExp(`Job ${job} still runs, since \\d\\d:\\d\\d UTC \\(4 minutes\\)\\.`))
  expect(text).toContain(`delete the Job: kubectl delete job ${job} -n payments`)
  expect(page).toContain('data-copy="delete-job"')
  const forReader = await (await visit(api, 'read')).get(`/checks/${id}`)
  expect(forReader.text).toContain('id="delete-job"')
  expect(forReader.text).not.toContain('data-copy')
  expect(text).not.toContain(NEXT_RUN)
  expect(read((await visitor.get('/checks')).text)).toMatch(
    /should have ended 1 minute ago *: Job \S+ has run for longer than 180 s/,
  )
  const at = api.context.clock.now()
  await report(cronJob, [{ type: 'log', at, body: `Job ${job} was deleted before it ended` }], {
    runId,
    outcome: 'Deleted',
    startTime,
  })
  const after = read(await open(id))
  expect(after).toContain(NEXT_RUN)
  expect(after).not.toContain('delete job')
})

it('of a run that its CronJob replaced says neither that it still runs nor to delete its Job', async () => {
  const { id, cronJob } = await follow()
  const runId = crypto.randomUUID()
  const now = api.context.clock.now()
  const [first, second] = [`${cronJob}-1`, `${cronJob}-2`]
  const start = (at: number): JobEntry => ({ type: 'start', at, slotAt: at })
  await report(cronJob, [start(now - 5 * MINUTE)], { runId, job: first })
  const overran = `Job ${first} had not ended when Job ${second} replaced it`
  const body = `Job ${first} was deleted before it ended`
  await report(cronJob, [{ type: 'log', at: now, body, overran }], { runId, job: first, outcome: 'Deleted' })
  const replaced = read(await open(id))
  await report(cronJob, [start(now)], { job: second, startTime: new Date(now).toISOString() })
  for (const text of [replaced, read(await open(id))]) {
    expect(text).toContain(overran)
    expect(text).toContain(NEXT_RUN)
    expect(text).not.toMatch(/still runs|delete job/)
  }
})

it('of a run that takes too long names its Job beside a newer one, until the run is closed', async () => {
  const { id, cronJob } = await follow()
  const runId = crypto.randomUUID()
  const now = api.context.clock.now()
  const start = (at: number): JobEntry => ({ type: 'start', at, slotAt: at })
  const [job, newer] = [`${cronJob}-1`, `${cronJob}-2`]
  await report(cronJob, [start(now - 5 * MINUTE)], { runId, job })
  await report(cronJob, [start(now - MINUTE)], { job: newer, startTime: new Date(now - MINUTE).toISOString() })
  await goDown(id, 'overran', { job, detail: `Job ${job} has run for longer than 180 s` })
  const text = read(await open(id))
  // When the older one started is not known any more.
  expect(text).toContain(`Job ${job} still runs. `)
  expect(text).toContain(`kubectl delete job ${job} -n payments`)
  // Its Job was gone when the next controller began.
  const resource = { cluster: 'default', namespace: 'payments', name: cronJob }
  expect(await abandonRuns(api.context, resource, [runId])).toBe('closed')
  expect(read(await open(id))).not.toMatch(/still runs|delete job/)
})

it('of a run that has not started says to delete the Job that blocks it, and not the one that waits', async () => {
  const { id, cronJob } = await follow()
  const job = `${cronJob}-29384620`
  await goDown(id, 'missed', { job, detail: `container backup could not start: ErrImagePull: not found` })
  const waiting = read(await open(id))
  expect(waiting).toContain('no run had started by')
  expect(waiting).toContain(NEXT_RUN)
  expect(waiting).not.toContain('delete job')
  const startedAt = api.context.clock.now() - 90 * MINUTE
  await report(cronJob, [{ type: 'start', at: startedAt, slotAt: startedAt }], {
    startTime: new Date(startedAt).toISOString(),
  })
  await goDownAgain(id)
  const blocked = read(await open(id))
  expect(blocked).toContain(`kubectl delete job ${job} -n payments`)
  expect(blocked).not.toContain(NEXT_RUN)
})

/** A report may have changed its state: as `goDown` left it. */
async function goDownAgain(id: string): Promise<void> {
  await api.database.query(
    `update check_states s set status = 2, reason = 'missed', expected_at = null, due_at = null
      from checks c where c.key = s.check_key and c.id = $1`,
    [id],
  )
}

it('no page of it speaks of pings', async () => {
  const { id, cronJob } = await follow()
  const at = api.context.clock.now() - MINUTE
  await report(cronJob, [{ type: 'fail', at, durationMs: null, exitCode: 1, body: 'container x failed' }], {
    outcome: 'Failed',
  })
  const [entry] = (await api.client.get(`/checks/${id}/pings`)).body.pings
  for (const path of [`/checks/${id}`, `/checks/${id}/pings`, `/checks/${id}/pings/${entry.id}`]) {
    const { status, text } = await visitor.get(path)
    expect(status).toBe(200)
    // Its ping URL stays: the container may ping too.
    const main = text
      .slice(text.indexOf('<main'), text.indexOf('</main>'))
      .replaceAll(/Ping URL|the ping URL|https?:[^<"]*/g, '')
    expect(read(main).match(/.{0,40}\bpings?\b.{0,20}/gi)).toBeNull()
  }
})

it('shows hostile texts of the cluster as text, in all places', async () => {
  const { id, cronJob } = await follow()
  const at = api.context.clock.now() - MINUTE
  await report(cronJob, [{ type: 'fail', at, durationMs: null, exitCode: null, body: HOSTILE }], {
    outcome: 'Failed',
    reason: HOSTILE,
    message: HOSTILE,
  })
  const page = await open(id)
  expect(page).not.toContain('<script>alert')
  expect(page.match(/&lt;script&gt;alert/g)!.length).toBeGreaterThanOrEqual(3)
  const [entry] = (await api.client.get(`/checks/${id}/pings`)).body.pings
  for (const path of ['/checks?q=job', `/checks/${id}/pings`, `/checks/${id}/pings/${entry.id}`]) {
    const { text } = await visitor.get(path)
    expect(text).not.toContain('<script>alert')
    expect(text).toContain('&lt;script&gt;alert')
  }
  const { headers } = await visitor.get(`/checks/${id}/pings/${entry.id}/text`)
  expect(headers.get('content-type')).toContain('text/plain')
})

it('the list shows the beginning of a long reason, and the page all of it', async () => {
  const { id, cronJob } = await follow()
  const at = api.context.clock.now() - MINUTE
  const long = `container x failed: ${'y'.repeat(900)} END`
  await report(cronJob, [{ type: 'fail', at, durationMs: null, exitCode: null, body: long }], { outcome: 'Failed' })
  const list = read((await visitor.get('/checks')).text)
  expect(list).toContain('container x failed: yyy')
  expect(list).toContain('y…')
  expect(list).not.toContain('y'.repeat(150))
  expect(read(await open(id))).toContain(long)
})

it('its manifest follows the CronJob, and its values are changed there', async () => {
  const { id, cronJob } = await follow()
  const { text } = await visitor.get(`/checks/${id}/edit`)
  expect(text).toContain(`  sourceRef: {kind: CronJob, name: &quot;${cronJob}&quot;}`)
  expect(text.slice(text.indexOf('<pre'), text.indexOf('</pre>'))).not.toMatch(/schedule|timeZone/)
  expect(read(text)).toContain('annotate the CronJob instead')
  expect(read((await visitor.get(`/checks/${id}/delete`)).text)).toContain('remove that label')
})

it('a suspended CronJob is resumed where it is', async () => {
  const { id, cronJob } = await follow()
  await visitor.post(`/checks/${id}/pause`)
  await api.database.query('update checks set kubernetes_suspend = true where id = $1', [id])
  const page = await open(id)
  expect(page).not.toMatch(/action="\/checks\/[^"]*\/(pause|resume)"/)
  expect(read(page)).toContain('To resume a suspended CronJob:')
  await api.database.query('update checks set kubernetes_suspend = false where id = $1', [id])
  await api.database.query(
    `update check_states s set status = 0 from checks c where c.key = s.check_key and c.id = $1`,
    [id],
  )
  const expected = read(await open(id))
  expect(expected).toContain('To pause it, suspend its CronJob:')
  expect(expected).not.toContain('It is suspended')
  expect(read(page)).toContain(`kubectl patch cronjob ${cronJob} -n payments -p '{"spec":{"suspend":false}}'`)
})
