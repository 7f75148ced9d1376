/** Telegram's Bot API: https://core.telegram.org/bots/api#sendmessage, and its server `telegram-bot-api/Client.cpp`. */

import { findForeignLink, readMarkup } from '../markup.ts'
import type { ReceiverAnswer } from '../receiver.ts'
import { demand, Refusal, startHttpService } from './service.ts'

const TOKEN = '123456789:AAs3cretExampleExampleExampleExampl'
const TAGS = { b: [], i: [], u: [], s: [], code: [], pre: [], blockquote: [], a: ['href'] }

const fault = (status: number, description: string, parameters?: object): ReceiverAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  text: JSON.stringify({ ok: false, error_code: status, description, parameters }),
})

export const startTelegram = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'telegram', token: TOKEN, chat_id: -1001234567890, thread_id: 7, url }) as const,
    accept({ path, body }) {
      if (path !== `/bot${TOKEN}/sendMessage`) throw new Refusal('Not Found', fault(404, 'Not Found'))
      const message = JSON.parse(body)
      demand(message.chat_id === -1001234567890, 'Bad Request: chat not found')
      demand(message.message_thread_id === 7, 'Bad Request: message thread not found')
      demand(message.parse_mode === 'HTML' && message.link_preview_options.is_disabled, 'it shows previews')
      // What is longer is cut, which breaks the mark-up.
      demand(Buffer.byteLength(message.text) <= 35_000, "Bad Request: can't parse entities")
      const { text, prose } = readText(message.text)
      demand(text.trim() !== '', 'Bad Request: message text is empty')
      demand(text.length <= 4_096, 'Bad Request: message is too long')
      demand(findForeignLink(prose) === null, `a link or a mention: ${findForeignLink(prose)}`)
      for (const { text: label, url } of message.reply_markup?.inline_keyboard.flat() ?? [])
        demand(label !== '' && /[.:]/.test(new URL(url).hostname), 'Bad Request: inline keyboard button URL is invalid')
      return { status: 200, text: JSON.stringify({ ok: true, result: { message_id: 1 } }) }
    },
    tooMany: fault(429, 'Too Many Requests: retry after 35', { retry_after: 35 }),
    tooManyMs: 35_000,
    gone: fault(403, 'Forbidden: bot was kicked from the supergroup chat'),
    isGoneAtOnce: true,
  })

function readText(html: string) {
  try {
    return readMarkup(html, TAGS)
  } catch (error) {
    throw new Refusal(`Bad Request: can't parse entities: ${(error as Error).message}`)
  }
}
