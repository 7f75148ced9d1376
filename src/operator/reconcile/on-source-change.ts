/**
 * What changes of sources mean for the HeartbeatChecks that follow them: a reconcile where a source is there or gone,
 * says something else of its schedule, or may or may not be read. What a source says beside that waits for a turn
 * (operator/status/status-turns.ts).
 */

import type { Clock } from '../../runtime/clock.ts'
import { isRescheduled } from '../declare/spec-of-source.ts'
import type { HeartbeatCheck } from '../heartbeat-check.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { isSourceAwaited, type SourceReader } from '../sources/read-source.ts'
import type { SourceListener, SourceWatch } from '../sources/watch-sources.ts'

export interface ListenedSources extends SourceReader {
  /** Returns a function that ends the calls. */
  onSource(listener: SourceListener): () => void
  readonly rights: Pick<SourceWatch['rights'], 'onChange'>
}

export interface SourceChangesOptions {
  readonly sources: ListenedSources
  /** The keys of the HeartbeatChecks that follow the source of this key. */
  readonly followersOf: (source: string) => Iterable<string>
  /** The keys of all HeartbeatChecks that follow a source. */
  readonly followers: () => Iterable<string>
  readonly clock: Clock
  readonly enqueue: (key: string, priority: 'live' | 'background') => void
  /** The status of this resource may be written when it has a turn. */
  readonly offerTurn: (key: string) => void
}

export interface SourceChanges {
  start(): void
  /**
   * For how many ms a reconcile of the resource would not know what its source says. 0: it would, or it follows none.
   */
  waitMs(object: HeartbeatCheck): number
  stop(): void
}

/** How often it is looked at whether a source that is awaited is listed. */
const LIST_MS = 1_000
/**
 * So long the garbage collector may take. A pause of the check would notify its channels, and the check goes anyway.
 */
const COLLECTED_MS = 10_000

export function createSourceChanges(options: SourceChangesOptions): SourceChanges {
  const { sources, followersOf, followers, clock, enqueue, offerTurn } = options
  /** When sources were deleted, by uid, the oldest first. */
  const goneAt = new Map<string, number>()
  let ends: readonly (() => void)[] = []

  const namespaceOf = (key: string) => key.slice(0, key.indexOf('/'))
  const leftToCollectorMs = (uid: string) => (goneAt.get(uid) ?? Number.NEGATIVE_INFINITY) + COLLECTED_MS - clock.now()

  function noteGone(uid: string): void {
    for (const old of goneAt.keys()) {
      if (leftToCollectorMs(old) > 0) break
      goneAt.delete(old)
    }
    goneAt.set(uid, clock.now())
  }

  return {
    start() {
      const endOfSources = sources.onSource((source, { before, after }) => {
        if (after === undefined) noteGone(before!.metadata.uid)
        const isNews = before === undefined || after === undefined || isRescheduled(before, after)
        // A first list is waited for: it may be long.
        if (isNews && isSourceAwaited(sources, namespaceOf(source))) return
        for (const key of followersOf(source)) {
          if (isNews) enqueue(key, 'live')
          else offerTurn(key)
        }
      })
      const endOfRights = sources.rights.onChange((namespace) => {
        for (const key of followers())
          if (namespace === undefined || namespaceOf(key) === namespace) enqueue(key, 'background')
      })
      ends = [endOfSources, endOfRights]
    },
    waitMs(object) {
      const source = sourceKeyOf(object)
      if (source === null) return 0
      if (isSourceAwaited(sources, namespaceOf(source))) return LIST_MS
      if (sources.getSource(source) !== undefined) return 0
      const owners = object.metadata.ownerReferences ?? []
      return Math.max(0, ...owners.map(({ uid }) => leftToCollectorMs(uid)))
    },
    stop() {
      for (const end of ends) end()
    },
  }
}
