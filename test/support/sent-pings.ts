/** Pings as jobs send them, over HTTP, with a note of what became of each; and the question whether PostgreSQL has them. */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { PING_TYPES, type PingType } from '../../src/domain/check.ts'
import type { Database } from '../../src/store/postgres/database.ts'

export interface SentPing {
  readonly publicId: string
  readonly type: PingType
  /** Null: `/fail`, start and log. */
  readonly exitCode: number | null
  readonly runId: string | null
  readonly durationMs: number | null
  readonly body: string | null
}

export interface Outcome {
  readonly ping: SentPing
  readonly sentAt: number
  readonly ms: number
  /** Null: no answer; `error` says why. */
  readonly status: number | null
  readonly retryAfter: string | null
  /** The server wants this connection to end. */
  readonly isClosing: boolean
  readonly error: string | null
}

/** Longer than any promise of ours, so that a request that hangs differs from a slow one. */
const PATIENCE_MS = 45_000

export function aPing(publicId: string, overrides: Partial<SentPing> = {}): SentPing {
  return {
    publicId,
    type: 'success',
    exitCode: 0,
    runId: null,
    durationMs: null,
    body: `ping ${randomUUID()}`,
    ...overrides,
  }
}

export function createAgent(connections = Number.POSITIVE_INFINITY): Agent {
  return new Agent({ keepAlive: true, maxSockets: connections })
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly ms: number
}

/** Rejects when no whole answer comes. */
export function ask(
  url: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; agent?: Agent } = {},
): Promise<Answer> {
  const { method = 'GET', headers = {}, body, agent } = options
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers, agent, timeout: PATIENCE_MS }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () =>
        resolve({ status: response.statusCode!, headers: response.headers, text, ms: performance.now() - startedAt }),
      )
      response.on('error', reject)
    })
    sent.on('timeout', () => sent.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Never rejects: what went wrong is in the outcome. */
export async function sendPing(base: string, ping: SentPing, agent?: Agent): Promise<Outcome> {
  const sentAt = performance.now()
  const result = (rest: Pick<Outcome, 'status' | 'retryAfter' | 'isClosing' | 'error'>): Outcome => ({
    ping,
    sentAt,
    ms: performance.now() - sentAt,
    ...rest,
  })
  const { durationMs, body } = ping
  try {
    const { status, headers } = await ask(base + pathOf(ping), {
      method: body === null ? 'GET' : 'POST',
      headers: durationMs === null ? {} : { 'X-Service-Duration': String(durationMs) },
      ...(body === null ? {} : { body }),
      ...(agent === undefined ? {} : { agent }),
    })
    return result({
      status,
      retryAfter: headers['retry-after'] ?? null,
      isClosing: headers.connection === 'close',
      error: null,
    })
  } catch (error) {
    return result({ status: null, retryAfter: null, isClosing: true, error: String(error) })
  }
}

/** A POST of which only the head and half of the body has been sent. */
export async function beginPing(service: { readonly ping: string }, publicId: string) {
  const ping = aPing(publicId)
  const body = ping.body!
  const socket = connect(Number(new URL(service.ping).port), '127.0.0.1')
  await once(socket, 'connect')
  socket.write(
    `POST ${pathOf(ping)} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 10)}`,
  )
  return { ping, socket, answer: readAll(socket), finish: () => socket.write(body.slice(10)) }
}

async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'close')
  return text
}

export function pathOf({ publicId, type, exitCode, runId }: SentPing): string {
  const verb = {
    success: '',
    start: '/start',
    fail: exitCode === null ? '/fail' : `/${exitCode}`,
    log: '/log',
    warn: '/warn',
  }[type]
  return `/ping/${publicId}${verb}${runId === null ? '' : `?rid=${runId}`}`
}

/** Those that PostgreSQL does not have as they were sent. Each must carry a body or a run id of its own, or two could not be distinguished. */
export async function findMissing(database: Database, pings: readonly SentPing[]): Promise<SentPing[]> {
  const { rows } = await database.query<{
    publicId: string
    type: number
    exitCode: number | null
    durationMs: number | null
    runId: string | null
    body: Buffer | null
  }>(
    `select c.public_id as "publicId", p.type, p.exit_code as "exitCode", p.duration_ms as "durationMs", p.run_id as "runId", b.body
      from pings p join checks c on c.key = p.check_key
      left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id`,
  )
  const stored = new Map(
    rows.map((row) => [
      markOf({ ...row, type: PING_TYPES[row.type]!, body: row.body?.toString() ?? null }),
      row.durationMs,
    ]),
  )
  return pings.filter((ping) => {
    if (ping.body === null && ping.runId === null)
      throw new Error('a ping without body and run id cannot be distinguished from another')
    const durationMs = stored.get(markOf(ping))
    return durationMs === undefined || (ping.durationMs !== null && ping.durationMs !== durationMs)
  })
}

function markOf({ publicId, type, exitCode, runId, body }: Omit<SentPing, 'durationMs'>): string {
  return [publicId, type, exitCode, runId, body].join(' ')
}
