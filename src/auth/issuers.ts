/**
 * Tokens of OpenID Connect issuers (OIDC_ISSUERS): a company's log-in, or a Kubernetes cluster. The claim `iss`, believed by
 * nobody yet, only says whose keys to look at; then everything is verified (RFC 8725, sections 3.1, 3.8 and 3.9). A token says
 * who somebody is and nothing else: what they may do is that of the user here.
 */

import {
  createLocalJWKSet,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { isEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import type { Clock } from '../runtime/clock.ts'
import { createIssuerKeys } from './issuer-keys.ts'
import { expiredCredential, unknownCredential } from './refusals.ts'

export interface IssuerConfig {
  /** URL, compared with the claim `iss` to the letter. */
  readonly issuer: string
  /** Must be among the claim `aud`. */
  readonly audience: string
  /** By the claim `sub`: the e-mail address of a user. */
  readonly users: ReadonlyMap<string, string>
  /** Its public keys; null: it is asked for them. */
  readonly jwks: { readonly keys: readonly object[] } | null
}

export interface IssuedToken {
  readonly issuer: string
  /** Of the user for whom the token speaks; null: it names nobody. That there is such a user is not known here. */
  readonly email: string | null
}

export interface Issuers {
  /**
   * Null: of none of them (our own tokens, or nobody's). Throws AppError `unauthenticated`, or `unavailable` when the
   * issuer's keys cannot be had.
   */
  verify(token: string): Promise<IssuedToken | null>
}

/** Only signatures by public keys: with HS256 whoever knows the public key could sign (RFC 8725, section 2.1). */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
/** Clocks of others are not ours. */
const TOLERANCE_SECONDS = 30

/** `clock` decides what has expired; `onProblem` is told when an issuer was asked for its keys in vain. */
export function createIssuers(
  configs: readonly IssuerConfig[],
  clock: Pick<Clock, 'now'>,
  onProblem: (issuer: string, error: unknown) => void = () => {},
): Issuers {
  const issuers = new Map(configs.map((config) => [config.issuer, { config, findKey: createFindKey(config) }]))

  function createFindKey({ issuer, jwks }: IssuerConfig): JWTVerifyGetKey {
    if (jwks !== null) return createLocalJWKSet(jwks as JSONWebKeySet)
    return createIssuerKeys({ issuer, clock, onProblem: (error) => onProblem(issuer, error) })
  }

  return {
    async verify(token) {
      const known = issuers.get(readIssuer(token) ?? '')
      if (known === undefined) return null
      const { issuer, audience, users } = known.config
      try {
        const { payload } = await jwtVerify(token, known.findKey, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          // Without an end a token would be good forever.
          requiredClaims: ['exp'],
          clockTolerance: TOLERANCE_SECONDS,
          currentDate: new Date(clock.now()),
        })
        return { issuer, email: findEmail(payload, readSubject(payload), users) }
      } catch (error) {
        // jose looks at the times after the signature, so only the holder of a real token learns that it has expired.
        if (error instanceof errors.JWTExpired) throw expiredCredential('token', 'get a new one from its issuer')
        if (error instanceof AppError) throw error
        if (error instanceof errors.JOSEError) throw unknownCredential()
        // A key of the issuer's that says it is one, and is not: too short an RSA key, for example.
        throw new AppError('unavailable', `the issuer ${issuer} has signed this token with a key that is unusable`, {
          retryAfterSeconds: 60,
          cause: error,
        })
      }
    },
  }
}

/** Undefined when it is no JWT, or names none. */
function readIssuer(token: string): string | undefined {
  try {
    return decodeJwt(token).iss
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined
    throw error
  }
}

/** jose would take any value for one. */
function readSubject({ sub }: JWTPayload): string {
  if (typeof sub !== 'string' || sub === '') throw unknownCredential()
  return sub
}

/**
 * Whom the operator has named for the subject; else the address, when the issuer says that it has verified it (OpenID Connect
 * Core 1.0, section 5.1). Not one with letters beyond ASCII: to a database that tells no capitals apart, two of them may be
 * one (the Kelvin sign is a k).
 */
function findEmail(
  { email, email_verified }: JWTPayload,
  subject: string,
  users: ReadonlyMap<string, string>,
): string | null {
  const named = users.get(subject)
  if (named !== undefined) return named
  if (email_verified !== true || typeof email !== 'string') return null
  return isEmail(email) && /^[!-~]+$/.test(email) ? email : null
}
