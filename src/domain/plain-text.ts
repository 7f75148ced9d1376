/** Texts that others wrote (names, output of jobs, messages of a cluster), made safe to show: in a line, in several, in so many bytes. */

/** They would reverse the text after them, ours too. The marks U+200E and U+200F do not, and stay. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g
/** A line break in a name would end a subject, or begin a line of its own. */
const BREAKS_AND_CONTROLS = /[\p{Zl}\p{Zp}\p{Cc}]+/gu

/** An untrusted name, made safe for a line of text. */
export function toOneLine(text: string): string {
  return text.toWellFormed().replace(DIRECTION_CHANGES, '').replace(BREAKS_AND_CONTROLS, ' ').trim()
}

/** ECMA-48: an escape, [, parameters, a letter. Jobs colour their output when they assume a terminal. */
const ESCAPE_SEQUENCES = /[^\P{Cc}\n\t\r]\[[0-?]*[ -/]*[@-~]/gu
const CONTROLS = /[^\P{Cc}\n\t]/gu

/** The output of a job, made safe for a text of several lines. */
export function cleanOutput(text: string): string {
  return text
    .toWellFormed()
    .replace(ESCAPE_SEQUENCES, '')
    .replace(/\r\n?|[\p{Zl}\p{Zp}]/gu, '\n')
    .replace(CONTROLS, '')
    .replace(DIRECTION_CHANGES, '')
    .replace(/^\s*\n/, '')
    .trimEnd()
}

const ELLIPSIS = '…'
const ELLIPSIS_BYTES = Buffer.byteLength(ELLIPSIS)

/** The beginning of a text, in at most `bytes` bytes of UTF-8 (4 or more). A text that was cut ends in `…`. */
export function firstBytes(text: string, bytes: number): string {
  // Each unit of UTF-16 is at most three bytes: most texts need no count.
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(bytes - ELLIPSIS_BYTES))
  return text.slice(0, read) + ELLIPSIS
}

/** The end of a text of several lines, in at most `bytes` bytes of UTF-8; a text that was cut begins with a whole line, or with `…`. */
export function lastBytes(text: string, bytes: number): string {
  if (text.length * 3 <= bytes || Buffer.byteLength(text) <= bytes) return text
  const kept = Buffer.from(text).subarray(-Math.max(0, bytes - ELLIPSIS_BYTES))
  // The first bytes may continue a character that was cut.
  const from = kept.findIndex((byte) => (byte & 0xc0) !== 0x80)
  const end = kept.subarray(from).toString()
  const lineEnd = end.indexOf('\n')
  return lineEnd === -1 ? ELLIPSIS + end : end.slice(lineEnd + 1)
}
