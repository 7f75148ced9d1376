/** Two clusters and one database. */

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster as shared, waitFor } from '../../support/cluster.ts'
import { type Cluster, openCluster } from '../../support/cluster-client.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator, type TestOperatorOptions } from '../../support/operator.ts'
import { type ControlPlane, startControlPlane } from '../control-plane.ts'
import { checksOf, listen, readMetric, whenLeading } from './stage.ts'

const CRDS = fileURLToPath(new URL('../../../crds', import.meta.url))

let plane: ControlPlane
let other: Cluster
let testDatabase: TestDatabase

beforeAll(async () => {
  plane = await startControlPlane({ crds: [CRDS] })
  other = openCluster(plane)
  testDatabase = await createTestDatabase()
})
afterAll(async () => {
  await testDatabase?.close()
  await plane?.stop()
})

/** In a namespace of one name in both clusters. */
async function openBoth() {
  const namespace = await shared.makeNamespace()
  await other.api('POST', '/api/v1/namespaces', { metadata: { name: namespace.name } })
  const start = (of: Cluster, changes: TestOperatorOptions['changes'] = {}) =>
    startTestOperator({
      kubeconfig: of.kubeconfigPath,
      testDatabase,
      leaseNamespace: namespace.name,
      changes: { namespaces: [namespace.name], holderSeconds: 3, ...changes },
    })
  return {
    here: checksOf(shared, namespace.name),
    there: checksOf(other, namespace.name),
    start,
    [Symbol.asyncDispose]: namespace.remove,
  }
}

describe('clusters of different names', () => {
  it('have checks of their own for resources of the same name', async () => {
    await using both = await openBoth()
    const { here, there, start } = both
    await using _east = await start(shared, { cluster: 'east' })
    await using _west = await start(other, { cluster: 'west' })
    await here.apply('nightly', { periodSeconds: 600 })
    await there.apply('nightly', { schedule: '0 2 * * *' })
    const east = await here.whenReady('nightly')
    const west = await there.whenReady('nightly')
    expect(east.status?.checkId).not.toBe(west.status?.checkId)
    const urls = [await here.urlOf('nightly'), await there.urlOf('nightly')]
    expect(new Set(urls).size).toBe(2)

    await here.remove('nightly')
    const { rows } = await testDatabase.database.query(
      `select kubernetes_cluster as cluster, schedule from checks c join check_states s on s.check_key = c.key
        where kubernetes_name = 'nightly'`,
    )
    expect(rows).toEqual([{ cluster: 'west', schedule: '0 2 * * *' }])
    await there.apply('nightly', { schedule: '0 3 * * *' })
    await there.whenReady('nightly')
    expect(await there.urlOf('nightly')).toBe(urls[1])
  })
})

describe('clusters of one name', () => {
  it('the second one refuses and says so while the first one lives, and takes over when it is gone', async () => {
    await using both = await openBoth()
    const { here, there, start } = both
    await using first = await start(shared, { cluster: 'twice' })
    await here.apply('nightly')
    const { status } = await here.whenReady('nightly')
    const url = await here.urlOf('nightly')

    const { said, log } = listen()
    const refusals = () =>
      said.filter((message) => message.startsWith('another live cluster reconciles under this name'))
    await using second = await start(other, { cluster: 'twice', log })
    await whenLeading(second)
    await there.apply('nightly', { periodSeconds: 60 })
    await waitFor('it has refused for longer than the name would be held', () => refusals().length > 4, 15_000)
    expect(refusals()[0]).toContain('CLUSTER_NAME')
    expect(await readMetric(second, 'heartbeat_cluster_name_taken')).toBe(1)
    expect(await readMetric(first, 'heartbeat_cluster_name_taken')).toBe(0)
    expect((await there.find('nightly'))?.status).toBeUndefined()
    expect((await there.find('nightly'))?.metadata.finalizers).toBeUndefined()
    // The first one is not disturbed.
    await here.apply('nightly', { periodSeconds: 1200 })
    await here.whenReady('nightly')

    await first.stop()
    const taken = await there.whenReady('nightly')
    expect(taken.status?.checkId).toBe(status?.checkId)
    expect(await there.urlOf('nightly')).toBe(url)
    expect(await readMetric(second, 'heartbeat_cluster_name_taken')).toBe(0)
  })
})
