/** A reason on its way on a real API server, with the rights of an installation: from pods and Events to the alert, the status and kubectl. */

import { expect, it } from 'vitest'
import { follow, LABELLED } from '../../support/cron-jobs.ts'
import { FAILURES, fill } from '../../support/job-causes.ts'
import { eventually } from '../../support/until.ts'
import { api, core, findPod, makeCronJob, makeJob, writePod } from './cron-job-runs.ts'
import { useInstalled } from './stage.ts'

/** A resync or a poll would hide what a watch misses. */
const scene = useInstalled({ pollMs: 600_000, resyncMs: 600_000, cronJobs: { ...LABELLED, logs: 'failed' } })

/** A CronJob whose first slot is in weeks, with its HeartbeatCheck. */
async function makeFollowed(name: string) {
  const cronJob = await makeCronJob(scene.place.name, name, { suspend: false })
  const { status } = await scene.place.makeReady(name, follow(name))
  return { cronJob, id: status!.checkId! }
}

/** The check's run is missed in a second, as if its slot had been 300 seconds ago. */
const makeDue = (id: string) =>
  scene.sql(
    `update check_states set expected_at = now() - interval '299 s', due_at = now() + interval '1 s', wake_at = now() + interval '1 s'
       where check_key = (select key from checks where id = $1)`,
    id,
  )

const downOf = (id: string) =>
  eventually('it is down', async () => {
    const { rows } = await scene.sql(
      `select e.data, e.subject from events e join checks c on c.key = e.check_key
         where c.id = $1 and e.type = 'check.down'`,
      id,
    )
    return rows[0] as { data: { detail: string }; subject: { kubernetes: object } } | undefined
  })

it('a Job that failed: in the alert, the ping, the status, and the Events of both objects', async () => {
  const { cronJob, id } = await makeFollowed('fails')
  await makeJob(cronJob)
  const pod = await findPod(scene.place.name, 'fails-1')
  const names = { NAMESPACE: scene.place.name, CRONJOB: 'fails', JOB: 'fails-1', POD: pod }
  const { says, status, node, reason, exitCode, body } = fill(FAILURES[0]!, names)
  await writePod(scene.place.name, pod, { status: status!, ...(node && { node }) })

  const { data, subject } = await downOf(id)
  expect(data).toMatchObject({ reason: 'failed', detail: says })
  expect(subject.kubernetes).toMatchObject({ source: { kind: 'CronJob', name: 'fails' }, run: 'fails-1' })
  const { pings } = (await scene.app.call('GET', `/checks/${id}/pings`)).body
  expect(pings[0]).toMatchObject({
    type: 'fail',
    source: 'job',
    exit_code: exitCode,
    body: [says, ...body!].join('\n'),
  })
  await eventually('the status has it', async () => {
    const { status } = await scene.place.get('fails')
    expect(status!.lastRun).toMatchObject({ name: 'fails-1', outcome: 'Failed', exitCode, reason, message: says })
    return true
  })
  await expectNotes('Failed', 'fails', says)
})

it('a run that is missed, because of a quota: in the alert and the Events, which name the Job', async () => {
  const { cronJob, id } = await makeFollowed('quota')
  const path = core('resourcequotas', scene.place.name)
  await api('POST', path, { metadata: { name: 'no-pods' }, spec: { hard: { pods: '0' } } })
  await eventually('it counts', async () => (await api('GET', `${path}/no-pods`)).status?.hard?.pods === '0')
  await makeJob(cronJob)
  await eventually('its controller says why it has no pod', async () => {
    const { items } = await api('GET', `${core('events', scene.place.name)}?fieldSelector=involvedObject.name=quota-1`)
    return items.length > 0
  })
  await makeDue(id)

  const { data, subject } = await downOf(id)
  expect(data).toMatchObject({
    reason: 'missed',
    detail: expect.stringMatching(/^Error creating: pods .* exceeded quota/),
  })
  expect(subject.kubernetes).toMatchObject({ source: { kind: 'CronJob', name: 'quota' }, run: 'quota-1' })
  await expectNotes('Missed', 'quota', data.detail)
})

/** The Events of the HeartbeatCheck and of its CronJob have the reason in their notes. */
async function expectNotes(reason: string, name: string, detail: string): Promise<void> {
  const path = `/apis/events.k8s.io/v1/namespaces/${scene.place.name}/events?fieldSelector=reason=${reason}`
  await eventually(`both Events say ${detail}`, async () => {
    const { items } = await api('GET', path)
    const found: { regarding: { kind: string; name: string }; note: string }[] = items
    const kinds = found
      .filter(({ regarding, note }) => regarding.name === name && note.includes(detail))
      .map(({ regarding }) => regarding.kind)
    expect(kinds.toSorted()).toEqual(['CronJob', 'HeartbeatCheck'])
    return true
  })
}
