/**
 * The second part of `npm run bench:operator`: what a cluster at rest costs the API server. One process with all roles, a real API server and
 * PostgreSQL; every job pings once a minute, through the ping port, half a second late at most. Counted are the writes that the
 * operator sends, without the Lease.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { API_VERSION, HEARTBEAT_CHECKS, KIND } from '../../src/operator/names.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { readWrites } from '../../test/support/api-server-writes.ts'
import { openCluster } from '../../test/support/cluster-client.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { databaseEnvironment, spawnService } from '../../test/support/service-process.ts'
import { startControlPlane } from '../cluster/control-plane.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 10_000)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 120)
const NAMESPACES = 10
const MINUTE_MS = 60_000
const LATEST_MS = 500
const AT_ONCE = 16
/** Writes a second. */
const LIMIT = 5

await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB' } })
await using plane = await startControlPlane({ crds: ['crds'] })
const cluster = openCluster(plane)
const connection = (await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock }))!
const client = createClient({ connection, clock: systemClock, requestConnections: 8 })
const environment = { ROLE: 'all', KUBERNETES: 'required', KUBECONFIG: plane.kubeconfigPath, LOG_LEVEL: 'warn' }
await using service = spawnService({ ...databaseEnvironment(postgres.url), ...environment })
const { ping } = await service.ready(60_000)

await makeChecks()
const urls = await untilPublished()
process.stderr.write('all have a URL; each pings once a minute from now on\n')
const pinging = new AbortController()
const pingingSince = performance.now()
const job = pingAll(urls, pinging.signal)
// Each becomes up, with an Event; then the first minutes of the same.
await sleep(MINUTE_MS)
await untilNoEvents()
await sleep(MINUTE_MS)

const before = await countWrites()
const startedAt = performance.now()
await sleep(SECONDS * 1_000)
const took = (performance.now() - startedAt) / 1_000
const after = await countWrites()
pinging.abort()
const pings = await job

const rate = sum(after) - sum(before)
const isHeld = rate / took <= LIMIT
process.stdout.write(
  `${CHECKS} HeartbeatChecks, one ping a minute each, ${took.toFixed(0)} seconds\n\n| what | measured | at most | |\n|---|---:|---:|---|\n` +
    `| writes per second to the API server | ${(rate / took).toFixed(2)} | ${LIMIT} | ${isHeld ? 'held' : 'MISSED'} |\n` +
    `| pings per second meanwhile | ${(pings / ((performance.now() - pingingSince) / 1_000)).toFixed(0)} | | |\n`,
)
for (const [what, count] of Object.entries(after)) {
  const more = count - (before[what] ?? 0)
  if (more > 0) process.stdout.write(`| of them: ${what} | ${(more / took).toFixed(2)} | | |\n`)
}
await client.close()
if (!isHeld) process.exitCode = 1

async function makeChecks(): Promise<void> {
  const namespaces = await Promise.all(Array.from({ length: NAMESPACES }, () => cluster.makeNamespace()))
  await eachOf(CHECKS, async (index) => {
    const metadata = { name: `job-${index}`, namespace: namespaces[index % NAMESPACES]!.name }
    const spec = { periodSeconds: 60, graceSeconds: 600 }
    await client.create(HEARTBEAT_CHECKS, { apiVersion: API_VERSION, kind: KIND, metadata, spec })
  })
}

/** Of the database, which has them before the Secrets: jobs read theirs from those. */
async function untilPublished(): Promise<string[]> {
  const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1, patient: true })
  try {
    for (;;) {
      const { rows } = await database.query<{ id: string }>(
        "select public_id as id from checks where managed_by = 'kubernetes'",
      )
      process.stderr.write(`${rows.length} of ${CHECKS} checks\n`)
      if (rows.length === CHECKS) return rows.map(({ id }) => `${ping}/ping/${id}`)
      await sleep(2_000)
    }
  } finally {
    await database.close()
  }
}

/** Spread over the minute; resolves with the number of pings. */
async function pingAll(all: readonly string[], signal: AbortSignal): Promise<number> {
  let sent = 0
  const inFlight = new Set<Promise<void>>()
  const begin = performance.now()
  for (let turn = 0; !signal.aborted; turn += 1) {
    const at = begin + (turn / all.length) * MINUTE_MS
    if (at > performance.now() + 1) await sleep(at - performance.now())
    const sending = send(all[turn % all.length]!).finally(() => inFlight.delete(sending))
    inFlight.add(sending)
    sent += 1
  }
  await Promise.all(inFlight)
  return sent
}

async function send(url: string): Promise<void> {
  await sleep(Math.random() * LATEST_MS)
  const response = await fetch(url)
  if (!response.ok) throw new Error(`${response.status} to a ping`)
  await response.arrayBuffer()
}

async function untilNoEvents(): Promise<void> {
  const countEvents = async () => (await countWrites())['POST events 201'] ?? 0
  for (let count = -1; count !== (await countEvents()); await sleep(5_000)) count = await countEvents()
}

async function countWrites(): Promise<Record<string, number>> {
  return readWrites(String(await client.raw('GET', '/metrics')))
}

function sum(writes: Record<string, number>): number {
  return Object.values(writes).reduce((all, count) => all + count, 0)
}

async function eachOf(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0
  const work = async () => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
}
