/**
 * Messages of Slack's incoming webhooks. Mattermost, and Discord with /slack at the end of its URL (Discord has a kind
 * of its own), ignore the blocks and show `text`, so `text` contains all that the blocks contain. Names, reasons and
 * output of jobs are untrusted: they must not notify people or look like links. In the blocks they are plain_text,
 * which is not parsed, or in a code block. In `text` they are broken wherever one of the three services would find a
 * mention or a link. In the description a person's addresses are links, each with itself as its text.
 */

import type { Event } from '../../../domain/event.ts'
import { splitAddresses } from '../addresses.ts'
import { cutEnd, cutStart } from '../cut.ts'
import { breakFences, disarm, disarmDescription } from '../disarm.ts'
import { ABOUT, describeEvent, type EventText, type JobOutput } from '../event-text.ts'
import { type Links, linkForPeople, linkToAcknowledge } from '../kind.ts'
import { MARKS } from '../message-text.ts'
import { escapePieces, escapeText, escapeUrl } from './escape.ts'

/** UTF-16 units of the escaped text, the strictest count. Slack rejects longer headers and sections, Discord longer texts. */
export const SLACK_LIMITS = { header: 150, section: 3_000, text: 2_000 } as const

type Text =
  | { readonly type: 'plain_text'; readonly text: string; readonly emoji: false }
  /** verbatim: Slack makes no links of addresses and names in it. */
  | { readonly type: 'mrkdwn'; readonly text: string; readonly verbatim: true }
export type Block =
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
  const acknowledge = linkToAcknowledge(links, event)
  const content = { ...words, link, acknowledge: acknowledge && escapeUrl(acknowledge) }
  return { text: renderText(content), blocks: renderBlocks(content), unfurl_links: false, unfurl_media: false }
}

/** Addresses are escaped. */
interface Content extends EventText {
  readonly link: string | null
  readonly acknowledge: string | null
}

function renderBlocks(content: Content): Block[] {
  const { name, change, reason, facts, output, description, location, link, acknowledge } = content
  const mark = `${MARKS[content.tone]} `
  // A header that is too long loses the end of the name, never the change.
  const header = mark + cutEnd(escapePieces(name), SLACK_LIMITS.header - mark.length - change.length) + change
  const blocks: Block[] = [
    { type: 'header', text: plain(header) },
    { type: 'section', text: plain(renderLines([reason, ...facts].map(escapePieces), SLACK_LIMITS.section)) },
  ]
  if (output !== null) blocks.push({ type: 'section', text: verbatim(renderOutput(output, SLACK_LIMITS.section)) })
  const about = description && renderDescription(description, SLACK_LIMITS.section)
  if (about !== null) blocks.push({ type: 'section', text: verbatim(about) })
  if (link !== null && location !== null)
    blocks.push({
      type: 'context',
      elements: [
        verbatim(`<${link}|Open the check>`),
        ...(acknowledge === null ? [] : [verbatim(`<${acknowledge}|I have it>`)]),
        plain(escapeText(location)),
      ],
    })
  return blocks
}

export const plain = (text: string): Text => ({ type: 'plain_text', text, emoji: false })
export const verbatim = (text: string): Text => ({ type: 'mrkdwn', text, verbatim: true })

function renderText(content: Content): string {
  const { name, change, reason, facts, output, description, location, link, acknowledge } = content
  const headline = `${MARKS[content.tone]} ${escapeText(disarm(name))}${change}\n`
  const places: string[] = []
  if (link !== null && location !== null) places.push(`\n${escapeText(disarm(location))}: <${link}>`)
  if (acknowledge !== null) places.push(`\nI have it: <${acknowledge}>`)
  const around = headline.length + places.join('').length
  const lines = [reason, ...facts].map((line) => escapePieces(disarm(line)))
  const text = headline + renderLines(lines, SLACK_LIMITS.text - around) + places.join('')
  const room = SLACK_LIMITS.text - text.length - 1
  const needed = output === null ? 0 : renderOutput(output, Number.POSITIVE_INFINITY).length + 1
  // Below the output: a backtick of a description would otherwise end the code block early.
  const lastLines = description && renderDescription(description, Math.min(room, Math.max(MIN_ABOUT, room - needed)))
  const about = lastLines === null ? '' : `\n${lastLines}`
  const left = room - about.length
  return text + (output === null || left < MIN_OUTPUT ? '' : `\n${renderOutput(output, left)}`) + about
}

/** The reason and the facts, a line each, in pieces for `cutEnd`. Where they are too long, the reason loses its end. */
function renderLines([reason, ...facts]: readonly string[][], limit: number): string {
  const rest = facts.map((fact) => `\n${fact.join('')}`).join('')
  return cutEnd(reason!, limit - rest.length) + rest
}

const ABOUT_LINE = `${ABOUT}:\n`
/** Of the description in `text`, with its title, where a long output needs the rest. */
const MIN_ABOUT = 500 + ABOUT_LINE.length
/** A title, the fences and a few words. */
const MIN_OUTPUT = 200

/**
 * A description that is too long loses its end; null where nothing would be left. In verbatim text Slack makes no links
 * by itself: an address is a link in brackets, which shows the address.
 */
function renderDescription(description: string, limit: number): string | null {
  const pieces = splitAddresses(disarmDescription(description)).flatMap(({ text, isAddress }) =>
    isAddress ? [`<${escapeUrl(text)}>`] : escapePieces(text),
  )
  const shown = cutEnd(pieces, limit - ABOUT_LINE.length)
  return shown === '…' ? null : ABOUT_LINE + shown
}

/** Between two fences on lines of their own. Output that is too long loses its beginning: the end says why a job failed. */
function renderOutput({ title, text }: JobOutput, limit: number): string {
  const [before, after] = [`${escapeText(title)}:\n\`\`\`\n`, '\n```']
  return before + cutStart(escapePieces(breakFences(text)), limit - before.length - after.length) + after
}
