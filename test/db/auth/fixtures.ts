/** Rows to call from: organizations, projects, users and keys of a test. */

import { randomUUID } from 'node:crypto'
import { hashPassword } from '../../../src/auth/passwords.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import type { Caller, Scope } from '../../../src/domain/access.ts'
import type { Database, Queryable } from '../../../src/store/postgres/database.ts'
import { insertOrganization } from '../../../src/store/tenancy/organizations.ts'
import { insertProject } from '../../../src/store/tenancy/projects.ts'
import { insertUser } from '../../../src/store/tenancy/users.ts'

export const START = Date.UTC(2026, 10, 21, 12)
export const SECRET_KEY = Buffer.alloc(32, 7)
export const PASSWORD = 'correct horse battery'

/** A clock that stands still until `time` is set. */
export function manualClock(time = START) {
  return {
    time,
    now() {
      return this.time
    },
  }
}

export const tokensOf = (clock: { now(): number }) => createTokens(SECRET_KEY, clock)

/** A fifth of a second for each password would be most of the time of these tests. */
export const LOW_COST = { logN: 4, r: 8, p: 1 }

/** A new organization; `caller` is an admin key of the whole organization that exists in no table. */
export async function anOrganization(database: Database, name = 'acme') {
  const id = randomUUID()
  await insertOrganization(database, { id, name, createdAt: START })
  const caller: Caller = { kind: 'api_key', id: randomUUID(), organizationId: id, projectId: null, scope: 'admin' }
  return {
    id,
    caller,
    async addProject(slug: string, createdAt = START) {
      const projectId = randomUUID()
      await insertProject(database, { id: projectId, organizationId: id, name: slug.toUpperCase(), slug, createdAt })
      return projectId
    },
    async addUser(email: string, scope: Scope = 'admin', stored?: string) {
      const user = { id: randomUUID(), organizationId: id, email, scope, createdAt: START }
      await insertUser(database, { ...user, passwordHash: stored ?? (await hashPassword(PASSWORD, LOW_COST)) })
      const asCaller: Caller = { kind: 'user', id: user.id, organizationId: id, projectId: null, scope }
      return { ...user, caller: asCaller }
    },
    /** A caller of this organization that is bound to one project. */
    boundTo: (projectId: string): Caller => ({ ...caller, projectId }),
  }
}

export async function addCheck(database: Queryable, projectId: string, slug: string): Promise<void> {
  await database.query(
    `insert into checks (id, public_id, project_id, name, slug, created_at) values ($1, $2, $3, $4, $4, now())`,
    [randomUUID(), randomUUID(), projectId, slug],
  )
}
