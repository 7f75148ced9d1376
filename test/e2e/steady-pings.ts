/** Pings at a steady pace, as jobs send them, without a second try: what is lost on the way shows. */

import { Agent, request } from 'node:http'

export interface SteadyPings {
  /** Resolves when the last answer has come. */
  stop(): Promise<SteadyResult>
}

export interface SteadyResult {
  readonly sent: number
  /** A line for each that was not answered with 200. */
  readonly failures: readonly string[]
  readonly p99Ms: number
  readonly worstMs: number
}

const TIMEOUT_MS = 10_000

/**
 * Sends `perSecond` to this URL until it is stopped, each on time however long the others take. Every other one has a connection
 * of its own, as curl's; the rest share connections that are kept open.
 */
export function sendSteadily(url: string, perSecond: number): SteadyPings {
  const kept = new Agent({ keepAlive: true })
  const latencies: number[] = []
  const failures: string[] = []
  const pending = new Set<Promise<void>>()
  const startedAt = performance.now()
  let sent = 0

  function ping(isKept: boolean): Promise<void> {
    const at = performance.now()
    return new Promise((resolve) => {
      const done = (fault: string | null) => {
        latencies.push(performance.now() - at)
        const after = `${((at - startedAt) / 1_000).toFixed(1)} s, ${isKept ? 'kept' : 'own'} connection`
        if (fault !== null) failures.push(`after ${after}: ${fault}`)
        resolve()
      }
      const call = request(url, { agent: isKept ? kept : false, timeout: TIMEOUT_MS }, (response) => {
        const { statusCode } = response
        response.resume().on('end', () => done(statusCode === 200 ? null : `status ${statusCode}`))
        response.on('error', (error) => done(error.message))
      })
      call.on('timeout', () => call.destroy(new Error(`no answer in ${TIMEOUT_MS} ms`)))
      call.on('error', (error) => done(error.message)).end()
    })
  }

  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - startedAt) * perSecond) / 1_000)
    for (; sent < due; sent += 1) {
      const one = ping(sent % 2 === 0)
      pending.add(one)
      one.then(() => pending.delete(one))
    }
  }, 1_000 / perSecond)

  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(pending)
      kept.destroy()
      latencies.sort((a, b) => a - b)
      const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
      return { sent, failures, p99Ms: at(0.99), worstMs: at(1) }
    },
  }
}
