/**
 * Messages for a webhook of Discord: one embed each. Its limits and mark-up: https://docs.discord.com/developers,
 * "Message Resource" (Embed Limits) and "API Reference" (Message Formatting). Title and description are Markdown: in
 * prose text is escaped but for the addresses of a description, in a code block Discord parses nothing.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { splitAddresses } from '../addresses.ts'
import { composeLines, cutEnd } from '../cut.ts'
import { describeDigest } from '../digest-text.ts'
import { ABOUT, describeEvent, type EventText, type Tone } from '../event-text.ts'
import { cutLine, fitMessage, isText } from '../fit.ts'
import { type Links, type Place, placesOf } from '../kind.ts'

/** UTF-16 units, the strictest count of characters. Both together are far below the 6,000 of a message. */
export const DISCORD_LIMITS = { title: 256, description: 4_096 } as const

const COLORS: Readonly<Record<Tone, number>> = {
  failure: 0xcf222e,
  warning: 0xd29922,
  success: 0x1a7f37,
  info: 0x57606a,
}

export interface DiscordMessage {
  readonly embeds: readonly [{ readonly title: string; readonly description: string; readonly color: number }]
  /** No one is notified, whatever the texts contain. */
  readonly allowed_mentions: { readonly parse: readonly [] }
}

const toMessage = (title: string, description: string, tone: Tone): DiscordMessage => ({
  embeds: [{ title, description, color: COLORS[tone] }],
  allowed_mentions: { parse: [] },
})

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): DiscordMessage {
  const words = describeEvent(event)
  const places = placesOf(links, event)
  const description = fitMessage(
    words,
    (fitted) => renderDescription(fitted, places),
    ({ length }) => length <= DISCORD_LIMITS.description,
  )
  const change = escapeMarkdown(words.change)
  // A title that is too long loses the end of the name, never the change.
  const name = cutEnd(piecesOf(escapeMarkdown(words.name)), DISCORD_LIMITS.title - change.length)
  return toMessage(name + change, description, words.tone)
}

function renderDescription(words: EventText, places: readonly Place[]): string {
  const { reason, facts, location, output, description } = words
  return [
    ...[reason, ...facts, location].filter(isText).map(escapeMarkdown),
    output && `${escapeMarkdown(output.title)}:${fence(output.text)}`,
    description && `${ABOUT}:\n${linkAddresses(description)}`,
    // Not as the `url` of the embed: Discord refuses one without a public name.
    ...places.map(({ label, url }) => `${label}: ${url}`),
  ]
    .filter(isText)
    .join('\n')
}

export function renderDigest(digest: Digest, links: Links): DiscordMessage {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const compose = (lines: readonly string[]) =>
    [...lines, rest(lines.length), note, `All checks: ${link}`].filter(isText).join('\n')
  const lines = checks.map((check) => escapeMarkdown(cutLine(check)))
  return toMessage(headline, composeLines(lines, DISCORD_LIMITS.description, compose), tone)
}

/**
 * What Discord could take for mark-up, a mention, a link (`https:`) or an emoji (`:name:`); a time of day is neither.
 * At the beginning of a line also a list.
 */
const MARKUP = /[\\*_~|`<>[#@]|:(?!\s)(?<!\d\d:(?=\d\d(?!\w)))|(?<=^\s*)[-+]|(?<=^\s*\d+)\./gm

function escapeMarkdown(prose: string): string {
  return prose.replace(MARKUP, '\\$&')
}

/** Between brackets an address ends where it should, and Discord parses nothing of it. */
function linkAddresses(prose: string): string {
  return splitAddresses(prose)
    .map(({ text, isAddress }) => (isAddress ? `<${text}>` : escapeMarkdown(text)))
    .join('')
}

/** Escaped characters, each with its backslash. */
const piecesOf = (escaped: string) => escaped.match(/\\.|./gsu) ?? []

/** Three backticks would end the code block: U+200B comes between. */
function fence(text: string): string {
  return `\n\`\`\`\n${text.replace(/``(?=`)/g, '``\u200b')}\n\`\`\``
}
