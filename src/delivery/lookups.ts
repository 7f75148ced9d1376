/**
 * Name lookups with limits. Each occupies one of libuv's few threads (UV_THREADPOOL_SIZE), which connections to PostgreSQL need too, until the
 * system's resolver responds; no signal frees it. So few lookups run at a time: one of a project, and half of them of an organization. After two
 * seconds a lookup fails, and so do those of other names of the zone for a while: dead name servers delay neither other channels nor pings.
 */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Tenant } from '../domain/access.ts'
import { startTimer } from '../runtime/clock.ts'
import { createLimiter } from '../runtime/limiter.ts'

/** Who asks. Without a tenant: the operator, or a test. */
export interface Asker {
  readonly tenant?: Tenant | undefined
  readonly signal?: AbortSignal
}

type Options = Parameters<LookupFunction>[1]
export type FindAddresses = (hostname: string, options: Options, by?: Asker) => Promise<readonly LookupAddress[]>

export interface LookupLimits {
  readonly atOnce: number
  /** A lookup that takes longer than `longMs` fails, and makes the zone fail at once for `avoidMs`. */
  readonly longMs: number
  readonly avoidMs: number
}

const LIMITS: LookupLimits = { atOnce: 8, longMs: 2_000, avoidMs: 30_000 }
/** No attempt to deliver takes longer. */
const IN_LINE_MS = 10_000

/** Returns the lookup. It rejects with the resolver's error, or with EAI_AGAIN for a name or a zone that is slow. */
export function createLookups(
  lookup: LookupFunction,
  now: () => number,
  { atOnce, longMs, avoidMs }: LookupLimits = LIMITS,
): FindAddresses {
  const underWay = new Map<string, Promise<readonly LookupAddress[]>>()
  const avoided = new Map<string, number>()
  const inTurnOfProject = createLimiter({ perKey: 1, waitMs: IN_LINE_MS, createError: tooSlow })
  const inTurn = createLimiter({ atOnce, perKey: Math.ceil(atOnce / 2), waitMs: IN_LINE_MS, createError: tooSlow })

  return (hostname, options, by = {}) => {
    for (const [zone, until] of avoided) if (until <= now()) avoided.delete(zone)
    const owner = ownerOf(by.tenant)
    // Of this tenant alone: others would wait in its line, and a zone such as co.uk has many owners.
    const [wanted, zone] = [`${owner} ${hostname}`, `${owner} ${zoneOf(hostname)}`]
    if (avoided.has(zone)) return Promise.reject(tooSlow())
    const found = underWay.get(wanted) ?? askInTurn(hostname, options, by, zone).finally(() => underWay.delete(wanted))
    underWay.set(wanted, found)
    // Its attempts may all have ended.
    found.catch(() => {})
    return found
  }

  function askInTurn(hostname: string, options: Options, by: Asker, zone: string): Promise<readonly LookupAddress[]> {
    return new Promise((resolve, reject) => {
      // Its turn lasts as long as the thread is occupied.
      const ask = () =>
        new Promise<void>((leave) => {
          // The attempt ended in the line, or the zone turned out to be slow. Other attempts may wait for the same name.
          if (by.signal?.aborted || avoided.has(zone)) throw tooSlow()
          const avoid = () => avoided.set(zone, now() + avoidMs)
          const startedAt = now()
          const stopTimer = startTimer(longMs, () => {
            avoid()
            reject(tooSlow())
          })
          lookup(hostname, { ...options, all: true }, (error, addresses) => {
            stopTimer()
            leave()
            if (now() - startedAt > longMs) avoid()
            if (error === null) resolve(addresses as LookupAddress[])
            else reject(error)
          })
        })
      enter(ask, hostname, by.tenant).catch(reject)
    })
  }

  function enter(ask: () => Promise<void>, hostname: string, tenant: Tenant | undefined): Promise<void> {
    if (tenant === undefined) return inTurn(ask, [hostname])
    const giveUpAt = performance.now() + IN_LINE_MS
    const askOfOrganization = () => inTurn(ask, [tenant.organizationId], giveUpAt - performance.now())
    return inTurnOfProject(askOfOrganization, [ownerOf(tenant)])
  }
}

const ownerOf = (tenant: Tenant | undefined) =>
  tenant === undefined ? '' : `${tenant.organizationId}/${tenant.projectId ?? ''}`

/** The last two labels. */
const zoneOf = (hostname: string) => hostname.toLowerCase().replace(/\.$/, '').split('.').slice(-2).join('.')

function tooSlow(): Error {
  return Object.assign(new Error('its name servers took too long'), { code: 'EAI_AGAIN' })
}
