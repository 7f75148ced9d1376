/**
 * `npm run bench:flood`: 100,000 checks miss in the same second, and one channel wants to know; without pings, with 200 and with 2,000 of them per
 * second, on one replica and on three. How many flips per second are written, how late, and what pings wait meanwhile, against a quiet time just before.
 * With `-- --million`: a million armed checks, 1,000 of them due in each second, beside as many pings as the machine takes. PostgreSQL, each replica, the
 * receiver and the pings are processes of their own on the same machine.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../../test/support/api-client.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { API_KEY, databaseEnvironment, type Service, startService } from '../../test/support/service-process.ts'
import { forget, isOverdue, listChecks, makeDue, readCourse, readWritten, seedArmed, writeIds } from './flood-checks.ts'
import type { Load, LoadResult } from './load.ts'
import type { PacedLoad, PacedResult } from './paced-load.ts'

const isMillion = process.argv.includes('--million')
const CHECKS = Number(process.env.BENCH_CHECKS ?? (isMillion ? 1_000_000 : 100_000))
const numbersOf = (text: string) => text.split(',').map(Number)
const REPLICAS = numbersOf(process.env.BENCH_REPLICAS ?? (isMillion ? '1' : '1,3'))
const PINGS = numbersOf(process.env.BENCH_PINGS ?? '0,200,2000')
const QUIET_SECONDS = Number(process.env.BENCH_QUIET_SECONDS ?? 20)
/** Of the load on a million checks; and then a flood is given up. */
const SECONDS = Number(process.env.BENCH_SECONDS ?? (isMillion ? 30 : 240))
/** Checks that are pinged and do not go down. */
const PINGED = isMillion ? 100_000 : 1_000
const DUE_PER_SECOND = isMillion ? 1_000 : CHECKS
const CONNECTIONS = 64
/** From then on the deadlines pass: long enough for the statement that sets them. */
const DUE_IN_MS = 8_000
/** By pings per second. */
const LIMITS = {
  flips: new Map([
    [0, 3_000],
    [200, 800],
  ]),
  seconds: new Map([[0, 40]]),
  p99Ratio: 2,
  p99Ms: 50,
  detectionSeconds: 1,
}

const run = promisify(execFile)
let areMissed = 0
function report(what: string, shown: string, limit?: string, isHeld = true): void {
  if (!isHeld) areMissed += 1
  const verdict = limit === undefined ? '' : isHeld ? 'held' : 'MISSED'
  process.stdout.write(`| ${what} | ${shown} | ${limit ?? ''} | ${verdict} |\n`)
}
const programOf = (name: string) => new URL(name, import.meta.url).pathname

const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
await using postgres = await startPostgresServer({ settings: { shared_buffers: '512MB', max_wal_size: '8GB' } })
await using replicas = new AsyncDisposableStack()
const services: Service[] = []
const environment = { ...databaseEnvironment(postgres.url), ALLOWED_TARGETS: '127.0.0.0/8', LOG_LEVEL: 'warn' }
const receiver = spawn(process.execPath, [programOf('./receivers.ts'), '1'], { stdio: ['pipe', 'pipe', 'inherit'] })
const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1, patient: true })
try {
  await addReplica()
  await addChannel()
  await seedArmed(database, CHECKS + PINGED)
  const checks = await listChecks(database)
  const lastKey = checks[CHECKS - 1]!.key
  const ids = writeIds(join(folder, 'pinged'), checks.slice(CHECKS))
  for (const count of REPLICAS) {
    while (services.length < count) await addReplica()
    if (isMillion) await measureMillion(ids, lastKey)
    else for (const perSecond of PINGS) await measureFlood({ perSecond, ids, lastKey })
  }
} finally {
  receiver.stdin!.end()
  await database.close()
  rmSync(folder, { recursive: true })
}
if (areMissed > 0) process.exitCode = 1

async function addReplica(): Promise<void> {
  services.push(replicas.use(await startService(environment)))
}

async function addChannel(): Promise<void> {
  const client = await createApiClient(services[0]!.api, API_KEY)
  for await (const line of createInterface(receiver.stdout!)) {
    const [url] = JSON.parse(line) as [string]
    const { status, body } = await client.post('/channels', { kind: 'webhook', name: 'bench', config: { url } })
    if (status !== 201) throw new Error(`no channel: ${status} ${JSON.stringify(body)}`)
    return
  }
}

async function measureFlood({ perSecond, ids, lastKey }: { perSecond: number; ids: string; lastKey: number }) {
  // Each check is cached, and each replica compiled, before anything is measured.
  await startPings(ids, perSecond).endAfter(perSecond === 0 ? 0 : 3)
  const measureQuiet = () => startPings(ids, perSecond).endAfter(perSecond === 0 ? 0 : QUIET_SECONDS / 2)
  const before = await measureQuiet()
  const dueAt = await makeDue(database, { lastKey, perSecond: DUE_PER_SECOND, inMs: DUE_IN_MS })
  if (Date.now() > dueAt) throw new Error('it took too long to set the deadlines')
  const pings = startPings(ids, perSecond)
  await sleep(dueAt + 1_000 - Date.now())
  const giveUpAt = Date.now() + SECONDS * 1_000
  while ((await isOverdue(database)) && Date.now() < giveUpAt) await sleep(200)
  const busy = await pings.end()

  const written = await readWritten(database, lastKey)
  const course = await readCourse(database, { from: dueAt, to: written.lastAt, points: 5 })
  await forget(database)
  // Half of it before, half of it after: the machine's own pace drifts.
  const quiet = summarize([before, await measureQuiet()])

  const seconds = (written.lastAt - dueAt) / 1_000
  const rate = written.flips / seconds
  process.stdout.write(
    `\n${CHECKS} checks miss in one second, ${perSecond} pings a second, ${services.length} replica(s)\n\n| what | measured | limit | |\n|---|---:|---:|---|\n`,
  )
  const least = LIMITS.flips.get(perSecond)
  report('flips per second', rate.toFixed(0), least?.toString(), rate >= (least ?? 0))
  const most = LIMITS.seconds.get(perSecond)
  report(
    'all of them after',
    `${seconds.toFixed(1)} s`,
    most === undefined ? undefined : `${most} s`,
    seconds <= (most ?? Infinity),
  )
  if (perSecond === 0 || written.flips === CHECKS)
    report('checks without a flip, or with two', miss(written), '0', miss(written) === '0 and 0')
  else report('flips in that time', String(written.flips))
  report('deliveries written', String(written.deliveries), String(written.flips), written.deliveries === written.flips)
  if (perSecond > 0) {
    report('a ping in a quiet time', describe(quiet), undefined, quiet.failed === 0)
    report('a ping meanwhile', describe(busy), undefined, busy.failed === 0)
    const ratio = busy.p99Ms / quiet.p99Ms
    report(
      'its p99, of the quiet one',
      ratio.toFixed(2),
      `${LIMITS.p99Ratio}, or ${LIMITS.p99Ms} ms`,
      ratio <= LIMITS.p99Ratio || busy.p99Ms <= LIMITS.p99Ms,
    )
  }
  const points = course.map(({ seconds: at, flips, lag }) => `${at.toFixed(0)} s: ${flips}, ${lag.toFixed(1)} s`)
  report('in course: flips, and how late the latest', points.join('; '))
}

function miss({ flips, checks }: { flips: number; checks: number }): string {
  return `${CHECKS - checks} and ${flips - checks}`
}

async function measureMillion(ids: string, lastKey: number): Promise<void> {
  await fullLoad(ids, 10)
  const quiet = await fullLoad(ids, SECONDS)
  const lastDue = lastKey - CHECKS + SECONDS * DUE_PER_SECOND
  const dueAt = await makeDue(database, { lastKey: lastDue, perSecond: DUE_PER_SECOND, inMs: DUE_IN_MS })
  await sleep(dueAt - Date.now())
  const busy = await fullLoad(ids, SECONDS)
  while (await isOverdue(database)) await sleep(200)

  const written = await readWritten(database, lastDue)
  process.stdout.write(
    `\n${CHECKS} armed checks, ${DUE_PER_SECOND} due a second for ${SECONDS} s, ${CONNECTIONS} connections that ping without a pause\n\n| what | measured | limit | |\n|---|---:|---:|---|\n`,
  )
  const limit = LIMITS.detectionSeconds
  report('detected after, p99', `${written.lagP99.toFixed(2)} s`, `${limit} s`, written.lagP99 < limit)
  report('detected after, at most', `${written.lagWorst.toFixed(2)} s`)
  report('flips', String(written.flips), String(SECONDS * DUE_PER_SECOND), written.flips === SECONDS * DUE_PER_SECOND)
  report('deliveries written', String(written.deliveries), String(written.flips), written.deliveries === written.flips)
  for (const [what, load] of [
    ['before', quiet],
    ['meanwhile', busy],
  ] as const)
    report(
      `pings ${what}`,
      `${load.perSecond.toFixed(0)}/s, p50 ${load.p50Ms.toFixed(1)}, p99 ${load.p99Ms.toFixed(1)} ms`,
    )
}

async function fullLoad(ids: string, seconds: number): Promise<LoadResult> {
  const port = Number(new URL(services[0]!.ping).port)
  const load: Load = { port, connections: CONNECTIONS, seconds, ids, isInOrder: false, bodyBytes: 0, isFresh: false }
  const { stdout } = await run(process.execPath, [programOf('./load.ts'), JSON.stringify(load)])
  const result = JSON.parse(stdout) as LoadResult
  if (result.failed > 0) throw new Error(`${result.failed} pings did not get 200`)
  return result
}

interface Pings {
  readonly failed: number
  readonly latenciesMs: readonly number[]
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
}

function summarize(parts: readonly Pick<Pings, 'failed' | 'latenciesMs'>[]): Pings {
  const failed = parts.reduce((sum, part) => sum + part.failed, 0)
  const latenciesMs = parts.flatMap((part) => part.latenciesMs).sort((a, b) => a - b)
  const at = (share: number) =>
    latenciesMs[Math.min(latenciesMs.length - 1, Math.floor(latenciesMs.length * share))] ?? 0
  return { failed, latenciesMs, p50Ms: at(0.5), p99Ms: at(0.99), worstMs: at(1) }
}

function describe({ p50Ms, p99Ms, worstMs }: Pings): string {
  return `p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)}, worst ${worstMs.toFixed(0)} ms`
}

/** Shared between the replicas, as a Service shares them. */
function startPings(ids: string, perSecond: number) {
  const loads = (perSecond === 0 ? [] : services).map(({ ping }) => {
    const paced: PacedLoad = { url: ping, ids, perSecond: perSecond / services.length, seconds: 3_600 }
    const child = spawn(process.execPath, [programOf('./paced-load.ts'), JSON.stringify(paced)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    return { child, result: readResult(child) }
  })
  const end = async (): Promise<Pings> => {
    for (const { child } of loads) child.kill('SIGTERM')
    return summarize(await Promise.all(loads.map(({ result }) => result)))
  }
  return { end, endAfter: (seconds: number) => sleep(seconds * 1_000).then(end) }
}

async function readResult(child: ChildProcess): Promise<PacedResult> {
  let text = ''
  for await (const piece of child.stdout!) text += piece
  return JSON.parse(text) as PacedResult
}
