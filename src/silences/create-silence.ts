import { type Audited, audited } from '../audit/audited.ts'
import { completeSpec, NO_SPEC, readSpec } from '../checks/read-spec.ts'
import { doerOf, type Principal } from '../domain/access.ts'
import type { Instant, Manager } from '../domain/check.ts'
import type { Doer } from '../domain/doer.ts'
import { AppError, invalidField, notFound } from '../domain/errors.ts'
import { SHORTEST_MS } from '../domain/silence.ts'
import { newId } from '../runtime/ids.ts'
import { findCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { countSilences, insertSilence, type SilenceRow, type StoredTimes } from '../store/silences/silences.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { actOn, type SilenceRecord, toRecord } from './find-silences.ts'

/** Silences of one project that have not ended: each change of its checks that would be sent reads them. */
export const MAX_SILENCES = 100

/** Either `endsAt`, or `schedule` and `durationSeconds`. */
export interface GivenTimes {
  /** Default: now. */
  readonly startsAt?: Instant | undefined
  readonly endsAt?: Instant | undefined
  readonly schedule?: string | undefined
  /** Default: UTC. */
  readonly timeZone?: string | undefined
  readonly durationSeconds?: number | undefined
}

export interface NewSilence extends GivenTimes {
  /** Default: the project that the caller is bound to. */
  readonly projectId?: string | undefined
  readonly checkId?: string | null | undefined
  readonly tag?: string | null | undefined
  readonly comment: string
  /** Default: the caller. */
  readonly createdBy?: Doer | undefined
}

/**
 * No channel is notified of the checks that it covers, while it holds. Throws AppError `invalid_request`, `not_found`
 * for a project or check that is not the caller's, `conflict` when the project has MAX_SILENCES.
 */
export function createSilence(context: Context, by: Principal, given: NewSilence): Promise<SilenceRecord> {
  return audited(context, by, (tx) => addSilence(tx, context, by, given))
}

/** The same in a transaction of the caller's. */
export async function addSilence(
  tx: Queryable,
  { clock }: Pick<Context, 'clock'>,
  by: Principal,
  given: NewSilence,
): Promise<Audited<SilenceRecord>> {
  const createdAt = clock.now()
  const { projectId = by.projectId, checkId = null, tag = null, comment } = given
  if (projectId === null) throw invalidField('projectId', 'must be given')
  const { organizationId } = by
  const times = readTimes(given, 'api', createdAt)
  const named = { id: newId(createdAt), organizationId, projectId, checkId, tag, ...times, ...OF_API }
  const silence: SilenceRow = { ...named, comment, createdBy: given.createdBy ?? doerOf(by), createdAt }
  // Each creation takes this lock, so that the count stays true until the insert.
  await lockOrganization(tx, organizationId)
  if (!(await hasProject(tx, by, projectId, 'keep'))) throw notFound('project')
  const check = checkId === null ? null : await findCheck(tx, by, checkId)
  if (checkId !== null && check?.projectId !== projectId) throw notFound('check')
  await rejectMany(tx, projectId, createdAt)
  await insertSilence(tx, silence)
  return { result: toRecord(silence, createdAt), acts: [actOn(silence, 'silence.created')] }
}

const OF_API = { kubernetes: null, selector: null } as const

/** Throws AppError `conflict` when the project has as many silences as it may. */
export async function rejectMany(tx: Queryable, projectId: string, now: Instant): Promise<void> {
  if ((await countSilences(tx, projectId, now)) >= MAX_SILENCES)
    throw new AppError('conflict', { why: 'many_silences', most: MAX_SILENCES })
}

/** Throws AppError `invalid_request`. `managedBy`: who reads the schedule; only the API refuses what is over. */
export function readTimes(
  { startsAt, endsAt, schedule, timeZone, durationSeconds }: GivenTimes,
  managedBy: Manager,
  now: Instant,
): StoredTimes {
  if (schedule !== undefined) {
    if (startsAt !== undefined || endsAt !== undefined)
      throw invalidField(endsAt === undefined ? 'startsAt' : 'endsAt', 'must be left out beside {schedule}')
    if (durationSeconds === undefined) throw invalidField('durationSeconds', 'must be given with {schedule}')
    const spec = completeSpec({ ...NO_SPEC, schedule, timeZone: timeZone ?? null }, managedBy)
    readSpec(spec)
    return { startsAt: null, endsAt: null, schedule, timeZone: spec.timeZone, dialect: spec.dialect, durationSeconds }
  }
  if (timeZone !== undefined) throw invalidField('timeZone', 'goes with {schedule}')
  if (durationSeconds !== undefined) throw invalidField('durationSeconds', 'goes with {schedule}')
  if (endsAt === undefined) throw invalidField('endsAt', 'or {schedule} must be given')
  const begins = startsAt ?? now
  if (managedBy === 'api' && endsAt <= now) throw invalidField('endsAt', 'must be in the future')
  if (endsAt < begins + SHORTEST_MS) throw invalidField('endsAt', 'must be at least a second after the beginning')
  return { startsAt: begins, endsAt, schedule: null, timeZone: null, dialect: null, durationSeconds: null }
}
