/** Projects. The HTTP layer checks scopes (design, section 3.5); the tenant's data is selected here and in the SQL. */

import { audited } from '../audit/audited.ts'
import type { Principal, Tenant } from '../domain/access.ts'
import type { Act, AuditAction, AuditDetail } from '../domain/audit.ts'
import { AppError, notFound, slugTaken } from '../domain/errors.ts'
import { type Page, type PageRequest, readPage } from '../domain/page.ts'
import { deriveSlug, withSuffix } from '../domain/slug.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { lockOrganization } from '../store/tenancy/organizations.ts'
import * as store from '../store/tenancy/projects.ts'
import { assertNotBound } from './callers.ts'

export type ProjectRecord = store.ProjectRow

/** In order of creation. A tenant that is bound to a project sees only that project. */
export function listProjects(context: Context, tenant: Tenant, page: PageRequest): Promise<Page<ProjectRecord>> {
  return readPage(page, (rows) => store.listProjects(context.database, tenant, rows))
}

/** Without a slug one is derived. Throws AppError `slug_taken`, `forbidden` for a tenant that is bound to a project. */
export async function createProject(
  context: Context,
  by: Principal,
  input: { readonly name: string; readonly slug?: string },
): Promise<ProjectRecord> {
  assertNotBound(by, 'create projects')
  const { organizationId } = by
  const now = context.clock.now()
  const id = newId(now)
  return audited(context, by, async (tx) => {
    // Every transaction that adds a project takes this lock, so a free slug stays free until it is written.
    await lockOrganization(tx, organizationId)
    const slug = input.slug ?? (await chooseSlug(tx, organizationId, deriveSlug(input.name, 'project')))
    const made = await store.insertProject(tx, { id, organizationId, name: input.name, slug, createdAt: now })
    if (made === null) throw slugTaken('project', slug)
    return { result: made, acts: [actOn(made, 'project.created', { slug })] }
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

/** Throws AppError `not_found` for an unknown, foreign or malformed id. */
export function getProject(context: Context, tenant: Tenant, id: string): Promise<ProjectRecord> {
  return lockProject(context.database, tenant, id, 'read')
}

/** The project as it is until the transaction ends (`findProject`). Throws as `getProject` does. */
export async function lockProject(
  tx: Queryable,
  tenant: Tenant,
  id: string,
  purpose: store.ProjectPurpose,
): Promise<ProjectRecord> {
  const found = await store.findProject(tx, tenant, id, purpose)
  if (found === null) throw notFound('project')
  return found
}

/** An omitted name stays, and so does the slug: labels and annotations contain it. Throws as `getProject` does. */
export function updateProject(
  context: Context,
  by: Principal,
  id: string,
  update: { readonly name?: string },
): Promise<ProjectRecord> {
  return audited(context, by, async (tx) => {
    const before = await lockProject(tx, by, id, 'change')
    const { name = before.name } = update
    if (before.name === name) return { result: before, acts: [] }
    await store.saveProjectName(tx, id, name)
    const result = { ...before, name }
    return { result, acts: [actOn(result, 'project.changed', { changed: ['name'] })] }
  })
}

/**
 * Also removes its keys and channels. Throws AppError `project_not_empty`, `not_found`, `forbidden` for a bound tenant.
 */
export async function removeProject(context: Context, by: Principal, id: string): Promise<void> {
  await audited(context, by, async (tx) => {
    assertNotBound(by, 'remove projects')
    // Locked before the count, so that no check is added in between.
    const project = await lockProject(tx, by, id, 'remove')
    const checks = await store.countChecks(tx, id)
    if (checks > 0) throw new AppError('project_not_empty', { checks })
    const { keys, channels } = await store.deleteProject(tx, id)
    const removed =
      (action: AuditAction) =>
      (target: Act['target']): Act => ({ action, target, projectId: project.id })
    const acts = [...channels.map(removed('channel.removed')), ...keys.map(removed('api_key.removed'))]
    return { result: undefined, acts: [...acts, actOn(project, 'project.removed')] }
  })
}

export function actOn({ id, name }: store.ProjectRow, action: AuditAction, detail: AuditDetail = {}): Act {
  return { action, target: { id, name }, projectId: id, detail }
}
