/** Carries a plan out. Each function returns the check as it is stored. */

import { randomUUID } from 'node:crypto'
import type { CheckSpec } from '../../domain/check.ts'
import { stampAfter } from '../../domain/instant.ts'
import { deriveSlug } from '../../domain/slug.ts'
import { newState, transition } from '../../domain/transition.ts'
import { newId } from '../../runtime/ids.ts'
import { type StoredCheck, saveSpec } from '../../store/checks/checks.ts'
import { textsOf } from '../../store/checks/columns.ts'
import { saveDeclared } from '../../store/checks/declared-checks.ts'
import { type LockedCheck, lockStates } from '../../store/checks/states.ts'
import { deleteTombstone } from '../../store/checks/tombstones.ts'
import type { Context } from '../../store/context.ts'
import { makeAlertsDue } from '../../store/outbox/alerts.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { addCheck, addFirstCheck, findFreeSlug } from '../add-check.ts'
import { applyEvents } from '../with-locked-check.ts'
import type { Change, Creation, Declaration } from './plan.ts'

/** A declaration at work; `spec` is its spec as the state machine reads it. */
export interface Declaring {
  readonly context: Context
  readonly wanted: Declaration
  readonly spec: CheckSpec
}

/** Creates the check in the transaction that holds the resource's lock. */
export async function create(declaring: Declaring, tx: Queryable, plan: Creation): Promise<StoredCheck> {
  const { row, like, stored, events, toCheck } = describeNew(declaring, plan)
  if (plan.tombstone !== null) await deleteTombstone(tx, plan.tombstone.key)
  // Never null: a taken slug gets a number.
  const added = (await addCheck(tx, row, { like }, stored))!
  if (events.length === 0) return toCheck(added)
  const [locked] = await lockStates(tx, [added.key])
  return { ...toCheck(added), state: await applyEvents(tx, locked!, events, declaring.context) }
}

/** Creates the check in one statement, without a lock. Null when something is in its way (insertFirstCheck). */
export async function createFirst(declaring: Declaring, plan: Creation): Promise<StoredCheck | null> {
  const { row, like, stored, events, toCheck } = describeNew(declaring, plan)
  const added = events.length > 0 ? null : await addFirstCheck(declaring.context.database, row, like, stored)
  return added === null ? null : toCheck(added)
}

/** What a new check begins with; `events` are those that still have to happen to it. */
function describeNew({ context, wanted, spec }: Declaring, { tombstone, events: [begin, ...events] }: Creation) {
  const { resource, projectId, suspend } = wanted
  const stampedAt = stampAfter(tombstone?.stampedAt ?? 0, context.clock.now())
  const now = Math.floor(stampedAt)
  const { id, publicId, createdAt } = tombstone ?? {
    id: newId(stampedAt),
    publicId: randomUUID(),
    createdAt: stampedAt,
  }
  const identity = { id, publicId, projectId, createdAt, ...textsOf(wanted) }
  const stored = { spec: wanted.spec, state: transition(spec, newState(now), begin, now).state, stampedAt }
  return {
    row: { ...identity, ...(tombstone === null ? {} : { key: tombstone.key }), kubernetes: { ...resource, suspend } },
    like: tombstone?.slug ?? deriveSlug(resource.name, 'check'),
    stored,
    events,
    toCheck: (added: { readonly key: number; readonly slug: string }): StoredCheck => ({
      ...identity,
      ...added,
      ...ownerOf(wanted),
      spec: stored.spec,
      state: stored.state,
    }),
  }
}

function ownerOf({ resource, suspend }: Declaration) {
  return { managedBy: 'kubernetes', kubernetes: resource, kubernetesSuspend: suspend } as const
}

/**
 * Changes the check whose lock the transaction holds. Fails with a unique violation of SLUG_IS_UNIQUE when another check takes the slug
 * at the same time in the project that this one moves to.
 */
export async function change(
  { context, wanted, spec }: Declaring,
  tx: Queryable,
  { check, isMoved, isRedescribed, isRescheduled, events }: Change,
  locked: LockedCheck,
): Promise<StoredCheck> {
  const { projectId } = wanted
  const slug = isMoved ? await findFreeSlug(tx, projectId, check.slug) : check.slug
  if (isRedescribed) {
    await saveDeclared(tx, check.key, { ...wanted, slug })
    await makeAlertsDue(tx, check.key)
  }
  if (isRescheduled) await saveSpec(tx, check.key, wanted.spec)
  const state = events.length === 0 ? check.state : await applyEvents(tx, { ...locked, spec }, events, context)
  return { ...check, ...textsOf(wanted), ...ownerOf(wanted), projectId, slug, spec: wanted.spec, state }
}
