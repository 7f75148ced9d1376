/**
 * A coordination.k8s.io/v1 Lease as a lock: take it, renew it, give it back. Every write is a replace with the
 * resourceVersion that was read, so that of two writers one gets a conflict.
 *
 * Nobody compares times of two clocks. A lease has lapsed when this process has itself seen no change of it for as long as
 * its holder asked for; what its times say is for people (client-go's rule).
 */

import type { Clock } from '../runtime/clock.ts'
import type { CallOptions, KubernetesClient } from './client.ts'
import { ApiError, hasReason } from './errors.ts'
import { type KubernetesObject, type ObjectName, type ResourceType, toMicroTime } from './objects.ts'

const LEASES: ResourceType = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }

interface LeaseSpec {
  /** Absent or empty: nobody. */
  readonly holderIdentity?: string
  readonly leaseDurationSeconds?: number
  readonly acquireTime?: string
  readonly renewTime?: string
  readonly leaseTransitions?: number
}

interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec
}

/** What one who holds the lease knows of it. */
export interface Held {
  readonly lease: Lease
  /** Just before the last accepted write was sent: nobody can have seen it earlier, so nobody's count of it began earlier. */
  readonly since: number
}

export interface LeaseLock {
  /** Takes the lease when it is free, lapsed, or ours from a write whose answer was lost. Undefined: another holds it, or was faster. */
  take(signal: AbortSignal): Promise<Held | undefined>
  /** Undefined: it is not ours any more, and see holder(). Rejects when that could not be learnt. */
  renew(held: Held, signal: AbortSignal): Promise<Held | undefined>
  /** Leaves the lease without a holder, so that the next one need not wait for its lapse. */
  release(held: Held): Promise<void>
  /** As last seen. */
  holder(): string | null
  /** Until the lease as last seen lapses; null before it was seen. */
  untilLapseMs(): number | null
}

export interface LeaseLockOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'create' | 'replace'>
  readonly name: ObjectName
  readonly identity: string
  readonly clock: Clock
  readonly leaseMs: number
  /** For each request. */
  readonly requestMs: number
}

const MOST_RELEASE_TRIES = 3

export function createLeaseLock({ client, name, identity, clock, leaseMs, requestMs }: LeaseLockOptions): LeaseLock {
  let observed: { readonly spec: LeaseSpec; readonly text: string; readonly at: number } | undefined

  async function take(signal: AbortSignal): Promise<Held | undefined> {
    const seen = await read(signal)
    const now = clock.now()
    if (seen !== null && !isFree(seen, now)) return undefined
    try {
      // Not given up at a stop: a lease that was taken unnoticed would keep everybody waiting for its lapse.
      return seen === null ? await create(now) : await write(seen, now)
    } catch (error) {
      if (isConflict(error)) return undefined
      throw error
    }
  }

  function isFree(lease: Lease, now: number): boolean {
    const { spec, at } = observe(lease)
    const { holderIdentity: holder = '' } = spec
    return holder === '' || holder === identity || now >= at + durationMs(spec)
  }

  async function renew(held: Held, signal: AbortSignal): Promise<Held | undefined> {
    try {
      return await write(held.lease, clock.now(), signal)
    } catch (error) {
      if (signal.aborted) throw error
    }
    // The answer may have been lost, or somebody have labelled the object: once more, upon what is there now.
    const seen = await read(signal)
    if (seen === null || observe(seen).spec.holderIdentity !== identity) return undefined
    return write(seen, clock.now(), signal)
  }

  async function release({ lease }: Held): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const time = toMicroTime(clock.now())
      const { leaseTransitions = 0 } = lease.spec ?? {}
      // One second, as client-go does, for those who look at the duration before the holder.
      const spec = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions }
      const freed = { ...lease, spec }
      try {
        observe(await client.replace(LEASES, freed, { timeoutMs: requestMs }))
        return
      } catch (error) {
        // A renewal that nobody waited for any more may have arrived after all.
        if (!isConflict(error) || tries === MOST_RELEASE_TRIES) throw error
      }
      const seen = await read()
      if (seen === null || observe(seen).spec.holderIdentity !== identity) return
      lease = seen
    }
  }

  async function create(now: number): Promise<Held> {
    const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: name, spec: specUpon(null, now) }
    const lease = await client.create<Lease>(LEASES, body, { timeoutMs: requestMs })
    observe(lease)
    return { lease, since: now }
  }

  async function write(before: Lease, now: number, signal?: AbortSignal): Promise<Held> {
    const wanted = { ...before, spec: specUpon(before.spec ?? {}, now) }
    const lease = await client.replace(LEASES, wanted, limitsOf(signal))
    observe(lease)
    return { lease, since: now }
  }

  function specUpon(before: LeaseSpec | null, now: number): LeaseSpec {
    const time = toMicroTime(now)
    const isOurs = before?.holderIdentity === identity
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseMs / 1_000),
      acquireTime: isOurs ? (before.acquireTime ?? time) : time,
      renewTime: time,
      leaseTransitions: before === null ? 0 : (before.leaseTransitions ?? 0) + (isOurs ? 0 : 1),
    }
  }

  async function read(signal?: AbortSignal): Promise<Lease | null> {
    try {
      return await client.get<Lease>(LEASES, name, limitsOf(signal))
    } catch (error) {
      if (!hasReason(error, 'NotFound')) throw error
      observed = undefined
      return null
    }
  }

  /** Only the spec counts: labels and managed fields change without the holder's doing. */
  function observe({ spec = {} }: Lease) {
    const text = JSON.stringify(spec)
    if (observed?.text !== text) observed = { spec, text, at: clock.now() }
    return observed
  }

  function limitsOf(signal: AbortSignal | undefined): CallOptions {
    return signal === undefined ? { timeoutMs: requestMs } : { timeoutMs: requestMs, signal }
  }

  function durationMs({ leaseDurationSeconds }: LeaseSpec): number {
    return leaseDurationSeconds === undefined ? leaseMs : leaseDurationSeconds * 1_000
  }

  return {
    take,
    renew,
    release,
    holder: () => observed?.spec.holderIdentity || null,
    untilLapseMs: () => (observed === undefined ? null : observed.at + durationMs(observed.spec) - clock.now()),
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409
}
