/**
 * Name lookups with limits. Each occupies one of libuv's few threads (UV_THREADPOOL_SIZE), which connections to PostgreSQL need too, until the
 * system's resolver responds; no signal frees it. So at most `atOnce` lookups run, requests for the same name share one, and a name that was
 * slow fails at once for a while: dead name servers delay neither the other channels nor pings.
 */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { createSemaphore } from '../runtime/semaphore.ts'

type Options = Parameters<LookupFunction>[1]
export type FindAddresses = (hostname: string, options: Options) => Promise<readonly LookupAddress[]>

export interface LookupLimits {
  readonly atOnce: number
  /** A lookup that takes longer than `longMs` makes the name fail at once for `avoidMs`. */
  readonly longMs: number
  readonly avoidMs: number
}

const LIMITS: LookupLimits = { atOnce: 4, longMs: 2_000, avoidMs: 30_000 }

/** Returns the lookup. It rejects with the resolver's error, or with EAI_AGAIN for a name that was slow. */
export function createLookups(
  lookup: LookupFunction,
  now: () => number,
  { atOnce, longMs, avoidMs }: LookupLimits = LIMITS,
): FindAddresses {
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>()
  const avoided = new Map<string, number>()
  const runInSlot = createSemaphore({ slots: atOnce })

  function find(hostname: string, options: Options): Promise<readonly LookupAddress[]> {
    for (const [name, until] of avoided) if (until <= now()) avoided.delete(name)
    if (avoided.has(hostname)) return Promise.reject(tooSlow())
    const found = underWay.get(hostname) ?? askInSlot(hostname, options).finally(() => underWay.delete(hostname))
    underWay.set(hostname, found)
    return found
  }

  const askInSlot: FindAddresses = (hostname, options) =>
    runInSlot(async () => {
      const startedAt = now()
      try {
        return await ask(hostname, options)
      } finally {
        if (now() - startedAt > longMs) avoided.set(hostname, now() + avoidMs)
      }
    })

  function ask(hostname: string, options: Options): Promise<readonly LookupAddress[]> {
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
