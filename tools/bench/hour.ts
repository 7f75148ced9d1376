/**
 * `npm run bench:hour`: about the whole of healthchecks.io on this machine. A million checks; 10,000 pings a second for a
 * minute, which is the top of an hour; then 500 a second for a minute. Each ping is of another check, and 15 % of them
 * have 8.5 KB of text. The product with an ordinary PostgreSQL (that of `npm start`), and a generator that sends each ping
 * when it is due: all on the same cores.
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { query } from '../../test/support/embedded.ts'
import { listServerProcesses, startPostgresServer } from '../../test/support/postgres-server.ts'
import { databaseEnvironment, startService } from '../../test/support/service-process.ts'
import type { OpenLoad, OpenResult } from './open-load.ts'
import { cpuSeconds } from './processor-time.ts'
import { readIds, seedPingedChecks, shuffle } from './seed-checks.ts'

const CHECKS = Number(process.env.BENCH_CHECKS ?? 1_000_000)
const HISTORY = Number(process.env.BENCH_HISTORY ?? 4)
const SECONDS = Number(process.env.BENCH_SECONDS ?? 60)
const PEAK = Number(process.env.BENCH_PER_SECOND ?? 10_000)
const REST = PEAK / 20
const GOAL_P99_MS = 100
/** A generator that is later than this with a connection idle is a limit of its own. */
const MOST_OWN_MS = 20
const STORED_WITHIN_MS = 60_000

const run = promisify(execFile)
const note = (text: string) => process.stdout.write(`${text}\n`)
const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
const postgres = await startPostgresServer()
try {
  note(`${CHECKS} checks with ${HISTORY} stored pings each ...`)
  const ids = await seed()
  const spool = { SPOOL_DIR: join(folder, 'spool'), SPOOL_MAX_BYTES: String(2 ** 28) }
  await using service = await startService({
    ...databaseEnvironment(postgres.url),
    ...spool,
    LOG_LEVEL: 'error',
    RATE_LIMIT_PER_MINUTE: '1000000',
  })
  const measure = async (perSecond: number) => {
    const file = join(folder, 'ids')
    writeFileSync(file, ids.splice(0, perSecond * SECONDS).join('\n'))
    const port = Number(new URL(service.ping).port)
    const load: OpenLoad = {
      port,
      connections: 256,
      perSecond,
      seconds: SECONDS,
      ids: file,
      textShare: 0.15,
      textBytes: 8_704,
    }
    const before = await readUse(service.pid)
    const generator = new URL('./open-load.ts', import.meta.url).pathname
    const { stdout } = await run(process.execPath, [generator, JSON.stringify(load)])
    const after = await readUse(service.pid)
    const result = JSON.parse(stdout) as OpenResult
    const lost = result.acknowledged - (await countStored(before.stored + result.acknowledged)) + before.stored
    const perPing = (seconds: number) => ((seconds * 1_000) / result.pings).toFixed(3)
    const cells = [
      perSecond,
      (result.acknowledged / result.seconds).toFixed(0),
      result.p50Ms.toFixed(1),
      result.p99Ms.toFixed(1),
      result.worstMs.toFixed(0),
      Object.entries(result.others)
        .map(([status, count]) => `${count} × ${status}`)
        .join(', ') || 0,
      lost,
      perPing(after.node - before.node),
      perPing(after.postgres - before.postgres),
      perPing(result.cpuSeconds),
      result.ownP99Ms.toFixed(1),
    ]
    note(`| ${cells.join(' | ')} |`)
    if (result.ownP99Ms > MOST_OWN_MS) note(`the generator itself was late: ${result.ownP99Ms.toFixed(0)} ms (p99)`)
    return lost === 0 && Object.keys(result.others).length === 0 && result.p99Ms < GOAL_P99_MS
  }
  note(
    '\n| due a second | acknowledged a second | p50 ms | p99 ms | worst ms | others | lost | Node.js, ms a ping | PostgreSQL, ms a ping | generator, ms a ping | generator late, p99 ms |\n|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|',
  )
  const isHeld = [await measure(PEAK), await measure(REST)].every(Boolean)
  note(`\nno ping lost or refused, p99 under ${GOAL_P99_MS} ms: ${isHeld ? 'held' : 'MISSED'}`)
  if (!isHeld) process.exitCode = 1
} finally {
  await postgres.remove()
  rmSync(folder, { recursive: true })
}

async function seed(): Promise<string[]> {
  const database = createDatabase({ url: postgres.url, name: 'seed', connections: 1, patient: true })
  try {
    await migrate(database)
    await seedPingedChecks(database, CHECKS, HISTORY)
    return shuffle(await readIds(database))
  } finally {
    await database.close()
  }
}

/** Of all checks. What is on disk may need a moment until the database has it. */
async function countStored(expected: number): Promise<number> {
  for (const giveUpAt = performance.now() + STORED_WITHIN_MS; ; await sleep(1_000)) {
    const [row] = await query(postgres.url, 'select count(*)::int as stored from pings')
    const stored = row!.stored as number
    if (stored >= expected || performance.now() > giveUpAt) return stored
  }
}

async function readUse(pid: number) {
  return {
    stored: await countStored(0),
    node: cpuSeconds([pid]),
    postgres: cpuSeconds(await listServerProcesses(postgres.pid)),
  }
}
