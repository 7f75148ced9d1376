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
import type { Context } from '../store/context.ts'
import { findDeclaredSilence, saveDeclaredSilence } from '../store/silences/declared-silences.ts'
import { insertSilence, type SilenceRow, timesOf } from '../store/silences/silences.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { findOrganizationOf } from '../store/tenancy/projects.ts'
import { type GivenTimes, readTimes, rejectMany } from './create-silence.ts'
import { actOn, type SilenceRecord, toRecord } from './find-silences.ts'
import { removeSilence } from './remove-silence.ts'

export type { DeclaredSilencePlace } from '../store/silences/declared-silences.ts'

export interface SilenceDeclaration {
  readonly resource: Resource
  /** Of its namespace. */
  readonly projectId: string
  /** `startsAt` by default: `resourceCreatedAt`. */
  readonly times: GivenTimes
  readonly resourceCreatedAt: Instant
  readonly selector: readonly Requirement[]
  readonly comment: string
}

/** A declared silence, and when it holds. */
export type DeclaredSilence = Pick<SilenceRecord, 'id' | 'activeUntil' | 'nextStartsAt'>

export type SilenceChange = 'created' | 'updated' | 'unchanged'

/**
 * Brings the silence of a resource in line. Null: the resource was over before it had one. Throws AppError
 * `invalid_request` for times that make no sense, and `conflict` when the project has MAX_SILENCES.
 */
export async function declareSilence(
  context: Context,
  { resource, projectId, times: given, resourceCreatedAt, selector, comment }: SilenceDeclaration,
): Promise<{ readonly silence: DeclaredSilence | null; readonly change: SilenceChange }> {
  const { database, clock } = context
  const now = clock.now()
  const { endsAt } = given
  // What is applied again after its end is over, and no fault.
  const usualStart = endsAt === undefined ? undefined : Math.min(resourceCreatedAt, endsAt - SHORTEST_MS)
  const times = readTimes({ ...given, startsAt: given.startsAt ?? usualStart }, 'kubernetes', now)
  const isPast = isOver(timesOf(times)!, now)
  const organizationId = await findOrganizationOf(database, projectId)
  const declared = { organizationId, projectId, ...times, selector, comment }
  const before = await findDeclaredSilence(database, resource)
  if (before === null && isPast) return { silence: null, change: 'unchanged' }
  if (before !== null && isAsDeclared(before, declared)) return { silence: toRecord(before, now), change: 'unchanged' }
  const by: Principal = { ...controllerOf(resource.cluster), organizationId, projectId: null }
  return audited(context, by, async (tx) => {
    // Each creation takes this lock, so that the count stays true until the insert.
    await lockOrganization(tx, organizationId)
    const known = await findDeclaredSilence(tx, resource, 'for update')
    if (known?.projectId !== projectId && !isPast) await rejectMany(tx, projectId, now)
    const fresh = {
      id: newId(now),
      checkId: null,
      tag: null,
      kubernetes: resource,
      createdBy: doerOf(by),
      createdAt: now,
    }
    const row: SilenceRow = { ...(known ?? fresh), ...declared }
    if (known === null) await insertSilence(tx, row)
    else {
      await wakeSilenced(tx, row.id, now)
      await saveDeclaredSilence(tx, row)
    }
    const change = known === null ? 'created' : 'updated'
    const action = known === null ? 'silence.created' : 'silence.changed'
    return { result: { silence: toRecord(row, now), change }, acts: [actOn(row, action)] }
  })
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
export async function retireSilence(context: Context, resource: Resource, other?: string): Promise<void> {
  const known = await findDeclaredSilence(context.database, resource)
  if (known === null || known.id === other) return
  const { organizationId, id } = known
  await removeSilence(context, { ...controllerOf(resource.cluster), organizationId, projectId: null }, id)
}
