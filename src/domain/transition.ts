/**
 * The state machine (design, section 4): a spec, a state, an event and a time in; the next state and perhaps a flip out. Every status
 * handles every event. Nothing here reads a clock, and nothing else in the product changes a status.
 */

import {
  type CheckSpec,
  type CheckState,
  type Flip,
  type FlipReason,
  type Gap,
  type Instant,
  isOpen,
  type Run,
  type StoredStatus,
} from './check.ts'
import { LIMITS, RUN_MEMORY_MS } from './limits.ts'
import {
  type Expectation,
  expectAfterCompletion,
  expectAfterExcuse,
  expectFromNow,
  NOTHING_EXPECTED,
  toleranceAt,
} from './schedule.ts'

export type CheckEvent =
  /** A completion. `durationMs` is the job's own measurement, which we trust. */
  | { readonly kind: 'success' | 'fail'; readonly runId: string | null; readonly durationMs: number | null }
  | { readonly kind: 'start'; readonly runId: string | null }
  | { readonly kind: 'log' }
  /** The evaluator reads the check. `gaps`: our own downtimes, oldest first; those that do not concern the check are ignored. */
  | { readonly kind: 'deadline'; readonly gaps: readonly Gap[] }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** The given spec is new; the state was reached under the old one. */
  | { readonly kind: 'update' }
  /** The first completion is expected from now on. For declared checks: a job that never runs must be noticed. */
  | { readonly kind: 'arm' }
  /** The deleted resource of the check is created again: the check is armed, and its last pings are known. */
  | { readonly kind: 'revive'; readonly last: LastPings }

/** The part of a state that is kept when the resource of a check is deleted. */
export type LastPings = Pick<CheckState, 'lastPingAt' | 'lastSuccessAt' | 'lastDurationMs' | 'lastStartAt'>

export interface Outcome {
  readonly state: CheckState
  readonly flip: Flip | null
  /** For a completion: the given duration, else completion minus the matching start. Null: unknown. */
  readonly durationMs: number | null
  /** The gap that excused an interval. */
  readonly outage: Gap | null
  /** The start opened no run, because too many are open. */
  readonly runRefused: boolean
}

/** Events that leave every status as it is. */
type QuietKind = 'start' | 'log' | 'update' | 'arm' | 'revive'

/**
 * The statuses that the other events lead to. A status that a deadline does not change has no deadline (`deadlineOf`); elsewhere
 * `deadline` counts only when a deadline has passed, gaps considered.
 */
export const NEXT = {
  new: { success: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'new' },
  up: { success: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'up' },
  down: { success: 'up', fail: 'down', deadline: 'down', pause: 'paused', resume: 'down' },
  paused: { success: 'paused', fail: 'paused', deadline: 'paused', pause: 'paused', resume: 'new' },
} as const satisfies Record<StoredStatus, Record<Exclude<CheckEvent['kind'], QuietKind>, StoredStatus>>

/** Clients retry for about this long after a downtime, whatever the grace time. */
const RETRY_MS = 60_000
/** A shorter gap hides no completion: clients retry until it is over. */
const HIDING_GAP_MS = 60_000

/** The state of a check that is created at `now`. Nothing is expected before its first ping, unless it is armed. */
export function newState(now: Instant): CheckState {
  return {
    status: 'new',
    since: now,
    lastPingAt: null,
    lastSuccessAt: null,
    lastDurationMs: null,
    lastStartAt: null,
    runs: [],
    ...NOTHING_EXPECTED,
  }
}

/** The earliest time at which the check goes down if nothing happens; null when nothing is expected. */
export function deadlineOf(state: Pick<CheckState, 'status' | 'dueAt' | 'runs'>): Instant | null {
  if (NEXT[state.status].deadline === state.status) return null
  let deadline = state.dueAt
  for (const { deadlineAt } of state.runs) {
    if (deadlineAt !== null && (deadline === null || deadlineAt < deadline)) deadline = deadlineAt
  }
  return deadline
}

export function transition(spec: CheckSpec, state: CheckState, event: CheckEvent, now: Instant): Outcome {
  switch (event.kind) {
    case 'success':
    case 'fail':
      return complete(spec, state, event, now)
    case 'start':
      return start(spec, state, event.runId, now)
    case 'deadline':
      return expire(spec, state, event.gaps, now)
    case 'pause':
      return turn({ ...state, ...NOTHING_EXPECTED, runs: [] }, state, event.kind, now)
    case 'resume':
      return turn({ ...state, ...expectFromNow(spec, now) }, state, event.kind, now)
    case 'update':
      return unchanged(refit(spec, state, now))
    case 'arm':
      return unchanged(arm(spec, state, now))
    case 'revive': {
      const { lastPingAt, lastSuccessAt, lastDurationMs, lastStartAt } = event.last
      return unchanged(arm(spec, { ...state, lastPingAt, lastSuccessAt, lastDurationMs, lastStartAt }, now))
    }
    case 'log':
      return unchanged(state)
  }
}

/** `next` if the event changes the status of `state`, else `state`. */
function turn(next: CheckState, state: CheckState, kind: 'pause' | 'resume', now: Instant): Outcome {
  const to = NEXT[state.status][kind]
  return to === state.status ? unchanged(state) : flipped(next, to, kind === 'pause' ? 'paused' : 'resumed', now)
}

/** Whether the check is new and expects nothing: `arm` changes that. */
export function isUnarmed(state: CheckState): boolean {
  return state.status === 'new' && deadlineOf(state) === null
}

function arm(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  return isUnarmed(state) ? { ...state, ...expectFromNow(spec, now) } : state
}

function unchanged(state: CheckState): Outcome {
  return { state, flip: null, durationMs: null, outage: null, runRefused: false }
}

function flipped(state: CheckState, to: StoredStatus, reason: FlipReason, at: Instant): Outcome {
  return { ...unchanged({ ...state, status: to, since: at }), flip: { from: state.status, to, reason, at } }
}

function complete(
  spec: CheckSpec,
  state: CheckState,
  event: CheckEvent & { kind: 'success' | 'fail' },
  now: Instant,
): Outcome {
  const run = state.runs.find((candidate) => candidate.id === event.runId)
  const durationMs = event.durationMs ?? durationOf(run, now)
  const runs = state.runs.filter((other) => other !== run && isKept(other, now))
  const lastSuccessAt = event.kind === 'success' ? now : state.lastSuccessAt
  const seen = { ...state, lastPingAt: now, lastSuccessAt, lastDurationMs: durationMs, runs }
  const to = NEXT[state.status][event.kind]
  if (to === 'paused') return { ...unchanged(seen), durationMs }
  if (to === 'down') {
    const stopped = { ...seen, ...NOTHING_EXPECTED }
    const outcome = to === state.status ? unchanged(stopped) : flipped(stopped, to, 'failed', now)
    return { ...outcome, durationMs }
  }
  // A hung run that was already reported must not take the check down again the moment it recovers.
  const still = state.status === 'down' ? runs.filter((other) => isOpen(other, now)) : runs
  const next = { ...seen, ...expectAfterCompletion(spec, now), runs: still }
  if (to === state.status) return { ...unchanged(next), durationMs }
  return { ...flipped(next, to, state.status === 'new' ? 'first_success' : 'recovered', now), durationMs }
}

function durationOf(run: Run | undefined, now: Instant): number | null {
  if (run === undefined) return null
  const durationMs = Math.max(0, now - run.startedAt)
  return durationMs <= LIMITS.durationMs ? durationMs : null
}

function start(spec: CheckSpec, state: CheckState, runId: string | null, now: Instant): Outcome {
  const others = state.runs.filter((run) => run.id !== runId && isKept(run, now))
  const seen = { ...state, lastStartAt: now }
  if (others.length >= LIMITS.openRuns) return { ...unchanged({ ...seen, runs: others }), runRefused: true }

  const isWatched = spec.maxRuntimeMs !== null && state.status !== 'paused'
  const deadlineAt = isWatched ? deadlineOfStart(spec, state, runId, now) : null
  const run: Run = { id: runId, startedAt: now, deadlineAt }
  const started = { ...seen, runs: [...others, run] }
  if (state.status === 'down' || state.status === 'paused') return unchanged(started)

  // From now on the run's own deadline replaces the schedule, until a completion sets the next expectation.
  const isInTime = state.dueAt === null || now < state.dueAt
  if (isWatched && isInTime) return unchanged({ ...started, ...NOTHING_EXPECTED })
  // Only the first start arms: a job that starts each day and never completes must not postpone its own deadline for ever.
  if (state.status === 'new' && state.dueAt === null) return unchanged({ ...started, ...expectFromNow(spec, now) })
  return unchanged(started)
}

/**
 * A start without a run id replaces the one before. Within an interval it is the same run, started again, and gets a new deadline. An
 * interval later it is another run while the first has not ended, so the first deadline stays: otherwise a job that starts every hour
 * and never completes would postpone a maxRuntime of two hours for ever.
 */
function deadlineOfStart(spec: CheckSpec, state: CheckState, runId: string | null, now: Instant): Instant {
  const deadlineAt = now + (spec.maxRuntimeMs ?? 0)
  const replaced = state.runs.find((run) => run.id === runId)
  if (runId !== null || replaced === undefined || replaced.deadlineAt === null || !isOpen(replaced, now))
    return deadlineAt
  const { expectedAt } = expectAfterCompletion(spec, replaced.startedAt)
  const isAnother = expectedAt !== null && now >= expectedAt - toleranceAt(spec, expectedAt)
  return isAnother ? Math.min(replaced.deadlineAt, deadlineAt) : deadlineAt
}

/** A run whose deadline is still to come is kept: nothing else would watch it. */
function isKept(run: Run, now: Instant): boolean {
  return now - run.startedAt < RUN_MEMORY_MS || isOpen(run, now)
}

function expire(spec: CheckSpec, state: CheckState, gaps: readonly Gap[], now: Instant): Outcome {
  const passed = deadlineOf(state)
  // A ping that was committed first has moved the deadline.
  if (passed === null || now < passed) return unchanged(state)
  const { state: spared, outage } = spare(spec, state, gaps)
  const deadline = deadlineOf(spared)
  if (deadline === null || now < deadline) return { ...unchanged(spared), outage }
  const reason = spared.dueAt !== null && spared.dueAt <= deadline ? 'missed' : 'overran'
  return { ...flipped({ ...spared, ...NOTHING_EXPECTED }, NEXT[state.status].deadline, reason, deadline), outage }
}

/**
 * Our own downtime is never the job's fault (design, section 4, "Own downtime"). Applying a gap a second time changes nothing. A gap of
 * a minute or more in the window of an expected completion may have hidden it: that interval is excused. Every gap since the last
 * completion gives clients time to retry.
 */
function spare(spec: CheckSpec, state: CheckState, gaps: readonly Gap[]): { state: CheckState; outage: Gap | null } {
  let expectation: Expectation = state
  let runs = state.runs
  let outage: Gap | null = null
  for (const gap of gaps) {
    const retriedBy = gap.endedAt + Math.max(spec.graceMs, RETRY_MS)
    // A gap that ended before the last completion, or before the check was armed, hid nothing.
    const isAwaited = gap.endedAt > Math.max(state.since, state.lastPingAt ?? state.since)
    if (isAwaited && isHidden(spec, expectation, gap)) {
      expectation = postpone(expectation, expectAfterExcuse(spec, expectation.expectedAt!, gap.endedAt))
      outage = gap
    }
    if (isAwaited && expectation.dueAt !== null && gap.startedAt <= expectation.dueAt) {
      expectation = { expectedAt: expectation.expectedAt, dueAt: Math.max(expectation.dueAt, retriedBy) }
    }
    runs = runs.map((run) => {
      const isTouched = run.deadlineAt !== null && gap.endedAt > run.startedAt && gap.startedAt <= run.deadlineAt
      return isTouched ? { ...run, deadlineAt: Math.max(run.deadlineAt, retriedBy) } : run
    })
  }
  return { state: { ...state, expectedAt: expectation.expectedAt, dueAt: expectation.dueAt, runs }, outage }
}

/** An excuse never moves a deadline to an earlier time. */
function postpone(from: Expectation, to: Expectation): Expectation {
  if (from.dueAt === null || to.dueAt === null) return to
  return { expectedAt: to.expectedAt, dueAt: Math.max(from.dueAt, to.dueAt) }
}

function isHidden(spec: CheckSpec, { expectedAt, dueAt }: Expectation, gap: Gap): boolean {
  if (expectedAt === null || dueAt === null || gap.endedAt - gap.startedAt < HIDING_GAP_MS) return false
  return gap.startedAt <= dueAt && gap.endedAt >= expectedAt - toleranceAt(spec, expectedAt)
}

/** The state under a changed spec. No check goes down because of a changed spec: no deadline is before now + grace. */
function refit(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  const soonest = now + spec.graceMs
  const runs = state.runs.map((run): Run => {
    if (!isOpen(run, now) || state.status === 'paused') return run
    if (spec.maxRuntimeMs === null) return { ...run, deadlineAt: null }
    const deadlineAt = run.startedAt + spec.maxRuntimeMs
    // It had no deadline so far and is over time already: it probably crashed days ago, and other runs followed.
    if (run.deadlineAt === null && deadlineAt <= now) return run
    return { ...run, deadlineAt: Math.max(deadlineAt, soonest) }
  })
  const next = { ...state, ...NOTHING_EXPECTED, runs }
  if (state.status === 'down' || state.status === 'paused') return next
  // A run replaces the schedule if it did so before, or if it gets its first deadline now; not beside an expectation.
  const mayReplace = state.expectedAt === null || state.runs.some((run) => run.deadlineAt === null)
  if (mayReplace && runs.some((run) => run.deadlineAt !== null && now < run.deadlineAt)) return next
  const isArmed = deadlineOf(state) !== null
  if (state.status === 'new') return isArmed ? { ...next, ...expectFromNow(spec, now) } : next
  const { expectedAt, dueAt } = expectAfterCompletion(spec, state.lastPingAt ?? now)
  return { ...next, expectedAt, dueAt: dueAt === null ? null : Math.max(dueAt, soonest) }
}
