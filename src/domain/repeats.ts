/**
 * A client that has a ping URL can make a check warn, and fail while it is down, at any rate (design, section 4,
 * "Flapping"). So warnings and reminders of runs are bounded as changes are: of more within the window nothing is sent.
 * Reminders by time are rare enough.
 */

import type { Instant } from './check.ts'
import type { Outcome } from './check-event.ts'
import { FLAPPING } from './limits.ts'
import { FLAPS } from './quiet.ts'

/** The outcome, with what is too often withheld. A reminder that is not sent has no number of its own. */
export function limitRepeats(outcome: Outcome, now: Instant): Outcome {
  const { state, warned, reminder, reminderHeldBy, silencedBy } = outcome
  // A reminder by time is dated when the check went down.
  const isOfRun = reminder !== null && reminderHeldBy === null && reminder.at !== state.since
  if (silencedBy !== null || (warned === null && !isOfRun)) return outcome
  const recent = state.repeats.filter((at) => now - at < FLAPPING.windowMs)
  if (recent.length < FLAPPING.changes) return { ...outcome, state: { ...state, repeats: [...recent, now] } }
  const held = { ...outcome, warnedHeldBy: warned === null ? null : FLAPS }
  if (!isOfRun) return held
  return { ...held, reminderHeldBy: FLAPS, state: { ...state, reminders: state.reminders - 1 } }
}
