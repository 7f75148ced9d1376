/**
 * Messages of Matrix: `m.text` with HTML (Matrix specification, Client-Server API, "m.room.message msgtypes"). Names,
 * reasons and output are untrusted: they are escaped, they mention no one, and clients find no links in them.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { describeDigest } from '../digest-text.ts'
import { disarm } from '../disarm.ts'
import { describeEvent, type EventText } from '../event-text.ts'
import { cutLine, fitWords, isText } from '../fit.ts'
import { type Links, type Place, placesOf } from '../kind.ts'
import { type Block, blocksOf, escapeHtml, linesOf, MARKS } from '../message-text.ts'

/**
 * Bytes of the content in JSON. An event has at most 65,536 ("Size limits"), with what the homeserver adds: signatures,
 * hashes, and the ids of other events.
 */
const LIMIT = 60_000

export interface MatrixMessage {
  readonly msgtype: 'm.text'
  readonly body: string
  readonly format: 'org.matrix.custom.html'
  readonly formatted_body: string
  /** No one: otherwise homeservers and clients look for names and `@room` in `body` ("User and room mentions"). */
  readonly 'm.mentions': Readonly<Record<string, never>>
}

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): MatrixMessage {
  const words = describeEvent(event)
  const headline = `${MARKS[words.tone]} ${disarm(words.headline)}`
  const places = placesOf(links, event)
  const render = (fitted: EventText) => toMessage(headline, linesOf(fitted).map(disarm), blocksOf(fitted), places)
  return render(fitWords(words, (fitted) => fits(render(fitted))))
}

/** The lines of all checks that a digest names always fit. */
export function renderDigest(digest: Digest, links: Links): MatrixMessage {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const lines = [...checks.map((check) => disarm(cutLine(check))), rest(checks.length), note].filter(isText)
  return toMessage(`${MARKS[tone]} ${headline}`, lines, [], [{ label: 'All checks', action: 'All checks', url: link }])
}

function toMessage(
  headline: string,
  lines: readonly string[],
  blocks: readonly Block[],
  places: readonly Place[],
): MatrixMessage {
  const plain = [headline, ...lines, ...blocks.map(({ title, text }) => `\n${title}\n${text}`)]
  const html = [`<strong>${escapeHtml(headline)}</strong>`, ...lines.map(escapeHtml)].join('<br>')
  const boxes = blocks.map(
    ({ title, text }) => `<p>${escapeHtml(title)}</p><pre><code>${escapeHtml(text)}</code></pre>`,
  )
  return {
    msgtype: 'm.text',
    body: [...plain, ...places.map(({ label, url }) => `\n${label}: ${url}`)].join('\n'),
    format: 'org.matrix.custom.html',
    formatted_body: [
      `<p>${html}</p>`,
      ...boxes,
      ...places.map(({ action, url }) => `<p><a href="${escapeHtml(url)}">${action}</a></p>`),
    ].join(''),
    'm.mentions': {},
  }
}

const fits = (message: MatrixMessage) => Buffer.byteLength(JSON.stringify(message)) <= LIMIT
