/** What a job printed, as text for a page. */

import { cleanOutput } from '../../../../domain/plain-text.ts'

/** Without bytes of a character that was cut, colours and control characters. Null: it is not text. */
export function readJobText(bytes: Buffer, isCut: boolean): string | null {
  const text = (isCut ? withoutBrokenStart(bytes) : bytes).toString('utf8')
  if (isBinary(text)) return null
  return cleanOutput(text)
}

/** The bytes of UTF-8 that continue a character, of which there are at most three. */
function withoutBrokenStart(bytes: Buffer): Buffer {
  let at = 0
  while (at < 3 && at < bytes.length && (bytes[at]! & 0xc0) === 0x80) at += 1
  return bytes.subarray(at)
}

/** More than a tenth is not UTF-8, or is NUL, which no text has. */
function isBinary(text: string): boolean {
  let strange = 0
  for (const character of text) if (character === '\uFFFD' || character === '\0') strange += 1
  return strange > text.length / 10
}
