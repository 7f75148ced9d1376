/**
 * Writes Events of events.k8s.io/v1 in the background: record() never waits and never throws.
 *
 * An occurrence with an id is written once, however often it is recorded and by however many processes: the id makes
 * the Event's name, and an Event that exists is written. So a reconcile records what it finds, and remembers nothing.
 *
 * Repeats without an id make a series, by client-go's rules: the first occurrence creates the Event, the second makes
 * it a series of two, later ones are only counted. The count is written every half hour, and when the series ends, six
 * minutes after its last occurrence.
 *
 * Limits: an object gets 25 Events, then one every five minutes; MAX_EVENTS wait. More are dropped and counted.
 * Warnings go before the Normal Events of a start with thousands of resources. Errors of the server and of the network
 * are retried for some minutes; a rejected Event is logged and dropped, in silence when its namespace is being deleted.
 */

import { callSafely } from '../runtime/call-safely.ts'
import { type Clock, waitForEvent } from '../runtime/clock.ts'
import { createRate, type Rate } from '../runtime/rate.ts'
import type { KubernetesClient } from './client.ts'
import { ApiError, hasStatus, isNamespaceGoing, isNamespaceGone } from './errors.ts'
import {
  describeEvent,
  EVENTS,
  keyOfEvent,
  nameEvent,
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
  /** Writes the waiting Events for at most `FLUSH_MS`, and drops the rest. */
  stop(): Promise<void>
}

export interface RecorderOptions extends Reporter {
  readonly client: Pick<KubernetesClient, 'create' | 'mergePatch'>
  readonly clock: Clock
  onProblem?(error: Error): void
  onDropped?(reason: DropReason): void
  /** From 0 to below 1, for the jitter of the back-off. */
  readonly random?: () => number
  /** More do not wait. */
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
  readonly whenWritten: (() => void)[]
}

export const FLUSH_MS = 3_000
/** So many wait, and so many that were written are known: at most about 20 MB. */
const MAX_EVENTS = 20_000
const MAX_TRIES = 12
const WRITERS = 2
const BACKOFF = { firstMs: 1_000, maxMs: 60_000 }
const BURST = 25
const REFILL_MS = 300_000
const SERIES_ENDS_MS = 360_000
const SERIES_WRITTEN_MS = 1_800_000

export function createRecorder(options: RecorderOptions): Recorder {
  const { client, clock, onProblem, onDropped, random = Math.random, maxWaiting = MAX_EVENTS } = options
  const queue = createQueue({ clock, backoff: BACKOFF, random })
  /** By the uid of the object. */
  const rates = new Map<string, Rate>()
  const waiting = new Map<string, Series>()
  const written = new Map<string, Series>()
  const abandoned = new AbortController()
  const writing = { fieldManager: options.controller, signal: abandoned.signal }
  let running: Promise<unknown> | undefined
  let isStopped = false

  function record(regarding: Regarding, occurrence: Occurrence): void {
    try {
      const reason = add(regarding, occurrence)
      if (reason === null) return
      drop(reason)
      if (reason === 'rate_limited') callSafely(occurrence.onWritten)
    } catch (error) {
      report('could not be recorded', occurrence, error)
    }
  }

  /** Returns why the occurrence is dropped; null when it is not. */
  function add(regarding: Regarding, occurrence: Occurrence): DropReason | null {
    if (isStopped) return 'stopped'
    const key = keyOfEvent(regarding, occurrence)
    const series = waiting.get(key) ?? written.get(key)
    if (series === undefined) {
      if (waiting.size >= maxWaiting) return 'queue_full'
      if (!isAllowed(regarding.uid)) return 'rate_limited'
      begin(key, regarding, occurrence)
    } else if (occurrence.id === undefined) repeat(key, series)
    // A repeat without an id is counted, and that is all.
    if (occurrence.id === undefined || !waiting.has(key)) callSafely(occurrence.onWritten)
    else if (occurrence.onWritten !== undefined) waiting.get(key)!.whenWritten.push(occurrence.onWritten)
    return null
  }

  /** A token bucket for each of the objects that had the latest Events. */
  function isAllowed(uid: string): boolean {
    const rate = rates.get(uid) ?? createRate(clock, 1_000 / REFILL_MS, BURST)
    rates.delete(uid)
    keep(rates, uid, rate)
    return rate.tryTake()
  }

  function begin(key: string, regarding: Regarding, occurrence: Occurrence): void {
    const now = clock.now()
    const name = nameEvent(regarding, occurrence.id)
    const times = { firstAt: now, lastAt: now, writtenAt: now }
    wait(key, { regarding, occurrence, name, ...times, count: 1, writtenCount: 0, whenWritten: [] })
  }

  function repeat(key: string, series: Series): void {
    series.count += 1
    series.lastAt = clock.now()
    if (series.count === 2) wait(key, series)
  }

  function wait(key: string, series: Series): void {
    written.delete(key)
    waiting.set(key, series)
    queue.add(key, series.occurrence.type === 'Normal' ? 'background' : 'live')
  }

  async function write(): Promise<void> {
    for (;;) {
      const key = await queue.take(abandoned.signal)
      if (key === null) return
      const series = waiting.get(key) ?? written.get(key)
      if (series !== undefined) await writeSeries(key, series)
      queue.done(key)
    }
  }

  async function writeSeries(key: string, series: Series): Promise<void> {
    const { count, occurrence } = series
    if (isDue(series)) {
      try {
        await send(series, count)
      } catch (error) {
        retryOrDrop(key, series, error)
        return
      }
      series.writtenCount = count
      series.writtenAt = clock.now()
      queue.forget(key)
      for (const onWritten of series.whenWritten.splice(0)) callSafely(onWritten)
    }
    // It was repeated while it was created.
    if (series.count > 1 && series.writtenCount === 1) return
    waiting.delete(key)
    keep(written, key, series)
    if (occurrence.id !== undefined) return
    const now = clock.now()
    if (now >= series.lastAt + SERIES_ENDS_MS) written.delete(key)
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
    const { namespace } = regarding
    const aggregate = count < 2 ? {} : { series: { count, lastObservedTime: toMicroTime(series.lastAt) } }
    if (series.writtenCount > 0) {
      try {
        await client.mergePatch(EVENTS, { namespace, name }, aggregate, writing)
        return
      } catch (error) {
        // The server keeps Events for an hour.
        if (!hasStatus(error, 404)) throw error
      }
    }
    try {
      const event = describeEvent(options, regarding, series.occurrence, name, series.firstAt)
      await client.create(EVENTS, { ...event, ...aggregate }, writing)
    } catch (error) {
      // Written by an earlier try whose response was lost, or by another process.
      if (!(hasStatus(error, 409) && error.reason === 'AlreadyExists')) throw error
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
    waiting.delete(key)
    written.delete(key)
    // What is lost is not written: it is to be recorded again.
    if (!isStopped && !isTransient(error)) for (const onWritten of series.whenWritten) callSafely(onWritten)
  }

  const drop = (reason: DropReason) => callSafely(() => onDropped?.(reason))

  function report(problem: string, occurrence: Occurrence, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error)
    callSafely(() => onProblem?.(new Error(`the event ${occurrence.reason} ${problem}: ${why}`, { cause: error })))
  }

  return {
    record,
    start() {
      if (!isStopped) running ??= Promise.all(Array.from({ length: WRITERS }, write))
    },
    async stop() {
      if (isStopped) return
      isStopped = true
      const left = () => [...waiting, ...written].filter(([, { count, writtenCount }]) => count !== writtenCount)
      for (const [key] of left()) queue.add(key)
      queue.stop()
      await waitForEvent(clock, FLUSH_MS, abandoned.signal, (onFlushed) => {
        void Promise.resolve(running).then(onFlushed)
        return () => {}
      })
      abandoned.abort()
      for (const _ of left()) drop('stopped')
      waiting.clear()
      written.clear()
    },
  }
}

const isTransient = (error: unknown) => !(error instanceof ApiError) || error.status === 429 || error.status >= 500

/** The oldest makes room. */
function keep<T>(entries: Map<string, T>, key: string, entry: T): void {
  entries.set(key, entry)
  if (entries.size > MAX_EVENTS) entries.delete(entries.keys().next().value!)
}
