/**
 * E-mail through the SMTP server of the installation. It owns a pool of connections that opens with the first mail; idle ones are
 * closed after seconds, all of them by close(). A mail says everything twice, as plain text and as HTML.
 */

import { domainToASCII } from 'node:url'
import type { SendMailOptions, Transporter } from 'nodemailer'
import type { Event } from '../domain/event.ts'
import { html } from './html.ts'
import type { Links } from './links.ts'
import type { Outcome, Send } from './outcome.ts'
import { judgeFailure, judgeSuccess, type SmtpError } from './smtp-outcome.ts'
import { explain, findOutput, headline, locate, toOneLine } from './words.ts'

export interface EmailParts {
  /** SMTP_URL: `smtp://user:password@host:587` or `smtps://...:465`. */
  readonly smtpUrl: string | undefined
  /** SMTP_FROM: `Name <address>`, or an address alone. */
  readonly from: string
  readonly links: Links
  /** In PEM: the authority to trust instead of Node's. */
  readonly ca?: string
}

export type EmailSender = Send<'email'> & {
  /** Closes all connections, those in use as well. */
  close(): void
}

export function createEmailSender({ smtpUrl, from, links, ca }: EmailParts): EmailSender {
  if (smtpUrl === undefined) return Object.assign(async () => NOT_CONFIGURED, { close: () => {} })
  const server = readSmtpUrl(smtpUrl)
  const sender = readMailbox(from)
  let transport: Promise<Transporter> | null = null
  let isClosed = false

  const send: Send<'email'> = async ({ channel, event }, signal) => {
    const { to } = channel.settings
    try {
      transport ??= openTransport(server, ca)
      const message = renderMail({ event, links, sender, to, channelName: channel.name })
      const opened = await transport
      if (isClosed)
        return { kind: 'retry', status: null, error: `${server.name} was not asked: the service is stopping` }
      const { rejectedErrors, response } = await opened.sendMail({ ...message, signal })
      return judgeSuccess(server.name, response ?? '', rejectedErrors ?? [], to.length)
    } catch (error) {
      if (signal.aborted) return { kind: 'retry', status: null, error: `${server.name} did not take the mail in time` }
      return judgeFailure(error as SmtpError, server.name)
    }
  }
  const close = () => {
    isClosed = true
    void transport?.then((opened) => opened.close({ force: true }))
  }
  return Object.assign(send, { close })
}

const NOT_CONFIGURED: Outcome = {
  kind: 'retry',
  status: null,
  error: 'this installation sends no e-mail: set SMTP_URL to the address of its SMTP server',
}

interface SmtpServer {
  /** For people. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** TLS from the first byte; else by STARTTLS. */
  readonly isSecure: boolean
  readonly auth: { readonly user: string; readonly pass: string } | null
}

/** Has passed config.ts. Not left to nodemailer, which would take any of its options from the query, `tls.rejectUnauthorized` too. */
function readSmtpUrl(text: string): SmtpServer {
  const { protocol, hostname, port: givenPort, username, password } = new URL(text)
  const isSecure = protocol === 'smtps:'
  const port = givenPort === '' ? (isSecure ? 465 : 587) : Number(givenPort)
  const auth = username === '' ? null : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  return { name: `${hostname}:${port}`, host: hostname.replace(/^\[|\]$/g, ''), port, isSecure, auth }
}

interface Mailbox {
  readonly name: string
  readonly address: string
}

function readMailbox(text: string): Mailbox {
  const [, name, address] = /^(.*)<([^<>]*)>\s*$/.exec(text) ?? [null, '', text]
  return { name: name!.trim().replace(/^"(.*)"$/, '$1'), address: address!.trim() }
}

/** All under the time of an attempt, so that what a server is waiting for can be told. */
const CONNECT_MS = 8_000
const SILENCE_MS = 9_000
const IDLE_MS = 5_000

async function openTransport({ host, port, isSecure, auth }: SmtpServer, ca: string | undefined): Promise<Transporter> {
  // Imported where it is needed: 70 ms and 25 MB that a process without e-mail does not pay.
  const { createTransport } = await import('nodemailer')
  return createTransport({
    pool: true,
    host,
    port,
    secure: isSecure,
    // Without it a password would go over the wire as it is to whoever leaves STARTTLS out of the greeting.
    requireTLS: auth !== null && !isSecure,
    ...(auth === null ? {} : { auth }),
    tls: { minVersion: 'TLSv1.2', ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    idleTimeout: IDLE_MS,
    // What is tried again, and when, is not the pool's to decide; once, for a connection that the server closed meanwhile.
    maxRequeues: 1,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}

interface Mail {
  readonly event: Event
  readonly links: Links
  readonly sender: Mailbox
  readonly to: readonly string[]
  readonly channelName: string
}

/** The same event gives the same Message-ID, by which a mail that arrives twice is known. Mails of one check make a thread. */
function renderMail({ event, links, sender, to, channelName }: Mail): SendMailOptions {
  const subject = headline(event)
  const parts: Parts = {
    subject,
    why: `${explain(event)}.`,
    where: locate(event),
    output: findOutput(event),
    link: event.type === 'channel.test' ? null : links.check(event.check.id),
    footer: `Sent by Heartbeat Operator to the channel ${toOneLine(channelName)}.`,
  }
  const domain = domainToASCII(sender.address.slice(sender.address.lastIndexOf('@') + 1)) || 'localhost'
  const thread = event.type === 'channel.test' ? null : `<check.${event.check.id}@${domain}>`
  return {
    from: sender,
    // As objects, which nobody takes apart at commas.
    to: to.map((address) => ({ name: '', address })),
    // The beginning of an encoded word (RFC 2047), which nodemailer lets through as one. With U+200B it is just what it looks like.
    subject: subject.replaceAll('=?', '=\u200b?'),
    text: renderText(parts),
    html: renderHtml(parts),
    date: new Date(event.at),
    messageId: `<${event.id}@${domain}>`,
    ...(thread === null ? {} : { inReplyTo: thread, references: thread }),
    // RFC 3834: nobody's absence note comes back. Exchange wants it said in its own way.
    headers: { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' },
  }
}

interface Parts {
  readonly subject: string
  readonly why: string
  readonly where: string | null
  readonly output: { readonly title: string; readonly text: string } | null
  readonly link: string | null
  readonly footer: string
}

function renderText({ subject, why, where, output, link, footer }: Parts): string {
  const paragraphs = [subject, where === null ? why : `${why}\n${where}.`]
  if (output !== null) paragraphs.push(`${output.title}:\n\n${output.text}`)
  if (link !== null) paragraphs.push(`Check: ${link}`)
  // A signature, which mail programs leave out of answers.
  return `${[...paragraphs, `-- \n${footer}`].join('\n\n')}\n`
}

const PRE = 'background:#f4f4f4;padding:12px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px'

function renderHtml({ subject, why, where, output, link, footer }: Parts): string {
  const nothing = html``
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${subject}</title></head>
<body style="font-family:sans-serif;line-height:1.4">
<h1 dir="auto" style="font-size:18px">${subject}</h1>
<p>${why}${where === null ? nothing : html`<br>${where}.`}</p>
${output === null ? nothing : html`<p>${output.title}:</p>\n<pre dir="auto" style="${PRE}">${output.text}</pre>`}
${link === null ? nothing : html`<p>Check: <a href="${link}">${link}</a></p>`}
<p style="color:#666;font-size:12px">${footer}</p>
</body>
</html>
`.html
}
