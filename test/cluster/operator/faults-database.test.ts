/** The database goes away in the middle of the operator's work: first it hangs, then it is gone, then it is back. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { Log } from '../../../src/runtime/log.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { cluster, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { checksOf, listen, readMetric, whenLeading } from './stage.ts'

let direct: TestDatabase
let proxy: TcpProxy
let testDatabase: TestDatabase

beforeAll(async () => {
  direct = await createTestDatabase()
  const url = new URL(direct.url)
  proxy = await startTcpProxy(Number(url.port))
  url.port = String(proxy.port)
  const database = createDatabase({ url: url.href, name: 'proxied', connections: 5 })
  testDatabase = { ...direct, url: url.href, database }
})
afterAll(async () => {
  await testDatabase?.database.close()
  await proxy?.close()
  await direct?.close()
})

const HANGS_MS = 5_000
/** After the seventh failure of one resource its next try is 12.8 s away. */
const FAILURES = 7

describe('a database that hangs, and then is away', () => {
  it('is waited for, and everything is in line within seconds of its return', async () => {
    await using namespace = await cluster.makeNamespace()
    let failures = 0
    const warn = ({ resource }: { resource?: string }) => {
      if (resource === `${namespace.name}/new`) failures += 1
    }
    await using operator = await startTestOperator({
      kubeconfig: cluster.kubeconfigPath,
      testDatabase,
      leaseNamespace: namespace.name,
      // No poll comes to help, and every back-off is as long as it may be.
      changes: {
        namespaces: [namespace.name],
        pollMs: 300_000,
        random: () => 0.999,
        log: { ...silentLog, warn } as Log,
      },
    })
    const checks = checksOf(cluster, namespace.name)
    for (const name of ['kept', 'changed', 'removed']) await checks.apply(name)
    for (const name of ['kept', 'changed', 'removed']) await checks.whenReady(name)
    const url = await checks.urlOf('changed')

    proxy.stall()
    await checks.apply('changed', { periodSeconds: 7200 })
    await checks.apply('new')
    await checks.remove('removed', { wait: false })
    const isRetrying = async (name: string) =>
      (await checks.find(name))?.status?.conditions?.some(({ type }) => type === 'Reconciling')
    await waitFor('it tells that it is tried again', () => isRetrying('new'), HANGS_MS + 5_000)
    await systemClock.sleep(HANGS_MS)
    proxy.refuse()
    proxy.resume()
    proxy.reset()
    await waitFor('it was tried in vain often enough', () => failures >= FAILURES, 30_000)
    expect((await checks.find('removed'))?.metadata.finalizers).toEqual(['heartbeat-operator.io/cleanup'])
    expect(operator.operator.isLeader()).toBe(true)
    expect((await checks.find('kept'))?.status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')

    await proxy.accept()
    const backAt = performance.now()
    await checks.whenReady('new', 7_000)
    await checks.whenReady('changed', 7_000)
    await waitFor('removed is gone', async () => (await checks.find('removed')) === null, 7_000)
    expect(performance.now() - backAt).toBeLessThan(7_000)
    expect(await checks.urlOf('changed')).toBe(url)
    expect(await readMetric(operator, 'heartbeat_finalizers_forced_total')).toBe(0)
  })

  it('while nobody leads yet: the first term begins when it is back', async () => {
    await using namespace = await cluster.makeNamespace()
    const open = { kubeconfig: cluster.kubeconfigPath, testDatabase, leaseNamespace: namespace.name }
    const { said, log } = listen()
    await using leader = await startTestOperator({ ...open, changes: { namespaces: [namespace.name] } })
    await whenLeading(leader)
    await using standby = await startTestOperator({ ...open, changes: { namespaces: [namespace.name], log } })
    await waitFor('the standby is warm', standby.operator.hasSynced)
    proxy.refuse()
    proxy.reset()
    await leader.stop()
    const checks = checksOf(cluster, namespace.name)
    await checks.apply('early')
    await waitFor('the new leader asks in vain', () =>
      said.includes('the cluster could not be identified; it is tried again'),
    )
    expect(standby.operator.isLeader()).toBe(true)
    await proxy.accept()
    await checks.whenReady('early', 6_000)
  })
})
