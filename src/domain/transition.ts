/**
 * The state machine (design, section 4): a spec, a state, an event and a time in; the next state and perhaps a flip out.
 * Every status answers every event. Nothing here reads a clock, and nothing else in the product changes a status.
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
  /** The evaluator looked. `gaps`: our own downtimes, oldest first; those that do not concern the check are ignored. */
  | { readonly kind: 'deadline'; readonly gaps: readonly Gap[] }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** The spec handed in is new, the state was reached under the one before. */
  | { readonly kind: 'update' }
  /** Declared by a HeartbeatCheck: a job that never runs must be noticed, so the first completion is expected from now on. */
  | { readonly kind: 'arm' }
  /** Its resource was deleted and is created again: armed, with what was known of the job's pings. */
  | { readonly kind: 'revive'; readonly last: LastPings }

/** What outlives a check whose resource is deleted. */
export type LastPings = Pick<CheckState, 'lastPingAt' | 'lastSuccessAt' | 'lastDurationMs' | 'lastStartAt'>

export interface Outcome {
  readonly state: CheckState
  readonly flip: Flip | null
  /** Of a completion: the given duration, else completion minus the matching start. */
  readonly durationMs: number | null
  /** The gap for which an interval was excused. */
  readonly outage: Gap | null
  /** A start that opened no run, since too many are open. */
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

/** Clients retry for about this long once we are back, whatever the grace time. */
const RETRY_MS = 60_000
/** A gap shorter than this hides no completion: clients retry over it. */
const HIDING_GAP_MS = 60_000

/** The state of a check that was just created. Nothing is expected before its first ping, unless it is armed. */
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

/** The earliest moment at which the check goes down if nothing happens; null when nothing is awaited. */
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

/** `next` where the event changes the status of `state`, else `state` as it is. */
function turn(next: CheckState, state: CheckState, kind: 'pause' | 'resume', now: Instant): Outcome {
  const to = NEXT[state.status][kind]
  return to === state.status ? unchanged(state) : flipped(next, to, kind === 'pause' ? 'paused' : 'resumed', now)
}

/** Whether the check is new and waits for nothing: `arm` changes that. */
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
  const runs = state.runs.filter((other) => other !== run && isRemembered(other, now))
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
  const others = state.runs.filter((run) => run.id !== runId && isRemembered(run, now))
  const seen = { ...state, lastStartAt: now }
  if (others.length >= LIMITS.openRuns) return { ...unchanged({ ...seen, runs: others }), runRefused: true }

  const isWatched = spec.maxRuntimeMs !== null && state.status !== 'paused'
  const deadlineAt = isWatched ? deadlineOfStart(spec, state, runId, now) : null
  const run: Run = { id: runId, startedAt: now, deadlineAt }
  const started = { ...seen, runs: [...others, run] }
  if (state.status === 'down' || state.status === 'paused') return unchanged(started)

  // The run's own deadline stands for the schedule from here on, until a completion sets the next expectation.
  const isInTime = state.dueAt === null || now < state.dueAt
  if (isWatched && isInTime) return unchanged({ ...started, ...NOTHING_EXPECTED })
  // Only the first start arms: a job that starts each day and never completes must not push its own deadline on for ever.
  if (state.status === 'new' && state.dueAt === null) return unchanged({ ...started, ...expectFromNow(spec, now) })
  return unchanged(started)
}

/**
 * Anonymous starts replace each other: within an interval as the same run begun again, with a deadline of its own. One that
 * comes an interval later is another run, and the first still has not ended: it keeps its deadline, or a job that starts
 * every hour and never completes would push a longest run time of two hours on for ever.
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

/** Forgetting a run whose deadline is still to come would leave nobody watching it. */
function isRemembered(run: Run, now: Instant): boolean {
  return now - run.startedAt < RUN_MEMORY_MS || isOpen(run, now)
}

function expire(spec: CheckSpec, state: CheckState, gaps: readonly Gap[], now: Instant): Outcome {
  const passed = deadlineOf(state)
  // A ping that committed first has moved the deadline: it wins.
  if (passed === null || now < passed) return unchanged(state)
  const { state: spared, outage } = spare(spec, state, gaps)
  const deadline = deadlineOf(spared)
  if (deadline === null || now < deadline) return { ...unchanged(spared), outage }
  const reason = spared.dueAt !== null && spared.dueAt <= deadline ? 'missed' : 'overran'
  return { ...flipped({ ...spared, ...NOTHING_EXPECTED }, NEXT[state.status].deadline, reason, deadline), outage }
}

/**
 * Our own downtime is never the job's fault (design, section 4, "Own downtime"). Applying a gap again changes nothing more.
 * A gap of a minute or more in the window of an expected completion may have swallowed it: that interval is excused.
 * Any gap since the last completion gives clients the time to retry, the one that was excused for too.
 */
function spare(spec: CheckSpec, state: CheckState, gaps: readonly Gap[]): { state: CheckState; outage: Gap | null } {
  let expectation: Expectation = state
  let runs = state.runs
  let outage: Gap | null = null
  for (const gap of gaps) {
    const retriedBy = gap.endedAt + Math.max(spec.graceMs, RETRY_MS)
    // What was over before the last completion, or before the check was armed, has hidden nothing.
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

/** Being spared never brings a deadline nearer, whatever had moved it before. */
function postpone(from: Expectation, to: Expectation): Expectation {
  if (from.dueAt === null || to.dueAt === null) return to
  return { expectedAt: to.expectedAt, dueAt: Math.max(from.dueAt, to.dueAt) }
}

function isHidden(spec: CheckSpec, { expectedAt, dueAt }: Expectation, gap: Gap): boolean {
  if (expectedAt === null || dueAt === null || gap.endedAt - gap.startedAt < HIDING_GAP_MS) return false
  return gap.startedAt <= dueAt && gap.endedAt >= expectedAt - toleranceAt(spec, expectedAt)
}

/** The state under a changed spec. Nobody goes down for a change of configuration: no deadline before now + grace. */
function refit(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  const soonest = now + spec.graceMs
  const runs = state.runs.map((run): Run => {
    if (!isOpen(run, now) || state.status === 'paused') return run
    if (spec.maxRuntimeMs === null) return { ...run, deadlineAt: null }
    const deadlineAt = run.startedAt + spec.maxRuntimeMs
    // Nobody watched it so far, and it is over time already: most likely it crashed days ago, and other runs came after it.
    if (run.deadlineAt === null && deadlineAt <= now) return run
    return { ...run, deadlineAt: Math.max(deadlineAt, soonest) }
  })
  const next = { ...state, ...NOTHING_EXPECTED, runs }
  if (state.status === 'down' || state.status === 'paused') return next
  // A run goes on standing for the schedule, or begins to when it is watched from now on; beside an expectation it never did.
  const mayStand = state.expectedAt === null || state.runs.some((run) => run.deadlineAt === null)
  if (mayStand && runs.some((run) => run.deadlineAt !== null && now < run.deadlineAt)) return next
  const isArmed = deadlineOf(state) !== null
  if (state.status === 'new') return isArmed ? { ...next, ...expectFromNow(spec, now) } : next
  const { expectedAt, dueAt } = expectAfterCompletion(spec, state.lastPingAt ?? now)
  return { ...next, expectedAt, dueAt: dueAt === null ? null : Math.max(dueAt, soonest) }
}
