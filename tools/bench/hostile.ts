/**
 * `npm run bench:hostile`: ten clients at a time (or as many as an attack says) send the heaviest requests of each kind, one request after the other, to a
 * service whose heap is limited to 200 MB, in a memory cgroup with the limit of the chart, while pings arrive at a steady pace. The process must survive, and
 * pings must stay quick. The service, PostgreSQL and the pings are processes of their own on the same machine. BENCH_ONLY names a part of the attacks.
 */

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import {
  API_KEY,
  CHECKOUT,
  databaseEnvironment,
  LOG_IN,
  PROJECT_ID,
  startService,
} from '../../test/support/service-process.ts'
import { startDeadNameServer } from './dead-names.ts'
import { EDGE_ATTACKS, keepAttackingRaw, type RawAttack } from './hostile-edge.ts'
import {
  beginSessions,
  type Others,
  type Run,
  type Scene,
  type TenantAttack,
  tenantAttacks,
} from './hostile-tenants.ts'
import { limitMemory } from './memory-group.ts'
import type { PacedLoad, PacedResult } from './paced-load.ts'

const CLIENTS = 10
const SECONDS = Number(process.env.BENCH_SECONDS ?? 15)
const PINGS_PER_SECOND = 200
const HEAP_MB = 200
/** Checks of the project, all of them in /metrics. */
const CHECKS = Number(process.env.BENCH_CHECKS ?? 20_000)
const PINGED = 1_000
/** Of one check, each with a text of 10 KB that JSON makes six times as long. */
const PINGS = 1_000
const LIMIT_P99_MS = 250
const LIMIT_MB = 400
/** `api.resources.limits.memory` of the chart. */
const GROUP_MB = 512
/** Of what the service writes in a second: refusals are counted there, not listed. */
const LIMIT_LOG_KB = 20
const ONLY = new RegExp(process.env.BENCH_ONLY ?? '')

interface Attack {
  readonly name: string
  /** A function: another one each time. */
  readonly url: string | (() => string)
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  /** Opens a connection and reads nothing. */
  readonly isIdle?: boolean
}

interface Outcome {
  readonly statuses: Map<string, number>
  bytes: number
  /** Of an attack beside others. */
  others: Others | null
}

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
await using postgres = await startPostgresServer({ settings: { shared_buffers: '256MB', max_wal_size: '4GB' } })
const names = await startDeadNameServer(folder)
const program = { command: process.execPath, args: [`--max-old-space-size=${HEAP_MB}`, `${CHECKOUT}src/main.ts`] }
await using service = await startService(
  {
    ...databaseEnvironment(postgres.url),
    RATE_LIMIT_PER_MINUTE: '1000000',
    ALLOWED_TARGETS: '127.0.0.0/8',
    // As the image has it.
    UV_THREADPOOL_SIZE: '32',
  },
  names?.with(program) ?? program,
)
const group = limitMemory(service.pid, GROUP_MB * 1_048_576)
const database = createDatabase({ url: postgres.url, name: 'bench', connections: 1, patient: true })
let areMissed = 0
try {
  const { heavyId, ids, spare } = await seed()
  const authorization = `Bearer ${API_KEY}`
  const get = (name: string, path: string, isIdle = false): Attack => ({
    name,
    url: service.api + path,
    headers: { authorization },
    isIdle,
  })
  const origin = new URL(service.api).origin
  const scene: Scene = { database, api: service.api, ping: service.ping, projectId: PROJECT_ID, spare, names, call }
  const post = (name: string, url: string, body: string, headers: Record<string, string>): Attack => ({
    name,
    url,
    method: 'POST',
    headers,
    body,
  })
  const form = { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin' }
  const foreignForm = { 'content-type': form['content-type'], origin: 'https://other.example' }
  const { id: writer } = await call('POST', '/users', {
    email: 'writer@example.com',
    password: 'a long password',
    scope: 'write',
  })
  const [cookie] = await beginSessions(scene, writer!, 1)
  const labels = Array.from({ length: 16_333 }, (_, index) => index.toString(36)).join(',')
  const longNames = JSON.stringify(
    Object.fromEntries(Array.from({ length: 999 }, (_, index) => [`${index}`.padEnd(40, 'x'), 1])),
  )
  const manyFields = JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`f${index}`, 1])))
  const json = { 'content-type': 'application/json' }
  // A project of its own: the one with the many checks is full.
  const { id: emptyId } = await call('POST', '/projects', { name: 'empty' })
  const { ping_key: pingKey } = await call('POST', `/projects/${emptyId}/ping-key`, {})
  const { key: readKey } = await call('POST', '/api-keys', { name: 'reader', scope: 'read', project_id: PROJECT_ID })
  const ofHealthchecks = (name: string, path: string): Attack => ({
    name,
    url: new URL(path, service.api).href,
    headers: { 'x-api-key': readKey! },
  })
  let named = 0
  const attacks: (Attack | RawAttack | TenantAttack | null)[] = [
    null,
    get('history with bodies, 1 MB of 61', `/checks/${heavyId}/pings?limit=1000`),
    get('the same, without a reader', `/checks/${heavyId}/pings?limit=1000`, true),
    get('history without bodies', `/checks/${heavyId}/pings?limit=1000&body=none`),
    get('history of a rare type', `/checks/${heavyId}/pings?limit=1000&type=fail`),
    get('list of 1,000 checks', `/checks?project_id=${PROJECT_ID}&limit=1000`),
    get('search without a match', `/checks?project_id=${PROJECT_ID}&q=zz`),
    get('list of 1,000 deliveries', '/deliveries?limit=1000'),
    get('the document', '/openapi.json'),
    post('bodies with 5,000 fields', `${service.api}/projects`, manyFields, { authorization, ...json }),
    post('log-ins with 999 unknown names, 45 KB', `${service.api}/auth/login`, longNames, json),
    post(
      'log-ins with wrong passwords',
      `${service.api}/auth/login`,
      JSON.stringify({ ...LOG_IN, password: 'not the password' }),
      json,
    ),
    post(
      'unknown refresh tokens',
      `${service.api}/auth/refresh`,
      JSON.stringify({ refresh_token: `hbr_${'a'.repeat(43)}` }),
      json,
    ),
    post('log-in forms of a foreign page', `${origin}/login`, new URLSearchParams(LOG_IN).toString(), foreignForm),
    post('log-in forms of 32,500 fields', `${origin}/login`, 'a&'.repeat(32_500), form),
    post('check forms with 16,333 labels, 64 KB', `${origin}/checks/new`, `name=a&labels=${labels}`, {
      ...form,
      cookie: cookie!,
    }),
    { name: 'pings with 8,000 parameters', url: `${service.ping}/ping/${spare[0]}?${'a&'.repeat(7_900)}` },
    { name: 'checks created by a ping key', url: () => `${service.ping}/ping/${pingKey}/flood-${named++}?create=1` },
    ofHealthchecks('badges of all tags, of a read key', '/api/v3/badges/'),
    ofHealthchecks('a check by its unique key, of a read key', `/api/v3/checks/${'0'.repeat(40)}`),
    { name: `metrics of ${CHECKS} checks`, url: `${service.ops}/metrics` },
    { name: 'the same, without a reader', url: `${service.ops}/metrics`, isIdle: true },
    ...EDGE_ATTACKS,
    ...tenantAttacks(scene),
  ]
  if (names === null)
    process.stdout.write('without the row of dead zones: this machine allows no name server for the service\n')
  process.stdout.write(
    `${CLIENTS} clients, ${SECONDS} s each, ${PINGS_PER_SECOND} pings a second, a heap of ${HEAP_MB} MB, ${group === null ? 'no memory cgroup: this machine allows none' : `a memory cgroup of ${GROUP_MB} MB`}\n\n| requests | responses | MB read | p50 of pings ms | p99 ms | worst ms | pings lost | most memory MB | log KB | |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---|\n`,
  )
  for (const attack of attacks) {
    if (attack !== null && !ONLY.test(attack.name)) continue
    const outcome: Outcome = { statuses: new Map(), bytes: 0, others: null }
    const run = attack !== null && 'prepare' in attack ? await attack.prepare() : null
    resetMemory()
    const [logged, startedAt] = [logBytes(), performance.now()]
    const stop = new AbortController()
    const clients = attack === null ? [] : startClients(attack, run, outcome, stop.signal)
    const pings = await load(ids)
    stop.abort()
    const memoryMb = readMemory()
    const [logKb, seconds] = [(logBytes() - logged) / 1_000, (performance.now() - startedAt) / 1_000]
    await Promise.all(clients)
    const isQuick = pings.p99Ms <= LIMIT_P99_MS && pings.failed === 0
    const isSmall = memoryMb <= LIMIT_MB && logKb <= LIMIT_LOG_KB * seconds
    const isHeld = isQuick && isSmall && outcome.others?.areSpared !== false
    if (!isHeld) areMissed += 1
    const responses = Array.from(outcome.statuses, ([status, count]) => `${count} × ${status}`)
    const shown = [...responses, outcome.others?.what ?? ''].filter((what) => what !== '').join(', ')
    const figures = [pings.p50Ms.toFixed(1), pings.p99Ms.toFixed(1), pings.worstMs.toFixed(0), pings.failed]
    process.stdout.write(
      `| ${attack?.name ?? 'none'} | ${shown} | ${(outcome.bytes / 1e6).toFixed(0)} | ${figures.join(' | ')} | ${memoryMb.toFixed(0)} | ${logKb.toFixed(0)} | ${isHeld ? 'held' : 'MISSED'} |\n`,
    )
    if (!isAlive()) throw new Error('the service has ended: the attacks that follow are not measured')
    await sleep(1_000)
  }
  process.stdout.write(
    `\np99 of pings at most ${LIMIT_P99_MS} ms, no ping lost, at most ${LIMIT_MB} MB, at most ${LIMIT_LOG_KB} KB of log a second, others notice nothing, the process survives\n`,
  )
} finally {
  await database.close()
  rmSync(folder, { recursive: true })
  await service.kill()
  names?.close()
  group?.remove()
}
if (areMissed > 0) process.exitCode = 1

function startClients(
  attack: Attack | RawAttack | TenantAttack,
  run: Run | null,
  outcome: Outcome,
  signal: AbortSignal,
): Promise<void>[] {
  const count = (what: string, times = 1) => void outcome.statuses.set(what, (outcome.statuses.get(what) ?? 0) + times)
  if (run !== null) {
    const note = (others: Others) => {
      outcome.others = others
    }
    return [run(signal, count).then(note)]
  }
  if ('url' in attack) return Array.from({ length: CLIENTS }, () => keepAttacking(attack, outcome, signal))
  if ('prepare' in attack) return []
  const onEnd = (what: string, read: number) => {
    outcome.bytes += read
    if (!signal.aborted) count(what)
  }
  const url = { ping: service.ping, api: service.api, ops: service.ops }[attack.port]
  return Array.from({ length: attack.connections ?? CLIENTS }, (_, index) =>
    keepAttackingRaw(attack, index, url, onEnd, signal),
  )
}

async function keepAttacking(attack: Attack, outcome: Outcome, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const result = await attackOnce(attack, outcome, signal)
    if (!signal.aborted) outcome.statuses.set(result, (outcome.statuses.get(result) ?? 0) + 1)
  }
}

/** Resolves with the status, or with what became of the connection. */
function attackOnce(
  { url, method = 'GET', headers = {}, body, isIdle }: Attack,
  outcome: Outcome,
  signal: AbortSignal,
) {
  return new Promise<string>((resolve) => {
    const finish = (response: IncomingMessage) => {
      const end = (what: string) => resolve(what)
      response.on('error', () => end(`${response.statusCode}, cut`)).on('close', () => end(`${response.statusCode}`))
      if (isIdle !== true) return void response.on('data', (chunk: Buffer) => (outcome.bytes += chunk.length))
      response.socket.once('close', () => end(`${response.statusCode}, cut`))
      if (response.statusCode === 200) response.pause()
      else response.resume()
    }
    request(typeof url === 'string' ? url : url(), { method, headers, agent: false, signal }, finish)
      .on('error', () => resolve('no response'))
      .end(body)
  })
}

/** Calls the API as an admin; returns the response. */
async function call(method: string, path: string, body?: object): Promise<Record<string, string>> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' }
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const response = await fetch(service.api + path, { method, headers, ...sent })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? {} : (JSON.parse(text) as Record<string, string>)
}

/** One check with the heaviest history, and many that are plain; the deliveries have long errors. */
async function seed(): Promise<{ heavyId: string; ids: string; spare: string[] }> {
  await database.query(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, description, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, repeat(chr(128190), 90) || n, 'check-' || n, repeat(chr(128190), 4096), now()
        from generate_series(1, $2::int) n returning key)
      insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, last_ping_at, expected_at, due_at, wake_at)
      select key, 3600, 300, 1, now(), now(), now(), now() + interval '1 hour', now() + interval '65 minutes', now() + interval '65 minutes' from made`,
    [PROJECT_ID, CHECKS],
  )
  await database.query(
    `with heavy as (select key from checks order by key limit 1), pinged as (
        insert into pings (id, check_key, type, source, created_at)
        select gen_random_uuid(), key, 3, 0, now() from heavy, generate_series(1, $1::int) returning id, check_key)
      insert into ping_bodies (check_key, ping_id, body) select check_key, id, decode(repeat('01', 10240), 'hex') from pinged`,
    [PINGS],
  )
  await database.query(
    `with organization as (select organization_id as id from projects where id = $1), channel as (
        insert into channels (id, organization_id, kind, name, event_types, sealed, sealed_with, created_at)
        select gen_random_uuid(), id, 'webhook', 'bench', '{}', '', '', now() from organization returning id, organization_id)
      insert into deliveries (event_id, channel_id, id, organization_id, type, status, attempts, give_up_at, last_error, created_at)
      select gen_random_uuid(), id, gen_random_uuid(), organization_id, 'channel.test', 2, 1, now(), repeat(chr(1), 1000), now()
      from channel, generate_series(1, 1000)`,
    [PROJECT_ID],
  )
  await database.query('vacuum analyze')
  const { rows } = await database.query<{ id: string; public_id: string }>(
    'select id, public_id from checks order by key',
  )
  const ids = join(folder, 'pinged')
  const pinged = rows.slice(1, PINGED + 1).map((row) => row.public_id)
  writeFileSync(ids, pinged.join('\n'))
  return { heavyId: rows[0]!.id, ids, spare: rows.slice(PINGED + 1).map((row) => row.public_id) }
}

async function load(ids: string): Promise<PacedResult> {
  const paced: PacedLoad = { url: service.ping, ids, perSecond: PINGS_PER_SECOND, seconds: SECONDS }
  const program = new URL('./paced-load.ts', import.meta.url).pathname
  const { stdout } = await run(process.execPath, [program, JSON.stringify(paced)], { maxBuffer: 64 * 1_048_576 })
  return JSON.parse(stdout) as PacedResult
}

function logBytes(): number {
  return service.stdout.length + service.stderr.length
}

/** From here on the kernel measures the most memory anew. */
function resetMemory(): void {
  writeFileSync(`/proc/${service.pid}/clear_refs`, '5')
}

/** The most memory of the service since `resetMemory`, in MB; infinite after its end. */
function readMemory(): number {
  if (!isAlive()) return Number.POSITIVE_INFINITY
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1_024
}

function isAlive(): boolean {
  try {
    process.kill(service.pid, 0)
    return true
  } catch {
    return false
  }
}
