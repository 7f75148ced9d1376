/** Acknowledging an incident: a person has it in hand, so its recipients are not reminded (domain/reminders.ts). */

import { doerOf, type Principal } from '../domain/access.ts'
import type { Acknowledgement } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { toIso } from '../domain/instant.ts'
import type { CheckRecord, StoredCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { actOn, applyEvents, type LockedWork, withLockedCheck } from './with-locked-check.ts'

export interface AcknowledgeInput {
  /** How long it holds; left out: until the incident ends. */
  readonly forSeconds?: number | undefined
  readonly comment?: string | null | undefined
}

/**
 * Replaces an earlier acknowledgement. Throws AppError `not_found`, and `not_down` for a check that is not down.
 */
export function acknowledgeCheck(
  context: Context,
  by: Principal,
  id: string,
  input: AcknowledgeInput = {},
): Promise<CheckRecord> {
  return withLockedCheck(context, by, id, (work) => acknowledgeLocked(context, by, work, input))
}

/** The same of a check whose state the transaction has locked. */
export async function acknowledgeLocked(
  context: Context,
  by: Principal,
  { tx, record, locked }: LockedWork,
  { forSeconds, comment = null }: AcknowledgeInput,
) {
  rejectUnlessDown(record)
  const at = context.clock.now()
  const until = forSeconds === undefined ? null : at + forSeconds * 1_000
  const acknowledged: Acknowledgement = { by: doerOf(by), at, until, comment }
  const state = await applyEvents(tx, locked, [{ kind: 'acknowledge', acknowledged }], context)
  const detail = until === null ? {} : { until: toIso(until) }
  return { result: { ...record, state }, acts: [actOn(record, 'check.acknowledged', detail)] }
}

/** The recipients are reminded again. Throws as `acknowledgeCheck` does. */
export function endAcknowledgement(context: Context, by: Principal, id: string): Promise<CheckRecord> {
  return withLockedCheck(context, by, id, async ({ tx, record, locked }) => {
    rejectUnlessDown(record)
    if (record.state.acknowledged === null) return { result: record, acts: [] }
    const state = await applyEvents(tx, locked, [{ kind: 'acknowledge', acknowledged: null }], context)
    return { result: { ...record, state }, acts: [actOn(record, 'check.unacknowledged')] }
  })
}

function rejectUnlessDown({ state }: StoredCheck): void {
  if (state.status !== 'down') throw new AppError('not_down', {})
}
