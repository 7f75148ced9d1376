/** An OpenID Connect issuer on loopback: its discovery document, its keys, and tokens that they sign. */

import { CompactSign, type CryptoKey, exportJWK, generateKeyPair, type JWK } from 'jose'
import { type Receiver, type ReceiverAnswer, startReceiver } from './receiver.ts'

export interface TestKey {
  readonly alg: string
  readonly kid: string
  readonly privateKey: CryptoKey
  /** Its public half. */
  readonly jwk: JWK
}

export interface TestIssuer extends AsyncDisposable {
  readonly url: string
  readonly key: TestKey
  readonly receiver: Receiver
  /** What it answers; a test changes one of them, or what an address without one answers (404). */
  readonly pages: Map<string, ReceiverAnswer>
  /** It has these keys from now on. */
  showKeys(...keys: TestKey[]): void
  /** A token for Ann, good for an hour; undefined takes a claim away. */
  sign(claims?: object, by?: TestKey, header?: object): Promise<string>
}

export const DOCUMENT = '/.well-known/openid-configuration'
export const KEYS = '/keys'
export const AUDIENCE = 'heartbeat-operator'
/** May be signed as one that must be understood (`crit`, RFC 7515, section 4.1.11). */
export const UNKNOWN_HEADER = 'urn:example:unknown'

export async function makeKey(kid = 'first', alg = 'ES256'): Promise<TestKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export async function startIssuer(now: () => number = Date.now): Promise<TestIssuer> {
  const [receiver, key] = [await startReceiver(), await makeKey()]
  const pages = new Map<string, ReceiverAnswer>()
  receiver.answer(({ path }) => pages.get(path) ?? { status: 404 })
  pages.set(DOCUMENT, asJson({ issuer: receiver.url, jwks_uri: `${receiver.url}${KEYS}` }))
  const showKeys = (...keys: TestKey[]) => pages.set(KEYS, asJson({ keys: keys.map(({ jwk }) => jwk) }))
  showKeys(key)
  return {
    url: receiver.url,
    key,
    receiver,
    pages,
    showKeys,
    sign: (claims, by = key, header) => signToken(by, { iss: receiver.url, ...standard(now()), ...claims }, header),
    [Symbol.asyncDispose]: receiver.close,
  }
}

export function asJson(value: unknown): ReceiverAnswer {
  return { status: 200, headers: { 'content-type': 'application/json' }, text: JSON.stringify(value) }
}

/** Claims and header are signed as they are, right or wrong. */
export function signToken(by: TestKey, claims: object, header: object = {}): Promise<string> {
  return new CompactSign(Buffer.from(JSON.stringify(claims)))
    .setProtectedHeader({ alg: by.alg, kid: by.kid, ...header })
    .sign(by.privateKey, { crit: { [UNKNOWN_HEADER]: true } })
}

function standard(now: number) {
  const iat = Math.floor(now / 1_000)
  return { aud: AUDIENCE, sub: 'ann', iat, exp: iat + 3_600, email: 'ann@example.com', email_verified: true }
}
