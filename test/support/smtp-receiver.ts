/** A receiver for e-mail channels: an SMTP server on loopback that keeps mails, and rejects what the test requires. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'
import type { Certified } from '../../tools/cluster/control-plane-certificates.ts'

export interface ReceivedMail {
  /** Of the envelope, international domains as people write them. */
  readonly from: string
  readonly to: readonly string[]
  /** By lower-case name, on one line, encoded words decoded. */
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  readonly html: string
  /** As it came over the wire. */
  readonly raw: string
  readonly isEncrypted: boolean
  /** Who logged in. */
  readonly user: string | null
  /** What the client called itself (EHLO). */
  readonly clientName: string
}

export type SmtpStage = 'CONNECT' | 'MAIL' | 'RCPT' | 'DATA'

export interface SmtpReceiver extends AsyncDisposable {
  readonly port: number
  /** Oldest first. */
  readonly mails: readonly ReceivedMail[]
  connections(): { readonly accepted: number; readonly open: number }
  /**
   * From now on: the answer to a stage, as `550 5.1.1 No such user`, or null to accept; `hang`: never; `close`: none, and
   * all connections are gone. `address`: the sender's or the recipient's, empty for the others.
   */
  answer(how: (stage: SmtpStage, address: string) => string | null): void
  close(): Promise<void>
}

export interface SmtpReceiverOptions {
  /** Makes it offer STARTTLS. */
  readonly certified?: Certified
  /** TLS from the first byte. */
  readonly isSecure?: boolean
  /**
   * The response to STARTTLS, as `454 4.7.0 TLS not available`; `close`: it agrees, and closes the connection; `drop`: it
   * closes without a response.
   */
  readonly startTls?: string
  /** Makes it want a log-in, and take no other. */
  readonly logIn?: { readonly user: string; readonly password: string }
}

export async function startSmtpReceiver({
  certified,
  isSecure = false,
  startTls,
  logIn,
}: SmtpReceiverOptions = {}): Promise<SmtpReceiver> {
  const mails: ReceivedMail[] = []
  let accepted = 0
  let answerOf: (stage: SmtpStage, address: string) => string | null = () => null

  const decide = (stage: SmtpStage, address: string, callback: (error?: Error | null) => void) => {
    const answer = answerOf(stage, address)
    if (answer === 'hang') return
    if (answer === 'close') return closeAll()
    callback(answer === null ? null : rejection(answer))
  }
  const server = new SMTPServer({
    secure: isSecure,
    logger: false,
    ...(certified === undefined ? {} : { cert: certified.certificate, key: certified.key }),
    disabledCommands: [...(certified === undefined ? ['STARTTLS'] : []), ...(logIn === undefined ? ['AUTH'] : [])],
    authOptional: logIn === undefined,
    disableReverseLookup: true,
    onAuth({ username, password }, _session, callback) {
      if (username === logIn?.user && password === logIn?.password) callback(null, { user: username })
      // Some servers say whom they did not let in.
      else callback(rejection(`535 5.7.8 ${username} with ${password} is not welcome`))
    },
    onConnect(_session, callback) {
      accepted += 1
      if (startTls !== undefined) for (const connection of server.connections) failStartTls(connection, startTls)
      decide('CONNECT', '', callback)
    },
    onMailFrom: ({ address }, _session, callback) => decide('MAIL', address, callback),
    onRcptTo: ({ address }, _session, callback) => decide('RCPT', address, callback),
    onData(stream, session, callback) {
      const { mailFrom, rcptTo } = session.envelope
      void text(stream).then((raw) =>
        decide('DATA', '', (error) => {
          if (error) return callback(error)
          mails.push({
            ...parseMail(raw),
            from: mailFrom === false ? '' : mailFrom.address,
            to: rcptTo.map(({ address }) => address),
            raw,
            isEncrypted: session.secure,
            user: session.user || null,
            clientName: session.hostNameAppearsAs || '',
          })
          callback(null)
        }),
      )
    },
  })
  // Clients that do not trust the certificate go away in the middle of the handshake.
  server.on('error', () => {})

  function closeAll() {
    for (const connection of server.connections) connection.close()
  }
  const close = async () => {
    closeAll()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  }
  const listener = server.listen(0, '127.0.0.1')
  if (!listener.listening) await once(listener, 'listening')
  return {
    port: (listener.address() as AddressInfo).port,
    mails,
    connections: () => ({ accepted, open: server.connections.size }),
    answer(how) {
      answerOf = how
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The library has no option for it. */
function failStartTls(connection: object, answer: string): void {
  const { send, close } = connection as { send(code: number, text: string): void; close(): void }
  const handler = (_command: unknown, done: () => void) => {
    if (answer === 'close' || answer === 'drop') {
      if (answer === 'close') send.call(connection, 220, 'Ready')
      close.call(connection)
    } else send.call(connection, Number(answer.slice(0, 3)), answer.slice(4))
    done()
  }
  Object.assign(connection, { handler_STARTTLS: handler })
}

function rejection(answer: string): Error {
  return Object.assign(new Error(answer.slice(4)), { responseCode: Number(answer.slice(0, 3)) })
}

/** A message of one or two levels (RFC 5322, 2045 and 2047), as ours are. */
function parseMail(raw: string): Pick<ReceivedMail, 'headers' | 'text' | 'html'> {
  const { headers, body } = parsePart(raw)
  const boundary = /boundary="?([^";]+)"?/.exec(headers['content-type'] ?? '')?.[1]
  const parts = boundary === undefined ? [{ headers, body }] : splitParts(body, boundary)
  const bodyOf = (type: string) =>
    parts.filter((part) => part.headers['content-type']?.startsWith(type)).map(decodeBody)[0] ?? ''
  return { headers, text: bodyOf('text/plain'), html: bodyOf('text/html') }
}

interface Part {
  readonly headers: Record<string, string>
  readonly body: string
}

function splitParts(body: string, boundary: string): Part[] {
  return `\r\n${body}`
    .split(`\r\n--${boundary}`)
    .slice(1, -1)
    .map((part) => parsePart(part.replace(/^\r\n/, '')))
}

function parsePart(text: string): Part {
  const end = text.indexOf('\r\n\r\n')
  const headers: Record<string, string> = {}
  for (const line of text.slice(0, end).split(/\r\n(?![ \t])/)) {
    const colon = line.indexOf(':')
    headers[line.slice(0, colon).toLowerCase()] = decodeWords(
      line
        .slice(colon + 1)
        .replace(/\r\n(?=[ \t])/g, '')
        .trim(),
    )
  }
  return { headers, body: text.slice(end + 4) }
}

function decodeBody({ headers, body }: Part): string {
  const encoding = headers['content-transfer-encoding'] ?? ''
  const bytes =
    encoding === 'base64'
      ? Buffer.from(body, 'base64')
      : encoding === 'quoted-printable'
        ? decodeQuoted(body.replace(/=\r\n/g, ''))
        : Buffer.from(body)
  return bytes.toString().replace(/\r\n/g, '\n')
}

function decodeQuoted(text: string): Buffer {
  const bytes = text.replace(/=([\dA-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1')
}

/** White space between two encoded words is not part of the text. */
function decodeWords(text: string): string {
  return text
    .replace(/(\?=)\s+(?==\?)/g, '$1')
    .replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, how: string, word: string) =>
      (how.toLowerCase() === 'b' ? Buffer.from(word, 'base64') : decodeQuoted(word.replaceAll('_', ' '))).toString(),
    )
}
