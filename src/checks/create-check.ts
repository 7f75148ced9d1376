import { randomUUID } from 'node:crypto'
import { type Audited, audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { type CheckTexts, NO_TEXTS } from '../domain/check.ts'
import { notFound, slugTaken } from '../domain/errors.ts'
import { toMicrosecond } from '../domain/instant.ts'
import { deriveSlug } from '../domain/slug.ts'
import { newState, transition } from '../domain/transition.ts'
import { newId } from '../runtime/ids.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { StoredSpec } from '../store/checks/columns.ts'
import { type CheckMatch, findMatch } from '../store/checks/whole-checks.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { hasProject } from '../store/tenancy/projects.ts'
import { addCheck } from './add-check.ts'
import { chooseChannels } from './choose-channels.ts'
import { readSpec, withTimeZone } from './read-spec.ts'
import { actOn } from './with-locked-check.ts'

/** Texts that are left out are empty. */
export interface NewCheck extends Partial<CheckTexts> {
  readonly name: string
  readonly projectId: string
  /** Derived from the name when it is left out. */
  readonly slug?: string
  /** A UUID that no check has. Default: a random one. */
  readonly publicId?: string
  readonly spec: StoredSpec
  /** The first completion is expected from now on. Default: from the first ping on. */
  readonly armed?: boolean
}

/**
 * Creates a check. It is armed by its first ping (design, section 4) unless `armed` is given. Throws AppError `not_found` for a project that does not exist or
 * belongs to another tenant, `invalid` for a schedule that makes no sense or a channel that the project cannot use, `conflict` for a slug that is taken.
 */
export async function createCheck(context: Context, by: Principal, input: NewCheck): Promise<CheckRecord> {
  const create = plan(context, input)
  return audited(context, by, async (tx) => {
    if (!(await hasProject(tx, by, input.projectId, 'keep'))) throw notFound('project')
    return create(tx)
  })
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
  const create = plan(context, input)
  return audited<{ made: CheckRecord } | { foundId: string }>(context, by, async (tx) => {
    if (!(await hasProject(tx, by, input.projectId, 'change'))) throw notFound('project')
    const foundId = await findMatch(tx, input.projectId, match)
    if (foundId !== null) return { result: { foundId }, acts: [] }
    const { result, acts } = await create(tx)
    return { result: { made: result }, acts }
  })
}

/** Throws for what is wrong without a look at the database. The transaction holds the project. */
function plan(context: Context, input: NewCheck): (tx: Queryable) => Promise<Audited<CheckRecord>> {
  const { projectId, slug, publicId = randomUUID(), spec: given, armed = false, ...texts } = input
  const spec = withTimeZone(given)
  const createdAt = toMicrosecond(context.clock.now())
  const now = Math.floor(createdAt)
  const read = readSpec(spec)
  const state = armed ? transition(read, newState(now), { kind: 'arm' }, now).state : newState(now)
  const made = {
    id: newId(createdAt),
    publicId,
    projectId: projectId.toLowerCase(),
    ...NO_TEXTS,
    ...texts,
    createdAt,
    updatedAt: createdAt,
  }

  return async (tx) => {
    const wanted = slug === undefined ? { like: deriveSlug(texts.name, 'check') } : { exactly: slug }
    const channels = await chooseChannels(tx, projectId, made.channels)
    const added = await addCheck(tx, { ...made, channels }, wanted, { spec, state, stampedAt: createdAt })
    if (added === null) throw slugTaken('check of the project', slug!)
    const result = { ...made, channels, ...added, managedBy: 'api', kubernetes: null, spec, state } as const
    return { result, acts: [actOn(made, 'check.created', { managed_by: 'api' })] }
  }
}
