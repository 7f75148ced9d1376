/** Which CronJobs the operator monitors, and what it creates, changes and deletes for them (docs/use/cronjobs.md). */

import { beforeEach, describe, expect, it } from 'vitest'
import type { CronJobSettings } from '../../src/domain/cron-job-settings.ts'
import { type CronJobs, cronJobsIn, LABELLED, labelNamespace, WATCH_LABEL, WATCHED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { useEach } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const watching = (watch: CronJobSettings['watch']) => ({ cronJobs: { ...LABELLED, watch } })
const t = useScene(watching('labelled'))

let cronJobs: CronJobs

const place = useEach(() => openWorkplace(t.cluster))
beforeEach(() => {
  cronJobs = cronJobsIn(t.cluster, place)
})

const names = async (at = place) => (await at.list()).map(({ metadata }) => metadata.name).sort()
const created = (name: string, at = place) => at.ready(name)
const gone = (name: string, at = place) => eventually(`${name} is gone`, async () => !(await names(at)).includes(name))
/** The operator has acted on all that came before: it creates them in this order. */
async function caughtUp(at = place): Promise<void> {
  const name = `marker-${(await names(at)).length}`
  await cronJobsIn(t.cluster, at).create(name, WATCHED)
  await created(name, at)
}
const writesTo = (from: number, at = place) =>
  t.cluster.server.requests
    .slice(from)
    .filter(({ method, path }) => method !== 'GET' && path.includes(`/${at.name}/heartbeatchecks`))
    .map(({ method, path }) => `${method} ${path.split('/heartbeatchecks')[1]}`)

describe('the label of a CronJob', () => {
  it('can be added later, and one that goes deletes the HeartbeatCheck; its tombstone gives id and history back', async () => {
    await cronJobs.create('backup')
    await caughtUp()
    expect(await names()).not.toContain('backup')
    await cronJobs.label('backup', 'true')
    const { status } = await created('backup')
    await cronJobs.label('backup', null)
    await gone('backup')
    const { rows } = await t.sql('select id from tombstones where kubernetes_namespace = $1', place.name)
    expect(rows).toEqual([{ id: status!.checkId }])
    await cronJobs.label('backup', 'true')
    expect((await created('backup')).status!.checkId).toBe(status!.checkId)
  })

  it('that is back at once creates another one, when the first is gone', async () => {
    await cronJobs.create('backup', WATCHED)
    const { metadata, status } = await created('backup')
    await cronJobs.label('backup', null)
    await eventually('it is being deleted', async () => {
      const object = (await place.list()).find((one) => one.metadata.name === 'backup')
      return object?.metadata.uid !== metadata.uid || object.metadata.deletionTimestamp !== undefined
    })
    await cronJobs.label('backup', 'true')
    const again = await eventually('there is another', async () => {
      const object = await created('backup')
      return object.metadata.uid !== metadata.uid && object
    })
    expect(again.status!.checkId).toBe(status!.checkId)
  })
})

describe('the label of a Namespace', () => {
  it('is for all CronJobs in it but those labelled false, also for later ones', async () => {
    await cronJobs.create('before')
    await cronJobs.create('excluded', { labels: { [WATCH_LABEL]: 'false' } })
    await caughtUp()
    await labelNamespace(t.cluster, place.name, 'true')
    await created('before')
    await cronJobs.create('after')
    await created('after')
    expect(await names()).not.toContain('excluded')
    await cronJobs.label('excluded', null)
    await created('excluded')
    await cronJobs.label('before', 'false')
    await gone('before')
  })

  it('sends nothing for CronJobs that are suspended already; a later suspension does', async () => {
    const suspended = ['one', 'two', 'three']
    for (const name of suspended) await cronJobs.create(name)
    await cronJobs.create('running', {}, { suspend: false })
    await labelNamespace(t.cluster, place.name, 'true')
    await Promise.all([...suspended, 'running'].map((name) => created(name)))
    expect((await place.get('one')).status!.state).toBe('paused')
    await cronJobs.change('running', { spec: { suspend: true } })
    const events = await eventually('the suspension is an event', async () => {
      const { rows } = await t.sql(
        'select c.name, e.type from events e join checks c on c.key = e.check_key where c.kubernetes_namespace = $1',
        place.name,
      )
      return rows.length > 0 && rows
    })
    expect(events).toEqual([{ name: 'running', type: 'check.paused' }])
  })

  it('that goes deletes them, but for those with a label of their own', async () => {
    await labelNamespace(t.cluster, place.name, 'true')
    await cronJobs.create('own', WATCHED)
    await cronJobs.create('others')
    await Promise.all([created('own'), created('others')])
    await labelNamespace(t.cluster, place.name, null)
    await gone('others')
    await caughtUp()
    expect(await names()).toContain('own')
  })
})

describe('WATCH_CRONJOBS', () => {
  it('all watches each CronJob but those labelled false; labelled again, only the labelled stay', async () => {
    await cronJobs.create('plain')
    await cronJobs.create('labelled', WATCHED)
    await cronJobs.create('excluded', { labels: { [WATCH_LABEL]: 'false' } })
    await t.restart(watching('all'))
    await Promise.all([created('plain'), created('labelled')])
    await caughtUp()
    expect(await names()).not.toContain('excluded')
    await t.restart()
    await gone('plain')
    expect(await names()).toContain('labelled')
  })

  it('off asks the API server nothing about CronJobs, Jobs and pods, and leaves what there is', async () => {
    await cronJobs.create('backup', WATCHED)
    await created('backup')
    await t.operator().stop()
    const from = t.cluster.server.requests.length
    await t.restart(watching('none'))
    await cronJobs.create('later', WATCHED)
    await place.makeReady('marker')
    const asked = t.cluster.server.requests.slice(from).filter(({ headers }) => headers['user-agent'] !== 'test')
    expect(asked.filter(({ path }) => /cronjobs|jobs|pods/.test(path))).toEqual([])
    expect(await names()).toEqual(['backup', 'marker'])
    await t.restart()
    await created('later')
  })
})

describe('the annotations', () => {
  it('are copied, and each change of them is', async () => {
    await cronJobs.create('backup', {
      ...WATCHED,
      annotations: { 'heartbeat-operator.io/grace-seconds': '600', 'heartbeat-operator.io/description': 'nightly' },
    })
    expect((await created('backup')).spec).toMatchObject({ graceSeconds: 600, description: 'nightly' })
    await cronJobs.annotate('backup', {
      'grace-seconds': '900',
      'max-runtime-seconds': '7200',
      'display-name': 'Nightly backup',
      description: null,
    })
    const { spec } = await eventually('the change is copied', async () => {
      const object = await created('backup')
      return object.spec.graceSeconds === 900 && object
    })
    expect(spec).toEqual({
      sourceRef: { kind: 'CronJob', name: 'backup' },
      graceSeconds: 900,
      maxRuntimeSeconds: 7_200,
      displayName: 'Nightly backup',
    })
    const { id } = await eventually('the check has the change', async () => {
      const check = await t.checkOf(await created('backup'))
      expect(check).toMatchObject({ name: 'Nightly backup', grace_seconds: 900, max_runtime_seconds: 7_200 })
      return check
    })
    const limitFrom = async () => {
      const { rows } = await t.app.database.query<{ limit_from: string }>(
        `select j.limit_from from cron_jobs j join checks c on c.key = j.check_key where c.id = $1`,
        [id],
      )
      return rows[0]!.limit_from
    }
    expect(await limitFrom()).toBe('annotation heartbeat-operator.io/max-runtime-seconds of its CronJob')
    // From now on it is a person's, with the limit that it has.
    await place.change('backup', { metadata: { ownerReferences: [] } })
    await eventually(
      'its own field is named',
      async () => (await limitFrom()) === 'spec.maxRuntimeSeconds of its HeartbeatCheck',
    )
  })

  it('project is for a new HeartbeatCheck; a change of it is a Warning, and deleting the HeartbeatCheck applies it', async () => {
    for (const slug of ['one', 'two']) await t.app.call('POST', '/projects', { name: slug, slug })
    await t.cluster.api('PATCH', `/api/v1/namespaces/${place.name}`, {
      metadata: { annotations: { 'heartbeat-operator.io/projects': 'one,two' } },
    })
    await cronJobs.create('backup', { ...WATCHED, annotations: { 'heartbeat-operator.io/project': 'one' } })
    expect((await created('backup')).spec.project).toBe('one')
    await cronJobs.annotate('backup', { project: 'two' })
    expect(await cronJobs.warnings('backup', 'InvalidAnnotation')).toEqual([
      'annotation heartbeat-operator.io/project is "two" now, and the HeartbeatCheck backup stays in the project "one", which cannot be changed: to apply it, delete the HeartbeatCheck (kubectl delete heartbeatcheck backup), and the operator creates it again',
    ])
    const { uid } = (await place.get('backup')).metadata
    await t.cluster.api('DELETE', place.pathOf('backup'))
    await eventually(
      'it is created again',
      async () => (await names()).includes('backup') && (await place.get('backup')).metadata.uid !== uid,
    )
    expect((await created('backup')).spec.project).toBe('two')
  })
})

describe('a project that the namespace may not use', () => {
  it('is an invalid annotation: the check is there, in the default project, and nothing says to delete it', async () => {
    await t.app.call('POST', '/projects', { name: 'payments', slug: 'payments' })
    await cronJobs.create('backup', { ...WATCHED, annotations: { 'heartbeat-operator.io/project': 'payments' } })
    const object = await created('backup')
    expect(object.spec).not.toHaveProperty('project')
    expect(object.status).toHaveProperty('checkId')
    expect(await cronJobs.warnings('backup', 'InvalidAnnotation')).toEqual([
      `annotation heartbeat-operator.io/project must name a project that the namespace may use (${place.name}), and is "payments": the default is used. Once the namespace may use it, delete the HeartbeatCheck (kubectl delete heartbeatcheck backup), and the operator creates it again`,
    ])
  })
})

describe('a HeartbeatCheck that others created', () => {
  it('that is deleted makes room', async () => {
    await place.makeReady('backup', { periodSeconds: 60 })
    await cronJobs.create('backup', WATCHED)
    await cronJobs.warnings('backup', 'NameTaken')
    await t.cluster.api('DELETE', place.pathOf('backup'))
    await eventually(
      'it follows',
      async () => (await names()).includes('backup') && (await place.get('backup')).spec.sourceRef !== undefined,
    )
    await created('backup')
  })
})

it('a resource that is as it should be is not written again, whatever happens to its CronJob', async () => {
  await cronJobs.create('backup', WATCHED)
  await created('backup')
  await caughtUp()
  const from = t.cluster.server.requests.length
  await cronJobs.change('backup', { status: { lastScheduleTime: '2026-11-23T02:00:00Z' } })
  await cronJobs.change('backup', { spec: { suspend: false } })
  await t.restart()
  await caughtUp()
  expect(
    writesTo(from).filter((write) => write === 'POST' || write === 'PATCH /backup' || write === 'DELETE /backup'),
  ).toEqual([])
})
