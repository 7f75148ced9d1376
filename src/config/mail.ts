/** How SMTP_URL, SMTP_FROM and SMTP_NAME are read. */

import { isIP } from 'node:net'
import { z } from 'zod'
import { hasReadableCredentials, textThat, textWithout, UNREADABLE_CREDENTIALS } from './values.ts'

/** The common forms of RFC 5322: an address, or a name and the address in angle brackets. */
const MAILBOX = /^(?:[^<>\p{Cc}]*<[^\s<>@,;:"()[\]\\]+@[\p{L}\p{N}.-]+>|[^\s<>@,;:"()[\]\\]+@[\p{L}\p{N}.-]+)$/u
const MAILBOX_LENGTH = 320

export const mailbox = z
  .string()
  .max(MAILBOX_LENGTH, `must have at most ${MAILBOX_LENGTH} characters`)
  .regex(MAILBOX, 'must be an e-mail address, or a name and the address: Heartbeat Operator <heartbeat@example.com>')

const SMTP_EXAMPLE = 'smtp://user:password@mail.example.com:587'

export const mailServer = textWithout((text) => {
  if (!URL.canParse(text)) return `must be a URL such as ${SMTP_EXAMPLE}`
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text)
  if (!['smtp:', 'smtps:'].includes(protocol) || hostname === '') return `must be a URL such as ${SMTP_EXAMPLE}`
  // A password that contains / or ? ends up here, and its beginning in the port.
  if (!['', '/'].includes(pathname) || search !== '' || hash !== '')
    return 'must end after the host or the port (in the password write / as %2F, ? as %3F and # as %23)'
  if ((username === '') !== (password === '')) return 'must have both a user and a password, or neither'
  return hasReadableCredentials(text) ? null : UNREADABLE_CREDENTIALS
})

/** RFC 5321, section 4.1.1.1: a domain, or an address in brackets. */
const SMTP_NAME =
  /^(?:[a-z\d](?:[a-z\d-]{0,62})(?:\.[a-z\d][a-z\d-]{0,62}){0,20}|\[[\da-f.:]{2,45}\]|\[IPv6:[\da-f.:]{2,45}\])$/i

export const smtpName = textThat(
  (text) => text.length <= 255 && SMTP_NAME.test(text),
  'must be a host name, or an address in brackets: heartbeat.example.com',
)

/** The host of BASE_URL, if it may be known elsewhere. */
export function smtpNameOf(baseUrl: string | null): string | undefined {
  const host = baseUrl === null ? '' : new URL(baseUrl).hostname.replace(/\.$/, '')
  if (!host.includes('.')) return undefined
  return isIP(host) === 0 ? host : `[${host}]`
}
