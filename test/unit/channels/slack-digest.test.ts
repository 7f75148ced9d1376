/** A digest as a message to Slack, Mattermost and Discord: what it says, and how much of it fits. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLinks, type Links } from '../../../src/channels/kinds/kind.ts'
import { LINE_LIMITS, renderDigest } from '../../../src/channels/kinds/slack/digest.ts'
import { SLACK_LIMITS } from '../../../src/channels/kinds/slack/message.ts'
import { createSlackSender } from '../../../src/channels/kinds/slack/send.ts'
import type { Digest } from '../../../src/domain/digest.ts'
import { aDigest, aFlipEvent, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks'
const REASON = 'No ping came in time: it was due at 2026-11-21 03:00:00 UTC'
/** Slack rejects more in all blocks together; it documents no number. */
const SAFE_SUM = 11_000

const blockTexts = (digest: Digest): string[] =>
  renderDigest(digest, links).blocks.flatMap((block) =>
    'text' in block ? [block.text.text] : block.elements.map(({ text }) => text),
  )
const linesOf = (texts: readonly string[]) =>
  texts.flatMap((text) => text.split('\n')).filter((line) => line.includes(' is '))

describe('a digest to Slack', () => {
  it('names each check with its status and reason, and links to the list', () => {
    const events = manyFlipEvents(21, (number) =>
      number > 20 ? { type: 'check.up', facts: { down_for_seconds: 60 } } : {},
    )
    const { text, blocks, ...others } = renderDigest(aDigest(events), links)
    const lines = [
      ...events.slice(0, 20).map(({ check }) => `${check.name} is down: ${REASON}`),
      'Job 21 is up again after 1 min: The job reported a success at 2026-11-21 03:00:00 UTC',
    ]
    expect(blocks).toEqual([
      { type: 'header', text: { type: 'plain_text', text: '🔴 21 checks: 20 down, 1 up again', emoji: false } },
      { type: 'section', text: { type: 'plain_text', text: lines.join('\n'), emoji: false } },
      { type: 'context', elements: [{ type: 'mrkdwn', text: `<${LINK}|All checks>`, verbatim: true }] },
    ])
    expect(text).toBe(['🔴 21 checks: 20 down, 1 up again', ...lines, `All checks: <${LINK}>`].join('\n'))
    expect(others).toEqual({ unfurl_links: false, unfurl_media: false })
  })

  it.each([
    [50, null],
    [51, 'And 1 more: 1 down'],
    [1_000, 'And 950 more: 950 down'],
  ])('of %i checks names 50, and counts the rest: %s', (count, rest) => {
    const texts = blockTexts(aDigest(manyFlipEvents(count)))
    expect(texts[0]).toBe(`🔴 ${count} checks: ${count} down`)
    expect(linesOf(texts)).toHaveLength(50)
    expect(texts.filter((text) => text.startsWith('And '))).toEqual(rest === null ? [] : [rest])
  })

  it('says when checks have several events, and shows their newest', () => {
    const [down] = manyFlipEvents(1)
    const up = { ...down!, id: '0197a000-0000-7000-8000-000000009999', type: 'check.up' } as const
    const texts = blockTexts(aDigest([down!, up]))
    expect(texts[0]).toBe('🟢 1 check: 1 up again')
    expect(texts.join('\n')).not.toContain('is down')
    expect(texts[2]).toBe('2 events in all: of each check its newest counts')
  })

  it('leads to the list in the API while the dashboard is off', () => {
    const off = createLinks(() => 'https://heartbeat.example.com/api/v1/')
    expect(renderDigest(aDigest(manyFlipEvents(2)), off).text).toContain(
      '<https://heartbeat.example.com/api/v1/checks>',
    )
    const odd: Links = { ...off, checks: () => 'https://example.com/?a=1&b=<2>|3' }
    expect(JSON.stringify(renderDigest(aDigest(manyFlipEvents(2)), odd).blocks)).toContain(
      '<https://example.com/?a=1&amp;b=%3C2%3E%7C3|All checks>',
    )
  })

  it('is posted as JSON', async () => {
    const client = createFakeHttpClient()
    const { sendDigest } = createSlackSender({ client, clock: createManualClock(), links })
    const digest = aDigest(manyFlipEvents(21))
    const settings = { kind: 'slack', url: 'https://hooks.slack.com/services/T0/B0/secret' } as const
    const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Team chat', isTrusted: false, settings }
    expect(await sendDigest({ channel, digest }, new AbortController().signal)).toMatchObject({ kind: 'delivered' })
    const body = JSON.stringify(renderDigest(digest, links))
    expect(client.requests).toMatchObject([{ method: 'POST', url: settings.url, body, isTrusted: false }])
  })
})

describe('untrusted text in a digest', () => {
  const NASTY = [
    '<!channel>',
    '<@U0123456>',
    '<https://evil.example.com|Open the check>',
    '[Open](https://evil.example.com)',
    '@channel @everyone @here',
    'www.evil.example.com',
    '&amp; &lt;!channel&gt;',
    '`code` ```fence``` ````',
    'two\nlines: Job 7 is up again',
    '\u200frtl \u202egnp.exe',
  ]
  const withoutOurLink = (text: string) => text.replace(`<${LINK}|All checks>`, '').replace(`<${LINK}>`, '')

  it.each(NASTY)('makes no mention, no link and no line of its own: %j', (nasty) => {
    const events = manyFlipEvents(21, () => ({ facts: { reason: 'failed', detail: nasty }, check: { name: nasty } }))
    const { text, blocks } = renderDigest(aDigest(events), links)
    const sent = [text, ...blockTexts(aDigest(events))].map(withoutOurLink)
    for (const each of sent) expect(each).not.toMatch(/[<>\u202e]|&(?!(?:amp|lt|gt);)/)
    for (const block of blocks) if ('text' in block) expect(block.text.type).toBe('plain_text')
    expect(withoutOurLink(text)).not.toMatch(/@\w|:\/\/|www\.|\]\(|&lt;[#@!:]|`[^\u200b]/)
    const lines = sent[0]!.split('\n')
    const [named, others] = [
      lines.slice(1).filter((line) => line.includes(' is down: ')),
      lines.filter((line) => /^And /.test(line)),
    ]
    expect(lines).toHaveLength(named.length + others.length + 2)
  })
})

describe('a digest at the limits', () => {
  const named = (name: string, detail?: string) =>
    linesOf(
      blockTexts(
        aDigest([
          aFlipEvent({ facts: { reason: 'failed', ...(detail === undefined ? {} : { detail }) }, check: { name } }),
        ]),
      ),
    )[0]!

  it('cuts a name that is too long once it is escaped, and keeps one that just fits', () => {
    expect(named('x'.repeat(100))).toContain(`${'x'.repeat(LINE_LIMITS.name)} is down: The job`)
    expect(named('&'.repeat(20))).toContain(`${'&amp;'.repeat(20)} is down: `)
    expect(named('&'.repeat(21))).toContain(`${'&amp;'.repeat(19)}… is down: `)
  })

  it('cuts the end of a reason that is too long', () => {
    const room = LINE_LIMITS.line - named('Backup', 'x').length + 1
    expect(named('Backup', 'x'.repeat(room))).toHaveLength(LINE_LIMITS.line)
    expect(named('Backup', 'x'.repeat(room))).not.toContain('…')
    expect(named('Backup', 'x'.repeat(room + 1))).toHaveLength(LINE_LIMITS.line)
    expect(named('Backup', 'x'.repeat(room + 1))).toMatch(/x…$/)
  })

  it('has sections that are as full as they may be', () => {
    const events = manyFlipEvents(50, () => ({ check: { name: 'x'.repeat(100) } }))
    const sections = blockTexts(aDigest(events)).slice(1, -1)
    const line = sections[0]!.split('\n')[0]!
    const fitting = Math.floor((SLACK_LIMITS.section + 1) / (line.length + 1))
    expect(sections.map((section) => section.split('\n').length)).toEqual([fitting, fitting, 50 - 2 * fitting])
  })

  it('counts in `text` what has no room there', () => {
    const { text } = renderDigest(aDigest(manyFlipEvents(51)), links)
    const shown = linesOf([text]).length
    expect(shown).toBeGreaterThan(20)
    expect(text).toContain(`\nAnd ${51 - shown} more: ${51 - shown} down\n`)
    const line = `Job ${shown + 1} is down: ${REASON}\n`
    expect(text.length).toBeLessThanOrEqual(SLACK_LIMITS.text)
    expect(text.length + line.length).toBeGreaterThan(SLACK_LIMITS.text)
  })

  it('stays within them, whatever it contains', () => {
    const anyText = fc.string({
      unit: fc.constantFrom('&', '<', '`', 'x', '\n', '🔥', '\u200b', 'é', '@'),
      maxLength: 100,
    })
    fc.assert(
      fc.property(fc.array(fc.tuple(anyText, anyText), { minLength: 1, maxLength: 60 }), (all) => {
        const events = manyFlipEvents(all.length, (number) => ({
          facts: { reason: 'failed', detail: all[number - 1]![1].repeat(20) },
          check: { name: all[number - 1]![0] },
        }))
        const digest = aDigest(events)
        const { text, blocks } = renderDigest(digest, links)
        const texts = blockTexts(digest)
        expect(blocks.length).toBeLessThanOrEqual(50)
        expect(text.length).toBeLessThanOrEqual(SLACK_LIMITS.text)
        expect(texts[0]!.length).toBeLessThanOrEqual(SLACK_LIMITS.header)
        expect(texts.join('').length).toBeLessThanOrEqual(SAFE_SUM)
        for (const each of [text, ...texts]) {
          expect(each.length).toBeGreaterThan(0)
          expect(each.length).toBeLessThanOrEqual(SLACK_LIMITS.section)
          expect(each.isWellFormed()).toBe(true)
          expect(each).not.toMatch(/&(?!(?:amp|lt|gt);)/)
        }
      }),
      { numRuns: 200 },
    )
  })

  it('has blocks that Slack takes together, with the longest lines that there can be', () => {
    const detail = 'x'.repeat(1_000)
    const events = manyFlipEvents(51, () => ({ facts: { reason: 'failed', detail }, check: { name: 'x'.repeat(100) } }))
    const sum = blockTexts(aDigest(events)).join('').length
    expect(sum).toBeGreaterThan(50 * (LINE_LIMITS.line - 1))
    expect(sum).toBeLessThanOrEqual(SAFE_SUM)
  })

  it('has room for the longest headline', () => {
    const types = [
      'check.down',
      'check.flapping',
      'check.warned',
      'check.late',
      'check.unknown',
      'check.paused',
      'check.resumed',
      'check.up',
    ] as const
    const counts = types.map((type) => ({ type, checks: 9_999 }))
    expect(blockTexts(aDigest(manyFlipEvents(1), { counts }))[0]!.length).toBeLessThanOrEqual(SLACK_LIMITS.header)
  })
})
