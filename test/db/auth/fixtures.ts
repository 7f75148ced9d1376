/** Rows to call from: organizations, projects, users and keys of a test. */

import { randomUUID } from 'node:crypto'
import { beforeEach } from 'vitest'
import { logIn } from '../../../src/auth/log-in.ts'
import { hashPassword } from '../../../src/auth/passwords.ts'
import { createTokens } from '../../../src/auth/tokens.ts'
import type { Caller, Scope } from '../../../src/domain/access.ts'
import type { Database, Queryable } from '../../../src/store/postgres/database.ts'
import { insertOrganization } from '../../../src/store/tenancy/organizations.ts'
import { insertProject } from '../../../src/store/tenancy/projects.ts'
import { saveSession } from '../../../src/store/tenancy/sessions.ts'
import { insertUser } from '../../../src/store/tenancy/users.ts'
import { createTestDatabase } from '../../support/database.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { anAdmin } from '../../support/tenant.ts'
import { use, useEach } from '../../support/use.ts'

export const START = Date.UTC(2026, 10, 21, 12)
export const SECRET_KEY = Buffer.alloc(32, 7)
export const EMAIL = 'Ann@example.com'
export const PASSWORD = 'correct horse battery'
export const ADDRESS = '192.0.2.1'
/** The first page of a list. */
export const ALL = { limit: 100, after: null }

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

/** A database for all tests of a file, emptied before each of them; each has a clock and an organization of its own. */
export function useOrganization(now = () => START) {
  const test = use(createTestDatabase)
  beforeEach(() => test.clear())
  const clock = useEach(() => manualClock(now()))
  const organization = useEach(() => anOrganization(test.database))
  const context = (database: Database = test.database) => ({ database, clock, passwordCost: LOW_COST })
  return {
    test,
    clock,
    organization,
    context,
    /** A log-in of the user with the address EMAIL. */
    enter: (input: Partial<Parameters<typeof logIn>[2]> = {}, database?: Database) =>
      logIn(context(database), tokensOf(clock), { email: EMAIL, password: PASSWORD, address: ADDRESS, ...input }),
  }
}

let organizations = 0

/**
 * A new organization, younger than those before it, as the oldest is that of the installation; `caller` is an admin key of the whole organization
 * that exists in no table.
 */
export async function anOrganization(database: Database, name = 'acme') {
  const id = randomUUID()
  organizations += 1
  await insertOrganization(database, { id, name, createdAt: START + organizations })
  const caller = anAdmin(id)
  return {
    id,
    caller,
    async addProject(slug: string, createdAt = START) {
      const projectId = randomUUID()
      await insertProject(database, { id: projectId, organizationId: id, name: slug.toUpperCase(), slug, createdAt })
      return projectId
    },
    async addUser(email: string, scope: Scope = 'admin', stored?: string) {
      const user = { id: randomUUID(), organizationId: id, email, scope, createdAt: START, createdBy: null }
      await insertUser(database, { ...user, passwordHash: stored ?? (await hashPassword(PASSWORD, LOW_COST)) })
      return { ...user, caller: anAdmin(id, { kind: 'user', id: user.id, name: email, scope }) }
    },
    /** A session as a log-in at the start of the test makes it: what an access token names. */
    async addSession(userId: string, address = '192.0.2.1') {
      const sessionId = randomUUID()
      const life = { idleMs: 30 * 86_400_000, mostMs: 90 * 86_400_000 }
      await saveSession(database, { id: sessionId, userId, kind: 'token', address, now: START }, life)
      return { userId, sessionId }
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
