/**
 * The second part of `npm run bench:pings`: every ping another check, as real jobs ping once in minutes or hours. Nearly each ping then meets a
 * check that the process has not seen lately, and pages that PostgreSQL has not written since its last checkpoint.
 *
 * One server and one database are loaded in turn with pings of 1,000 checks and with pings of all others, each of them once: first right after a
 * checkpoint in each round, then, after more pings, without one. What PostgreSQL writes is counted in its log (pg_walinspect).
 */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { listServerProcesses, startPostgresServer } from '../../test/support/postgres-server.ts'
import type { Load, LoadResult } from './load.ts'
import { cpuSeconds } from './processor-time.ts'
import { readIds, seedPingedChecks, shuffle } from './seed-checks.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 1_000_000)
/** Stored pings of each check. */
const HISTORY = Number(process.env.BENCH_HISTORY ?? 4)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 3)
/** Pings between the rounds after a checkpoint and those without one. */
const BETWEEN_SECONDS = Number(process.env.BENCH_BETWEEN_SECONDS ?? 30)
/** A folder for the database, that is kept: the next run finds its checks there. Default: a temporary one. */
const DATA = process.env.BENCH_DATA
/** Servers in other working copies, that are measured in the same rounds: `name=path of ping-server.ts`, separated by commas. */
const OTHERS = (process.env.BENCH_OTHERS ?? '').split(',').filter((other) => other !== '')
/** A folder for profiles of the servers. Default: none. */
const PROFILES = process.env.BENCH_PROFILES
const HOT_CHECKS = 1_000
const GOAL = 0.7
const MOST_MEGABYTES = 350

interface Server {
  readonly name: string
  readonly port: number
  readonly pid: number
}

interface Measured {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Of a ping, in milliseconds. */
  readonly nodeMs: number
  readonly postgresMs: number
  readonly walBytes: number
  /** Full-page images. */
  readonly images: number
}

type Phase = 'hot' | 'fresh' | 'later'

const run = promisify(execFile)
const median = (values: number[]) => [...values].sort((a, b) => a - b)[values.length >> 1]!
const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
// Checkpoints come when the rounds ask for them.
const postgres = await startPostgresServer({
  ...(DATA === undefined ? {} : { dataDir: DATA }),
  settings: {
    shared_buffers: process.env.BENCH_SHARED_BUFFERS ?? '512MB',
    max_wal_size: '64GB',
    checkpoint_timeout: '1d',
    autovacuum: 'off',
    ...JSON.parse(process.env.BENCH_SETTINGS ?? '{}'),
  },
})
const admin = createDatabase({ url: ofDatabase(postgres.adminUrl), name: 'bench', connections: 1, patient: true })
const servers: ReturnType<typeof spawn>[] = []
try {
  const note = (text: string) => process.stdout.write(`${text}\n`)
  note(`${CHECKS} checks with ${HISTORY} stored pings each ...`)
  const ids = await seed()
  const idsLeft = { cold: shuffle(ids.slice(HOT_CHECKS)), hot: ids.slice(0, HOT_CHECKS) }
  const own = new URL('./ping-server.ts', import.meta.url).pathname
  const all: Server[] = []
  for (const other of [`this=${own}`, ...OTHERS]) {
    const [name, path] = other.split('=') as [string, string]
    all.push(await startServer(name, path))
  }
  const atStart = all.map(({ pid }) => residentMegabytes(pid))
  const results = new Map<string, Measured[]>()
  const perSlice = Math.floor(idsLeft.cold.length / all.length / (2 * ROUNDS + 2 + BETWEEN_SECONDS / SECONDS))

  const measure = async (server: Server, phase: Phase, counts = true, seconds = SECONDS) => {
    const share = Math.ceil((perSlice * seconds) / SECONDS)
    const slice = phase === 'hot' ? idsLeft.hot : idsLeft.cold.splice(0, share)
    const measured = await measureLoad(server, slice, seconds, phase !== 'hot')
    const key = `${server.name} ${phase}`
    if (counts) results.set(key, [...(results.get(key) ?? []), measured])
  }
  // The compiler needs some thousand groups of each kind.
  for (const server of all) {
    await measure(server, 'hot', false)
    await measure(server, 'fresh', false)
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const server of all) {
      await measure(server, 'hot')
      await admin.query('checkpoint')
      await measure(server, 'fresh')
    }
  }
  for (const server of all) await measure(server, 'later', false, BETWEEN_SECONDS / all.length)
  for (let round = 0; round < ROUNDS; round += 1) for (const server of all) await measure(server, 'later')

  note(
    '\n| server | pings over | pings/s | of 1,000 checks | p50 ms | p99 ms | Node.js, ms a ping | PostgreSQL, ms a ping | WAL bytes a ping | full-page images a ping |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|',
  )
  const names = { hot: '1,000 checks', fresh: 'all, after a checkpoint', later: 'all, later' }
  for (const { name } of all) {
    const hot = results.get(`${name} hot`)!
    for (const phase of ['hot', 'fresh', 'later'] as const) {
      const rounds = results.get(`${name} ${phase}`)!
      const figure = (of: keyof Measured) => median(rounds.map((round) => round[of]))
      const ratio = median(rounds.map((round, index) => round.perSecond / hot[index]!.perSecond))
      const cells = [
        name,
        `64, ${names[phase]}`,
        figure('perSecond').toFixed(0),
        ratio.toFixed(2),
        figure('p50Ms').toFixed(1),
        figure('p99Ms').toFixed(1),
        figure('nodeMs').toFixed(3),
        figure('postgresMs').toFixed(3),
        figure('walBytes').toFixed(0),
        figure('images').toFixed(2),
      ]
      note(`| ${cells.join(' | ')} |`)
    }
  }
  note('')
  for (const [index, { name, pid }] of all.entries())
    note(`${name}: ${atStart[index]} MB resident when all checks are known, ${residentMegabytes(pid)} MB at the end`)
  const ratio = median(
    results.get('this fresh')!.map(({ perSecond }, index) => perSecond / results.get('this hot')![index]!.perSecond),
  )
  const memory = residentMegabytes(all[0]!.pid)
  note(`after a checkpoint ${ratio.toFixed(2)} of 1,000 checks, goal ${GOAL}: ${ratio >= GOAL ? 'held' : 'MISSED'}`)
  note(`resident memory ${memory} MB, goal ${MOST_MEGABYTES}: ${memory < MOST_MEGABYTES ? 'held' : 'MISSED'}`)
  if (ratio < GOAL || memory >= MOST_MEGABYTES) process.exitCode = 1
} finally {
  for (const server of servers) {
    server.kill()
    await once(server, 'exit')
  }
  await admin.close()
  await postgres.remove()
  rmSync(folder, { recursive: true })
}

/** The superuser, in the database of the service. */
function ofDatabase(adminUrl: string): string {
  const url = new URL(adminUrl)
  url.pathname = new URL(postgres.url).pathname
  return url.href
}

/** Public ids, oldest check first. */
async function seed(): Promise<string[]> {
  await using stack = new AsyncDisposableStack()
  const database = createDatabase({ url: postgres.url, name: 'seed', connections: 1, patient: true })
  stack.defer(() => database.close())
  await migrate(database)
  const kept = await readIds(database)
  if (kept.length > 0) return kept
  await admin.query('create extension pg_walinspect')
  await seedPingedChecks(database, CHECKS, HISTORY)
  // Before the stack closes the database.
  return await readIds(database)
}

async function startServer(name: string, path: string): Promise<Server> {
  const flags = PROFILES === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(PROFILES, name)}`]
  const server = spawn(process.execPath, [...flags, path, 'groups', postgres.url, 'knowing'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  servers.push(server)
  for await (const line of createInterface(server.stdout!)) return { name, port: Number(line), pid: server.pid! }
  throw new Error(`the server ${name} ended before it listened`)
}

async function measureLoad(server: Server, ids: string[], seconds: number, isEachOnce: boolean): Promise<Measured> {
  const file = join(folder, 'ids')
  writeFileSync(file, ids.join('\n'))
  const load: Load = {
    port: server.port,
    connections: 64,
    seconds,
    ids: file,
    isInOrder: true,
    isOnce: isEachOnce,
    bodyBytes: 0,
    isFresh: false,
  }
  const from = await lsn()
  const nodeBefore = cpuSeconds([server.pid])
  const backends = await listServerProcesses(postgres.pid)
  const postgresBefore = cpuSeconds(backends)
  const { stdout } = await run(process.execPath, [new URL('./load.ts', import.meta.url).pathname, JSON.stringify(load)])
  const nodeSeconds = cpuSeconds([server.pid]) - nodeBefore
  const postgresSeconds = cpuSeconds(await listServerProcesses(postgres.pid)) - postgresBefore
  const to = await lsn()
  const { requests, failed, perSecond, p50Ms, p99Ms } = JSON.parse(stdout) as LoadResult
  if (failed > 0) throw new Error(`${failed} pings did not get 200`)
  const { rows } = await admin.query<{ bytes: number; images: number }>(
    `select ($2::pg_lsn - $1::pg_lsn)::float8 as bytes, count(*)::int4 as images
     from pg_get_wal_block_info($1::pg_lsn, $2::pg_lsn, false) where block_fpi_length > 0`,
    [from, to],
  )
  if (process.env.BENCH_RELATIONS !== undefined) await printRelations(from, to, requests)
  return {
    perSecond,
    p50Ms,
    p99Ms,
    nodeMs: (nodeSeconds * 1_000) / requests,
    postgresMs: (postgresSeconds * 1_000) / requests,
    walBytes: rows[0]!.bytes / requests,
    images: rows[0]!.images / requests,
  }
}

/** What was written of each table and index. */
async function printRelations(from: string, to: string, requests: number): Promise<void> {
  const { rows } = await admin.query<{ name: string; images: number; bytes: number; records: number }>(
    `select coalesce(c.relname, '?') as name, count(*) filter (where block_fpi_length > 0)::int4 as images,
       sum(block_fpi_length)::float8 as bytes, count(*)::int4 as records
     from pg_get_wal_block_info($1::pg_lsn, $2::pg_lsn, false) b
     left join pg_class c on pg_relation_filenode(c.oid) = b.relfilenode and b.reldatabase = (select oid from pg_database where datname = current_database())
     group by 1 order by bytes desc nulls last limit 6`,
    [from, to],
  )
  const lines = rows.map(
    ({ name, images, bytes, records }) =>
      `  ${name}: ${(images / requests).toFixed(2)} images, ${((bytes ?? 0) / requests).toFixed(0)} bytes of them, ${(records / requests).toFixed(2)} blocks a ping`,
  )
  process.stdout.write(`${requests} pings\n${lines.join('\n')}\n`)
}

async function lsn(): Promise<string> {
  const { rows } = await admin.query<{ lsn: string }>('select pg_current_wal_insert_lsn()::text as lsn')
  return rows[0]!.lsn
}

function residentMegabytes(pid: number): number {
  const [, kilobytes] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Math.round(Number(kilobytes) / 1_024)
}
