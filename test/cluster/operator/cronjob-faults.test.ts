/**
 * What may happen while Jobs end, on a control plane of its own: each start and each end is recorded once, and none is lost. No controllers of
 * Kubernetes run there, and Jobs change in etcd, so that they go on while the API server is away.
 */

import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { PING_TYPES } from '../../../src/domain/check.ts'
import { LEASE_NAME } from '../../../src/operator/names.ts'
import type { OperatorOptions } from '../../../src/operator/operator.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { bootstrap } from '../../../src/tenancy/bootstrap.ts'
import { type ControlPlane, startControlPlane } from '../../../tools/cluster/control-plane.ts'
import { type Cluster, openCluster } from '../../support/cluster-client.ts'
import { type MadeCronJob, type MadeJob, makeCronJob, makeFollower, makeJob } from '../../support/cron-job-objects.ts'
import { LABELLED } from '../../support/cron-jobs.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { clientOf, connectionOf, readMetric, startTestOperator, whenLeading } from '../../support/operator.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { databaseEnvironment, spawnService } from '../../support/service-process.ts'
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts'
import { eventually } from '../../support/until.ts'

const CRDS = fileURLToPath(new URL('../../../crds', import.meta.url))
const CRON_JOBS = 10
const JOBS = 30
/** From the end of one Job to that of the next. */
const EVERY_MS = 50

let plane: ControlPlane
let cluster: Cluster
let proxy: TcpProxy
let testDatabase: TestDatabase
let cronJobs: readonly MadeCronJob[]

beforeAll(async () => {
  plane = await startControlPlane({ crds: [CRDS] })
  await plane.stopControllers()
  cluster = openCluster(plane)
  proxy = await startTcpProxy(plane.port)
})
afterAll(async () => {
  await proxy?.close()
  await plane?.stop()
})
beforeEach(async () => {
  testDatabase = await createTestDatabase()
  const { name } = await cluster.makeNamespace()
  cronJobs = Array.from({ length: CRON_JOBS }, (_, index) => makeCronJob(name, `nightly-${index}`))
  await plane.store([...cronJobs, ...cronJobs.map(makeFollower)])
  return () => testDatabase.close()
})

const settings = (): Partial<OperatorOptions> => ({
  cronJobs: LABELLED,
  namespaces: [cronJobs[0]!.namespace],
  random: () => 0,
})

/** Its connections go through the proxy. */
async function startOperator(changes: Partial<OperatorOptions> = {}) {
  const credential = { token: plane.adminToken }
  const operator = await startTestOperator({
    connection: await connectionOf(await cluster.writeKubeconfig({ credential, server: proxy.url, authority: 'file' })),
    testDatabase,
    leaseNamespace: cronJobs[0]!.namespace,
    changes: { ...settings(), ...changes },
  })
  await whenLeading(operator)
  await untilFollowed()
  return operator
}

const count = async (text: string, ...values: unknown[]) =>
  Number((await testDatabase.database.query<{ count: unknown }>(text, values)).rows[0]!.count)

const untilFollowed = () =>
  eventually(
    'each check follows its CronJob',
    async () => (await count('select count(*) from check_states where job_area is not null')) === CRON_JOBS,
  )

interface RunningJob {
  readonly job: MadeJob
  end(): Promise<void>
}

/** Each CronJob has some; every third one fails. */
async function startJobs(): Promise<readonly RunningJob[]> {
  const now = Date.now()
  const jobs = Array.from({ length: JOBS }, (_, index) => {
    const cronJob = cronJobs[index % CRON_JOBS]!
    const slotAt = now - (JOBS - index) * 60_000
    const job = makeJob(cronJob, slotAt, 'running')
    const ended = makeJob(cronJob, slotAt, index % 3 === 2 ? 'failed' : 'succeeded', job.uid)
    return { job, end: () => plane.store([ended]) }
  })
  await plane.store(jobs.map(({ job }) => job))
  return jobs
}

async function endAll(jobs: readonly RunningJob[], halfWay: () => unknown): Promise<void> {
  for (const [index, job] of jobs.entries()) {
    if (index === jobs.length / 2) await halfWay()
    await job.end()
    await systemClock.sleep(EVERY_MS)
  }
}

/** Entries by type. */
async function countEntries(): Promise<Record<string, number>> {
  const text = 'select type, count(*)::int from pings where source = 1 group by type'
  const { rows } = await testDatabase.database.query<{ type: number; count: number }>(text)
  return Object.fromEntries(rows.map((row) => [PING_TYPES[row.type]!, row.count]))
}

async function expectEachOnce(withinMs = 20_000): Promise<void> {
  const all = { start: JOBS, success: (JOBS * 2) / 3, fail: JOBS / 3 }
  const isAll = async () =>
    Object.entries(await countEntries()).every(([type, n]) => n >= all[type as keyof typeof all])
  await eventually('all Jobs are recorded', async () => (await countEnds()) >= JOBS && (await isAll()), withinMs)
  expect(await countEntries()).toEqual(all)
  // What is counted is what is stored, and no run stays open.
  expect(await count('select sum(pings_total) as count from check_states')).toBe(JOBS * 2)
  expect(await count('select count(*) from check_states where runs is not null')).toBe(0)
}

const countEnds = () => count('select count(*) from pings where source = 1 and type in (0, 2)')

async function seenAfter(at: Date): Promise<void> {
  const isSeen = async () => (await count('select count(*) from seen_areas where seen_at > $1', at)) === 1
  await eventually('all Jobs are seen up to now', isSeen)
}

// A watch that the API server ends between two objects of one version goes on after that version.
it('each stored object has a version of its own, as what is written through the API server has', async () => {
  const { body } = await cluster.api('GET', `/apis/batch/v1/namespaces/${cronJobs[0]!.namespace}/cronjobs`)
  const { items } = body as { items: readonly { metadata: { resourceVersion: string } }[] }
  expect(new Set(items.map(({ metadata }) => metadata.resourceVersion)).size).toBe(CRON_JOBS)
})

describe('while Jobs end', () => {
  it('all connections may be reset', async () => {
    await using _ = await startOperator()
    const jobs = await startJobs()
    await endAll(jobs, () => expect(proxy.reset()).toBeGreaterThan(0))
    await expectEachOnce()
    await seenAfter(new Date())
  })

  it('a watch may fall silent: it is found out in seconds, not after the 150 of the stall timer', async () => {
    await using direct = clientOf(await connectionOf(cluster.kubeconfigPath))
    const credential = { token: plane.adminToken }
    await using proxied = clientOf(await connectionOf(await cluster.writeKubeconfig({ credential, server: proxy.url })))
    // All else goes its own way, so that nothing but the watches can notice.
    const client = { ...direct, watch: proxied.watch }
    await using operator = await startOperator({ client })
    const jobs = await startJobs()
    let stalledAt = 0
    await endAll(jobs, () => {
      proxy.stall((connection) => connection.number > 0)
      stalledAt = performance.now()
    })
    await expectEachOnce()
    expect(performance.now() - stalledAt).toBeLessThan(15_000)
    expect(await readMetric(operator, 'kubernetes_watch_restarts_total', { reason: 'stalled' })).toBeGreaterThan(0)
    await seenAfter(new Date())
  })

  it('the API server may be killed, and come back without its history (410)', async () => {
    await using _ = await startOperator()
    const jobs = await startJobs()
    let stoppedAt = new Date()
    await endAll(jobs, async () => {
      await plane.stopApiServer()
      stoppedAt = new Date()
    })
    // Deadlines wait meanwhile.
    expect(await count('select count(*) from seen_areas where seen_at > $1', stoppedAt)).toBe(0)
    await plane.startApiServer()
    await plane.forgetHistory()
    await expectEachOnce(40_000)
    await seenAfter(new Date())
  })

  it('two leaders may record at once', async () => {
    await using first = await startOperator()
    await using second = await startTestOperator({
      connection: await connectionOf(cluster.kubeconfigPath),
      testDatabase,
      leaseNamespace: 'default',
      changes: settings(),
    })
    await whenLeading(second)
    expect(first.operator.isLeader()).toBe(true)
    await endAll(await startJobs(), () => {})
    await expectEachOnce()
  })

  it('the leader may be killed with kill -9, and another process goes on', async () => {
    const context = { database: testDatabase.database, clock: systemClock, passwordCost: LOW_COST }
    await bootstrap(context, { email: 'admin@example.com' })
    const environment = {
      ...databaseEnvironment(testDatabase.url),
      ROLE: 'controller',
      KUBERNETES: 'required',
      KUBECONFIG: cluster.kubeconfigPath,
      WATCH_NAMESPACES: cronJobs[0]!.namespace,
      LOG_LEVEL: 'warn',
    }
    await using first = spawnService(environment)
    await first.waitFor(/^ready /m)
    await untilFollowed()
    await using second = spawnService(environment)
    await second.waitFor(/^ready /m)
    const jobs = await startJobs()
    await endAll(jobs, () => first.kill())
    // All of them have ended unseen; the Lease of the dead would expire a quarter of a minute later.
    await cluster.kubectl('--namespace', 'default', 'delete', 'lease', LEASE_NAME)
    await expectEachOnce()
  })
})
