/**
 * A coordination.k8s.io/v1 Lease as a lock: acquire, renew, release. Every write is a replace with the resourceVersion
 * that was read, so that one of two concurrent writers gets a conflict.
 *
 * Times of two clocks are never compared. A lease has expired when this process itself has seen no change of it for its
 * duration; the times in it are for people (client-go's rule).
 */

import type { Clock } from '../runtime/clock.ts'
import type { CallOptions } from './call.ts'
import { getOrNull, type KubernetesClient } from './client.ts'
import { hasStatus } from './errors.ts'
import { type KubernetesObject, type LeaseSpec, type ObjectName, type ResourceType, toMicroTime } from './objects.ts'

export const LEASES: ResourceType = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases' }
const API_VERSION = 'coordination.k8s.io/v1'

export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec
}

/** A lease that this process holds. */
export interface Held {
  readonly lease: Lease
  /**
   * Just before the last accepted write was sent. No other process can have seen that write earlier, or count its
   * expiry from earlier.
   */
  readonly since: number
}

export interface LeaseLockOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'create' | 'replace'>
  readonly name: ObjectName
  readonly identity: string
  readonly clock: Clock
  readonly leaseMs: number
  /** For each request. */
  readonly requestMs: number
  /** Written with each acquisition and renewal; those of others stay. */
  readonly annotations?: Readonly<Record<string, string>> | undefined
  /** Called with each Lease that another process holds, while it is waited for. */
  readonly onHeld?: ((lease: Lease) => void) | undefined
  /** Owns the fields of the Lease. */
  readonly fieldManager?: string | undefined
}

const MAX_RELEASE_TRIES = 3

export function createLeaseLock(options: LeaseLockOptions) {
  const { client, name, identity, clock, leaseMs, requestMs, annotations, onHeld, fieldManager } = options
  const writing = { timeoutMs: requestMs, fieldManager }
  const observer = createLeaseObserver(clock, leaseMs)
  const { observe } = observer

  /**
   * Acquires a lease that is free, expired, or ours from a write without a response. Undefined: another process
   * holds it, or was faster.
   */
  async function acquire(signal: AbortSignal): Promise<Held | undefined> {
    const seen = await read(signal)
    const now = clock.now()
    if (seen !== null && observe(seen).holderIdentity !== identity && !observer.isFree()) {
      onHeld?.(seen)
      return undefined
    }
    try {
      // Not aborted by a stop: a lease acquired without our knowledge would block all candidates until it expires.
      return seen === null ? await create(now) : await write(seen, now)
    } catch (error) {
      if (hasStatus(error, 409)) return undefined
      throw error
    }
  }

  /** Undefined: it is not ours any more, see holder(). Rejects when the API server could not be asked. */
  async function renew(held: Held, signal: AbortSignal): Promise<Held | undefined> {
    try {
      return await write(held.lease, clock.now(), signal)
    } catch (error) {
      if (signal.aborted) throw error
    }
    // The response may have been lost, or another client has labelled the object: retry once, on the current object.
    const seen = await read(signal)
    if (seen === null || observe(seen).holderIdentity !== identity) return undefined
    return write(seen, clock.now(), signal)
  }

  /** Leaves the lease without a holder, so that the next one need not wait until it expires. */
  async function release({ lease }: Held): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      const time = toMicroTime(clock.now())
      const { leaseTransitions = 0 } = lease.spec ?? {}
      // One second, like client-go, for candidates that check the duration before the holder.
      const spec = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions }
      try {
        observe(await client.replace(LEASES, { ...lease, spec }, writing))
        return
      } catch (error) {
        // A renewal that was aborted may still have arrived.
        if (!hasStatus(error, 409) || tries === MAX_RELEASE_TRIES) throw error
      }
      const seen = await read()
      if (seen === null || observe(seen).holderIdentity !== identity) return
      lease = seen
    }
  }

  async function create(now: number): Promise<Held> {
    const metadata = annotations === undefined ? name : { ...name, annotations }
    const body = { apiVersion: API_VERSION, kind: 'Lease', metadata, spec: specUpon(null, now) }
    const lease = await client.create<Lease>(LEASES, body, writing)
    observe(lease)
    return { lease, since: now }
  }

  async function write(before: Lease, now: number, signal?: AbortSignal): Promise<Held> {
    const metadata = {
      ...before.metadata,
      ...(annotations && { annotations: { ...before.metadata.annotations, ...annotations } }),
    }
    const wanted = { ...before, metadata, spec: specUpon(before.spec ?? {}, now) }
    const lease = await client.replace(LEASES, wanted, { ...writing, ...limitsOf(signal) })
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
    const lease = await readLease(client, name, limitsOf(signal))
    if (lease === null) observer.forget()
    return lease
  }

  function limitsOf(signal: AbortSignal | undefined): CallOptions {
    return signal === undefined ? { timeoutMs: requestMs } : { timeoutMs: requestMs, signal }
  }

  return { acquire, renew, release, holder: observer.holder, untilExpiryMs: observer.untilExpiryMs }
}

/** Returns null when there is no such Lease. */
export const readLease = (client: Pick<KubernetesClient, 'get'>, name: ObjectName, options: CallOptions) =>
  getOrNull<Lease>(client, LEASES, name, options)

/** Notes since when a lease has been as it is. `defaultMs` is the duration of a lease that has none. */
export function createLeaseObserver(clock: Pick<Clock, 'now'>, defaultMs: number) {
  let observed: { readonly spec: LeaseSpec; readonly text: string; readonly at: number } | undefined
  /** As last seen; null: it is free, or was not seen. */
  const holder = () => observed?.spec.holderIdentity || null

  /** Until the lease as last seen expires; null before it was seen. */
  function untilExpiryMs(): number | null {
    if (observed === undefined) return null
    const { leaseDurationSeconds } = observed.spec
    return observed.at + (leaseDurationSeconds === undefined ? defaultMs : leaseDurationSeconds * 1_000) - clock.now()
  }

  return {
    /** Only the spec counts: labels and managed fields change without the holder. */
    observe({ spec = {} }: Lease): LeaseSpec {
      const text = JSON.stringify(spec)
      if (observed?.text !== text) observed = { spec, text, at: clock.now() }
      return observed.spec
    },
    forget() {
      observed = undefined
    },
    holder,
    untilExpiryMs,
    isFree: () => holder() === null || (untilExpiryMs() ?? 0) <= 0,
  }
}
