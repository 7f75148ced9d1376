/** Carries a plan out. Each function returns the check as it is stored. */

import { randomUUID } from 'node:crypto'
import type { Act } from '../../domain/audit.ts'
import type { CheckSpec } from '../../domain/check.ts'
import type { CheckEvent } from '../../domain/check-event.ts'
import { isUuid } from '../../domain/ids.ts'
import { stampAfter, toMicrosecond } from '../../domain/instant.ts'
import { toStoredText } from '../../domain/plain-text.ts'
import { deriveSlug } from '../../domain/slug.ts'
import { newState, transition } from '../../domain/transition.ts'
import { newId } from '../../runtime/ids.ts'
import { type StoredCheck, saveSpec, saveUpdatedAt } from '../../store/checks/checks.ts'
import { wakeHeld } from '../../store/checks/circumstances.ts'
import { textsOf } from '../../store/checks/columns.ts'
import { findDeclaredCheck, isPublicIdFree, saveDeclared, saveOrigin } from '../../store/checks/declared-checks.ts'
import { deleteRetention } from '../../store/checks/retained-checks.ts'
import { type LockedCheck, lockStates } from '../../store/checks/states.ts'
import { deleteTombstone } from '../../store/checks/tombstones.ts'
import type { Context } from '../../store/context.ts'
import { findLastDown, type LastDown } from '../../store/history/flips.ts'
import { skipHistory } from '../../store/history/reported-flips.ts'
import { makeAlertsDue } from '../../store/outbox/alerts.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { addCheck, findFreeSlug } from '../add-check.ts'
import { actOfPause } from '../pause-resume.ts'
import { type Abouts, aboutPause, actOn, actsOfChange, applyEvents } from '../with-locked-check.ts'
import { originOf } from './place.ts'
import type { Change, Creation, Declaration } from './plan.ts'

/** A declaration at work; `spec` is its spec as the state machine reads it. */
export interface Declaring {
  readonly context: Context
  readonly wanted: Declaration
  /** Of the HeartbeatChecks that it depends on. */
  readonly names: readonly string[]
  readonly spec: CheckSpec
  /** Why the public id of a lost check could not be read: only a new check needs that id. Default: null. */
  readonly unread?: { readonly error: unknown } | null
}

/** Creates the check in the transaction that holds the resource's lock. */
export async function create(
  { context, wanted, spec }: Declaring,
  tx: Queryable,
  plan: Creation,
): Promise<StoredCheck> {
  const { tombstone, events } = plan
  const { resource, projectId, suspend, publicId = null } = wanted
  const isGiven = tombstone === null && publicId !== null && isUuid(publicId) && (await isPublicIdFree(tx, publicId))
  const stampedAt = stampAfter(tombstone?.stampedAt ?? 0, context.clock.now())
  const now = Math.floor(stampedAt)
  const kept = tombstone ?? { id: newId(stampedAt), publicId: isGiven ? publicId : randomUUID(), createdAt: stampedAt }
  // It begins armed and with what was kept of it: the rest is history.
  const isHistory = ({ kind }: CheckEvent) => kind === 'pause' || kind === 'restore'
  const state = events
    .filter((event) => !isHistory(event))
    .reduce((before, event) => transition(spec, before, event, now).state, newState(now))
  const row = {
    ...(tombstone === null ? {} : { key: tombstone.key }),
    id: kept.id,
    publicId: kept.publicId,
    createdAt: kept.createdAt,
    updatedAt: stampedAt,
    projectId,
    ...textsOf(wanted),
    kubernetes: { ...resource, suspend, origin: originOf(wanted, tombstone?.kubernetesAdopted ?? null) },
  }
  if (tombstone !== null) await deleteTombstone(tx, tombstone.key)
  const like = tombstone?.slug ?? deriveSlug(resource.name, 'check')
  // Never null: a taken slug gets a number.
  const { key } = (await addCheck(tx, row, { like }, { spec: wanted.spec, state, stampedAt }))!
  if (tombstone !== null) await skipHistory(tx, key)
  const past = events.filter(isHistory)
  if (past.length > 0) {
    const [locked] = await lockStates(tx, [key])
    const lastDown = past.some(({ kind }) => kind === 'restore') ? await findLastDown(tx, key) : null
    await applyEvents(tx, locked!, past, context, { ...aboutPause(wanted.pauseDetail), ...aboutRestore(lastDown) })
  }
  return (await findDeclaredCheck(tx, resource))!
}

/** The recipients know the check as paused since its resource was deleted, so its flip is dated now. */
function aboutRestore(lastDown: LastDown | null): Abouts {
  const why = lastDown?.detail == null ? '' : `: ${lastDown.detail}`
  const detail = toStoredText(`as before its HeartbeatCheck was deleted${why}`)
  return { restore: { detail, job: lastDown?.job ?? null } }
}

/** Fails with a unique violation of SLUG_IS_UNIQUE when another check takes the slug in the other project meanwhile. */
export async function change(
  { context, wanted, spec }: Declaring,
  tx: Queryable,
  { kind, check, isMoved, isRedescribed, isRescheduled, isRelocated, origin, events }: Change,
  locked: LockedCheck,
): Promise<StoredCheck> {
  const { projectId } = wanted
  const slug = isMoved ? await findFreeSlug(tx, projectId, check.slug) : check.slug
  if (isRedescribed) {
    await saveDeclared(tx, check.key, { ...wanted, slug, origin })
    await makeAlertsDue(tx, check.key)
  } else if (isRelocated) await saveOrigin(tx, check.key, wanted.resource, origin)
  if (kind !== 'change') await deleteRetention(tx, check.key)
  if (isRescheduled) await saveSpec(tx, check.key, wanted.spec)
  if (isRedescribed || isRescheduled) await saveUpdatedAt(tx, check.key, toMicrosecond(context.clock.now()))
  if (events.length > 0) await applyEvents(tx, { ...locked, spec }, events, context, aboutPause(wanted.pauseDetail))
  if (isRedescribed) await wakeHeld(tx, [check.key])
  return (await findDeclaredCheck(tx, wanted.resource))!
}

// What was done, for the audit log.

export function actOfCreation(check: StoredCheck, { kind }: Creation): Act {
  return actOn(check, 'check.created', { managed_by: 'kubernetes', ...(kind === 'revive' ? { revived: true } : {}) })
}

export function actsOfDeclaration(check: StoredCheck, { check: before, events }: Change): Act[] {
  return [...actsOfChange(before, check), ...actsOfEvents(check, events)]
}

export function actsOfEvents(check: StoredCheck, events: readonly CheckEvent[]): Act[] {
  return events.flatMap((event) => {
    if (event.kind === 'pause') return [actOfPause(check, event.pause)]
    return event.kind === 'resume' ? [actOn(check, 'check.resumed')] : []
  })
}
