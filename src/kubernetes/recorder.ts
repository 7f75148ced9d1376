/**
 * Events of events.k8s.io/v1 on objects, written in the background: record() never waits and never throws.
 *
 * Repeats make a series, by client-go's rules: the first occurrence creates the Event, the second makes it a series of two,
 * further ones are only counted; the count is written every half hour, and when the series ends, six minutes after its last
 * occurrence. What is given an id is written once, whoever writes it: the id makes the Event's name.
 *
 * An object gets 25 Events, then one every five minutes; a thousand wait at most, and a thousand patient ones, which are behind
 * all others and wait for the end of a backlog. What is more is dropped and counted.
 * Faults of the server and of the network are tried again for some minutes, a refusal is reported and not.
 */

import type { Clock } from '../runtime/clock.ts'
import type { KubernetesClient } from './client.ts'
import { ApiError, hasReason } from './errors.ts'
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
  start(): void
  /** Writes what waits, for `FLUSH_MS` at most, and drops the rest. */
  stop(): Promise<void>
}

export interface RecorderOptions extends Reporter {
  readonly client: Pick<KubernetesClient, 'create' | 'mergePatch'>
  readonly clock: Clock
  onProblem?(error: Error): void
  onDropped?(reason: DropReason): void
  /** Is there a backlog, for which patient Events wait? */
  isBusy?(): boolean
  /** 0 .. 1: the part of a wait between two tries that is left to chance. */
  readonly random?: () => number
}

/** One Event, as it is to be and as it was last written. */
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
}

export const FLUSH_MS = 3_000
const MOST_WAITING = 1_000
/** A look whether the backlog is done. */
const PATIENCE_MS = 1_000
const MOST_REMEMBERED = 4_096
const MOST_TRIES = 12
const WRITERS = 2
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 }
const BURST = 25
const REFILL_MS = 300_000
const SERIES_ENDS_MS = 360_000
const SERIES_WRITTEN_MS = 1_800_000

export function createRecorder(options: RecorderOptions): Recorder {
  const { client, clock, onProblem, onDropped, isBusy = () => false, random = Math.random } = options
  const queue = createQueue({ name: 'events', clock, backoff: BACKOFF, random })
  const buckets = createBuckets(clock)
  const remembered = new Map<string, Series>()
  const unwritten = { live: new Set<string>(), background: new Set<string>() }
  const abandoned = new AbortController()
  let writing: Promise<unknown> | undefined
  let isStopped = false

  function record(regarding: Regarding, occurrence: Occurrence): void {
    try {
      const reason = take(regarding, occurrence)
      if (reason !== null) drop(reason)
    } catch (error) {
      report('could not be recorded', occurrence, error)
    }
  }

  /** Why it is dropped; null when it is not. */
  function take(regarding: Regarding, occurrence: Occurrence): DropReason | null {
    if (isStopped) return 'stopped'
    const key = keyOfEvent(regarding, occurrence)
    const series = remembered.get(key)
    if (series === undefined) {
      if (unwritten[priorityOf(occurrence)].size >= MOST_WAITING) return 'queue_full'
      if (!buckets.draw(regarding.uid)) return 'rate_limited'
      begin(key, regarding, occurrence)
      // What has an id has happened once, however often it is told.
    } else if (occurrence.id === undefined) repeat(key, series)
    return null
  }

  function begin(key: string, regarding: Regarding, occurrence: Occurrence): void {
    const now = clock.now()
    const name = nameEvent(regarding, occurrence.id)
    remember(key, { regarding, occurrence, name, firstAt: now, lastAt: now, count: 1, writtenCount: 0, writtenAt: now })
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

  function remember(key: string, series: Series): void {
    remembered.set(key, series)
    if (remembered.size <= MOST_REMEMBERED) return
    for (const oldest of remembered.keys()) {
      if (unwritten.live.has(oldest) || unwritten.background.has(oldest)) continue
      // Its count is as was last written; a further occurrence starts anew.
      remembered.delete(oldest)
      return
    }
  }

  async function write(): Promise<void> {
    for (;;) {
      const key = await queue.take(abandoned.signal)
      if (key === null) return
      const series = remembered.get(key)
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
        putOff(key, series, error)
        return
      }
      series.writtenCount = count
      series.writtenAt = clock.now()
      queue.forget(key)
    }
    if (series.count < 2 || series.writtenCount > 1) unwritten[priority].delete(key)
    const now = clock.now()
    if (now >= series.lastAt + SERIES_ENDS_MS) remembered.delete(key)
    else queue.addAfter(key, Math.min(series.lastAt + SERIES_ENDS_MS, series.writtenAt + SERIES_WRITTEN_MS) - now)
  }

  /** Creating it, making it a series, half an hour later, and at its end. */
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
        await client.mergePatch(EVENTS, { namespace, name }, aggregate, { signal: abandoned.signal })
        return
      } catch (error) {
        // Events are kept for an hour.
        if (!hasReason(error, 'NotFound')) throw error
      }
    }
    try {
      const event = describeEvent(options, regarding, series.occurrence, name, series.firstAt)
      await client.create(EVENTS, { ...event, ...aggregate }, { signal: abandoned.signal })
    } catch (error) {
      // Written by an earlier try whose answer was lost, or by another process.
      if (!hasReason(error, 'AlreadyExists')) throw error
    }
  }

  function putOff(key: string, series: Series, error: unknown): void {
    // Counted already.
    if (abandoned.signal.aborted) return
    if (!isStopped && isPassing(error) && queue.failures(key) < MOST_TRIES - 1) {
      queue.addBackedOff(key)
      return
    }
    report('could not be written', series.occurrence, error)
    drop(isStopped ? 'stopped' : 'failed')
    queue.forget(key)
    unwritten[priorityOf(series.occurrence)].delete(key)
    remembered.delete(key)
  }

  function drop(reason: DropReason): void {
    try {
      onDropped?.(reason)
    } catch {
      // As below.
    }
  }

  function report(problem: string, occurrence: Occurrence, error: unknown): void {
    try {
      const why = error instanceof Error ? error.message : String(error)
      onProblem?.(new Error(`the event ${occurrence.reason} ${problem}: ${why}`, { cause: error }))
    } catch {
      // Whoever records an event must go on, and there is nobody else to tell.
    }
  }

  return {
    record,
    start() {
      if (!isStopped) writing ??= Promise.all(Array.from({ length: WRITERS }, write))
    },
    async stop() {
      if (isStopped) return
      isStopped = true
      for (const [key, series] of remembered)
        if (series.count !== series.writtenCount) queue.add(key, priorityOf(series.occurrence))
      queue.stop()
      const flushed = new AbortController()
      const written = writing?.then(() => flushed.abort())
      if (written !== undefined) await clock.sleep(FLUSH_MS, flushed.signal)
      abandoned.abort()
      for (const { count, writtenCount } of remembered.values()) if (count !== writtenCount) drop('stopped')
      remembered.clear()
    },
  }
}

const priorityOf = ({ isPatient = false }: Occurrence) => (isPatient ? 'background' : 'live')

const isPassing = (error: unknown) => !(error instanceof ApiError) || error.status === 429 || error.status >= 500

/** A token bucket for each object, of the objects that were last heard of. */
function createBuckets(clock: Clock) {
  const buckets = new Map<string, { readonly tokens: number; readonly at: number }>()
  return {
    draw(uid: string): boolean {
      const now = clock.now()
      const { tokens, at } = buckets.get(uid) ?? { tokens: BURST, at: now }
      const left = Math.min(BURST, tokens + (now - at) / REFILL_MS)
      const isAllowed = left >= 1
      // A refusal changes nothing: to carry parts of a token over from one to the next would add up their rounding.
      const bucket = isAllowed ? { tokens: left - 1, at: now } : { tokens, at }
      buckets.delete(uid)
      buckets.set(uid, bucket)
      if (buckets.size > MOST_REMEMBERED) buckets.delete(buckets.keys().next().value!)
      return isAllowed
    },
  }
}
