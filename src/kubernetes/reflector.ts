/**
 * Keeps a copy of what the API server holds of one resource: lists it page by page, follows it with a watch, and hands every
 * change to `onChange`. It goes on until it is stopped, whatever happens in between:
 *
 *   list ----> watch ----> watch ...      a watch ends by itself every 5 to 10 minutes and goes on from where it was
 *    ^  ^        |
 *    |  +-- check         it broke, or ended too early: is the server's history still the one that we know?
 *    +-----------         the position is too old (410), the server reports an error, or says nothing for too long
 *
 * Lists are consistent reads, never `resourceVersion=0`. That one may be older than what we have seen, so that deleted
 * objects come back; and it has no pages (its `limit` is ignored), so that 10,000 objects are one answer of 20 MB and one
 * JSON.parse of 0.15 s. Servers since 1.31 answer consistent reads from memory as well.
 *
 * A list that did not finish is thrown away: what it lacks may exist.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Clock } from '../runtime/clock.ts'
import { backoffMs } from './backoff.ts'
import { ApiError, type KubernetesClient, type ListPage, TransportError, type WatchEvent } from './client.ts'
import { readErrorEvent } from './errors.ts'
import { type Change, createObjectCache, type KeyedChange } from './object-cache.ts'
import type { KubernetesObject, ResourceType } from './objects.ts'
import { describeTarget } from './resource-path.ts'
import { compareVersions } from './resource-version.ts'
import { startWatchdog } from './watchdog.ts'

export type { Change } from './object-cache.ts'

export interface ReflectorMetrics {
  /** Why a watch ended: `timeout` (as agreed), `closed` (too early), `error`, `expired`, `stalled`. */
  restarted(reason: string): void
  contact(atMs: number): void
  objects(count: number): void
}

export type ProblemKind = 'list' | 'watch' | 'stall' | 'handler'

export interface ReflectorOptions<T> {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>
  readonly type: ResourceType
  /** Left out: all namespaces. */
  readonly namespace?: string
  readonly labelSelector?: string
  readonly clock: Clock
  readonly random?: () => number
  /** Takes off what nobody reads, before anything is kept. */
  readonly trim?: (object: T) => T
  /** Must be quick. What it throws is reported and changes nothing. */
  readonly onChange: (key: string, change: Change<T>) => void
  /** The reflector goes on by itself; this is for logs. */
  readonly onProblem: (error: unknown, kind: ProblemKind) => void
  readonly metrics?: ReflectorMetrics
  /** A watch that is silent for so long is given up. API servers send a bookmark every minute. */
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
const STEPS = { firstMs: 800, longestMs: 30_000 }
/** A watch that lived for so long was a good one: what broke it is not the next step of what broke before. */
const STEADY_MS = 30_000
/** One that the server ends within this counts as a failure, or we would ask again and again without a pause. */
const SHORT_MS = 5_000
const LONGEST_RETRY_AFTER_MS = 120_000
/** Handing out a long list gives way to others after so much of it. */
const TURN_MS = 8

type Step = 'list' | 'check' | 'watch'

/** How a step ended that is not simply followed by the next. */
interface Failure {
  readonly error: unknown
  readonly kind: ProblemKind
  readonly reason: string
  readonly next: Step
}

export function createReflector<T extends KubernetesObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, type, clock, metrics, random = Math.random, trim = (object) => object, stallMs = STALL_MS } = options
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

    /**
     * A consistent read is never older than what we have seen, unless etcd was emptied or restored. A watch that goes on
     * from a version of the old history would be accepted, and stay silent until the new one has come as far.
     */
    async check() {
      try {
        const { resourceVersion } = await client.list<T>(type, { ...where, limit: 1, signal })
        hear()
        const order = compareVersions(resourceVersion, cache.position())
        return order === null || order < 0 ? 'list' : 'watch'
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
        for await (const event of events) take(event)
        if (livedMs() >= STEADY_MS) failures = 0
        if (livedMs() < SHORT_MS) throw new TransportError(`watch ${description}: ended after ${livedMs()} ms`)
        const isInTime = livedMs() >= timeoutSeconds * 1_000 - SHORT_MS
        metrics?.restarted(isInTime ? 'timeout' : 'closed')
        return isInTime ? 'watch' : 'check'
      } catch (error) {
        if (livedMs() >= STEADY_MS) failures = 0
        return watchdog.hasBarked() ? stalled() : brokenBy(error)
      } finally {
        watchdog.stop()
      }
    },
  }

  function stalled(): Failure {
    const error = new TransportError(
      `watch ${description}: nothing was heard for ${stallMs / 1_000} s, or no end in time`,
    )
    return { error, kind: 'stall', reason: 'stalled', next: 'list' }
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
      for (const item of page.items) items.push(trimmed(item))
      resourceVersion ||= page.resourceVersion
      continueToken = page.continueToken
    } while (continueToken !== null)
    await handOut(cache.replace(items, resourceVersion))
    if (signal.aborted) return
    metrics?.objects(cache.size())
    isSynced = true
    synced.resolve()
  }

  async function handOut(changes: Iterable<KeyedChange<T>>): Promise<void> {
    let since = clock.now()
    for (const [key, change] of changes) {
      hand(key, change)
      if (clock.now() - since < TURN_MS) continue
      await nextTurn()
      // Stopped: what has not been handed out is not in the cache either.
      if (signal.aborted) return
      since = clock.now()
    }
  }

  function take({ type, object }: WatchEvent<T>): void {
    if (type === 'ERROR') throw readErrorEvent(`watch ${description}`, object)
    if (type === 'BOOKMARK') return cache.moveTo(object.metadata.resourceVersion)
    for (const [key, change] of cache.apply(type, type === 'DELETED' ? object : trimmed(object))) hand(key, change)
    metrics?.objects(cache.size())
  }

  function hand(key: string, change: Change<T>): void {
    try {
      const result: unknown = options.onChange(key, change)
      // An async function passes for one that returns nothing, and its rejection would end the process.
      if (result instanceof Promise) result.catch((error) => report(error, 'handler'))
    } catch (error) {
      report(error, 'handler')
    }
  }

  function trimmed(object: T): T {
    try {
      return trim(object)
    } catch (error) {
      report(error, 'handler')
      return object
    }
  }

  function report(error: unknown, kind: ProblemKind): void {
    try {
      options.onProblem(error, kind)
    } catch {
      // Who reports problems has one; there is nobody left to tell, and the copy must stay true.
    }
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
    put: (object) => cache.put(trimmed(object)),
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
