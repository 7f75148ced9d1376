/**
 * CronJobs that are opted in, on a real API server with its garbage collector, and with the rights and the admission policy of the
 * installation. The rules are tested on the fake API server in test/operator/opt-in.test.ts.
 */

import { beforeAll, expect, it } from 'vitest'
import type { CronJobSettings } from '../../../src/domain/cron-job-settings.ts'
import { cluster } from '../../support/cluster.ts'
import { cronJobsIn, LABELLED, labelNamespace, WATCH_LABEL, WATCHED } from '../../support/cron-jobs.ts'
import { startTestOperator } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { openWorkplace } from '../../support/workplace.ts'
import { INSTALLED, installNamespacedRights, reach, useInstalled, whenPolicyIsEnforced } from './stage.ts'

// A resync or a poll would hide what the watches miss.
const SELDOM = { pollMs: 600_000, resyncMs: 600_000, cronJobs: LABELLED }

const scene = useInstalled(SELDOM)
beforeAll(whenPolicyIsEnforced)
const place = useEach(() => openWorkplace(scene.cluster))
const cronJobs = useEach(() => cronJobsIn(scene.cluster, place))

const names = async (at = place) => (await at.list()).map(({ metadata }) => metadata.name).sort()
const gone = (name: string) => eventually(`${name} is gone`, async () => !(await names()).includes(name))
/** The HeartbeatCheck of the name, once it belongs to the CronJob with this uid and has its check. */
const ownedBy = (name: string, uid: string) =>
  eventually(`${name} belongs to ${uid}`, async () => {
    const object = (await place.list()).find(({ metadata }) => metadata.name === name)
    const isNew = object?.metadata.ownerReferences?.[0]?.uid === uid && object.metadata.deletionTimestamp === undefined
    return isNew && object.status?.checkId !== undefined && object
  })

it('the labels of a CronJob and of a Namespace create HeartbeatChecks, and delete them when they go', async () => {
  await cronJobs.create('own', WATCHED)
  await cronJobs.create('others')
  const { spec } = await place.ready('own')
  expect(spec.sourceRef).toEqual({ apiGroup: 'batch', kind: 'CronJob', name: 'own' })
  await cluster.kubectl('label', 'namespace', place.name, 'heartbeat-operator.io/watch=true')
  await place.ready('others')
  await cronJobs.label('others', 'false')
  await gone('others')
  await cronJobs.label('others', null)
  await place.ready('others')
  await labelNamespace(scene.cluster, place.name, null)
  await gone('others')
  expect(await names()).toEqual(['own'])
  await cronJobs.label('own', null)
  await gone('own')
})

it.each(['Background', 'Foreground'] as const)(
  'a CronJob that is deleted (%s) takes its HeartbeatCheck with it; one of its name has the check again',
  async (policy) => {
    const { uid } = (await cronJobs.create('backup', WATCHED)).metadata
    const first = await ownedBy('backup', uid)
    await cronJobs.delete('backup', policy)
    const path = `/apis/batch/v1/namespaces/${place.name}/cronjobs/backup`
    await eventually('the CronJob is gone', async () => (await cluster.api('GET', path)).status === 404)
    await gone('backup')
    const again = await cronJobs.create('backup', WATCHED)
    const second = await ownedBy('backup', again.metadata.uid)
    expect(second.status!.checkId).toBe(first.status!.checkId)
  },
)

it('a CronJob that is replaced at once (kubectl replace --force, Helm, Argo CD) has a HeartbeatCheck again', async () => {
  const { uid } = (await cronJobs.create('backup', WATCHED)).metadata
  const first = await ownedBy('backup', uid)
  await cronJobs.delete('backup')
  const again = await eventually('it is created again', () => cronJobs.create('backup', WATCHED).catch(() => null))
  const second = await ownedBy('backup', again.metadata.uid)
  expect(second.status!.checkId).toBe(first.status!.checkId)
})

it('what a person deletes is created again; one whose owner a person removes is theirs, and outlives the CronJob', async () => {
  const { uid } = (await cronJobs.create('backup', WATCHED)).metadata
  const first = await ownedBy('backup', uid)
  await cluster.kubectl('-n', place.name, 'delete', 'hbc', 'backup')
  const second = await ownedBy('backup', uid)
  expect(second.metadata.uid).not.toBe(first.metadata.uid)
  expect(second.status!.checkId).toBe(first.status!.checkId)
  await place.change('backup', { metadata: { ownerReferences: null } })
  await cronJobs.delete('backup')
  await place.stalled('backup', 'SourceNotFound')
  expect((await place.get('backup')).metadata.uid).toBe(second.metadata.uid)
})

it('two processes of which the first leader is killed create each HeartbeatCheck once', async () => {
  const path = `/apis/heartbeat-operator.io/v1/namespaces/${place.name}/heartbeatchecks`
  const { connection } = scene.cluster
  await using second = await startTestOperator({
    connection,
    leaseNamespace: INSTALLED,
    testDatabase: scene.testDatabase,
    changes: SELDOM,
  })
  await labelNamespace(scene.cluster, place.name, 'true')
  const all = Array.from({ length: 40 }, (_, index) => `job-${index}`)
  await Promise.all(all.map((name) => cronJobs.create(name)))
  await eventually('some are there', async () => (await names()).length > 5)
  await scene.operator().stop()
  await eventually('all are there', async () => (await names()).length === all.length)
  expect(second.operator.isLeader()).toBe(true)
  const { body } = await cluster.api('GET', path)
  expect(body.items.every(({ metadata }: { metadata: { generation: number } }) => metadata.generation === 1)).toBe(true)
  await scene.restart()
})

it('a controller of single namespaces reads their labels by get; WATCH_CRONJOBS=all needs none', async () => {
  const { connection } = await reach(cluster, await installNamespacedRights(place.name))
  await scene.operator().stop()
  const start = (watch: CronJobSettings['watch']) =>
    startTestOperator({
      connection,
      leaseNamespace: place.name,
      testDatabase: scene.testDatabase,
      changes: { ...SELDOM, namespaces: [place.name], cronJobs: { ...LABELLED, watch } },
    })
  await labelNamespace(scene.cluster, place.name, 'true')
  await cronJobs.create('backup')
  await cronJobs.create('excluded', { labels: { [WATCH_LABEL]: 'false' } })
  {
    await using _ = await start('labelled')
    await place.ready('backup')
    await labelNamespace(scene.cluster, place.name, null)
  }
  {
    await using _ = await start('labelled')
    await gone('backup')
  }
  {
    await using _ = await start('all')
    await place.ready('backup')
    expect(await names()).toEqual(['backup'])
  }
  await scene.restart()
})
