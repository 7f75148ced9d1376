/** Where an address begins and ends in what a person writes, and how each kind of channel sends the runbook of a check. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { indivisible, splitAddresses } from '../../../src/channels/kinds/addresses.ts'
import { buildAlert } from '../../../src/channels/kinds/alertmanager/alert.ts'
import { renderEvent as renderApprise } from '../../../src/channels/kinds/apprise/message.ts'
import { disarmDescription } from '../../../src/channels/kinds/disarm.ts'
import { renderMessage as renderDiscord } from '../../../src/channels/kinds/discord/message.ts'
import { renderMail } from '../../../src/channels/kinds/email/mail.ts'
import { renderMessage as renderGoogleChat } from '../../../src/channels/kinds/googlechat/message.ts'
import { renderMessage as renderMatrix } from '../../../src/channels/kinds/matrix/message.ts'
import { renderMessage as renderNtfy } from '../../../src/channels/kinds/ntfy/message.ts'
import { renderEvent as renderPagerduty } from '../../../src/channels/kinds/pagerduty/message.ts'
import { renderMessage as renderSlack } from '../../../src/channels/kinds/slack/message.ts'
import { renderMessage as renderTeams } from '../../../src/channels/kinds/teams/message.ts'
import { renderMessage as renderTelegram } from '../../../src/channels/kinds/telegram/message.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import { CHANNEL_KINDS, type ChannelKind } from '../../../src/domain/channel.ts'
import { aFlipEvent } from '../../support/events.ts'
import { links } from './sending.ts'

const addressesIn = (text: string) => splitAddresses(text).flatMap((piece) => (piece.isAddress ? [piece.text] : []))

describe('addresses in a text', () => {
  it.each([
    ['Runbook: https://wiki.example.com/x?a=1&b=2#c', ['https://wiki.example.com/x?a=1&b=2#c']],
    [
      'See https://a.example/b, http://c.example. HTTPS://D.EXAMPLE!',
      ['https://a.example/b', 'http://c.example', 'HTTPS://D.EXAMPLE'],
    ],
    [
      '(see https://a.example/b) "https://c.example/d" \'https://e.example\'',
      ['https://a.example/b', 'https://c.example/d', 'https://e.example'],
    ],
    [
      'https://a.example/Backup_(shop) https://a.example/b_(c)_d).',
      ['https://a.example/Backup_(shop)', 'https://a.example/b_(c)_d'],
    ],
    [
      '“https://a.example/b” „https://c.example“ «https://d.example» https://e.example。',
      ['https://a.example/b', 'https://c.example', 'https://d.example', 'https://e.example'],
    ],
    ['<https://a.example|words> [words](https://b.example/c)', ['https://a.example', 'https://b.example/c']],
    [
      'https://wiki.example.com/Störung https://a.example/x…',
      ['https://wiki.example.com/Störung', 'https://a.example/x'],
    ],
    ['https://a.example/\u202egnp.exe https://a.example/b\u200bc', ['https://a.example/', 'https://a.example/b']],
    ['https:// https://. http:/x ftp://a.example javascript:alert(1) www.a.example a.example', []],
    ['https://a:b:c https://%', []],
  ])('%s', (text, addresses) => {
    expect(addressesIn(text)).toEqual(addresses)
  })

  it('are pieces of the text, and nothing is lost', () => {
    const unit = fc.constantFrom(
      'https://',
      'a',
      '.',
      '(',
      ')',
      '<',
      '>',
      '|',
      ' ',
      '\n',
      '@',
      '…',
      '\u200b',
      '🔥',
      '[',
      ']',
    )
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 60 }), (text) => {
        expect(
          splitAddresses(text)
            .map((piece) => piece.text)
            .join(''),
        ).toBe(text)
        expect(indivisible(text).join('')).toBe(text)
        for (const address of addressesIn(text)) expect(address).toMatch(/^https?:\/\/[^\s<>|"\u200b…]+$/)
      }),
    )
  })

  it.each(['https://(', 'https://a(', 'https://a.', '(', 'https://.', 'https://a()'])(
    'are found in linear time: %s',
    (part) => {
      const text = part.repeat(200_000)
      expect(splitAddresses(text).length).toBeGreaterThan(0)
      expect(splitAddresses(`https://a${text}`).length).toBeGreaterThan(0)
    },
  )
})

describe('a description for a chat', () => {
  it.each([
    ['https://a.example/b?c=1&d=2', 'https://a.example/b?c=1&d=2'],
    ['ask @here, @ann, ann@example.com', 'ask @\u200bhere, @\u200bann, ann@example.com'],
    [
      '<https://a.example|words> [words](https://a.example)',
      '<\u200bhttps://a.example|words> [words]\u200b(https://a.example)',
    ],
    ['[words]\n\n[words]: https://a.example', '[words]\n\n[words]\u200b: https://a.example'],
    ['<!channel> @https://a.example', '<\u200b!channel> @\u200bhttps://a.example'],
    ['tg://resolve?domain=x steam://x', 'tg:\u200b//resolve?domain=x steam:\u200b//x'],
    // A mention counts more than a link.
    ['https://a.example/@everyone', 'https:\u200b//a.example/@\u200beveryone'],
    ['kubectl -n shop logs job/backup.sh #1', 'kubectl -n shop logs job/backup.sh #1'],
  ])('%s', (text, disarmed) => {
    expect(disarmDescription(text)).toBe(disarmed)
  })
})

const RUNBOOK = 'Runbook: https://wiki.example.com/x?a=1&b=2 (ask @here)'
const URL = 'https://wiki.example.com/x?a=1&b=2'
const ESCAPED = 'https://wiki.example.com/x?a=1&amp;b=2'
const LINK = `<a href="${ESCAPED}">${ESCAPED}</a>`
const event = aFlipEvent({ check: { description: RUNBOOK } })
const telegram = { kind: 'telegram', token: '1:x', chat_id: 1 } as const
const pagerduty = { kind: 'pagerduty', routing_key: 'k' } as const
const envelope = { sender: { name: '', address: 'a@example.com' }, to: [], channelName: 'Ops' }

/** How each kind sends the description: where a chat knows mentions by name alone, there is a zero-width space. */
const SENT: Readonly<Record<ChannelKind, () => readonly (readonly [sent: unknown, expected: unknown])[]>> = {
  slack: () => {
    const { text, blocks } = renderSlack(event, links)
    const expected = `About this check:\nRunbook: <${ESCAPED}> (ask @\u200bhere)`
    return [
      [text.slice(-expected.length), expected],
      [blocks[2], { type: 'section', text: { type: 'mrkdwn', text: expected, verbatim: true } }],
    ]
  },
  discord: () => [
    [
      /About this check:\n(.*)/.exec(renderDiscord(event, links).embeds[0].description)![1],
      `Runbook: <${URL}> (ask \\@here)`,
    ],
  ],
  teams: () => [
    [
      renderTeams(event, links).attachments[0]!.content.body.at(-1)!.inlines,
      [
        { type: 'TextRun', text: 'Runbook: ' },
        { type: 'TextRun', text: URL, selectAction: { type: 'Action.OpenUrl', url: URL } },
        { type: 'TextRun', text: ' (ask @here)' },
      ],
    ],
  ],
  googlechat: () => [
    [
      renderGoogleChat(event, links).cardsV2[0]!.card.sections[0]!.widgets[2],
      { textParagraph: { text: `<b>About this check:</b><br>Runbook: ${LINK} (ask @here)` } },
    ],
  ],
  telegram: () => [
    [
      /About this check:\n.*/.exec(renderTelegram(event, links, telegram).text)![0],
      `About this check:\nRunbook: ${ESCAPED} (ask @\u200bhere)`,
    ],
  ],
  matrix: () => {
    const { body, formatted_body } = renderMatrix(event, links)
    return [
      [/About this check:\n.*/.exec(body)![0], `About this check:\nRunbook: ${URL} (ask @\u200bhere)`],
      [/<p>Runbook.*?<\/p>/.exec(formatted_body)![0], `<p>Runbook: ${LINK} (ask @\u200bhere)</p>`],
    ]
  },
  ntfy: () => [
    [
      /About this check:\n.*/.exec(renderNtfy(event, links, { kind: 'ntfy', topic: 'x' }).message)![0],
      `About this check:\n${RUNBOOK}`,
    ],
  ],
  email: () => {
    const { text, html } = renderMail(event, links, envelope)
    return [
      [/Runbook.*/.exec(String(text))![0], RUNBOOK],
      [/Runbook.*?<\/p>/.exec(String(html))![0], `Runbook: ${LINK} (ask @here)</p>`],
    ]
  },
  apprise: () => [[/Runbook.*/.exec(renderApprise(event, links).body)![0], `Runbook: ${URL} (ask @\u200bhere)`]],
  pagerduty: () => [
    [
      renderPagerduty(event, 'trigger', pagerduty, links).payload.custom_details,
      expect.objectContaining({ description: `Runbook: ${URL} (ask @\u200bhere)` }),
    ],
  ],
  alertmanager: () => [[buildAlert(event, {}).annotations.about, `Runbook: ${URL} (ask @\u200bhere)`]],
  // A program reads the check.
  webhook: () => [[renderPayload(event, links).includes('Runbook'), false]],
}

it.each(CHANNEL_KINDS)(
  'the runbook of a check is an address that can be tapped or copied, and mentions no one: %s',
  (kind) => {
    for (const [sent, expected] of SENT[kind]()) expect(sent).toEqual(expected)
  },
)
