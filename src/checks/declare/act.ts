/** Carries a plan out, in the transaction that holds the locks of its facts. */

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

/** Returns the check as it is stored. */
export async function create(
  context: Context,
  tx: Queryable,
  wanted: Declaration,
  spec: CheckSpec,
  plan: Creation,
): Promise<StoredCheck> {
  const { row, like, stored, events } = describeNew(context, wanted, spec, plan)
  if (plan.tombstone !== null) await deleteTombstone(tx, plan.tombstone.key)
  // Never null: a taken slug gets a number.
  const added = (await addCheck(tx, row, { like }, stored))!
  const check = toStored(wanted, row, added, stored)
  if (events.length === 0) return check
  const [locked] = await lockStates(tx, [added.key])
  return { ...check, state: await applyEvents(tx, locked!, events, context) }
}

/** Creates the check in one statement, without a lock. Null when something is in its way (insertFirstCheck). */
export async function createFirst(
  context: Context,
  wanted: Declaration,
  spec: CheckSpec,
  plan: Creation,
): Promise<StoredCheck | null> {
  const { row, like, stored, events } = describeNew(context, wanted, spec, plan)
  if (events.length > 0) return null
  const added = await addFirstCheck(context.database, row, like, stored)
  return added === null ? null : toStored(wanted, row, added, stored)
}

/** What a new check begins with; `events` are those that still have to happen to it. */
function describeNew(
  context: Context,
  wanted: Declaration,
  spec: CheckSpec,
  { tombstone, events: [begin, ...events] }: Creation,
) {
  const { resource, projectId, suspend } = wanted
  const stampedAt = stampAfter(tombstone?.stampedAt ?? 0, context.clock.now())
  const now = Math.floor(stampedAt)
  const kept = tombstone ?? { id: newId(stampedAt), publicId: randomUUID(), createdAt: stampedAt }
  const { id, publicId, createdAt } = kept
  const identity = { id, publicId, projectId, createdAt, ...textsOf(wanted) }
  const key = tombstone === null ? {} : { key: tombstone.key }
  return {
    row: { ...identity, ...key, kubernetes: { ...resource, suspend } },
    like: tombstone?.slug ?? deriveSlug(resource.name, 'check'),
    stored: { spec: wanted.spec, state: transition(spec, newState(now), begin, now).state, stampedAt },
    events,
  }
}

function toStored(
  wanted: Declaration,
  { id, publicId, projectId, createdAt }: ReturnType<typeof describeNew>['row'],
  added: { readonly key: number; readonly slug: string },
  { spec, state }: ReturnType<typeof describeNew>['stored'],
): StoredCheck {
  return { id, publicId, projectId, createdAt, ...textsOf(wanted), ...added, ...ownerOf(wanted), spec, state }
}

function ownerOf({ resource, suspend }: Declaration) {
  return { managedBy: 'kubernetes', kubernetes: resource, kubernetesSuspend: suspend } as const
}

/**
 * Returns the check as it is stored. Fails with a unique violation of SLUG_IS_UNIQUE when another check takes the slug at the
 * same time in the project that this one moves to.
 */
export async function change(
  context: Context,
  tx: Queryable,
  wanted: Declaration,
  spec: CheckSpec,
  { check, isMoved, isRedescribed, isRescheduled, events }: Change,
  locked: LockedCheck,
): Promise<StoredCheck> {
  const slug = isMoved ? await findFreeSlug(tx, wanted.projectId, check.slug) : check.slug
  if (isRedescribed) {
    await saveDeclared(tx, check.key, { ...wanted, slug })
    await makeAlertsDue(tx, check.key)
  }
  if (isRescheduled) await saveSpec(tx, check.key, wanted.spec)
  const state = events.length === 0 ? check.state : await applyEvents(tx, { ...locked, spec }, events, context)
  const { projectId } = wanted
  return { ...check, ...textsOf(wanted), ...ownerOf(wanted), projectId, slug, spec: wanted.spec, state }
}
