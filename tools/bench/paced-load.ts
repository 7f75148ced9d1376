/**
 * Pings at a steady pace, a process of its own: `paced-load.ts '<json of PacedLoad>'` prints one line of JSON. A ping is counted from
 * the moment at which it was to be sent, so that a server that stands still is not spared the pings it kept from being sent. SIGTERM ends it early,
 * with its result.
 */

import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'

export interface PacedLoad {
  /** Of the ping API, without a slash at the end. */
  readonly url: string
  /** A file with a public id a line; each ping takes one at random. */
  readonly ids: string
  readonly perSecond: number
  readonly seconds: number
}

export interface PacedResult {
  readonly pings: number
  readonly failed: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly worstMs: number
  /** Of each ping, ascending. */
  readonly latenciesMs: readonly number[]
}

const load = JSON.parse(process.argv[2]!) as PacedLoad
const ids = readFileSync(load.ids, 'utf8').trim().split('\n')
const agent = new Agent({ keepAlive: true })
const latencies: number[] = []
let failed = 0

function ping(dueAt: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (isWell: boolean) => {
      if (!isWell) failed += 1
      latencies.push(performance.now() - dueAt)
      resolve()
    }
    const id = ids[Math.floor(Math.random() * ids.length)]!
    request(`${load.url}/ping/${id}`, { agent }, (response) => {
      response.resume().on('end', () => done(response.statusCode === 200))
    })
      .on('error', () => done(false))
      .end()
  })
}

const startedAt = performance.now()
const total = load.perSecond * load.seconds
const pings: Promise<void>[] = []
let isOver = false
process.once('SIGTERM', () => {
  isOver = true
})
while (pings.length < total && !isOver) {
  const dueAt = startedAt + (pings.length * 1_000) / load.perSecond
  const waitMs = dueAt - performance.now()
  if (waitMs > 1) await new Promise((resolve) => setTimeout(resolve, waitMs))
  else pings.push(ping(dueAt))
}
await Promise.all(pings)
agent.destroy()
latencies.sort((a, b) => a - b)
const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))]!
const latenciesMs = latencies.map((ms) => Math.round(ms * 100) / 100)
const quantiles = { p50Ms: at(0.5), p99Ms: at(0.99), worstMs: at(1) }
const result: PacedResult = { pings: pings.length, failed, ...quantiles, latenciesMs }
process.stdout.write(`${JSON.stringify(result)}\n`)
