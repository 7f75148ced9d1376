/**
 * The text of an API key: `hbk_<prefix>_<secret>`. The prefix finds the row and may be shown; the secret is stored nowhere,
 * only the SHA-256 of the whole text. A slow hash would protect nothing: a secret of 40 random letters (238 bits) cannot be guessed.
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import { randomText } from './random-text.ts'

export interface ParsedApiKey {
  readonly prefix: string
  /** SHA-256 of the whole text. */
  readonly hash: Buffer
}

const PREFIX_LENGTH = 8
const SECRET_LENGTH = 40
/** Wider than what we make, for keys that people give (BOOTSTRAP_API_KEY); bounded and anchored, so that a long text costs little. */
const API_KEY = /^hbk_([0-9A-Za-z]{1,32})_[0-9A-Za-z_-]{6,128}$/

export function makeApiKey(): string {
  return `hbk_${randomText(PREFIX_LENGTH)}_${randomText(SECRET_LENGTH)}`
}

/** Whether a text has the form of an API key, those that people make up for BOOTSTRAP_API_KEY included. */
export function isApiKey(text: string): boolean {
  return API_KEY.test(text)
}

/** Null when it is not one of ours. */
export function parseApiKey(text: string): ParsedApiKey | null {
  const prefix = API_KEY.exec(text)?.[1]
  return prefix === undefined ? null : { prefix, hash: createHash('sha256').update(text).digest() }
}

export function isSameHash(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other)
}
