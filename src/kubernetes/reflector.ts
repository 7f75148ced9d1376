/**
 * Keeps a copy of what the API server holds of one resource: lists it page by page, follows it with a watch, and hands every
 * change to `onChange`. It goes on until it is stopped, whatever happens in between:
 *
 *   list ----> watch ----> watch ...      a watch ends by itself every 5 to 10 minutes; the next one goes on from there
 *    ^          |  ^
 *    |       check +                      it broke, fell silent, or ended too early: is it still the cluster that we know?
 *    +----------+                         the position is too old (410), the server reports an error; and once an hour,
 *                                         so that nothing unforeseen stays wrong for longer
 *
 * Lists are consistent reads, never `resourceVersion=0`. That one may be older than what we have seen, so that deleted
 * objects come back; and it has no pages (its `limit` is ignored), so that 10,000 objects are one answer of 20 MB and one
 * JSON.parse of 0.15 s. Servers since 1.31 answer consistent reads from memory as well.
 *
 * A list that did not finish is thrown away: what it lacks may exist.
 */

import { backoffMs } from '../runtime/backoff.ts'
import { ApiError, type KubernetesClient, type ListPage, TransportError, type WatchEvent } from './client.ts'
import { readErrorEvent } from './errors.ts'
import { createHandlers, type HandlerOptions, type ProblemKind } from './handlers.ts'
import { createObjectCache } from './object-cache.ts'
import type { KubernetesObject, ResourceType } from './objects.ts'
import { describeTarget } from './resource-path.ts'
import { startWatchdog } from './watchdog.ts'

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
   * A watch that is silent for so long is given up, and the next one goes on from where it was. API servers send a bookmark
   * every minute, but not where nothing at all has happened since the watch began: only silence after a bookmark is a problem.
   */
  readonly stallMs?: number
}

export interface Reflector<T> {
  /** Twice is once. */
  start(): void
  /** For good. Resolves when nothing of it runs any more. */
  stop(): Promise<void>
  /** Has there been a whole list? */
  hasSynced(): boolean
  /** Rejects when `signal` aborts or the reflector is stopped before. */
  whenSynced(signal?: AbortSignal): Promise<void>
  get(key: string): T | undefined
  keys(): Iterable<string>
  values(): Iterable<T>
  /** Takes over the answer to a write of ours, unless something newer is known. Gives no change; nor will its echo. */
  put(object: T): void
  /** When something was last heard of the API server, by the clock; 0 before the first time. */
  lastContactAt(): number
}

const PAGE = 500
const WATCH_SECONDS = 300
/** What a watch may have more than its own time. */
const LATE_MS = 30_000
const STALL_MS = 150_000
/** A small question, often asked over a socket that is as dead as the watch's was. */
const CHECK_MS = 10_000
const STEPS = { firstMs: 800, maxMs: 30_000 }
const RELIST_MS = 3_600_000
/** A watch that lived for so long was a good one: what broke it is not the next step of what broke before. */
const STEADY_MS = 30_000
/** One that the server ends within this counts as a failure, or we would ask again and again without a pause. */
const SHORT_MS = 5_000
const LONGEST_RETRY_AFTER_MS = 120_000

type Step = 'list' | 'check' | 'watch'

/** How a step ended that is not simply followed by the next. */
interface Failure {
  readonly error: unknown
  readonly kind: ProblemKind
  readonly reason: string
  readonly next: Step
}

export function createReflector<T extends KubernetesObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, type, clock, metrics, random = Math.random, stallMs = STALL_MS } = options
  const { hand, handAll, trim, report } = createHandlers(options)
  const where = {
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
    ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
  }
  const description = describeTarget(type, { namespace: options.namespace })
  const cache = createObjectCache<T>()
  const stopping = new AbortController()
  const { signal } = stopping
  const synced = Promise.withResolvers<void>()
  synced.promise.catch(() => {})
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
      // One version that is too old is everyday business, and a new list mends it.
      const isAtOnce = result.reason === 'expired' && failures === 0
      if (!isAtOnce) report(result.error, result.kind)
      const waitMs = isAtOnce ? 0 : waitAfter(result.error)
      failures += 1
      if (waitMs > 0) await clock.sleep(waitMs, signal)
    }
  }

  function waitAfter(error: unknown): number {
    const askedMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
    return Math.max(backoffMs(failures, STEPS, random), Math.min(askedMs, LONGEST_RETRY_AFTER_MS))
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
        hear()
        return cache.isContinuedBy(page.resourceVersion, page.items[0]) ? 'watch' : 'list'
      } catch (error) {
        return { error, kind: 'list', reason: reasonOf(error), next: isRefusal(error) ? 'list' : 'check' }
      }
    },

    async watch() {
      const timeoutSeconds = WATCH_SECONDS + Math.floor(random() * WATCH_SECONDS)
      const untilMs = clock.now() + timeoutSeconds * 1_000 + LATE_MS
      let openedAt: number | null = null
      const livedMs = () => (openedAt === null ? 0 : clock.now() - openedAt)
      const watchdog = startWatchdog({ clock, silentMs: stallMs, untilMs, signal })
      let hasBookmark = false
      try {
        const resourceVersion = cache.position()
        const onContact = () => {
          openedAt ??= clock.now()
          watchdog.hear()
          hear()
        }
        const events = client.watch<T>(type, {
          ...where,
          resourceVersion,
          timeoutSeconds,
          signal: watchdog.signal,
          onContact,
        })
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
        if (!watchdog.hasBarked()) return brokenBy(error)
        if (hasBookmark) return stalled()
        metrics?.restarted('quiet')
        return 'check'
      } finally {
        watchdog.stop()
      }
    },
  }

  function stalled(): Failure {
    const error = new TransportError(
      `watch ${description}: nothing was heard for ${stallMs / 1_000} s, or no end in time`,
    )
    return { error, kind: 'stall', reason: 'stalled', next: 'check' }
  }

  function brokenBy(error: unknown): Failure {
    return { error, kind: 'watch', reason: reasonOf(error), next: isRefusal(error) ? 'list' : 'check' }
  }

  async function listAll(): Promise<void> {
    cache.beginList()
    const items: T[] = []
    let resourceVersion = ''
    let continueToken: string | null = null
    do {
      const page: ListPage<T> = await client.list<T>(type, {
        ...where,
        limit: PAGE,
        ...(continueToken === null ? {} : { continueToken }),
        signal,
      })
      hear()
      for (const item of page.items) items.push(trim(item))
      resourceVersion ||= page.resourceVersion
      continueToken = page.continueToken
    } while (continueToken !== null)
    await handAll(cache.replace(items, resourceVersion), signal)
    if (signal.aborted) return
    listedAt = clock.now()
    metrics?.objects(cache.size())
    isSynced = true
    synced.resolve()
  }

  function take({ type, object }: WatchEvent<T>): void {
    if (type === 'ERROR') throw readErrorEvent(`watch ${description}`, object)
    if (type === 'BOOKMARK') cache.moveTo(object.metadata.resourceVersion)
    else for (const change of cache.apply(type, trim(object))) hand(change)
    metrics?.objects(cache.size())
  }

  function hear(): void {
    contactAt = clock.now()
    metrics?.contact(contactAt)
  }

  return {
    start() {
      running ??= run()
    },
    async stop() {
      stopping.abort()
      synced.reject(new Error(`the reflector of ${description} was stopped before its first list`))
      await running
    },
    hasSynced: () => isSynced,
    async whenSynced(until) {
      if (until === undefined) return synced.promise
      const aborted = Promise.withResolvers<never>()
      const abort = () => aborted.reject(until.reason)
      if (until.aborted) abort()
      until.addEventListener('abort', abort, { once: true })
      try {
        await Promise.race([synced.promise, aborted.promise])
      } finally {
        until.removeEventListener('abort', abort)
      }
    },
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

/** What the server itself calls wrong is mended by a list; being busy is not wrong, and a broken line only needs another. */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status !== 429
}
