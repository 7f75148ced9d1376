/** F4: `rbac.secrets: namespaces` as the administrator of a namespace meets it: what the resource says, what to run, and that it helps. */

import { expect, it } from 'vitest'
import { GROUP } from '../../../src/operator/names.ts'
import { cluster } from '../../support/cluster.ts'
import { startScene } from '../../support/operator.ts'
import { eventually } from '../../support/until.ts'
import { installPublisherRights, kubeconfigOf, reach } from './stage.ts'

it('F4: without the right to Secrets a resource stalls with the command that grants it; the administrator of its namespace runs it', async () => {
  const { name: home } = await cluster.makeNamespace()
  const { account, role } = await installPublisherRights(home)
  await using scene = await startScene(await reach(cluster, await kubeconfigOf(home)), {}, home)
  const { place } = scene
  await place.apply('nightly')
  const message = await place.stalled('nightly', 'PublishRefused')
  const command = `kubectl create rolebinding heartbeat-operator-publisher -n ${place.name} --clusterrole=${role} --serviceaccount=${account}`
  expect(message).toContain(`an administrator of the namespace grants it with: ${command};`)

  // One who may do in this namespace what Kubernetes' own role admin allows, and nothing else.
  const credential = await cluster.certifyUser('ada')
  const kubeconfigPath = await cluster.writeKubeconfig({ credential, namespace: place.name })
  await cluster.kubectl('-n', place.name, 'create', 'rolebinding', 'ada', '--clusterrole=admin', '--user=ada')
  await cluster.kubectlWith({ kubeconfigPath }, ...command.split(' ').slice(1))
  await place.ready('nightly')
  expect(await place.pingUrl('nightly')).toMatch(/\/ping\/[-0-9a-f]{36}$/)

  // Without the right again: what is deleted would take the data of others along, as the garbage collector knows only whole objects.
  const unbind = () => cluster.kubectl('-n', place.name, 'delete', 'rolebinding', 'heartbeat-operator-publisher')
  const data = { note: Buffer.from('of others').toString('base64') }
  await place.put('secrets', { metadata: { name: 'shared', annotations: { [`${GROUP}/adopt`]: 'true' } }, data })
  await place.makeReady('guest', { periodSeconds: 3_600, publish: { name: 'shared' } })
  await unbind()
  await cluster.api('DELETE', place.pathOf('guest'))
  expect((await place.event('guest', 'CleanupRejected')).note).toContain(command)
  await cluster.kubectlWith({ kubeconfigPath }, ...command.split(' ').slice(1))
  await place.gone('guest')
  expect((await place.find('secrets', 'shared'))!.data).toEqual(data)

  // The binding goes with the namespace, perhaps before the resources: their finalizers must not wait for the right.
  await unbind()
  await cluster.api('DELETE', `/api/v1/namespaces/${place.name}`)
  const isGone = async () => (await cluster.api('GET', place.pathOf('nightly'))).status === 404
  await eventually('the resource is gone', isGone)
})
