/**
 * Changes of checks without a change of their resources: pings, deadlines, calls of the API, lost resources. Flips arrive by
 * NOTIFY. A poll finds the rest: flips missed by a broken connection, checks that became late (which is never written), the
 * rounded time of the last ping, and checks whose resource is gone.
 */

import { retireCheck } from '../../checks/declare/retire-check.ts'
import { shownStatus } from '../../domain/check.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { keyOf, toTime } from '../../kubernetes/objects.ts'
import { yieldTurn } from '../../runtime/clock.ts'
import type { Resource } from '../../store/checks/checks.ts'
import { type DeclaredState, listDeclaredStates } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import type { SourceReader } from '../declare/follow-source.ts'
import { resourceExists } from '../deletion/resource-exists.ts'
import type { HeartbeatCheck, HeartbeatCheckStatus } from '../heartbeat-check.ts'
import { MAX_ACTIVE } from '../schema/status.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import type { Source } from '../sources/source-kind.ts'
import { type DuePingTime, isPingTimeDue, type PingTimes } from '../status/ping-times.ts'
import { isMinorRun, isSameButLate } from '../status/status.ts'

export interface FollowerOptions {
  readonly context: Context
  readonly client: KubernetesClient
  readonly cluster: string
  readonly cache: {
    get(key: string): HeartbeatCheck | undefined
    keys(): Iterable<string>
    isListed(namespace: string): boolean
  }
  readonly isWatched: (namespace: string) => boolean
  /** Whether it belongs to another installation: then it is not ours to follow. */
  readonly isForeign: (object: HeartbeatCheck) => boolean
  readonly enqueue: (key: string) => unknown
  readonly pingTimes?: Pick<PingTimes, 'offer'>
  /** Null: none are read. Default: null. */
  readonly sources?: SourceReader | null
  /** This process's clock. */
  readonly now: () => number
  readonly orphanMs?: number
  readonly onOrphan: (resource: Resource) => void
}

export interface Follower {
  /** Compares all checks of the cluster with their resources once. */
  poll(signal?: AbortSignal): Promise<void>
}

/**
 * A deleted resource retires its check by its finalizer. A resource that is gone without its finalizer was lost: the
 * finalizer was removed by force, or etcd was emptied. Then the resource is likely to be applied again soon, and its
 * job still pings, so its check is kept for so long.
 */
const ORPHAN_MS = 600_000
/** So many are compared at a time, in some milliseconds. */
const TOGETHER = 500

export function createFollower(options: FollowerOptions): Follower {
  const {
    context,
    client,
    cluster,
    cache,
    isWatched,
    isForeign,
    enqueue,
    now,
    orphanMs = ORPHAN_MS,
    onOrphan,
  } = options
  const missingSince = new Map<string, number>()

  async function poll(signal?: AbortSignal): Promise<void> {
    const states = await listDeclaredStates(context.database, cluster)
    const databaseNow = context.clock.now()
    const missing: DeclaredState[] = []
    const found = new Set<string>()
    const due: DuePingTime[] = []
    for (const [index, state] of states.entries()) {
      if (index % TOGETHER === TOGETHER - 1) await yieldTurn()
      if (signal?.aborted) return
      if (!isWatched(state.namespace)) continue
      const key = keyOf(state)
      const object = cache.get(key)
      found.add(key)
      if (object === undefined) {
        if (cache.isListed(state.namespace)) missing.push(state)
      } else if (isForeign(object)) continue
      else if (isOutdated(object, state, databaseNow)) enqueue(key)
      else {
        const sourceKey = sourceKeyOf(object)
        const source = sourceKey === null ? undefined : options.sources?.getSource(sourceKey)
        const isFollowed = sourceKey !== null
        const minor =
          findMinor(object, state, databaseNow, source) ?? (isFollowed ? findMinorRun(object, state, source) : null)
        if (minor !== null) due.push({ key, ...minor })
      }
    }
    options.pingTimes?.offer(due)
    // The check was removed by SQL, or by an older backup: the pings of its job are rejected until it is created again.
    for (const key of cache.keys()) {
      const object = found.has(key) ? undefined : cache.get(key)
      if (object !== undefined && hadCheck(object) && !isForeign(object)) enqueue(key)
    }
    await collectOrphans(missing, signal)
  }

  /** Never based on a partial list, and never on the cache alone. */
  async function collectOrphans(missing: readonly DeclaredState[], signal: AbortSignal | undefined): Promise<void> {
    const keys = new Set(missing.map(keyOf))
    for (const key of missingSince.keys()) if (!keys.has(key)) missingSince.delete(key)
    for (const { namespace, name } of missing) {
      const key = keyOf({ namespace, name })
      const since = missingSince.get(key) ?? now()
      missingSince.set(key, since)
      if (now() - since < orphanMs || signal?.aborted) continue
      if ((await resourceExists(client, { namespace, name })) !== 'no') {
        // An existing one will arrive in the cache. With an unknown kind the time starts again when the kind is back.
        missingSince.delete(key)
        continue
      }
      await retireCheck(context, { cluster, namespace, name }, 'Delete')
      missingSince.delete(key)
      onOrphan({ cluster, namespace, name })
    }
  }

  return { poll }
}

/** Not for a resource that is being deleted: that is about to lose its check. */
function hadCheck({ status, metadata }: HeartbeatCheck): boolean {
  return status?.checkId !== undefined && metadata.deletionTimestamp === undefined
}

/** Without what may wait for a turn. */
function isOutdated({ status }: HeartbeatCheck, state: DeclaredState, now: number): boolean {
  if (status === undefined || !isSameButLate(status.state, shownStatus(state, now))) return true
  const { stateTime, lastPingTime } = status
  if (stateTime !== toTime(state.since)) return true
  if (state.lastRun !== null && !isMinorRun(state.lastRun) && !isSameRun(status.lastRun, state.lastRun)) return true
  return state.lastPingAt === null && lastPingTime !== undefined
}

/** By its Job, and how that ended. */
function isSameRun(shown: HeartbeatCheckStatus['lastRun'], stored: DeclaredState['lastRun']): boolean {
  return shown?.name === stored?.job && shown?.outcome === stored?.outcome
}

/** A run that started or succeeded, and what the CronJob says beside its schedule. */
function findMinorRun({ status = {} }: HeartbeatCheck, { lastRun }: DeclaredState, source: Source | undefined) {
  if (isSameSource(status.source, source) && isSameRun(status.lastRun, lastRun)) return null
  const shown = status.lastRun?.completionTime ?? status.lastRun?.startTime
  return { shownAt: shown === undefined ? null : Date.parse(shown) }
}

/** As describeSource() shows it, without its cost: a poll compares thousands. A source that is not known is as it was. */
function isSameSource(shown: HeartbeatCheckStatus['source'], source: Source | undefined): boolean {
  if (source === undefined) return true
  const active = source.active.slice(0, MAX_ACTIVE)
  return (
    shown?.uid === source.metadata.uid &&
    shown.suspended === source.suspended &&
    (shown.lastScheduleTime ?? null) === source.lastScheduleTime &&
    shown.active?.length === active.length &&
    active.every((name, index) => shown.active![index] === name)
  )
}

/** What may wait for a turn: a job that became late or is on time again, before the time of a ping. */
function findMinor({ spec, status }: HeartbeatCheck, state: DeclaredState, now: number, source: Source | undefined) {
  const { lastPingAt } = state
  const shown = shownStatus(state, now)
  if (status?.state !== shown)
    return { shownAt: null, turnedAt: (shown === 'late' ? state.expectedAt : lastPingAt) ?? now }
  if (lastPingAt === null) return null
  const shownAt = status?.lastPingTime === undefined ? null : Date.parse(status.lastPingTime)
  return isPingTimeDue(shownAt, lastPingAt, source ?? spec) ? { shownAt } : null
}
