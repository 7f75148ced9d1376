/** Makes what the first start needs (design, sections 3.4 and 12). */

import { audited } from '../audit/audited.ts'
import { parseApiKey, randomText } from '../auth/api-key.ts'
import { hashPassword } from '../auth/passwords.ts'
import { SYSTEM } from '../domain/access.ts'
import { FIRST_PROJECT_SLUG } from '../domain/slug.ts'
import { PUBLISHED } from '../domain/weak-secret.ts'
import { isSameHash } from '../runtime/hashes.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findApiKeys } from '../store/tenancy/api-keys.ts'
import { findOldestOrganization, insertOrganization, lockBootstrap } from '../store/tenancy/organizations.ts'
import { findOldestProject, insertProject } from '../store/tenancy/projects.ts'
import { insertUser } from '../store/tenancy/users.ts'
import { insertKey } from './api-keys.ts'
import { actOn } from './projects.ts'

/**
 * As config/variables.ts has checked them; what is not given is generated. Only for a database without organization.
 */
export interface Bootstrap {
  readonly email: string
  readonly password?: string | undefined
  readonly apiKey?: string | undefined
  readonly projectId?: string | undefined
}

export interface Bootstrapped {
  readonly projectId: string
  /** In plain text, which is not stored; null when the database had an organization already. */
  readonly made: { readonly email: string; readonly password: string; readonly apiKey: string } | null
}

const GENERATED_PASSWORD_LENGTH = 24

/** Replicas that start together make one organization. An existing one gets a project when it has none. */
export async function bootstrap(context: Context, given: Bootstrap): Promise<Bootstrapped> {
  const existing = await findExistingProject(context.database)
  if (existing !== null) return { projectId: existing, made: null }
  const { email } = given
  const password = given.password ?? randomText(GENERATED_PASSWORD_LENGTH)
  // Before the lock, because the computation takes long.
  const passwordHash = await hashPassword(password, context.passwordCost)

  return audited<Bootstrapped>(context, SYSTEM, async (tx) => {
    await lockBootstrap(tx)
    const meanwhile = await findExistingProject(tx)
    if (meanwhile !== null) return { result: { projectId: meanwhile, made: null }, acts: [] }
    const now = context.clock.now()
    const oldest = await findOldestOrganization(tx)
    const organizationId = oldest ?? newId(now)
    if (oldest === null) await insertOrganization(tx, { id: organizationId, name: 'default', createdAt: now })
    const id = given.projectId ?? newId(now)
    const named = { name: 'Default', slug: FIRST_PROJECT_SLUG }
    const project = (await insertProject(tx, { id, organizationId, ...named, createdAt: now }))!
    const projectId = project.id
    const acts = [actOn(project, 'project.created', { slug: project.slug })]
    if (oldest !== null) return { result: { projectId, made: null }, acts }
    const shared = { organizationId, scope: 'admin', createdAt: now, createdBy: null } as const
    const user = { id: newId(now), email, passwordHash, ...shared }
    await insertUser(tx, user)
    const row = { projectId: null, name: 'bootstrap', expiresAt: null, ...shared }
    const { id: keyId, name, key } = await insertKey(tx, row, given.apiKey)
    const detail = { scope: 'admin' }
    acts.push(
      { action: 'user.created', target: { id: user.id, name: email }, projectId: null, detail },
      { action: 'api_key.created', target: { id: keyId, name }, projectId: null, detail },
    )
    return { result: { projectId, made: { email, password, apiKey: key } }, acts }
  })
}

/** What an earlier start made, without making anything; null when there is nothing yet. */
export async function findBootstrapped(db: Queryable): Promise<Bootstrapped | null> {
  const projectId = await findExistingProject(db)
  return projectId === null ? null : { projectId, made: null }
}

/** The name of a key that is an example of the documents: a start on a loopback address may have stored it. */
export async function findPublishedKey(db: Queryable): Promise<string | null> {
  for (const text of PUBLISHED) {
    const parsed = parseApiKey(text)
    const found = parsed === null ? undefined : (await findApiKeys(db, [parsed.prefix])).get(parsed.prefix)
    if (found !== undefined && isSameHash(found.hash, parsed!.hash)) return found.name
  }
  return null
}

async function findExistingProject(db: Queryable): Promise<string | null> {
  const organizationId = await findOldestOrganization(db)
  return organizationId === null ? null : findOldestProject(db, organizationId)
}
