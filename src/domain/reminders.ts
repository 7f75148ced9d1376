/**
 * Reminders (design, section 4, "Reminders"): a check that is down is notified again, after a time or at each further
 * run that fails or is missed. They are numbered through. There are none while the check flaps: its recipients know
 * that it does.
 */

import {
  acknowledgementAt,
  type CheckSpec,
  type CheckState,
  type DownReason,
  type Instant,
  REASONS_OF,
} from './check.ts'
import type { Notice } from './event.ts'

type Reminded = Pick<
  CheckState,
  'status' | 'since' | 'reason' | 'incidentSince' | 'notified' | 'downNotifiedAt' | 'reminders' | 'acknowledged'
>

/** When the next reminder is due if nothing happens; null: none is. */
export function reminderDueAt({ remindEveryMs }: Pick<CheckSpec, 'remindEveryMs'>, state: Reminded): Instant | null {
  const { downNotifiedAt } = state
  return remindEveryMs === null || downNotifiedAt === null || !isKnownDown(state)
    ? null
    : downNotifiedAt + remindEveryMs
}

/** The recipients know that the check is down, and wait for its recovery. */
function isKnownDown({ status, incidentSince, notified, downNotifiedAt }: Reminded): boolean {
  return status === 'down' && incidentSince !== null && notified === null && downNotifiedAt !== null
}

/**
 * The reminder that is due at `now`: after the time, or because a further run has failed or was missed. Null: nothing.
 * After a long gap of ours one reminder is sent, not many.
 */
export function remind(
  spec: Pick<CheckSpec, 'remindEveryMs' | 'remindsOnEachRun'>,
  state: Reminded,
  further: { readonly reason: DownReason; readonly at: Instant } | null,
  now: Instant,
): {
  readonly isAcknowledged: boolean
  readonly reminded: Pick<CheckState, 'downNotifiedAt' | 'reminders'>
  readonly reminder: Notice
} | null {
  if (!isKnownDown(state)) return null
  const dueAt = reminderDueAt(spec, state)
  const isRun = further !== null && spec.remindsOnEachRun
  if (!isRun && (dueAt === null || now < dueAt)) return null
  const reminders = state.reminders + 1
  const known = REASONS_OF.down.find((reason) => reason === state.reason) ?? 'missed'
  const { reason, at } = isRun ? further : { reason: known, at: state.since }
  const facts = { from: 'down', to: 'down', downSince: state.incidentSince, flips: null } as const
  // The number is that of the reminders that are sent.
  const isAcknowledged = acknowledgementAt(state, now) !== null
  return {
    isAcknowledged,
    reminded: { downNotifiedAt: now, reminders: isAcknowledged ? state.reminders : reminders },
    reminder: { ...facts, type: 'check.down', reason, at, reminder: reminders },
  }
}
