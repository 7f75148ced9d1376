/**
 * The HeartbeatChecks of the cluster, or of some of its namespaces, in one cache. A standby keeps it up to date too.
 */

import { watchAreas } from '../kubernetes/areas.ts'
import { keyOf, splitKey } from '../kubernetes/objects.ts'
import type { Priority } from '../kubernetes/queue.ts'
import { createDependents, isRelinked } from './declare/dependencies.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, KIND, RESTORE_RIGHTS } from './heartbeat-check.ts'
import { isWrittenByOthers } from './ownership/ownership.ts'
import { haveFinalizersChanged, isEdited, trim } from './resource/changes.ts'
import { explainUnknown, type WatchOptions } from './resource/watch.ts'
import { createFollowers } from './sources/followers.ts'

export interface CheckWatch {
  start(): void
  stop(): Promise<void>
  get(key: string): HeartbeatCheck | undefined
  keys(): Iterable<string>
  /** Caches the response to a write of ours. A change by others that comes with it is reported to onChange. */
  put(object: HeartbeatCheck): void
  /** The keys of the HeartbeatChecks that follow the source of this key. */
  followersOf(source: string): Iterable<string>
  /** The keys of all HeartbeatChecks that follow a source. */
  followers(): Iterable<string>
  /** Whether all namespaces were listed, but for those of which that has failed; one at least was. */
  hasTried(): boolean
  /** Whether all HeartbeatChecks of the namespace were listed. */
  isListed(namespace: string): boolean
  /** The watched namespaces of which no list has come yet; none, where one watch covers all. */
  unlisted(): readonly string[]
  /** Whether this operator watches the namespace. */
  isWatched(namespace: string): boolean
  /** Returns true once after the API server was unreachable, for one namespace too, and has responded again. */
  takeRecovery(): boolean
}

export interface CheckWatchOptions extends WatchOptions {
  /** The id of this installation; null while it is not known. Default: not known. */
  readonly installation?: () => string | null
}

export function createCheckWatch(options: CheckWatchOptions): CheckWatch {
  const { namespaces, stallMs, onChange, installation = () => null } = options
  const followers = createFollowers()
  const dependents = createDependents()
  const priorityOf = (key: string): Priority => (areas.isListed(splitKey(key).namespace) ? 'live' : 'background')
  const noteLinks = (key: string, before: HeartbeatCheck | undefined, after: HeartbeatCheck | undefined) => {
    if (!isRelinked(before, after)) return
    dependents.note(key, after)
    for (const one of dependents.leadingTo(key)) onChange(one, priorityOf(key))
  }
  const areas = watchAreas<HeartbeatCheck>({
    ...options,
    type: HEARTBEAT_CHECKS,
    stallMs,
    trim,
    name: 'HeartbeatChecks',
    grant: RESTORE_RIGHTS,
    explain: (error) => explainUnknown({ kind: KIND, type: HEARTBEAT_CHECKS }, error),
    onChange(key, { before, after }) {
      followers.note(key, after)
      noteLinks(key, before, after)
      if (before !== undefined && after !== undefined && !isRelevant(before, after, installation())) return
      onChange(key, priorityOf(key))
    },
  })

  return {
    start: areas.start,
    stop: areas.stop,
    get: areas.get,
    put(object) {
      const key = keyOf(object.metadata)
      const before = areas.get(key)
      areas.put(object)
      const after = areas.get(key)
      // Its check is there: no event of the watch reports what we have written.
      noteLinks(key, before, after)
      // The response may hold a change by others that the watch has not reported yet, and will not report after it.
      if (before !== undefined && after !== undefined && isOthersWork(before, after, installation()))
        onChange(key, 'live')
    },
    keys: areas.keys,
    followersOf: followers.of,
    followers: followers.all,
    hasTried: () => areas.hasSynced() && areas.reflectors.some((reflector) => reflector.hasSynced()),
    isListed: areas.isListed,
    unlisted: () => (namespaces ?? []).filter((namespace) => !areas.isListed(namespace)),
    isWatched: (namespace) => namespaces === null || namespaces.includes(namespace),
    takeRecovery: areas.takeRecovery,
  }
}

/** Our own writes of the status need no reconcile. */
function isRelevant(before: HeartbeatCheck, after: HeartbeatCheck, ours: string | null): boolean {
  return isOthersWork(before, after, ours) || haveFinalizersChanged(before, after)
}

const isOthersWork = (before: HeartbeatCheck, after: HeartbeatCheck, ours: string | null) =>
  isEdited(before, after) || isWrittenByOthers(before, after, ours)
