/**
 * Addresses of names. Each lookup holds one of libuv's few threads (UV_THREADPOOL_SIZE) until the system's resolver answers, and
 * no signal frees it; connections to PostgreSQL need such a thread too. So channels get a few of them at most, those who ask for a
 * name at the same time share one, and a name that kept its thread for long is not asked for again for a while: names whose
 * servers are dead hold up neither each other's channels nor pings.
 */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'

export type FindAddresses = (
  hostname: string,
  options: Parameters<LookupFunction>[1],
) => Promise<readonly LookupAddress[]>

export interface LookupLimits {
  readonly atOnce: number
  /** A name that took longer ... */
  readonly longMs: number
  /** ... is answered for so long with the failure to find it. */
  readonly avoidMs: number
}

const LIMITS: LookupLimits = { atOnce: 4, longMs: 2_000, avoidMs: 30_000 }

export function createLookups(
  lookup: LookupFunction,
  now: () => number,
  { atOnce, longMs, avoidMs }: LookupLimits = LIMITS,
): FindAddresses {
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>()
  const avoided = new Map<string, number>()
  const waiting: (() => void)[] = []
  let running = 0

  function find(hostname: string, options: Parameters<LookupFunction>[1]): Promise<readonly LookupAddress[]> {
    for (const [name, until] of avoided) if (until <= now()) avoided.delete(name)
    if (avoided.has(hostname)) return Promise.reject(tooSlow())
    const found = underWay.get(hostname) ?? askInTurn(hostname, options).finally(() => underWay.delete(hostname))
    underWay.set(hostname, found)
    return found
  }

  async function askInTurn(hostname: string, options: Parameters<LookupFunction>[1]) {
    if (running >= atOnce) await new Promise<void>((resolve) => waiting.push(resolve))
    else running += 1
    const startedAt = now()
    try {
      return await ask(hostname, options)
    } finally {
      if (now() - startedAt > longMs) avoided.set(hostname, now() + avoidMs)
      const next = waiting.shift()
      // The place goes on to the next one.
      if (next === undefined) running -= 1
      else next()
    }
  }

  function ask(hostname: string, options: Parameters<LookupFunction>[1]): Promise<readonly LookupAddress[]> {
    return new Promise((resolve, reject) => {
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        if (error === null) resolve(addresses as LookupAddress[])
        else reject(error)
      })
    })
  }

  return find
}

function tooSlow(): Error {
  return Object.assign(new Error('its name servers took too long a moment ago'), { code: 'EAI_AGAIN' })
}
