/** Projects. The scope that a verb needs is the edge's to check (design, section 3.5); whose data it is, is decided here and in the SQL. */

import type { Tenant } from '../domain/access.ts'
import { AppError, notFound, slugTaken } from '../domain/errors.ts'
import { type Page, type PageRequest, toPage } from '../domain/page.ts'
import { deriveSlug, withSuffix } from '../domain/slug.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import * as store from '../store/tenancy/projects.ts'
import { assertNotBound } from './bound.ts'

export type ProjectRecord = store.ProjectRow

/** In order of creation. A tenant that is bound to a project sees that one. */
export async function listProjects(context: Context, tenant: Tenant, page: PageRequest): Promise<Page<ProjectRecord>> {
  const rows = await store.listProjects(context.database, tenant, { ...page, limit: page.limit + 1 })
  return toPage(rows, page.limit, ({ createdAt, id }) => ({ at: createdAt, id }))
}

/**
 * Without a slug one is derived from the name, with a numeric suffix on a clash. Throws AppError `conflict` when the given
 * slug is taken, `forbidden` for a tenant that is bound to a project.
 */
export async function createProject(
  context: Context,
  tenant: Tenant,
  input: { readonly name: string; readonly slug?: string },
): Promise<ProjectRecord> {
  assertNotBound(tenant, 'create projects')
  const { organizationId } = tenant
  const now = context.clock.now()
  const id = newId(now)
  return context.database.transaction(async (tx) => {
    // Taken by everybody who adds a project, so that a slug found free is free still when it is written.
    await lockOrganization(tx, organizationId)
    const slug = input.slug ?? (await chooseSlug(tx, organizationId, deriveSlug(input.name, 'project')))
    const made = await store.insertProject(tx, { id, organizationId, name: input.name, slug, createdAt: now })
    if (made === null) throw slugTaken('project', slug)
    return made
  })
}

/** Of projects with the same name; whoever has more gives slugs. */
const MOST_CHOICES = 1_000

/** The organization's lock is held. Throws AppError `conflict` when that many projects are called alike. */
export async function chooseSlug(tx: Queryable, organizationId: string, derived: string): Promise<string> {
  const choices = Array.from({ length: MOST_CHOICES }, (_, place) => withSuffix(derived, place + 1))
  const free = await store.findFreeProjectSlug(tx, organizationId, choices)
  if (free === null) throw slugTaken('project', derived)
  return free
}

/**
 * With the project go the API keys that are bound to it. Throws AppError `conflict` while it holds checks, `not_found` for an
 * unknown, foreign or malformed id, `forbidden` for a tenant that is bound to a project.
 */
export async function removeProject(context: Context, tenant: Tenant, id: string): Promise<void> {
  assertNotBound(tenant, 'remove projects')
  await context.database.transaction(async (tx) => {
    // Locked before the counting: nobody adds a check in between.
    if (!(await store.hasProject(tx, tenant, id, 'remove'))) throw notFound('project')
    const checks = await store.countChecks(tx, id)
    if (checks > 0) {
      throw new AppError(
        'conflict',
        `the project holds ${checks} ${checks === 1 ? 'check' : 'checks'}: delete them first`,
      )
    }
    await store.deleteProject(tx, id)
  })
}
