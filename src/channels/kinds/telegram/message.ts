/**
 * Messages of Telegram's Bot API, `sendMessage` (https://core.telegram.org/bots/api#sendmessage, "HTML style"). Names,
 * reasons and output are untrusted: Telegram looks for mentions, commands and links in all text outside of `<pre>`, so
 * they are disarmed there.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { describeDigest } from '../digest-text.ts'
import { disarm } from '../disarm.ts'
import { describeEvent, type EventText } from '../event-text.ts'
import { cutLine, fitLines, fitWords, isText } from '../fit.ts'
import { type Links, placesOf } from '../kind.ts'
import { blocksOf, escapeHtml, linesOf, MARKS } from '../message-text.ts'
import type { TelegramSettings } from './config.ts'

/**
 * UTF-16 units without mark-up ("after entities parsing"). Escaped, the longest text is below the 35,000 bytes at which
 * Telegram cuts.
 */
const LIMIT = 4_096

export interface TelegramMessage {
  readonly chat_id: string | number
  readonly message_thread_id?: number
  readonly text: string
  readonly parse_mode: 'HTML'
  readonly link_preview_options: { readonly is_disabled: true }
  readonly reply_markup?: { readonly inline_keyboard: readonly (readonly Button[])[] }
}

/** A button, or a last line where Telegram would refuse the button. */
interface Button {
  readonly text: string
  readonly url: string
}

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links, settings: TelegramSettings): TelegramMessage {
  const words = describeEvent(event)
  const headline = `${MARKS[words.tone]} ${disarm(words.headline)}`
  const buttons = placesOf(links, event).map(({ label: text, url }) => ({ text, url }))
  const render = (fitted: EventText) => {
    const lines = linesOf(fitted).map((line) => escapeHtml(disarm(line)))
    const blocks = blocksOf(fitted).map(({ title, text }) => `\n${escapeHtml(title)}\n<pre>${escapeHtml(text)}</pre>`)
    return toMessage(settings, headline, [...lines, ...blocks], buttons)
  }
  return render(fitWords(words, (fitted) => fits(render(fitted))))
}

export function renderDigest(digest: Digest, links: Links, settings: TelegramSettings): TelegramMessage {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const render = (shown: readonly string[]) => {
    const lines = [...shown, rest(shown.length), note].filter(isText).map(escapeHtml)
    return toMessage(settings, `${MARKS[tone]} ${headline}`, lines, [{ text: 'All checks', url: link }])
  }
  return fitLines(
    checks.map((check) => disarm(cutLine(check))),
    render,
    fits,
  )
}

/** `lines`: escaped. */
function toMessage(
  { chat_id, thread_id }: TelegramSettings,
  headline: string,
  lines: readonly string[],
  buttons: readonly Button[],
): TelegramMessage {
  // Telegram refuses a whole message for a button to a host without a dot (`LinkManager::check_link_impl` of its client
  // library).
  const areButtons = buttons.some(({ url }) => /[.:]/.test(new URL(url).hostname))
  const last = areButtons ? [] : buttons.map(({ text, url }) => `\n${text}: ${escapeHtml(url)}`)
  return {
    chat_id,
    ...(thread_id === undefined ? {} : { message_thread_id: thread_id }),
    text: [`<b>${escapeHtml(headline)}</b>`, ...lines, ...last].join('\n'),
    parse_mode: 'HTML',
    link_preview_options: { is_disabled: true },
    ...(areButtons ? { reply_markup: { inline_keyboard: [buttons] } } : {}),
  }
}

/** Without the tags, and each escape as one character. */
const fits = ({ text }: TelegramMessage) => text.replace(/<[^>]+>/g, '').replace(/&\w+;/g, '&').length <= LIMIT
