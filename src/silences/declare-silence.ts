/** Silences that a resource of a cluster declares: `HeartbeatSilence`. */

import { isDeepStrictEqual } from 'node:util'
import { audited } from '../audit/audited.ts'
import { controllerOf, doerOf, type Principal } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import type { Requirement } from '../domain/label-selector.ts'
import { isOver, SHORTEST_MS } from '../domain/silence.ts'
import { newId } from '../runtime/ids.ts'
import type { Resource } from '../store/checks/checks.ts'
import { wakeSilenced } from '../store/checks/circumstances.ts'
import { lockResource } from '../store/checks/declared-checks.ts'
import type { Context } from '../store/context.ts'
import { findDeclaredSilence, saveDeclaredSilence } from '../store/silences/declared-silences.ts'
import { insertSilence, type SilenceRow, type StoredTimes, timesOf } from '../store/silences/silences.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { findOrganizationOf } from '../store/tenancy/projects.ts'
import { type GivenTimes, readTimes, rejectMany } from './create-silence.ts'
import { actOn, type SilenceRecord, toRecord } from './find-silences.ts'
import { endSilence } from './remove-silence.ts'

export type { DeclaredSilencePlace } from '../store/silences/declared-silences.ts'

export interface SilenceDeclaration {
  readonly resource: Resource
  /** Of its namespace. */
  readonly projectId: string
  readonly times: GivenTimes
  readonly selector: readonly Requirement[]
  readonly comment: string
}

/** A declared silence, and when it holds. `id`: null where its times were over before it was declared. */
export interface DeclaredSilence extends Pick<SilenceRecord, 'activeUntil' | 'nextStartsAt'> {
  readonly id: string | null
}

export type SilenceChange = 'created' | 'updated' | 'unchanged'

interface Declared {
  readonly silence: DeclaredSilence
  readonly change: SilenceChange
}

const OVER: DeclaredSilence = { id: null, activeUntil: null, nextStartsAt: null }

/**
 * Brings the silence of a resource in line. Callers of one resource wait for each other. Throws AppError
 * `invalid_request` for times that make no sense, and `conflict` when the project has MAX_SILENCES.
 */
export async function declareSilence(
  context: Context,
  { resource, projectId, times: given, selector, comment }: SilenceDeclaration,
): Promise<Declared> {
  const { database, clock } = context
  const now = clock.now()
  const organizationId = await findOrganizationOf(database, projectId)
  const readAt = (before: SilenceRow | null) => {
    const startsAt = given.startsAt ?? usualStart(given, before, now)
    const times = readTimes({ ...given, startsAt }, 'kubernetes', now)
    return { organizationId, projectId, ...times, selector, comment }
  }
  const isPast = (row: StoredTimes) => {
    const times = timesOf(row)
    return times === null || isOver(times, now)
  }
  const compare = (before: SilenceRow | null): Declared | null => {
    const declared = readAt(before)
    if (before === null) return isPast(declared) ? { silence: OVER, change: 'unchanged' } : null
    return isAsDeclared(before, declared) ? { silence: toRecord(before, now), change: 'unchanged' } : null
  }
  // Most resyncs end here, without a lock.
  const asDeclared = compare(await findDeclaredSilence(database, resource))
  if (asDeclared !== null) return asDeclared
  const by: Principal = { ...controllerOf(resource.cluster), organizationId, projectId: null }
  return audited<Declared>(context, by, async (tx) => {
    await lockResource(tx, resource)
    // Each creation takes this lock, so that the count stays true until the change.
    await lockOrganization(tx, organizationId)
    const before = await findDeclaredSilence(tx, resource)
    const done = compare(before)
    if (done !== null) return { result: done, acts: [] }
    const fresh = {
      id: newId(now),
      checkId: null,
      tag: null,
      kubernetes: resource,
      createdBy: doerOf(by),
      createdAt: now,
    }
    const row: SilenceRow = { ...(before ?? fresh), ...readAt(before) }
    const isCounted = before !== null && before.projectId === projectId && !isPast(before)
    if (!isCounted && !isPast(row)) await rejectMany(tx, projectId, now)
    if (before === null) await insertSilence(tx, row)
    else {
      await wakeSilenced(tx, row.id, now)
      await saveDeclaredSilence(tx, row)
    }
    const [change, action] =
      before === null ? (['created', 'silence.created'] as const) : (['updated', 'silence.changed'] as const)
    return { result: { silence: toRecord(row, now), change }, acts: [actOn(row, action)] }
  })
}

/**
 * When a silence begins that says no beginning: now, or when it has begun. One that is over and gets another end begins
 * anew. What is declared after its end is over, and no fault.
 */
function usualStart({ endsAt }: GivenTimes, before: SilenceRow | null, now: Instant): Instant | undefined {
  if (endsAt === undefined) return undefined
  const isOld = before?.endsAt != null && before.endsAt <= now && before.endsAt !== endsAt
  const begun = isOld ? null : before?.startsAt
  return Math.min(begun ?? now, now, endsAt - SHORTEST_MS)
}

function isAsDeclared(row: SilenceRow, declared: Partial<SilenceRow>): boolean {
  return Object.entries(declared).every(([name, value]) => isDeepStrictEqual(row[name as keyof SilenceRow], value))
}

/** Null: the resource has none. */
export async function findSilenceOfResource(
  { database, clock }: Pick<Context, 'database' | 'clock'>,
  resource: Resource,
): Promise<DeclaredSilence | null> {
  const row = await findDeclaredSilence(database, resource)
  return row === null ? null : toRecord(row, clock.now())
}

/**
 * Removes the silence of a resource that is deleted: each check that it keeps quiet is evaluated at once. Without a
 * silence: nothing. `other`: the silence that the resource has elsewhere; where that is ours, nothing is removed.
 */
export function retireSilence(context: Context, resource: Resource, other?: string): Promise<void> {
  const controller = controllerOf(resource.cluster)
  return audited(context, controller, async (tx) => {
    await lockResource(tx, resource)
    const known = await findDeclaredSilence(tx, resource)
    if (known === null || known.id === other) return { result: undefined, acts: [] }
    const by: Principal = { ...controller, organizationId: known.organizationId, projectId: null }
    return { result: undefined, acts: [await endSilence(tx, context, known)], by }
  })
}
