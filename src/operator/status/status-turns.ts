/**
 * Which changes of a status are minor, and who may have its status written for a minor change alone. Each would cost a
 * write of etcd, which goes to every watcher too, so the cluster has five such writes a second: so many turns in each
 * round, which is from one poll to the next.
 *
 * The next reconcile of a resource takes its turn, whatever that reconcile finds. A turn that was not taken ends with
 * its round.
 */

import type { DeclaredState } from '../../checks/find-checks.ts'
import { type Instant, shownStatus } from '../../domain/check.ts'
import { toTime } from '../../kubernetes/objects.ts'
import type { HeartbeatCheck, HeartbeatCheckStatus } from '../heartbeat-check.ts'
import { isSameStatus } from '../resource/conditions.ts'
import { MAX_ACTIVE } from '../schema/status.ts'
import type { Source } from '../sources/source-kind.ts'
import { isPingTimeDue } from './ping-time.ts'
import { describeSource, type SourceStatus } from './status.ts'

export interface StatusTurns {
  /** Begins a round. Returns the keys that have a turn in it, each of which is to be reconciled: one each TURN_MS. */
  begin(due: readonly DueStatus[]): Iterable<string>
  /** Gives one more turn in this round. Returns false where the key has one, and where none is left. */
  add(key: string): boolean
  /** Whether the reconcile that begins may write the status for a minor change alone. */
  take(key: string): boolean
}

export interface DueStatus {
  readonly key: string
  /** The job became late, or is on time again. Half of a round is for these: no kind waits for all of the other. */
  readonly isTurned: boolean
  /** Since when the status shows what is outdated. The oldest come first. */
  readonly since: Instant
}

/** From one turn of a round to the next one: five a second. */
export const TURN_MS = 200

/** @param roundMs how long a round is */
export function createStatusTurns(roundMs: number): StatusTurns {
  const size = Math.max(1, Math.floor(roundMs / TURN_MS))
  let turns = new Set<string>()
  let left = size

  return {
    begin(due) {
      const inOrder = due.toSorted((one, other) => one.since - other.since)
      const turned = inOrder.filter(({ isTurned }) => isTurned)
      const others = inOrder.filter(({ isTurned }) => !isTurned)
      const first = turned.slice(0, Math.max(Math.floor(size / 2), size - others.length))
      turns = new Set([...first, ...others.slice(0, size - first.length)].map(({ key }) => key))
      left = size - turns.size
      return [...turns]
    },
    add(key) {
      if (left === 0 || turns.has(key)) return false
      left -= 1
      turns.add(key)
      return true
    },
    take: (key) => turns.delete(key),
  }
}

/**
 * Whether the change may wait for a turn: the time of a ping, a job that became late or is on time again, which is no
 * flip, and a run of a CronJob that started or succeeded. A job that needs some seconds after its slot is late in each
 * interval.
 */
export function isMinor(before: HeartbeatCheckStatus | undefined, after: HeartbeatCheckStatus): boolean {
  if (before === undefined || (before.lastPingTime !== undefined && after.lastPingTime === undefined)) return false
  const isRunMinor = after.lastRun === undefined || isMinorRun(after.lastRun)
  const [one, other] = [before, after].map((status) =>
    withoutMinor(isRunMinor ? { ...status, lastRun: undefined } : status),
  )
  return isSameStatus(one, other!)
}

function withoutMinor({ lastPingTime: _, source, ...status }: HeartbeatCheckStatus): HeartbeatCheckStatus {
  const conditions = status.conditions?.map((condition) =>
    condition.type === 'Up' && condition.status === 'True' ? { ...condition, reason: '', message: '' } : condition,
  )
  const { lastScheduleTime: __, active: ___, ...same } = source ?? {}
  return {
    ...status,
    ...(status.state === 'late' ? { state: 'up' } : {}),
    ...(conditions && { conditions }),
    ...(source && { source: same as SourceStatus }),
  }
}

/** A CronJob that works has two of them for each of its runs. A run in progress has a message if something is wrong. */
export function isMinorRun(run: { readonly outcome: string; readonly message?: string | null | undefined }): boolean {
  return run.outcome === 'Succeeded' || (run.outcome === 'Running' && run.message == null)
}

/**
 * The status with what the row of its check says now, and its source; the same one where that says nothing new. A poll
 * compares thousands, so this is without what only a reconcile knows: the conditions, and the times of a run.
 */
export function withState(
  { spec, status: shown = {} }: HeartbeatCheck,
  state: DeclaredState,
  source: Source | undefined,
  now: Instant,
): HeartbeatCheckStatus {
  const { lastPingAt, lastRun } = state
  const [shownState, stateTime] = [shownStatus(state, now), toTime(state.since)]
  const shownAt = shown.lastPingTime === undefined ? null : Date.parse(shown.lastPingTime)
  const isPinged = lastPingAt === null ? shownAt !== null : isPingTimeDue(shownAt, lastPingAt, source ?? spec)
  const isRun = lastRun !== null && (shown.lastRun?.name !== lastRun.job || shown.lastRun.outcome !== lastRun.outcome)
  const isSourceSame = source === undefined || isShown(shown.source, source)
  const isStateSame = shown.state === shownState && shown.stateTime === stateTime
  if (isStateSame && !isPinged && !isRun && isSourceSame) return shown
  const { lastPingTime: _, ...others } = shown
  return {
    ...(isPinged ? others : shown),
    state: shownState,
    stateTime,
    ...(isPinged && lastPingAt !== null ? { lastPingTime: toTime(lastPingAt) } : {}),
    ...(isRun ? { lastRun: { name: lastRun.job, outcome: lastRun.outcome } } : {}),
    ...(isSourceSame ? {} : { source: describeSource(spec.sourceRef!, source) }),
  }
}

/** As describeSource() shows it, without its cost. */
function isShown(shown: SourceStatus | undefined, source: Source): boolean {
  const active = source.active.slice(0, MAX_ACTIVE)
  return (
    shown?.uid === source.metadata.uid &&
    shown.suspended === source.suspended &&
    (shown.lastScheduleTime ?? null) === source.lastScheduleTime &&
    shown.active?.length === active.length &&
    active.every((name, index) => shown.active![index] === name)
  )
}
