/**
 * Tokens of OpenID Connect issuers (OIDC_ISSUERS), verified by RFC 8725, sections 3.1, 3.8 and 3.9: the claim `iss`
 * only selects the keys. A token grants no rights: the scope is that of the user here.
 */

import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose'
import { createLocalJWKSet, decodeJwt, errors, jwtVerify } from 'jose'
import { toUserEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import type { OidcIssuer } from '../domain/issuer.ts'
import type { Clock } from '../runtime/clock.ts'
import { expiredCredential, unknownToken } from './errors.ts'
import { createIssuerKeys } from './issuer-keys.ts'

export type Issuers = ReturnType<typeof createIssuers>

/** With HS256 everyone who knows the public key could sign (RFC 8725, section 2.1). */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** For the difference between the issuer's clock and ours. */
const TOLERANCE_SECONDS = 30

/** `clock` decides what has expired; `onProblem` is called when the keys of an issuer cannot be fetched. */
export function createIssuers(
  configs: readonly OidcIssuer[],
  clock: Pick<Clock, 'now'>,
  onProblem: (issuer: string, error: unknown) => void = () => {},
) {
  const issuers = new Map(configs.map((config) => [config.issuer, { config, findKey: createFindKey(config) }]))

  function createFindKey({ issuer, jwks }: OidcIssuer): JWTVerifyGetKey {
    if (jwks !== null) return createLocalJWKSet(jwks as JSONWebKeySet)
    return createIssuerKeys(issuer, clock, (error) => onProblem(issuer, error))
  }

  return {
    /**
     * The address of the token's user, null when the token names none. Null for a token of another issuer. Throws
     * AppError `unauthenticated`, or `unavailable` without the issuer's keys.
     */
    async verify(token: string): Promise<{ readonly issuer: string; readonly email: string | null } | null> {
      const known = issuers.get(readIssuer(token) ?? '')
      if (known === undefined) return null
      const { issuer, audience, users } = known.config
      try {
        const { payload } = await jwtVerify(token, known.findKey, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          // Without an expiry a token would be valid forever.
          requiredClaims: ['exp'],
          clockTolerance: TOLERANCE_SECONDS,
          currentDate: new Date(clock.now()),
        })
        return { issuer, email: findEmail(payload, readSubject(payload), users) }
      } catch (error) {
        // jose checks the times after the signature, so only the holder of a valid token learns that it has expired.
        if (error instanceof errors.JWTExpired) throw expiredCredential('token', 'get a new one from its issuer')
        if (error instanceof AppError) throw error
        if (error instanceof errors.JOSEError) throw unknownToken()
        // The issuer's key itself is not usable, for example an RSA key that is too short.
        const message = `the issuer ${issuer} has signed this token with a key that cannot be used`
        throw new AppError('unavailable', message, { retryAfterSeconds: 60, cause: error })
      }
    },
  }
}

function readIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined
    throw error
  }
}

/** jose does not check the type of the claim. */
function readSubject({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || sub === '') throw unknownToken()
  return sub
}

/**
 * The address configured for the subject, else the token's address when the issuer has verified it (OpenID Connect Core
 * 1.0, section 5.1). Only in ASCII: two other addresses may be equal without regard to case (the Kelvin sign is a k).
 */
export function findEmail(
  { email, email_verified }: Readonly<Record<string, unknown>>,
  subject: string,
  users: OidcIssuer['users'],
): string | null {
  const named = users.get(subject)
  if (named !== undefined) return toUserEmail(named)
  return email_verified === true && typeof email === 'string' ? toUserEmail(email) : null
}
