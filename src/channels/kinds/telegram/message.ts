/**
 * Messages of Telegram's Bot API, `sendMessage` (https://core.telegram.org/bots/api#sendmessage, "HTML style"). Outside
 * of `<pre>` Telegram looks for mentions, commands and addresses, and makes links of them.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { escapeHtml, type HtmlText, renderDigestText, renderEventText } from '../html-text.ts'
import type { Links } from '../kind.ts'
import type { TelegramSettings } from './config.ts'

/**
 * UTF-16 units without mark-up ("after entities parsing"). Escaped, the longest text is below the 35,000 bytes at which
 * Telegram cuts.
 */
const LIMIT = 4_096

export type TelegramMessage = ReturnType<typeof toMessage>

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links, settings: TelegramSettings): TelegramMessage {
  return renderEventText(event, links, (text) => toMessage(settings, text), fits)
}

export function renderDigest(digest: Digest, links: Links, settings: TelegramSettings): TelegramMessage {
  return renderDigestText(digest, links, (text) => toMessage(settings, text), fits)
}

function toMessage({ chat_id, thread_id }: TelegramSettings, { headline, lines, blocks, places }: HtmlText) {
  const texts = blocks.map(({ title, text, isCode }) => {
    const escaped = escapeHtml(text)
    return `\n${escapeHtml(title)}\n${isCode ? `<pre>${escaped}</pre>` : escaped}`
  })
  // Telegram refuses a whole message for a button to a host without a dot (`LinkManager::check_link_impl` of its client
  // library): then the link is a last line.
  const areButtons = places.some(({ url }) => /[.:]/.test(new URL(url).hostname))
  const last = areButtons ? [] : places.map(({ label, url }) => `\n${label}: ${escapeHtml(url)}`)
  return {
    chat_id,
    ...(thread_id === undefined ? {} : { message_thread_id: thread_id }),
    text: [`<b>${escapeHtml(headline)}</b>`, ...lines.map(escapeHtml), ...texts, ...last].join('\n'),
    parse_mode: 'HTML',
    link_preview_options: { is_disabled: true },
    ...(areButtons
      ? { reply_markup: { inline_keyboard: [places.map(({ action: text, url }) => ({ text, url }))] } }
      : {}),
  } as const
}

/** Without the tags, and each escape as one character. */
const fits = ({ text }: TelegramMessage) => text.replace(/<[^>]+>/g, '').replace(/&\w+;/g, '&').length <= LIMIT
