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
export function isKnownDown({ status, incidentSince, notified, downNotifiedAt }: Reminded): boolean {
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
  // The number is that of the reminders that are sent.
  const isAcknowledged = acknowledgementAt(state, now) !== null
  return {
    isAcknowledged,
    reminded: { downNotifiedAt: now, reminders: isAcknowledged ? state.reminders : reminders },
    reminder: { ...againNotice(state), ...(isRun ? further : {}), reminder: reminders },
  }
}

/** That the check is down still: of the flip that took it down. */
export function againNotice({ reason, since, incidentSince }: Reminded): Notice {
  const known = REASONS_OF.down.find((one) => one === reason) ?? 'missed'
  const facts = { from: 'down', to: 'down', downSince: incidentSince, flips: null } as const
  return { ...facts, type: 'check.down', reason: known, at: since }
}
