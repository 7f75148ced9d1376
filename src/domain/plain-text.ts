/** Texts that others wrote (names, output of jobs, messages of a cluster), made safe to show: in a line, in several, in so many bytes. */

import { DETAIL_CHARS } from './last-run.ts'

/** They would reverse the text after them, ours too. The marks U+200E and U+200F do not, and stay. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g

/** Whether a reader sees anything of a text. Marks alone have nothing to stand on. */
export function isVisible(text: string): boolean {
  return /[^\p{White_Space}\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{M}\p{Default_Ignorable_Code_Point}\u2800]/u.test(text)
}

/**
 * ECMA-48 and what terminals add. Jobs colour their output when they assume a terminal. No part reads on over an escape, and the parts that may be
 * without their end read on over no control: each character is read a few times at most.
 */
const ESCAPE_SEQUENCES = new RegExp(
  [
    // Colours, movements: parameters and a letter. U+009B, alone before a word, is no beginning of one.
    '\\x1b\\[[0-?]*[ -/]*[@-~]?',
    '\\x9b(?:[0-?]+[ -/]*[@-~]?|[A-KSTm])',
    // A link, a title: one line, to its end or that of the line.
    '(?:\\x1b[\\]k]|\\x9d)[^\\p{Cc}]*(?:\\x07|\\x1b\\\\|\\x9c)?',
    // Data for the terminal: lines up to the end, or the rest of a line where there is none.
    '(?:\\x1b[PX^_]|[\\x90\\x98\\x9e\\x9f])(?:[^\\x1b\\x80-\\x9f]*(?:\\x1b\\\\|\\x9c)|[^\\p{Cc}]*)',
    // A set of characters, and what else is short.
    '\\x1b[ -/]+[0-~]?',
    '\\x1b[0-~]',
  ].join('|'),
  'gu',
)
const CONTROLS = /[^\P{Cc}\n\t]/gu
/** A line break in a name would end a subject, or begin a line of its own. */
const BREAKS_AND_CONTROLS = /[\p{Zl}\p{Zp}\p{Cc}]+/gu

/** An untrusted name, made safe for a line of text. */
export function toOneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(ESCAPE_SEQUENCES, '')
    .replace(DIRECTION_CHANGES, '')
    .replace(BREAKS_AND_CONTROLS, ' ')
    .trim()
}

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
  const end = withoutBrokenStart(kept).toString()
  const lineEnd = end.indexOf('\n')
  return lineEnd === -1 ? ELLIPSIS + end : end.slice(lineEnd + 1)
}

/** The end of a text of UTF-8 without the bytes, three at most, that continue a character which was cut. */
export function withoutBrokenStart(bytes: Buffer): Buffer {
  let start = 0
  while (start < 3 && start < bytes.length && (bytes[start]! & 0xc0) === 0x80) start += 1
  return bytes.subarray(start)
}

/** The first characters that PostgreSQL stores: it has no NUL, and no half of a pair. */
export function toStoredText(text: string, chars = DETAIL_CHARS): string {
  return text.toWellFormed().replaceAll('\0', '').slice(0, chars).toWellFormed()
}
