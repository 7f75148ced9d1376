import { randomUUID } from 'node:crypto'
import type { Tenant } from '../domain/access.ts'
import { notFound, slugTaken } from '../domain/errors.ts'
import { toMicrosecond } from '../domain/instant.ts'
import { deriveSlug } from '../domain/slug.ts'
import { initialState } from '../domain/transition.ts'
import { newId } from '../runtime/ids.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { StoredSpec } from '../store/checks/states.ts'
import type { Context } from '../store/context.ts'
import { hasProject } from '../store/tenancy/projects.ts'
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
  const spec = withTimeZone(input.spec)
  const createdAt = toMicrosecond(context.clock.now())
  const now = Math.floor(createdAt)
  const state = initialState(readSpec(spec, now), false, now)
  const identity = {
    id: newId(createdAt),
    publicId: randomUUID(),
    projectId: projectId.toLowerCase(),
  }

  return context.database.transaction(async (tx) => {
    // Kept until the check is in it: nobody removes the project in between.
    if (!(await hasProject(tx, tenant, projectId, 'keep'))) throw notFound('project')
    const texts = { ...identity, name, description, createdAt }
    const wanted = input.slug === undefined ? { like: deriveSlug(name, 'check') } : { exactly: input.slug }
    const added = await addCheck(tx, texts, wanted, { spec, state, stampedAt: createdAt })
    if (added === null) throw slugTaken('check of the project', input.slug!)
    return { ...texts, ...added, managedBy: 'api', kubernetes: null, spec, state }
  })
}
