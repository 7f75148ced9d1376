/** Two clusters and one database. */

import { describe, expect, it } from 'vitest'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { createTestDatabase } from '../support/database.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import { listen, readMetric, startTestOperator, whenLeading } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { type TestCluster, workIn } from '../support/workplace.ts'

/** The namespace of one name in both clusters. */

const first = use(startFakeCluster)
const second = use(startFakeCluster)
const testDatabase = use(createTestDatabase)
const here = useEach(async () => workIn(first, (await first.makeNamespace()).name))
const there = useEach(() => workIn(second, here.name))

function start({ connection }: TestCluster, changes: Partial<OperatorOptions>) {
  const namespaces = [here.name]
  return startTestOperator({
    connection,
    testDatabase,
    // By the database's time; a third of it is the time between two registrations.
    changes: { namespaces, holderSeconds: 1, pollMs: 100, ...changes },
  })
}

describe('clusters of different names', () => {
  it('have checks of their own for resources of the same name', async () => {
    await using _east = await start(first, { cluster: 'east' })
    await using _west = await start(second, { cluster: 'west' })
    await here.apply('nightly', { periodSeconds: 600 })
    await there.apply('nightly', { schedule: '0 2 * * *' })
    const east = await here.ready('nightly')
    const west = await there.ready('nightly')
    expect(east.status?.checkId).not.toBe(west.status?.checkId)
    const urls = [await here.pingUrl('nightly'), await there.pingUrl('nightly')]
    expect(new Set(urls).size).toBe(2)

    await here.delete('nightly')
    const { rows } = await testDatabase.database.query(
      `select kubernetes_cluster as cluster, schedule from checks c join check_states s on s.check_key = c.key
        where kubernetes_name = 'nightly'`,
    )
    expect(rows).toEqual([{ cluster: 'west', schedule: '0 2 * * *' }])
    await there.apply('nightly', { schedule: '0 3 * * *' })
    await there.ready('nightly')
    expect(await there.pingUrl('nightly')).toBe(urls[1])
  })
})

describe('clusters of one name', () => {
  it('the second cluster of a name reconciles nothing while the first one lives, and takes over when it is gone', async () => {
    await using holder = await start(first, { cluster: 'twice' })
    await here.apply('nightly')
    const { status } = await here.ready('nightly')
    const url = await here.pingUrl('nightly')

    const { said, log } = listen()
    const refusals = () =>
      said.filter((message) => message.startsWith('another live cluster reconciles under this name'))
    // It waits for longer than a busy machine may hold the next registration of the first one up.
    await using rival = await start(second, { cluster: 'twice', log, holderSeconds: 3 })
    await whenLeading(rival)
    await there.apply('nightly', { periodSeconds: 60 })
    await eventually('it has refused for longer than the name would be held', () => refusals().length > 4)
    expect(refusals()[0]).toContain('CLUSTER_NAME')
    expect(await readMetric(rival, 'heartbeat_cluster_name_taken')).toBe(1)
    expect(await readMetric(holder, 'heartbeat_cluster_name_taken')).toBe(0)
    expect((await there.get('nightly')).status).toBeUndefined()
    expect((await there.get('nightly')).metadata.finalizers).toBeUndefined()
    // The first one is not disturbed.
    await here.apply('nightly', { periodSeconds: 1200 })
    await here.ready('nightly')

    await holder.stop()
    const taken = await there.ready('nightly')
    expect(taken.status?.checkId).toBe(status?.checkId)
    expect(await there.pingUrl('nightly')).toBe(url)
    expect(await readMetric(rival, 'heartbeat_cluster_name_taken')).toBe(0)
  })
})
