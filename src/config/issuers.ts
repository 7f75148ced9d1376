/**
 * Reads OIDC_ISSUERS: a JSON array of issuers whose tokens the management API accepts. A fault names the entry and the
 * field, and quotes no value: it may be a private key. sign-in.ts shares the rules of issuers.
 */

import { createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { toUserEmail, USER_EMAIL_RULE } from '../domain/email.ts'
import type { OidcIssuer } from '../domain/issuer.ts'
import { parseJson } from './values.ts'

const ISSUER_LENGTH = 2_048
const MOST_ISSUERS = 20
/** The limit of OpenID Connect for `sub` (Core 1.0, section 2), and ours for an audience. */
const NAME_LENGTH = 255
const MOST_KEYS = 100
const RSA_BITS = 2_048
const CURVES = ['prime256v1', 'secp384r1', 'secp521r1']
/** Members of private and of symmetric keys (RFC 7518, sections 6.2.2, 6.3.2 and 6.4.1). */
const SECRET_MEMBERS = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const EXAMPLE = '[{"issuer":"https://login.example.com","audience":"heartbeat-operator"}]'

export const textOf = (longest: number) =>
  z
    .string('must be text')
    .refine(
      ({ length }) => length >= 1 && length <= longest,
      `must have 1 to ${longest.toLocaleString('en')} characters`,
    )

const email = () => z.string(USER_EMAIL_RULE).refine((text) => toUserEmail(text) !== null, USER_EMAIL_RULE)

/** The fields that OIDC_ISSUERS and SIGN_IN share. */
export const issuerUrl = z
  .string('must be text')
  .refine(isIssuer, 'must be a URL such as https://login.example.com, without credentials, query or fragment')
export const identifier = textOf(NAME_LENGTH)
export const usersBySubject = z
  .record(z.string(), email(), 'must be an object of e-mail addresses by subject')
  .optional()

const ENTRY = z.strictObject(
  {
    issuer: issuerUrl,
    audience: identifier,
    users: usersBySubject,
    jwks: z.looseObject({ keys: z.array(z.unknown()) }).optional(),
  },
  'must be an object',
)

export const oidcIssuers = entriesOf({
  entry: ENTRY,
  example: EXAMPLE,
  fields: 'issuer, audience, users and jwks',
  shapes: { jwks: 'jwks must be an object such as {"keys":[...]}' },
  read({ issuer, audience, users = {}, jwks = null }, before: readonly OidcIssuer[]) {
    const keyFault = jwks === null ? null : findKeySetFault(jwks.keys)
    const isDouble = before.some((entry) => entry.issuer === issuer)
    const value = { issuer, audience, users: new Map(Object.entries(users)), jwks: jwks as OidcIssuer['jwks'] }
    return [
      value,
      findSubjectFault(users),
      keyFault === null ? null : `jwks ${keyFault}`,
      isDouble ? 'issuer is the same as in an entry before it: make one entry of them' : null,
    ]
  },
})

interface EntrySchema<Entry, Value> {
  readonly entry: z.ZodType<Entry>
  /** Of a whole text. */
  readonly example: string
  /** Of an entry, in words. */
  readonly fields: string
  /** The fault of a field whose parts are not described one by one. */
  readonly shapes: Readonly<Record<string, string>>
  /** Returns the value of an entry of the right shape, and its other faults. */
  readonly read: (entry: Entry, before: readonly Value[]) => readonly [Value, ...(string | null)[]]
}

/** A JSON array. Each fault of an entry has the number of the entry. */
export function entriesOf<Entry, Value>({ entry, example, fields, shapes, read }: EntrySchema<Entry, Value>) {
  return z.string().transform((text, context): readonly Value[] => {
    const values: Value[] = []
    const given = parseJson(text)
    if (!Array.isArray(given)) context.addIssue(`must be a JSON array such as ${example}`)
    else if (given.length > MOST_ISSUERS)
      context.addIssue(`must have at most ${MOST_ISSUERS} entries, and has ${given.length}`)
    else
      for (const [index, one] of given.entries())
        for (const fault of readEntry(one)) if (fault !== null) context.addIssue(`entry ${index + 1}: ${fault}`)
    return values

    function readEntry(one: unknown): (string | null)[] {
      const parsed = entry.safeParse(one)
      if (!parsed.success)
        return parsed.error.issues.map((issue) => shapes[String(issue.path[0])] ?? describeIssue(issue, fields))
      const [value, ...faults] = read(parsed.data, values)
      values.push(value)
      return faults
    }
  })
}

export function findSubjectFault(users: Readonly<Record<string, string>>): string | null {
  const isWrong = Object.keys(users).some((subject) => subject === '' || subject.length > NAME_LENGTH)
  return isWrong ? `users must have subjects of 1 to ${NAME_LENGTH} characters` : null
}

/** The field and what would be right. `fields`: those of an entry. */
function describeIssue(issue: z.core.$ZodIssue, fields: string): string {
  const [field, subject] = issue.path
  if (issue.code === 'unrecognized_keys') {
    const unknown = issue.keys.map((key) => JSON.stringify(key.slice(0, NAME_LENGTH))).join(', ')
    return `${unknown} is not a known field: the fields are ${fields}`
  }
  if (field === undefined) return issue.message
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
