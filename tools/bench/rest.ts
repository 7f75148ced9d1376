/**
 * The third part of `npm run bench:operator`: what an installation asks of the API server while nothing happens. 1,000 HeartbeatChecks, 200 of
 * which follow a CronJob each, and none of which is due. Counted are all requests of the process, but for the renewals of its Lease.
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { API_VERSION, KIND } from '../../src/operator/names.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { ASKED, readRequests } from '../../test/support/api-server-writes.ts'
import { openCluster } from '../../test/support/cluster-client.ts'
import { makeCronJob, makeFollower } from '../../test/support/cron-job-objects.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { databaseEnvironment, spawnService } from '../../test/support/service-process.ts'
import { startControlPlane } from '../cluster/control-plane.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 1_000)
const CRON_JOBS = Number(process.env.BENCH_CRONJOBS ?? 200)
/** One resync, in which each published object is read once. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? 600)
/** The API server's own components are stopped, or ask for other things. */
const RESOURCES = new Set([...ASKED, 'selfsubjectaccessreviews'])
/** A minute. */
const LIMIT = 30

await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB' } })
await using plane = await startControlPlane({ crds: ['crds'] })
await plane.stopControllers()
const cluster = openCluster(plane)
const connection = (await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock }))!
const client = createClient({ connection, clock: systemClock })
const { name: namespace } = await cluster.makeNamespace()
const cronJobs = Array.from({ length: CRON_JOBS }, (_, index) => makeCronJob(namespace, `nightly-${index}`))
await plane.store(cronJobs)
await plane.store(cronJobs.map(makeFollower))
for (let index = CRON_JOBS; index < CHECKS; index += 1) {
  const spec = { periodSeconds: 86_400, graceSeconds: 86_400 }
  await cluster.api('POST', `/apis/${API_VERSION}/namespaces/${namespace}/heartbeatchecks`, {
    apiVersion: API_VERSION,
    kind: KIND,
    metadata: { name: `job-${index}` },
    spec,
  })
}
const environment = { ROLE: 'all', KUBERNETES: 'required', KUBECONFIG: plane.kubeconfigPath, LOG_LEVEL: 'warn' }
await using service = spawnService({ ...databaseEnvironment(postgres.url), ...environment })
await service.ready(60_000)
await untilChecked()
await untilNoWrites()

const before = await countRequests()
const from = performance.now()
await sleep(SECONDS * 1_000)
const minutes = (performance.now() - from) / 60_000
const after = await countRequests()
const rows = Object.entries(after).flatMap(([what, count]) => {
  const more = count - (before[what] ?? 0)
  return more > 0 ? [[what, more / minutes] as const] : []
})
const all = rows.reduce((sum, [, rate]) => sum + rate, 0)
const isHeld = all <= LIMIT
process.stdout.write(
  `${CHECKS} HeartbeatChecks, ${CRON_JOBS} of which follow a CronJob, at rest for ${SECONDS} seconds\n\n` +
    `| what | measured | at most | |\n|---|---:|---:|---|\n` +
    `| requests a minute, without the Lease | ${all.toFixed(1)} | ${LIMIT} | ${isHeld ? 'held' : 'MISSED'} |\n`,
)
for (const [what, rate] of rows) process.stdout.write(`| of them: ${what} | ${rate.toFixed(1)} | | |\n`)
await client.close()
if (!isHeld) process.exitCode = 1

async function untilChecked(): Promise<void> {
  const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1, patient: true })
  for (let count = 0; count < CHECKS; await sleep(1_000)) {
    const { rows } = await database.query<{ count: number }>('select count(*)::int as count from checks')
    count = rows[0]!.count
    process.stderr.write(`${count} of ${CHECKS} checks\n`)
  }
  await database.close()
}

async function untilNoWrites(): Promise<void> {
  const isWrite = (what: string) => !/^(GET|LIST|WATCH) |selfsubject/.test(what)
  const count = async () =>
    Object.entries(await countRequests()).reduce((sum, [what, more]) => sum + (isWrite(what) ? more : 0), 0)
  for (let known = -1; known !== (await count()); await sleep(10_000)) known = await count()
}

async function countRequests(): Promise<Record<string, number>> {
  return readRequests(String(await client.raw('GET', '/metrics')), (_, resource) => RESOURCES.has(resource))
}
