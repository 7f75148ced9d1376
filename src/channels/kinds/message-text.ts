/**
 * The words of an event as lines and blocks, for the kinds whose messages are one text: Telegram, ntfy and Matrix.
 * Plain text without mark-up.
 */

import { ABOUT, type EventText, type Tone } from './event-text.ts'
import { isText } from './fit.ts'

/** Before a headline where there are no colours. */
export const MARKS: Readonly<Record<Tone, string>> = { failure: '🔴', warning: '🟡', success: '🟢', info: '🔵' }

/** What follows the headline, a line each: why, since when, what is known, where. */
export function linesOf({ reason, facts, location }: EventText): string[] {
  return [reason, ...facts, location].filter(isText)
}

export interface Block {
  /** With a colon. */
  readonly title: string
  readonly text: string
  /** The output of a job. Else the description, which a person wrote. */
  readonly isCode: boolean
}

/** What follows the lines: texts of several lines. */
export function blocksOf({ output, description }: EventText): Block[] {
  return [
    ...(output === null ? [] : [{ title: `${output.title}:`, text: output.text, isCode: true }]),
    ...(description === null ? [] : [{ title: `${ABOUT}:`, text: description, isCode: false }]),
  ]
}
