/** The mail for an event, as plain text and as HTML. Both contain the same. */

import { domainToASCII } from 'node:url'
import { html } from 'hono/html'
import type { SendMailOptions } from 'nodemailer'
import type { Instant } from '../../../domain/check.ts'
import type { Event } from '../../../domain/event.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import { splitAddresses } from '../addresses.ts'
import { ABOUT, describeEvent, type EventText } from '../event-text.ts'
import { type Links, type Place, placesOf } from '../kind.ts'

export interface Mailbox {
  readonly name: string
  readonly address: string
}

/** Reads `Name <address>`, or an address alone. */
export function readMailbox(text: string): Mailbox {
  const [, name, address] = /^(.*)<([^<>]*)>\s*$/.exec(text) ?? [null, '', text]
  return { name: name!.trim().replace(/^"(.*)"$/, '$1'), address: address!.trim() }
}

export type Mail = SendMailOptions

/** What all mails of a channel have in common. */
export interface Envelope {
  readonly sender: Mailbox
  readonly to: readonly string[]
  readonly channelName: string
}

/** The same event gives the same Message-ID, so a mail program recognizes a repeat. The mails of one check form a thread. */
export function renderMail(event: Event, links: Links, envelope: Envelope): Mail {
  const words = describeEvent(event)
  const content: Content = { ...words, places: placesOf(links, event), footer: renderFooter(envelope) }
  const thread = event.type === 'channel.test' ? null : toMessageId(`check.${event.check.id}`, envelope)
  return {
    ...renderHead(envelope, { subject: words.headline, id: event.id, at: event.at }),
    text: renderText(content),
    html: renderHtml(content),
    ...(thread === null ? {} : { inReplyTo: thread, references: thread }),
  }
}

/** Everything but the text. */
export function renderHead(
  envelope: Envelope,
  { subject, id, at }: { readonly subject: string; readonly id: string; readonly at: Instant },
): Mail {
  return {
    from: envelope.sender,
    // As objects: nodemailer would split a text at its commas.
    to: envelope.to.map((address) => ({ name: '', address })),
    // nodemailer passes an encoded word (RFC 2047) on as one. U+200B breaks its beginning.
    subject: subject.replaceAll('=?', '=\u200b?'),
    date: new Date(at),
    messageId: toMessageId(id, envelope),
    // RFC 3834: no absence notes in return. Exchange has a header of its own for that.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  }
}

function toMessageId(id: string, { sender: { address } }: Envelope): string {
  return `<${id}@${domainToASCII(address.slice(address.lastIndexOf('@') + 1)) || 'localhost'}>`
}

export function renderFooter({ channelName }: Envelope): string {
  return `Sent by Heartbeat Operator to the channel ${toOneLine(channelName)}.`
}

interface Content extends EventText {
  readonly places: readonly Place[]
  readonly footer: string
}

/** What is known of the event, a sentence each. */
function linesOf({ reason, facts, location }: Content): string[] {
  return [reason, ...facts, ...(location === null ? [] : [location])].map((line) => `${line}.`)
}

function renderText(content: Content): string {
  const { headline, output, description, places, footer } = content
  const paragraphs = [headline, linesOf(content).join('\n')]
  if (output !== null) paragraphs.push(`${output.title}:\n\n${output.text}`)
  if (description !== null) paragraphs.push(`${ABOUT}:\n\n${description}`)
  paragraphs.push(...places.map(({ label, url }) => `${label}: ${url}`))
  // The mark of a signature: mail programs leave it out of replies.
  return `${[...paragraphs, `-- \n${footer}`].join('\n\n')}\n`
}

function linkAddresses(text: string) {
  return splitAddresses(text).map((piece) =>
    piece.isAddress ? html`<a href="${piece.text}">${piece.text}</a>` : piece.text,
  )
}

const PRE = 'background:#f4f4f4;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px'

function renderHtml(content: Content): string {
  const { headline, output, description, places, footer } = content
  return String(html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${headline}</title></head>
<body style="font-family:sans-serif;line-height:1.4">
<h1 dir="auto" style="font-size:18px">${headline}</h1>
<p>${linesOf(content).map((line, index) => html`${index === 0 ? '' : html`<br>`}${line}`)}</p>
${output === null ? '' : html`<p>${output.title}:</p>\n<pre dir="auto" style="${PRE}">${output.text}</pre>`}
${description === null ? '' : html`<p>${ABOUT}:</p>\n<p dir="auto" style="white-space:pre-wrap">${linkAddresses(description)}</p>`}
${places.map(
  ({ label, url }) => html`<p>${label}: <a href="${url}">${url}</a></p>
`,
)}
<p style="color:#666;font-size:12px">${footer}</p>
</body>
</html>
`)
}
