/**
 * A poll finds changes of checks that nothing else reports: flips whose notice a broken connection has lost, jobs that
 * became late (which is never written), the time of the last ping, checks that are gone from the database, and checks
 * whose resource is gone.
 */

import type { DeclaredState, Resource } from '../../checks/find-checks.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import { yieldTurn } from '../../runtime/clock.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, type HeartbeatCheckStatus } from '../heartbeat-check.ts'
import { createOrphanSweep } from '../resource/orphans.ts'
import type { Service } from '../service.ts'
import { readSource, type SourceReader } from '../sources/read-source.ts'
import { type DueStatus, isMinor, type StatusTurns, TURN_MS, withState } from '../status/status-turns.ts'

export interface CheckPollOptions {
  readonly service: Pick<Service, 'now' | 'listStates' | 'retireCheck'>
  readonly client: Pick<KubernetesClient, 'get'>
  readonly cluster: string
  readonly cache: {
    get(key: string): HeartbeatCheck | undefined
    keys(): Iterable<string>
    isListed(namespace: string): boolean
  }
  readonly isWatched: (namespace: string) => boolean
  /** Whether it belongs to another installation. */
  readonly isForeign: (object: HeartbeatCheck) => boolean
  /** A failed resource keeps its back-off. */
  readonly isFailing: (key: string) => boolean
  readonly enqueue: (key: string, priority: 'live' | 'background', afterMs?: number) => void
  readonly turns: Pick<StatusTurns, 'begin'>
  /** Null: none are read. */
  readonly sources: SourceReader | null
  /** This process's clock. */
  readonly now: () => number
  readonly orphanMs?: number | undefined
  readonly onOrphan: (resource: Resource) => void
}

/** So many are compared at a time, in some milliseconds. */
const TOGETHER = 500

/** Returns a function that compares all checks of the cluster with their resources once. */
export function createCheckPoll(options: CheckPollOptions): (signal?: AbortSignal) => Promise<void> {
  const { service, client, cluster, cache, isForeign, isFailing, enqueue, turns, now } = options
  const collectOrphans = createOrphanSweep({
    client,
    type: HEARTBEAT_CHECKS,
    orphanMs: options.orphanMs,
    now,
    retire: (place) => service.retireCheck({ cluster, ...place }, 'Delete'),
    onOrphan: (place) => options.onOrphan({ cluster, ...place }),
  })

  async function poll(signal?: AbortSignal): Promise<void> {
    const states = await service.listStates(cluster)
    const databaseNow = service.now()
    const missing: DeclaredState[] = []
    const found = new Set<string>()
    const due: DueStatus[] = []
    for (const [index, state] of states.entries()) {
      if (index % TOGETHER === TOGETHER - 1) await yieldTurn()
      if (signal?.aborted) return
      if (!options.isWatched(state.namespace)) continue
      const key = keyOf(state)
      const object = cache.get(key)
      found.add(key)
      if (object === undefined) {
        if (cache.isListed(state.namespace)) missing.push(state)
      } else if (!isForeign(object) && !isFailing(key)) {
        const outdated = compare(object, state, databaseNow)
        if (outdated === 'now') enqueue(key, 'live')
        else if (outdated !== null) due.push({ key, ...outdated })
      }
    }
    let afterMs = 0
    for (const key of turns.begin(due)) {
      enqueue(key, 'background', afterMs)
      afterMs += TURN_MS
    }
    // The check was removed by SQL, or by an older backup: the pings of its job are rejected until it is created again.
    for (const key of cache.keys()) {
      const object = found.has(key) ? undefined : cache.get(key)
      if (object !== undefined && hadCheck(object) && !isForeign(object) && !isFailing(key)) enqueue(key, 'live')
    }
    await collectOrphans(missing, signal)
  }

  /** Null: the status is as its check. `now`: it differs by more than what may wait for a turn. */
  function compare(object: HeartbeatCheck, state: DeclaredState, at: number): 'now' | Omit<DueStatus, 'key'> | null {
    const { status: shown } = object
    if (shown === undefined) return 'now'
    const source = readSource(options.sources, object) ?? undefined
    const status = withState(object, state, source, at)
    if (status === shown) return null
    if (!isMinor(shown, status)) return 'now'
    if (status.state !== shown.state)
      return { isTurned: true, since: (status.state === 'late' ? state.expectedAt : state.lastPingAt) ?? at }
    const since = status.lastPingTime === shown.lastPingTime ? timeOfRun(shown) : shown.lastPingTime
    return { isTurned: false, since: since === undefined ? Number.NEGATIVE_INFINITY : Date.parse(since) }
  }

  return poll
}

const timeOfRun = ({ lastRun }: HeartbeatCheckStatus) => lastRun?.completionTime ?? lastRun?.startTime

/** Not for a resource that is being deleted: that is about to lose its check. */
function hadCheck({ status, metadata }: HeartbeatCheck): boolean {
  return status?.checkId !== undefined && metadata.deletionTimestamp === undefined
}
