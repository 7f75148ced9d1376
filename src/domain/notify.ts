/**
 * What is notified of an outcome, and what of that is not sent (design, section 4, "Quiet"): the only place that
 * decides it. Which channels want an event is decided where the event is stored.
 */

import { heldBy } from './channel.ts'
import { acknowledgementAt, type CheckSpec, type CheckState, type Instant } from './check.ts'
import { type CheckEvent, type Outcome, seenBy } from './check-event.ts'
import { type Circumstances, downAmong } from './circumstances.ts'
import { escalate } from './escalation.ts'
import type { Notice } from './event.ts'
import { countFlip, type Quieted, settle } from './quiet.ts'
import { remind } from './reminders.ts'
import { limitRepeats } from './repeats.ts'

/** What the state machine has decided, and what is around the check. */
interface Happened {
  readonly before: CheckState
  readonly event: CheckEvent
  readonly outcome: Outcome
  readonly around: Circumstances
}

export function notify(spec: CheckSpec, happened: Happened, now: Instant): Outcome {
  const { before, event, outcome, around } = happened
  const isEvaluated = event.kind === 'deadline' && before.notified !== null
  const quieted = outcome.flip === null && !isEvaluated ? outcome : beQuiet(spec, happened, now)
  const noticed = limitRepeats(silence(spec, before, addReminder(spec, happened, quieted, now), around), now)
  return addEscalation(happened, noticed, now)
}

/**
 * Adds what is notified of an outcome. Only a deadline ends flapping, because it alone knows our gaps: the first ping
 * after a downtime comes before the gap is on record.
 */
function beQuiet(spec: CheckSpec, { before: state, event, outcome, around }: Happened, now: Instant): Outcome {
  const { flip } = outcome
  const before: Quieted =
    event.kind === 'deadline'
      ? settle(spec, state, event.gaps, around, seenBy(event, now))
      : { quiet: state, notice: null, heldBy: null }
  const { quiet, notice, heldBy } =
    flip === null
      ? { quiet: before.quiet, notice: null, heldBy: null }
      : countFlip(spec, { before: state, flip, around }, before.quiet, now)
  const { incidentSince, changes, notified, quietAt, hold } = quiet
  return {
    ...outcome,
    state: { ...outcome.state, incidentSince, changes, notified, quietAt, hold },
    notice,
    heldBy,
    settled: before.notice,
    settledHeldBy: before.heldBy,
  }
}

/** Adds the reminder that is due, and when the recipients were last notified that the check is down. */
function addReminder(spec: CheckSpec, { before, around }: Happened, outcome: Outcome, now: Instant): Outcome {
  const { state, flip, notice, settled, counted } = outcome
  if (state.incidentSince === null || flip?.to === 'up') return { ...outcome, state: endIncident(state) }
  const isNotified = notice?.type === 'check.down' && outcome.heldBy === null
  if (isNotified || (settled?.type === 'check.down' && outcome.settledHeldBy === null)) {
    // Acknowledged while it was quiet: who keeps incidents has one of it from now on.
    const isInHand = state.status === 'down' && acknowledgementAt(state, now) !== null
    const acknowledged = isInHand ? acknowledgedNotice(state, now) : outcome.acknowledged
    return { ...outcome, state: { ...state, downNotifiedAt: now }, acknowledged }
  }
  if (before.status !== 'down') return outcome
  const hasFailed = state.consecutiveFailures > before.consecutiveFailures
  const failed = hasFailed ? ({ reason: 'failed', at: state.lastPingAt! } as const) : null
  const due = remind(spec, state, counted ?? failed, now)
  if (due === null) return outcome
  const { reminded, reminder, isAcknowledged } = due
  const down = downAmong(around.dependencies)
  const byOther = down === undefined ? null : heldBy({ by: 'dependency', id: down.id })
  const reminderHeldBy = isAcknowledged ? ({ reason: 'acknowledged', cause: null } as const) : byOther
  // A reminder that is not sent has no number.
  const reminders = reminderHeldBy === null ? reminded.reminders : state.reminders
  return { ...outcome, state: { ...state, ...reminded, reminders }, reminder, reminderHeldBy }
}

/** What is known of an incident ends with the incident. A check that is quiet stays acknowledged while it is down. */
function endIncident(state: CheckState): CheckState {
  const { status, downNotifiedAt, reminders, acknowledged } = state
  const kept = status === 'down' ? acknowledged : null
  if (downNotifiedAt === null && reminders === 0 && acknowledged === kept) return state
  return { ...state, downNotifiedAt: null, reminders: 0, acknowledged: kept }
}

/**
 * In a silence nothing is sent. A warning is not sent later, but for one that comes after the silence. A reminder by
 * time is due at its end.
 */
function silence(
  { remindEveryMs }: CheckSpec,
  before: CheckState,
  outcome: Outcome,
  { silence }: Circumstances,
): Outcome {
  if (silence === null) return outcome
  const silencedBy = heldBy({ by: 'silence', id: silence.id })
  const { warned, reminder, state } = outcome
  const isByTime = reminder !== null && reminder.at === state.since && remindEveryMs !== null
  return {
    ...outcome,
    silencedBy,
    state: {
      ...state,
      downNotifiedAt: isByTime ? Math.min(state.downNotifiedAt!, silence.until - remindEveryMs) : state.downNotifiedAt,
      warnedAt: warned === null ? state.warnedAt : before.warnedAt,
      // A reminder that is not sent has no number.
      reminders: reminder === null ? state.reminders : before.reminders,
    },
    warnedHeldBy: warned === null ? null : silencedBy,
    reminderHeldBy: reminder === null ? null : silencedBy,
  }
}

/** Adds what further channels are notified of, and when that is looked at next. */
function addEscalation({ event, around }: Happened, outcome: Outcome, now: Instant): Outcome {
  const { state, settled, settledHeldBy } = outcome
  const hasEnded = settled?.type === 'check.up' && settledHeldBy === null
  const known = hasEnded ? { ...state, escalation: null } : state
  const { escalation, escalated } = escalate(known, around, event.kind === 'deadline', now)
  return { ...outcome, state: { ...state, escalation }, escalated }
}

/** For receivers that keep incidents. */
export function acknowledgedNotice({ status, incidentSince }: CheckState, at: Instant): Notice {
  const facts = { from: status, to: status, downSince: incidentSince, flips: null }
  return { ...facts, type: 'check.acknowledged', reason: 'acknowledged', at }
}
