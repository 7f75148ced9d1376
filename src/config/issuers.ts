/**
 * Reads OIDC_ISSUERS: a JSON array of issuers whose tokens the management API accepts. A fault names the entry and the
 * field, and quotes no value: it may be a private key. sign-in.ts shares the rules of issuers.
 */

import { createPublicKey, type JsonWebKeyInput, type KeyObject } from 'node:crypto'
import { z } from 'zod'
import { toUserEmail, USER_EMAIL_RULE } from '../domain/email.ts'
import type { OidcIssuer } from '../domain/issuer.ts'
import { parseJson, withFault } from './values.ts'

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
  .refine(
    (users) => Object.keys(users).every((subject) => subject !== '' && subject.length <= NAME_LENGTH),
    `must have subjects of 1 to ${NAME_LENGTH} characters`,
  )
  .transform((users): ReadonlyMap<string, string> => new Map(Object.entries(users)))
  .prefault({})

const isKeySet = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'keys' in value && Array.isArray(value.keys)

export const oidcIssuers = entriesOf({
  fields: {
    issuer: issuerUrl,
    audience: identifier,
    users: usersBySubject,
    jwks: z
      .custom<NonNullable<OidcIssuer['jwks']>>(isKeySet, 'must be an object such as {"keys":[...]}')
      .superRefine(withFault(({ keys }) => findKeySetFault(keys)))
      .optional()
      .transform((jwks): OidcIssuer['jwks'] => jwks ?? null),
  },
  example: EXAMPLE,
  unique: ['issuer', 'make one entry of them'],
})

interface EntrySchema<Shape extends z.ZodRawShape> {
  readonly fields: Shape
  /** Of a whole text. */
  readonly example: string
  /** A field that no two entries have alike, and what to do about it. */
  readonly unique: readonly [keyof Shape & string, string]
}

/** A JSON array. Each fault of an entry has the number of the entry. */
export function entriesOf<Shape extends z.ZodRawShape>({
  fields,
  example,
  unique: [name, advice],
}: EntrySchema<Shape>) {
  const entry = z.strictObject(fields, 'must be an object')
  const names = Object.keys(fields)
  const known = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  return z.string().transform((text, context): readonly z.output<typeof entry>[] => {
    const given = parseJson(text)
    const addIssue = (fault: string) => {
      context.addIssue(fault)
      return z.NEVER
    }
    if (!Array.isArray(given)) return addIssue(`must be a JSON array such as ${example}`)
    if (given.length > MOST_ISSUERS)
      return addIssue(`must have at most ${MOST_ISSUERS} entries, and has ${given.length}`)
    const taken = new Set<unknown>()
    return given.map((one: unknown, index) => {
      const { success, data, error } = entry.safeParse(one)
      const faults = error?.issues.map((issue) => describeIssue(issue, known)) ?? []
      if (success && taken.size === taken.add((data as Readonly<Record<string, unknown>>)[name]).size)
        faults.push(`${name} is the same as in an entry before it: ${advice}`)
      for (const fault of faults) addIssue(`entry ${index + 1}: ${fault}`)
      return data!
    })
  })
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
