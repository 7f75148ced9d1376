/** What this process sends over a network without encryption, for one warning at its start. */

import type { Config } from '../config/config.ts'
import { isClear } from '../runtime/clear-urls.ts'

export interface Sent {
  /** Public addresses. */
  readonly ping: string
  readonly api: string | null
  readonly secrets: Pick<Config['secrets'], 'smtpUrl' | 'alertmanagerUrls' | 'watchdogUrl'>
  readonly isSmtpTlsRequired?: boolean
  /** The connection to the database has no TLS, and leaves this machine. */
  readonly isDatabaseInClear: boolean
  /** Channels of the API with a URL without TLS. */
  readonly clearChannels: number
}

/** One text for each, with the variable and without its value. Loopback addresses do not count. */
export function findUnencrypted(sent: Sent): string[] {
  const { ping, api, secrets, isSmtpTlsRequired, isDatabaseInClear, clearChannels } = sent
  const { smtpUrl, alertmanagerUrls, watchdogUrl } = secrets
  const found: [boolean, string][] = [
    [isClear(ping), 'pings: PING_URL is http, and a ping URL is a credential'],
    [api !== null && isClear(api), 'calls of the management API with their API keys and passwords: BASE_URL is http'],
    [isDatabaseInClear, 'statements and results of the database: DATABASE_URL has no sslmode=verify-full'],
    [
      smtpUrl !== undefined && !isSmtpTlsRequired && isClear(smtpUrl),
      'mails, unless the server offers STARTTLS: SMTP_URL is smtp without a password',
    ],
    [alertmanagerUrls.some(isClear), 'alerts: ALERTMANAGER_URL is http'],
    [watchdogUrl !== null && isClear(watchdogUrl), 'pings of the watchdog: WATCHDOG_URL is http'],
    [
      clearChannels > 0,
      `notifications of ${clearChannels} ${clearChannels === 1 ? 'channel' : 'channels'}: their URLs are http`,
    ],
  ]
  return found.flatMap(([isFound, text]) => (isFound ? [text] : []))
}
