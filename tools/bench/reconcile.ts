/**
 * `npm run bench:operator`: the controller as a process of its own against a real API server and PostgreSQL on the same machine.
 * How long from its start to all HeartbeatChecks Ready, what it takes meanwhile, what it writes afterwards (nothing), how soon
 * it is back after its watch was reset, and how soon leadership moves.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type KubernetesClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { API_VERSION, HEARTBEAT_CHECKS, KIND } from '../../src/operator/names.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { readWrites } from '../../test/support/api-server-writes.ts'
import { openCluster } from '../../test/support/cluster-client.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { databaseEnvironment, type ServiceProcess, spawnService } from '../../test/support/service-process.ts'
import { startTcpProxy } from '../../test/support/tcp-proxy.ts'
import { startControlPlane } from '../cluster/control-plane.ts'
import { timeBareWrites } from './bare-writes.ts'
import { countSockets } from './sockets.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 10_000)
const NAMESPACES = 10
const QUIET_SECONDS = 30
/** Checks whose writes are timed without a controller. */
const BARE = 1_000
/** What the issue asks for. */
const LIMITS = {
  readySeconds: 90,
  connections: 4,
  heapMB: 150,
  lagMs: 50,
  resetSeconds: 2,
  killSeconds: 20,
  stopSeconds: 5,
}

let areMissed = 0
const seconds = (since: number) => (performance.now() - since) / 1_000

function report(what: string, value: number, unit: string, limit: number): void {
  const isHeld = value <= limit
  if (!isHeld) areMissed += 1
  const shown = Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 1)
  process.stdout.write(`| ${what} | ${shown} ${unit} | ${limit} ${unit} | ${isHeld ? 'held' : 'MISSED'} |\n`)
}

await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB' } })
process.stderr.write('starting a control plane (its programs are built the first time, which takes minutes) ...\n')
await using plane = await startControlPlane({ crds: ['crds'] })
const cluster = openCluster(plane)
await using proxy = await startTcpProxy(plane.port)
const connection = (await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock }))!
const client = createClient({ connection, clock: systemClock, requestConnections: 8 })

const environment = (kubeconfig: string) => ({
  ...databaseEnvironment(postgres.url),
  ROLE: 'controller',
  KUBERNETES: 'required',
  KUBECONFIG: kubeconfig,
  LOG_LEVEL: 'warn',
})
const direct = environment(plane.kubeconfigPath)
const throughProxy = environment(
  await cluster.writeKubeconfig({ credential: { token: plane.adminToken }, server: proxy.url }),
)

// A controller does not set the database up.
const api = spawnService({ ...databaseEnvironment(postgres.url), ROLE: 'api', LOG_LEVEL: 'warn' })
await api.ready(60_000)
await api.kill()

const namespaces = await Promise.all(Array.from({ length: NAMESPACES }, () => cluster.makeNamespace()))
const bare = await cluster.makeNamespace()
await makeChecks(client)

process.stdout.write(
  `${CHECKS} HeartbeatChecks in ${NAMESPACES} namespaces\n\n| what | measured | at most | |\n|---|---:|---:|---|\n`,
)
const controllers: ServiceProcess[] = []
try {
  const startedAt = performance.now()
  const first = await startController(direct)
  const sockets = countSockets(first.pid, plane.port)
  const worstLagSeconds = await untilAllReady(client, first, CHECKS)
  const readySeconds = seconds(startedAt)
  const connections = await sockets.stop()
  report('from start to all Ready', readySeconds, 's', LIMITS.readySeconds)
  report('TLS connections to the API server, in all', connections, '', LIMITS.connections)
  const metrics = await readMetrics(first)
  report('heap in use', metrics.number('nodejs_heap_size_used_bytes') / 1e6, 'MB', LIMITS.heapMB)
  report('event loop blocked, worst p99 of a second', worstLagSeconds * 1_000, 'ms', LIMITS.lagMs)

  const writesBefore = await untilQuiet()
  if (writesBefore < CHECKS) throw new Error(`the API server counts ${writesBefore} writes for ${CHECKS} resources`)
  process.stdout.write(
    `| from start to the last write, finalizers and Events included | ${seconds(startedAt).toFixed(1)} s | | |\n`,
  )
  await sleep(QUIET_SECONDS * 1_000)
  report(`writes in ${QUIET_SECONDS} quiet seconds`, (await countWrites()) - writesBefore, '', 0)

  const second = await startController(throughProxy)
  await sleep(2_000)
  const killedAt = performance.now()
  await first.kill()
  await untilLeading(second)
  report('leadership moved after kill -9', seconds(killedAt), 's', LIMITS.killSeconds)

  await untilIdle(second)
  proxy.reset()
  const resetAt = performance.now()
  await makeCheck(client, namespaces[0]!.name, 'after-reset')
  await untilReady(client, namespaces[0]!.name, 'after-reset')
  report('a new check Ready after a reset of all connections', seconds(resetAt), 's', LIMITS.resetSeconds)

  const third = await startController(direct)
  await sleep(2_000)
  const stoppedAt = performance.now()
  second.signal('SIGTERM')
  await untilLeading(third)
  report('leadership moved after SIGTERM', seconds(stoppedAt), 's', LIMITS.stopSeconds)

  // What the machine can do at best, whatever its pace today.
  for (const controller of controllers) await controller.kill()
  const bareSeconds = ((await timeBareWrites(client, bare.name, BARE)) * CHECKS) / BARE
  process.stdout.write(
    `| the two writes that make a check Ready alone, by a loop (${BARE} checks, scaled) | ${bareSeconds.toFixed(1)} s | | |\n` +
      `| from start to all Ready, of that | ${(readySeconds / bareSeconds).toFixed(2)} | | |\n`,
  )
} finally {
  for (const controller of controllers) await controller.kill()
  await client.close()
}
if (areMissed > 0) process.exitCode = 1

async function startController(env: Record<string, string>): Promise<ServiceProcess & { ops: string }> {
  const controller = spawnService(env)
  controllers.push(controller)
  const [, ops] = await controller.waitFor(/^ready .*ops=(\S+)$/m, 60_000)
  return Object.assign(controller, { ops: ops! })
}

async function makeChecks(writer: KubernetesClient): Promise<void> {
  const names = Array.from({ length: CHECKS }, (_, index) => `job-${index}`)
  let made = 0
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await makeCheck(writer, namespaces[made % NAMESPACES]!.name, name)
        made += 1
        if (made % 1_000 === 0) process.stderr.write(`${made} of ${CHECKS} resources made\n`)
      }
    }),
  )
}

async function makeCheck(writer: KubernetesClient, namespace: string, name: string): Promise<void> {
  const object = {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: { name, namespace },
    spec: { periodSeconds: 3_600, displayName: `Job ${name}`, description: 'Made by the benchmark' },
  }
  await writer.create(HEARTBEAT_CHECKS, object)
}

function isReady({ status }: HeartbeatCheck): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
}

/**
 * The controller's own count of what it has published is cheap to ask for, where a look at all resources costs the API server as
 * much as some hundred writes: only the last word is theirs. Returns the worst p99 of the event loop's lag between two questions.
 */
async function untilAllReady(reader: KubernetesClient, controller: { ops: string }, count: number): Promise<number> {
  let worstLagSeconds = 0
  for (let published = 0; published < count; await sleep(1_000)) {
    const metrics = await readMetrics(controller)
    published = metrics.number('heartbeat_publish_total', 'result="written"')
    worstLagSeconds = Math.max(worstLagSeconds, metrics.number('nodejs_eventloop_lag_p99_seconds'))
    process.stderr.write(`${published} of ${count} published\n`)
  }
  while ((await countReady(reader)) < count) await sleep(200)
  return worstLagSeconds
}

/** A new leader looks at everything, a moment after it leads. */
async function untilIdle(controller: { ops: string }): Promise<void> {
  for (let depth = Number.POSITIVE_INFINITY; depth > 0; ) {
    await sleep(1_000)
    const metrics = await readMetrics(controller)
    depth = Math.max(...['live', 'background'].map((priority) => metrics.number('workqueue_depth', priority) || 0))
  }
}

/** Events of what is done already come after it. Returns the writes so far, once there was none for a while. */
async function untilQuiet(): Promise<number> {
  for (let before = -1; ; ) {
    const writes = await countWrites()
    if (writes === before) return writes
    before = writes
    await sleep(3_000)
  }
}

/** Nobody else writes what the operator writes. */
async function countWrites(): Promise<number> {
  const writes = Object.values(readWrites(String(await client.raw('GET', '/metrics'))))
  return writes.reduce((sum, count) => sum + count, 0)
}

async function countReady(reader: KubernetesClient): Promise<number> {
  let ready = 0
  let continueToken: string | null = null
  do {
    const page: Awaited<ReturnType<typeof reader.list<HeartbeatCheck>>> = await reader.list<HeartbeatCheck>(
      HEARTBEAT_CHECKS,
      {
        limit: 500,
        ...(continueToken === null ? {} : { continueToken }),
      },
    )
    const { length } = page.items.filter(isReady)
    ready += length
    // Those behind are no further: they are queued in the order of the list.
    if (length === 0) break
    continueToken = page.continueToken
  } while (continueToken !== null)
  return ready
}

async function untilReady(reader: KubernetesClient, namespace: string, name: string): Promise<void> {
  while (!isReady(await reader.get<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace, name }))) await sleep(20)
}

async function untilLeading(controller: { ops: string }): Promise<void> {
  while ((await readMetrics(controller)).number('leader_election_master_status') !== 1) await sleep(50)
}

async function readMetrics({ ops }: { ops: string }) {
  const text = await (await fetch(`${ops}/metrics`)).text()
  const samples = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => /^(\w+)(?:\{(.*)\})? (\S+)/.exec(line)!)
  return {
    number: (name: string, label = '') =>
      Number(
        samples.find(([, sample, labels]) => sample === name && (labels ?? '').includes(label))?.[3] ?? Number.NaN,
      ),
  }
}
