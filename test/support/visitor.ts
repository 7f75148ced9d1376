/** A user of the dashboard without a browser: it keeps cookies, and sends what a browser sends with a form. */

import { beginSession } from '../../src/auth/sessions.ts'
import type { Scope } from '../../src/domain/access.ts'
import { newId } from '../../src/runtime/ids.ts'
import { insertUser } from '../../src/store/tenancy/users.ts'
import type { TestApi } from './service.ts'

export interface Shown {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** Of a redirect. */
  readonly location: string | null
}

/** A list for a name that occurs several times. */
export type Fields = Readonly<Record<string, string | readonly string[]>>

export interface Visitor {
  get(path: string, headers?: Record<string, string>): Promise<Shown>
  /** Posts a form as a page of our own does, without following the redirect. */
  post(path: string, fields?: Fields, headers?: Record<string, string>): Promise<Shown>
  /** The cookies by name. */
  readonly cookies: Map<string, string>
  logIn(user: { readonly email: string; readonly password: string }): Promise<void>
}

/** `origin`: of the service, such as `http://127.0.0.1:8081`. */
export function createVisitor(origin: string): Visitor {
  const cookies = new Map<string, string>()

  async function send(path: string, init: RequestInit & { headers: Record<string, string> }): Promise<Shown> {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const headers = { ...(cookie === '' ? {} : { cookie }), ...init.headers }
    const response = await fetch(origin + path, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      if (value === '') cookies.delete(name!)
      else cookies.set(name!, value!)
    }
    const { status } = response
    return {
      status,
      headers: response.headers,
      text: await response.text(),
      location: response.headers.get('location'),
    }
  }

  const visitor: Visitor = {
    get: (path, headers = {}) => send(path, { headers }),
    post: (path, fields = {}, headers = {}) =>
      send(path, {
        method: 'POST',
        body: new URLSearchParams(
          Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one])),
        ),
        headers: { 'sec-fetch-site': 'same-origin', ...headers },
      }),
    cookies,
    async logIn({ email, password }) {
      const { status, text } = await visitor.post('/login', { email, password })
      if (status !== 303) throw new Error(`the log-in gives ${status}: ${text}`)
    },
  }
  return visitor
}

/**
 * A visitor of a test service with a session: of its admin, or of a user who is added with the scope. The session is begun without a password,
 * whose hash takes most of a second.
 */
export async function visit(api: Pick<TestApi, 'url' | 'context' | 'organizationId'>, scope?: Scope): Promise<Visitor> {
  const { database, clock } = api.context
  const now = clock.now()
  const id = scope === undefined ? await findAdmin(api) : await addUser(api, scope)
  const start = { userId: id, address: '127.0.0.1', now, isByProvider: true }
  const { secret: token } = await database.transaction((tx) => beginSession(tx, 'dashboard', start))
  const visitor = createVisitor(new URL(api.url).origin)
  visitor.cookies.set('heartbeat_session', token)
  return visitor
}

async function findAdmin({ context, organizationId }: Pick<TestApi, 'context' | 'organizationId'>): Promise<string> {
  const { rows } = await context.database.query<{ id: string }>(
    "select id from users where organization_id = $1 and scope = 'admin' order by created_at limit 1",
    [organizationId],
  )
  return rows[0]!.id
}

async function addUser(
  { context, organizationId }: Pick<TestApi, 'context' | 'organizationId'>,
  scope: Scope,
): Promise<string> {
  const now = context.clock.now()
  const id = newId(now)
  const email = `${scope}-${id}@example.com`
  await insertUser(context.database, {
    id,
    organizationId,
    email,
    scope,
    passwordHash: '-',
    createdAt: now,
    createdBy: null,
  })
  return id
}
