/**
 * The text of an API key: `hbk_<prefix>_<secret>`. The prefix finds the row. Of the text only the SHA-256 is stored:
 * 238 random bits cannot be guessed.
 */

import { randomInt } from 'node:crypto'
import { readKeyPrefix } from '../domain/api-key.ts'
import { hashText } from '../runtime/hashes.ts'

const PREFIX_LENGTH = 8
const SECRET_LENGTH = 40

export function makeApiKey(): string {
  return `hbk_${randomText(PREFIX_LENGTH)}_${randomText(SECRET_LENGTH)}`
}

export function parseApiKey(text: string) {
  const prefix = readKeyPrefix(text)
  return prefix === null ? null : { prefix, hash: hashText(text) }
}

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** `length` letters of [0-9A-Za-z], each with 5.95 bits of the system's randomness. */
export function randomText(length: number): string {
  return Array.from({ length }, () => LETTERS[randomInt(LETTERS.length)]).join('')
}
