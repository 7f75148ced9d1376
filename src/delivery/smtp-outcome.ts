/**
 * What becomes of a delivery by SMTP: which failures are tried again, which are refusals, and how people are told. The texts name
 * the server, never its password; of addresses that a server quotes only the domain.
 */

import type { Outcome } from './outcome.ts'

/** What nodemailer says of a failure, as far as it is looked at. */
export interface SmtpError {
  /** Nodemailer's, and the one that Node had given before. */
  readonly code?: string | undefined
  readonly originalCode?: string | undefined
  /** The stage: `MAIL FROM`, `RCPT TO`, `DATA`, `STARTTLS`, `CONN` ... */
  readonly command?: string | undefined
  /** The server's answer, whole, and the number that it begins with. */
  readonly response?: string | undefined
  readonly responseCode?: number | undefined
  /** One for each recipient that was refused. */
  readonly rejectedErrors?: readonly SmtpError[] | undefined
}

const QUOTED_CHARACTERS = 200

/** @param refusals those recipients the server did not take; the others have the mail. */
export function judgeSuccess(
  server: string,
  response: string,
  refusals: readonly SmtpError[],
  recipients: number,
): Outcome {
  const status = Number(/^\d{3}/.exec(response)?.[0] ?? 250)
  const [first] = refusals
  if (first === undefined) return { kind: 'delivered', status }
  const note = `${server} refused ${refusals.length} of ${recipients} recipients${quoteAnswer(first.response)}`
  return { kind: 'delivered', status, note }
}

/** Whatever has to do with the connection and the log-in is the installation's own setting, which somebody may put right. */
export function judgeFailure(error: SmtpError, server: string): Outcome {
  const status = error.responseCode ?? null
  const quote = quoteAnswer(error.response)
  switch (error.code) {
    case 'EAUTH':
    case 'ENOAUTH':
    case 'EOAUTH2':
      // What it says about the log-in may name the user.
      return {
        kind: 'retry',
        status,
        error: `${server} refuses the log-in${status === null ? '' : ` (${status})`}: check the user and the password in SMTP_URL`,
      }
    case 'EENVELOPE':
    case 'EMESSAGE':
      return judgeRefusal(error, server, status, quote)
    default:
      return { kind: 'retry', status, error: `${server} ${explainFailure(error)}${quote}` }
  }
}

function judgeRefusal(error: SmtpError, server: string, status: number | null, quote: string): Outcome {
  if (error.command === 'MAIL FROM')
    return { kind: 'retry', status, error: `${server} does not take mail from the address in SMTP_FROM${quote}` }
  const what = error.command === 'RCPT TO' ? 'refuses every recipient' : 'refuses the mail'
  const refusals = error.rejectedErrors ?? [error]
  // Of several recipients one that may be taken later is reason enough: a mail to none of them has gone out.
  const isForGood = refusals.every(({ responseCode }) => responseCode === undefined || isPermanent(responseCode))
  return { kind: isForGood ? 'refused' : 'retry', status, error: `${server} ${what}${quote}` }
}

/** RFC 5321, section 4.2.1. 503, a command out of its turn, says something of the session, not of the mail. */
function isPermanent(status: number): boolean {
  return status >= 500 && status !== 503
}

const UNTRUSTED = 'shows a certificate that no known authority vouches for: NODE_EXTRA_CA_CERTS adds an authority'

/** By the code that Node gave it before nodemailer gave its own. */
const FAILURES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections: does it run, and is the port in SMTP_URL right?',
  ECONNRESET: 'broke the connection off',
  EPIPE: 'broke the connection off',
  EHOSTUNREACH: 'cannot be reached from here: there is no way to its network',
  ENETUNREACH: 'cannot be reached from here: there is no way to its network',
  ENOTFOUND: 'has no address: is the name in SMTP_URL right?',
  EAI_AGAIN: 'could not be looked up: the name servers gave no answer',
  CERT_HAS_EXPIRED: 'shows a certificate that has expired',
  CERT_NOT_YET_VALID: 'shows a certificate that is not valid yet: are both clocks right?',
  ERR_TLS_CERT_ALTNAME_INVALID: 'shows a certificate for another name: is the host in SMTP_URL right?',
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
}

/** A predicate to the server. Never the error's own text, which may quote anything. */
function explainFailure({ code, originalCode, command }: SmtpError): string {
  const known = FAILURES[originalCode ?? '']
  if (known !== undefined) return `${known} (${originalCode})`
  const id = originalCode ?? code ?? 'unknown'
  switch (code) {
    case 'ETLS':
      return command === 'STARTTLS'
        ? 'does not go over to TLS, which a password in SMTP_URL needs: try another port, or smtps:'
        : `does not speak TLS as expected: smtps: is for port 465, smtp: for 587 and 25 (${id})`
    case 'ETIMEDOUT':
      return 'does not answer in time'
    case 'EDNS':
      return `could not be looked up (${id})`
    case 'ECONNECTION':
      return 'closed the connection'
    case 'EPROTOCOL':
      return 'does not answer as an SMTP server should'
    default:
      return /^ERR_(SSL|TLS)_/.test(id) ? `does not speak TLS as expected (${id})` : `took no mail (${id})`
  }
}

/** What the server said, on one line, with a colon before it. */
function quoteAnswer(response: string | undefined): string {
  const line = (response ?? '')
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
    .replace(/[^\s<>()@,;:"']+@(?=[\p{L}\p{N}[])/gu, '…@')
  const characters = [...line]
  if (characters.length === 0) return ''
  return `: ${characters.length <= QUOTED_CHARACTERS ? line : `${characters.slice(0, QUOTED_CHARACTERS - 1).join('')}…`}`
}
