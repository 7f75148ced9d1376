/** Makes what the first start needs: an organization, a project, an admin and an API key (design, sections 3.4 and 12). */

import { isApiKey } from '../auth/api-key.ts'
import { hashPassword, isPassword, PASSWORD_LENGTH } from '../auth/passwords.ts'
import { randomText } from '../auth/random-text.ts'
import { isEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { newId } from '../runtime/ids.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { findOldestOrganization, insertOrganization, lockBootstrap } from '../store/tenancy/organizations.ts'
import { findOldestProject, insertProject } from '../store/tenancy/projects.ts'
import { insertUser } from '../store/tenancy/users.ts'
import { insertKey } from './api-keys.ts'

/** The given values; the others are generated. Used only while the database has no organization. */
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

/**
 * Replicas that start together make one organization. An existing organization does not change, except that it gets a project
 * when it has none. Throws AppError `invalid` for a given value of a wrong form.
 */
export async function bootstrap(context: Context, given: Bootstrap): Promise<Bootstrapped> {
  const existing = await findExistingProject(context.database)
  if (existing !== null) return { projectId: existing, made: null }
  assertGiven(given)
  const password = given.password ?? randomText(GENERATED_PASSWORD_LENGTH)
  // Before the lock, because the computation takes long.
  const passwordHash = await hashPassword(password)

  return context.database.transaction(async (tx) => {
    await lockBootstrap(tx)
    const meanwhile = await findExistingProject(tx)
    if (meanwhile !== null) return { projectId: meanwhile, made: null }
    const now = context.clock.now()
    const oldest = await findOldestOrganization(tx)
    const organizationId = oldest ?? newId(now)
    if (oldest === null) await insertOrganization(tx, { id: organizationId, name: 'default', createdAt: now })
    const id = given.projectId ?? newId(now)
    await insertProject(tx, { id, organizationId, name: 'Default', slug: 'default', createdAt: now })
    const projectId = id.toLowerCase()
    if (oldest !== null) return { projectId, made: null }
    const email = given.email.trim()
    await insertUser(tx, { id: newId(now), organizationId, email, passwordHash, scope: 'admin', createdAt: now })
    const row = { organizationId, projectId: null, name: 'bootstrap', expiresAt: null, createdAt: now }
    const { key } = await insertKey(tx, { ...row, scope: 'admin' }, given.apiKey)
    return { projectId, made: { email, password, apiKey: key } }
  })
}

async function findExistingProject(db: Queryable): Promise<string | null> {
  const organizationId = await findOldestOrganization(db)
  return organizationId === null ? null : findOldestProject(db, organizationId)
}

/** config.ts finds these faults first. The messages quote no value: two are secrets. */
function assertGiven({ email, password, apiKey, projectId }: Bootstrap): void {
  if (!isEmail(email.trim())) throw new AppError('invalid', 'BOOTSTRAP_EMAIL is not an e-mail address')
  if (password !== undefined && !isPassword(password)) {
    const { min, max } = PASSWORD_LENGTH
    throw new AppError('invalid', `BOOTSTRAP_PASSWORD must have ${min} to ${max} characters`)
  }
  if (apiKey !== undefined && !isApiKey(apiKey)) {
    const form = 'hbk_<prefix>_<secret>: 1-32 letters or digits, and 6-128 letters, digits, - or _'
    throw new AppError('invalid', `BOOTSTRAP_API_KEY must have the form ${form}`)
  }
  if (projectId !== undefined && !isUuid(projectId)) throw new AppError('invalid', 'BOOTSTRAP_PROJECT_ID is not a UUID')
}
