/** Webhooks: an event as signed JSON, to any HTTP receiver. */

import type { Clock } from '../runtime/clock.ts'
import type { HttpClient } from './http.ts'
import { sendForOutcome } from './http-outcome.ts'
import type { Links } from './links.ts'
import type { Send } from './outcome.ts'
import { renderPayload } from './payload.ts'
import { sign } from './sign.ts'

export interface WebhookParts {
  readonly client: HttpClient
  readonly clock: Pick<Clock, 'now'>
  readonly links: Links
}

export function createWebhookSender({ client, clock, links }: WebhookParts): Send<'webhook'> {
  return async ({ channel, event }, signal) => {
    const now = clock.now()
    const secrets = channel.settings.secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
      .map(({ secret }) => secret)
    if (secrets.length === 0)
      return { kind: 'refused', status: null, error: 'the channel has no secret left to sign with; rotate its secret' }
    const body = renderPayload(event, links)
    // Receivers refuse what is minutes old: the time is that of the attempt.
    const atSeconds = Math.floor(now / 1_000)
    const headers = {
      'content-type': 'application/json',
      'webhook-id': event.id,
      'webhook-timestamp': String(atSeconds),
      'webhook-signature': sign({ id: event.id, atSeconds, body, secrets }),
    }
    const { url } = channel.settings
    return sendForOutcome(client, { method: 'POST', url, headers, body, isTrusted: channel.isTrusted }, signal, clock)
  }
}
