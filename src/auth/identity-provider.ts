/**
 * One identity provider of the dashboard: the authorization code flow with PKCE, state and nonce (OpenID Connect Core
 * 1.0, section 3.1; RFC 7636). The operator chose its address, so it may be a private one.
 */

import * as client from 'openid-client'
import type { Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import type { SignInProvider } from '../domain/issuer.ts'
import { type Clock, systemClock } from '../runtime/clock.ts'
import { fetchBounded } from '../runtime/http-request.ts'
import { rejected } from './errors.ts'

/** Random values of one sign-in, which only its browser has. */
export interface Handshake {
  readonly state: string
  readonly nonce: string
  /** Of PKCE: the provider gives tokens only to who has it. */
  readonly verifier: string
}

/** What the provider says about the user, signed or fetched with the user's token. */
export type Identity = {
  readonly subject: string
  readonly email?: unknown
  readonly email_verified?: unknown
}

export type IdentityProvider = ReturnType<typeof createIdentityProvider>

/** Then the discovery document is fetched again. */
const FRESH_MS = 10 * 60_000
/** For each request to the provider; there are at most five in a sign-in. */
const TIMEOUT_SECONDS = 5
const MAX_BYTES = 1_048_576
const DETAIL_LENGTH = 300

export function createHandshake(): Handshake {
  return { state: client.randomState(), nonce: client.randomNonce(), verifier: client.randomPKCECodeVerifier() }
}

/** `clock` decides what has expired. `onProblem` is called with what the user is not shown. */
export function createIdentityProvider(
  { name, issuer, clientId, clientSecret, users }: SignInProvider,
  clock: Pick<Clock, 'now'>,
  onProblem: (error: unknown) => void,
  timeoutSeconds = TIMEOUT_SECONDS,
) {
  let known: { readonly configuration: client.Configuration; readonly at: Instant } | null = null
  let discovering: Promise<client.Configuration> | null = null
  /** Providers accept the secret in a header, in the body, or both; some list a way that this client may not use. */
  let isSecretInBody: boolean | null = null
  const ways = { header: client.ClientSecretBasic(clientSecret), body: client.ClientSecretPost(clientSecret) }

  async function discover(): Promise<client.Configuration> {
    // The library reads the clock of the process.
    const skew = Math.round((clock.now() - systemClock.now()) / 1_000)
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      { [client.clockSkew]: skew },
      (...request) => ways[isSecretInBody === true ? 'body' : 'header'](...request),
      {
        timeout: timeoutSeconds,
        [client.customFetch]: fetchForLibrary,
        execute: [
          // Verifies the signature of the ID token, although it comes from the provider itself.
          client.enableNonRepudiationChecks,
          // config/sign-in.ts allows http for loopback addresses only.
          ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
        ],
      },
    )
    const { issuer: found, token_endpoint_auth_methods_supported: methods } = configuration.serverMetadata()
    // The library accepts issuers of any tenant from some hosts.
    if (found !== issuer) throw new Error('the discovery document is of another issuer')
    isSecretInBody ??= methods !== undefined && !methods.includes('client_secret_basic')
    known = { configuration, at: clock.now() }
    return configuration
  }

  /** Sign-ins at the same time share one fetch. While it fails, what was found before is used. */
  async function configure(): Promise<client.Configuration> {
    if (known !== null && clock.now() - known.at < FRESH_MS) return known.configuration
    discovering ??= discover().finally(() => {
      discovering = null
    })
    try {
      return await discovering
    } catch (error) {
      onProblem(error)
      if (known !== null) return known.configuration
      throw unreachable(error)
    }
  }

  /** A secret that was sent in the wrong way is sent in the other one. */
  async function grant(
    configuration: client.Configuration,
    callback: URL,
    checks: client.AuthorizationCodeGrantChecks,
  ) {
    try {
      return await client.authorizationCodeGrant(configuration, callback, checks)
    } catch (error) {
      if (codeOf(error) !== 'invalid_client') throw error
      isSecretInBody = isSecretInBody !== true
      return await client.authorizationCodeGrant(configuration, callback, checks)
    }
  }

  async function identify(callback: URL, { state, nonce, verifier }: Handshake): Promise<Identity> {
    const configuration = await configure()
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true }
    const tokens = await grant(configuration, callback, checks)
    const { sub: subject, email, email_verified } = tokens.claims()!
    const isKnown = users.has(subject) || (email !== undefined && email_verified === true)
    if (isKnown || configuration.serverMetadata().userinfo_endpoint === undefined)
      return { subject, email, email_verified }
    // Many providers give the address here only (Core 1.0, section 5.4).
    const found = await client.fetchUserInfo(configuration, tokens.access_token, subject)
    return { subject, email: found.email, email_verified: found.email_verified }
  }

  function unreachable(cause: unknown): AppError {
    const message = `${name} cannot be reached at the moment: try again in a minute`
    return new AppError('unavailable', message, { retryAfterSeconds: 60, cause })
  }

  function toAppError(error: unknown): AppError {
    if (error instanceof AppError) return error
    const code = codeOf(error)
    if (code === 'access_denied')
      return rejected(`${name} has not signed you in: sign in again, or ask an administrator of ${name} for access`)
    onProblem(detailOf(error))
    if (code === 'invalid_grant' || code === 'OAUTH_JWT_CLAIM_COMPARISON_FAILED')
      return rejected('this sign-in was finished before, or took too long: sign in again')
    if (code === 'invalid_client' || code === 'unauthorized_client')
      return new AppError(
        'unavailable',
        `${name} does not accept this service: have an administrator check client_id and client_secret in SIGN_IN`,
      )
    if (error instanceof client.AuthorizationResponseError && !/^(server_error|temporarily_unavailable)$/.test(code))
      return rejected(`${name} has not signed you in: sign in again, and if that does not help, ask an administrator`)
    return unreachable(error)
  }

  // Both throw AppError: `unavailable`, or `unauthenticated` when the provider has not signed the user in.
  return {
    async authorizationUrl(redirectUri: string, { state, nonce, verifier }: Handshake): Promise<string> {
      const parameters = {
        redirect_uri: redirectUri,
        scope: 'openid email',
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }
      try {
        return client.buildAuthorizationUrl(await configure(), parameters).href
      } catch (error) {
        throw toAppError(error)
      }
    },

    /** `callback`: the redirect URI with the query of the provider. */
    async exchange(callback: URL, handshake: Handshake): Promise<Identity> {
      try {
        return await identify(callback, handshake)
      } catch (error) {
        throw toAppError(error)
      }
    },
  }
}

/** The error that the provider named, or that of the library. */
function codeOf(error: unknown): string {
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError)
    return error.error
  if (error instanceof client.WWWAuthenticateChallengeError) {
    const named = error.cause.find(({ parameters }) => parameters.error !== undefined)?.parameters.error
    return named ?? (error.status === 401 ? 'invalid_client' : '')
  }
  return error instanceof client.ClientError ? (error.code ?? '') : ''
}

/** With the words of the provider, for the log. */
function detailOf(error: unknown): unknown {
  if (!(error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError)) return error
  return new Error(`${error.error}: ${error.error_description ?? ''}`.slice(0, DETAIL_LENGTH), { cause: error })
}

/** Throws for a body of more than a megabyte. The library's signal ends it in time, also while the body is read. */
const fetchForLibrary: client.CustomFetch = async (url, { method, headers, body, signal }) => {
  const createError = () => new Error(`the provider responded with more than ${MAX_BYTES} bytes`)
  const request = { method, headers, body: body == null ? null : String(body), signal: signal ?? NEVER }
  const { status, headers: received, bytes } = await fetchBounded(url, request, { maxBytes: MAX_BYTES, createError })
  return new Response(BODILESS.includes(status) ? null : new Uint8Array(bytes), { status, headers: received })
}

const NEVER = new AbortController().signal
/** A `Response` with one of these takes no body. */
const BODILESS = [204, 205, 304]
