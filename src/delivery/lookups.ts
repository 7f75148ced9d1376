/**
 * Name lookups with limits. Each occupies one of libuv's few threads (UV_THREADPOOL_SIZE), which connections to PostgreSQL need too, until the
 * system's resolver responds; no signal frees it. So few lookups run at a time: one of a project, and half of them of an organization. After two
 * seconds a lookup fails, and so do those of other names of the zone for a while: dead name servers delay neither other channels nor pings.
 */

import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Tenant } from '../domain/access.ts'
import { startTimer } from '../runtime/clock.ts'
import { createSharedPlaces, type Leave } from '../runtime/places.ts'

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
  const ofProjects = createSharedPlaces(Number.POSITIVE_INFINITY, 1)
  const ofOrganizations = createSharedPlaces(atOnce, Math.ceil(atOnce / 2))

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

  async function askInTurn(hostname: string, options: Options, by: Asker, zone: string) {
    const leave = await enter(hostname, by.tenant)
    if (leave === null) throw tooSlow()
    // The attempt ended in the line, or the zone turned out to be slow. Other attempts may wait for the same name.
    if (by.signal?.aborted || avoided.has(zone)) {
      leave()
      throw tooSlow()
    }
    const avoid = () => avoided.set(zone, now() + avoidMs)
    const startedAt = now()
    return new Promise<readonly LookupAddress[]>((resolve, reject) => {
      const stopTimer = startTimer(longMs, () => {
        avoid()
        reject(tooSlow())
      })
      // The place is kept as long as the thread is.
      lookup(hostname, { ...options, all: true }, (error, addresses) => {
        stopTimer()
        leave()
        if (now() - startedAt > longMs) avoid()
        if (error === null) resolve(addresses as LookupAddress[])
        else reject(error)
      })
    })
  }

  async function enter(hostname: string, tenant: Tenant | undefined): Promise<Leave | null> {
    if (tenant === undefined) return ofOrganizations.take(hostname, IN_LINE_MS)
    const startedAt = performance.now()
    const own = await ofProjects.take(ownerOf(tenant), IN_LINE_MS)
    if (own === null) return null
    const leftMs = IN_LINE_MS - (performance.now() - startedAt)
    const shared = await ofOrganizations.take(tenant.organizationId, Math.max(0, leftMs))
    if (shared === null) own()
    return shared === null
      ? null
      : () => {
          shared()
          own()
        }
  }
}

const ownerOf = (tenant: Tenant | undefined) =>
  tenant === undefined ? '' : `${tenant.organizationId}/${tenant.projectId ?? ''}`

/** The last two labels. */
const zoneOf = (hostname: string) => hostname.toLowerCase().replace(/\.$/, '').split('.').slice(-2).join('.')

function tooSlow(): Error {
  return Object.assign(new Error('its name servers took too long'), { code: 'EAI_AGAIN' })
}
