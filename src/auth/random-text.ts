import { randomBytes } from 'node:crypto'

const LETTERS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** Bytes from here on are drawn again: modulo 62 they would make the first letters more likely. */
const FAIR_BELOW = 256 - (256 % LETTERS.length)

/** `length` letters of [0-9A-Za-z], each with 5.95 bits of the system's randomness. */
export function randomText(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length - text.length + 8)) {
      if (byte < FAIR_BELOW && text.length < length) text += LETTERS[byte % LETTERS.length]
    }
  }
  return text
}
