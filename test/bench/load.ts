/**
 * The load generator, a process of its own: `load.ts '<json of Load>'` prints one line of JSON. Raw sockets and answers told
 * apart by their length, so that it costs the machine as little as it can; every answer's status is checked.
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

function requestFor(id: string): string {
  const connection = load.isFresh ? 'Connection: close\r\n' : ''
  const head = `${load.bodyBytes > 0 ? 'POST' : 'GET'} /ping/${id} HTTP/1.1\r\nHost: 127.0.0.1\r\n${connection}`
  return load.bodyBytes > 0
    ? `${head}Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    : `${head}\r\n`
}

function open(): Socket {
  const socket = connect(load.port, '127.0.0.1')
  socket.setNoDelay(true)
  socket.setEncoding('latin1')
  return socket
}

let sent = 0
function nextId(): string {
  sent += 1
  return ids[load.isInOrder ? sent % ids.length : Math.floor(Math.random() * ids.length)]!
}

function send(socket: Socket): number {
  socket.write(requestFor(nextId()))
  return performance.now()
}

/** One client that waits for each answer before it asks again. */
function keepAsking(): Promise<void> {
  return new Promise((resolve) => {
    const socket = open()
    let sentAt = 0
    let pending = ''
    socket.on('connect', () => {
      sentAt = send(socket)
    })
    socket.on('data', (text: string) => {
      pending += text
      const end = pending.indexOf('\r\n\r\n')
      if (end < 0 || pending.length < end + 6) return
      count(pending, sentAt)
      pending = ''
      if (isOver) {
        socket.destroy()
        return resolve()
      }
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
      const socket = open()
      let text = ''
      socket.on('connect', () => send(socket))
      socket.on('data', (more: string) => {
        text += more
      })
      socket.on('end', () => {
        count(text, sentAt)
        socket.destroy()
        resolve()
      })
      socket.on('error', reject)
    })
  }
}

function count(answer: string, sentAt: number): void {
  if (!answer.startsWith('HTTP/1.1 200')) failed += 1
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
