/** HeartbeatChecks that follow CronJobs, on a real API server. The rules in detail: test/operator/followed.test.ts. */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { follow, LABELLED } from '../../support/cron-jobs.ts'
import { startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { workIn } from '../../support/workplace.ts'
import { INSTALLED, installNamespacedRights, installRights, reach } from './stage.ts'

/** A resync or a poll would hide what a watch misses. */
const SELDOM = {
  pollMs: 600_000,
  resyncMs: 600_000,
  cronJobs: LABELLED,
} as const

it('follow each change at once, with the columns of kubectl and Events of both', async () => {
  await using scene = await startScene(await reach(cluster, await installRights()), SELDOM, INSTALLED)
  const { place, app } = scene
  const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)
  const columns = async () =>
    (await kubectl('get', 'hbc', 'nightly-backup'))
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/))
  const schedule = (text: string) =>
    kubectl('create', 'cronjob', 'nightly-backup', '--image=busybox', `--schedule=${text}`, '--', 'true')
  const inTime = (isSo: (state: string | undefined, status: object) => boolean) =>
    eventually('the status follows', async () => {
      const object = await place.get('nightly-backup')
      return isSo(object.status?.state, object.status!) && object
    })

  await schedule('0 2 * * *')
  await cluster.applyManifest([
    {
      apiVersion: 'heartbeat-operator.io/v1',
      kind: 'HeartbeatCheck',
      metadata: { name: 'nightly-backup', namespace: place.name },
      spec: follow('nightly-backup'),
    },
  ])
  const object = await place.ready('nightly-backup')
  const sourceRef = { apiGroup: 'batch', kind: 'CronJob', name: 'nightly-backup' }
  expect(object.spec).toEqual({ sourceRef, deletionPolicy: 'Delete' })
  expect(object.status?.source).toMatchObject(sourceRef)
  const [head, row] = await columns()
  expect(head).toEqual(['NAME', 'STATE', 'READY', 'SCHEDULE', 'LAST PING', 'LAST RUN', 'WHY', 'AGE'])
  expect(row?.slice(0, 4)).toEqual(['nightly-backup', 'new', 'True', '0 2 * * *'])

  await kubectl('patch', 'cronjob', 'nightly-backup', '-p', '{"spec":{"suspend":true}}')
  expect((await inTime((state) => state === 'paused')).status?.source).toMatchObject({ suspended: true })
  await kubectl('patch', 'cronjob', 'nightly-backup', '-p', '{"spec":{"suspend":false,"timeZone":"Asia/Tokyo"}}')
  await inTime((state, status) => state === 'new' && 'timeZone' in status && status.timeZone === 'Asia/Tokyo')
  await kubectl('delete', 'cronjob', 'nightly-backup')
  await inTime((state) => state === 'paused')
  expect((await place.condition('nightly-backup', 'Stalled'))?.reason).toBe('SourceNotFound')
  await schedule('@daily')
  const back = await inTime((state) => state === 'new')
  expect(back.status).toMatchObject({ checkId: object.status?.checkId, schedule: '@daily' })

  // A lost status is written again, of the same check.
  const lost = await cluster.api('PATCH', `${place.pathOf('nightly-backup')}/status`, { status: null })
  expect([lost.status, lost.body.status]).toEqual([200, undefined])
  const { conditions: _, ...same } = (await place.ready('nightly-backup')).status!
  expect(back.status).toMatchObject(same)

  const { body } = await app.call('GET', `/checks/${object.status?.checkId}`)
  await fetch(`${app.pingUrl}/ping/${body.public_id}/fail`)
  await eventually('both have the Event', async () => {
    const failed = await kubectl(
      'get',
      'events',
      '--field-selector=reason=Failed',
      '-o',
      'jsonpath={..regarding.kind}{..involvedObject.kind}',
    )
    return failed.includes('HeartbeatCheck') && failed.includes('CronJob')
  })
})

it('stall without the right to read CronJobs, and go on when it is granted', async () => {
  const { name } = await cluster.makeNamespace()
  const connection = await reach(cluster, await installNamespacedRights(name, false))
  await using _scene = await startScene(connection, { ...SELDOM, namespaces: [name] }, name)
  const place = workIn(connection, name)
  await place.makeReady('other')
  await place.apply('backup', follow('backup'))
  const message = await place.stalled('backup', 'SourceForbidden')
  expect(message).toContain(`the operator may not list cronjobs.batch in the namespace ${name}`)
  await installNamespacedRights(name)
  // The limit of the design is a minute.
  await place.stalled('backup', 'SourceNotFound')
})
