/**
 * What a HeartbeatCheck says becomes what the database holds (design, section 6). Idempotent: a check that is as its resource
 * says is read once, without a lock, and not written. Declarations of one resource take turns on its lock, but for a first one with
 * nothing in its way, which meets the others in a unique index; pings and the API's calls meet them on the lock of the check's
 * state, as they meet each other.
 */

import { randomUUID } from 'node:crypto'
import type { CheckSpec, CheckTexts } from '../../domain/check.ts'
import { AppError, notFound } from '../../domain/errors.ts'
import { isUuid } from '../../domain/ids.ts'
import { stampAfter } from '../../domain/instant.ts'
import { deriveSlug } from '../../domain/slug.ts'
import { type CheckEvent, isUnarmed, newState, transition } from '../../domain/transition.ts'
import { newId } from '../../runtime/ids.ts'
import {
  RESOURCE_IS_UNIQUE,
  type Resource,
  SLUG_IS_UNIQUE,
  type StoredCheck,
  saveSpec,
} from '../../store/checks/checks.ts'
import { isSameSpec, isSameTexts, type StoredSpec, textsOf } from '../../store/checks/columns.ts'
import { findAnyCheck, findDeclaredCheck, saveDeclared } from '../../store/checks/declared-checks.ts'
import { lockStates } from '../../store/checks/states.ts'
import { type Tombstone, takeTombstone } from '../../store/checks/tombstones.ts'
import type { Context } from '../../store/context.ts'
import { hurryAlerts } from '../../store/outbox/alerts.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { constraintOf } from '../../store/postgres/sqlstate.ts'
import { hasProject } from '../../store/tenancy/projects.ts'
import { addCheck, addFirstCheck, findFreeSlug } from '../add-check.ts'
import { readSpec, withTimeZone } from '../read-spec.ts'
import { applyEvents, describeResource, type LockedWork } from '../with-locked-check.ts'
import { lockDeclared } from './lock-declared.ts'

export interface Declaration extends CheckTexts {
  readonly resource: Resource
  /** As tenancy/namespace-projects.ts resolved it. A check whose resource comes back with another one moves, ids and history kept. */
  readonly projectId: string
  readonly spec: StoredSpec
  /** Null: pause and resume belong to the API. */
  readonly suspend: boolean | null
  /** A check of the API that becomes this resource's. */
  readonly adoptId: string | null
  /** Nobody has told of a check of this resource yet: it is most likely to have none. Only a hint. */
  readonly isNew?: boolean
}

/** `revived`: its resource was deleted and is there again. `updated`: something differed, by an edit or by somebody's SQL. */
export type DeclareChange = 'created' | 'revived' | 'adopted' | 'updated' | 'unchanged'

export interface Declared {
  readonly check: StoredCheck
  readonly change: DeclareChange
}

/** Somebody had the slug, or made the resource's check by the short way, between the look and the writing. */
const OVERTAKEN = new Set<string | undefined>([SLUG_IS_UNIQUE, RESOURCE_IS_UNIQUE])
const TRIES = 5

/**
 * Throws AppError `invalid` for a schedule that makes no sense; `not_found` for a project that is gone. An adoption is refused
 * with `not_found` (no such check), `forbidden` (another project's) or `conflict` (another resource's, or this one has
 * another check); then the details name `adoptId`.
 */
export async function declareCheck(context: Context, declaration: Declaration): Promise<Declared> {
  const wanted: Declaration = { ...declaration, spec: withTimeZone(declaration.spec) }
  const stored = wanted.isNew === true ? null : await findDeclaredCheck(context.database, wanted.resource)
  if (stored !== null) assertNoOther(stored, wanted)
  if (stored !== null && isAsDeclared(stored, wanted)) return { check: stored, change: 'unchanged' }
  const spec = readSpec(wanted.spec, context.clock.now())
  const first = wanted.isNew === true ? await addFirst(context, wanted, spec) : null
  if (first !== null) return { check: first, change: 'created' }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await context.database.transaction((tx) => declare(context, tx, wanted, spec))
    } catch (error) {
      if (!OVERTAKEN.has(constraintOf(error)) || attempt === TRIES) throw error
    }
  }
}

async function declare(context: Context, tx: Queryable, wanted: Declaration, spec: CheckSpec): Promise<Declared> {
  const existing = await lockDeclared(tx, wanted.resource)
  if (existing !== null) {
    assertNoOther(existing.record, wanted)
    if (isAsDeclared(existing.record, wanted)) return { check: existing.record, change: 'unchanged' }
    return { check: await setRight(context, existing, wanted, spec), change: 'updated' }
  }
  // An id may be any text that an annotation can hold, such as one with a NUL, which PostgreSQL does not take.
  const hasAnId = wanted.adoptId === null || isUuid(wanted.adoptId)
  const [isKept, tombstone] = await Promise.all([
    // Before the tombstone is touched, since the removal of a project takes its tombstones after itself.
    hasProject(tx, null, wanted.projectId, 'keep'),
    hasAnId ? takeTombstone(tx, wanted.resource, wanted.adoptId) : null,
  ])
  if (!isKept) throw notFound('project')
  if (tombstone === null && wanted.adoptId !== null) {
    const adopted = await lockAdopted(tx, wanted.adoptId, wanted.projectId)
    return { check: await setRight(context, adopted, wanted, spec), change: 'adopted' }
  }
  const check = await add(context, tx, wanted, spec, tombstone)
  return { check, change: tombstone === null ? 'created' : 'revived' }
}

function isAsDeclared(stored: StoredCheck, wanted: Declaration): boolean {
  return hasSameFields(stored, wanted) && isSameSpec(stored.spec, wanted.spec) && eventsFor(stored, wanted).length === 0
}

function hasSameFields(stored: StoredCheck, wanted: Declaration): boolean {
  const { cluster, namespace, name } = wanted.resource
  return (
    stored.managedBy === 'kubernetes' &&
    stored.kubernetes?.cluster === cluster &&
    stored.kubernetes.namespace === namespace &&
    stored.kubernetes.name === name &&
    stored.kubernetesSuspend === wanted.suspend &&
    stored.projectId === wanted.projectId &&
    isSameTexts(stored, wanted)
  )
}

/** What has to happen to the check's state, in this order. */
function eventsFor(stored: StoredCheck, { spec, suspend }: Declaration): CheckEvent[] {
  const events: CheckEvent[] = []
  if (!isSameSpec(stored.spec, spec)) events.push({ kind: 'update' })
  if (isUnarmed(stored.state)) events.push({ kind: 'arm' })
  if (suspend === true && stored.state.status !== 'paused') events.push({ kind: 'pause' })
  if (suspend === false && stored.state.status === 'paused') events.push({ kind: 'resume' })
  return events
}

async function setRight(
  context: Context,
  { tx, record, locked }: LockedWork,
  wanted: Declaration,
  spec: CheckSpec,
): Promise<StoredCheck> {
  const { key } = record
  const { projectId, resource, suspend } = wanted
  let { slug } = record
  if (!hasSameFields(record, wanted)) {
    const isMoving = record.projectId !== projectId
    if (isMoving && !(await hasProject(tx, null, projectId, 'keep'))) throw notFound('project')
    if (isMoving) slug = await findFreeSlug(tx, projectId, slug)
    await saveDeclared(tx, key, { ...wanted, slug })
    await hurryAlerts(tx, key)
  }
  if (!isSameSpec(record.spec, wanted.spec)) await saveSpec(tx, key, wanted.spec)
  const events = eventsFor(record, wanted)
  const state = events.length === 0 ? record.state : await applyEvents(tx, { ...locked, spec }, events, context)
  const declared = { ...textsOf(wanted), projectId, slug, kubernetes: resource, kubernetesSuspend: suspend }
  return { ...record, ...declared, managedBy: 'kubernetes', spec: wanted.spec, state }
}

/** The check to adopt, locked and free to be adopted. */
async function lockAdopted(tx: Queryable, id: string, projectId: string): Promise<LockedWork> {
  const found = isUuid(id) ? await findAnyCheck(tx, id) : null
  const [locked] = found === null ? [] : await lockStates(tx, [found.key])
  const record = locked === undefined ? null : await findAnyCheck(tx, id)
  if (locked === undefined || record === null)
    throw refused('not_found', `there is no check with the id "${id}" to adopt: correct the id, or remove it`)
  if (record.projectId !== projectId)
    throw refused(
      'forbidden',
      `the check ${id} belongs to another project: only one of this resource's own project can be adopted`,
    )
  if (record.managedBy === 'kubernetes' || record.kubernetes !== null) {
    const owner = describeResource(record.kubernetes)
    throw refused(
      'conflict',
      `the check ${id} is managed by ${owner}: delete that one with deletionPolicy Retain first`,
    )
  }
  return { tx, record, locked }
}

function assertNoOther(stored: StoredCheck, { adoptId }: Declaration): void {
  if (adoptId === null || stored.id === adoptId.toLowerCase()) return
  throw refused(
    'conflict',
    `this resource has the check ${stored.id} already and cannot adopt ${adoptId}: remove the id to adopt, or adopt it by a resource of another name`,
  )
}

function refused(code: 'not_found' | 'forbidden' | 'conflict', message: string): AppError {
  return new AppError(code, message, { details: [{ path: 'adoptId', message }] })
}

/** With the identity that a tombstone kept, or a new one. */
async function add(
  context: Context,
  tx: Queryable,
  wanted: Declaration,
  spec: CheckSpec,
  tombstone: Tombstone | null,
): Promise<StoredCheck> {
  const { row, like, stored } = describeNew(context, wanted, spec, tombstone)
  // A number is found for any slug that is taken, so it has been added.
  const added = (await addCheck(tx, row, { like }, stored))!
  const check = toStored(wanted, row, added, stored)
  if (wanted.suspend !== true) return check
  const [locked] = await lockStates(tx, [added.key])
  return { ...check, state: await applyEvents(tx, locked!, [{ kind: 'pause' }], context) }
}

/** Most checks that are new have nothing in their way: one statement adds them. Null: look closer. */
async function addFirst(context: Context, wanted: Declaration, spec: CheckSpec): Promise<StoredCheck | null> {
  if (wanted.adoptId !== null || wanted.suspend === true) return null
  const { row, like, stored } = describeNew(context, wanted, spec, null)
  const added = await addFirstCheck(context.database, row, like, stored)
  return added === null ? null : toStored(wanted, row, added, stored)
}

function describeNew(context: Context, wanted: Declaration, spec: CheckSpec, tombstone: Tombstone | null) {
  const { resource, projectId, spec: stored, suspend } = wanted
  const stampedAt = stampAfter(tombstone?.stampedAt ?? 0, context.clock.now())
  const {
    key,
    id,
    publicId,
    createdAt,
    slug: like,
  } = tombstone ?? {
    id: newId(stampedAt),
    publicId: randomUUID(),
    createdAt: stampedAt,
    slug: deriveSlug(resource.name, 'check'),
  }
  const now = Math.floor(stampedAt)
  const begin: CheckEvent = tombstone === null ? { kind: 'arm' } : { kind: 'revive', last: tombstone }
  const { state } = transition(spec, newState(now), begin, now)
  const identity = { id, publicId, projectId, createdAt, ...textsOf(wanted) }
  const row = { ...identity, ...(key === undefined ? {} : { key }), kubernetes: { ...resource, suspend } }
  return { row, like, stored: { spec: stored, state, stampedAt } }
}

function toStored(
  wanted: Declaration,
  { id, publicId, projectId, createdAt }: ReturnType<typeof describeNew>['row'],
  added: { readonly key: number; readonly slug: string },
  { spec, state }: ReturnType<typeof describeNew>['stored'],
): StoredCheck {
  const owner = { managedBy: 'kubernetes', kubernetes: wanted.resource, kubernetesSuspend: wanted.suspend } as const
  return { id, publicId, projectId, createdAt, ...textsOf(wanted), ...added, ...owner, spec, state }
}
