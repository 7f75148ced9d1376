/**
 * Sign-in to the dashboard with an identity provider (SIGN_IN). What a sign-in needs to finish is in a cookie of its
 * browser, encrypted with a key derived from SECRET_KEY: any replica can finish it, and no other browser. The provider
 * identifies a user and grants no rights: the scope is that of the user here.
 */

import { hkdfSync } from 'node:crypto'
import { EncryptJWT, errors, jwtDecrypt } from 'jose'
import { audited } from '../audit/audited.ts'
import { SYSTEM } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import type { SignInProvider } from '../domain/issuer.ts'
import { addressGroup, networkGroup } from '../runtime/addresses.ts'
import { hashText, isSameSecret } from '../runtime/hashes.ts'
import { newId } from '../runtime/ids.ts'
import { createLimiter } from '../runtime/limiter.ts'
import type { Context } from '../store/context.ts'
import { noteLoginAddress } from '../store/tenancy/login-addresses.ts'
import { findOldestOrganization } from '../store/tenancy/organizations.ts'
import { takeFromSlidingWindow } from '../store/tenancy/rate-windows.ts'
import { findUserByEmail, insertUser, type KnownUser, lockSessionsOf } from '../store/tenancy/users.ts'
import { actOnAccount, actorOf, actsOfFailure } from './account-audit.ts'
import { rejected } from './errors.ts'
import {
  createHandshake,
  createIdentityProvider,
  type Handshake,
  type Identity,
  type IdentityProvider,
} from './identity-provider.ts'
import { findEmail } from './issuers.ts'
import { hashOfNone } from './passwords.ts'
import { beginSession, type FormerSession } from './sessions.ts'

export interface Attempt extends Handshake {
  /** Where the user wants to go afterwards: a path of our own, with its query. */
  readonly next: string
}

export interface Return {
  /** Of this service, as the browser sees it, with the path of a proxy: `https://example.com/heartbeat`. */
  readonly origin: string
  /** What the provider has appended to the redirect URI, with its question mark. */
  readonly query: string
  readonly address: string
  /** Ends with the sign-in. Default: there is none. */
  readonly former?: FormerSession
}

export type SignIn = ReturnType<typeof createSignIn>

export const SIGN_IN_SECONDS = 10 * 60
const KEY_INFO = 'heartbeat-operator sign-in v1'
const ENCRYPTION = { alg: 'dir', enc: 'A256GCM' } as const
/** Browsers keep 4,096 bytes of a cookie. */
const NEXT_LENGTH = 2_000
/** Each waits for a few requests to the provider, of five seconds at most. */
const OF_ALL = { atOnce: 20, waiting: 100, createError: tooManySignIns }
/** Of a network: two at a time ask the provider, twenty wait, so long. Each replay of a return asks it once. */
const OF_NETWORK = { perKey: 2, waiting: 20, waitMs: 10_000, createError: tooManySignIns }

/** `secretKey`: the 32 bytes of SECRET_KEY. `onProblem`: what users are not shown, for the log. */
export function createSignIn(
  context: Context,
  secretKey: Buffer,
  configs: readonly SignInProvider[],
  onProblem: (provider: string, error: unknown) => void = () => {},
) {
  const { clock } = context
  const key = new Uint8Array(hkdfSync('sha256', secretKey, '', KEY_INFO, 32))
  const inTurn = createLimiter(OF_ALL)
  const inTurnOfNetwork = createLimiter(OF_NETWORK)
  const providers = new Map(
    configs.map((config) => {
      const provider = createIdentityProvider(config, clock, (error) => onProblem(config.name, error))
      return [config.name, { config, provider }]
    }),
  )

  function find(name: string): { readonly config: SignInProvider; readonly provider: IdentityProvider } {
    const found = providers.get(name)
    if (found === undefined) throw notFound('sign-in')
    return found
  }

  return {
    names: [...providers.keys()],

    /** Throws AppError `not_found` for an unknown name, `unavailable` when the provider cannot be reached. */
    async begin(name: string, next: string, origin: string) {
      const { provider } = find(name)
      const handshake = createHandshake()
      const location = await inTurn(() => provider.authorizationUrl(redirectUri(origin, name), handshake))
      const now = Math.floor(clock.now() / 1_000)
      const cookie = await new EncryptJWT({ ...handshake, next: next.length > NEXT_LENGTH ? '/' : next })
        .setProtectedHeader(ENCRYPTION)
        .setAudience(name)
        .setExpirationTime(now + SIGN_IN_SECONDS)
        .encrypt(key)
      return { location, cookie }
    },

    /** The attempt in a cookie; null when there is none, or when it has expired or is of another provider. */
    async open(name: string, cookie = ''): Promise<Attempt | null> {
      try {
        const { payload } = await jwtDecrypt<Attempt>(cookie, key, {
          keyManagementAlgorithms: [ENCRYPTION.alg],
          contentEncryptionAlgorithms: [ENCRYPTION.enc],
          audience: name,
          requiredClaims: ['exp'],
          currentDate: new Date(clock.now()),
        })
        const { state, nonce, verifier, next } = payload
        return { state, nonce, verifier, next }
      } catch (error) {
        if (error instanceof errors.JOSEError) return null
        throw error
      }
    },

    /** Returns a token (sessions.ts). Throws AppError `unauthenticated`, `unavailable`, or `not_found` for the name. */
    async finish(
      name: string,
      attempt: Attempt | null,
      { origin, query, address, former = null }: Return,
    ): Promise<string> {
      const { config, provider } = find(name)
      const callback = new URL(`${redirectUri(origin, name)}${query}`)
      if (attempt === null || !isSameSecret(callback.searchParams.get('state') ?? '', attempt.state))
        throw rejected(
          'this sign-in began in another browser, at another address of this service, or more than ten minutes ago: sign in again',
        )
      const signIn = async () => {
        const identity = await inTurn(() => provider.exchange(callback, attempt))
        const user = await findOrCreate(context, config, identity, address)
        return await beginSignedIn(context, user, { address, former }, name, attempt)
      }
      return await inTurnOfNetwork(signIn, [networkGroup(address)])
    },
  }
}

function redirectUri(origin: string, name: string): string {
  return `${origin}/login/${name}/callback`
}

/** Of two first sign-ins at the same time, one creates the user and both find it. */
async function findOrCreate(
  context: Context,
  { name: provider, users, newUserScope: scope }: SignInProvider,
  identity: Identity,
  address: string,
): Promise<KnownUser> {
  const email = findEmail(identity, identity.subject, users)
  if (email === null) throw noAddress(provider, identity)
  const { database, clock } = context
  const found = await findUserByEmail(database, email)
  if (found !== null) return found
  if (scope === null) {
    await auditUnknown(context, provider, address)
    throw rejected(`there is no user with the address ${email}: ask an administrator to create one in the settings`)
  }
  const organizationId = await findOldestOrganization(database)
  if (organizationId === null) throw new Error('the database has no organization')
  const by = { ...SYSTEM, address, organizationId }
  return audited<KnownUser>(context, by, async (tx) => {
    const createdAt = clock.now()
    const row = {
      id: newId(createdAt),
      organizationId,
      email,
      passwordHash: hashOfNone(context.passwordCost),
      scope,
      createdAt,
    }
    const made = await insertUser(tx, { ...row, createdBy: null })
    const user = made === null ? await findUserByEmail(tx, email) : { ...made, organizationId }
    // Another sign-in created it.
    if (user === null) throw removed()
    const detail = { scope, provider }
    const act = { action: 'user.created', target: { id: user.id, name: email }, projectId: null, detail } as const
    return { result: user, acts: made === null ? [] : [act] }
  })
}

/** As a log-in by password of an account that does not exist. */
function auditUnknown(context: Context, provider: string, address: string): Promise<void> {
  return audited(context, actorOf(null, address), async (tx) => {
    const acts = await actsOfFailure(tx, null, false)
    return { result: undefined, acts: acts.map((act) => ({ ...act, detail: { provider } })) }
  })
}

async function beginSignedIn(
  context: Context,
  user: KnownUser,
  { address, former }: Required<Pick<Return, 'address' | 'former'>>,
  provider: string,
  { state }: Attempt,
): Promise<string> {
  return audited(context, actorOf(user, address), async (tx) => {
    if (!(await lockSessionsOf(tx, user.id))) throw removed()
    // Also where the provider takes its code twice, an attempt makes one session, as long as its cookie is valid.
    const spent = hashText(state).toString('base64url')
    const { isAllowed } = await takeFromSlidingWindow(tx, {
      bucket: `sign-in:${spent}`,
      limit: 1,
      seconds: SIGN_IN_SECONDS,
    })
    if (!isAllowed) throw rejected('this sign-in was finished already: sign in again')
    const now = context.clock.now()
    await noteLoginAddress(tx, user.id, addressGroup(address), now)
    const start = { userId: user.id, address, now, former, isByProvider: true }
    const { secret } = await beginSession(tx, 'dashboard', start)
    return { result: secret, acts: [{ ...actOnAccount(user, 'login.succeeded'), detail: { provider } }] }
  })
}

function removed(): AppError {
  return rejected('this user was removed a moment ago: sign in again')
}

function noAddress(provider: string, { email, email_verified }: Identity): AppError {
  const otherwise = 'ask an administrator to list your subject under users in SIGN_IN'
  if (email === undefined) return rejected(`${provider} has not given your e-mail address: ${otherwise}`)
  if (email_verified !== true)
    return rejected(
      `${provider} has not verified your e-mail address: verify it there and sign in again, or ${otherwise}`,
    )
  return rejected(`your e-mail address at ${provider} cannot be that of a user here: ${otherwise}`)
}

function tooManySignIns(): AppError {
  return new AppError('unavailable', 'too many sign-ins at the moment: try again shortly', { retryAfterSeconds: 5 })
}
