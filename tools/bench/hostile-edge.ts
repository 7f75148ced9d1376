/** Attacks on the edge of the ports, as bytes on sockets: what no HTTP client sends. Nobody needs a credential for them. */

import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface RawAttack {
  readonly name: string
  readonly port: 'ping' | 'api' | 'ops'
  /** What is sent on each connection. */
  readonly bytes: string | Buffer
  /** At the same time. Default: that of the bench. */
  readonly connections?: number
  /** Reads nothing of the responses. */
  readonly isIdle?: boolean
  /** How long a connection stays that the service does not close. Default: a second. */
  readonly holdMs?: number
  /** How many addresses of clients there are. Default: one. */
  readonly addresses?: number
  /** The wait of each client before its next connection: what floods any server with connections is no subject here. Default: a second. */
  readonly pauseMs?: number
}

const head = (first: string, ...headers: string[]) => [first, 'Host: a', ...headers, '', ''].join('\r\n')
const LOG_IN = 'POST /api/v1/auth/login HTTP/1.1'
const PING = '/ping/00000000-0000-4000-8000-000000000000'
const JSON_TYPE = 'Content-Type: application/json'
const CHUNKED = 'Transfer-Encoding: chunked'
const CLOSE = 'Connection: close'
const pieces = (count: number) => '1\r\nx\r\n'.repeat(count)
const marks = `password=${encodeURIComponent('x')}${encodeURIComponent('\u0301').repeat(5_000)}${encodeURIComponent('\u0316').repeat(5_000)}`
const unknownKey = `Authorization: Bearer hbk_unknown0_${'a'.repeat(32)}`

export const EDGE_ATTACKS: readonly RawAttack[] = [
  { name: 'log-ins in chunks of a byte, 384 KB each', port: 'api', bytes: head(LOG_IN, JSON_TYPE, CHUNKED) + pieces(65_535), connections: 20 },
  { name: 'calls with an unknown key, in chunks of a byte', port: 'api', bytes: head('POST /api/v1/checks HTTP/1.1', unknownKey, JSON_TYPE, CHUNKED) + pieces(65_535), connections: 20 },
  { name: 'pings in chunks of a byte, 60 KB each', port: 'ping', bytes: head(`POST ${PING} HTTP/1.1`, CHUNKED) + pieces(10_239), connections: 100 },
  { name: 'pings without text (GET) that send chunks of a byte, 384 KB each', port: 'ping', bytes: head(`GET ${PING} HTTP/1.1`, CHUNKED) + pieces(65_535), connections: 20 },
  { name: 'unknown signals in chunks of a byte, 384 KB each', port: 'ping', bytes: head(`POST ${PING}/unknown HTTP/1.1`, CHUNKED) + pieces(65_535), connections: 20 },
  { name: '1,000 bodies of 64 KB that do not end', port: 'api', bytes: `${head(LOG_IN, JSON_TYPE, CHUNKED)}10000\r\n${'x'.repeat(65_536)}\r\n`, connections: 1_000, holdMs: 5_000, pauseMs: 5_000 },
  { name: '1,000 pipelined log-in pages, without a reader', port: 'api', bytes: head('GET /login HTTP/1.1', 'Accept-Encoding: br').repeat(1_000), isIdle: true },
  { name: '1,000 pipelined pages that do not exist', port: 'api', bytes: head('GET /nope HTTP/1.1', 'Accept-Encoding: br').repeat(1_000) },
  { name: '1,000 connections, a log-in page each', port: 'api', bytes: head('GET /login HTTP/1.1', 'Accept-Encoding: br', CLOSE), connections: 1_000, pauseMs: 5_000 },
  { name: '20,000 pipelined pings of unknown checks', port: 'ping', bytes: head(`GET ${PING} HTTP/1.1`).repeat(20_000) },
  { name: '20,000 pipelined probes', port: 'ops', bytes: head('GET /livez HTTP/1.1').repeat(20_000) },
  { name: '20,000 pipelined calls with an unknown key', port: 'api', bytes: head('GET /api/v1/me HTTP/1.1', unknownKey).repeat(20_000) },
  { name: 'Content-Type of 16 KB', port: 'api', bytes: `${head(LOG_IN, 'Content-Length: 2', `${JSON_TYPE};a=b${' '.repeat(15_900)}x`)}{}`, pauseMs: 100 },
  { name: 'Accept of 16 KB', port: 'ping', bytes: head('GET /x HTTP/1.1', CLOSE, `Accept: "${'",'.repeat(5_300)}`), pauseMs: 100 },
  { name: 'Authorization of 12 KB of spaces', port: 'api', bytes: head('GET /api/v1/me HTTP/1.1', CLOSE, `Authorization: a${' '.repeat(12_200)}b`), pauseMs: 100 },
  { name: 'log-in forms of 60 KB of marks', port: 'api', bytes: `${head('POST /login HTTP/1.1', CLOSE, 'Sec-Fetch-Site: same-origin', 'Content-Type: application/x-www-form-urlencoded', `Content-Length: ${marks.length}`)}${marks}` },
  { name: '3,000 connections that stay open', port: 'ping', bytes: head('GET / HTTP/1.1'), connections: 3_000, holdMs: 60_000, pauseMs: 1_000 },
  { name: '12,000 connections of six addresses that stay open', port: 'ping', bytes: head('GET / HTTP/1.1'), connections: 12_000, addresses: 6, holdMs: 60_000, pauseMs: 5_000 },
] // biome-ignore format: a table

/**
 * One connection of the attack after the other, until `signal`. `index`: which client of the attack it is. `onEnd` gets the
 * status of the first response, or what became of the connection.
 */
export async function keepAttackingRaw(
  { bytes, isIdle = false, addresses = 1, holdMs = 1_000, pauseMs = 1_000 }: RawAttack,
  index: number,
  url: string,
  onEnd: (what: string, read: number) => void,
  signal: AbortSignal,
): Promise<void> {
  // Addresses of their own: that of the pings is another client.
  const from = `127.0.1.${1 + (index % addresses)}`
  if (addresses > 1) await sleep(pauseMs * Math.random(), undefined, { signal }).catch(() => {})
  while (!signal.aborted) {
    await attackOnce(url, from, bytes, isIdle, holdMs, onEnd, signal)
    await sleep(pauseMs, undefined, { signal }).catch(() => {})
  }
}

function attackOnce(
  url: string,
  from: string,
  bytes: string | Buffer,
  isIdle: boolean,
  holdMs: number,
  onEnd: (what: string, read: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress: from })
    let first = ''
    let read = 0
    const end = () => socket.destroy()
    const timer = setTimeout(end, holdMs)
    signal.addEventListener('abort', end, { once: true })
    if (isIdle) socket.pause()
    else {
      socket.on('data', (chunk) => {
        if (first === '') first = chunk.toString('latin1', 9, 12)
        read += chunk.length
      })
    }
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      onEnd(first === '' ? 'no response' : first, read)
      resolve()
    })
    socket.write(bytes)
  })
}
