/**
 * Slack's incoming webhooks, and what takes the same: Mattermost, and Discord with /slack at the end of its URL. Slack shows the
 * blocks; the others, which know none, show `text`, so that it says all that the blocks say.
 *
 * A check's name and a job's output are anybody's text, and none of it may call people or pretend to be a link. In blocks names
 * stand in plain_text, where nothing is looked for, and output in a code block; in `text` names are broken where one of the three
 * would find a mention or a link.
 */

import type { Event } from '../domain/event.ts'
import type { Clock } from '../runtime/clock.ts'
import type { HttpClient } from './http.ts'
import { sendForOutcome } from './http-outcome.ts'
import type { Links } from './links.ts'
import type { Send } from './outcome.ts'
import { explain, findName, findOutput, headline, type JobOutput, locate } from './words.ts'

export interface SlackParts {
  readonly client: HttpClient
  readonly clock: Pick<Clock, 'now'>
  readonly links: Links
}

export function createSlackSender({ client, clock, links }: SlackParts): Send<'slack'> {
  return ({ channel, event }, signal) => {
    const body = JSON.stringify(renderMessage(event, links))
    const headers = { 'content-type': 'application/json' }
    const { url } = channel.settings
    return sendForOutcome(client, { method: 'POST', url, headers, body, isTrusted: channel.isTrusted }, signal, clock)
  }
}

/**
 * In UTF-16 units of what is sent, which is the strictest way to count. Slack refuses a message with a longer header or section;
 * Discord one with a longer text.
 */
export const SLACK_LIMITS = { header: 150, section: 3_000, text: 2_000 } as const

type Text =
  | { readonly type: 'plain_text'; readonly text: string; readonly emoji: false }
  /** verbatim: addresses and names in it are not made into links. */
  | { readonly type: 'mrkdwn'; readonly text: string; readonly verbatim: true }
type Block =
  | { readonly type: 'header' | 'section'; readonly text: Text }
  | { readonly type: 'context'; readonly elements: readonly Text[] }

export interface SlackMessage {
  readonly text: string
  readonly blocks: readonly Block[]
  /** What an address in a job's output shows is nobody's wish. */
  readonly unfurl_links: false
  readonly unfurl_media: false
}

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): SlackMessage {
  const output = findOutput(event)
  const blocks: Block[] = [
    { type: 'header', text: plain(renderHeader(event)) },
    { type: 'section', text: plain(escapeText(explain(event))) },
  ]
  if (output !== null) blocks.push({ type: 'section', text: verbatim(renderOutput(output, SLACK_LIMITS.section)) })
  const where = locate(event)
  if (event.type !== 'channel.test' && where !== null) {
    const link = `<${escapeUrl(links.check(event.check.id))}|Check>`
    blocks.push({ type: 'context', elements: [verbatim(link), plain(escapeText(where))] })
  }
  return { text: renderText(event, output, links), blocks, unfurl_links: false, unfurl_media: false }
}

const plain = (text: string): Text => ({ type: 'plain_text', text, emoji: false })
const verbatim = (text: string): Text => ({ type: 'mrkdwn', text, verbatim: true })

/** When it is too long the name loses its end, and what became of it stays. */
function renderHeader(event: Event): string {
  const room = SLACK_LIMITS.header - headline(event, '').length
  return headline(event, cutEnd(escapePieces(findName(event)), room))
}

function renderText(event: Event, output: JobOutput | null, links: Links): string {
  const lines = [headline(event, escapeText(disarm(findName(event)))), escapeText(explain(event))]
  const where = locate(event)
  if (event.type !== 'channel.test' && where !== null)
    lines.push(`${escapeText(where)}: <${escapeUrl(links.check(event.check.id))}>`)
  const text = lines.join('\n')
  if (output === null) return text
  const room = SLACK_LIMITS.text - text.length - 1
  return room < SMALLEST_OUTPUT ? text : `${text}\n${renderOutput(output, room)}`
}

/** A title, the fences and a few words: less says nothing. */
const SMALLEST_OUTPUT = 200

/** Between two fences on lines of their own; the end of the output, which says why, when there is no room for all of it. */
function renderOutput({ title, text }: JobOutput, limit: number): string {
  const [before, after] = [`${escapeText(title)}:\n\`\`\`\n`, '\n```']
  return before + cutStart(escapePieces(breakFences(text)), limit - before.length - after.length) + after
}

const INVISIBLE = '\u200b'

/** Three backticks would end the code block, and what follows them would be looked at for mentions and links. */
function breakFences(text: string): string {
  return text.replace(/`{3,}/g, (fence) => [...fence].join(INVISIBLE))
}

/** `@channel`, `<#id>`, `~channel`, `https://...`, `www....` and `[words](address)`, as Mattermost and Discord know them. */
function disarm(text: string): string {
  return text.replace(/[@<~`]|:(?=\/\/)|www(?=\.)|\](?=[([])/gi, (piece) => piece + INVISIBLE)
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** A piece for each code point: between two of them a text may be cut. */
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
  return (
    ELLIPSIS +
    takeUntil(pieces.toReversed(), limit - ELLIPSIS.length)
      .toReversed()
      .join('')
  )
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
