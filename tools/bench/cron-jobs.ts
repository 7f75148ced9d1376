/**
 * `npm run bench:cronjobs`: monitoring of CronJobs at the scale of the design. 10,000 CronJobs with 100,000 finished Jobs on a real API server,
 * PostgreSQL beside it, and a controller as a process of its own whose heap is limited: how soon it has seen all of them and recorded all, what
 * it asks of the API server at rest, and how soon 1,000 Jobs are recorded that end within 10 seconds.
 *
 * No controllers of Kubernetes run: CronJobs, finished Jobs and HeartbeatChecks are written into etcd, and the ends of Jobs through the API.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { PING_TYPES } from '../../src/domain/check.ts'
import { createClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { ASKED, readRequests } from '../../test/support/api-server-writes.ts'
import { openCluster } from '../../test/support/cluster-client.ts'
import {
  type MadeCronJob,
  type MadeJob,
  makeCronJob,
  makeFollower,
  makeJob,
  statusOfSuccess,
} from '../../test/support/cron-job-objects.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { CHECKOUT, databaseEnvironment, type ServiceProcess, spawnService } from '../../test/support/service-process.ts'
import { type StoredObject, startControlPlane } from '../cluster/control-plane.ts'

const CRON_JOBS = Number(process.env.BENCH_CRONJOBS ?? 10_000)
const JOBS_EACH = Number(process.env.BENCH_JOBS_EACH ?? 10)
const ENDING = Math.min(1_000, CRON_JOBS)
const ENDING_SECONDS = 10
const REST_SECONDS = Number(process.env.BENCH_SECONDS ?? 60)
const NAMESPACES = 10
/** Above the limit, so that a controller that needs more is measured and does not end. */
const HEAP_MB = Number(process.env.BENCH_HEAP_MB ?? 400)
/** A controller that is out of memory may never answer. */
const READ_MS = 30_000
const STOP_MS = 60_000
const JOBS = { group: 'batch', version: 'v1', plural: 'jobs' }
const RESOURCES = new Set(ASKED)
/** As the database has them. */
const TYPES = { success: PING_TYPES.indexOf('success'), start: PING_TYPES.indexOf('start') }
const isRead = (key: string) => /^(GET|LIST|WATCH) /.test(key)
const isWrite = (key: string) => !isRead(key)
const LIMITS = {
  syncSeconds: 60,
  heapMB: 250,
  recordSeconds: 5,
  seenSeconds: 10,
  writesAtRest: 0,
  readsPerSecond: 5,
  processorPercent: 1,
  stopSeconds: 5,
}

let areMissed = 0
const secondsSince = (from: number) => (performance.now() - from) / 1_000
const say = (text: string) => void process.stderr.write(`${text}\n`)

function report(what: string, value: number, unit: string, limit?: number): void {
  const shown = Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 1)
  const isHeld = limit === undefined || value <= limit
  if (!isHeld) areMissed += 1
  const outcome = limit === undefined ? '| |' : `${limit} ${unit} | ${isHeld ? 'held' : 'MISSED'} |`
  process.stdout.write(`| ${what} | ${shown} ${unit} | ${outcome}\n`)
}

await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB' } })
say('starting a control plane (its programs are built the first time, which takes minutes) ...')
await using plane = await startControlPlane({ crds: ['crds'] })
await plane.stopControllers()
const cluster = openCluster(plane)
const connection = (await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock }))!
const client = createClient({ connection, clock: systemClock, requestConnections: 8 })
const database = createDatabase({ url: postgres.url, name: 'bench', connections: 2, patient: true })
const count = async (text: string, ...values: unknown[]) =>
  Number((await database.query<{ count: unknown }>(text, values)).rows[0]!.count)

const environment = {
  ...databaseEnvironment(postgres.url),
  ROLE: 'controller',
  KUBERNETES: 'required',
  KUBECONFIG: plane.kubeconfigPath,
  PING_URL: 'http://heartbeat.monitoring.svc:8080',
  LOG_LEVEL: 'warn',
}
// It sets the database up, and evaluates deadlines.
const api = spawnService({ ...databaseEnvironment(postgres.url), ROLE: 'api', LOG_LEVEL: 'warn' })
await api.ready(60_000)

const namespaces = await Promise.all(Array.from({ length: NAMESPACES }, () => cluster.makeNamespace()))
const cronJobs = Array.from({ length: CRON_JOBS }, (_, index) =>
  makeCronJob(namespaces[index % NAMESPACES]!.name, `nightly-${index}`),
)
const storedFrom = performance.now()
await plane.store(cronJobs)
await plane.store(finishedJobs(cronJobs))
await plane.store(cronJobs.map(makeFollower))
say(`${CRON_JOBS} CronJobs and ${CRON_JOBS * JOBS_EACH} Jobs stored in ${secondsSince(storedFrom).toFixed(0)} s`)

process.stdout.write(
  `${CRON_JOBS} CronJobs, ${CRON_JOBS * JOBS_EACH} finished Jobs\n\n| what | measured | at most | |\n|---|---:|---:|---|\n`,
)
const controllers: ServiceProcess[] = [api]
try {
  // All at once: each HeartbeatCheck gets its check, and each Job is recorded.
  const first = await startController()
  report('from the first start until all are in the caches', await untilCached(first), 's', LIMITS.syncSeconds)
  await untilFollowed()
  report('from the first start until each check follows its CronJob', secondsSince(first.startedAt), 's')
  await untilRecorded(CRON_JOBS * JOBS_EACH, 'success')
  report('from the first start until all finished Jobs are recorded', secondsSince(first.startedAt), 's')
  await untilAtRest()
  report('heap in use of the first start, at most', first.mostMB(), 'MB', LIMITS.heapMB)
  report('heap in use of the first start, at rest', first.leastMB(), 'MB', LIMITS.heapMB)
  report('stop of the first start', await first.stop(), 's', LIMITS.stopSeconds)

  const beforeRestart = await countRequests()
  const second = await startController()
  await untilCached(second)
  await untilSeen(second)
  report('from a restart until all Jobs are seen and recorded', secondsSince(second.startedAt), 's', LIMITS.syncSeconds)
  await untilAtRest()
  const ofRestart = subtract(await countRequests(), beforeRestart)
  for (const [key, requests] of Object.entries(ofRestart)) say(`restart: ${key}: ${requests}`)
  report('writes that follow a restart', sum(ofRestart, isWrite), '', LIMITS.writesAtRest)

  // Alone: each sample of the heap is a scrape, which takes more than the rest does.
  await second.pauseSampling()
  const restFrom = performance.now()
  const [atRest, cpuFrom] = [await countRequests(), await second.read('process_cpu_seconds_total')]
  await sleep(REST_SECONDS * 1_000)
  const rest = subtract(await countRequests(), atRest)
  const restSeconds = secondsSince(restFrom)
  const cpuSeconds = (await second.read('process_cpu_seconds_total')) - cpuFrom
  second.resumeSampling()
  const reads = sum(rest, isRead)
  report(`writes in ${REST_SECONDS} seconds at rest`, sum(rest, isWrite), '', LIMITS.writesAtRest)
  report('reads per second at rest', reads / restSeconds, '/s', LIMITS.readsPerSecond)
  report('processor time at rest', (cpuSeconds / restSeconds) * 100, '%', LIMITS.processorPercent)

  const jobs = cronJobs.slice(0, ENDING).map((cronJob) => makeJob(cronJob, Date.now(), 'running'))
  await plane.store(jobs)
  await untilRecorded(ENDING, 'start', jobs)
  await sleep(2_000)
  const before = await countRequests()
  const endedFrom = performance.now()
  const ages = watchAges()
  const latencies = await endAll(jobs)
  report('oldest age of "all Jobs seen up to" meanwhile', (await ages.end()) / 1_000, 's', LIMITS.seenSeconds)
  await sleep(2_000)
  const during = subtract(await countRequests(), before)
  const tookSeconds = secondsSince(endedFrom)
  report('Jobs recorded that ended within 10 s', latencies.length, '')
  for (const [name, share] of [['p50', 0.5] as const, ['p99', 0.99] as const, ['all', 1] as const]) {
    const value = latencies[Math.ceil(latencies.length * share) - 1]!
    report(`their end until it is recorded, ${name}`, value / 1_000, 's', share < 1 ? LIMITS.recordSeconds : undefined)
  }
  // The rounds that confirm the caches go on meanwhile.
  const more = Math.max(0, Math.round(sum(during, isRead) - (reads / restSeconds) * tookSeconds))
  report('reads for them, beside those at rest, for each', Math.round((more / ENDING) * 100) / 100, '', 0.05)
  const statusWrites = sum(during, (key) => isWrite(key) && !key.startsWith('PATCH jobs/status'))
  report('writes meanwhile per second (of each last run)', statusWrites / tookSeconds, '/s', 5)
  for (const [key, requests] of Object.entries(during)) say(`${key}: ${requests}`)
  report('heap in use after a restart, at most', second.mostMB(), 'MB', LIMITS.heapMB)
  report('heap in use after a restart, at rest', second.leastMB(), 'MB', LIMITS.heapMB)
  report('stop after a restart', await second.stop(), 's', LIMITS.stopSeconds)
} finally {
  for (const controller of controllers) await controller.kill()
  await database.close()
  await client.close()
}
if (areMissed > 0) process.exitCode = 1

function* finishedJobs(all: readonly MadeCronJob[]): Generator<StoredObject> {
  const now = Date.now()
  for (const cronJob of all)
    for (let age = JOBS_EACH; age > 0; age -= 1) yield makeJob(cronJob, now - age * 3_600_000, 'succeeded')
}

async function startController() {
  const startedAt = performance.now()
  const controller = spawnService(environment, {
    command: process.execPath,
    args: [`--max-old-space-size=${HEAP_MB}`, `${CHECKOUT}src/main.ts`],
  })
  controllers.push(controller)
  const [, ops] = await controller.waitFor(/^ready .*ops=(\S+)$/m, 60_000)
  const read = async (name: string, label = '') => {
    const text = await (await fetch(`${ops}/metrics`, { signal: AbortSignal.timeout(READ_MS) })).text()
    const samples = text.split('\n').filter((line) => line.startsWith(name) && line.includes(label))
    return Number(samples[0]?.split(' ').at(-1) ?? Number.NaN)
  }
  const samples: number[] = []
  let stopSampling = sampleHeap()
  function sampleHeap() {
    let isStopped = false
    const sampling = (async () => {
      for (; !isStopped; await sleep(1_000))
        samples.push((await read('nodejs_heap_size_used_bytes').catch(() => Number.NaN)) / 1e6)
    })()
    return async () => {
      isStopped = true
      await sampling
    }
  }
  const heapOf = (last: number) => samples.slice(-last).filter((sample) => !Number.isNaN(sample))
  return {
    startedAt,
    read,
    mostMB: () => Math.max(...heapOf(samples.length)),
    /** Right after a collection of garbage. */
    leastMB: () => Math.min(...heapOf(30)),
    pauseSampling: () => stopSampling(),
    resumeSampling() {
      stopSampling = sampleHeap()
    },
    async stop() {
      await stopSampling()
      const from = performance.now()
      await controller.stop('SIGTERM', STOP_MS)
      return secondsSince(from)
    },
  }
}

type Controller = Awaited<ReturnType<typeof startController>>

/** Returns the seconds since its start. */
async function untilCached({ startedAt, read }: Controller): Promise<number> {
  const wanted = { cronjobs: CRON_JOBS, jobs: CRON_JOBS * JOBS_EACH }
  for (const [plural, objects] of Object.entries(wanted))
    while (!((await read('kubernetes_cache_objects', `resource="${plural}"`)) >= objects)) await sleep(200)
  return secondsSince(startedAt)
}

async function untilFollowed(): Promise<void> {
  for (let followed = 0; followed < CRON_JOBS; await sleep(1_000)) {
    followed = await count('select count(*) from check_states where job_area is not null')
    say(`${followed} checks follow a CronJob`)
  }
}

/** @param jobs of these only */
async function untilRecorded(wanted: number, type: 'start' | 'success', jobs?: readonly MadeJob[]): Promise<void> {
  for (let recorded = 0; recorded < wanted; await sleep(500)) {
    const uids = jobs?.map(({ uid }) => uid) ?? null
    recorded = await count(
      'select count(*) from pings where type = $1 and source = 1 and ($2::uuid[] is null or run_id = any($2))',
      TYPES[type],
      uids,
    )
    say(`${recorded} of ${wanted} recorded`)
  }
}

/** Everything that changed before its start is recorded. */
async function untilSeen({ startedAt }: Controller): Promise<void> {
  const from = new Date(Date.now() - (performance.now() - startedAt))
  while ((await count('select count(*) from seen_areas where seen_at > $1', from)) === 0) await sleep(100)
}

async function untilAtRest(): Promise<void> {
  for (let before = -1; ; await sleep(5_000)) {
    const writes = sum(await countRequests(), isWrite)
    if (writes === before) return
    before = writes
    say(`${writes} writes so far`)
  }
}

/** Ends them spread over the time; resolves with the milliseconds until each is in the database, the shortest first. */
async function endAll(jobs: readonly MadeJob[]): Promise<number[]> {
  const endedAt = new Map<string, number>()
  const from = performance.now()
  const ending = Promise.all(
    jobs.map(async ({ namespace, name, uid, startedAt }, index) => {
      await sleep((index / jobs.length) * ENDING_SECONDS * 1_000)
      const status = statusOfSuccess(startedAt, Math.max(Date.now(), startedAt + 1_000))
      await client.mergePatch(JOBS, { namespace, name }, { status }, { subresource: 'status' })
      endedAt.set(uid, performance.now())
    }),
  )
  const latencies = new Map<string, number>()
  while (latencies.size < jobs.length) {
    const uids = [...endedAt.keys()].filter((uid) => !latencies.has(uid))
    const text = 'select run_id as uid from pings where type = $1 and run_id = any($2::uuid[])'
    const { rows } = await database.query<{ uid: string }>(text, [TYPES.success, uids])
    for (const { uid } of rows) latencies.set(uid, performance.now() - endedAt.get(uid)!)
    if (secondsSince(from) > 120) throw new Error(`only ${latencies.size} of ${jobs.length} are recorded`)
    await sleep(50)
  }
  await ending
  say(`the last one ended after ${((Math.max(...endedAt.values()) - from) / 1_000).toFixed(1)} s`)
  return [...latencies.values()].sort((a, b) => a - b)
}

/** How old the time is up to which all Jobs are recorded. A round of the controller comes every 2 s, and takes some. */
function watchAges() {
  let isEnded = false
  let oldestMs = 0
  const watching = (async () => {
    for (; !isEnded; await sleep(200)) {
      const text = 'select extract(epoch from clock_timestamp() - max(seen_at)) * 1000 as count from seen_areas'
      oldestMs = Math.max(oldestMs, await count(text))
    }
  })()
  return {
    /** Resolves with the oldest, in milliseconds. */
    async end() {
      isEnded = true
      await watching
      return oldestMs
    },
  }
}

async function countRequests(): Promise<Record<string, number>> {
  return readRequests(String(await client.raw('GET', '/metrics')), (_, resource) => RESOURCES.has(resource))
}

function subtract(after: Record<string, number>, before: Record<string, number>): Record<string, number> {
  const entries = Object.entries(after).map(([key, requests]) => [key, requests - (before[key] ?? 0)] as const)
  return Object.fromEntries(entries.filter(([, more]) => more > 0))
}

function sum(requests: Record<string, number>, isChosen: (key: string) => boolean): number {
  return Object.entries(requests).reduce((all, [key, more]) => all + (isChosen(key) ? more : 0), 0)
}
