/** Hashes of texts, and comparisons whose time says nothing about a secret. */

import { createHash, timingSafeEqual } from 'node:crypto'

/** SHA-256. Enough for a secret that cannot be guessed; a password needs a slow hash. */
export function hashText(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** Compares in constant time. */
export function isSameHash(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Compares in a time that does not depend on where the texts differ. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(hashText(one), hashText(other))
}
