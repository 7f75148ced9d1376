/**
 * `npm run bench:pings`: compares the product, which records pings in groups, with three others: the same Koa app with a constant response (the
 * floor refers to it); the same app with a transaction for each ping; plain Koa and its router with a constant response. All four servers run
 * for the whole time and are loaded in turn, round by round, so that a slow minute of the machine affects all of them. The medians of the ratios
 * within a round count. The servers that record have a database each, in one PostgreSQL.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import type { Load, LoadResult } from './load.ts'
import { MODES, type Mode } from './modes.ts'
import { seedChecks } from './seed-checks.ts'

const CHECKS = 10_000
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2)
/** For each server, before the first round: long enough to ping each check several times. */
const WARM_SECONDS = Number(process.env.BENCH_WARM_SECONDS ?? 10)
/** About 10,000 repeated pings a second on two cores. No job pings so often: cold-pings.ts has the figure of real jobs. */
const FLOOR = { constant: 0.17, transaction: 2.5 }

interface Scenario extends Pick<Load, 'connections' | 'bodyBytes' | 'isFresh'> {
  readonly name: string
  readonly isHot: boolean
}

/** One of the four servers, and files with the public ids that it knows. */
interface Site {
  readonly port: number
  readonly ids: { readonly all: string; readonly hot: string }
}

const scenario = (name: string, overrides: Partial<Scenario> = {}): Scenario => ({
  name,
  connections: 64,
  bodyBytes: 0,
  isFresh: false,
  isHot: false,
  ...overrides,
})
const SCENARIOS = [
  scenario('64 connections'),
  scenario('1 connection', { connections: 1 }),
  scenario('256 connections', { connections: 256 }),
  scenario('64, a new connection each', { isFresh: true }),
  scenario('64, one hot check', { isHot: true }),
  scenario('64, bodies of 2 KB', { bodyBytes: 2_048 }),
]

const run = promisify(execFile)
const median = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!

const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
const postgres = await startPostgresServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
const servers: ChildProcess[] = []
try {
  const sites = {} as Record<Mode, Site>
  for (const mode of MODES) sites[mode] = await startSite(mode)
  process.stdout.write(`warming up, ${(WARM_SECONDS * MODES.length).toFixed(0)} s ...\n`)
  await warmUp(sites)
  let isAboveFloor = true
  process.stdout.write(`${CHECKS} checks, ${ROUNDS} rounds of ${SECONDS} s each; median of the rounds\n\n`)
  process.stdout.write(
    '| load | pings/s | p50 ms | p99 ms | one transaction a ping /s | same app, constant /s | plain Koa, constant /s | of the same app | of one transaction a ping | of plain Koa |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n',
  )
  for (const one of SCENARIOS) {
    const rounds = await measure(one, sites)
    const ratio = (mode: Mode) => median(rounds.map((round) => round.groups.perSecond / round[mode].perSecond))
    const figure = (mode: Mode, of: keyof LoadResult) => median(rounds.map((round) => round[mode][of]))
    const failed = rounds.reduce(
      (sum, round) => sum + MODES.reduce((inRound, mode) => inRound + round[mode].failed, 0),
      0,
    )
    if (failed > 0) throw new Error(`${failed} requests of "${one.name}" did not get 200`)
    const cells = [
      one.name,
      figure('groups', 'perSecond').toFixed(0),
      figure('groups', 'p50Ms').toFixed(1),
      figure('groups', 'p99Ms').toFixed(1),
      figure('transaction', 'perSecond').toFixed(0),
      figure('constant', 'perSecond').toFixed(0),
      figure('plain', 'perSecond').toFixed(0),
      ratio('constant').toFixed(2),
      ratio('transaction').toFixed(1),
      ratio('plain').toFixed(2),
    ]
    process.stdout.write(`| ${cells.join(' | ')} |\n`)
    if (one === SCENARIOS[0])
      isAboveFloor = ratio('constant') >= FLOOR.constant && ratio('transaction') >= FLOOR.transaction
  }
  process.stdout.write(
    `\nat 64 connections: floor ${FLOOR.constant} of the same app with a constant response and ${FLOOR.transaction} times one transaction a ping: ${isAboveFloor ? 'held' : 'MISSED'}\n`,
  )
  if (!isAboveFloor) process.exitCode = 1
} finally {
  for (const server of servers) {
    server.kill()
    await once(server, 'exit')
  }
  await postgres.remove()
  rmSync(folder, { recursive: true })
}

async function startSite(mode: Mode): Promise<Site> {
  const url = new URL(postgres.url)
  url.pathname = mode
  const admin = createDatabase({ url: postgres.adminUrl, name: 'bench', connections: 1, patient: true })
  await admin.query(`create database "${mode}" owner "${url.username}"`)
  await admin.close()
  const ids = await seed(mode, url.href)
  return { ids, port: await startServer(mode, url.href) }
}

async function seed(mode: Mode, url: string): Promise<Site['ids']> {
  const files = { all: join(folder, `${mode}-ids`), hot: join(folder, `${mode}-hot-id`) }
  const [first] = await seedChecks(url, CHECKS, files.all)
  writeFileSync(files.hot, first!)
  return files
}

async function startServer(mode: Mode, url: string): Promise<number> {
  const server = spawn(process.execPath, [new URL('./ping-server.ts', import.meta.url).pathname, mode, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  servers.push(server)
  for await (const line of createInterface(server.stdout!)) return Number(line)
  throw new Error(`the ${mode} server ended before it listened`)
}

/**
 * A service that has been up for a while is measured: the first ping of a check flips it and looks up its key, and the compiler needs some
 * thousand groups. Each check is pinged in turn.
 */
async function warmUp(sites: Record<Mode, Site>): Promise<void> {
  for (const mode of MODES) {
    await runLoad({
      port: sites[mode].port,
      connections: 64,
      seconds: WARM_SECONDS,
      ids: sites[mode].ids.all,
      isInOrder: true,
      bodyBytes: 0,
      isFresh: false,
    })
  }
}

async function runLoad(load: Load): Promise<LoadResult> {
  const { stdout } = await run(process.execPath, [new URL('./load.ts', import.meta.url).pathname, JSON.stringify(load)])
  return JSON.parse(stdout) as LoadResult
}

async function measure(
  { connections, bodyBytes, isFresh, isHot }: Scenario,
  sites: Record<Mode, Site>,
): Promise<Record<Mode, LoadResult>[]> {
  const rounds: Record<Mode, LoadResult>[] = []
  // The first round lets the servers get used to this load and does not count.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const results = {} as Record<Mode, LoadResult>
    for (const mode of MODES) {
      const seconds = round === 0 ? 1 : SECONDS
      results[mode] = await runLoad({
        port: sites[mode].port,
        connections,
        seconds,
        ids: isHot ? sites[mode].ids.hot : sites[mode].ids.all,
        isInOrder: false,
        bodyBytes,
        isFresh,
      })
    }
    if (round > 0) rounds.push(results)
  }
  return rounds
}
