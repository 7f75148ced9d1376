/**
 * Messages of Slack's incoming webhooks, and of services that take the same: Mattermost, and Discord with /slack at the end of its
 * URL. Slack shows the blocks; the others ignore them and show `text`, so `text` contains everything that the blocks contain.
 *
 * Names of checks and output of jobs are untrusted: they must not notify people or look like links. In the blocks, names are
 * plain_text, which is not parsed, and output is in a code block. In `text`, names are broken wherever one of the three services
 * would find a mention or a link.
 */

import type { Event } from '../../../domain/event.ts'
import { describeEvent, type EventText, type JobOutput } from '../event-text.ts'
import { type Links, linkForPeople } from '../kind.ts'

/** UTF-16 units of the escaped text, the strictest count. Slack rejects longer headers and sections, Discord longer texts. */
export const SLACK_LIMITS = { header: 150, section: 3_000, text: 2_000 } as const

type Text =
  | { readonly type: 'plain_text'; readonly text: string; readonly emoji: false }
  /** verbatim: Slack makes no links of addresses and names in it. */
  | { readonly type: 'mrkdwn'; readonly text: string; readonly verbatim: true }
type Block =
  | { readonly type: 'header' | 'section'; readonly text: Text }
  | { readonly type: 'context'; readonly elements: readonly Text[] }

export interface SlackMessage {
  readonly text: string
  readonly blocks: readonly Block[]
  /** No previews of addresses in a job's output. */
  readonly unfurl_links: false
  readonly unfurl_media: false
}

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): SlackMessage {
  const words = describeEvent(event)
  const link = event.type === 'channel.test' ? null : escapeUrl(linkForPeople(links, event.check.id))
  return { text: renderText(words, link), blocks: renderBlocks(words, link), unfurl_links: false, unfurl_media: false }
}

function renderBlocks({ name, change, reason, location, output }: EventText, link: string | null): Block[] {
  // A header that is too long loses the end of the name, never the change.
  const header = cutEnd(escapePieces(name), SLACK_LIMITS.header - change.length) + change
  const blocks: Block[] = [
    { type: 'header', text: plain(header) },
    { type: 'section', text: plain(escapeText(reason)) },
  ]
  if (output !== null) blocks.push({ type: 'section', text: verbatim(renderOutput(output, SLACK_LIMITS.section)) })
  if (link !== null && location !== null)
    blocks.push({ type: 'context', elements: [verbatim(`<${link}|Check>`), plain(escapeText(location))] })
  return blocks
}

const plain = (text: string): Text => ({ type: 'plain_text', text, emoji: false })
const verbatim = (text: string): Text => ({ type: 'mrkdwn', text, verbatim: true })

function renderText({ name, change, reason, location, output }: EventText, link: string | null): string {
  const lines = [escapeText(disarm(name)) + change, escapeText(reason)]
  if (link !== null && location !== null) lines.push(`${escapeText(location)}: <${link}>`)
  const text = lines.join('\n')
  if (output === null) return text
  const room = SLACK_LIMITS.text - text.length - 1
  return room < MIN_OUTPUT ? text : `${text}\n${renderOutput(output, room)}`
}

/** A title, the fences and a few words. */
const MIN_OUTPUT = 200

/** Between two fences on lines of their own. Output that is too long loses its beginning: the end says why a job failed. */
function renderOutput({ title, text }: JobOutput, limit: number): string {
  const [before, after] = [`${escapeText(title)}:\n\`\`\`\n`, '\n```']
  return before + cutStart(escapePieces(breakFences(text)), limit - before.length - after.length) + after
}

const INVISIBLE = '\u200b'

/** Three backticks would end the code block, and the text after them would be parsed for mentions and links. */
function breakFences(text: string): string {
  return text.replace(/`{3,}/g, (fence) => [...fence].join(INVISIBLE))
}

/** `@channel`, `<#id>`, `~channel`, `https://...`, `www....` and `[words](address)`, as Mattermost and Discord know them. */
function disarm(text: string): string {
  return text.replace(/[@<~`]|:(?=\/\/)|www(?=\.)|\](?=[([])/gi, (piece) => piece + INVISIBLE)
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** One piece for each code point. A text may be cut between two pieces. */
function escapePieces(text: string): string[] {
  return Array.from(text, (character) => ESCAPES[character] ?? character)
}

const escapeText = (text: string) => escapePieces(text).join('')

/** Inside <...|...> a bar or a bracket would end the address. */
function escapeUrl(url: string): string {
  return escapeText(url.replace(/[|<>\s]/g, encodeURIComponent))
}

const ELLIPSIS = '…'

function cutEnd(pieces: readonly string[], limit: number): string {
  return fits(pieces, limit) ? pieces.join('') : takeUntil(pieces, limit - ELLIPSIS.length).join('') + ELLIPSIS
}

function cutStart(pieces: readonly string[], limit: number): string {
  if (fits(pieces, limit)) return pieces.join('')
  const kept = takeUntil(pieces.toReversed(), limit - ELLIPSIS.length)
  return ELLIPSIS + kept.toReversed().join('')
}

function fits(pieces: readonly string[], limit: number): boolean {
  return pieces.reduce((length, piece) => length + piece.length, 0) <= limit
}

function takeUntil(pieces: readonly string[], limit: number): string[] {
  let length = 0
  const end = pieces.findIndex((piece) => {
    length += piece.length
    return length > limit
  })
  return pieces.slice(0, end)
}
