/**
 * What a person without a log-in does by the link of a message (design, section 4, "Acknowledgement"): look at the
 * incident that the link names, and acknowledge it. Neither is limited to a tenant: the caller has read the link's
 * token.
 */

import { audited } from '../audit/audited.ts'
import type { Actor } from '../domain/access.ts'
import { type Acknowledgement, acknowledgementAt, type Incident } from '../domain/check.ts'
import type { StoredCheck } from '../store/checks/checks.ts'
import { findAnyCheck } from '../store/checks/declared-checks.ts'
import type { Context } from '../store/context.ts'
import { acknowledgeLocked } from './acknowledge.ts'
import { lockFound } from './with-locked-check.ts'

export interface OpenIncident {
  readonly check: StoredCheck
  /** Null: no acknowledgement holds. */
  readonly acknowledged: Acknowledgement | null
}

/** Null: the incident has ended, or its check is gone. */
export async function findIncident(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  incident: Incident,
): Promise<OpenIncident | null> {
  const check = await findAnyCheck(database, incident.checkId)
  if (check === null || !isOpen(check, incident)) return null
  return { check, acknowledged: acknowledgementAt(check.state, clock.now()) }
}

export interface LinkInput {
  /** What the person calls themselves: anything. */
  readonly name: string | null
  /** Where they call from. */
  readonly address: string
  /** How long it holds; left out: until the incident ends. */
  readonly forSeconds?: number | undefined
}

export interface Acknowledged extends OpenIncident {
  readonly acknowledged: Acknowledgement
  /** False: an earlier one holds, and nothing was changed. */
  readonly isNew: boolean
}

/** The first one holds. Null: the incident has ended, or its check is gone. */
export function acknowledgeByLink(
  context: Context,
  incident: Incident,
  { name, address, forSeconds }: LinkInput,
): Promise<Acknowledged | null> {
  const by: Actor = { kind: 'link', id: null, name, address }
  return audited<Acknowledged | null>(context, by, async (tx) => {
    const found = await lockFound(tx, () => findAnyCheck(tx, incident.checkId))
    if (found === null || !isOpen(found.record, incident)) return { result: null, acts: [] }
    const { record: check } = found
    const earlier = acknowledgementAt(check.state, context.clock.now())
    if (earlier !== null) return { result: { check, acknowledged: earlier, isNew: false }, acts: [] }
    const { result, acts } = await acknowledgeLocked(context, by, found, { forSeconds })
    return { result: { check: result, acknowledged: result.state.acknowledged!, isNew: true }, acts }
  })
}

/** A link has whole milliseconds. While the check is paused or up, there is nothing to acknowledge. */
function isOpen({ state: { status, incidentSince } }: StoredCheck, { since }: Incident): boolean {
  return status === 'down' && incidentSince !== null && Math.floor(incidentSince) === since
}
