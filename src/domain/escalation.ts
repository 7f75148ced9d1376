/**
 * Escalation (design, section 4, "Escalation"): a channel with `after_seconds` is notified of an incident that is so
 * old, is still down and in no one's hand. Who was notified of an incident is notified of all of it.
 */

import { AFTER_SECONDS, type Held } from './channel.ts'
import { acknowledgementAt, type CheckState, type Escalation, type Instant } from './check.ts'
import { type Circumstances, downAmong, LOOK_MS } from './circumstances.ts'
import type { Notice, NotifiedType } from './event.ts'
import { againNotice, isKnownDown } from './reminders.ts'

/** Which channels an event is for, by their `after_seconds` in milliseconds. */
export interface Reach {
  /** Those with more than this, */
  readonly above: number
  /** and no more than this, get it. */
  readonly upTo: number
  /** Those with no more than this have a delivery, which says why they do not get it. */
  readonly listed: number
}

const FROM_FIRST = -1_000
const LAST = AFTER_SECONDS.max * 1_000
/** All that are notified at once. */
export const AT_ONCE: Reach = { above: FROM_FIRST, upTo: 0, listed: 0 }

/** Of an event of a check that was `before` it. `suppressed`: why no channel is sent the event. */
export function reachOf(
  type: NotifiedType,
  before: Pick<CheckState, 'incidentSince' | 'escalation'>,
  suppressed: Held | null,
): Reach {
  const upTo = before.escalation?.upTo ?? 0
  switch (type) {
    case 'check.down':
      return { above: FROM_FIRST, upTo, listed: upTo }
    // A channel may have been notified before the escalation began anew.
    case 'check.acknowledged':
      return { above: FROM_FIRST, upTo, listed: LAST }
    case 'check.up':
    case 'check.paused': {
      const isEnd = before.incidentSince !== null && suppressed === null
      return { above: FROM_FIRST, upTo, listed: isEnd ? LAST : upTo }
    }
    default:
      return AT_ONCE
  }
}

interface Escalated {
  readonly escalation: Escalation | null
  /** To the channels above the `upTo` of before. */
  readonly escalated: Notice | null
}

/**
 * How far the incident is escalated, and what is notified of that. Only an evaluation (`isEvaluated`) notifies. What
 * passed while the check was in a hand, or in a silence, is notified after it, at once.
 */
export function escalate(state: CheckState, around: Circumstances, isEvaluated: boolean, now: Instant): Escalated {
  const { incidentSince } = state
  if (incidentSince === null) return { escalation: null, escalated: null }
  const upTo = state.escalation?.upTo ?? 0
  const [next, ...later] = isKnownDown(state) ? around.escalations.filter((after) => after > upTo) : []
  // After a pause a check goes down in the same incident, and its time counts anew.
  const since = Math.max(incidentSince, state.since)
  const dueAt = next === undefined ? null : Math.max(since + next, heldUntil(state, around, now))
  if (dueAt === null || now < dueAt || !isEvaluated) return { escalation: toEscalation(upTo, dueAt), escalated: null }
  const passed = later.filter((after) => since + after <= now)
  const following = later[passed.length]
  return {
    escalation: toEscalation(passed.at(-1) ?? next!, following === undefined ? null : since + following),
    escalated: { ...againNotice(state), escalated: true },
  }
}

function toEscalation(upTo: number, dueAt: Instant | null): Escalation | null {
  if (dueAt !== null && Number.isFinite(dueAt)) return { upTo, dueAt }
  return upTo === 0 ? null : { upTo, dueAt: null }
}

/** Until when nothing is escalated, as far as is known. A silence can be removed earlier, and another check recover. */
function heldUntil(state: CheckState, { silence, dependencies }: Circumstances, now: Instant): Instant {
  const acknowledged = acknowledgementAt(state, now)
  const inHand = acknowledged === null ? now : (acknowledged.until ?? Number.POSITIVE_INFINITY)
  const silencedUntil = silence === null ? now : Math.min(silence.until, now + LOOK_MS)
  return Math.max(inHand, silencedUntil, downAmong(dependencies) === undefined ? now : now + LOOK_MS)
}
