/**
 * The public keys of an OpenID Connect issuer, found by its discovery document (OpenID Connect Discovery 1.0, section 4).
 * Nothing is asked before a token wants it. An issuer is asked at most once in ten seconds, whatever tokens come: by those
 * that name a key that it does not have, and while it is down.
 */

import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'
import type { Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { type Clock, startTimer } from '../runtime/clock.ts'

export interface IssuerKeysOptions {
  /** Its URL, as it writes it itself. */
  readonly issuer: string
  readonly clock: Pick<Clock, 'now'>
  /** Once for each time that it was asked in vain. */
  readonly onProblem: (error: unknown) => void
}

/** After so long they are asked for again: a key that the issuer has withdrawn is good no longer. */
const FRESH_MS = 10 * 60_000
const PAUSE_MS = 10_000
/** For document and keys together. */
const ANSWER_MS = 5_000
const MOST_BYTES = 1_048_576

/** The returned function throws AppError `unavailable` when the keys cannot be had, and what jose throws for an unknown key. */
export function createIssuerKeys({ issuer, clock, onProblem }: IssuerKeysOptions): JWTVerifyGetKey {
  let known: { readonly find: JWTVerifyGetKey; readonly at: Instant } | null = null
  let failed: { readonly error: unknown; readonly at: Instant } | null = null
  let asking: Promise<JWTVerifyGetKey> | null = null

  async function ask(): Promise<JWTVerifyGetKey> {
    try {
      const find = createLocalJWKSet(await fetchKeys(issuer))
      known = { find, at: clock.now() }
      return find
    } catch (error) {
      failed = { error, at: clock.now() }
      onProblem(error)
      throw unreachable(issuer, error, PAUSE_MS)
    } finally {
      asking = null
    }
  }

  /** Tokens that come at the same time share one asking. */
  async function renew(): Promise<JWTVerifyGetKey> {
    const leftMs = failed === null ? 0 : failed.at + PAUSE_MS - clock.now()
    if (failed !== null && leftMs > 0) throw unreachable(issuer, failed.error, leftMs)
    asking ??= ask()
    return asking
  }

  return async (header, token) => {
    const find = known !== null && clock.now() - known.at < FRESH_MS ? known.find : await renew()
    try {
      return await find(header, token)
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      // A key that is newer than what is known, perhaps.
      if (known !== null && clock.now() - known.at < PAUSE_MS) throw error
      return (await renew())(header, token)
    }
  }
}

function unreachable(issuer: string, cause: unknown, leftMs: number): AppError {
  const message = `the keys of the issuer ${issuer} cannot be had at the moment; try again shortly`
  return new AppError('unavailable', message, { retryAfterSeconds: leftMs / 1_000, cause })
}

async function fetchKeys(issuer: string): Promise<JSONWebKeySet> {
  const giveUp = new AbortController()
  const stopTimer = startTimer(ANSWER_MS, () =>
    giveUp.abort(new Error(`no answer within ${ANSWER_MS / 1_000} seconds`)),
  )
  try {
    const document = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, giveUp.signal)
    return (await fetchJson(findKeysUrl(issuer, document), giveUp.signal)) as JSONWebKeySet
  } finally {
    stopTimer()
  }
}

/** `jwks_uri` of the discovery document. Another issuer's document would make its tokens good here (section 4.3). */
function findKeysUrl(issuer: string, document: unknown): string {
  const { issuer: named, jwks_uri: uri } = (document ?? {}) as { issuer?: unknown; jwks_uri?: unknown }
  if (named !== issuer) throw new Error('its discovery document is that of another issuer')
  const url = typeof uri === 'string' ? URL.parse(uri) : null
  // Without TLS only where the issuer itself is: a loopback address.
  if (url === null || (url.protocol !== 'https:' && url.origin !== new URL(issuer).origin))
    throw new Error('its discovery document has no jwks_uri that begins with https:')
  return url.href
}

/**
 * By Node's own client: whoever runs the installation chose the address, so it may be a private one. Follows no redirect. Throws for every status but 200, and for a body of more than a megabyte.
 */
async function fetchJson(url: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(url, { headers: { accept: 'application/json' }, redirect: 'manual', signal })
  if (response.status !== 200 || response.body === null) {
    await response.body?.cancel()
    throw new Error(`${url} answered ${response.status}`)
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body) {
    bytes += chunk.length
    if (bytes > MOST_BYTES) throw new Error(`${url} answered with more than ${MOST_BYTES} bytes`)
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString())
  } catch (error) {
    throw new Error(`${url} answered with something that is no JSON`, { cause: error })
  }
}
