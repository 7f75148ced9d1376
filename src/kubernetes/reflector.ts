/**
 * Keeps a cache of one resource in line with the API server: lists it page by page, follows it with a watch, and passes every
 * change to `onChange`. It recovers from every failure until it is stopped:
 *
 *   list ----> watch ----> watch ...      a watch ends by itself every 5 to 10 minutes; the next one continues there
 *    ^          |  ^
 *    |       check +                      it broke, stalled, or ended too early: has the server still the same history?
 *    +----------+                         the position is too old (410), the server reports an error; and once an hour,
 *                                         so that an unforeseen fault does not last for longer
 *
 * Lists are consistent reads, never `resourceVersion=0`: such a list may be older than the cache, so that deleted objects come
 * back; and it has no pages (its `limit` is ignored), so that 10,000 objects are one response of 20 MB and one JSON.parse of
 * 0.15 s. Servers since 1.31 serve consistent reads from memory too.
 *
 * An incomplete list is discarded: objects that it lacks may exist.
 *
 * Why not ListWatch, the informer of `@kubernetes/client-node`: in 2.0.1 (dist/cache.js, `doneHandler`) a watch that ends with any
 * error but 410 or a timeout calls the error callbacks and stops for good, and so does a list that fails (kubernetes-client/javascript
 * #795, #1933). It lists without pages, does not notice a silent connection, and cannot take in our own writes. The library has no
 * work queue, leader election or Event recorder either.
 */

import { backoffMs } from '../runtime/backoff.ts'
import { ApiError, type KubernetesClient, type ListPage, TransportError, type WatchEvent } from './client.ts'
import { readErrorEvent } from './errors.ts'
import { createHandlers, type HandlerOptions, type ProblemKind } from './handlers.ts'
import { createObjectCache } from './object-cache.ts'
import type { KubernetesObject, ResourceType } from './objects.ts'
import { describeLocation } from './resource-path.ts'
import { startStallTimer } from './stall-timer.ts'

export type { ProblemKind } from './handlers.ts'
export type { Change } from './object-cache.ts'

export interface ReflectorMetrics {
  /** Why a watch ended: `timeout` (as agreed), `closed` (too early), `quiet`, `stalled`, `expired`, `error`. */
  restarted(reason: string): void
  contact(atMs: number): void
  objects(count: number): void
}

export interface ReflectorOptions<T> extends HandlerOptions<T> {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>
  readonly type: ResourceType
  /** Left out: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly random?: () => number
  readonly metrics?: ReflectorMetrics
  /**
   * A watch that receives nothing for so long is replaced; the next one continues from its position. API servers send a bookmark
   * every minute, but not while nothing has changed since the watch began: only silence after a bookmark is a problem.
   */
  readonly stallMs?: number
}

export interface Reflector<T> {
  /** A second call has no effect. */
  start(): void
  /** Resolves when all its work has ended. It cannot be started again. */
  stop(): Promise<void>
  /** Whether a whole list has been received. */
  hasSynced(): boolean
  get(key: string): T | undefined
  keys(): Iterable<string>
  values(): Iterable<T>
  /** Caches the response to a write of ours unless a newer state is known. Neither it nor its event in the watch causes onChange. */
  put(object: T): void
  /** When data of the API server last arrived, by the clock; 0 before the first time. */
  lastContactAt(): number
}

const PAGE = 500
const WATCH_SECONDS = 300
/** How much longer than agreed a watch may last. */
const LATE_MS = 30_000
const STALL_MS = 150_000
/** The time limit of a check, often sent over a socket that is as dead as the watch's was. */
const CHECK_MS = 10_000
const STEPS = { firstMs: 800, maxMs: 30_000 }
const RELIST_MS = 3_600_000
/** A watch that lived for so long resets the back-off. */
const STEADY_MS = 30_000
/** A watch that the server ends within this counts as a failure, or we would retry without a pause. */
const SHORT_MS = 5_000
const MAX_RETRY_AFTER_MS = 120_000

type Step = 'list' | 'check' | 'watch'

/** How a failed step ended. */
interface Failure {
  readonly error: unknown
  readonly kind: ProblemKind
  readonly reason: string
  readonly next: Step
}

export function createReflector<T extends KubernetesObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, type, clock, metrics, random = Math.random, stallMs = STALL_MS } = options
  const { deliver, deliverAll, trim, report } = createHandlers(options)
  const where = {
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
    ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
  }
  const description = describeLocation(type, { namespace: options.namespace })
  const cache = createObjectCache<T>()
  const stopping = new AbortController()
  const { signal } = stopping
  let isSynced = false
  let contactAt = 0
  let listedAt = 0
  let running: Promise<void> | undefined
  let failures = 0

  async function run(): Promise<void> {
    let step: Step = 'list'
    while (!signal.aborted) {
      const result: Step | Failure = await steps[step]()
      if (signal.aborted) return
      if (typeof result === 'string') {
        step = result
        continue
      }
      step = result.next
      if (result.kind !== 'list') metrics?.restarted(result.reason)
      // One version that is too old is normal, and a new list fixes it.
      const isAtOnce = result.reason === 'expired' && failures === 0
      if (!isAtOnce) report(result.error, result.kind)
      const waitMs = isAtOnce ? 0 : waitAfter(result.error)
      failures += 1
      if (waitMs > 0) await clock.sleep(waitMs, signal)
    }
  }

  function waitAfter(error: unknown): number {
    const askedMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
    return Math.max(backoffMs(failures, STEPS, random), Math.min(askedMs, MAX_RETRY_AFTER_MS))
  }

  const steps: Record<Step, () => Promise<Step | Failure>> = {
    async list() {
      try {
        await listAll()
        return 'watch'
      } catch (error) {
        return { error, kind: 'list', reason: reasonOf(error), next: 'list' }
      }
    },

    async check() {
      try {
        const page = await client.list<T>(type, { ...where, limit: 1, signal, timeoutMs: CHECK_MS })
        noteContact()
        return cache.isContinuedBy(page.resourceVersion, page.items[0]) ? 'watch' : 'list'
      } catch (error) {
        return { error, kind: 'list', reason: reasonOf(error), next: isRejection(error) ? 'list' : 'check' }
      }
    },

    async watch() {
      const timeoutSeconds = WATCH_SECONDS + Math.floor(random() * WATCH_SECONDS)
      const untilMs = clock.now() + timeoutSeconds * 1_000 + LATE_MS
      let openedAt: number | null = null
      const livedMs = () => (openedAt === null ? 0 : clock.now() - openedAt)
      const stallTimer = startStallTimer({ clock, stallMs, untilMs, signal })
      let hasBookmark = false
      try {
        const resourceVersion = cache.position()
        const onContact = () => {
          openedAt ??= clock.now()
          stallTimer.restart()
          noteContact()
        }
        const { signal } = stallTimer
        const events = client.watch<T>(type, { ...where, resourceVersion, timeoutSeconds, signal, onContact })
        for await (const event of events) {
          hasBookmark ||= event.type === 'BOOKMARK'
          take(event)
        }
        if (livedMs() >= STEADY_MS) failures = 0
        if (livedMs() < SHORT_MS) throw new TransportError(`watch ${description}: ended after ${livedMs()} ms`)
        const isInTime = livedMs() >= timeoutSeconds * 1_000 - SHORT_MS
        metrics?.restarted(isInTime ? 'timeout' : 'closed')
        if (!isInTime) return 'check'
        return clock.now() - listedAt < RELIST_MS ? 'watch' : 'list'
      } catch (error) {
        if (livedMs() >= STEADY_MS) failures = 0
        if (!stallTimer.hasFired())
          return { error, kind: 'watch', reason: reasonOf(error), next: isRejection(error) ? 'list' : 'check' }
        if (hasBookmark) return stalled()
        metrics?.restarted('quiet')
        return 'check'
      } finally {
        stallTimer.stop()
      }
    },
  }

  function stalled(): Failure {
    const error = new TransportError(
      `watch ${description}: nothing was received for ${stallMs / 1_000} s, or it did not end in time`,
    )
    return { error, kind: 'stall', reason: 'stalled', next: 'check' }
  }

  async function listAll(): Promise<void> {
    cache.beginList()
    const items: T[] = []
    let resourceVersion = ''
    let continueToken: string | null = null
    do {
      const more = continueToken === null ? {} : { continueToken }
      const page: ListPage<T> = await client.list<T>(type, { ...where, limit: PAGE, ...more, signal })
      noteContact()
      for (const item of page.items) items.push(trim(item))
      resourceVersion ||= page.resourceVersion
      continueToken = page.continueToken
    } while (continueToken !== null)
    await deliverAll(cache.replace(items, resourceVersion), signal)
    if (signal.aborted) return
    listedAt = clock.now()
    metrics?.objects(cache.size())
    isSynced = true
  }

  function take({ type, object }: WatchEvent<T>): void {
    if (type === 'ERROR') throw readErrorEvent(`watch ${description}`, object)
    if (type === 'BOOKMARK') cache.moveTo(object.metadata.resourceVersion)
    else for (const change of cache.apply(type, trim(object))) deliver(change)
    metrics?.objects(cache.size())
  }

  function noteContact(): void {
    contactAt = clock.now()
    metrics?.contact(contactAt)
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      await running
    },
    hasSynced: () => isSynced,
    get: cache.get,
    keys: cache.keys,
    values: cache.values,
    put: (object) => cache.put(trim(object)),
    lastContactAt: () => contactAt,
  }
}

function reasonOf(error: unknown): string {
  return error instanceof ApiError && error.status === 410 ? 'expired' : 'error'
}

/** After a rejected watch only a list helps; a busy server or a broken connection needs only another watch. */
function isRejection(error: unknown): boolean {
  return error instanceof ApiError && error.status !== 429
}
