/** What kubectl, and the garbage collector of a real API server, do to what is published. The rules in detail: test/operator. */

import { expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { cluster } from '../../support/cluster.ts'
import { clientOf } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { useInstalled } from './stage.ts'

const NEVER = 3_600_000
const scene = useInstalled({ resyncMs: NEVER })
const kubectl = (...args: string[]) => cluster.kubectl('-n', scene.place.name, ...args)

// A resync is an hour away, so that nothing but the request can have led to it.
it('kubectl annotate has a HeartbeatCheck reconciled at once', async () => {
  const { place } = scene
  await place.makeReady('asked')
  const url = await place.pingUrl('asked')
  await kubectl('delete', 'secret', 'asked-heartbeat')
  const annotation = `heartbeat-operator.io/reconcile-requested-at=${new Date().toISOString()}`
  await kubectl('annotate', '--overwrite', 'hbc', 'asked', annotation)
  const handled = await eventually(
    'it is handled',
    async () => (await place.get('asked')).status?.lastHandledReconcileTime,
  )
  expect(await place.pingUrl('asked')).toBe(url)
  expect(Math.abs(Date.parse(handled) - Date.now())).toBeLessThan(30_000)
})

it('data of others in a Secret stay when its HeartbeatCheck goes, although no status said that it was published there', async () => {
  const { place } = scene
  await kubectl('create', 'secret', 'generic', 'handed-over', '--from-literal=password=x')
  await kubectl('annotate', 'secret', 'handed-over', 'heartbeat-operator.io/adopt=true')
  const { data } = (await place.find('secrets', 'handed-over'))!
  // The process dies between the write of the Secret and that of the status.
  await using base = clientOf(scene.cluster.connection)
  const died = Promise.withResolvers<void>()
  const replace: KubernetesClient['replace'] = async (type, object, options) => {
    if (options?.subresource !== 'status') return base.replace(type, object, options)
    died.resolve()
    throw new Error('this process is dead')
  }
  const client = { ...base, replace }
  await scene.restart({ client, resyncMs: NEVER })
  await place.apply('guest', { periodSeconds: 3_600, publish: { name: 'handed-over' } })
  await died.promise
  await scene.operator().stop()
  expect(Object.keys((await place.find('secrets', 'handed-over'))!.data!)).toContain('HEARTBEAT_URL')
  await cluster.api('DELETE', place.pathOf('guest'))
  await scene.restart({ resyncMs: NEVER })
  await place.gone('guest')
  // The garbage collector is through when an object of a later resource is gone, which the operator does not know.
  const { metadata } = await place.makeReady('sibling')
  const owner = { apiVersion: 'heartbeat-operator.io/v1', kind: 'HeartbeatCheck', name: 'sibling', uid: metadata.uid }
  await place.put('configmaps', { metadata: { name: 'collected', ownerReferences: [owner] } })
  await place.delete('sibling')
  await eventually('the garbage collector has come', async () => (await place.find('configmaps', 'collected')) === null)
  expect((await place.find('secrets', 'handed-over'))!.data).toEqual(data)
})
