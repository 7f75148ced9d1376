/**
 * Webhooks of Google Chat: https://developers.google.com/workspace/chat, "Build a Google Chat app as a webhook" (one
 * request a second for a space; threads; 403), "Method: spaces.messages.create" (requestId), "Usage limits" (429,
 * without a time). Errors: https://cloud.google.com/apis/design/errors.
 */

import { fieldsOf, type Judge, rejectFor } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import type { GoogleChatSettings } from './config.ts'
import { type GoogleChatMessage, renderDigest, renderMessage } from './message.ts'

const COPY = 'copy the URL of the webhook again, with its key and its token'
/** Faults of the webhook, which no other message would mend. */
const ADVICE: ReadonlyMap<unknown, string> = new Map([
  ['NOT_FOUND', 'the space or its webhook is deleted: make a new one, and change the URL of this channel'],
  ['PERMISSION_DENIED', 'the webhook may not post in the space: allow apps of Google Chat for the organization'],
  ['UNAUTHENTICATED', COPY],
])

const judge: Judge = (response, outcome) => {
  if (outcome.kind === 'delivered') return outcome
  const { status } = (fieldsOf(response).error ?? {}) as { readonly status?: unknown }
  // A wrong key is an invalid argument, as a text that is refused.
  const advice = response.text.includes('API_KEY_INVALID') ? COPY : ADVICE.get(status)
  return advice === undefined ? outcome : rejectFor(outcome, advice)
}

export const createGoogleChatSender = createMessageSender<GoogleChatSettings, GoogleChatMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf({ url }, _, id) {
    const whole = new URL(url)
    // Else Google Chat begins a new thread for each message.
    whole.searchParams.set('messageReplyOption', 'REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD')
    // Repeated with the same id, it is one message.
    whole.searchParams.set('requestId', id)
    return { url: whole.href }
  },
  judge,
})
