/**
 * Reads OIDC_ISSUERS: a JSON array of issuers whose tokens the management API accepts. A fault names the entry and the field,
 * and quotes no value: it may be a private key.
 */

import { createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { isEmail } from './domain/email.ts'

export interface OidcIssuer {
  /** Exactly as in the claim `iss`. */
  readonly issuer: string
  /** Must be among the claim `aud`. */
  readonly audience: string
  /** The e-mail address of a user for each value of the claim `sub`. */
  readonly users: ReadonlyMap<string, string>
  /** Its public keys (RFC 7517); null: they are fetched from the issuer. */
  readonly jwks: { readonly keys: readonly object[] } | null
}

const MOST_ISSUERS = 20
const ISSUER_LENGTH = 2_048
/** The limit of OpenID Connect for `sub` (Core 1.0, section 2), and ours for an audience. */
const NAME_LENGTH = 255
const MOST_KEYS = 100
const RSA_BITS = 2_048
const CURVES = ['prime256v1', 'secp384r1', 'secp521r1']
/** Members of private and of symmetric keys (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1). */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const EXAMPLE = '[{"issuer":"https://login.example.com","audience":"heartbeat-operator"}]'

const name = () =>
  z
    .string('must be text')
    .refine(({ length }) => length >= 1 && length <= NAME_LENGTH, `must have 1 to ${NAME_LENGTH} characters`)

const email = () => z.string('must be an e-mail address').refine(isEmail, 'must be an e-mail address')

const ENTRY = z.strictObject(
  {
    issuer: z
      .string('must be text')
      .refine(isIssuer, 'must be a URL such as https://login.example.com, without credentials, query or fragment'),
    audience: name(),
    users: z.record(z.string(), email(), 'must be an object of e-mail addresses by subject').optional(),
    jwks: z.looseObject({ keys: z.array(z.unknown()) }).optional(),
  },
  'must be an object',
)

export const oidcIssuers = z.string().transform((text, context): readonly OidcIssuer[] => {
  const { entries, faults } = readEntries(text)
  for (const fault of faults) context.addIssue(fault)
  return entries
})

function readEntries(text: string): { entries: OidcIssuer[]; faults: string[] } {
  const given = parseJson(text)
  if (!Array.isArray(given)) return { entries: [], faults: [`must be a JSON array such as ${EXAMPLE}`] }
  if (given.length > MOST_ISSUERS) {
    return { entries: [], faults: [`must have at most ${MOST_ISSUERS} entries, and has ${given.length}`] }
  }
  const entries: OidcIssuer[] = []
  const faults: string[] = []
  for (const [index, value] of given.entries()) {
    const place = `entry ${index + 1}`
    const read = ENTRY.safeParse(value)
    if (!read.success) {
      faults.push(...read.error.issues.map((issue) => `${place}: ${describe(issue)}`))
      continue
    }
    const { issuer, audience, users = {}, jwks = null } = read.data
    const subjects = Object.entries(users)
    const keyFault = jwks === null ? null : findKeySetFault(jwks.keys)
    if (subjects.some(([subject]) => subject === '' || subject.length > NAME_LENGTH))
      faults.push(`${place}: users must have subjects of 1 to ${NAME_LENGTH} characters`)
    if (keyFault !== null) faults.push(`${place}: jwks ${keyFault}`)
    if (entries.some((entry) => entry.issuer === issuer))
      faults.push(`${place}: issuer is the same as in an entry before it: make one entry of them`)
    entries.push({ issuer, audience, users: new Map(subjects), jwks: jwks as OidcIssuer['jwks'] })
  }
  return { entries, faults }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The field and what would be right. */
function describe(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const unknown = issue.keys.map((key) => JSON.stringify(key.slice(0, NAME_LENGTH))).join(', ')
    return `${unknown} is not a known field: the fields are issuer, audience, users and jwks`
  }
  const [field, subject] = issue.path
  if (field === undefined) return issue.message
  if (field === 'jwks') return 'jwks must be an object such as {"keys":[...]}'
  const at = subject === undefined ? '' : `[${JSON.stringify(String(subject).slice(0, NAME_LENGTH))}]`
  return `${String(field)}${at} ${issue.message}`
}

/** OpenID Connect Discovery 1.0, section 3. http is allowed for a loopback address only. */
function isIssuer(text: string): boolean {
  // The URL parser drops blanks and an empty query silently, and then no token would ever match.
  if (text.length > ISSUER_LENGTH || !/^[!-~]+$/.test(text) || /[?#]/.test(text) || !URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '' || !text.startsWith(`${protocol}//`)) return false
  // URL writes IPv4 in four decimals and IPv6 in brackets.
  return protocol === 'https:' || (protocol === 'http:' && /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname))
}

function findKeySetFault(keys: readonly unknown[]): string | null {
  if (keys.length === 0 || keys.length > MOST_KEYS) return `must hold 1 to ${MOST_KEYS} keys`
  const secret = keys.findIndex(
    (key) => typeof key === 'object' && key !== null && SECRET_MEMBERS.some((member) => member in key),
  )
  if (secret >= 0) return `must hold public keys only: key ${secret + 1} is a private or symmetric key`
  const unusable = keys.findIndex((key) => !isSigningKey(key))
  if (unusable < 0) return null
  return `must hold public keys of RSA (${RSA_BITS} bits or more), P-256, P-384, P-521 or Ed25519: key ${unusable + 1} is not one of them`
}

function isSigningKey(jwk: unknown): boolean {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = importKey(jwk) ?? {}
  if (type === 'rsa') return (details?.modulusLength ?? 0) >= RSA_BITS
  return type === 'ed25519' || (type === 'ec' && CURVES.includes(details?.namedCurve ?? ''))
}

/** Null when it is not a public key. */
function importKey(jwk: unknown): KeyObject | null {
  try {
    return createPublicKey({ key: jwk as JsonWebKeyInput['key'], format: 'jwk' })
  } catch {
    return null
  }
}
