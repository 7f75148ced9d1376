/** Who is calling: an API key, an access token or a token of an issuer becomes a Caller. One statement for a call. */

import type { Caller } from '../domain/access.ts'
import type { Context } from '../store/context.ts'
import { findApiKey, touchApiKey } from '../store/tenancy/api-keys.ts'
import { findUser, findUserByEmail, type KnownUser } from '../store/tenancy/users.ts'
import { isSameHash, parseApiKey } from './api-key.ts'
import { createIssuers, type Issuers } from './issuers.ts'
import { expiredCredential, unknownCredential, unknownUser } from './refusals.ts'
import type { Tokens } from './tokens.ts'

/** Takes the value of the header `Authorization`; throws AppError `unauthenticated`, and `unavailable` when an issuer's keys cannot be had. */
export type Authenticate = (authorization: string | undefined) => Promise<Caller>

/** Characters. Tokens of issuers can be long, and all headers together have at most 16 KB; what is longer is not looked at. */
const LONGEST = 12_288
const BEARER = /^Bearer +([^ ]+) *$/i
const TOUCH_EVERY_MS = 60_000

/** Without `issuers`: none. */
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
    return {
      kind: 'api_key',
      id: key.id,
      organizationId: key.organizationId,
      projectId: key.projectId,
      scope: key.scope,
    }
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
    const credential = authorization.length > LONGEST ? undefined : BEARER.exec(authorization)?.[1]
    if (credential === undefined) throw unknownCredential()
    return credential.startsWith('hbk_') ? authenticateKey(credential) : authenticateUser(credential)
  }
}

function toCaller({ id, organizationId, scope }: KnownUser): Caller {
  return { kind: 'user', id, organizationId, projectId: null, scope }
}

/**
 * Notes that a key was used. Nobody waits for it, and its failure is nobody's: the next call of the key tries again. A key
 * has one note under way in this process, so a burst of calls is one statement; the statement itself settles it among replicas.
 */
function createTouch({ database }: Context): (keyId: string, now: number) => void {
  const underWay = new Set<string>()
  return (keyId, now) => {
    if (underWay.has(keyId)) return
    underWay.add(keyId)
    touchApiKey(database, keyId, now, TOUCH_EVERY_MS)
      .catch(() => {})
      .finally(() => underWay.delete(keyId))
  }
}
