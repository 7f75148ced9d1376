/**
 * Whether a cache holds all that the API server had stored when the question was asked. The silence of a watch does not
 * show it, and bookmarks come once a minute. So the API server is asked:
 *
 * 1. A consistent list of one object returns a version that no earlier change exceeds, and brings the server's own cache up to it
 *    (since Kubernetes 1.31). A cache that has reached this version holds all: a watch delivers in order.
 * 2. Without changes of this resource the position of the cache stays below. Then a second, short watch from that position, on a
 *    connection of its own, delivers what the first watch has to deliver as well, at once or within a moment.
 */

import { type Clock, waitForEvent } from '../runtime/clock.ts'
import { createRate } from '../runtime/rate.ts'
import { startLimit } from './call-limit.ts'
import type { KubernetesClient, Selection } from './client.ts'
import { hasStatus, readErrorEvent } from './errors.ts'
import type { KubernetesObject, ResourceType } from './objects.ts'
import { compareVersions, isNewer } from './resource-version.ts'

/** `unknown`: no response, or not in time; that says nothing about the watch. `behind`: the watch is to be replaced. */
type Confirmation = 'confirmed' | 'behind' | 'unknown'

interface ConfirmOptions {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>
  readonly type: ResourceType
  /** Of the cache. */
  readonly where: Selection
  /** The version up to which the cache holds all. */
  readonly position: () => string
  /** Calls `listener` when the position has moved, until the returned function is called. */
  readonly onMoved: (listener: () => void) => () => void
  readonly onFailure?: (error: unknown) => void
  readonly clock: Clock
  readonly signal: AbortSignal
}

const LIMIT_MS = 5_000
/** A server waits so long for its own cache, then lists past that cache: a second watch would see the cache alone. */
const LAG_MS = 3_000
/** Of the second watch. The server ends it, so that its socket can be used again. */
const SECONDS = 1
/** The first watch has so long for what the second one has delivered: this process may be busy. */
const MOMENT_MS = 1_000
/** A watch that delivers until its end has perhaps not delivered all. */
const QUIET_MS = 250

/** Never rejects; takes five seconds at most. */
export async function confirmPosition(options: ConfirmOptions): Promise<Confirmation> {
  const { client, type, where, position, clock } = options
  const from = position()
  const askedAt = clock.now()
  const { signal, end } = startLimit(clock, LIMIT_MS, options.signal)
  try {
    const page = await client.list(type, { ...where, limit: 1, signal })
    // etcd was emptied or restored.
    if (isNewer(from, page.resourceVersion)) return 'behind'
    if (hasReached(page.resourceVersion)) return 'confirmed'
    if (clock.now() - askedAt >= LAG_MS) return 'unknown'
    const delivered = await watchBriefly()
    const before = position()
    const isLevel = await reach(delivered.version)
    // Where changes never pause, the first watch gets there meanwhile, while the second one delivers until its end.
    if (hasReached(page.resourceVersion)) return 'confirmed'
    // In order: a first watch that still delivers, as after a burst, gets there too.
    if (!isLevel) return signal.aborted || position() !== before ? 'unknown' : 'behind'
    return delivered.isAll ? 'confirmed' : 'unknown'
  } catch (error) {
    options.onFailure?.(error)
    return hasStatus(error, 410) ? 'behind' : 'unknown'
  } finally {
    end()
  }

  function hasReached(version: string): boolean {
    const order = compareVersions(position(), version)
    return order !== null && order >= 0
  }

  /** Resolves with the newest version that a second watch delivers, and whether it delivers all that there is. */
  async function watchBriefly(): Promise<{ readonly version: string; readonly isAll: boolean }> {
    let version = from
    let deliveredAt = Number.NEGATIVE_INFINITY
    const watch = { ...where, resourceVersion: from, timeoutSeconds: SECONDS, signal }
    for await (const event of client.watch<KubernetesObject>(type, watch)) {
      if (event.type === 'ERROR') throw readErrorEvent(`watch ${type.plural}`, event.object)
      // The first watch gets its bookmarks at other times.
      if (event.type === 'BOOKMARK') continue
      if (isNewer(event.object.metadata.resourceVersion, version)) version = event.object.metadata.resourceVersion
      deliveredAt = clock.now()
    }
    return { version, isAll: clock.now() - deliveredAt >= QUIET_MS }
  }

  async function reach(version: string): Promise<boolean> {
    const listen = (onReached: () => void) => options.onMoved(() => hasReached(version) && onReached())
    if (!hasReached(version)) await waitForEvent(clock, MOMENT_MS, signal, listen)
    return hasReached(version)
  }
}

interface Confirmable {
  confirm(signal: AbortSignal): Promise<boolean>
}

/** Two for each: a list and a watch. */
const REQUESTS = 2
const REQUESTS_PER_SECOND = 5
/** So many are asked together. */
const TOGETHER = 5

/**
 * Which groups hold all; where there are many caches, at no more than five requests a second. A group ends with the
 * first of its caches that is not confirmed, and the others go on: each takes five seconds at most.
 */
export async function confirmGroups(
  groups: readonly (readonly Confirmable[])[],
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean[]> {
  const count = groups.reduce((sum, group) => sum + group.length, 0)
  const rate = createRate(clock, REQUESTS_PER_SECOND / REQUESTS, count > TOGETHER ? 1 : TOGETHER)
  return await Promise.all(
    groups.map(async (group) => {
      const failed = new AbortController()
      const fail = () => failed.abort()
      signal.addEventListener('abort', fail, { once: true })
      if (signal.aborted) fail()
      await Promise.all(
        group.map(async (one) => {
          await rate.take(failed.signal)
          if (failed.signal.aborted || !(await one.confirm(failed.signal))) fail()
        }),
      )
      signal.removeEventListener('abort', fail)
      return !failed.signal.aborted
    }),
  )
}
