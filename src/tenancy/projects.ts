/** Projects. The HTTP layer checks scopes (design, section 3.5); the tenant's data is selected here and in the SQL. */

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

/** In order of creation. A tenant that is bound to a project sees only that project. */
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
    // Every transaction that adds a project takes this lock, so a free slug stays free until it is written.
    await lockOrganization(tx, organizationId)
    const slug = input.slug ?? (await chooseSlug(tx, organizationId, deriveSlug(input.name, 'project')))
    const made = await store.insertProject(tx, { id, organizationId, name: input.name, slug, createdAt: now })
    if (made === null) throw slugTaken('project', slug)
    return made
  })
}

/** The most projects that can have the same derived slug, apart from the suffix. */
const MAX_CHOICES = 1_000

/** The caller holds the organization's lock. Throws AppError `conflict` when all choices are taken. */
export async function chooseSlug(tx: Queryable, organizationId: string, derived: string): Promise<string> {
  const choices = Array.from({ length: MAX_CHOICES }, (_, place) => withSuffix(derived, place + 1))
  const free = await store.findFreeProjectSlug(tx, organizationId, choices)
  if (free === null) throw slugTaken('project', derived)
  return free
}

/**
 * Also removes the API keys that are bound to the project. Throws AppError `conflict` while it holds checks, `not_found` for an
 * unknown, foreign or malformed id, `forbidden` for a tenant that is bound to a project.
 */
export async function removeProject(context: Context, tenant: Tenant, id: string): Promise<void> {
  assertNotBound(tenant, 'remove projects')
  await context.database.transaction(async (tx) => {
    // Locked before the count, so that no check is added in between.
    if (!(await store.hasProject(tx, tenant, id, 'remove'))) throw notFound('project')
    const checks = await store.countChecks(tx, id)
    if (checks > 0) {
      const count = `${checks} ${checks === 1 ? 'check' : 'checks'}`
      throw new AppError('conflict', `the project holds ${count}: delete them first`)
    }
    await store.deleteProject(tx, id)
  })
}
