/**
 * A work queue of keys by client-go's rules, for level-triggered work: a queued key means "reconcile this", not a
 * change.
 *
 * A key waits at most once, and no two workers process it at once; a key that is added while it is processed is queued
 * again by done(). `waiting` holds the keys to process (client-go's dirty set), `processing` those of the workers. Live
 * changes go before background work (start-up, resync); but after MAX_LIVE of them in a row a background key has its
 * turn, so that changes without end hold up no resync. Each of the two is taken round robin by namespace: thousands of
 * keys of one namespace do not hold up a key of another (client-go takes all in their order). Delayed adds wait in a
 * heap under one timer; the earliest of several for one key wins. After stop() adds are ignored, delayed ones are
 * dropped, and take() returns the rest, then null.
 */

import { type BackoffSteps, backoffMs } from '../runtime/backoff.ts'
import { after, type Clock } from '../runtime/clock.ts'
import { createDelays, type Priority } from './delays.ts'
import { createLine } from './line.ts'

export type { Priority } from './delays.ts'

export type Queue = ReturnType<typeof createQueue>

export interface QueueMetrics {
  /** A queue starts, empty. `read` returns at each scrape what is being processed. */
  begin(read: () => WorkInProgress): void
  added(): void
  depthChanged(priority: Priority, by: 1 | -1): void
  waited(seconds: number): void
  worked(seconds: number): void
  /** Any delayed add, as in client-go. */
  retried(): void
}

export interface WorkInProgress {
  /** The sum of the ages of all keys being processed. */
  readonly unfinishedSeconds: number
  readonly longestSeconds: number
}

export interface QueueOptions {
  readonly clock: Clock
  readonly metrics?: QueueMetrics
  /** Default: 0.1 s to five minutes. */
  readonly backoff?: BackoffSteps
  /** From 0 to below 1. */
  readonly random?: () => number
}

interface Waiting {
  priority: Priority
  readonly since: number
}

const BACKOFF = { firstMs: 100, maxMs: 300_000 }
/** So many live keys in a row go before a background key that waits. */
const MAX_LIVE = 20

export function createQueue({ clock, metrics, backoff = BACKOFF, random = Math.random }: QueueOptions) {
  const waiting = new Map<string, Waiting>()
  const processing = new Map<string, Waiting>()
  // Waiting keys that no worker has, in order.
  const lines = { live: createLine(), background: createLine() }
  const takers = new Set<(key: string | null) => void>()
  const failureCounts = new Map<string, number>()
  const delays = createDelays()
  let timer: { readonly at: number; readonly disarm: () => void } | undefined
  let liveInRow = 0
  let isStopped = false

  metrics?.begin(() => {
    const ages = [...processing.values()].map(({ since }) => secondsSince(since))
    return { unfinishedSeconds: ages.reduce((sum, age) => sum + age, 0), longestSeconds: Math.max(0, ...ages) }
  })

  function secondsSince(ms: number): number {
    return (clock.now() - ms) / 1_000
  }

  /** Queues `key` now. A key that waits in the background moves up with a live change. */
  function add(key: string, priority: Priority = 'live'): void {
    if (isStopped) return
    const entry = waiting.get(key)
    if (entry === undefined) {
      metrics?.added()
      metrics?.depthChanged(priority, 1)
      waiting.set(key, { priority, since: clock.now() })
    } else {
      if (entry.priority === priority || priority === 'background') return
      metrics?.depthChanged(entry.priority, -1)
      metrics?.depthChanged(priority, 1)
      lines[entry.priority].remove(key)
      entry.priority = priority
    }
    if (processing.has(key)) return
    lines[priority].push(key)
    handOut()
  }

  function handOut(): void {
    for (const give of takers) {
      const key = next()
      if (key === undefined) {
        // A key that waits for its own worker is queued by done(), also after stop().
        if (!isStopped || waiting.size > 0) return
        give(null)
      } else give(key)
    }
  }

  function next(): string | undefined {
    const isTurnOfBackground = liveInRow >= MAX_LIVE
    const ahead = isTurnOfBackground ? lines.background.shift() : undefined
    const key = ahead ?? lines.live.shift() ?? lines.background.shift()
    if (key === undefined) return undefined
    const { priority, since } = waiting.get(key)!
    // Where no background key waits for its turn, a row begins anew.
    liveInRow = priority === 'live' && !isTurnOfBackground ? liveInRow + 1 : 0
    waiting.delete(key)
    if (!isStopped) metrics?.depthChanged(priority, -1)
    metrics?.waited(secondsSince(since))
    processing.set(key, { priority, since: clock.now() })
    return key
  }

  /**
   * Resolves with the next key; with null once stopped and drained, or when `signal` aborts. Call done() for each
   * key.
   */
  function take(signal?: AbortSignal): Promise<string | null> {
    if (signal?.aborted) return Promise.resolve(null)
    const { promise, resolve } = Promise.withResolvers<string | null>()
    const give = (key: string | null) => {
      takers.delete(give)
      signal?.removeEventListener('abort', giveUp)
      resolve(key)
    }
    const giveUp = () => give(null)
    signal?.addEventListener('abort', giveUp, { once: true })
    takers.add(give)
    handOut()
    return promise
  }

  /** Takes up to `count` of the keys that wait now, for work in groups. Call done() for each key. */
  function takeWaiting(count: number): readonly string[] {
    const keys: string[] = []
    for (let key = count > 0 ? next() : undefined; key !== undefined; key = keys.length < count ? next() : undefined)
      keys.push(key)
    return keys
  }

  function done(key: string): void {
    const entry = processing.get(key)
    if (entry === undefined) return
    processing.delete(key)
    metrics?.worked(secondsSince(entry.since))
    const again = waiting.get(key)
    if (again !== undefined) lines[again.priority].push(key)
    handOut()
  }

  /** Queues `key` after `ms`, which may be years. Default priority: that of the key being processed, else live. */
  function addAfter(key: string, ms: number, priority: Priority = processing.get(key)?.priority ?? 'live'): void {
    if (!Number.isFinite(ms)) throw new RangeError(`cannot wait ${ms} ms for ${key}`)
    if (isStopped) return
    if (ms > 0) {
      metrics?.retried()
      delays.put(key, clock.now() + ms, priority)
      arm()
    } else add(key, priority)
  }

  /** Counts a failure of `key` and queues it after its back-off, which doubles with each until forget(). */
  function addBackedOff(key: string): void {
    const failed = failures(key)
    failureCounts.set(key, failed + 1)
    addAfter(key, backoffMs(failed, backoff, random))
  }

  function failures(key: string): number {
    return failureCounts.get(key) ?? 0
  }

  /** Sets the one timer to the earliest delayed key. */
  function arm(): void {
    const at = delays.earliest()
    if (timer !== undefined && at !== undefined && timer.at <= at) return
    timer?.disarm()
    timer = at === undefined ? undefined : { at, disarm: after(clock, Math.max(0, at - clock.now()), ring) }
  }

  function ring(): void {
    timer = undefined
    for (const { key, priority } of delays.takeDue(clock.now())) add(key, priority)
    arm()
  }

  return {
    add,
    addAfter,
    addBackedOff,
    /** Resets the failure count. What waits stays. */
    forget: (key: string) => void failureCounts.delete(key),
    failures,
    take,
    takeWaiting,
    done,
    /** The number of waiting keys, including those that are still being processed, without the delayed ones. */
    length: () => waiting.size,
    stop(): void {
      if (isStopped) return
      // Even if it is not drained: keys left behind at a loss of leadership are not a backlog of this process.
      for (const { priority } of waiting.values()) metrics?.depthChanged(priority, -1)
      isStopped = true
      timer?.disarm()
      delays.clear()
      handOut()
    },
  }
}
