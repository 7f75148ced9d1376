/**
 * The load generator, a process of its own: `load.ts '<json of Load>'` prints one line of JSON. Raw sockets that read into one buffer,
 * requests made beforehand and answers distinguished by their length, so that it costs the machine as little as it can; every
 * answer's status is checked.
 */

import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface Load {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  /** A file with a public id a line; each request takes one at random, or the next. */
  readonly ids: string
  readonly isInOrder: boolean
  /** In order, and it ends early when each id had its request. */
  readonly isOnce?: boolean
  readonly bodyBytes: number
  /** A new connection for each request. */
  readonly isFresh: boolean
}

export interface LoadResult {
  readonly requests: number
  readonly failed: number
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
}

const load = JSON.parse(process.argv[2]!) as Load
const ids = readFileSync(load.ids, 'utf8').trim().split('\n')
const body = 'x'.repeat(load.bodyBytes)
const latencies: number[] = []
let failed = 0
let isOver = false

function requestFor(id: string): Buffer {
  const connection = load.isFresh ? 'Connection: close\r\n' : ''
  const head = `${load.bodyBytes > 0 ? 'POST' : 'GET'} /ping/${id} HTTP/1.1\r\nHost: 127.0.0.1\r\n${connection}`
  return Buffer.from(
    load.bodyBytes > 0
      ? `${head}Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      : `${head}\r\n`,
    'latin1',
  )
}

const requests = ids.map(requestFor)
let sent = 0
function nextRequest(): Buffer {
  sent += 1
  if (load.isOnce && sent >= requests.length) isOver = true
  return requests[load.isInOrder ? sent % requests.length : Math.floor(Math.random() * requests.length)]!
}

function send(socket: Socket): number {
  socket.write(nextRequest())
  return performance.now()
}

const STATUS = Buffer.from('HTTP/1.1 200', 'latin1')
const HEAD_END = Buffer.from('\r\n\r\n', 'latin1')
const BODY_BYTES = 'OK'.length
/** What arrived last, of whichever connection: it is looked at before the next is read. */
const arrived = Buffer.allocUnsafeSlow(4_096)

/** One client that waits for each answer before it asks again. */
function keepAsking(): Promise<void> {
  return new Promise((resolve) => {
    let sentAt = 0
    /** The beginning of an answer that came in pieces. */
    let begun: Buffer | null = null
    const socket = connect({
      port: load.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: arrived,
        callback(bytes) {
          const fresh = arrived.subarray(0, bytes)
          const answer: Buffer = begun === null ? fresh : Buffer.concat([begun, fresh])
          const end = answer.indexOf(HEAD_END)
          if (end < 0 || answer.length < end + HEAD_END.length + BODY_BYTES) {
            begun = Buffer.from(answer)
            return true
          }
          begun = null
          count(answer.subarray(0, STATUS.length).equals(STATUS), sentAt)
          if (isOver) {
            socket.destroy()
            resolve()
          } else {
            sentAt = send(socket)
          }
          return true
        },
      },
    })
    socket.on('connect', () => {
      sentAt = send(socket)
    })
    socket.on('error', (error) => {
      throw error
    })
  })
}

async function askAnew(): Promise<void> {
  while (!isOver) {
    await new Promise<void>((resolve, reject) => {
      const sentAt = performance.now()
      const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true })
      socket.setEncoding('latin1')
      let text = ''
      socket.on('connect', () => send(socket))
      socket.on('data', (more: string) => {
        text += more
      })
      socket.on('end', () => {
        count(text.startsWith('HTTP/1.1 200'), sentAt)
        socket.destroy()
        resolve()
      })
      socket.on('error', reject)
    })
  }
}

function count(isAccepted: boolean, sentAt: number): void {
  if (!isAccepted) failed += 1
  latencies.push(performance.now() - sentAt)
}

const startedAt = performance.now()
setTimeout(() => {
  isOver = true
}, load.seconds * 1_000)
await Promise.all(Array.from({ length: load.connections }, load.isFresh ? askAnew : keepAsking))
const seconds = (performance.now() - startedAt) / 1_000
latencies.sort((a, b) => a - b)
const at = (share: number) =>
  latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN
const result: LoadResult = {
  requests: latencies.length,
  failed,
  perSecond: latencies.length / seconds,
  p50Ms: at(0.5),
  p99Ms: at(0.99),
}
process.stdout.write(`${JSON.stringify(result)}\n`)
