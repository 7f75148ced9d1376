/** What may happen between the operator and the API server while both are well: the network and rights. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cluster, type TestNamespace } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import {
  clientOf,
  connectionOf,
  listen,
  readMetric,
  startTestOperator,
  type TestOperatorOptions,
} from '../../support/operator.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { eventually } from '../../support/until.ts'
import { type Workplace, workIn } from '../../support/workplace.ts'
import { reach } from './stage.ts'

let testDatabase: TestDatabase
let namespace: TestNamespace
let place: Workplace

beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
afterAll(() => testDatabase?.close())
beforeEach(async () => {
  namespace = await cluster.makeNamespace()
  place = workIn(await reach(cluster), namespace.name)
})
afterEach(() => namespace?.remove())

/** An operator of one new namespace, which holds its Lease as well. */
async function startOperator(kubeconfig: string, changes: TestOperatorOptions['changes'] = {}) {
  return startTestOperator({
    connection: await connectionOf(kubeconfig),
    testDatabase,
    leaseNamespace: namespace.name,
    changes: { namespaces: [namespace.name], ...changes },
  })
}

const ADMIN = { token: cluster.adminToken }

describe('the watch', () => {
  it('is given up when nothing is heard of it for stallMs', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    await using direct = clientOf(await connectionOf(cluster.kubeconfigPath))
    const kubeconfig = await cluster.writeKubeconfig({ credential: ADMIN, server: proxy.url })
    await using proxied = clientOf(await connectionOf(kubeconfig))
    // All else goes its own way, so that nothing but the watch can notice.
    const client = { ...direct, watch: proxied.watch }
    await using operator = await startOperator(cluster.kubeconfigPath, { client, stallMs: 3_000, pollMs: 60_000 })
    await place.apply('before')
    await place.ready('before')

    proxy.stall((connection) => connection.number > 0)
    const stalledAt = performance.now()
    await place.apply('after')
    await place.ready('after')
    const tookMs = performance.now() - stalledAt
    expect(tookMs).toBeGreaterThan(1_000)
    // With a bookmark before it is a problem; without one the server may just have had nothing to say.
    const given = await Promise.all(
      ['stalled', 'quiet'].map((reason) =>
        readMetric(operator, 'kubernetes_watch_restarts_total', { resource: 'heartbeatchecks', reason }),
      ),
    )
    expect(given.toSorted()).toEqual([0, 1])
  })
})

describe('the right to list', () => {
  it('the right to list may be missing at first, and be removed and granted again later', async () => {
    const { name } = namespace
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    const credential = await cluster.certifyUser(`operator-of-${name}`)
    const kubeconfig = await cluster.writeKubeconfig({ credential, server: proxy.url })
    const grant = () =>
      cluster.api('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}/rolebindings`, {
        metadata: { name: 'operator' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `operator-of-${name}` }],
      })
    const { said, log } = listen()
    const refusals = () =>
      said.filter((message) => message.startsWith('the right to list and watch HeartbeatChecks is missing'))
    await using operator = await startOperator(kubeconfig, { log, orphanMs: 500 })
    await place.apply('before')
    await eventually('it says what is missing', () => refusals().length > 0)
    expect(operator.operator.hasSynced()).toBe(false)

    await grant()
    const { status } = await place.ready('before')
    const url = await place.pingUrl('before')

    await cluster.api('DELETE', `/apis/rbac.authorization.k8s.io/v1/namespaces/${name}/rolebindings/operator`)
    const refusedBefore = refusals().length
    await eventually('the API server knows of the change', async () => {
      const resourceAttributes = {
        namespace: name,
        verb: 'watch',
        group: 'heartbeat-operator.io',
        resource: 'heartbeatchecks',
      }
      const spec = { user: `operator-of-${name}`, resourceAttributes }
      const { body } = await cluster.api('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { spec })
      return body.status.allowed === false
    })
    // A watch that is open goes on whatever becomes of the right to it.
    expect(proxy.reset()).toBeGreaterThan(0)
    await eventually('the watch is refused', () => refusals().length > refusedBefore)
    await grant()
    await place.apply('after')
    await place.ready('after')
    expect((await place.get('before')).status?.checkId).toBe(status?.checkId)
    expect(await place.pingUrl('before')).toBe(url)
    expect(await readMetric(operator, 'heartbeat_orphans_total')).toBe(0)
  })
})
