/**
 * Pings in an open loop, a process of its own: `open-load.ts '<json of OpenLoad>'` prints one line of JSON. Ping n is due
 * n / perSecond after the start, whatever became of the pings before, and its latency counts from then: a server that
 * stands still is not spared what it kept from being sent. A ping takes an idle connection, or waits for one in line.
 * Raw sockets and requests made beforehand: the generator takes as little of the machine as it can.
 */

import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'

export interface OpenLoad {
  readonly port: number
  readonly connections: number
  readonly perSecond: number
  readonly seconds: number
  /** A file with a public id a line: each id has one ping, in order. */
  readonly ids: string
  /** Of the pings, those with a text: 0 to 1. */
  readonly textShare: number
  readonly textBytes: number
}

export interface OpenResult {
  /** Pings that were due. */
  readonly pings: number
  readonly acknowledged: number
  /** By status, and `none` for a connection that broke. */
  readonly others: Readonly<Record<string, number>>
  /** From the first due ping to the last response. */
  readonly seconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
  /** The p99 of the delay from when a ping was due to its send, with a connection idle: the generator's own share. */
  readonly ownP99Ms: number
  /** Processor time of the generator. */
  readonly cpuSeconds: number
}

const load = JSON.parse(process.argv[2]!) as OpenLoad
const total = load.perSecond * load.seconds
const ids = readFileSync(load.ids, 'utf8').trim().split('\n').slice(0, total)
if (ids.length < total) throw new Error(`${total} pings of another check each, but only ${ids.length} checks`)
const text = Buffer.from('a line of a log, as a backup prints it\n'.repeat(load.textBytes)).subarray(0, load.textBytes)

const HEAD_END = Buffer.from('\r\n\r\n', 'latin1')
const BODY_BYTES = 'OK'.length
const latencies = new Float64Array(total)
const ownDelays: number[] = []
const others: Record<string, number> = {}
let acknowledged = 0
let answered = 0

interface Connection {
  readonly socket: Socket
  /** The ping that it waits for; -1: none. */
  ping: number
  received: Buffer
}

/** In turn, so that none is idle for so long that the server closes it. */
const idle: Connection[] = []
/** Pings that are due and wait for a connection. */
let nextToSend = 0
let due = 0
let startedAt = 0
const dueAt = (ping: number) => startedAt + (ping * 1_000) / load.perSecond
const { promise: isDone, resolve: end } = Promise.withResolvers<void>()

function send(connection: Connection, ping: number): void {
  connection.ping = ping
  const hasText = Math.floor((ping + 1) * load.textShare) > Math.floor(ping * load.textShare)
  const head = `${hasText ? 'POST' : 'GET'} /ping/${ids[ping]} HTTP/1.1\r\nHost: 127.0.0.1\r\n`
  if (!hasText) connection.socket.write(`${head}\r\n`, 'latin1')
  else {
    const withLength = `${head}Content-Type: text/plain\r\nContent-Length: ${text.length}\r\n\r\n`
    connection.socket.write(Buffer.concat([Buffer.from(withLength, 'latin1'), text]))
  }
}

function settle(connection: Connection, status: string): void {
  const { ping } = connection
  latencies[ping] = performance.now() - dueAt(ping)
  if (status === '200') acknowledged += 1
  else others[status] = (others[status] ?? 0) + 1
  answered += 1
  connection.ping = -1
  if (answered === total) end()
}

function isFree(connection: Connection): void {
  if (nextToSend < due) send(connection, nextToSend++)
  else idle.push(connection)
}

async function open(): Promise<void> {
  const socket = connect({ port: load.port, host: '127.0.0.1', noDelay: true })
  const connection: Connection = { socket, ping: -1, received: Buffer.alloc(0) }
  socket.on('data', (bytes: Buffer) => {
    connection.received = connection.received.length === 0 ? bytes : Buffer.concat([connection.received, bytes])
    const at = connection.received.indexOf(HEAD_END)
    if (at < 0 || connection.received.length < at + HEAD_END.length + BODY_BYTES) return
    const status = connection.received.toString('latin1', 9, 12)
    connection.received = Buffer.alloc(0)
    settle(connection, status)
    isFree(connection)
  })
  socket.on('close', () => {
    if (connection.ping >= 0) settle(connection, 'none')
    if (answered < total) void open()
  })
  socket.on('error', () => {})
  await new Promise((resolve) => socket.once('connect', resolve))
  isFree(connection)
}

/** Sends what is due. */
function tick(): void {
  const now = performance.now()
  while (due < total && dueAt(due) <= now) {
    due += 1
    const connection = idle.shift()
    if (connection === undefined) continue
    // Older ones in line are sent first: with an idle connection there are none.
    ownDelays.push(now - dueAt(nextToSend))
    send(connection, nextToSend++)
  }
  if (due < total) setTimeout(tick, 1)
}

await Promise.all(Array.from({ length: load.connections }, open))
startedAt = performance.now()
const before = process.cpuUsage()
tick()
await isDone
const used = process.cpuUsage(before)
const seconds = (performance.now() - startedAt) / 1_000
const quantile = (values: Float64Array, share: number) =>
  values[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
latencies.sort()
const result: OpenResult = {
  pings: total,
  acknowledged,
  others,
  seconds,
  p50Ms: quantile(latencies, 0.5),
  p99Ms: quantile(latencies, 0.99),
  worstMs: quantile(latencies, 1),
  ownP99Ms: quantile(Float64Array.from(ownDelays).sort(), 0.99),
  cpuSeconds: (used.user + used.system) / 1e6,
}
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit())
