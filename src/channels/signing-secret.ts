/** Secrets of webhooks (Standard Webhooks, "Symmetric signatures"): `whsec_` and the key in base64. */

import { randomBytes } from 'node:crypto'
import { SECRET_OVERLAP_MS, type SigningSecret } from '../domain/channel.ts'
import type { Instant } from '../domain/check.ts'

/** The standard wants 24 to 64. */
const SECRET_BYTES = 32

export function makeSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`
}

/** Two that are valid at most: the new one, and for a while the one before it. */
export function rotateSecrets(secrets: readonly SigningSecret[], secret: string, now: Instant): SigningSecret[] {
  const before = secrets.slice(0, 1).map((old) => ({ secret: old.secret, expiresAt: now + SECRET_OVERLAP_MS }))
  return [{ secret, expiresAt: null }, ...before]
}
