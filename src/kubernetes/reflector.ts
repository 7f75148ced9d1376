/**
 * Keeps a cache of one resource in line with the API server: lists it page by page, follows it with a watch, and passes
 * every change to `onChange`. It recovers from every failure until it is stopped:
 *
 *   list ----> watch ----> watch ...      a watch ends by itself every 5 to 10 minutes; the next one continues there
 *    ^          |  ^
 *    |       check +                      it broke, stalled, or ended too early: has the server still the same history?
 *    +----------+                         the position is too old (410), the server reports an error; and once an hour
 *                                         (`relistMs`), so that an unforeseen fault does not last for longer
 *
 * Lists are consistent reads, never `resourceVersion=0`: such a list may be older than the cache, so that deleted
 * objects come back; and it has no pages (its `limit` is ignored), so that 10,000 objects are one response of 20 MB and
 * one JSON.parse of
 * 0.15 s. Servers since 1.31 serve consistent reads from memory too.
 *
 * An incomplete list is discarded: objects that it lacks may exist.
 *
 * Why not ListWatch, the informer of `@kubernetes/client-node`: README.md.
 */

import { backoffMs } from '../runtime/backoff.ts'
import type { KubernetesClient, ListPage, Selection } from './client.ts'
import { confirmPosition } from './confirm.ts'
import { ApiError, hasStatus, readErrorEvent, TransportError } from './errors.ts'
import { createHandlers, type HandlerOptions, type ProblemKind } from './handlers.ts'
import { createObjectCache, isSameState, type KeyedChange } from './object-cache.ts'
import { type CachedObject, describeLocation, type KubernetesObject, keyOf, type ResourceType } from './objects.ts'
import { type StallTimer, startStallTimer } from './stall-timer.ts'
import type { WatchEvent } from './watch-lines.ts'

export type { Change } from './object-cache.ts'

export type Verb = 'list' | 'watch'

export interface ReflectorMetrics {
  /** Why a watch ended: `timeout` (as agreed), `closed` (too early), `quiet`, `stalled`, `expired`, `error`. */
  restarted(reason: string): void
  contact(atMs: number): void
  objects(count: number): void
}

/** `trim` is needed where what is cached (`T`) is not what the API server sends (`Raw`). */
export interface ReflectorOptions<T, Raw = T> extends HandlerOptions<T, Raw>, Selection {
  readonly client: Pick<KubernetesClient, 'list' | 'watch'>
  readonly type: ResourceType
  readonly random?: () => number
  readonly metrics?: ReflectorMetrics
  /** A response has shown that the right is there, or not (403). An open watch goes on without its right. */
  readonly onRight?: (verb: Verb, isGranted: boolean) => void
  /**
   * A watch that receives nothing for so long is replaced; the next one continues from its position. API servers send a
   * bookmark every minute, but not while nothing has changed since the watch began: only silence after a bookmark is a
   * problem.
   */
  readonly stallMs?: number | undefined
  /** A list is repeated when a watch ends after so long. Default: an hour. */
  readonly relistMs?: number
}

const PAGE = 500
const WATCH_SECONDS = 300
/** How much longer than agreed a watch may last. */
const LATE_MS = 30_000
const STALL_MS = 150_000
/** The time limit of a check, often sent over a socket that is as dead as the watch's was. */
const CHECK_MS = 10_000
const STEPS = { firstMs: 800, maxMs: 30_000 }
/** While the API server cannot be reached: changes wait for its return, and an attempt costs it nothing. */
const UNREACHABLE_STEPS = { firstMs: 800, maxMs: 4_000 }
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
  /** No response of an API server arrived: nothing at all, or that of a proxy before it. */
  readonly isUnreachable: boolean
}

export function createReflector<T extends CachedObject, Raw extends KubernetesObject = T & KubernetesObject>(
  options: ReflectorOptions<T, Raw>,
) {
  const { client, type, clock, metrics, onRight, random = Math.random } = options
  const { stallMs = STALL_MS, relistMs = RELIST_MS } = options
  const { deliver, deliverAll, trim, report } = createHandlers(options)
  const { namespace, labelSelector, fieldSelector } = options
  const where = { namespace, labelSelector, fieldSelector }
  const description = describeLocation(type, { namespace })
  const cache = createObjectCache<T>()
  const stopping = new AbortController()
  const { signal } = stopping
  let isSynced = false
  /** Until a whole list was given to onChange the position of the cache shows nothing. */
  let isListDue = true
  let watching: StallTimer | undefined
  /** Why the timer of the watch was fired: another watch has shown that it misses something. */
  let isBehind = false
  const movers = new Set<() => void>()
  let contactAt = 0
  let listedAt = 0
  let running: Promise<void> | undefined
  /** In a row, for the back-off. */
  let failures = 0
  /** Watches from a position that was too old, since one was steady. */
  let expiries = 0
  let lastFailure: Failure | null = null

  async function run(): Promise<void> {
    let step: Step = 'list'
    while (!signal.aborted) {
      isListDue ||= step === 'list'
      const result: Step | Failure = await steps[step]()
      if (signal.aborted) return
      if (typeof result === 'string') {
        // Contact. A success right after a failed watch shows nothing: the next watch may fail as well.
        if (step !== 'watch' && lastFailure?.kind === 'list') resetBackoff()
        step = result
        continue
      }
      // A rejection is contact too, as of an API server that is starting.
      if (lastFailure?.kind === 'list' && lastFailure.isUnreachable && !result.isUnreachable) resetBackoff()
      lastFailure = result
      step = result.next
      if (result.kind !== 'list') metrics?.restarted(result.reason)
      // One version that is too old is normal, as after a restart of the API server, and a new list fixes it.
      const isAtOnce = result.reason === 'expired' && expiries === 0
      if (result.reason === 'expired') expiries += 1
      noteRejection(result.error)
      if (!isAtOnce) report(result.error, result.kind)
      const waitMs = isAtOnce ? 0 : waitAfter(result)
      failures += 1
      if (waitMs > 0) await clock.sleep(waitMs, signal)
    }
  }

  function resetBackoff(): void {
    failures = 0
    expiries = 0
    lastFailure = null
  }

  function waitAfter({ error, isUnreachable }: Failure): number {
    // What a proxy asks for is a guess: it does not know when the API server is back.
    if (isUnreachable) return backoffMs(failures, UNREACHABLE_STEPS, random)
    const askedMs = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0
    return Math.max(backoffMs(failures, STEPS, random), Math.min(askedMs, MAX_RETRY_AFTER_MS))
  }

  /** After any end of a watch: where a proxy ends each one, none has its time. */
  const watchOrList = (): Step => (clock.now() - listedAt < relistMs ? 'watch' : 'list')

  const steps: Record<Step, () => Promise<Step | Failure>> = {
    async list() {
      try {
        await listAll()
        return 'watch'
      } catch (error) {
        return failureOf(error, 'list', 'list')
      }
    },

    async check() {
      try {
        const page = await client.list<Raw>(type, { ...where, limit: 1, signal, timeoutMs: CHECK_MS })
        noteContact('list')
        return cache.isContinuedBy(page.resourceVersion, page.items[0]) ? watchOrList() : 'list'
      } catch (error) {
        return failureOf(error, 'list', 'check')
      }
    },

    async watch() {
      const timeoutSeconds = WATCH_SECONDS + Math.floor(random() * WATCH_SECONDS)
      const untilMs = clock.now() + timeoutSeconds * 1_000 + LATE_MS
      let openedAt: number | null = null
      const livedMs = () => (openedAt === null ? 0 : clock.now() - openedAt)
      const stallTimer = startStallTimer({ clock, stallMs, untilMs, signal })
      watching = stallTimer
      let hasBookmark = false
      try {
        const resourceVersion = cache.position()
        const onContact = () => {
          stallTimer.restart()
          noteContact(openedAt === null ? 'watch' : null)
          openedAt ??= clock.now()
        }
        const { signal } = stallTimer
        const events = client.watch<Raw>(type, { ...where, resourceVersion, timeoutSeconds, signal, onContact })
        for await (const event of events) {
          hasBookmark ||= event.type === 'BOOKMARK'
          take(event)
        }
        if (livedMs() >= STEADY_MS) resetBackoff()
        if (livedMs() < SHORT_MS) throw new TransportError(`watch ${description}: ended after ${livedMs()} ms`)
        const isInTime = livedMs() >= timeoutSeconds * 1_000 - SHORT_MS
        metrics?.restarted(isInTime ? 'timeout' : 'closed')
        return isInTime ? watchOrList() : 'check'
      } catch (error) {
        if (livedMs() >= STEADY_MS) resetBackoff()
        if (!stallTimer.hasFired()) return failureOf(error, 'watch', 'check', openedAt === null)
        if (isBehind) return stalled('it has not delivered what the API server has stored')
        if (hasBookmark) return stalled()
        metrics?.restarted('quiet')
        return 'check'
      } finally {
        watching = undefined
        isBehind = false
        stallTimer.stop()
      }
    },
  }

  function stalled(why = `nothing was received for ${stallMs / 1_000} s, or it did not end in time`): Failure {
    const error = new TransportError(`watch ${description}: ${why}`)
    return { error, kind: 'stall', reason: 'stalled', next: 'check', isUnreachable: false }
  }

  async function listAll(): Promise<void> {
    cache.beginList()
    const items: T[] = []
    const unread = new Set<string>()
    let resourceVersion = ''
    let continueToken: string | null = null
    do {
      const more = continueToken === null ? {} : { continueToken }
      const page: ListPage<Raw> = await client.list<Raw>(type, { ...where, limit: PAGE, ...more, signal })
      noteContact('list')
      for (const item of page.items) {
        const key = keyOf(item.metadata)
        const known = cache.get(key)
        const kept = known !== undefined && isSameState(known, item) ? known : trim(item)
        if (kept === null) unread.add(key)
        else items.push(kept)
      }
      resourceVersion ||= page.resourceVersion
      continueToken = page.continueToken
    } while (continueToken !== null)
    await deliverAll(asListed(cache.replace(items, resourceVersion, unread)), signal)
    if (signal.aborted) return
    listedAt = clock.now()
    metrics?.objects(cache.size())
    isSynced = true
    isListDue = false
    move()
  }

  function take({ type, object }: WatchEvent<Raw>): void {
    if (type === 'ERROR') throw readErrorEvent(`watch ${description}`, object)
    const kept = type === 'BOOKMARK' ? null : trim(object)
    if (type === 'BOOKMARK' || kept === null) cache.moveTo(object.metadata.resourceVersion)
    else for (const change of cache.apply(type, kept)) deliver(change)
    metrics?.objects(cache.size())
    move()
  }

  function move(): void {
    for (const mover of movers) mover()
  }

  function onMoved(listener: () => void): () => void {
    movers.add(listener)
    return () => movers.delete(listener)
  }

  /**
   * Whether all that was stored before this call has been cached and given to onChange. When the watch has missed
   * something it is replaced. False also when that cannot be found out within five seconds. Never rejects.
   */
  async function confirm(asked: AbortSignal): Promise<boolean> {
    if (isListDue) return false
    const watched = watching
    const state = { where, position: cache.position, onMoved }
    const result = await confirmPosition({ client, type, clock, ...state, onFailure: noteRejection, signal: asked })
    // Not one that has begun since.
    if (result === 'behind' && watched !== undefined && watched === watching) {
      isBehind = true
      watched.fire()
    }
    if (result === 'confirmed') onRight?.('list', true)
    return result === 'confirmed' && !isListDue
  }

  /** @param granted what the response shows */
  function noteContact(granted: Verb | null): void {
    contactAt = clock.now()
    metrics?.contact(contactAt)
    if (granted !== null) onRight?.(granted, true)
  }

  function noteRejection(error: unknown): void {
    if (hasStatus(error, 403)) onRight?.(error.request.startsWith('watch ') ? 'watch' : 'list', false)
  }

  return {
    /** A second call has no effect. */
    start(): void {
      running ??= run()
    },
    /** Resolves when all its work has ended. It cannot be started again. */
    async stop(): Promise<void> {
      stopping.abort()
      await running
    },
    /** Whether a whole list has been received. */
    hasSynced: () => isSynced,
    get: cache.get,
    keys: cache.keys,
    values: cache.values,
    /**
     * Caches the response to a write of ours, of an object that is cached, unless a newer state is known. Neither
     * it nor its event in the watch causes onChange.
     */
    put(object: Raw): void {
      const kept = trim(object)
      if (kept !== null) cache.put(kept)
    },
    confirm,
    /** When data of the API server last arrived, by the clock; 0 before the first time. */
    lastContactAt: () => contactAt,
  }
}

function* asListed<T>(changes: Iterable<KeyedChange<T>>): Generator<KeyedChange<T>> {
  for (const [key, change] of changes) yield [key, { ...change, isListed: true }]
}

/**
 * After a rejection only a list helps; a busy server, a proxy without one and a broken connection need only another
 * attempt.
 *
 * @param isUnopened whether it failed before a response was seen
 */
function failureOf(error: unknown, kind: ProblemKind, again: Step, isUnopened = true): Failure {
  const status = error instanceof ApiError ? error.status : null
  const isUnreachable = isUnopened && (error instanceof TransportError || PROXY_STATUSES.includes(status!))
  const next = status === null || status === 429 || isUnreachable ? again : 'list'
  return { error, kind, reason: status === 410 ? 'expired' : 'error', next, isUnreachable }
}

/** Load balancers respond so while no API server does. */
const PROXY_STATUSES = [502, 503, 504]
