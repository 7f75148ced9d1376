/**
 * Messages of Apprise: a title, and a body of plain text. Apprise escapes the body for services with mark-up
 * (`text_to_html` and others in apprise/conversion/format.py), but no mentions of chats: these are broken here.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { indivisible } from '../addresses.ts'
import { composeLines, cutEnd, cutStart } from '../cut.ts'
import { describeDigest } from '../digest-text.ts'
import { disarmForChats } from '../disarm.ts'
import { ABOUT, describeEvent, type EventText, type Tone } from '../event-text.ts'
import { cutLine, isText } from '../fit.ts'
import { type Links, placesOf } from '../kind.ts'

/**
 * UTF-16 units of title and body together. Apprise cuts nothing unless a URL says so (`overflow_mode` in
 * apprise/plugins/base.py), and services refuse what is too long for them: Rocket.Chat takes 1,000 characters, Pushover
 * 1,024 (their `body_maxlen`).
 */
export const TEXT_LIMIT = 1_000
/** With fewer units of it, a text says nothing. */
const MIN_TEXT = 40

export type AppriseMessage = { title: string; body: string; type: Tone; format: 'text' }

/** The same event gives the same bytes. */
export function renderEvent(event: Event, links: Links): AppriseMessage {
  const words = describeEvent(event)
  const title = disarmForChats(words.headline)
  const places = placesOf(links, event).map(({ label, url }) => `${label}: ${url}`)
  return { title, body: renderBody(words, places, TEXT_LIMIT - title.length), type: words.tone, format: 'text' }
}

/** What gives way first stands last: services that cut a text cut its end. */
function renderBody(words: EventText, places: readonly string[], room: number): string {
  const { reason, facts, location, output, description } = words
  const first = cutProse(reason, room - places.join('\n').length - 1)
  const lines = [...facts, location].filter(isText).map(disarmForChats)
  const head = composeLines(lines, room, (shown) => [first, ...shown, ...places].join('\n'))
  const left = room - head.length
  const end = (most: number) => (output === null ? '' : renderBlock(output.title, output.text, most, cutOutput))
  const free = Math.max(left / 2, left - end(Number.POSITIVE_INFINITY).length)
  const about = description === null ? '' : renderBlock(ABOUT, description, free, cutProse)
  return head + end(left - about.length) + about
}

function renderBlock(title: string, text: string, room: number, cut: typeof cutProse): string {
  const left = Math.floor(room) - title.length - 4
  const shown = cut(text, left)
  return left < Math.min(MIN_TEXT, text.length) || shown === '…' ? '' : `\n\n${title}:\n${shown}`
}

const cutProse = (text: string, limit: number) => cutEnd(indivisible(disarmForChats(text)), limit)
const cutOutput = (text: string, limit: number) => cutStart(Array.from(disarmForChats(text)), limit)

export function renderDigest(digest: Digest, links: Links): AppriseMessage {
  const { headline: title, tone: type, checks, rest, note, link } = describeDigest(digest, links)
  const body = composeLines(
    checks.map((check) => disarmForChats(cutLine(check))),
    TEXT_LIMIT - title.length,
    (lines) => [...lines, rest(lines.length), note, `All checks: ${link}`].filter(isText).join('\n'),
  )
  return { title, body, type, format: 'text' }
}
