/** What happens to a check, and what comes of it: the input and the output of the state machine (transition.ts). */

import type { Held } from './channel.ts'
import {
  type Acknowledgement,
  type CheckState,
  type Completion,
  type DownReason,
  type Flip,
  type Gap,
  type Instant,
  isCompletion,
  type Pause,
  type StatusReason,
  type StoredStatus,
} from './check.ts'
import type { Notice } from './event.ts'

export type CheckEvent =
  /** A completion. `durationMs` is the job's own measurement, which we trust. */
  | (LatePing & {
      readonly kind: Completion
      readonly runId: string | null
      readonly durationMs: number | null
      readonly job?: JobEnd
    })
  | (LatePing & { readonly kind: 'start'; readonly runId: string | null; readonly job?: JobStart })
  | (LatePing & { readonly kind: 'log' })
  /**
   * The run has no completion: its Job was deleted before it ended. `at`: of the log that records it; null: it is not recorded. `overran`: its source
   * ended it because the next run was due, so that it took too long.
   */
  | { readonly kind: 'abandon'; readonly runId: string; readonly at: Instant | null; readonly overran?: JobEnd }
  /**
   * The evaluator reads the check. `gaps`: our own downtimes, oldest first; those that do not concern the check are ignored. `seenUntil`: all Jobs
   * that changed before are recorded, and a deadline after it has not passed. Left out: pings report the runs.
   */
  | { readonly kind: 'deadline'; readonly gaps: readonly Gap[]; readonly seenUntil?: Instant }
  /**
   * Of a check that is paused, its pause is replaced. `pause`: absent where nothing is to be said of it. `isSilent`:
   * the check begins paused, so no recipient knew it otherwise: the flip has no event.
   */
  | { readonly kind: 'pause'; readonly pause?: Pause; readonly isSilent?: boolean }
  | (LatePing & { readonly kind: 'resume' })
  /**
   * The given spec is new; the state was reached under the old one. `isSameTiming`: no deadline differs because of it.
   */
  | { readonly kind: 'update'; readonly isSameTiming?: boolean }
  /** Of a check that is down: a person has it, which replaces an earlier acknowledgement; null: no longer. */
  | { readonly kind: 'acknowledge'; readonly acknowledged: Acknowledgement | null }
  /** The first completion is expected from now on. For declared checks: a job that never runs must be noticed. */
  | { readonly kind: 'arm' }
  /** The job has no URL to report to: nothing is expected of it, unless it has reported since the check is new. */
  | { readonly kind: 'disarm' }
  /** The deleted resource of the check is created again: what was kept of it is known. `isUp`: it was up, and is again. */
  | { readonly kind: 'revive'; readonly kept: KeptState; readonly isUp?: boolean }
  /** The check, which is new, was down when its resource was deleted, and its recipients know it as paused since then: it is down again. */
  | { readonly kind: 'restore'; readonly reason: DownReason }

/** The end of a run, as a job reports it. */
export type Completed = Extract<CheckEvent, { readonly durationMs: number | null }>
export const isCompleted = (event: CheckEvent): event is Completed => isCompletion(event.kind)

/** Of a ping that is recorded some time after its arrival (late-pings.ts). */
interface LatePing {
  /** When it came in. Absent: just now. */
  readonly arrivedAt?: Instant
}

/** What a Job says of its start. Times of Jobs are whole seconds, and may be before the newest entry of the check. */
export interface JobStart {
  readonly at: Instant
  /** The slot that the run is for; of a run without one, when its Job was created. */
  readonly slotAt: Instant
  /** When the check was created: a run that has started before is not over time because of that. */
  readonly createdAt: Instant
  /** The end of this run is stored already: it is not opened again. */
  readonly isOver?: boolean
  /** The start is stored already, and does not count again: the run is open again, as its Job was suspended or its check was deleted. */
  readonly isStored?: boolean
  /** Its container sent a fail or a warning without the run's id before the start was recorded (Run.isOverruled). */
  readonly isOverruled?: boolean
}

/** What a Job says of its end. */
export interface JobEnd {
  readonly at: Instant
  /** When the check was created: what ended before is history, and alarms about nothing. */
  readonly createdAt: Instant
  /** A later completion is reported together with this one. Of what ended before the creation only the newest counts. */
  readonly isSuperseded?: boolean
  /**
   * A fail or a warning of this run is stored: a success or a warning is a log then. The caller need not say it of one
   * that the open run knows (Run.isOverruled).
   */
  readonly isOverruled?: boolean
}

/** The part of a state that is kept when the resource of a check is deleted. */
export type KeptState = Pick<
  CheckState,
  | 'lastPingAt'
  | 'lastOutcome'
  | 'lastSuccessAt'
  | 'lastDurationMs'
  | 'lastStartAt'
  | 'pingsTotal'
  | 'incidentSince'
  | 'escalation'
>

export interface Outcome {
  readonly state: CheckState
  readonly flip: Flip | null
  /** For a completion: the given duration, else completion minus the matching start. Null: unknown. */
  readonly durationMs: number | null
  /** The gap that excused an interval. */
  readonly outage: Gap | null
  /** The start opened no run, because too many are open. */
  readonly runRefused: boolean
  /** The completion is stored as a log: it does not override the fail that the container itself sent. */
  readonly isLogged: boolean
  /** What the recipients of check.down and check.up are to know of the flip. Null: nothing, or the event of its reason (event.ts). */
  readonly notice: Notice | null
  /** Why `notice` is not sent; null: it is. */
  readonly heldBy: Held | null
  /**
   * What they are to know because a reason to be quiet has ended, and why that is not sent (another one has begun);
   * null: it is. Only of a deadline, before its flip, and without one.
   */
  readonly settled: Notice | null
  readonly settledHeldBy: Held | null
  /** What they are to know of a warning, after the flip, and why that is not sent; null: it is. */
  readonly warned: Notice | null
  readonly warnedHeldBy: Held | null
  /** What they are notified again of a check that is down, and why that is not sent; null: it is. */
  readonly reminder: Notice | null
  readonly reminderHeldBy: Held | null
  /** What further channels are notified of a check that is down still (escalation.ts). */
  readonly escalated: Notice | null
  /** The silence that covers the check: all else of it is not sent either. Null: none. */
  readonly silencedBy: Held | null
  /** Of an acknowledgement that begins: for those that keep incidents. */
  readonly acknowledged: Notice | null
  /** An interval without a run that ended in time which does not change the status. */
  readonly counted: { readonly reason: 'missed' | 'overran'; readonly at: Instant } | null
}

/** Events that leave every status as it is. */
type QuietKind = 'start' | 'log' | 'abandon' | 'update' | 'acknowledge' | 'arm' | 'disarm' | 'revive'

/**
 * The statuses that the other events lead to. A status that a deadline does not change has no deadline (`deadlineOf`); elsewhere
 * `deadline` counts only when a deadline has passed, gaps considered.
 */
export const NEXT = {
  new: { success: 'up', warn: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'new' },
  up: { success: 'up', warn: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'up' },
  down: { success: 'up', warn: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'down' },
  // Only runs of a source have deadlines then, and only these fail a check (followed.ts).
  paused: { success: 'paused', warn: 'paused', fail: 'paused', deadline: 'down', pause: 'paused', resume: 'new' },
} as const satisfies Record<StoredStatus, Record<Exclude<CheckEvent['kind'], QuietKind | 'restore'>, StoredStatus>>

/**
 * Whether the runs of a source are judged: while it is suspended, a person starts them. In a pause with an end they go
 * on as always, and alert no one.
 */
export function judgesRuns({ status, pause }: Pick<CheckState, 'status' | 'pause'>): boolean {
  return status !== 'paused' || pause === null || pause.until === null
}

export function unchanged(state: CheckState): Outcome {
  return {
    state,
    flip: null,
    durationMs: null,
    outage: null,
    runRefused: false,
    isLogged: false,
    notice: null,
    heldBy: null,
    settled: null,
    settledHeldBy: null,
    warned: null,
    warnedHeldBy: null,
    reminder: null,
    reminderHeldBy: null,
    escalated: null,
    silencedBy: null,
    acknowledged: null,
    counted: null,
  }
}

/** Unchanged where the status is that already. */
export function flipped(state: CheckState, to: StoredStatus, reason: StatusReason, at: Instant): Outcome {
  if (state.status === to) return unchanged(state)
  const pause = to === 'paused' ? state.pause : null
  return {
    ...unchanged({ ...state, status: to, since: at, reason, pause }),
    flip: { from: state.status, to, reason, at },
  }
}

/** Up to when what happened is recorded. */
export function seenBy(
  { seenUntil = Number.POSITIVE_INFINITY }: { readonly seenUntil?: Instant },
  now: Instant,
): Instant {
  return Math.min(now, seenUntil)
}
