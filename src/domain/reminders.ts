/**
 * Reminders (design, section 4, "Reminders"): a check that is down is notified again, after a time or at each further run that
 * fails or is missed. They are numbered through. While the check flaps there are none: its recipients were told so.
 */

import type { CheckSpec, CheckState, DownReason, Instant } from './check.ts'
import { REASONS_OF } from './check.ts'
import type { Notice } from './event.ts'

type Reminded = Pick<CheckState, 'status' | 'since' | 'reason' | 'incidentSince' | 'notified' | 'toldAt' | 'reminders'>

/** When the next reminder is due if nothing happens; null: none is. */
export function reminderDueAt({ remindEveryMs }: Pick<CheckSpec, 'remindEveryMs'>, state: Reminded): Instant | null {
  const { toldAt } = state
  return remindEveryMs === null || toldAt === null || !isTold(state) ? null : toldAt + remindEveryMs
}

/** The recipients know that the check is down, and wait for its recovery. */
function isTold({ status, incidentSince, notified, toldAt }: Reminded): boolean {
  return status === 'down' && incidentSince !== null && notified === null && toldAt !== null
}

/**
 * What is told again at `now`: after the time, or because a further run has failed or was missed. Null: nothing. After a long
 * gap of ours one reminder is sent, not many.
 */
export function remind(
  spec: Pick<CheckSpec, 'remindEveryMs' | 'remindsOnEachRun'>,
  state: Reminded,
  further: { readonly reason: DownReason; readonly at: Instant } | null,
  now: Instant,
): { readonly told: Pick<CheckState, 'toldAt' | 'reminders'>; readonly reminder: Notice } | null {
  if (!isTold(state)) return null
  const dueAt = reminderDueAt(spec, state)
  const isRun = further !== null && spec.remindsOnEachRun
  if (!isRun && (dueAt === null || now < dueAt)) return null
  const reminders = state.reminders + 1
  const known = REASONS_OF.down.find((reason) => reason === state.reason) ?? 'missed'
  const { reason, at } = isRun ? further : { reason: known, at: state.since }
  const facts = { from: 'down', to: 'down', downSince: state.incidentSince, flips: null } as const
  return {
    told: { toldAt: now, reminders },
    reminder: { ...facts, type: 'check.down', reason, at, reminder: reminders },
  }
}
