/**
 * Messages of ntfy as JSON (https://docs.ntfy.sh/publish/#publish-as-json). They are plain text: no mark-up, and no
 * mentions.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { describeDigest } from '../digest-text.ts'
import { describeEvent, type EventText, type Tone } from '../event-text.ts'
import { cutLine, fitLines, fitMessage, isText } from '../fit.ts'
import { type Links, type Place, placesOf } from '../kind.ts'
import { blocksOf, linesOf } from '../message-text.ts'
import type { NtfySettings } from './config.ts'

/**
 * Bytes. `message`: ntfy makes an attachment of one of 4,096 (`Peek` in `util/peek.go`). `json`: of the whole; ntfy
 * refuses twice as many as of a message (`transformBodyJSON` in `server/server.go`).
 */
const LIMITS = { message: 4_095, json: 8_191 } as const

export interface NtfyMessage {
  readonly topic: string
  readonly title: string
  readonly message: string
  /** A short code of an emoji, which is shown before the title. */
  readonly tags: readonly string[]
  readonly priority: number
  /** What a tap on the message opens. */
  readonly click?: string
  readonly actions?: readonly { readonly action: 'view'; readonly label: string; readonly url: string }[]
}

const TAGS: Readonly<Record<Tone, string>> = {
  failure: 'rotating_light',
  warning: 'warning',
  success: 'white_check_mark',
  info: 'information_source',
}
/** A long vibration and a sound for a failure, the usual ones for others. */
const PRIORITY = { failure: 4, others: 3 } as const

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links, settings: NtfySettings): NtfyMessage {
  const words = describeEvent(event)
  const view = viewOf(placesOf(links, event))
  const render = (fitted: EventText) => {
    const blocks = blocksOf(fitted).map(({ title, text }) => `\n${title}\n${text}`)
    return toMessage(settings, words, [...linesOf(fitted), ...blocks], view)
  }
  return fitMessage(words, render, fits)
}

export function renderDigest(digest: Digest, links: Links, settings: NtfySettings): NtfyMessage {
  const words = describeDigest(digest, links)
  const render = (shown: readonly string[]) => {
    const lines = [...shown, words.rest(shown.length), words.note].filter(isText)
    return toMessage(settings, words, lines, viewOf([{ action: 'All checks', url: words.link }]))
  }
  return fitLines(words.checks.map(cutLine), render, fits)
}

function viewOf(places: readonly Pick<Place, 'action' | 'url'>[]): Pick<NtfyMessage, 'click' | 'actions'> {
  const [first] = places
  if (first === undefined) return {}
  return { click: first.url, actions: places.map(({ action: label, url }) => ({ action: 'view', label, url })) }
}

function toMessage(
  { topic, priority = PRIORITY.failure }: NtfySettings,
  { tone, headline }: { readonly tone: Tone; readonly headline: string },
  lines: readonly string[],
  view: Pick<NtfyMessage, 'click' | 'actions'>,
): NtfyMessage {
  return {
    topic,
    title: headline,
    message: lines.join('\n'),
    tags: [TAGS[tone]],
    priority: tone === 'failure' ? priority : Math.min(priority, PRIORITY.others),
    ...view,
  }
}

const fits = (message: NtfyMessage) =>
  Buffer.byteLength(message.message) <= LIMITS.message && Buffer.byteLength(JSON.stringify(message)) <= LIMITS.json
