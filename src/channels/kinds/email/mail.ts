/** The mail for an event, as plain text and as HTML. Both contain the same. */

import { domainToASCII } from 'node:url'
import type { SendMailOptions } from 'nodemailer'
import type { Event } from '../../../domain/event.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import { describeEvent, type EventText } from '../event-text.ts'
import { type Links, linkForPeople } from '../kind.ts'
import { html } from './html.ts'

export interface Mailbox {
  readonly name: string
  readonly address: string
}

/** Reads `Name <address>`, or an address alone. */
export function readMailbox(text: string): Mailbox {
  const [, name, address] = /^(.*)<([^<>]*)>\s*$/.exec(text) ?? [null, '', text]
  return { name: name!.trim().replace(/^"(.*)"$/, '$1'), address: address!.trim() }
}

export interface Mail {
  readonly event: Event
  readonly links: Links
  readonly sender: Mailbox
  readonly to: readonly string[]
  readonly channelName: string
}

/** The same event gives the same Message-ID, so a mail program recognizes a repeat. The mails of one check form a thread. */
export function renderMail({ event, links, sender, to, channelName }: Mail): SendMailOptions {
  const words = describeEvent(event)
  const link = event.type === 'channel.test' ? null : linkForPeople(links, event.check.id)
  const footer = `Sent by Heartbeat Operator to the channel ${toOneLine(channelName)}.`
  const content: Content = { ...words, link, footer }
  const domain = domainToASCII(sender.address.slice(sender.address.lastIndexOf('@') + 1)) || 'localhost'
  const thread = event.type === 'channel.test' ? null : `<check.${event.check.id}@${domain}>`
  return {
    from: sender,
    // As objects: nodemailer would split a text at its commas.
    to: to.map((address) => ({ name: '', address })),
    // nodemailer passes an encoded word (RFC 2047) on as one. U+200B breaks its beginning.
    subject: words.headline.replaceAll('=?', '=\u200b?'),
    text: renderText(content),
    html: renderHtml(content),
    date: new Date(event.at),
    messageId: `<${event.id}@${domain}>`,
    ...(thread === null ? {} : { inReplyTo: thread, references: thread }),
    // RFC 3834: no absence notes in return. Exchange has a header of its own for that.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  }
}

interface Content extends EventText {
  readonly link: string | null
  readonly footer: string
}

function renderText({ headline, reason, location, output, link, footer }: Content): string {
  const paragraphs = [headline, location === null ? `${reason}.` : `${reason}.\n${location}.`]
  if (output !== null) paragraphs.push(`${output.title}:\n\n${output.text}`)
  if (link !== null) paragraphs.push(`Check: ${link}`)
  // The mark of a signature: mail programs leave it out of replies.
  return `${[...paragraphs, `-- \n${footer}`].join('\n\n')}\n`
}

const PRE = 'background:#f4f4f4;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px'

function renderHtml({ headline, reason, location, output, link, footer }: Content): string {
  const nothing = html``
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${headline}</title></head>
<body style="font-family:sans-serif;line-height:1.4">
<h1 dir="auto" style="font-size:18px">${headline}</h1>
<p>${reason}.${location === null ? nothing : html`<br>${location}.`}</p>
${output === null ? nothing : html`<p>${output.title}:</p>\n<pre dir="auto" style="${PRE}">${output.text}</pre>`}
${link === null ? nothing : html`<p>Check: <a href="${link}">${link}</a></p>`}
<p style="color:#666;font-size:12px">${footer}</p>
</body>
</html>
`.html
}
