/**
 * Turns a credential into a Caller. Strangers cause look-ups of keys, so requests that wait for one share a statement.
 */

import type { Caller } from '../domain/access.ts'
import type { Instant } from '../domain/check.ts'
import { isSameHash } from '../runtime/hashes.ts'
import { createFindInTurn } from '../store/ask-in-turn.ts'
import type { Context } from '../store/context.ts'
import { findApiKeys, touchApiKey } from '../store/tenancy/api-keys.ts'
import { touchSession } from '../store/tenancy/sessions.ts'
import { findUserByEmail, findUserOfSession, type KnownUser } from '../store/tenancy/users.ts'
import { parseApiKey } from './api-key.ts'
import * as errors from './errors.ts'
import { createIssuers, type Issuers } from './issuers.ts'
import type { Tokens } from './tokens.ts'

/** Takes the header `Authorization`. Throws AppError `unauthenticated`, and `unavailable` without an issuer's keys. */
export type Authenticate = (authorization: string | undefined, address: string) => Promise<Caller>

/** In characters; a longer credential is not read. All headers together have at most 16 KB. */
const MAX_LENGTH = 12_288
export const TOUCH_EVERY_MS = 60_000

export function createAuthenticate(
  context: Context,
  tokens: Tokens,
  issuers: Issuers = createIssuers([], context.clock),
): Authenticate {
  const { database, clock } = context
  const findKey = createFindInTurn((prefixes) => findApiKeys(database, prefixes))
  const touchKey = createTouch((id, now) => touchApiKey(database, id, now, TOUCH_EVERY_MS))
  const touchUsed = createTouch((id, now) => touchSession(database, id, now, TOUCH_EVERY_MS, null))

  async function authenticateKey(text: string, address: string): Promise<Caller> {
    const given = parseApiKey(text)
    const key = given === null ? null : await findKey(given.prefix)
    if (given === null || key === null || !isSameHash(given.hash, key.hash)) throw errors.unknownKey()
    const now = clock.now()
    const { id, name, organizationId, projectId, scope, expiresAt } = key
    if (expiresAt !== null && expiresAt <= now) {
      throw errors.expiredCredential('API key', 'have an administrator create a new one')
    }
    touchKey(id, key.lastUsedAt, now)
    return { kind: 'api_key', id, name, organizationId, projectId, scope, expiresAt, sessionId: null, address }
  }

  async function authenticateUser(token: string, address: string): Promise<Caller> {
    const issued = await issuers.verify(token)
    if (issued !== null) {
      const user = issued.email === null ? null : await findUserByEmail(database, issued.email)
      if (user === null) throw errors.unknownUser()
      return toCaller(user, null, address)
    }
    const { userId, sessionId } = await tokens.verifyAccessToken(token)
    const now = clock.now()
    const user = await findUserOfSession(database, userId, sessionId, now)
    if (user === null) throw errors.endedSession()
    touchUsed(sessionId, user.lastUsedAt, now)
    return toCaller(user, sessionId, address)
  }

  return async (authorization = '', address) => {
    // Not by one regular expression: many spaces would take it quadratic time.
    const text = authorization.slice(0, MAX_LENGTH).trim()
    const space = text.indexOf(' ')
    const [scheme, given] = space === -1 ? [text, ''] : [text.slice(0, space), text.slice(space).trim()]
    if (scheme === '') throw errors.noCredential()
    if (scheme.toLowerCase() !== 'bearer') throw errors.otherScheme(`${scheme} ${given}`)
    if (given === '') throw errors.noCredential()
    if (authorization.length > MAX_LENGTH || given.includes(' ')) throw errors.unknownToken()
    return given.startsWith('hbk_') ? authenticateKey(given, address) : authenticateUser(given, address)
  }
}

export function toCaller(user: KnownUser, sessionId: string | null, address: string): Caller {
  const { id, email: name, organizationId, scope } = user
  return { kind: 'user', id, name, organizationId, projectId: null, scope, expiresAt: null, sessionId, address }
}

/** Records a use, without a wait, and once at a time for each. The next call tries again after a failure. */
export function createTouch(
  touch: (id: string, now: Instant) => Promise<void>,
): (id: string, lastUsedAt: Instant | null, now: Instant) => void {
  const inFlight = new Set<string>()
  return (id, lastUsedAt, now) => {
    if (inFlight.has(id) || (lastUsedAt !== null && now - lastUsedAt < TOUCH_EVERY_MS)) return
    inFlight.add(id)
    touch(id, now)
      .catch(() => {})
      .finally(() => inFlight.delete(id))
  }
}
