/** Attacks by a user or by a tenant, each beside another user or tenant who must notice nothing of the attack. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { beginSession } from '../../src/auth/sessions.ts'
import type { Database } from '../../src/store/postgres/database.ts'
import type { DeadNameServer } from './dead-names.ts'
import type { Arrived } from './receivers.ts'

/** Resolves after `signal` with what became of the others. `count`: what shows that the attack has arrived. */
export type Run = (signal: AbortSignal, count: (what: string, times?: number) => void) => Promise<Others>

export interface Others {
  readonly what: string
  readonly areSpared: boolean
}

export interface TenantAttack {
  readonly name: string
  /** Before the pings are measured. */
  prepare(): Promise<Run>
}

export interface Scene {
  readonly database: Database
  /** /api/v1 and the ping API. */
  readonly api: string
  readonly ping: string
  /** The project with the many checks. */
  readonly projectId: string
  /** Public ids of checks of this project that nothing else pings. */
  readonly spare: readonly string[]
  /** Null: names cannot be looked up there. */
  readonly names: DeadNameServer | null
  /** A call of the admin. */
  call(method: string, path: string, body?: object): Promise<Record<string, string>>
}

interface Sent {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
  /** The client's address: each user has one. */
  readonly from: string
  readonly signal?: AbortSignal | undefined
}

const SESSIONS = 101
const STREAMS_OF_SESSION = 20
const LOG_INS = 60
const CHANNELS_OF_PROJECT = 20
/** Chosen by all checks of the project, and removed at once. */
const REMOVED_CHANNELS = 4
const FAILURES_PER_SECOND = 20
/** Of each project: their deliveries outlast the row. */
const WAITING_FAILURES = 200
const WARM_UP_DELIVERIES = 1_500
const CHECKS_OF_PROJECT = 1_000
/** Others wait for their delivery so long at most: the bound of an attempt. */
const DELIVERED_MS = 10_000
const ADDRESSES = { attacker: '127.0.0.3', other: '127.0.0.4' }
const PASSWORD = 'correct horse battery staple'
const JSON_TYPE = { 'content-type': 'application/json' }

export function tenantAttacks(scene: Scene): TenantAttack[] {
  const { names } = scene
  return [
    { name: 'log-ins of a reader with the right password, beside an admin', prepare: () => logInOften(scene) },
    { name: `${SESSIONS} sessions of a reader, ${STREAMS_OF_SESSION} streams each`, prepare: () => openStreams(scene) },
    { name: 'receivers that respond in chunks of a byte', prepare: () => respondInChunks(scene) },
    ...(names === null ? [] : [{ name: 'channels in dead zones', prepare: () => nameDeadZones(scene, names) }]),
    { name: 'removals of channels that all checks chose', prepare: () => removeChannels(scene) },
  ]
}

/** Also for forms: the cookies of new sessions of a user. */
export async function beginSessions({ database }: Pick<Scene, 'database'>, userId: string, count: number) {
  const begin = () =>
    database.transaction((tx) => beginSession(tx, 'dashboard', { userId, address: '127.0.0.1', now: Date.now() }))
  const cookies: string[] = []
  while (cookies.length < count) cookies.push(`heartbeat_session=${(await begin()).secret}`)
  return cookies
}

async function logInOften(scene: Scene): Promise<Run> {
  const [reader, other] = [await addUser(scene, 'read'), await addUser(scene, 'admin')]
  const logIn = ({ email }: { email: string }, from: string, signal?: AbortSignal) => {
    const body = JSON.stringify({ email, password: PASSWORD })
    return send(`${scene.api}/auth/login`, { method: 'POST', headers: JSON_TYPE, body, from, signal })
  }
  return async (signal, count) => {
    const attack = Array.from({ length: LOG_INS }, async () => {
      while (!signal.aborted) count(await statusOf(logIn(reader, ADDRESSES.attacker, signal)))
    })
    const statuses: string[] = []
    while (!signal.aborted) {
      statuses.push(await statusOf(logIn(other, ADDRESSES.other)))
      await sleep(500, undefined, { signal }).catch(() => {})
    }
    await Promise.all(attack)
    const right = statuses.filter((status) => status === '200').length
    return {
      what: `${right} of ${statuses.length} log-ins of the admin`,
      areSpared: right === statuses.length,
    }
  }
}

async function openStreams(scene: Scene): Promise<Run> {
  const url = new URL('/live', scene.api).href
  const [reader, other] = [await addUser(scene, 'read'), await addUser(scene, 'read')]
  const cookies = await beginSessions(scene, reader.id, SESSIONS)
  const [cookie] = await beginSessions(scene, other.id, 1)
  const stream = await send(url, { headers: { cookie: cookie! }, from: ADDRESSES.other })
  let changes = 0
  let isOpen = true
  const close = () => {
    isOpen = false
  }
  stream.on('error', close).on('close', close)
  stream.on('data', (chunk: Buffer) => {
    changes += chunk.toString().split('event: change').length - 1
  })
  async function keepOpening(own: string, signal: AbortSignal, count: (what: string) => void): Promise<void> {
    while (!signal.aborted) {
      // Not all at the same moment.
      await sleep(1_000 + 1_000 * Math.random(), undefined, { signal }).catch(() => {})
      try {
        const response = await send(url, { headers: { cookie: own }, from: ADDRESSES.attacker, signal })
        count(`${response.statusCode}`)
        await ended(response)
      } catch {
        if (!signal.aborted) count('no response')
      }
    }
  }
  return async (signal, count) => {
    const attack = cookies.flatMap((own) =>
      Array.from({ length: STREAMS_OF_SESSION }, () => keepOpening(own, signal, count)),
    )
    await fail(scene, scene.spare, 2, signal)
    const areSpared = isOpen && changes > 0
    await Promise.all(attack)
    stream.destroy()
    return { what: `the stream of another user: ${areSpared ? 'open' : 'ended'}, ${changes} events`, areSpared }
  }
}

async function respondInChunks(scene: Scene): Promise<Run> {
  const receivers = await startReceivers(2 * CHANNELS_OF_PROJECT, 'chunks')
  const projects = [await addProject(scene), await addProject(scene)]
  const channels: string[] = []
  for (const [index, url] of receivers.urls.entries())
    channels.push(await addChannel(scene, url, projects[index % projects.length]!.id))
  const plain = await startReceivers(1)
  const other = await addProject(scene)
  channels.push(await addChannel(scene, plain.urls[0]!, other.id))
  for (const { checks } of projects) await fail(scene, checks.slice(0, WAITING_FAILURES), WAITING_FAILURES)
  // A channel has the most connections only after some deliveries.
  while ((await receivers.ask()).events < WARM_UP_DELIVERIES) await sleep(100)
  return async (signal, count) => {
    const failed = await fail(scene, other.checks, 2, signal)
    await sleep(DELIVERED_MS)
    const { events, mostAtOnce } = await receivers.ask()
    count(`200 in chunks, ${mostAtOnce} at once`, events)
    const others = await findDelivered(scene, other.id, failed)
    await removeAll(scene, channels)
    receivers.close()
    plain.close()
    return others
  }
}

async function nameDeadZones(scene: Scene, names: DeadNameServer): Promise<Run> {
  const receivers = await startReceivers(1)
  const [attacker, other] = [await addProject(scene), await addProject(scene)]
  // The last two labels are a zone.
  const urls = Array.from({ length: CHANNELS_OF_PROJECT }, (_, index) => `http://hooks.dead-${index}.example/`)
  const channels: string[] = []
  for (const url of urls) channels.push(await addChannel(scene, url, attacker.id))
  channels.push(await addChannel(scene, receivers.urls[0]!.replace('127.0.0.1', 'localhost'), other.id))
  const before = names.questions()
  return async (signal, count) => {
    const [, failed] = await Promise.all([
      fail(scene, attacker.checks, FAILURES_PER_SECOND, signal),
      fail(scene, other.checks, 2, signal),
    ])
    await sleep(DELIVERED_MS)
    count('question to the name server', names.questions() - before)
    const { rows: reasons } = await scene.database.query<{ reason: string; attempts: number }>(
      `select coalesce(regexp_replace(last_error, 'hooks[^ ]*', 'it'), 'attempt under way') as reason, sum(attempts)::int as attempts
        from deliveries where project_id = $1 and attempts > 0 group by 1`,
      [attacker.id],
    )
    for (const { reason, attempts } of reasons) count(reason, attempts)
    const others = await findDelivered(scene, other.id, failed)
    await removeAll(scene, channels)
    receivers.close()
    return others
  }
}

/** What became of the deliveries of a project whose channel works. */
async function findDelivered({ database }: Scene, projectId: string, failed: number): Promise<Others> {
  const { rows } = await database.query<{ delivered: number; slowest: number | null }>(
    `select count(delivered_at)::int as delivered, (max(extract(epoch from delivered_at - created_at)) * 1000)::int as slowest
      from deliveries where project_id = $1`,
    [projectId],
  )
  const { delivered, slowest } = rows[0]!
  const areSpared = delivered === failed && (slowest ?? 0) <= DELIVERED_MS
  return { what: `${delivered} of ${failed} deliveries of another project, ${slowest} ms at most`, areSpared }
}

async function removeChannels(scene: Scene): Promise<Run> {
  const urls = Array.from({ length: REMOVED_CHANNELS }, (_, index) => `http://127.0.0.1:9/${index}`)
  const channels: string[] = []
  for (const url of urls) channels.push(await addChannel(scene, url, scene.projectId))
  await scene.database.query('update checks set channels = $2::uuid[] where project_id = $1', [
    scene.projectId,
    channels,
  ])
  return async (signal, count) => {
    const startedAt = performance.now()
    await Promise.all(channels.map((id) => scene.call('DELETE', `/channels/${id}?force=true`).then(() => count('204'))))
    const seconds = (performance.now() - startedAt) / 1_000
    const { rows } = await scene.database.query<{ count: number }>(
      'select count(*)::int as count from checks where channels is not null',
    )
    await aborted(signal)
    return { what: `${seconds.toFixed(1)} s for all`, areSpared: rows[0]!.count === 0 }
  }
}

/** Checks of the project report a failure, one after the other, until `signal`. Returns how many. */
async function fail({ ping }: Scene, checks: readonly string[], perSecond: number, signal?: AbortSignal) {
  let failed = 0
  while (!signal?.aborted && failed < checks.length) {
    await ended(await send(`${ping}/ping/${checks[failed]}/fail`, { from: ADDRESSES.other }))
    failed += 1
    await sleep(1_000 / perSecond, undefined, signal && { signal }).catch(() => {})
  }
  return failed
}

let added = 0

async function addUser(scene: Scene, scope: 'read' | 'admin'): Promise<{ id: string; email: string }> {
  added += 1
  const email = `user-${added}@example.com`
  const { id } = await scene.call('POST', '/users', { email, password: PASSWORD, scope })
  return { id: id!, email }
}

/** `checks`: their public ids. */
async function addProject(scene: Scene): Promise<{ id: string; checks: string[] }> {
  added += 1
  const { id } = await scene.call('POST', '/projects', { name: `project ${added}` })
  return { id: id!, checks: await addChecks(scene.database, id!, CHECKS_OF_PROJECT) }
}

/** Checks of an hour that are up. Returns their public ids. */
async function addChecks(database: Database, projectId: string, count: number): Promise<string[]> {
  const { rows } = await database.query<{ publicId: string }>(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, 'check ' || n, 'check-' || n, now() from generate_series(1, $2::int) n returning key, public_id),
      stated as (
        insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at, last_ping_at, expected_at, due_at, wake_at)
        select key, 3600, 300, 1, now(), now(), now(), now() + interval '1 hour', now() + interval '65 minutes', now() + interval '65 minutes' from made)
      select public_id as "publicId" from made`,
    [projectId, count],
  )
  return rows.map(({ publicId }) => publicId)
}

async function addChannel(scene: Scene, url: string, projectId: string): Promise<string> {
  const channel = { kind: 'webhook', name: url, project_id: projectId, config: { url } }
  const { id } = await scene.call('POST', '/channels', channel)
  return id!
}

/** Their deliveries go with them. */
async function removeAll(scene: Scene, channels: readonly string[]): Promise<void> {
  for (const id of channels) await scene.call('DELETE', `/channels/${id}`)
}

async function startReceivers(count: number, ...how: string[]) {
  const program = new URL('./receivers.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [program, String(count), ...how], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const nextLine = async () => JSON.parse((await lines.next()).value as string)
  return {
    urls: (await nextLine()) as string[],
    async ask(): Promise<Arrived> {
      child.stdin.write('\n')
      return nextLine()
    },
    close: () => void child.stdin.end(),
  }
}

/** Resolves with the head of the response. */
function send(url: string, { method = 'GET', headers = {}, body, from, signal }: Sent): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request(url, { method, headers, agent: false, localAddress: from, ...(signal === undefined ? {} : { signal }) })
      .on('response', resolve)
      .on('error', reject)
      .end(body)
  })
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

function ended(response: IncomingMessage): Promise<void> {
  return new Promise((resolve) => {
    response.on('error', () => {}).once('close', resolve)
    response.resume()
  })
}

async function statusOf(sending: Promise<IncomingMessage>): Promise<string> {
  try {
    const response = await sending
    await ended(response)
    return `${response.statusCode}`
  } catch {
    return 'no response'
  }
}
