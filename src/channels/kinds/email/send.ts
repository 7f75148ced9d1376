/** E-mail by SMTP. The sender's pool of connections opens with the first mail; idle connections close after some seconds, all with close(). */

import type { Transporter } from 'nodemailer'
import type { Outcome, Send, SendDigest } from '../../../delivery/outcome.ts'
import type { OpenChannel } from '../../../domain/channel.ts'
import type { SenderContext, SmtpOptions } from '../kind.ts'
import type { EmailSettings } from './config.ts'
import { renderDigestMail } from './digest-mail.ts'
import { type Envelope, type Mail, readMailbox, renderMail } from './mail.ts'
import { isOfTls, judgeFailure, judgeSuccess, type SmtpError } from './smtp-outcome.ts'

export type EmailSender = Send<EmailSettings> & { sendDigest: SendDigest<EmailSettings>; close(): void }

export function createEmailSender({ smtp, links }: Pick<SenderContext, 'smtp' | 'links'>): EmailSender {
  if (smtp.url === undefined) {
    const refuse = async () => NOT_CONFIGURED
    return Object.assign(refuse, { sendDigest: refuse, close: () => {} })
  }
  const server = readSmtpUrl(smtp.url, smtp.isTlsRequired ?? false)
  const sender = readMailbox(smtp.from)
  /** The usual one, and one without TLS for a server whose TLS fails. */
  const transports: { usual?: Promise<Transporter>; plain?: Promise<Transporter> } = {}

  async function transmit(mail: Mail, signal: AbortSignal, name: 'usual' | 'plain' = 'usual') {
    transports[name] ??= openTransport(server, smtp, name === 'plain')
    try {
      return await (await transports[name]).sendMail({ ...mail, signal })
    } catch (error) {
      const mayBePlain = name === 'usual' && server.tls === 'if it works'
      if (!mayBePlain || signal.aborted || !isOfTls(error as SmtpError)) throw error
      return transmit(mail, signal, 'plain')
    }
  }

  async function mail(
    { name, settings: { to } }: OpenChannel<EmailSettings>,
    render: (envelope: Envelope) => Mail,
    signal: AbortSignal,
  ): Promise<Outcome> {
    try {
      const { rejectedErrors, response } = await transmit(render({ sender, to, channelName: name }), signal)
      return judgeSuccess(server.name, response ?? '', rejectedErrors ?? [], to.length)
    } catch (error) {
      if (signal.aborted) return retry(`${server.name} did not accept the mail in time`)
      return judgeFailure(error as SmtpError, server.name, server.auth === null ? 'SMTP_TLS=required' : undefined)
    }
  }
  const send: Send<EmailSettings> = ({ channel, event }, signal) =>
    mail(channel, (envelope) => renderMail(event, links, envelope), signal)
  const sendDigest: SendDigest<EmailSettings> = ({ channel, digest }, signal) =>
    mail(channel, (envelope) => renderDigestMail(digest, links, envelope), signal)
  const close = () => {
    for (const transport of Object.values(transports)) void transport.then((opened) => opened.close({ force: true }))
  }
  return Object.assign(send, { sendDigest, close })
}

const retry = (error: string): Outcome => ({ kind: 'retry', status: null, error })
const NOT_CONFIGURED = retry('this installation sends no e-mail: set SMTP_URL to the address of its SMTP server')

interface SmtpServer {
  /** Host and port, for messages. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** `if it works`: without a password there is nothing to keep secret, and a mail in clear text is better than none (RFC 7435). */
  readonly tls: 'from the first byte' | 'by STARTTLS' | 'if it works'
  readonly auth: { readonly user: string; readonly pass: string } | null
}

/** config.ts has validated the URL. nodemailer does not read it: it would take any option from the query, `tls.rejectUnauthorized` too. */
function readSmtpUrl(text: string, isTlsRequired: boolean): SmtpServer {
  const { protocol, hostname, port: givenPort, username, password } = new URL(text)
  const isSecure = protocol === 'smtps:'
  const port = givenPort === '' ? (isSecure ? 465 : 587) : Number(givenPort)
  const auth = username === '' ? null : { user: decodeURIComponent(username), pass: decodeURIComponent(password) }
  const tls = isSecure ? 'from the first byte' : auth !== null || isTlsRequired ? 'by STARTTLS' : 'if it works'
  return { name: `${hostname}:${port}`, host: hostname.replace(/^\[|\]$/g, ''), port, tls, auth }
}

/** All are shorter than an attempt, so that the error can say what the server did not do. */
const CONNECT_MS = 8_000
const SILENCE_MS = 9_000
const IDLE_MS = 5_000

async function openTransport(
  { host, port, tls, auth }: SmtpServer,
  { ca, name }: SmtpOptions,
  isPlain: boolean,
): Promise<Transporter> {
  // Imported on first use: a process without e-mail saves 70 ms and 25 MB.
  const { createTransport } = await import('nodemailer')
  const isOptional = tls === 'if it works'
  return createTransport({
    pool: true,
    host,
    port,
    ...(name === undefined ? {} : { name }),
    secure: tls === 'from the first byte',
    // Without it, a server or an attacker that does not offer STARTTLS would get the password in clear text.
    requireTLS: tls === 'by STARTTLS',
    opportunisticTLS: isOptional,
    ignoreTLS: isPlain,
    ...(auth === null ? {} : { auth }),
    tls: { minVersion: 'TLSv1.2', rejectUnauthorized: !isOptional, ...(ca === undefined ? {} : { ca }) },
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    dnsTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    idleTimeout: IDLE_MS,
    // The outbox decides about retries. The pool repeats once, for a connection that the server has closed in between.
    maxRequeues: 1,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
}
