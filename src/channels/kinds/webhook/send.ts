/** Webhooks: an event as signed JSON, to any HTTP receiver. */

import { postJson } from '../../../delivery/http-outcome.ts'
import type { Send } from '../../../delivery/outcome.ts'
import type { SenderContext } from '../kind.ts'
import type { WebhookSettings } from './config.ts'
import { renderPayload } from './payload.ts'
import { sign } from './signature.ts'

type Context = Pick<SenderContext, 'client' | 'clock' | 'links'>

export function createWebhookSender(context: Context): Send<WebhookSettings> {
  return async ({ channel, event }, signal) => {
    const { settings } = channel
    const now = context.clock.now()
    const secrets = settings.secrets
      .filter(({ expiresAt }) => expiresAt === null || expiresAt > now)
      .map(({ secret }) => secret)
    const body = renderPayload(event, context.links)
    // The time of the attempt, not of the event: receivers reject what is minutes old.
    const atSeconds = Math.floor(now / 1_000)
    const headers = {
      'webhook-id': event.id,
      'webhook-timestamp': String(atSeconds),
      'webhook-signature': sign({ id: event.id, atSeconds, body, secrets }),
    }
    return postJson(context, channel, { url: settings.url, body, headers }, signal)
  }
}
