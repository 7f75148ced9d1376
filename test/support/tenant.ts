import { randomUUID } from 'node:crypto'
import { type Caller, type Principal, SYSTEM, type Tenant } from '../../src/domain/access.ts'
import type { Queryable } from '../../src/store/postgres/database.ts'

/** An organization, seen by a caller who is bound to none of its projects, and one project of it. */
export interface TestTenant extends Principal {
  readonly projectId: null
  readonly project: string
}

/** An admin key of the whole organization that exists in no table. */
export function anAdmin(organizationId: string, overrides: Partial<Caller> = {}): Caller {
  const key = { kind: 'api_key', id: randomUUID(), name: 'test', scope: 'admin', expiresAt: null } as const
  return { ...key, organizationId, projectId: null, sessionId: null, address: '192.0.2.1', ...overrides }
}

type Store = { readonly database: Queryable }

export async function addTenant({ database }: Store, projectSlug = 'test'): Promise<TestTenant> {
  const tenant = { ...SYSTEM, organizationId: randomUUID(), projectId: null }
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
