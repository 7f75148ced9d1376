/**
 * The state machine (design, section 4): a spec, a state, an event and a time in; the next state and perhaps a flip out. Every status
 * handles every event. Nothing here reads a clock, and nothing else in the product changes a status.
 */

import {
  type Acknowledgement,
  type CheckSpec,
  type CheckState,
  type Gap,
  type Instant,
  isOpen,
  type Pause,
  type Run,
} from './check.ts'
import {
  type CheckEvent,
  type Completed,
  flipped,
  isCompleted,
  judgesRuns,
  NEXT,
  type Outcome,
  seenBy,
  unchanged,
} from './check-event.ts'
import { type Circumstances, NO_CIRCUMSTANCES } from './circumstances.ts'
import { abandonRun, endRun, refitFollowed, runsInPause, startRun } from './followed.ts'
import { latest } from './instant.ts'
import { addHistory, arrivalOf, flipNotBefore, isOvertaken, isRestarted } from './late-pings.ts'
import { LIMITS } from './limits.ts'
import { acknowledgedNotice, notify } from './notify.ts'
import { durationOf, isKept, refitRuns } from './open-runs.ts'
import { spare } from './own-downtime.ts'
import { NOT_QUIET, recentChanges } from './quiet.ts'
import { reminderDueAt } from './reminders.ts'
import { expectAfterCompletion, expectFromNow, expectWhileDown, NOTHING_EXPECTED, toleranceAt } from './schedule.ts'
import { type Counts, countCompletion, countMiss, isBelow, NO_COUNTS, reachedBy } from './thresholds.ts'
import { countWarning } from './warning.ts'

/** The state of a check that is created at `now`. Nothing is expected before its first ping, unless it is armed. */
export function newState(now: Instant): CheckState {
  return {
    status: 'new',
    since: now,
    reason: 'created',
    lastPingAt: null,
    lastOutcome: null,
    lastSuccessAt: null,
    lastDurationMs: null,
    lastStartAt: null,
    runs: [],
    pingsTotal: 0,
    ...NO_COUNTS,
    pause: null,
    ...NOTHING_EXPECTED,
    ...NOT_QUIET,
    downNotifiedAt: null,
    escalation: null,
    reminders: 0,
    acknowledged: null,
    repeats: [],
    warnedAt: null,
  }
}

/** The earliest time at which the check goes down if nothing happens; null when nothing is expected. */
export function deadlineOf(state: Pick<CheckState, 'status' | 'dueAt' | 'runs' | 'pause'>): Instant | null {
  if (NEXT[state.status].deadline === state.status || !judgesRuns(state)) return null
  let deadline = state.dueAt
  for (const { deadlineAt, isCounted } of state.runs) {
    if (isCounted !== true && deadlineAt !== null && (deadline === null || deadlineAt < deadline)) deadline = deadlineAt
  }
  return deadline
}

/** The same of a check that is down: when a run counts as missed that its recipients are notified of. */
function judgedAt(state: CheckState): Instant | null {
  return state.status === 'down' ? state.dueAt : deadlineOf(state)
}

/** The earliest time at which the check must be evaluated; null: nothing is awaited. */
export function evaluationOf(spec: CheckSpec, state: CheckState): Instant | null {
  const lookAt = state.hold?.lookAt ?? null
  const escalatesAt = state.escalation?.dueAt ?? null
  const times = [judgedAt(state), state.quietAt, lookAt, reminderDueAt(spec, state), escalatesAt, pauseEndOf(state)]
  const known = times.filter((time) => time !== null)
  return known.length === 0 ? null : Math.min(...known)
}

function pauseEndOf({ status, pause }: CheckState): Instant | null {
  return status === 'paused' && pause !== null ? pause.until : null
}

/** `around`: as it is at `now`. */
export function transition(
  spec: CheckSpec,
  state: CheckState,
  event: CheckEvent,
  now: Instant,
  around: Circumstances = NO_CIRCUMSTANCES,
): Outcome {
  return notify(spec, { before: state, event, outcome: decideAt(spec, state, event, now), around }, now)
}

/** A late ping counts from its arrival, unless something newer decides. What is notified of it counts from `now`. */
function decideAt(spec: CheckSpec, state: CheckState, event: CheckEvent, now: Instant): Outcome {
  const arrivedAt = arrivalOf(event)
  if (arrivedAt === null) return decide(spec, state, event, now)
  // As for any other event, what the state holds are whole milliseconds.
  const at = Math.floor(arrivedAt)
  if (!isOvertaken(state, at) && !isRestarted(state, event, at))
    return flipNotBefore(state.since, decide(spec, state, event, at))
  const durationMs = 'durationMs' in event ? event.durationMs : null
  return { ...unchanged(addHistory(state, event, at)), durationMs }
}

function decide(spec: CheckSpec, state: CheckState, event: CheckEvent, now: Instant): Outcome {
  switch (event.kind) {
    case 'success':
    case 'warn':
    case 'fail':
      return isFollowed(spec, event) ? endRun(spec, state, event, now) : complete(spec, state, event, now)
    case 'start':
      return isFollowed(spec, event) ? startRun(spec, state, event, now) : start(spec, state, event.runId, now)
    case 'abandon':
      return abandonRun(spec, state, event, now)
    case 'deadline': {
      const pauseEnd = pauseEndOf(state)
      if (pauseEnd !== null && now >= pauseEnd) return resume(spec, state, Math.max(pauseEnd, state.since))
      return expire(spec, state, event.gaps, seenBy(event, now))
    }
    case 'pause':
      return pause(spec, state, event.pause ?? null, now)
    case 'resume':
      return resume(spec, state, now)
    case 'update':
      return update(spec, state, event.isSameTiming === true, now)
    case 'arm':
      return unchanged(arm(spec, state, now))
    case 'disarm':
      return unchanged(isAwaitedInVain(state) ? { ...state, ...NOTHING_EXPECTED } : state)
    case 'revive': {
      const { lastPingAt, lastOutcome, lastSuccessAt, lastDurationMs, lastStartAt, pingsTotal } = event.kept
      const { incidentSince, escalation } = event.kept
      const last = { lastPingAt, lastOutcome, lastSuccessAt, lastDurationMs, lastStartAt }
      const kept = { ...last, pingsTotal, incidentSince, escalation }
      // What happened until now is history, as before a first success.
      const up = { status: 'up', since: now, reason: 'first_success', ...expectFromNow(spec, now) } as const
      return unchanged({ ...state, ...kept, ...(event.isUp === true ? up : {}) })
    }
    case 'restore':
      if (state.status !== 'new') return unchanged(state)
      return flipped({ ...state, ...expectWhileDown(spec, state, now) }, 'down', event.reason, now)
    case 'acknowledge':
      return acknowledge(state, event.acknowledged, now)
    case 'log':
      return unchanged({ ...state, pingsTotal: state.pingsTotal + 1 })
  }
}

/** Whether the check is resumed before this event is applied: a completion ends such a pause, a start or a log does not. */
export function resumesFirst(spec: CheckSpec, state: CheckState, event: CheckEvent): boolean {
  if (!isCompleted(event) || isFollowed(spec, event) || !spec.resumesOnPing || state.status !== 'paused') return false
  const arrivedAt = arrivalOf(event)
  return arrivedAt === null || !isOvertaken(state, arrivedAt)
}

/** Whether the rules of followed.ts apply: to what Jobs report, and to each ping of a check that follows a source. */
function isFollowed({ awaits }: CheckSpec, { job }: { readonly job?: unknown }): boolean {
  return awaits === 'start' || job !== undefined
}

function pause(spec: CheckSpec, state: CheckState, pause: Pause | null, now: Instant): Outcome {
  if (state.status === 'paused') return unchanged({ ...state, pause })
  // The incident is no longer one to have in hand: those that keep incidents end theirs.
  const next = { ...state, ...NOTHING_EXPECTED, runs: runsInPause(spec, state, now), pause, acknowledged: null }
  return flipped(next, NEXT[state.status].pause, 'paused', now)
}

function resume(spec: CheckSpec, state: CheckState, at: Instant): Outcome {
  const to = NEXT[state.status].resume
  if (to === state.status) return unchanged(state)
  // Of a source that went on, a run that took too long in the pause is known to be open still.
  const runs = spec.awaits === 'start' ? runsInPause(spec, state, at) : state.runs
  return flipped({ ...state, ...NO_COUNTS, runs, ...expectFromNow(spec, at) }, to, 'resumed', at)
}

function acknowledge(state: CheckState, acknowledged: Acknowledgement | null, now: Instant): Outcome {
  const { status, incidentSince, acknowledged: before } = state
  const next = unchanged({ ...state, acknowledged })
  // Who keeps the incident is notified once. What was not notified as down is no incident there.
  if (acknowledged === null || before !== null || incidentSince === null || status !== 'down') return next
  return { ...next, acknowledged: acknowledgedNotice(state, now) }
}

/** A threshold that is changed to the count or below it takes the check down. */
function update(spec: CheckSpec, state: CheckState, isSameTiming: boolean, now: Instant): Outcome {
  const refitted = spec.awaits === 'start' ? refitFollowed(spec, state, now) : refit(spec, state, now)
  const next = isSameTiming
    ? { ...state, ...(state.status === 'down' ? expectWhileDown(spec, state, now) : {}) }
    : refitted
  const isWatched = state.status === 'up' || state.status === 'new'
  const reached = isWatched ? reachedBy(state, spec) : null
  if (reached === null) return unchanged(next)
  return flipped({ ...next, ...expectWhileDown(spec, next, now) }, 'down', reached, now)
}

/** Whether the check is new and expects nothing: `arm` changes that. */
export function isUnarmed(state: CheckState): boolean {
  return state.status === 'new' && deadlineOf(state) === null
}

/** Whether the check is new and expects a completion, and its job has reported nothing since: `disarm` changes that. */
export function isAwaitedInVain({ status, since, dueAt, lastPingAt, lastStartAt }: CheckState): boolean {
  const hasReported = [lastPingAt, lastStartAt].some((at) => at !== null && at >= since)
  return status === 'new' && dueAt !== null && !hasReported
}

function arm(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  return isUnarmed(state) ? { ...state, ...expectFromNow(spec, now) } : state
}

function complete(spec: CheckSpec, state: CheckState, event: Completed, now: Instant): Outcome {
  const run = state.runs.find((candidate) => candidate.id === event.runId)
  const durationMs = event.durationMs ?? durationOf(run, now)
  const runs = state.runs.filter((other) => other !== run && isKept(other, now))
  const lastSuccessAt = event.kind === 'fail' ? state.lastSuccessAt : now
  const pingsTotal = state.pingsTotal + 1
  const changes = recentChanges(state, now)
  const counts: Counts = state.status === 'paused' ? state : countCompletion(state, event.kind, run)
  const { consecutiveFailures, consecutiveMisses } = counts
  const to = isBelow(spec, state, event, counts) ? state.status : NEXT[state.status][event.kind]
  const { counted, warned } = countWarning(state, { kind: event.kind, to, at: now })
  const last = { lastPingAt: now, lastSuccessAt, lastDurationMs: durationMs, ...counted }
  const seen = { ...state, ...last, runs, pingsTotal, changes, consecutiveFailures, consecutiveMisses }
  if (to === 'paused') return { ...unchanged(seen), durationMs }
  if (to === 'down') {
    const next = { ...seen, ...expectWhileDown(spec, expectAfterCompletion(spec, now), now) }
    return { ...flipped(next, to, 'failed', now), durationMs }
  }
  // A hung run that was already reported must not take the check down again the moment it recovers.
  const still = state.status === 'down' ? runs.filter((other) => isOpen(other, now)) : runs
  const next = { ...seen, ...expectAfterCompletion(spec, now), runs: still }
  return { ...flipped(next, to, state.status === 'new' ? 'first_success' : 'recovered', now), durationMs, warned }
}

function start(spec: CheckSpec, state: CheckState, runId: string | null, now: Instant): Outcome {
  const others = state.runs.filter((run) => run.id !== runId && isKept(run, now))
  const seen = { ...state, lastStartAt: latest(state.lastStartAt, now), pingsTotal: state.pingsTotal + 1 }
  if (others.length >= LIMITS.openRuns) return { ...unchanged({ ...seen, runs: others }), runRefused: true }

  const isWatched = spec.maxRuntimeMs !== null && state.status !== 'paused'
  const deadlineAt = isWatched ? deadlineOfStart(spec, state, runId, now) : null
  const run: Run = { id: runId, startedAt: now, deadlineAt }
  const started = { ...seen, runs: [...others, run] }
  // From now on the run's own deadline replaces the schedule, until a completion sets the next expectation.
  const isInTime = state.dueAt === null || now < state.dueAt
  if (isWatched && isInTime && state.status !== 'down') return unchanged({ ...started, ...NOTHING_EXPECTED })
  // While the check is down no deadline of a run counts: the next miss waits for the run, but for no second one that
  // begins.
  const isAlone = others.every((other) => !isOpen(other, now))
  if (isWatched && isInTime && isAlone && state.dueAt !== null)
    return unchanged({ ...started, dueAt: Math.max(state.dueAt, deadlineAt!) })
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

function expire(spec: CheckSpec, state: CheckState, gaps: readonly Gap[], now: Instant): Outcome {
  const passed = judgedAt(state)
  // A ping that was committed first has moved the deadline.
  if (passed === null || now < passed) return unchanged(state)
  // Our downtime hides nothing of a Job.
  const { state: spared, outage } = spec.awaits === 'start' ? { state, outage: null } : spare(spec, state, gaps)
  const deadline = judgedAt(spared)
  if (deadline === null || now < deadline) return { ...unchanged(spared), outage }
  const reason = spared.dueAt !== null && spared.dueAt <= deadline ? 'missed' : 'overran'
  const at = Math.max(deadline, state.since)
  const missed = { ...spared, ...countMiss(state) }
  if (state.status === 'down' || missed.consecutiveMisses < spec.missesBeforeDown)
    return { ...unchanged(rearm(spec, missed, reason, deadline, now)), outage, counted: { reason, at } }
  const next = { ...missed, ...expectWhileDown(spec, rearm(spec, missed, reason, deadline, now), at) }
  return { ...flipped(next, NEXT[state.status].deadline, reason, at), outage }
}

/** The state after an interval that counts as missed, with the next one expected. */
function rearm(
  spec: CheckSpec,
  state: CheckState,
  reason: 'missed' | 'overran',
  deadline: Instant,
  now: Instant,
): CheckState {
  if (reason === 'missed') {
    // While the check is down one miss stands for all that passed meanwhile: after a long gap of ours one reminder is
    // sent.
    const from = state.status === 'down' ? Math.max(state.expectedAt!, now - spec.graceMs) : state.expectedAt!
    return { ...state, ...expectFromNow(spec, from) }
  }
  const isOver = ({ deadlineAt }: Run) => deadlineAt !== null && deadlineAt <= deadline
  // The Job of a run still runs, until its end is reported.
  const end = spec.awaits === 'start' ? { deadlineAt: null } : {}
  const runs = state.runs.map((run) => (isOver(run) ? { ...run, ...end, isCounted: true as const } : run))
  const isScheduled = state.status === 'paused' || state.dueAt !== null
  return { ...state, runs, ...(isScheduled ? {} : expectFromNow(spec, deadline)) }
}

/** The state under a changed spec. No check goes down because of a changed spec: no deadline is before now + grace. */
function refit(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  const soonest = now + spec.graceMs
  const runs = refitRuns(spec, state, now)
  const next = { ...state, ...NOTHING_EXPECTED, runs }
  if (state.status === 'down') return { ...next, ...expectWhileDown(spec, NOTHING_EXPECTED, now) }
  if (state.status === 'paused') return next
  // A run replaces the schedule if it did so before, or if it gets its first deadline now; not beside an expectation.
  const mayReplace = state.expectedAt === null || state.runs.some((run) => run.deadlineAt === null)
  if (mayReplace && runs.some((run) => run.deadlineAt !== null && now < run.deadlineAt)) return next
  const isArmed = deadlineOf(state) !== null
  if (state.status === 'new') return isArmed ? { ...next, ...expectFromNow(spec, now) } : next
  const { expectedAt, dueAt } = expectAfterCompletion(spec, state.lastPingAt ?? now)
  return { ...next, expectedAt, dueAt: dueAt === null ? null : Math.max(dueAt, soonest) }
}
