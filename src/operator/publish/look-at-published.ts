/**
 * Looks at each published object once a minute, whether it was changed or deleted: the controller may not watch Secrets. Each look is
 * a read that the API server answers from its cache. Looks are spread evenly, the object that was read longest ago comes first, and
 * with more than MAX_CHECKS objects the interval grows instead of the rate. Only for what was published in this term as leader.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { after, type Clock } from '../../runtime/clock.ts'
import type { PublishedTarget } from '../heartbeat-check.ts'
import { TYPES, versionOf } from './published-object.ts'

/** A published object as a full sync left it. */
export interface Seen extends PublishedTarget {
  readonly namespace: string
  readonly version: string
}

export interface PublishedLooks {
  /** The object of this resource was written or read just now. */
  saw(key: string, seen: Seen): void
  /** It is not looked at any more. */
  forget(key: string): void
  start(): void
  stop(): Promise<void>
}

export interface LookOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly clock: Clock
  readonly everyMs?: number
  /** The object of this resource is not what `saw` was called with. */
  readonly onChange: (key: string) => void
}

/** Each object is looked at so often. */
export const LOOK_MS = 60_000
/** 16.7 looks a second. */
const MAX_CHECKS = 1_000
/** A delayed look is followed sooner by the next ones, but never by more than these at once. */
const MAX_BEHIND = 2
/** The cache may be a moment behind a write: where turns are longer than a second, no look comes in the first one. */
const SETTLE_PART = 60
/** Enough for an API server that takes 400 ms for a response. While more are in flight, looks are left out. */
const MAX_IN_FLIGHT = 8

interface Entry extends Seen {
  readonly at: number
}

export function createPublishedLooks({ client, clock, everyMs = LOOK_MS, onChange }: LookOptions): PublishedLooks {
  const stepMs = everyMs / MAX_CHECKS
  const settleMs = everyMs / SETTLE_PART
  /** The one that was read longest ago first. */
  const entries = new Map<string, Entry>()
  const inFlight = new Set<Promise<void>>()
  const stopping = new AbortController()
  let timer: { readonly at: number; readonly disarm: () => void } | undefined
  let lastAt: number | undefined

  /** When the next look is due; undefined: never. */
  function dueAt(): number | undefined {
    const oldest = entries.values().next().value
    if (oldest === undefined || lastAt === undefined) return undefined
    const intervalMs = everyMs * Math.max(1, entries.size / MAX_CHECKS)
    const turnMs = intervalMs / entries.size
    // In turn; or sooner, when many others are gone and the turns have become longer.
    const inTurn = Math.min(lastAt + turnMs, oldest.at + intervalMs)
    return Math.max(inTurn, lastAt + stepMs, oldest.at + Math.min(settleMs, turnMs))
  }

  function arm(): void {
    const at = dueAt()
    if (timer !== undefined && at !== undefined && timer.at <= at) return
    timer?.disarm()
    timer = undefined
    if (at === undefined || stopping.signal.aborted) return
    timer = { at, disarm: after(clock, Math.max(0, at - clock.now()), () => ring(at)) }
  }

  function ring(at: number): void {
    timer = undefined
    const due = dueAt()
    // There may be fewer objects now than when the timer was set.
    if (due !== undefined && due <= clock.now()) {
      lastAt = Math.max(at, clock.now() - MAX_BEHIND * stepMs)
      const [key, entry] = entries.entries().next().value!
      if (inFlight.size < MAX_IN_FLIGHT) {
        put(key, entry)
        const look = lookAt(key, entry).finally(() => inFlight.delete(look))
        inFlight.add(look)
      }
    }
    arm()
  }

  function put(key: string, seen: Seen): void {
    entries.delete(key)
    entries.set(key, { ...seen, at: clock.now() })
  }

  /** Never rejects. */
  async function lookAt(key: string, { kind, namespace, name, version }: Seen): Promise<void> {
    try {
      const options = { resourceVersion: '0', signal: stopping.signal } as const
      const found = await client.get(TYPES[kind], { namespace, name }, options)
      if (versionOf(found) === version) return
    } catch (error) {
      // The full sync reports a missing right. Any other error says nothing about the object.
      if (!hasStatus(error, 403, 404)) return
    }
    // A full sync may have written it meanwhile.
    if (entries.get(key)?.version === version) onChange(key)
  }

  return {
    saw(key, seen) {
      put(key, seen)
      arm()
    },
    forget: (key) => void entries.delete(key),
    start() {
      lastAt ??= clock.now()
      arm()
    },
    async stop() {
      stopping.abort()
      timer?.disarm()
      await Promise.all(inFlight)
    },
  }
}
