/**
 * Access tokens: JWTs that are valid for 15 minutes. A token only identifies the user and the session, which each call
 * reads from the database: a removed user or an ended session loses access at once.
 */

import { hkdfSync } from 'node:crypto'
import { errors, jwtVerify, SignJWT } from 'jose'
import { AppError } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { SECRET_KEY_BYTES } from '../domain/limits.ts'
import type { Clock } from '../runtime/clock.ts'
import { expiredCredential, unknownToken } from './errors.ts'

export const ACCESS_TOKEN_SECONDS = 15 * 60

const ISSUER = 'heartbeat-operator'
const AUDIENCE = 'heartbeat-operator/api'
const TYPE = 'at+jwt' // RFC 9068, section 2.1
const ALGORITHM = 'HS256'
/** Names the purpose, which makes the key independent of others derived from SECRET_KEY (RFC 5869, section 3.2). */
const KEY_INFO = 'heartbeat-operator access token v1'

export interface AccessTokenOf {
  readonly userId: string
  readonly sessionId: string
}

export type Tokens = ReturnType<typeof createTokens>

/** `secretKey`: the 32 bytes of SECRET_KEY. `clock` decides what has expired. */
export function createTokens(secretKey: Buffer, clock: Pick<Clock, 'now'>) {
  if (secretKey.length !== SECRET_KEY_BYTES) {
    const lengths = `${secretKey.length} bytes, ${SECRET_KEY_BYTES} are needed`
    throw new Error(`SECRET_KEY has ${lengths}: make one with "openssl rand -base64 32"`)
  }
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', KEY_INFO, 32))

  return {
    issueAccessToken({ userId, sessionId }: AccessTokenOf): Promise<string> {
      const issuedAt = Math.floor(clock.now() / 1_000)
      return new SignJWT({ sid: sessionId })
        .setProtectedHeader({ alg: ALGORITHM, typ: TYPE })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(userId)
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + ACCESS_TOKEN_SECONDS)
        .sign(key)
    },

    /** Throws AppError `unauthenticated`. createAuthenticate checks that the session and the user still exist. */
    async verifyAccessToken(token: string): Promise<AccessTokenOf> {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          issuer: ISSUER,
          audience: AUDIENCE,
          typ: TYPE,
          // Without an expiry a token would be valid forever.
          requiredClaims: ['sub', 'sid', 'exp'],
          currentDate: new Date(clock.now()),
        })
        const { sub: userId, sid: sessionId } = payload
        if (!isUuidText(userId) || !isUuidText(sessionId)) throw unknownToken()
        return { userId, sessionId }
      } catch (error) {
        // jose checks the times after the signature, so only the holder of a valid token learns that it has expired.
        if (error instanceof errors.JWTExpired) throw expiredCredential('access token', 'refresh it or log in again')
        if (error instanceof errors.JOSEError || error instanceof AppError) throw unknownToken()
        throw error
      }
    },
  }
}

function isUuidText(claim: unknown): claim is string {
  return typeof claim === 'string' && isUuid(claim)
}
