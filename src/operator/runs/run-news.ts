/**
 * What runs have reported and what is not recorded yet, by the check that is to have it. The news of a check are in the
 * order of arrival, but for those that a comparison finds: they stand before later news. News replace older news of the
 * same run, and stand behind what other runs reported in between. Bounded: above the limit nothing is taken, and the
 * caller compares the caches with what is recorded.
 */

import type { Instant } from '../../domain/check.ts'
import type { RunReport } from './describe-run.ts'

export interface News {
  /** Of the run; news of one id replace one another. */
  readonly id: string
  /** When the newest that the run reports happened. */
  readonly at: Instant
  /** Null: not known yet. What comes later for the check waits for the report. */
  report: RunReport | null
}

/** News that wait for one check. */
export interface Waiting {
  readonly news: News
  /** When the news came, in a count of arrivals; of those that replace others, when these came. */
  readonly since: number
  /** Of news that a comparison has found; null: in the order of arrival. */
  readonly order: number | null
  readonly weight: number
  /** How often the database has rejected the report. */
  failures: number
  /** Newer news of the run came above the limit. */
  isOutdated: boolean
}

export interface Comparison {
  /** As that of news. */
  readonly since: number
}

export interface RunNews {
  /**
   * Returns false above the limit: nothing is taken. News with an `order`, which come in this order, stand before those
   * without one that happened later.
   */
  put(key: string, news: News, order?: number): boolean
  /** Whether news with this id wait, and no newer ones were refused. */
  has(key: string, id: string): boolean
  /** What can be recorded now: all before the first news whose report is not known. */
  ready(key: string): readonly Waiting[]
  /** Removes what is recorded, unless newer news have replaced it. */
  remove(key: string, done: Waiting): void
  /** The caches are to be compared with what is recorded for this check, though a comparison is in progress. */
  compare(key: string): void
  /** The comparison that the check waits for; undefined: none. */
  comparisonOf(key: string): Comparison | undefined
  /** Ends the comparison, unless another one was asked for meanwhile. */
  compared(key: string, comparison: Comparison): void
  toCompare(): readonly string[]
  endComparisons(): void
  /** Returns the keys of the checks with news; only those with news of this id, where one is given. */
  keys(id?: string): readonly string[]
  /** Nothing waits for these news until retryRejected(). Returns false above the limit. */
  reject(key: string, one: Waiting): boolean
  /** Returns the keys of the checks with rejected news, which are to be tried once more. */
  retryRejected(): readonly string[]
  /** The number of the last arrival. */
  last(): number
  /** Whether something waits that came up to `until`, but for rejected news and the checks that `isHeld` names. */
  isAwaited(until: number, isHeld: (key: string) => boolean): boolean
}

/** A report without a text is about 300 bytes. */
const BYTES_OF_ONE = 500
/** Of a report that is not known yet. */
const UNKNOWN_WEIGHT = 10
/** In reports without texts; some 20 MB in all. */
const MAX_WEIGHT = 40_000
/** Others have the rest of the room. */
const MAX_REJECTED = 1_000

export function createRunNews(maxWeight = MAX_WEIGHT): RunNews {
  /** By the key of the HeartbeatCheck, by the id of the news. Never empty. */
  const waiting = new Map<string, Map<string, Waiting>>()
  const comparisons = new Map<string, Comparison>()
  /** With the keys of their checks. */
  const rejected = new Map<Waiting, string>()
  let weight = 0
  let arrivals = 0

  function put(key: string, news: News, order: number | null = null): boolean {
    const ofCheck = waiting.get(key) ?? new Map<string, Waiting>()
    const older = ofCheck.get(news.id)
    const ownWeight = weightOf(news)
    const added = ownWeight - (older?.weight ?? 0)
    if (added > 0 && weight + added > maxWeight) {
      if (older !== undefined) older.isOutdated = true
      return false
    }
    weight += added
    arrivals += 1
    const { since = arrivals, failures = 0 } = older ?? {}
    ofCheck.delete(news.id)
    if (older !== undefined) rejected.delete(older)
    ofCheck.set(news.id, { news, since, order, weight: ownWeight, failures, isOutdated: false })
    waiting.set(key, ofCheck)
    return true
  }

  return {
    put,
    has: (key, id) => waiting.get(key)?.get(id)?.isOutdated === false,
    ready(key) {
      const inOrder = merge([...(waiting.get(key)?.values() ?? [])].filter((one) => !rejected.has(one)))
      const unknown = inOrder.findIndex(({ news }) => news.report === null)
      return unknown === -1 ? inOrder : inOrder.slice(0, unknown)
    },
    remove(key, done) {
      const ofCheck = waiting.get(key)
      if (ofCheck?.get(done.news.id) !== done) return
      weight -= done.weight
      rejected.delete(done)
      ofCheck.delete(done.news.id)
      if (ofCheck.size === 0) waiting.delete(key)
    },
    compare(key) {
      arrivals += 1
      comparisons.set(key, { since: comparisons.get(key)?.since ?? arrivals })
    },
    comparisonOf: (key) => comparisons.get(key),
    compared(key, comparison) {
      if (comparisons.get(key) === comparison) comparisons.delete(key)
    },
    toCompare: () => [...comparisons.keys()],
    endComparisons: () => comparisons.clear(),
    keys: (id) => [...waiting].flatMap(([key, ofCheck]) => (id === undefined || ofCheck.has(id) ? [key] : [])),
    reject(key, one) {
      // Newer news have replaced these.
      if (waiting.get(key)?.get(one.news.id) !== one) return true
      if (rejected.size >= MAX_REJECTED) return false
      rejected.set(one, key)
      return true
    },
    retryRejected() {
      const keys = new Set(rejected.values())
      rejected.clear()
      return [...keys]
    },
    last: () => arrivals,
    isAwaited(until, isHeld) {
      for (const { since } of comparisons.values()) if (since <= until) return true
      for (const [key, ofCheck] of waiting) {
        if (isHeld(key)) continue
        for (const one of ofCheck.values()) if (one.since <= until && !rejected.has(one)) return true
      }
      return false
    },
  }
}

/** News that a comparison has found come before the first other news that happened later. */
function merge(all: readonly Waiting[]): readonly Waiting[] {
  const found = all.filter(({ order }) => order !== null)
  if (found.length === 0) return all
  let next = 0
  const merged: Waiting[] = []
  for (const one of all) {
    if (one.order !== null) continue
    for (; next < found.length && found[next]!.order! <= one.news.at; next += 1) merged.push(found[next]!)
    merged.push(one)
  }
  return [...merged, ...found.slice(next)]
}

function weightOf({ report }: News): number {
  if (report === null) return UNKNOWN_WEIGHT
  return report.entries.reduce((sum, entry) => sum + ('body' in entry ? entry.body.length / BYTES_OF_ONE : 0), 1)
}
