/**
 * Messages of Matrix: `m.text` with HTML (Matrix specification, Client-Server API, "m.room.message msgtypes"). No text
 * mentions a person. Names, reasons and outputs have no links.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { linkAddresses } from '../addresses.ts'
import { escapeHtml, type HtmlText, renderDigestText, renderEventText } from '../html-text.ts'
import type { Links } from '../kind.ts'
import type { Block } from '../message-text.ts'

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
  return renderEventText(event, links, toMessage, fits)
}

export function renderDigest(digest: Digest, links: Links): MatrixMessage {
  return renderDigestText(digest, links, toMessage, fits)
}

function toMessage({ headline, lines, blocks, places }: HtmlText): MatrixMessage {
  const html = [`<strong>${escapeHtml(headline)}</strong>`, ...lines.map(escapeHtml)].join('<br>')
  return {
    msgtype: 'm.text',
    body: [
      headline,
      ...lines,
      ...blocks.map(({ title, text }) => `\n${title}\n${text}`),
      ...places.map(({ label, url }) => `\n${label}: ${url}`),
    ].join('\n'),
    format: 'org.matrix.custom.html',
    formatted_body: [
      `<p>${html}</p>`,
      ...blocks.map(renderBlock),
      ...places.map(({ action, url }) => `<p><a href="${escapeHtml(url)}">${action}</a></p>`),
    ].join(''),
    'm.mentions': {},
  }
}

function renderBlock({ title, text, isCode }: Block): string {
  const code = () => `<pre><code>${escapeHtml(text)}</code></pre>`
  const prose = () => `<p>${linkAddresses(text, (piece) => escapeHtml(piece).replaceAll('\n', '<br>'))}</p>`
  return `<p>${escapeHtml(title)}</p>${isCode ? code() : prose()}`
}

const fits = (message: MatrixMessage) => Buffer.byteLength(JSON.stringify(message)) <= LIMIT
