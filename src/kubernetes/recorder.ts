/**
 * Writes Events of events.k8s.io/v1 in the background: record() never waits and never throws.
 *
 * Repeats make a series, by client-go's rules: the first occurrence creates the Event, the second makes it a series of two, later
 * ones are only counted. The count is written every half hour, and when the series ends, six minutes after its last occurrence.
 * An occurrence with an id is written once, also by several processes: the id makes the Event's name.
 *
 * Limits: an object gets 25 Events, then one every five minutes; 1,000 Events wait, and 1,000 patient ones. More are dropped and
 * counted. Errors of the server and of the network are retried for some minutes; a rejected Event is logged and dropped, in silence when
 * its namespace is being deleted.
 *
 * Patient Events (they repeat what the status of their object says) wait behind the others and while isBusy(). A start with 10,000
 * resources makes one for each; a POST costs 2.1 ms of processor time, where a whole resource costs 9 (docs/benchmarks.md, "The
 * operator"). Without patience the first Ready and the Events of flips wait for thousands of such Events.
 */

import type { Clock } from '../runtime/clock.ts'
import type { KubernetesClient } from './client.ts'
import { ApiError, hasReason, isNamespaceGoing, isNamespaceGone } from './errors.ts'
import {
  describeEvent,
  EVENTS,
  keyOfEvent,
  nameEvent,
  namespaceOf,
  type Occurrence,
  type Regarding,
  type Reporter,
} from './event.ts'
import { toMicroTime } from './objects.ts'
import { createQueue } from './queue.ts'

export type { Occurrence, Regarding } from './event.ts'

export type DropReason = 'queue_full' | 'rate_limited' | 'failed' | 'stopped'

export interface Recorder {
  record(regarding: Regarding, occurrence: Occurrence): void
  /** Whether few Events wait, so that those that were lost may be recorded again. */
  hasRoom(): boolean
  start(): void
  /** Writes the waiting Events for at most `FLUSH_MS`, and drops the rest. */
  stop(): Promise<void>
}

export interface RecorderOptions extends Reporter {
  readonly client: Pick<KubernetesClient, 'create' | 'mergePatch'>
  readonly clock: Clock
  onProblem?(error: Error): void
  onDropped?(reason: DropReason): void
  /** Whether there is a backlog of work: patient Events wait until it has ended. */
  isBusy?(): boolean
  /** From 0 to below 1, for the jitter of the back-off. */
  readonly random?: () => number
  /** More of one kind, patient or not, do not wait. */
  readonly maxWaiting?: number
}

/** One Event: its current count, and the count that was written last. */
interface Series {
  readonly regarding: Regarding
  readonly occurrence: Occurrence
  readonly name: string
  readonly firstAt: number
  lastAt: number
  count: number
  /** 0: not created yet. */
  writtenCount: number
  writtenAt: number
  /** Those who wait until it is created. */
  readonly waiting: Settle[]
}

type Settle = NonNullable<Occurrence['onSettled']>

export const FLUSH_MS = 3_000
const MAX_WAITING = 1_000
/** How often patient Events check whether the backlog has ended. */
const PATIENCE_MS = 1_000
const MAX_CACHED = 4_096
const MAX_TRIES = 12
const WRITERS = 2
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 }
const BURST = 25
const REFILL_MS = 300_000
const SERIES_ENDS_MS = 360_000
const SERIES_WRITTEN_MS = 1_800_000

export function createRecorder(options: RecorderOptions): Recorder {
  const { client, clock, onProblem, onDropped, isBusy = () => false, random = Math.random } = options
  const { maxWaiting = MAX_WAITING } = options
  const queue = createQueue({ name: 'events', clock, backoff: BACKOFF, random })
  const buckets = createBuckets(clock)
  const cached = new Map<string, Series>()
  const unwritten = { live: new Set<string>(), background: new Set<string>() }
  const abandoned = new AbortController()
  const writing = { fieldManager: options.controller, signal: abandoned.signal }
  let running: Promise<unknown> | undefined
  let isStopped = false

  function record(regarding: Regarding, occurrence: Occurrence): void {
    try {
      const reason = add(regarding, occurrence)
      if (reason === null) return
      drop(reason)
      settle([occurrence.onSettled], reason === 'rate_limited' ? 'done' : 'lost')
    } catch (error) {
      report('could not be recorded', occurrence, error)
    }
  }

  /** Returns why the occurrence is dropped; null when it is not. */
  function add(regarding: Regarding, occurrence: Occurrence): DropReason | null {
    if (isStopped) return 'stopped'
    const key = keyOfEvent(regarding, occurrence)
    const series = cached.get(key)
    if (series === undefined) {
      if (unwritten[priorityOf(occurrence)].size >= maxWaiting) return 'queue_full'
      if (!buckets.draw(regarding.uid)) return 'rate_limited'
      begin(key, regarding, occurrence)
      // An occurrence with an id is one, however often it is recorded.
    } else if (occurrence.id === undefined) repeat(key, series)
    else if (series.writtenCount > 0) settle([occurrence.onSettled], 'done')
    else if (occurrence.onSettled !== undefined) series.waiting.push(occurrence.onSettled)
    return null
  }

  function settle(waiting: (Settle | undefined)[], result: 'done' | 'lost'): void {
    for (const onSettled of waiting.splice(0)) {
      try {
        onSettled?.(result)
      } catch {
        // The recorder goes on when its callback fails.
      }
    }
  }

  function begin(key: string, regarding: Regarding, occurrence: Occurrence): void {
    const now = clock.now()
    const name = nameEvent(regarding, occurrence.id)
    const waiting = occurrence.onSettled === undefined ? [] : [occurrence.onSettled]
    const times = { firstAt: now, lastAt: now, writtenAt: now }
    cache(key, { regarding, occurrence, name, ...times, count: 1, writtenCount: 0, waiting })
    addUnwritten(key, occurrence)
  }

  function addUnwritten(key: string, occurrence: Occurrence): void {
    const priority = priorityOf(occurrence)
    unwritten[priority].add(key)
    queue.add(key, priority)
  }

  function repeat(key: string, series: Series): void {
    series.count += 1
    series.lastAt = clock.now()
    if (series.count > 2) return
    addUnwritten(key, series.occurrence)
  }

  function cache(key: string, series: Series): void {
    cached.set(key, series)
    if (cached.size <= MAX_CACHED) return
    for (const oldest of cached.keys()) {
      if (unwritten.live.has(oldest) || unwritten.background.has(oldest)) continue
      // Its count is written. A further occurrence starts a new Event.
      cached.delete(oldest)
      return
    }
  }

  async function write(): Promise<void> {
    for (;;) {
      const key = await queue.take(abandoned.signal)
      if (key === null) return
      const series = cached.get(key)
      if (series !== undefined) await writeSeries(key, series)
      queue.done(key)
    }
  }

  async function writeSeries(key: string, series: Series): Promise<void> {
    const { count, occurrence } = series
    const priority = priorityOf(occurrence)
    if (isDue(series)) {
      if (priority === 'background' && !isStopped && isBusy()) {
        queue.addAfter(key, PATIENCE_MS)
        return
      }
      try {
        await send(series, count)
      } catch (error) {
        retryOrDrop(key, series, error)
        return
      }
      series.writtenCount = count
      series.writtenAt = clock.now()
      queue.forget(key)
      settle(series.waiting, 'done')
    }
    if (series.count < 2 || series.writtenCount > 1) unwritten[priority].delete(key)
    const now = clock.now()
    if (now >= series.lastAt + SERIES_ENDS_MS) cached.delete(key)
    else queue.addAfter(key, Math.min(series.lastAt + SERIES_ENDS_MS, series.writtenAt + SERIES_WRITTEN_MS) - now)
  }

  /** When it is created, becomes a series, half an hour later, and at its end. */
  function isDue({ count, writtenCount, writtenAt, lastAt }: Series): boolean {
    if (count === writtenCount) return false
    const now = clock.now()
    return isStopped || writtenCount < 2 || now >= writtenAt + SERIES_WRITTEN_MS || now >= lastAt + SERIES_ENDS_MS
  }

  async function send(series: Series, count: number): Promise<void> {
    const { regarding, name } = series
    const namespace = namespaceOf(regarding)
    const aggregate = count < 2 ? {} : { series: { count, lastObservedTime: toMicroTime(series.lastAt) } }
    if (series.writtenCount > 0) {
      try {
        await client.mergePatch(EVENTS, { namespace, name }, aggregate, writing)
        return
      } catch (error) {
        // The server keeps Events for an hour.
        if (!hasReason(error, 'NotFound')) throw error
      }
    }
    try {
      const event = describeEvent(options, regarding, series.occurrence, name, series.firstAt)
      await client.create(EVENTS, { ...event, ...aggregate }, writing)
    } catch (error) {
      // Written by an earlier try whose response was lost, or by another process.
      if (!hasReason(error, 'AlreadyExists')) throw error
    }
  }

  function retryOrDrop(key: string, series: Series, error: unknown): void {
    // stop() counts it.
    if (abandoned.signal.aborted) return
    if (!isStopped && isTransient(error) && queue.failures(key) < MAX_TRIES - 1) {
      queue.addBackedOff(key)
      return
    }
    // Normal: all objects of the namespace are being deleted, and their Events with them.
    if (!isNamespaceGoing(error) && !isNamespaceGone(error)) {
      report('could not be written', series.occurrence, error)
      drop(isStopped ? 'stopped' : 'failed')
    }
    queue.forget(key)
    unwritten[priorityOf(series.occurrence)].delete(key)
    cached.delete(key)
    if (!isStopped) settle(series.waiting, isTransient(error) ? 'lost' : 'done')
  }

  function drop(reason: DropReason): void {
    try {
      onDropped?.(reason)
    } catch {
      // The recorder goes on when its callback fails.
    }
  }

  function report(problem: string, occurrence: Occurrence, error: unknown): void {
    try {
      const why = error instanceof Error ? error.message : String(error)
      onProblem?.(new Error(`the event ${occurrence.reason} ${problem}: ${why}`, { cause: error }))
    } catch {
      // The caller goes on when its reporter fails.
    }
  }

  return {
    record,
    hasRoom: () => Object.values(unwritten).every(({ size }) => size <= maxWaiting / 2),
    start() {
      if (!isStopped) running ??= Promise.all(Array.from({ length: WRITERS }, write))
    },
    async stop() {
      if (isStopped) return
      isStopped = true
      for (const [key, series] of cached)
        if (series.count !== series.writtenCount) queue.add(key, priorityOf(series.occurrence))
      queue.stop()
      const flushed = new AbortController()
      const written = running?.then(() => flushed.abort())
      if (written !== undefined) await clock.sleep(FLUSH_MS, flushed.signal)
      abandoned.abort()
      for (const { count, writtenCount } of cached.values()) if (count !== writtenCount) drop('stopped')
      cached.clear()
    },
  }
}

const priorityOf = ({ isPatient = false }: Occurrence) => (isPatient ? 'background' : 'live')

const isTransient = (error: unknown) => !(error instanceof ApiError) || error.status === 429 || error.status >= 500

/** A token bucket for each of the objects that had the latest Events. */
function createBuckets(clock: Clock) {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>()
  return {
    draw(uid: string): boolean {
      const now = clock.now()
      const { tokens, at } = buckets.get(uid) ?? { tokens: BURST, at: now }
      const left = Math.min(BURST, tokens + (now - at) / REFILL_MS)
      const isAllowed = left >= 1
      // A denied Event leaves the bucket as it is: rounding errors would add up otherwise.
      const bucket = isAllowed ? { tokens: left - 1, at: now } : { tokens, at }
      buckets.delete(uid)
      buckets.set(uid, bucket)
      if (buckets.size > MAX_CACHED) buckets.delete(buckets.keys().next().value!)
      return isAllowed
    },
  }
}
