/**
 * The words of an event as lines and blocks, for the kinds whose messages are one text: Telegram, ntfy and Matrix.
 * Plain text without mark-up.
 */

import type { EventText, Tone } from './event-text.ts'
import { isText } from './fit.ts'

/** Before a headline where there are no colours. */
export const MARKS: Readonly<Record<Tone, string>> = { failure: '🔴', warning: '🟡', success: '🟢', info: '🔵' }

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => ESCAPES[character]!)

/** What follows the headline, a line each: why, since when, what is known, where. */
export function linesOf({ reason, facts, location }: EventText): string[] {
  return [reason, ...facts, location].filter(isText)
}

export interface Block {
  readonly title: string
  readonly text: string
}

/** What follows the lines: texts of several lines. */
export function blocksOf({ output, description }: EventText): Block[] {
  return [output, description === null ? null : { title: 'About this check', text: description }].flatMap((block) =>
    block === null ? [] : [{ title: `${block.title}:`, text: block.text }],
  )
}
