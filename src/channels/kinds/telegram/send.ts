import { fieldsOf, type Judge, rejectFor, retryIn } from '../../../delivery/http-outcome.ts'
import { createMessageSender } from '../message-sender.ts'
import { below } from '../server-fields.ts'
import { TELEGRAM_URL, type TelegramSettings } from './config.ts'
import { renderDigest, renderMessage, type TelegramMessage } from './message.ts'

/**
 * What is wrong with the channel, by the words of `check_chat_access` and others in `telegram-bot-api/Client.cpp` of
 * Telegram's server.
 */
const FAULTS: readonly (readonly [RegExp, string])[] = [
  [
    /chat not found|chat_id is empty|PEER_ID_INVALID/,
    'check chat_id: the bot must be in the group or channel, and a person must have started a chat with the bot',
  ],
  [/thread not found|TOPIC_/, 'the topic of thread_id is closed or does not exist: give another one, or none'],
  [/not enough rights|CHAT_WRITE_FORBIDDEN|administrator rights/, 'allow the bot to send messages there'],
]

/**
 * https://core.telegram.org/bots/api#making-requests and #responseparameters. A 400 with other words is about the
 * message.
 */
const judge: Judge = (response, outcome) => {
  const { description, parameters } = fieldsOf(response)
  if (typeof description !== 'string') return outcome
  const { retry_after: seconds, migrate_to_chat_id: newId } = (parameters ?? {}) as Record<string, unknown>
  switch (response.status) {
    case 400: {
      if (typeof newId === 'number')
        return rejectFor(outcome, `the group has become a supergroup with another id: set chat_id to ${newId}`)
      const fault = FAULTS.find(([pattern]) => pattern.test(description))
      return fault === undefined ? outcome : rejectFor(outcome, fault[1])
    }
    case 401:
    case 404:
      return rejectFor(outcome, 'the token is not valid or was revoked: give the one that @BotFather shows')
    case 403:
      return rejectFor(outcome, 'add the bot to the chat again; a person who has blocked the bot must unblock it')
    default:
      return typeof seconds === 'number' ? retryIn(outcome, seconds * 1_000) : outcome
  }
}

export const createTelegramSender = createMessageSender<TelegramSettings, TelegramMessage>({
  renderEvent: renderMessage,
  renderDigest,
  requestOf: ({ url = TELEGRAM_URL, token }) => ({ url: below(url, `/bot${token}/sendMessage`), secrets: [token] }),
  judge,
})
