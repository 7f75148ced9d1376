/** Who is calling: an API key or an access token becomes a Caller. One statement for a call. */

import type { Parts } from '../checks/parts.ts'
import type { Caller } from '../domain/access.ts'
import { findApiKey, touchApiKey } from '../store/api-keys.ts'
import { findUser } from '../store/users.ts'
import { isSameHash, parseApiKey } from './api-key.ts'
import { expiredCredential, unknownCredential } from './refusals.ts'
import type { Tokens } from './tokens.ts'

/** Takes the value of the header `Authorization`; throws AppError `unauthenticated`. */
export type Authenticate = (authorization: string | undefined) => Promise<Caller>

/** Far above every credential of ours; what is longer is not looked at. */
const LONGEST = 4_096
const BEARER = /^Bearer +([^ ]+) *$/i
const TOUCH_EVERY_MS = 60_000

export function createAuthenticate(parts: Parts, tokens: Tokens): Authenticate {
  const touchKey = createTouch(parts)

  async function authenticateKey(text: string): Promise<Caller> {
    const given = parseApiKey(text)
    const key = given === null ? null : await findApiKey(parts.database, given.prefix)
    if (given === null || key === null || !isSameHash(given.hash, key.hash)) throw unknownCredential()
    const now = parts.clock.now()
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
    const { userId } = await tokens.verifyAccessToken(token)
    const user = await findUser(parts.database, userId)
    if (user === null) throw unknownCredential()
    return { kind: 'user', id: user.id, organizationId: user.organizationId, projectId: null, scope: user.scope }
  }

  return async (authorization = '') => {
    const credential = authorization.length > LONGEST ? undefined : BEARER.exec(authorization)?.[1]
    if (credential === undefined) throw unknownCredential()
    return credential.startsWith('hbk_') ? authenticateKey(credential) : authenticateUser(credential)
  }
}

/**
 * Notes that a key was used. Nobody waits for it, and its failure is nobody's: the next call of the key tries again. A key
 * has one note under way in this process, so a burst of calls is one statement; the statement itself settles it among replicas.
 */
function createTouch({ database }: Parts): (keyId: string, now: number) => void {
  const underWay = new Set<string>()
  return (keyId, now) => {
    if (underWay.has(keyId)) return
    underWay.add(keyId)
    touchApiKey(database, keyId, now, TOUCH_EVERY_MS)
      .catch(() => {})
      .finally(() => underWay.delete(keyId))
  }
}
