/**
 * Messages for a webhook of Google Chat: a card each. https://developers.google.com/workspace/chat: "Method:
 * spaces.messages.create" (32,000 bytes with cards), "Cards v2" and "Format messages" (Format a card message): the
 * texts of a card are HTML of few tags, without mentions, so untrusted text is escaped.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { linkAddresses } from '../addresses.ts'
import { describeDigest } from '../digest-text.ts'
import { ABOUT, describeEvent, type EventText, type Tone } from '../event-text.ts'
import { cutLine, fitLines, fitMessage, isText } from '../fit.ts'
import { type Links, type Place, placesOf } from '../kind.ts'

/** Of the whole message, in UTF-8. */
export const GOOGLE_CHAT_BYTES = 32_000

const COLORS: Readonly<Record<Tone, string>> = {
  failure: '#cf222e',
  warning: '#9a6700',
  success: '#1a7f37',
  info: '#57606a',
}

type Widget = ReturnType<typeof paragraph> | ReturnType<typeof buttons>
export type GoogleChatMessage = ReturnType<typeof toMessage> & {
  /** Messages with the same key are one thread. */
  readonly thread?: { readonly threadKey: string }
}

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): GoogleChatMessage {
  const words = describeEvent(event)
  const preview = `${words.headline}\n${words.reason}`
  const render = (fitted: EventText): GoogleChatMessage => {
    if (event.type === 'channel.test') return toMessage(preview, renderWords(fitted))
    return {
      ...toMessage(preview, [...renderWords(fitted), buttons(placesOf(links, event))]),
      thread: { threadKey: event.check.id },
    }
  }
  return fitMessage(words, render, fits)
}

function renderWords({ tone, headline, reason, facts, location, output, description }: EventText): Widget[] {
  const details = [...facts, location].filter(isText).map(escapeText)
  return [
    paragraph(renderHeadline(headline, tone), escapeText(reason)),
    ...(details.length === 0 ? [] : [paragraph(...details)]),
    ...(output === null ? [] : [paragraph(`<b>${escapeText(output.title)}:</b>`, escapeText(output.text))]),
    ...(description === null ? [] : [paragraph(`<b>${ABOUT}:</b>`, linkAddresses(description, escapeText))]),
  ]
}

export function renderDigest(digest: Digest, links: Links): GoogleChatMessage {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const render = (lines: readonly string[]) => {
    const texts = [...lines, rest(lines.length), note].filter(isText).map(escapeText)
    return toMessage(headline, [
      paragraph(renderHeadline(headline, tone), ...texts),
      buttons([{ action: 'All checks', url: link }]),
    ])
  }
  return fitLines(checks.map(cutLine), render, fits)
}

const renderHeadline = (text: string, tone: Tone) => `<b><font color="${COLORS[tone]}">${escapeText(text)}</font></b>`

const paragraph = (...lines: readonly string[]) => ({ textParagraph: { text: lines.join('<br>') } })

const buttons = (places: readonly Pick<Place, 'action' | 'url'>[]) => ({
  buttonList: { buttons: places.map(({ action, url }) => ({ text: action, onClick: { openLink: { url } } })) },
})

/** `fallbackText`: plain text, for notifications of a phone. */
const toMessage = (fallbackText: string, widgets: readonly Widget[]) => ({
  fallbackText,
  cardsV2: [{ cardId: 'heartbeat', card: { sections: [{ widgets }] } }],
})

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '\n': '<br>' }
const escapeText = (text: string) => text.replace(/[&<>\n]/g, (character) => ESCAPES[character]!)

const fits = (message: GoogleChatMessage) => Buffer.byteLength(JSON.stringify(message)) <= GOOGLE_CHAT_BYTES
