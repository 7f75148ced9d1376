/** The database goes away in the middle of the operator's work: first it hangs, then it is gone, then it is back. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Log } from '../../src/runtime/log.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import { fasterClock, listen, readMetric, startTestOperator, whenLeading } from '../support/operator.ts'
import { silentLog } from '../support/silent-log.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'

let proxy: TcpProxy
let testDatabase: TestDatabase

const cluster = use(startFakeCluster)
const direct = use(createTestDatabase)
beforeAll(async () => {
  const url = new URL(direct.url)
  proxy = await startTcpProxy(Number(url.port))
  url.port = String(proxy.port)
  const database = createDatabase({ url: url.href, name: 'proxied', connections: 5 })
  testDatabase = { ...direct, url: url.href, database }
})
afterAll(async () => {
  await testDatabase?.database.close()
  await proxy?.close()
})

const place = useEach(() => openWorkplace(cluster))

const clock = fasterClock(5)
/** By the operator's clock the next try is 25 s away after the seventh failure of one resource in a row. */
const FAILURES = 7

const whenGone = (name: string) =>
  eventually(`${name} is gone`, async () => (await cluster.api('GET', place.pathOf(name))).status === 404)

describe('a database that hangs, and then is away', () => {
  it('is waited for, and everything is in line soon after its return, long before the back-offs end', async () => {
    let failures = 0
    const warn = ({ resource }: { resource?: string }) => {
      if (resource === `${place.name}/new`) failures += 1
    }
    // No poll comes to help, and every back-off is as long as it may be.
    const log = { ...silentLog, warn } as Log
    const changes = { namespaces: [place.name], pollMs: 1_500_000, random: () => 0.999, clock, log }
    await using operator = await startTestOperator({ connection: cluster.connection, testDatabase, changes })
    for (const name of ['kept', 'changed', 'removed']) await place.makeReady(name)
    const url = await place.pingUrl('changed')

    proxy.stall()
    await place.apply('changed', { periodSeconds: 7200 })
    await place.apply('new')
    await cluster.api('DELETE', place.pathOf('removed'))
    await eventually('the status says that it is retried', () => place.condition('new', 'Reconciling'))
    proxy.refuse()
    proxy.resume()
    proxy.reset()
    await eventually('it has failed often enough', () => failures >= FAILURES)
    expect((await place.get('removed')).metadata.finalizers).toEqual(['heartbeat-operator.io/cleanup'])
    expect(operator.operator.isLeader()).toBe(true)
    expect((await place.condition('kept', 'Ready'))?.status).toBe('True')

    await proxy.accept()
    const backAt = clock.now()
    await place.ready('new')
    await place.ready('changed')
    await whenGone('removed')
    expect(clock.now() - backAt).toBeLessThan(20_000)
    expect(await place.pingUrl('changed')).toBe(url)
    expect(await readMetric(operator, 'heartbeat_finalizers_forced_total')).toBe(0)
  })

  it('delays the first term of a new leader until it is back', async () => {
    const { said, log } = listen()
    const start = (changes: object = {}) =>
      startTestOperator({
        connection: cluster.connection,
        testDatabase,
        changes: { namespaces: [place.name], clock, ...changes },
      })
    await using leader = await start()
    await whenLeading(leader)
    await using standby = await start({ log })
    await eventually('the standby is warm', standby.operator.hasSynced)
    await standby.started
    proxy.refuse()
    proxy.reset()
    await leader.stop()
    await place.apply('early')
    await eventually('the new leader has asked the database in vain', () =>
      said.includes('the cluster could not be identified; it is tried again'),
    )
    expect(standby.operator.isLeader()).toBe(true)
    await proxy.accept()
    await place.ready('early')
  })
})
