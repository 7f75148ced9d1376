/**
 * The outcome of a delivery by SMTP: what is retried, what is final, and the texts. These name the server, never its password; of an
 * address that a server quotes they show the domain only.
 */

import { explainFailure, joinLines, toQuote } from '../../../delivery/failures.ts'
import type { Outcome } from '../../../delivery/outcome.ts'

/** The fields of nodemailer's errors that are used here. */
export interface SmtpError {
  /** Nodemailer's code, and Node's code before it. */
  readonly code?: string | undefined
  readonly originalCode?: string | undefined
  /** The stage: `MAIL FROM`, `RCPT TO`, `DATA`, `STARTTLS`, `CONN` ... */
  readonly command?: string | undefined
  /** Which wait ended. */
  readonly timeoutType?: string | undefined
  /** The server's whole response, and the number that it begins with. */
  readonly response?: string | undefined
  readonly responseCode?: number | undefined
  /** One for each rejected recipient. */
  readonly rejectedErrors?: readonly SmtpError[] | undefined
}

/** @param rejections the recipients that the server rejected; the others get the mail. */
export function judgeSuccess(
  server: string,
  response: string,
  rejections: readonly SmtpError[],
  recipients: number,
): Outcome {
  const status = Number(/^\d{3}/.exec(response)?.[0] ?? 250)
  const [first] = rejections
  if (first === undefined) return { kind: 'delivered', status }
  const note = `${server} rejected ${rejections.length} of ${recipients} recipients${quote(first.response)}`
  return { kind: 'delivered', status, note }
}

/** Whether TLS failed after the server offered it, or may have: a connection that breaks does not say in what. */
export function isOfTls({ code, originalCode = '', command, timeoutType }: SmtpError): boolean {
  if (code === 'ETLS' || timeoutType === 'UPGRADE_TIMEOUT') return true
  // A close or a 421 in place of an answer to STARTTLS looks like a close at any other stage.
  if (code === 'ECONNECTION' && command === 'CONN') return true
  return code === 'ESOCKET' && /^(EPROTO$|ECONNRESET$|EPIPE$|ERR_(SSL|TLS)_)/.test(originalCode)
}

/**
 * Failures of the connection and of the log-in are retried: they belong to the installation, whose operator may correct them. `demand`: what
 * requires TLS.
 */
export function judgeFailure(error: SmtpError, server: string, demand = 'a password in SMTP_URL'): Outcome {
  const status = error.responseCode ?? null
  switch (error.code) {
    case 'EAUTH':
    case 'ENOAUTH':
    case 'EOAUTH2': {
      // Without a quote: the response may name the user.
      const code = status === null ? '' : ` (${status})`
      return retry(status, `${server} rejected the log-in${code}: check the user and the password in SMTP_URL`)
    }
    case 'EENVELOPE':
    case 'EMESSAGE':
      return judgeRejection(error, server, status)
    default:
      return retry(status, `${server} ${explain(error, demand)}${quote(error.response)}`)
  }
}

const retry = (status: number | null, error: string): Outcome => ({ kind: 'retry', status, error })

function judgeRejection(error: SmtpError, server: string, status: number | null): Outcome {
  const said = quote(error.response)
  if (error.command === 'MAIL FROM') return retry(status, `${server} rejected the sender address in SMTP_FROM${said}`)
  const what = error.command === 'RCPT TO' ? 'rejected every recipient' : 'rejected the mail'
  const rejections = error.rejectedErrors ?? [error]
  // One recipient that the server may accept later is enough to retry: no recipient has the mail yet.
  const isFinal = rejections.every(({ responseCode }) => responseCode === undefined || isPermanent(responseCode))
  if (!isFinal) return retry(status, `${server} ${what}${said}`)
  const isOfMessage = error.code === 'EMESSAGE' && status !== null && OF_MESSAGE.has(status)
  return { kind: 'rejected', status, error: `${server} ${what}${said}`, ...(isOfMessage ? { isOfMessage: true } : {}) }
}

/** After the text of the mail: too large, refused for what it says. The same numbers before it are about a recipient. */
const OF_MESSAGE = new Set([552, 554])

/** RFC 5321, section 4.2.1. 503, a command out of order, is about the session, not about the mail. */
function isPermanent(status: number): boolean {
  return status >= 500 && status !== 503
}

/** A predicate to the server. Never the error's own text, which may quote anything. */
function explain({ code, originalCode, command, responseCode = 0 }: SmtpError, demand: string): string {
  const id = originalCode ?? code ?? 'unknown'
  switch (code) {
    case 'ETLS':
      if (command === 'STARTTLS' && responseCode >= 400 && responseCode < 500)
        return `did not begin TLS, which ${demand} requires`
      if (command === 'STARTTLS') return `does not offer TLS, which ${demand} requires: try another port, or smtps:`
      return originalCode === undefined || /^(EPROTO$|ERR_(SSL|TLS)_)/.test(originalCode)
        ? `does not speak TLS as expected: smtps: is for port 465, smtp: for 587 and 25 (${id})`
        : (explainFailure(id, 'SMTP_URL') ?? `failed (${id})`)
    case 'ETIMEDOUT':
      return 'did not respond in time'
    case 'ECONNECTION':
      return explainFailure(id, 'SMTP_URL') ?? 'closed the connection'
    case 'EPROTOCOL':
      return 'does not respond as an SMTP server should'
    default:
      return explainFailure(id, 'SMTP_URL') ?? `did not accept the mail (${id})`
  }
}

/** A response can have a megabyte, and a search for addresses in it takes the square of its length. */
const JUDGED_CHARACTERS = 1_000

/** What the server said, with a colon before it. */
function quote(response: string | undefined): string {
  const line = joinLines((response ?? '').slice(0, JUDGED_CHARACTERS)).replace(
    /[^\s<>()@,;:"']+@(?=[\p{L}\p{N}[])/gu,
    '…@',
  )
  return line === '' ? '' : `: ${toQuote(line)}`
}
