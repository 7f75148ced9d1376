/**
 * `npm run bench:spool`: pings per second while PostgreSQL is stopped, against pings per second with it, of the same process in turn; and how fast the
 * spool is recorded afterwards, alone and beside new pings. `--story` instead: two minutes without a database, as jobs see them (spool-story.ts).
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { ask } from '../../test/support/sent-pings.ts'
import { databaseEnvironment, startService } from '../../test/support/service-process.ts'
import { eventually } from '../../test/support/until.ts'
import type { Load, LoadResult } from './load.ts'
import type { PacedLoad, PacedResult } from './paced-load.ts'
import { seedChecks } from './seed-checks.ts'

if (process.argv.includes('--story')) {
  const { tellStory } = await import('./spool-story.ts')
  process.exit((await tellStory()) ? 0 : 1)
}

const CHECKS = 10_000
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 2)
const WARM_SECONDS = Number(process.env.BENCH_WARM_SECONDS ?? 10)
const PACE = 200
const PACED_SECONDS = 5
const LIMITS = { ratio: 1, readBack: 5_000 }

const run = promisify(execFile)
const median = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
const program = (name: string) => new URL(`./${name}`, import.meta.url).pathname

const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
const ids = join(folder, 'ids')
const postgres = await startPostgresServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
const [first] = await seedChecks(postgres.url, CHECKS, ids)
const service = await startService({
  ...databaseEnvironment(postgres.url),
  SPOOL_DIR: join(folder, 'spool'),
  SPOOL_MAX_BYTES: String(2 ** 28),
  LOG_LEVEL: 'error',
})
let isHeld = true
try {
  const port = Number(new URL(service.ping).port)
  await load({ seconds: WARM_SECONDS, isInOrder: true })
  print('| connections | pings/s | p99 ms | without the database, pings/s | p99 ms | ratio | limit | |')
  print('|---:|---:|---:|---:|---:|---:|---:|---|')
  const alone: number[] = []
  for (const connections of [64, 256]) {
    const rounds: { with: LoadResult; without: LoadResult }[] = []
    // The first round lets the service get used to this load and does not count.
    for (let round = 0; round <= ROUNDS; round += 1) {
      const stored = await load({ connections })
      await stop()
      const spooled = await load({ connections })
      const position = await start()
      const { perSecond } = await watchReadBack(position)
      if (round === 0) continue
      rounds.push({ with: stored, without: spooled })
      alone.push(perSecond)
    }
    const ratio = median(rounds.map((round) => round.without.perSecond / round.with.perSecond))
    const figure = (of: 'with' | 'without', what: 'perSecond' | 'p99Ms') =>
      median(rounds.map((round) => round[of][what]))
    const cells = [
      connections,
      figure('with', 'perSecond').toFixed(0),
      figure('with', 'p99Ms').toFixed(1),
      figure('without', 'perSecond').toFixed(0),
      figure('without', 'p99Ms').toFixed(1),
      ratio.toFixed(2),
      LIMITS.ratio,
      judge(ratio >= LIMITS.ratio),
    ]
    print(`| ${cells.join(' | ')} |`)
  }

  print('\n| what | measured | limit | |\n|---|---:|---:|---|')
  printRow('recorded afterwards, pings/s', median(alone), LIMITS.readBack)
  const quiet = await pace()
  await stop()
  await load({ connections: 64, seconds: PACED_SECONDS * 2 })
  const position = await start()
  const [beside, watched] = await Promise.all([pace(), watchReadBack(position)])
  printRow(`the same beside ${PACE} new pings/s`, watched.perSecond, LIMITS.readBack)
  print(`| ... for so long, s (the new pings: ${PACED_SECONDS}) | ${watched.seconds.toFixed(1)} | | |`)
  print(`| a new ping meanwhile, p50 / p99 | ${beside.p50Ms.toFixed(1)} / ${beside.p99Ms.toFixed(1)} ms | | |`)
  print(`| the same without, p50 / p99 | ${quiet.p50Ms.toFixed(1)} / ${quiet.p99Ms.toFixed(1)} ms | | |`)
  if (quiet.failed + beside.failed > 0) throw new Error('new pings did not get 200')
  if (!isHeld) process.exitCode = 1

  async function load(some: Partial<Load>): Promise<LoadResult> {
    const standard = { connections: 64, seconds: SECONDS, isInOrder: false, bodyBytes: 0, isFresh: false }
    const { stdout } = await run(process.execPath, [
      program('load.ts'),
      JSON.stringify({ port, ids, ...standard, ...some }),
    ])
    const result = JSON.parse(stdout) as LoadResult
    if (result.failed > 0) throw new Error(`${result.failed} of ${result.requests} requests did not get 200`)
    return result
  }
} finally {
  await service.stop()
  await postgres.remove()
  rmSync(folder, { recursive: true })
}

async function pace(): Promise<PacedResult> {
  const paced: PacedLoad = { url: service.ping, ids, perSecond: PACE, seconds: PACED_SECONDS }
  const { stdout } = await run(process.execPath, [program('paced-load.ts'), JSON.stringify(paced)], {
    maxBuffer: 2 ** 26,
  })
  return JSON.parse(stdout) as PacedResult
}

/** Resolves when pings are spooled. */
async function stop(): Promise<void> {
  await postgres.stop()
  await eventually(
    'a ping is spooled',
    async () => (await ask(`${service.ping}/ping/${first}`)).headers['ping-stored'] === 'spool',
  )
}

/** Returns the position up to which the spool was recorded before. */
async function start(): Promise<number> {
  await postgres.start()
  return await withDatabase(findPosition)
}

async function findPosition(database: ReturnType<typeof createDatabase>): Promise<number> {
  const { rows } = await database.query<{ readTo: number }>('select coalesce(max(read_to), 0) as "readTo" from spools')
  return rows[0]!.readTo
}

/** From the first progress to the last one. */
async function watchReadBack(before: number): Promise<{ perSecond: number; seconds: number }> {
  return await withDatabase(async (database) => {
    const begun = await eventually('the standby has moved on', async () => {
      const position = await findPosition(database)
      return position > before ? { position, at: performance.now() } : null
    })
    let last = begun
    while (performance.now() - last.at < 1_500) {
      await sleep(20)
      const position = await findPosition(database)
      if (position > last.position) last = { position, at: performance.now() }
    }
    const seconds = (last.at - begun.at) / 1_000
    return { perSecond: (last.position - begun.position) / seconds, seconds }
  })
}

async function withDatabase<T>(use: (database: ReturnType<typeof createDatabase>) => Promise<T>): Promise<T> {
  const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1 })
  try {
    return await use(database)
  } finally {
    await database.close()
  }
}

function judge(isWithin: boolean): string {
  isHeld &&= isWithin
  return isWithin ? 'held' : 'MISSED'
}

function printRow(what: string, measured: number, limit: number): void {
  print(`| ${what} | ${measured.toFixed(0)} | ${limit} | ${judge(measured >= limit)} |`)
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
