/** Turns an API key, an access token or a token of an issuer into a Caller, with one database statement. */

import type { Caller } from '../domain/access.ts'
import type { Context } from '../store/context.ts'
import { findApiKey, touchApiKey } from '../store/tenancy/api-keys.ts'
import { findUser, findUserByEmail, type KnownUser } from '../store/tenancy/users.ts'
import { isSameHash, parseApiKey } from './api-key.ts'
import { expiredCredential, unknownCredential, unknownUser } from './errors.ts'
import { createIssuers, type Issuers } from './issuers.ts'
import type { Tokens } from './tokens.ts'

/**
 * Takes the value of the header `Authorization`. Throws AppError `unauthenticated`, and `unavailable` when the keys of an issuer
 * cannot be fetched.
 */
export type Authenticate = (authorization: string | undefined) => Promise<Caller>

/** In characters; a longer credential is not read. Tokens of issuers can be long, and all headers together have at most 16 KB. */
const MAX_LENGTH = 12_288
const BEARER = /^Bearer +([^ ]+) *$/i
const TOUCH_EVERY_MS = 60_000

/** Default: no issuers. */
export function createAuthenticate(
  context: Context,
  tokens: Tokens,
  issuers: Issuers = createIssuers([], context.clock),
): Authenticate {
  const touchKey = createTouch(context)

  async function authenticateKey(text: string): Promise<Caller> {
    const given = parseApiKey(text)
    const key = given === null ? null : await findApiKey(context.database, given.prefix)
    if (given === null || key === null || !isSameHash(given.hash, key.hash)) throw unknownCredential()
    const now = context.clock.now()
    if (key.expiresAt !== null && key.expiresAt <= now) {
      throw expiredCredential('API key', 'have an administrator make a new one')
    }
    if (key.lastUsedAt === null || now - key.lastUsedAt >= TOUCH_EVERY_MS) touchKey(key.id, now)
    const { id, organizationId, projectId, scope } = key
    return { kind: 'api_key', id, organizationId, projectId, scope }
  }

  async function authenticateUser(token: string): Promise<Caller> {
    const issued = await issuers.verify(token)
    if (issued !== null) {
      const user = issued.email === null ? null : await findUserByEmail(context.database, issued.email)
      if (user === null) throw unknownUser()
      return toCaller(user)
    }
    const { userId } = await tokens.verifyAccessToken(token)
    const user = await findUser(context.database, userId)
    if (user === null) throw unknownCredential()
    return toCaller(user)
  }

  return async (authorization = '') => {
    const credential = authorization.length > MAX_LENGTH ? undefined : BEARER.exec(authorization)?.[1]
    if (credential === undefined) throw unknownCredential()
    return credential.startsWith('hbk_') ? authenticateKey(credential) : authenticateUser(credential)
  }
}

function toCaller({ id, organizationId, scope }: KnownUser): Caller {
  return { kind: 'user', id, organizationId, projectId: null, scope }
}

/**
 * Records that a key was used. The call does not wait for it, and a failure is ignored: the next call of the key tries again.
 * This process has at most one such statement in flight for each key, and the statement itself writes once among replicas.
 */
function createTouch({ database }: Context): (keyId: string, now: number) => void {
  const inFlight = new Set<string>()
  return (keyId, now) => {
    if (inFlight.has(keyId)) return
    inFlight.add(keyId)
    touchApiKey(database, keyId, now, TOUCH_EVERY_MS)
      .catch(() => {})
      .finally(() => inFlight.delete(keyId))
  }
}
