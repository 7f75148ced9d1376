/**
 * Tokens of OpenID Connect issuers (OIDC_ISSUERS), verified by RFC 8725, sections 3.1, 3.8 and 3.9: the claim `iss`
 * only selects the keys. A token grants no rights: the user here has the scope.
 */

import type { JSONWebKeySet, JWTPayload, JWTVerifyGetKey } from 'jose'
import { createLocalJWKSet, createRemoteJWKSet, customFetch, decodeJwt, errors, jwtVerify } from 'jose'
import type { Instant } from '../domain/check.ts'
import { toUserEmail } from '../domain/email.ts'
import { AppError } from '../domain/errors.ts'
import type { OidcIssuer } from '../domain/issuer.ts'
import { type Clock, startTimer } from '../runtime/clock.ts'
import { fetchBounded } from '../runtime/http-request.ts'
import { expiredCredential, unknownToken } from './errors.ts'

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

// The keys of an issuer, found through its discovery document (OpenID Connect Discovery 1.0, section 4). They are
// fetched when a token needs them, and at most once in ten seconds: also for unknown keys, and while the issuer is
// down.
// ---------------------------------------------------------------------------------------------------------------------

/** Then they are fetched again, so that a key that the issuer has withdrawn becomes invalid. */
const FRESH_MS = 10 * 60_000
const PAUSE_MS = 10_000
/** For document and keys together. */
const FETCH_MS = 5_000
const MAX_BYTES = 1_048_576

/**
 * `issuer`: its URL as in `iss`. Throws AppError `unavailable` without keys, and what jose throws for an unknown key.
 */
function createIssuerKeys(
  issuer: string,
  clock: Pick<Clock, 'now'>,
  onProblem: (error: unknown) => void,
): JWTVerifyGetKey {
  let failed: { readonly error: unknown; readonly at: Instant } | null = null

  /** jose pauses after a fetch that succeeds, and not after a fetch that fails. */
  async function fetchUnlessPaused(): Promise<Response> {
    const leftMs = failed === null ? 0 : failed.at + PAUSE_MS - clock.now()
    if (failed !== null && leftMs > 0) throw unreachable(issuer, failed.error, leftMs)
    try {
      const keys = await fetchKeys(issuer)
      // Throws for what is no set of keys.
      createLocalJWKSet(keys)
      return Response.json(keys)
    } catch (error) {
      failed = { error, at: clock.now() }
      onProblem(error)
      throw unreachable(issuer, error, PAUSE_MS)
    }
  }

  return createRemoteJWKSet(new URL(issuer), {
    cacheMaxAge: FRESH_MS,
    cooldownDuration: PAUSE_MS,
    [customFetch]: fetchUnlessPaused,
  })
}

function unreachable(issuer: string, cause: unknown, leftMs: number): AppError {
  const message = `the keys of the issuer ${issuer} cannot be fetched at the moment; try again shortly`
  return new AppError('unavailable', message, { retryAfterSeconds: leftMs / 1_000, cause })
}

async function fetchKeys(issuer: string): Promise<JSONWebKeySet> {
  const giveUp = new AbortController()
  const stopTimer = startTimer(FETCH_MS, () =>
    giveUp.abort(new Error(`no response within ${FETCH_MS / 1_000} seconds`)),
  )
  try {
    const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, giveUp.signal)
    return (await fetchJson(findKeysUrl(issuer, document), giveUp.signal)) as JSONWebKeySet
  } finally {
    stopTimer()
  }
}

/** `jwks_uri`. A document of another issuer would make its tokens valid here (Discovery 1.0, section 4.3). */
function findKeysUrl(issuer: string, document: unknown): string {
  const { issuer: named, jwks_uri: uri } = (document ?? {}) as { issuer?: unknown; jwks_uri?: unknown }
  if (named !== issuer) throw new Error('the discovery document is of another issuer')
  const url = typeof uri === 'string' ? URL.parse(uri) : null
  // Without TLS only on the issuer's own origin, which is then a loopback address.
  if (url === null || (url.protocol !== 'https:' && url.origin !== new URL(issuer).origin))
    throw new Error('the discovery document has no jwks_uri that begins with https:')
  return url.href
}

/** By Node's own client: the operator chose the address, so it may be private. Follows no redirect. */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const createError = () => new Error(`${url} responded with more than ${MAX_BYTES} bytes`)
  const { status, bytes } = await fetchBounded(
    url,
    { headers: { accept: 'application/json' }, signal },
    { maxBytes: MAX_BYTES, createError },
  )
  if (status !== 200) throw new Error(`${url} responded with ${status}`)
  try {
    return JSON.parse(bytes.toString())
  } catch (error) {
    throw new Error(`${url} responded with something that is not JSON`, { cause: error })
  }
}
