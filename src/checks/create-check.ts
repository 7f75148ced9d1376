import { randomUUID } from 'node:crypto'
import type { Tenant } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { formatUuid, isUuid, writeTimeOrderedId } from '../domain/ids.ts'
import { deriveSlug } from '../domain/slug.ts'
import { initialState } from '../domain/transition.ts'
import { randomIdBytes } from '../runtime/random.ts'
import { type CheckRecord, hasProject } from '../store/checks/checks.ts'
import type { StoredSpec } from '../store/checks/states.ts'
import type { Context } from '../store/context.ts'
import { addCheck } from './add-check.ts'
import { readSpec, withTimeZone } from './read-spec.ts'

export interface NewCheck {
  readonly projectId: string
  readonly name: string
  /** Derived from the name when it is left out. */
  readonly slug?: string
  readonly description?: string | null
  readonly spec: StoredSpec
}

/**
 * Makes a check. It is not armed before its first ping (design, section 4). Throws AppError `not_found` for an unknown or
 * foreign project, `invalid` for a schedule that makes no sense, `conflict` for a slug that is taken.
 */
export async function createCheck(context: Context, tenant: Tenant, input: NewCheck): Promise<CheckRecord> {
  const { projectId, name, description = null } = input
  if (!isUuid(projectId)) throw notFound('project')
  const spec = withTimeZone(input.spec)
  // To the microsecond, as the database keeps it.
  const createdAt = Math.round(context.clock.now() * 1_000) / 1_000
  const now = Math.floor(createdAt)
  const state = initialState(readSpec(spec, now), false, now)
  const identity = {
    id: formatUuid(writeTimeOrderedId(randomIdBytes(), createdAt)),
    publicId: randomUUID(),
    projectId: projectId.toLowerCase(),
  }

  return context.database.transaction(async (tx) => {
    // Kept until the check is in it: nobody removes the project in between.
    if (!(await hasProject(tx, tenant, projectId, 'keep'))) throw notFound('project')
    const texts = { ...identity, name, description, createdAt }
    const wanted = input.slug === undefined ? { like: deriveSlug(name, 'check') } : { exactly: input.slug }
    const added = await addCheck(tx, texts, wanted, { spec, state, stampedAt: createdAt })
    if (added === null) throw slugTaken(input.slug!)
    return { ...texts, ...added, managedBy: 'api', kubernetes: null, spec, state }
  })
}

export function slugTaken(slug: string): AppError {
  const message = `another check of the project has the slug "${slug}": choose another`
  return new AppError('conflict', message, { details: [{ path: 'body.slug', message }] })
}
