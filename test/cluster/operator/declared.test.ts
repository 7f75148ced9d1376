/**
 * F2, L2: which check a resource has, on a real API server with the rights and the policy of manifests/. The rules in detail: test/operator,
 * test/db/operator.
 */

import { expect, it } from 'vitest'
import { cluster } from '../../support/cluster.ts'
import { eventually } from '../../support/until.ts'
import { workIn } from '../../support/workplace.ts'
import { useInstalled } from './stage.ts'

const scene = useInstalled({ resyncMs: 3_600_000 })
const kubectl = (...args: string[]) => cluster.kubectl('-n', scene.place.name, ...args)

it('F2: kubectl replace --force keeps URL and history of a retained check, unless the API changed it', async () => {
  const { place } = scene
  const spec = { periodSeconds: 3_600, deletionPolicy: 'Retain' }
  const manifest = { apiVersion: 'heartbeat-operator.io/v1', kind: 'HeartbeatCheck', metadata: { name: 'rf' }, spec }
  const withManifest = (...args: string[]) =>
    cluster.kubectlWith({ input: JSON.stringify(manifest) }, '-n', place.name, ...args, '-f', '-')
  await withManifest('apply')
  const { status } = await place.ready('rf')
  const url = await place.pingUrl('rf')
  await fetch(url)
  await withManifest('replace', '--force')
  const again = await place.ready('rf')
  expect(again.status).toMatchObject({ checkId: status!.checkId, slug: 'rf', state: 'up' })
  expect(await place.pingUrl('rf')).toBe(url)
  expect((await place.find('secrets', 'rf-heartbeat'))?.metadata.ownerReferences?.[0]?.uid).toBe(again.metadata.uid)
  await place.event('rf', 'Readopted')

  await kubectl('delete', 'hbc', 'rf')
  await scene.app.call('PUT', `/checks/${status!.checkId}`, { name: 'Ours now' })
  await withManifest('apply')
  await place.stalled('rf', 'RetainedCheckExists')
  expect(await place.pingUrl('rf')).toBe(url)
  await kubectl('annotate', 'hbc', 'rf', `heartbeat-operator.io/adopt-check-id=${status!.checkId}`)
  expect((await place.ready('rf')).status?.checkId).toBe(status!.checkId)
  expect(await place.pingUrl('rf')).toBe(url)
})

it('L2: with REVIVAL=uid a namespace of the same name does not get the checks of the one before', async () => {
  await scene.restart({ revival: 'uid' })
  const { name } = await cluster.makeNamespace()
  const path = `/api/v1/namespaces/${name}`
  const tenant = workIn(scene.cluster, name)
  const { status } = await tenant.makeReady('a')
  const url = await tenant.pingUrl('a')
  await tenant.delete('a')
  expect((await tenant.makeReady('a')).status?.checkId).toBe(status?.checkId)
  await cluster.api('DELETE', path)
  await eventually('the namespace is gone', async () => (await cluster.api('GET', path)).status === 404)

  await cluster.api('POST', '/api/v1/namespaces', { metadata: { name } })
  expect((await tenant.makeReady('a')).status?.checkId).not.toBe(status?.checkId)
  expect(await tenant.pingUrl('a')).not.toBe(url)
  expect((await fetch(url)).status).toBe(404)
  await tenant.delete('a')
  await cluster.api('DELETE', path)
  await scene.restart()
})
