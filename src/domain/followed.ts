/**
 * The rules of a check that follows a source (design, section 4, "Jobs"): the Jobs of a CronJob report its runs. A slot awaits a start, each run its
 * end. A Job gives its own times, and its reports may come late, in any order: what is older than the last completion is history, and changes no
 * status. While its source is suspended nothing is scheduled, and the check is paused; a run that a person starts all the same is judged.
 */

import { type CheckSpec, type CheckState, type Completion, type Instant, isOpen, type Run } from './check.ts'
import {
  type CheckEvent,
  type Completed,
  flipped,
  type JobEnd,
  judgesRuns,
  NEXT,
  type Outcome,
  unchanged,
} from './check-event.ts'
import { nextSlot } from './cron.ts'
import { latest } from './instant.ts'
import { LIMITS } from './limits.ts'
import { durationOf, isKept, refitRuns } from './open-runs.ts'
import { recentChanges } from './quiet.ts'
import { type Expectation, expectFromNow, expectWhileDown, NOTHING_EXPECTED } from './schedule.ts'
import { type Counts, countCompletion, countMiss, isBelow } from './thresholds.ts'
import { countWarning } from './warning.ts'

type Start = CheckEvent & { readonly kind: 'start' }
type Abandonment = CheckEvent & { readonly kind: 'abandon' }

/** Times of Jobs are cut off to whole seconds, those of pings are not. */
export const JOB_TIME_MS = 1_000

export function startRun(spec: CheckSpec, state: CheckState, { runId, job }: Start, now: Instant): Outcome {
  const at = job?.at ?? now
  const seen = {
    ...state,
    ...expectAfterStart(spec, state, job?.slotAt ?? at),
    lastStartAt: latest(state.lastStartAt, at),
    pingsTotal: state.pingsTotal + (job?.isStored === true ? 0 : 1),
  }
  if (job?.isOver === true) return unchanged(seen)
  const others = state.runs.filter((run) => run.id !== runId && isKept(run, now))
  if (others.length >= LIMITS.openRuns) return { ...unchanged({ ...seen, runs: others }), runRefused: true }
  const deadlineAt = deadlineOfStart(spec, state, at, job?.createdAt)
  const slotAt = latest(satisfiedBy(state), job?.slotAt ?? at)
  const run: Run = {
    id: runId,
    startedAt: at,
    deadlineAt,
    ...(job === undefined ? {} : { slotAt }),
    ...(job?.isOverruled === true ? { isOverruled: true } : {}),
  }
  return unchanged({ ...seen, runs: [...others, run] })
}

/** Of a run that started before the check was watched: no earlier than its grace time after that, and none if it was over time by then. */
function deadlineOfStart(spec: CheckSpec, state: CheckState, at: Instant, createdAt = at): Instant | null {
  if (spec.maxRuntimeMs === null) return null
  const deadlineAt = at + spec.maxRuntimeMs
  const since = watchedSince(state, createdAt)
  if (at >= since) return deadlineAt
  return deadlineAt <= since ? null : Math.max(deadlineAt, since + spec.graceMs)
}

/** What is expected once a run for `slotAt` has started: it satisfies that slot and all before it. */
function expectAfterStart(spec: CheckSpec, state: CheckState, slotAt: Instant): Expectation {
  const { status, since, expectedAt, dueAt } = state
  if (status === 'paused' || (status === 'down' && expectedAt === null)) return { expectedAt, dueAt }
  if (expectedAt === null) return expectFromNow(spec, Math.max(slotAt, since))
  const next = expectFromNow(spec, slotAt)
  return next.expectedAt !== null && next.expectedAt <= expectedAt ? { expectedAt, dueAt } : next
}

export function endRun(spec: CheckSpec, state: CheckState, event: Completed, now: Instant): Outcome {
  const { kind, runId, job } = event
  const at = job?.at ?? now
  // A Job without a run id is known from its CronJob alone. The run without an id is the container's.
  const run = runId === null && job !== undefined ? undefined : state.runs.find(({ id }) => id === runId)
  const others = runsAfter(state, run, { at, now })
  const pingsTotal = state.pingsTotal + 1
  if (kind !== 'fail' && job !== undefined && (job.isOverruled === true || run?.isOverruled === true))
    return { ...unchanged({ ...state, runs: others, pingsTotal }), isLogged: true }

  const durationMs = event.durationMs ?? durationOf(run, at)
  const counted: CheckState = {
    ...state,
    // Without a start before it, it is the first sign of a run.
    ...(run === undefined ? expectAfterStart(spec, state, at) : {}),
    lastSuccessAt: kind === 'fail' ? state.lastSuccessAt : latest(state.lastSuccessAt, at),
    // Which one a ping without a run id is about is known only where one is open.
    runs: job === undefined && isOneJob(state.runs, now) ? others.map((other) => overrule(other, kind)) : others,
    pingsTotal,
    changes: recentChanges(state, now),
  }
  if (isHistory(state, at)) return { ...unchanged(counted), durationMs }
  const isJudged = spec.awaits === 'start' && state.status === 'paused' && judgesRuns(state) && kind === 'fail'
  const counts: Counts = state.status === 'paused' && !isJudged ? state : countCompletion(state, kind, run)
  const after = isJudged ? 'down' : NEXT[state.status][kind]
  const to = isBelow(spec, state, event, counts) ? state.status : after
  const isBefore = job !== undefined && isPast(state, job)
  const warning = countWarning(state, { kind, to, at: Math.min(at, now), isPast: isBefore })
  const seen = { ...counted, ...warning.counted, lastPingAt: latest(state.lastPingAt, at), lastDurationMs: durationMs }
  const { consecutiveFailures, consecutiveMisses } = counts
  if (to === 'paused') return { ...unchanged({ ...seen, consecutiveFailures, consecutiveMisses }), durationMs }
  if (isBefore && !(kind !== 'fail' && isFirstSuccess(state, job))) {
    // While a check is up, its last completion was no fail.
    return { ...unchanged(state.status === 'up' && kind === 'fail' ? counted : seen), durationMs }
  }
  const judged = { ...seen, consecutiveFailures, consecutiveMisses }
  // A fail below its threshold leaves the check new.
  if (to === 'new') return { ...unchanged(judged), durationMs }
  return { ...turn(spec, state, judged, to, { run, at, now }), durationMs, warned: warning.warned }
}

/** Whether a completion after `at` is known. */
function isHistory({ lastPingAt }: CheckState, at: Instant): boolean {
  return lastPingAt !== null && at < lastPingAt - (lastPingAt % JOB_TIME_MS)
}

/** `seen`: `state` with the completion, which is not history. */
function turn(
  spec: CheckSpec,
  state: CheckState,
  seen: CheckState,
  to: 'up' | 'down',
  { run, at, now }: { run: Run | undefined; at: Instant; now: Instant },
): Outcome {
  const flippedAt = Math.max(state.since, Math.min(at, now))
  if (to === 'down') return flipped({ ...seen, ...expectWhileDown(spec, seen, flippedAt) }, to, 'failed', flippedAt)
  if (state.status !== 'down') return flipped(seen, to, 'first_success', flippedAt)
  // Without a start before it, it is the first sign of a run.
  const satisfiedAt = latest(satisfiedBy(state), run === undefined ? at : (run.slotAt ?? run.startedAt))
  const expectation = expectAfterRecovery(spec, satisfiedAt, flippedAt)
  // A hung run that was already reported must not take the check down again the moment it recovers. Its Job still runs.
  const runs = seen.runs.map((other) => (isOpen(other, flippedAt) ? other : { ...other, deadlineAt: null }))
  return flipped({ ...seen, ...expectation, runs }, 'up', 'recovered', flippedAt)
}

/** The slots up to here are satisfied, as far as it is known while the check is down: from the open runs, else from the last start. */
function satisfiedBy({ runs, lastStartAt }: CheckState): Instant | null {
  if (runs.length === 0) return lastStartAt
  return Math.max(...runs.map(({ slotAt, startedAt }) => slotAt ?? startedAt))
}

/** The slots that passed while the check was down are not judged: no run can satisfy one any more that was due by then. */
function expectAfterRecovery(spec: CheckSpec, satisfiedAt: Instant, recoveredAt: Instant): Expectation {
  const next = expectFromNow(spec, satisfiedAt)
  if (next.dueAt === null || next.dueAt > recoveredAt) return next
  return expectFromNow(spec, spec.schedule.kind === 'period' ? recoveredAt : recoveredAt - spec.graceMs)
}

/** Whether the run ended before the check was watched. */
function isPast(state: CheckState, { at, createdAt }: JobEnd): boolean {
  return at < watchedSince(state, createdAt)
}

/** When the check was created, revived, paused or resumed, as far as its last flip says. */
function watchedSince({ since, reason }: CheckState, createdAt: Instant): Instant {
  const last = Math.max(createdAt, since)
  // A run may end in the second in which the check is paused.
  if (reason === 'paused') return last - (last % JOB_TIME_MS)
  const isSinceWatched = reason === 'created' || reason === 'resumed' || reason === 'first_success'
  return isSinceWatched ? last : createdAt
}

/** A check whose last run before its creation was a success is up; one that was resumed awaits a run. */
function isFirstSuccess({ status, reason }: CheckState, { isSuperseded = false }: JobEnd): boolean {
  return status === 'new' && reason !== 'resumed' && !isSuperseded
}

/** The other runs once `run` has ended. */
function runsAfter(
  state: CheckState,
  run: Run | undefined,
  { at, now }: { at: Instant; now: Instant },
): readonly Run[] {
  const kept = state.runs.filter((other) => other !== run && isKept(other, now))
  const slotAt = run?.slotAt
  if (slotAt === undefined) return kept
  // That its slot is satisfied is known from those that still run.
  if (kept.some(isOfJob))
    return kept.map((other) => (isOfJob(other) ? { ...other, slotAt: latest(slotAt, other.slotAt!) } : other))
  // Its container does not report the end of the run that it started without an id.
  return kept.filter(({ id, startedAt }) => id !== null || startedAt >= at + JOB_TIME_MS)
}

const isOfJob = ({ slotAt }: Run) => slotAt !== undefined

function isOneJob(runs: readonly Run[], now: Instant): boolean {
  return runs.filter((run) => isOfJob(run) && isKept(run, now)).length === 1
}

/** Of a run of a Job whose container sent a completion itself. */
function overrule({ isOverruled: _, ...run }: Run, kind: Completion): Run {
  return kind !== 'success' && isOfJob(run) ? { ...run, isOverruled: true } : run
}

/** A run that its source replaced by the next one overran, whatever its maximum run time: a job that always hangs would never alarm otherwise. */
export function abandonRun(
  spec: CheckSpec,
  state: CheckState,
  { runId, at, overran }: Abandonment,
  now: Instant,
): Outcome {
  const run = state.runs.find(({ id }) => id === runId)
  const runs = runsAfter(state, run, { at: at ?? now, now })
  const closed = { ...state, runs, pingsTotal: state.pingsTotal + (at === null ? 0 : 1) }
  const to = NEXT[state.status].deadline
  const isIgnored = overran === undefined || to === state.status || !judgesRuns(state)
  if (isIgnored || isHistory(state, overran.at) || isPast(state, overran)) return unchanged(closed)
  const flippedAt = Math.max(state.since, Math.min(overran.at, now))
  const missed = { ...closed, ...countMiss(state) }
  if (missed.consecutiveMisses < spec.missesBeforeDown)
    return { ...unchanged(missed), counted: { reason: 'overran', at: flippedAt } }
  return flipped({ ...missed, ...expectWhileDown(spec, missed, flippedAt) }, to, 'overran', flippedAt)
}

/**
 * A pause drops the runs that pings report: their ends may never be reported. The end of a Job is reported, so its run
 * stays and is judged. An overrun that is known is not reported again.
 */
export function runsInPause({ awaits }: CheckSpec, { runs }: CheckState, now: Instant): readonly Run[] {
  return awaits === 'start' ? runs.map((run) => (isOpen(run, now) ? run : { ...run, deadlineAt: null })) : []
}

/** The state under a changed spec. An expectation that is still a slot is kept; no deadline is before now + grace. */
export function refitFollowed(spec: CheckSpec, state: CheckState, now: Instant): CheckState {
  const next = { ...state, runs: refitRuns(spec, state, now) }
  const { status, expectedAt } = state
  if (status === 'down') return { ...next, ...expectWhileDown(spec, NOTHING_EXPECTED, now) }
  if (status === 'paused') return { ...next, ...NOTHING_EXPECTED }
  const isUnarmed = status === 'new' && expectedAt === null && state.runs.every((run) => run.deadlineAt === null)
  if (isUnarmed) return next
  const slot = expectedAt !== null && isSlot(spec, expectedAt, now) ? expectedAt : expectFromNow(spec, now).expectedAt
  if (slot === null) return { ...next, ...NOTHING_EXPECTED }
  return { ...next, expectedAt: slot, dueAt: Math.max(slot, now) + spec.graceMs }
}

function isSlot({ schedule }: CheckSpec, at: Instant, now: Instant): boolean {
  return schedule.kind === 'period' ? at <= now + schedule.periodMs : nextSlot(schedule.cron, at - 1) === at
}
