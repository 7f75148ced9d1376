import { randomUUID } from 'node:crypto'
import type { Tenant } from '../../src/domain/access.ts'
import type { Queryable } from '../../src/store/postgres/database.ts'

/** An organization, seen by a caller who is bound to none of its projects, and one project of it. */
export interface TestTenant extends Tenant {
  readonly projectId: null
  readonly project: string
}

type Store = { readonly database: Queryable }

export async function addTenant({ database }: Store, projectSlug = 'test'): Promise<TestTenant> {
  const tenant = { organizationId: randomUUID(), projectId: null }
  await database.query('insert into organizations (id, name) values ($1, $2)', [tenant.organizationId, 'Test'])
  return { ...tenant, project: await addProject({ database }, tenant, projectSlug) }
}

/** Returns the id of a new project. */
export async function addProject(
  { database }: Store,
  { organizationId }: Pick<Tenant, 'organizationId'>,
  slug: string = randomUUID(),
): Promise<string> {
  const id = randomUUID()
  await database.query('insert into projects (id, organization_id, name, slug) values ($1, $2, $3, $4)', [
    id,
    organizationId,
    'Test',
    slug,
  ])
  return id
}
