/**
 * The texts of messages for chats that take HTML: Telegram and Matrix. Names, reasons and the output of jobs are
 * untrusted: outside of code they are disarmed. In the description, which a person wrote, addresses stay what they are.
 */

import type { Digest } from '../../domain/digest.ts'
import type { Event } from '../../domain/event.ts'
import { describeDigest } from './digest-text.ts'
import { disarm, disarmDescription } from './disarm.ts'
import { describeEvent, type EventText } from './event-text.ts'
import { cutLine, fitLines, fitMessage, isText } from './fit.ts'
import { type Links, type Place, placesOf } from './kind.ts'
import { type Block, blocksOf, linesOf, MARKS } from './message-text.ts'

/** Harmless as it is, not escaped. */
export interface HtmlText {
  readonly headline: string
  readonly lines: readonly string[]
  /** The output is for a code block. */
  readonly blocks: readonly Block[]
  readonly places: readonly Place[]
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

export const escapeHtml = (text: string) => text.replace(/[&<>"]/g, (character) => ESCAPES[character]!)

/** The message with as much of output and description as fits. */
export function renderEventText<Message>(
  event: Event,
  links: Links,
  render: (text: HtmlText) => Message,
  fits: (message: Message) => boolean,
): Message {
  const places = placesOf(links, event)
  const disarmBlock = (block: Block) => (block.isCode ? block : { ...block, text: disarmDescription(block.text) })
  const renderWords = (words: EventText) =>
    render({
      headline: `${MARKS[words.tone]} ${disarm(words.headline)}`,
      lines: linesOf(words).map(disarm),
      blocks: blocksOf(words).map(disarmBlock),
      places,
    })
  return fitMessage(describeEvent(event), renderWords, fits)
}

/** The message with as many checks as fit. */
export function renderDigestText<Message>(
  digest: Digest,
  links: Links,
  render: (text: HtmlText) => Message,
  fits: (message: Message) => boolean,
): Message {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const renderLines = (shown: readonly string[]) =>
    render({
      headline: `${MARKS[tone]} ${headline}`,
      lines: [...shown, rest(shown.length), note].filter(isText),
      blocks: [],
      places: [{ label: 'All checks', action: 'All checks', url: link }],
    })
  const lines = checks.map((check) => disarm(cutLine(check)))
  return fitLines(lines, renderLines, fits)
}
