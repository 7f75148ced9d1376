/**
 * Messages for a workflow of Microsoft Teams ("Send webhook alerts to a channel"): an Adaptive Card each, of the
 * version that all clients of Teams show (https://adaptivecards.io/explorer). Every text is a TextRun, in which Teams
 * knows no Markdown; a mention would need an entity, which our cards have not.
 */

import type { Digest } from '../../../domain/digest.ts'
import type { Event } from '../../../domain/event.ts'
import { splitAddresses } from '../addresses.ts'
import { describeDigest } from '../digest-text.ts'
import { ABOUT, describeEvent, type EventText, type Tone } from '../event-text.ts'
import { cutLine, fitLines, fitMessage, isText } from '../fit.ts'
import { type Links, type Place, placesOf } from '../kind.ts'

/**
 * Of the whole message. Teams refuses a card of "about 28 KB" ("Microsoft Teams - Connectors", Known issues and
 * limitations) only after the workflow has accepted it, and has counted in UTF-16: so both encodings count.
 */
export const TEAMS_BYTES = 28_000

type Color = 'Attention' | 'Warning' | 'Good' | 'Default'
const COLORS: Readonly<Record<Tone, Color>> = {
  failure: 'Attention',
  warning: 'Warning',
  success: 'Good',
  info: 'Default',
}

interface Style {
  readonly size?: 'Large'
  readonly weight?: 'Bolder'
  readonly color?: Color
  readonly isSubtle?: true
  readonly fontType?: 'Monospace'
  readonly selectAction?: { readonly type: 'Action.OpenUrl'; readonly url: string }
}
type Block = ReturnType<typeof block>
type Action = ReturnType<typeof open>
export type TeamsMessage = ReturnType<typeof toMessage>

/** The same event gives the same bytes. */
export function renderMessage(event: Event, links: Links): TeamsMessage {
  const actions = placesOf(links, event).map(open)
  return fitMessage(describeEvent(event), (words) => toMessage(renderWords(words), actions), fits)
}

function renderWords({ tone, headline, reason, facts, location, output, description }: EventText): Block[] {
  const details = [...facts, location].filter(isText).join('\n')
  return [
    renderHeadline(headline, tone),
    block(reason),
    ...(details === '' ? [] : [block(details, { isSubtle: true })]),
    ...(output === null ? [] : [block(`${output.title}:`), block(output.text, { fontType: 'Monospace' })]),
    ...(description === null ? [] : [block(`${ABOUT}:`), linked(description)]),
  ]
}

export function renderDigest(digest: Digest, links: Links): TeamsMessage {
  const { tone, headline, checks, rest, note, link } = describeDigest(digest, links)
  const render = (lines: readonly string[]) => {
    const text = [...lines, rest(lines.length), note].filter(isText).join('\n')
    return toMessage([renderHeadline(headline, tone), block(text)], [open({ action: 'All checks', url: link })])
  }
  return fitLines(checks.map(cutLine), render, fits)
}

const renderHeadline = (text: string, tone: Tone) =>
  block(text, { size: 'Large', weight: 'Bolder', color: COLORS[tone] })

const block = (text: string, style?: Style) => ({ type: 'RichTextBlock', inlines: [run(text, style)] })

/** Teams makes no links of addresses in a run: each is a run that opens what it shows. */
const linked = (text: string) => ({
  type: 'RichTextBlock',
  inlines: splitAddresses(text).map((piece) =>
    run(piece.text, piece.isAddress ? { selectAction: { type: 'Action.OpenUrl', url: piece.text } } : {}),
  ),
})

/** Teams shows `{{DATE(...)}}` and `{{TIME(...)}}` as a date: U+200B comes between the brackets. */
const run = (text: string, style: Style = {}) => ({
  type: 'TextRun',
  text: text.replace(/\{(?=\{)/g, '{\u200b'),
  ...style,
})

const open = ({ action: title, url }: Pick<Place, 'action' | 'url'>) => ({ type: 'Action.OpenUrl', title, url })

const toMessage = (body: readonly Block[], actions: readonly Action[]) => ({
  type: 'message',
  attachments: [
    {
      contentType: 'application/vnd.microsoft.card.adaptive',
      contentUrl: null,
      content: {
        $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
        type: 'AdaptiveCard',
        version: '1.4',
        msteams: { width: 'Full' },
        body,
        actions,
      },
    },
  ],
})

function fits(message: TeamsMessage): boolean {
  const json = JSON.stringify(message)
  return Math.max(2 * json.length, Buffer.byteLength(json)) <= TEAMS_BYTES
}
