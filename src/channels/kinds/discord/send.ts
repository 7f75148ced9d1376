/**
 * Discord's webhooks: https://docs.discord.com/developers, "Webhook Resource" (Execute Webhook), "Rate Limits"
 * (Exceeding a Rate Limit), "Opcodes and Status Codes" (JSON Error Codes).
 */

import { fieldsOf, type Judge, rejectFor, retryIn } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import type { DiscordSettings } from './config.ts'
import { type DiscordMessage, renderDigest, renderMessage } from './message.ts'

/** Faults of the webhook, which no other message would mend. */
const ADVICE: Readonly<Record<number, string>> = {
  10003: 'its channel or post is deleted: make a webhook in another one, and change the URL of this channel',
  10015: 'the webhook is deleted in Discord: make a new one, and change the URL of this channel',
  50027: 'the token in the URL is wrong: copy the URL of the webhook again',
  220001: 'the webhook is of a forum: add ?thread_id= and the id of a post to the URL',
}

const judge: Judge = (response, outcome) => {
  if (outcome.kind === 'delivered') return outcome
  const { code, retry_after: seconds } = fieldsOf(response)
  const advice = ADVICE[Number(code)]
  if (advice !== undefined) return rejectFor(outcome, advice)
  return typeof seconds === 'number' ? retryIn(outcome, seconds * 1_000) : outcome
}

export const createDiscordSender = createMessageSender<DiscordSettings, DiscordMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf({ url }) {
    const waiting = new URL(url)
    // Else Discord says that all is well, and may not save the message.
    waiting.searchParams.set('wait', '1')
    return { url: waiting.href }
  },
  judge,
})
