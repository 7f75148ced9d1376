import { z } from 'zod'
import { rule } from '../../../domain/errors.ts'
import { configOf, secretText } from '../fields.ts'
import type { KindConfig } from '../kind.ts'
import { hideServer, integer, ownServerField, revealServer, serverUrl, tokenField } from '../server-fields.ts'

interface TelegramConfig {
  readonly token: string
  readonly chat_id: string | number
  /** Of a topic in a group with topics. */
  readonly thread_id?: number | undefined
  /** Absent: TELEGRAM_URL. */
  readonly url?: string | undefined
}
export type TelegramSettings = TelegramConfig & { readonly kind: 'telegram' }

export const TELEGRAM_URL = 'https://api.telegram.org'

/**
 * `telegram-bot-api/ClientManager.cpp` of Telegram's server takes at most 80 characters with a `:`; @BotFather makes 35
 * after it.
 */
const TOKEN = /^[1-9]\d{0,15}:[A-Za-z0-9_-]{30,60}$/
/** Ids have at most 13 digits (`td/telegram/DialogId.h` of Telegram's client library). JSON has numbers up to 2^53. */
const MAX_ID = 999_999_999_999_999
const CHAT_RULE = rule(
  'must be the id of a chat, such as -1001234567890, or the @name of a public channel or group, of 4 to 32 letters, digits and _',
)

/** Of a request and of a response: generators of clients know a union by its members. */
const chatId = z
  .union(
    [
      z.string(CHAT_RULE).regex(/^(?:@[A-Za-z][A-Za-z0-9_]{3,31}|-?[0-9]{1,15})$/, CHAT_RULE),
      z.int(CHAT_RULE).min(-MAX_ID, CHAT_RULE).max(MAX_ID, CHAT_RULE),
    ],
    CHAT_RULE,
  )
  .meta({ description: 'The id of the chat, or the @name of a public channel or group.' })

export const telegramConfig: KindConfig<TelegramSettings, TelegramConfig, TelegramConfig> = {
  title: 'Telegram',
  purpose: 'A message of your bot in a Telegram group, channel or private chat.',
  form: [
    tokenField({
      label: 'Token of the bot',
      meaning: '@BotFather shows it when you make a bot with /newbot.',
      example: '123456789:AAExampleExampleExampleExampleExamp',
    }),
    {
      name: 'chat_id',
      label: 'Chat',
      meaning: 'Its id, or the @name of a public channel or group. The bot must be in it.',
      example: '-1001234567890',
    },
    {
      name: 'thread_id',
      label: 'Topic',
      meaning: 'The id of a topic, in a group with topics. Empty: the general one.',
      as: 'number',
      example: '42',
      isOptional: true,
    },
    ownServerField('Bot API', TELEGRAM_URL, 'https://telegram.example.com'),
  ],
  input: configOf({
    token: secretText(
      TOKEN,
      'must be the token of a bot, such as 123456789:AAEx…',
      'The token of the bot, from @BotFather',
    ),
    chat_id: chatId,
    thread_id: integer(1, 2_147_483_647, 'The id of a topic, in a group with topics.').optional(),
    url: serverUrl(`Your own Bot API server. Default: ${TELEGRAM_URL}`).optional(),
  }),
  shown: z.object({
    token: z.string(),
    chat_id: chatId,
    thread_id: z.int().optional(),
    url: z.string().optional(),
  }),

  toSettings: (config, stored) => ({ kind: 'telegram', ...revealServer(config, stored) }),
  show: ({ kind: _, ...config }) => hideServer(config),
  urlsOf: ({ url = TELEGRAM_URL }) => [{ url, field: 'url' }],
  inSecret: { field: 'token' },
}
