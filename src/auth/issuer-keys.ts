/**
 * The public keys of an OpenID Connect issuer (Discovery 1.0, section 4). A token that needs them has them fetched, at
 * most once in ten seconds: also for unknown keys, and while the issuer is down.
 */

import { createLocalJWKSet, createRemoteJWKSet, customFetch, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { type Clock, startTimer } from '../runtime/clock.ts'
import { fetchBounded } from '../runtime/http-request.ts'

/** Then they are fetched again, so that a key that the issuer has withdrawn becomes invalid. */
const FRESH_MS = 10 * 60_000
const PAUSE_MS = 10_000
/** For document and keys together. */
const FETCH_MS = 5_000
const MAX_BYTES = 1_048_576

/**
 * `issuer`: its URL, exactly as in the claim `iss`. `onProblem` is called for each failed fetch. Throws AppError
 * `unavailable` when the keys cannot be fetched, and what jose throws for an unknown key.
 */
export function createIssuerKeys(
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
