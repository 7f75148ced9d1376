/** Secrets and signatures of webhooks (Standard Webhooks, https://www.standardwebhooks.com, "Signature scheme", symmetric). */

import { createHmac, randomBytes } from 'node:crypto'
import type { Instant } from '../../../domain/check.ts'

export interface SigningSecret {
  /** `whsec_` and the key in base64. */
  readonly secret: string
  /** Null: until another secret replaces it. */
  readonly expiresAt: Instant | null
}

/** The standard requires 24 to 64. */
const SECRET_BYTES = 32
/** After a rotation the previous secret still signs for this long, so that receivers can change over. */
export const SECRET_OVERLAP_MS = 24 * 3_600_000

export function makeSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** At most two valid secrets: the new one, and for a while the one before it. */
export function rotateSecrets(secrets: readonly SigningSecret[], now: Instant): SigningSecret[] {
  const previous = secrets.slice(0, 1).map((old) => ({ secret: old.secret, expiresAt: now + SECRET_OVERLAP_MS }))
  return [{ secret: makeSecret(), expiresAt: null }, ...previous]
}

export interface Signable {
  /** The header webhook-id. */
  readonly id: string
  /** The header webhook-timestamp: the time of the attempt, in seconds since the epoch. */
  readonly atSeconds: number
  /** Exactly the bytes that are sent. */
  readonly body: string
  readonly secrets: readonly string[]
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/
const KEY_BYTES = { min: 24, max: 64 }

/** Whether it is a secret as the standard has it: `whsec_` and 24 to 64 bytes in base64. */
export function isSecret(text: string): boolean {
  const [, base64] = SECRET.exec(text) ?? []
  const key = Buffer.from(base64 ?? '', 'base64')
  return key.length >= KEY_BYTES.min && key.length <= KEY_BYTES.max && key.toString('base64') === base64
}

/**
 * The header webhook-signature: `v1,<base64>` for each secret, separated by spaces; a receiver needs one valid signature. Throws an Error for
 * a secret of another form, without quoting it.
 */
export function sign({ id, atSeconds, body, secrets }: Signable): string {
  return secrets
    .map((secret) => {
      const [, base64] = SECRET.exec(secret) ?? []
      if (base64 === undefined) throw new Error('the secret of a webhook is not whsec_ and a key in base64')
      const mac = createHmac('sha256', Buffer.from(base64, 'base64')).update(`${id}.${atSeconds}.${body}`)
      return `v1,${mac.digest('base64')}`
    })
    .join(' ')
}
