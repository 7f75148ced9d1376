/** Apprise API (github.com/caronc/apprise-api, `apprise_api/api/views.py`), a server of the user. */

import type { Judge } from '../../../delivery/http-outcome.ts'
import { decodePercent } from '../../../runtime/percent.ts'
import { createMessageSender } from '../message-sender.ts'
import type { AppriseSettings } from './config.ts'
import { type AppriseMessage, renderDigest, renderEvent } from './message.ts'

/** Text, and of the log what went wrong: the shortest response that says why. */
const HEADERS = { accept: 'text/plain', 'x-apprise-log-level': 'WARNING' }
const NOTHING = 'Apprise sent nothing (204): it has no configuration for the key, or knows no service of urls'

/**
 * 424: a service has failed, or none has the tag. Both may pass, but services that have the message get it again with
 * each attempt, and Apprise does not say which: it is tried as long as a refusal, as is 204.
 */
const judge: Judge = ({ status }, outcome) => {
  if (status === 204) return { kind: 'retry', status, error: NOTHING, isRefusal: true }
  if (status !== 424 || outcome.kind === 'delivered') return outcome
  const error = `${outcome.error}; a service behind Apprise failed, or none has the tag`
  return { kind: 'retry', status, error, isRefusal: true }
}

export const createAppriseSender = createMessageSender<AppriseSettings, AppriseMessage>({
  renderEvent,
  renderDigest,
  judge,
  requestOf: ({ url, key, tag, urls }, message) => ({
    url: `${url.replace(/\/+$/, '')}/notify${key === undefined ? '' : `/${key}`}`,
    headers: HEADERS,
    body: JSON.stringify({ urls, tag, ...message }),
    secrets: urls === undefined ? [] : listSecrets(urls),
  }),
})

/** What a response may repeat: all of the URLs, and each part that is long enough for a secret. The longest first. */
function listSecrets(urls: string): string[] {
  const parts = urls.replace(/\w+:\/\//g, ' ').split(/[\s,;/:@?&=]+/)
  const secrets = [...parts, ...parts.map(decodePercent)].filter((part) => part.length >= 4)
  return [urls, ...secrets].sort((a, b) => b.length - a.length)
}
