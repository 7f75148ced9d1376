/**
 * PagerDuty: an incident is open from `check.down` to `check.up` or `check.paused`. It groups by itself, so it gets no
 * digests.
 */

import { type Judge, postJson, rejectFor, retryIn } from '../../../delivery/http-outcome.ts'
import type { Outcome, Send } from '../../../delivery/outcome.ts'
import type { EventType } from '../../../domain/event.ts'
import type { SenderContext } from '../kind.ts'
import { ENQUEUE_URL, type PagerdutySettings } from './config.ts'
import { type Action, renderEvent } from './message.ts'

const ACTIONS: Readonly<Partial<Record<EventType, readonly Action[]>>> = {
  'check.down': ['trigger'],
  'check.acknowledged': ['acknowledge'],
  'check.up': ['resolve'],
  'check.paused': ['resolve'],
  'channel.test': ['trigger', 'resolve'],
}

/** "Events API Rate Limits": about 120 events in a minute for a key; try again after 30 seconds. */
const TOO_MANY_MS = 30_000

/** "Response Codes & Retry Logic". A wrong key is 400, with `routing_key` or "routing key" in its errors. */
const judge: Judge = ({ status, headers, text }, outcome) => {
  if (status === 429 && headers['retry-after'] === undefined) return retryIn(outcome, TOO_MANY_MS)
  if (status !== 400 || !/routing.key/i.test(text)) return outcome
  return rejectFor(outcome, 'give the channel the key of an integration "Events API v2"')
}

type Context = Pick<SenderContext, 'client' | 'clock' | 'links'>

export function createPagerdutySender(context: Context): Send<PagerdutySettings> {
  return async ({ channel, event }, signal) => {
    const { url = ENQUEUE_URL, routing_key } = channel.settings
    let outcome: Outcome = { kind: 'delivered', status: null, note: `${event.type} is not sent to PagerDuty` }
    for (const action of ACTIONS[event.type] ?? []) {
      const body = JSON.stringify(renderEvent(event, action, channel.settings, context.links))
      outcome = await postJson(context, channel, { url, body, secrets: [routing_key], judge }, signal)
      if (outcome.kind !== 'delivered') break
    }
    return outcome
  }
}
