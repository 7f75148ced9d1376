/**
 * The text of an API key: `hbk_<prefix>_<secret>`. The prefix finds the row and may be shown. The secret is not stored,
 * only the SHA-256 of the whole text. A slow hash is not needed: a secret of 40 random letters (238 bits) cannot be
 * guessed.
 */

import { readKeyPrefix } from '../domain/api-key.ts'
import { hashText } from '../runtime/hashes.ts'
import { randomText } from './random-text.ts'

export interface ParsedApiKey {
  readonly prefix: string
  readonly hash: Buffer
}

const PREFIX_LENGTH = 8
const SECRET_LENGTH = 40

export function makeApiKey(): string {
  return `hbk_${randomText(PREFIX_LENGTH)}_${randomText(SECRET_LENGTH)}`
}

export function parseApiKey(text: string): ParsedApiKey | null {
  const prefix = readKeyPrefix(text)
  return prefix === null ? null : { prefix, hash: hashText(text) }
}
