import { randomUUID } from 'node:crypto'
import { type Audited, audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import { type CheckSpec, type CheckState, type CheckTexts, type Instant, NO_TEXTS } from '../domain/check.ts'
import type { CheckEvent } from '../domain/check-event.ts'
import { AppError, notFound, slugTaken } from '../domain/errors.ts'
import { toMicrosecond } from '../domain/instant.ts'
import { deriveSlug } from '../domain/slug.ts'
import { newState, transition } from '../domain/transition.ts'
import { newId } from '../runtime/ids.ts'
import { type CheckRecord, PUBLIC_ID_IS_UNIQUE } from '../store/checks/checks.ts'
import type { GivenSpec } from '../store/checks/columns.ts'
import { isPublicIdFree } from '../store/checks/declared-checks.ts'
import { hasChecks } from '../store/checks/new-checks.ts'
import { insertPushToken } from '../store/checks/push-tokens.ts'
import { type CheckMatch, findMatch } from '../store/checks/whole-checks.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { constraintOf } from '../store/postgres/sqlstate.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { addCheck } from './add-check.ts'
import { chooseChannels } from './choose-channels.ts'
import { chooseDependencies } from './choose-dependencies.ts'
import { completeSpec, readSpec } from './read-spec.ts'
import { actOn } from './with-locked-check.ts'

/** Texts that are left out are empty. */
export interface NewCheck extends Partial<CheckTexts> {
  readonly name: string
  readonly projectId: string
  /** Left out: `slugLike`, with a number at its end if it is taken. */
  readonly slug?: string
  /** Derived from the name when it is left out. */
  readonly slugLike?: string
  /** A client of healthchecks' API gave an empty slug. */
  readonly slugLeftEmpty?: true
  /** A UUID that no check has. Default: a random one. */
  readonly publicId?: string
  readonly spec: GivenSpec
  /** The first completion is expected from now on. Default: from the first ping on. */
  readonly armed?: boolean
  /** Of a push monitor: its right to ping this check. */
  readonly pushToken?: string
  readonly past?: Past
}

/** What another monitor knew of the check. */
export interface Past {
  readonly isUp: boolean
  readonly isPaused: boolean
  /** The last completion. */
  readonly lastPingAt: Instant | null
  readonly lastDurationMs: number | null
}

/**
 * Creates a check. It is armed by its first ping (design, section 4) unless `armed` is given or it was up elsewhere.
 * Throws AppError `not_found` for a project or, with the field, a check to depend on that does not exist or belongs to
 * another tenant, `invalid_request` for a
 * schedule that makes no sense or a channel that the project cannot use, `conflict` for a slug that is taken, and, with
 * the field, for a public id or a push token that another check has. With `maxChecks`, `forbidden` when the project has
 * so many checks; of these calls for one project one runs after the other. `also`: what is made with the check, in its
 * transaction.
 */
export async function createCheck(
  context: Context,
  by: Principal,
  input: NewCheck,
  maxChecks?: number,
  also: (tx: Queryable, made: CheckRecord) => Promise<readonly Act[]> = async () => [],
): Promise<CheckRecord> {
  const create = plan(context, by, input)
  try {
    return await audited(context, by, async (tx) => {
      const purpose = maxChecks === undefined ? 'keep' : 'change'
      if (!(await hasProject(tx, by, input.projectId, purpose))) throw notFound('project')
      if (maxChecks !== undefined && (await hasChecks(tx, input.projectId, maxChecks)))
        throw new AppError('forbidden', { why: 'many_checks', most: maxChecks })
      const { result, acts } = await create(tx)
      return { result, acts: [...acts, ...(await also(tx, result))] }
    })
  } catch (error) {
    if (constraintOf(error) === PUBLIC_ID_IS_UNIQUE) throw taken('publicId')
    throw error
  }
}

/**
 * Creates a check unless the project has one that matches: then the id of the oldest such. Two of these calls for one project run one after the
 * other, so that equal ones make one check. Throws as `createCheck` does.
 */
export async function createUnlessFound(
  context: Context,
  by: Principal,
  input: NewCheck,
  match: CheckMatch,
): Promise<{ readonly made: CheckRecord } | { readonly foundId: string }> {
  const create = plan(context, by, input)
  return audited<{ made: CheckRecord } | { foundId: string }>(context, by, async (tx) => {
    if (!(await hasProject(tx, by, input.projectId, 'change'))) throw notFound('project')
    const foundId = await findMatch(tx, input.projectId, match)
    if (foundId !== null) return { result: { foundId }, acts: [] }
    const { result, acts } = await create(tx)
    return { result: { made: result }, acts }
  })
}

/** Throws for what is wrong without a look at the database. The transaction holds the project. */
function plan(context: Context, by: Principal, input: NewCheck): (tx: Queryable) => Promise<Audited<CheckRecord>> {
  const { projectId, slug, slugLike, publicId, pushToken, past, spec: given, armed = false, ...texts } = input
  const spec = completeSpec(given, 'api')
  const createdAt = toMicrosecond(context.clock.now())
  const state = firstState(readSpec(spec), Math.floor(createdAt), armed, past)
  const made = {
    id: newId(createdAt),
    publicId: publicId ?? randomUUID(),
    projectId: projectId.toLowerCase(),
    ...NO_TEXTS,
    ...texts,
    createdAt,
    updatedAt: createdAt,
  }

  return async (tx) => {
    if (publicId !== undefined && !(await isPublicIdFree(tx, publicId))) throw taken('publicId')
    const wanted = slug === undefined ? { like: slugLike ?? deriveSlug(texts.name, 'check') } : { exactly: slug }
    const channels = await chooseChannels(tx, projectId, made.channels)
    const dependsOn = await chooseDependencies(tx, by, made.dependsOn, null)
    const row = { ...made, channels, dependsOn }
    const added = await addCheck(tx, row, wanted, { spec, state, stampedAt: createdAt })
    if (added === null) throw slugTaken('check of the project', slug!)
    if (pushToken !== undefined && (await insertPushToken(tx, pushToken, added.key)) !== added.key)
      throw taken('pushToken')
    const result = { ...row, ...added, managedBy: 'api', kubernetes: null, spec, state } as const
    return { result, acts: [actOn(made, 'check.created', { managed_by: 'api' })] }
  }
}

function firstState(spec: CheckSpec, now: Instant, armed: boolean, past: Past | undefined): CheckState {
  const events: CheckEvent[] = []
  if (past !== undefined) {
    const { isUp, lastPingAt, lastDurationMs } = past
    const last = { lastPingAt, lastDurationMs, lastSuccessAt: isUp ? lastPingAt : null, lastStartAt: null }
    const kept = {
      ...last,
      lastOutcome: isUp ? 'success' : null,
      pingsTotal: 0,
      incidentSince: null,
      escalation: null,
    } as const
    events.push({ kind: 'revive', kept, isUp })
  }
  if (armed) events.push({ kind: 'arm' })
  if (past?.isPaused) events.push({ kind: 'pause', isSilent: true })
  return events.reduce((state, event) => transition(spec, state, event, now).state, newState(now))
}

function taken(field: 'publicId' | 'pushToken'): AppError {
  return new AppError('conflict', { why: 'taken' }, { field })
}
