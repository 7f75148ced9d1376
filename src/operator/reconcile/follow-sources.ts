/**
 * Changes of sources that lead to a reconcile of the HeartbeatChecks that follow them: what a source says of its schedule, whether it is
 * there, and whether it may be read. What a source or its runs say beside that waits for a turn (operator/status/status-turns.ts).
 */

import type { Priority } from '../../kubernetes/queue.ts'
import { isRescheduled } from '../declare/follow-source.ts'
import { isSourceAwaited, type SourceReader } from '../sources/read-source.ts'
import type { SourceListener } from '../sources/watch-sources.ts'

export interface FollowedSources extends SourceReader {
  /** Returns a function that ends the calls. */
  onSource(listener: SourceListener): () => void
}

export interface SourceFollowerOptions {
  readonly sources: FollowedSources
  /** The keys of the HeartbeatChecks that follow the source of this key. */
  readonly followersOf: (source: string) => Iterable<string>
  /** The keys of all HeartbeatChecks that follow a source. */
  readonly followers: () => Iterable<string>
  /** Whether the garbage collector deletes this resource with the source of this uid. */
  readonly isOwnedBy: (key: string, uid: string) => boolean
  readonly now: () => number
  /** A full sync of this resource is to begin now, or behind others. */
  readonly sync: (key: string, priority: Priority) => void
  /** The status of this resource may be written when it has a turn. */
  readonly offerTurn: (key: string) => void
}

export interface SourceFollower {
  /** It is not known yet what the source of this resource says. */
  wait(key: string): void
  /** Follows changes until stop(). */
  start(): void
  /** Looks for what no listener is called for: sources that are listed by now, and resources that the garbage collector has left. */
  look(): void
  /** The same of rights that came or went. */
  lookAtRights(): void
  stop(): void
}

/** So long the garbage collector may take: a pause of the check would notify its channels, and the check goes anyway. */
const COLLECTED_MS = 10_000

export function createSourceFollower(options: SourceFollowerOptions): SourceFollower {
  const { sources, followersOf, followers, isOwnedBy, now, sync, offerTurn } = options
  const waiting = new Set<string>()
  /** Since when the source is gone that owns the resource. */
  const goneSince = new Map<string, number>()
  /** What was missing in each namespace at the last look. */
  let rights = new Map<string, string>()
  let end: (() => void) | undefined

  const namespaceOf = (key: string) => key.slice(0, key.indexOf('/'))

  function lookAtRights(): void {
    const seen = new Map<string, string>()
    for (const key of followers()) {
      const namespace = namespaceOf(key)
      if (!seen.has(namespace)) seen.set(namespace, describeMissing(sources, namespace))
      const missing = seen.get(namespace)
      // Without an earlier look: its first reconcile may have been before the right went.
      if ((rights.get(namespace) ?? NOTHING_MISSING) !== missing) sync(key, 'background')
    }
    rights = seen
  }

  return {
    wait: (key) => void waiting.add(key),
    start() {
      end = sources.onSource((source, { before, after }) => {
        const isSynced = !isSourceAwaited(sources, namespaceOf(source))
        const isNews = before === undefined || after === undefined || isRescheduled(before, after)
        for (const key of followersOf(source)) {
          goneSince.delete(key)
          if (!isNews) offerTurn(key)
          else if (after === undefined && isOwnedBy(key, before!.metadata.uid)) goneSince.set(key, now())
          else if (isSynced) sync(key, 'live')
        }
      })
    },
    look() {
      for (const key of waiting) {
        if (isSourceAwaited(sources, namespaceOf(key))) continue
        waiting.delete(key)
        sync(key, 'background')
      }
      for (const [key, since] of goneSince) {
        if (now() - since < COLLECTED_MS) continue
        goneSince.delete(key)
        sync(key, 'background')
      }
    },
    lookAtRights,
    stop: () => end?.(),
  }
}

const NOTHING_MISSING = JSON.stringify([null])

/** In one text, to compare it: the right that all needs, and those that only reasons need. */
function describeMissing(sources: SourceReader, namespace: string): string {
  const reasons = sources.missingReasonRights(namespace).map(({ right }) => right)
  return JSON.stringify([sources.missingRight(namespace), ...reasons])
}
