import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLinks, type Links } from '../../../src/channels/kinds/kind.ts'
import { renderMessage, SLACK_LIMITS } from '../../../src/channels/kinds/slack/message.ts'
import { createSlackSender } from '../../../src/channels/kinds/slack/send.ts'
import type { Event } from '../../../src/domain/event.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { sendTo } from './sending.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
const failedWith = (body: string, name = 'Nightly backup') =>
  aFlipEvent({ facts: { reason: 'failed' }, check: { name }, lastPing: aLastPing({ body }) })

const headerOf = (event: Event) => textsOf(event)[0]!
const textsOf = (event: Event): string[] =>
  renderMessage(event, links).blocks.flatMap((block) =>
    'text' in block ? [block.text.text] : block.elements.map(({ text }) => text),
  )
const codeOf = (text: string) => /```\n([\s\S]*)\n```$/.exec(text)![1]!
const codeBlockOf = (event: Event) => codeOf(textsOf(event).find((text) => text.includes('```'))!)

describe('a message to Slack', () => {
  it('contains the event, its reason, its check and the output of the job', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
    const event = aFlipEvent({ facts: { reason: 'failed' }, check: { kubernetes }, lastPing: aLastPing() })
    expect(renderMessage(event, links)).toEqual({
      text: [
        '🔴 Nightly backup is down',
        'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
        `HeartbeatCheck shop/backup in cluster default, project shop: <${LINK}>`,
        'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):\n```\ndisk full\n```',
      ].join('\n'),
      blocks: [
        { type: 'header', text: { type: 'plain_text', text: '🔴 Nightly backup is down', emoji: false } },
        {
          type: 'section',
          text: {
            type: 'plain_text',
            text: 'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
            emoji: false,
          },
        },
        {
          type: 'section',
          text: {
            type: 'mrkdwn',
            text: 'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):\n```\ndisk full\n```',
            verbatim: true,
          },
        },
        {
          type: 'context',
          elements: [
            { type: 'mrkdwn', text: `<${LINK}|Open the check>`, verbatim: true },
            {
              type: 'plain_text',
              text: 'HeartbeatCheck shop/backup in cluster default, project shop',
              emoji: false,
            },
          ],
        },
      ],
      unfurl_links: false,
      unfurl_media: false,
    })
  })

  it('contains what else is known, and the description', () => {
    const description = 'Runbook: see <https://wiki.example.com|the wiki>'
    const facts = { last_success_at: '2026-11-20T03:00:05.123Z', usual_ms: 754_000 }
    const event = aFlipEvent({ facts, check: { description } })
    expect(renderMessage(event, links).text.split('\n')).toEqual([
      '🔴 Nightly backup is down',
      'No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
      'Last success: 2026-11-20 03:00:05 UTC',
      'Usual duration: 12 min 34 s',
      `Project shop: <${LINK}>`,
      'About this check:',
      'Runbook: see &lt;\u200b<https://wiki.example.com>|the wiki&gt;',
    ])
    expect(textsOf(event).slice(1, 3)).toEqual([
      'No ping came in time: it was due at 2026-11-21 03:00:00 UTC\nLast success: 2026-11-20 03:00:05 UTC\nUsual duration: 12 min 34 s',
      'About this check:\nRunbook: see &lt;\u200b<https://wiki.example.com>|the wiki&gt;',
    ])
  })

  const aboutOf = (text: string) => /About this check:\n(.*)$/.exec(text)?.[1]
  const send = (description: string, body: string | null = null) => {
    const event = aFlipEvent({ check: { description }, lastPing: body === null ? null : aLastPing({ body }) })
    return { text: renderMessage(event, links).text, about: textsOf(event).find((text) => text.includes('About')) }
  }

  it('has a long description cut, in the text more than in a block', () => {
    const { text, about } = send('x'.repeat(4_000))
    expect(text).toHaveLength(SLACK_LIMITS.text)
    expect(text).toMatch(/x…$/)
    expect(about).toBe(`About this check:\n${'x'.repeat(2_981)}…`)
    const room = aboutOf(text)!.length
    expect(aboutOf(send('x'.repeat(room)).text)).toBe('x'.repeat(room))
    expect(aboutOf(send('x'.repeat(room + 1)).text)).toBe(`${'x'.repeat(room - 1)}…`)
  })

  it('leaves a description in the text at least 500, and what the output does not need', () => {
    for (const body of ['y'.repeat(4_000), 'y'.repeat(1_200)])
      expect(aboutOf(send('x'.repeat(501), body).text)).toBe(
        body.length > 1_200 ? `${'x'.repeat(499)}…` : 'x'.repeat(501),
      )
    expect(aboutOf(send('x'.repeat(500), 'y'.repeat(4_000)).text)).toBe('x'.repeat(500))
    const { text } = send('x'.repeat(4_000), 'y'.repeat(200))
    expect(codeOf(text.split('\nAbout')[0]!)).toBe('y'.repeat(200))
    expect(text).toHaveLength(SLACK_LIMITS.text)
  })

  it('shows a long address whole where there is room, and no description of which nothing would be left', () => {
    const address = `https://wiki.example.com/${'x'.repeat(900)}`
    expect(aboutOf(send(`Runbook: ${address}`, 'disk full').text)).toBe(`Runbook: <${address}>`)
    expect(send(address, 'y'.repeat(4_000)).text).not.toContain('About')
    expect(codeOf(send(address, 'y'.repeat(4_000)).text)).toMatch(/^…y{1500,}$/)
    expect(send(`${address}${'x'.repeat(3_000)}`)).toMatchObject({ about: undefined })
  })

  it('has the description below the output, whose code block it cannot open or end', () => {
    const event = aFlipEvent({
      check: { description: 'Run ```restore ` now' },
      lastPing: aLastPing({ body: '`@all`' }),
    })
    const { text } = renderMessage(event, links)
    expect(text).toMatch(/UTC\):\n```\n`@all`\n```\nAbout this check:\nRun ```restore ` now$/)
    const long = { check: { description: 'd'.repeat(500) }, lastPing: aLastPing({ body: 'x'.repeat(4_000) }) }
    expect(renderMessage(aFlipEvent(long), links).text).toHaveLength(SLACK_LIMITS.text)
  })

  it('for a test contains nothing about a check', () => {
    const { text, blocks } = renderMessage(aTestEvent, links)
    expect(text).toBe('🔵 A test of this channel\nA test was requested at 2026-11-21 03:00:00 UTC: the channel works')
    expect(blocks.map(({ type }) => type)).toEqual(['header', 'section'])
  })
})

describe('untrusted text', () => {
  const NASTY = [
    '<!channel>',
    '<!here|here>',
    '<@U0123456>',
    '<#C0123456>',
    '<https://evil.example.com|Open the check>',
    '[Open](https://evil.example.com)',
    '@channel @everyone @here',
    'www.evil.example.com',
    '<script>alert(1)</script>',
    '&amp; &lt;!channel&gt;',
    '"quoted" \'quoted\'',
    '`code` ```fence``` ````',
    '\u200frtl \u202egnp.exe',
    '👩‍👩‍👧‍👦🇩🇪 e\u0301',
    '*bold* _italic_ ~strike~ > quote',
  ]

  /** What is left when the one link that we make ourselves is taken out. */
  const withoutOurLink = (text: string) => text.replace(`<${LINK}|Open the check>`, '').replace(`<${LINK}>`, '')

  it.each(NASTY)('makes no mention and no link: %s', (nasty) => {
    const event = failedWith(nasty, nasty.slice(0, 100))
    const { text, blocks } = renderMessage(event, links)
    // No bracket at all, and no & but that of an escape: nothing is left for Slack to parse.
    for (const sent of [text, ...textsOf(event)]) expect(withoutOurLink(sent)).not.toMatch(/[<>]|&(?!(?:amp|lt|gt);)/)
    // Where mark-up counts, a code block has its own two fences and no other.
    const marked = blocks
      .flatMap((block) => ('text' in block ? [block.text] : block.elements))
      .filter(({ type }) => type === 'mrkdwn')
    for (const each of marked) expect(each).toMatchObject({ verbatim: true })
    for (const sent of [text, ...marked.map((each) => each.text)])
      expect(sent.split('```')).toHaveLength(sent.includes('Output of') ? 3 : 1)
    // Mattermost and Discord look for these in prose, and show nothing but `text`.
    const prose = withoutOurLink(text.split('```')[0]!)
    expect(prose).not.toMatch(/@\w|:\/\/|www\.|\]\(|&lt;[#@!:]|`[^\u200b]/)
    // Names stand where Slack looks for nothing.
    expect(blocks[0]).toMatchObject({ type: 'header', text: { type: 'plain_text', emoji: false } })
  })

  it.each(NASTY)('makes neither in the reason, which can quote a cluster: %s', (nasty) => {
    const event = aFlipEvent({ facts: { reason: 'failed', detail: nasty } })
    const prose = withoutOurLink(renderMessage(event, links).text.split('```')[0]!)
    expect(prose).not.toMatch(/@\w|:\/\/|www\.|\]\(|&lt;[#@!:]|~\w|`[^\u200b]/)
  })

  it('is unchanged but for the three escaped characters', () => {
    const nasty = `a < b && c > d "e" 'f' <!channel>`
    expect(headerOf(failedWith('', nasty))).toBe(`🔴 a &lt; b &amp;&amp; c &gt; d "e" 'f' &lt;!channel&gt; is down`)
    expect(codeBlockOf(failedWith(nasty))).toBe(`a &lt; b &amp;&amp; c &gt; d "e" 'f' &lt;!channel&gt;`)
    // What was escaped already is escaped again, and so shown as it was.
    expect(codeBlockOf(failedWith('&lt;'))).toBe('&amp;lt;')
  })

  it('cannot end its code block', () => {
    const event = failedWith('before\n```\n<!channel> `inline` ````\nafter`')
    expect(codeBlockOf(event)).toBe('before\n`\u200b`\u200b`\n&lt;!channel&gt; `inline` `\u200b`\u200b`\u200b`\nafter`')
  })

  it('cannot leave the address of a link', () => {
    const odd: Links = {
      check: () => '',
      dashboard: () => 'https://example.com/?a=1&b=<2>|3 4',
      checks: () => '',
      acknowledge: () => null,
    }
    const { text, blocks } = renderMessage(aFlipEvent(), odd)
    expect(text).toContain('<https://example.com/?a=1&amp;b=%3C2%3E%7C3%204>')
    expect(JSON.stringify(blocks)).toContain('<https://example.com/?a=1&amp;b=%3C2%3E%7C3%204|Open the check>')
  })
})

describe("a text at Slack's limits", () => {
  const ending = ' is down'

  it('is not cut when the header just fits', () => {
    const name = '&'.repeat(27) + 'x'.repeat(SLACK_LIMITS.header - '🔴 '.length - ending.length - 27 * 5)
    expect(headerOf(failedWith('', name))).toBe(`🔴 ${name.replaceAll('&', '&amp;')}${ending}`)
    expect(headerOf(failedWith('', name))).toHaveLength(SLACK_LIMITS.header)
  })

  it('loses the end of the name, never the change, part of an escape or half a character', () => {
    const header = headerOf(failedWith('', '&'.repeat(29)))
    expect(header).toBe(`🔴 ${'&amp;'.repeat(27)}…${ending}`)
    const emoji = headerOf(failedWith('', '🔥'.repeat(100)))
    expect(emoji).toBe(`🔴 ${'🔥'.repeat(69)}…${ending}`)
    expect(emoji.isWellFormed()).toBe(true)
    const up = aFlipEvent({ type: 'check.up', facts: { down_for_seconds: 7_500 }, check: { name: '<'.repeat(100) } })
    expect(headerOf(up)).toMatch(/^🟢 (&lt;)+… is up again after 2 h 5 min$/)
  })

  const room = SLACK_LIMITS.section - textsOf(failedWith('x'))[2]!.length + 1

  it('is not cut when the output just fits', () => {
    expect(codeBlockOf(failedWith('x'.repeat(room)))).toBe('x'.repeat(room))
    expect(textsOf(failedWith('x'.repeat(room)))[2]).toHaveLength(SLACK_LIMITS.section)
  })

  it('loses the beginning of the output', () => {
    const text = `${'x'.repeat(room)}END`
    expect(codeBlockOf(failedWith(text))).toBe(`…${text.slice(4)}`)
    expect(textsOf(failedWith(text))[2]).toHaveLength(SLACK_LIMITS.section)
    expect(codeBlockOf(failedWith(`${'&'.repeat(room)}END`))).toMatch(/^…(&amp;)+END$/)
  })

  it('stays within them, whatever it contains', () => {
    const anyText = fc.string({
      unit: fc.constantFrom('&', '<', '`', 'x', '\n', '🔥', '\u200b', 'é'),
      maxLength: 5_000,
    })
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), anyText, (name, body) => {
        const event = failedWith(body.slice(-4_096), [...name].slice(0, 100).join(''))
        const { text, blocks } = renderMessage(event, links)
        expect(blocks.length).toBeLessThanOrEqual(50)
        expect(text.length).toBeLessThanOrEqual(SLACK_LIMITS.text)
        for (const block of blocks) {
          const limit = block.type === 'header' ? SLACK_LIMITS.header : SLACK_LIMITS.section
          for (const each of 'text' in block ? [block.text] : block.elements) {
            expect(each.text.length).toBeLessThanOrEqual(limit)
            expect(each.text.length).toBeGreaterThan(0)
            expect(each.text.isWellFormed()).toBe(true)
            expect(each.text).not.toMatch(/&(?!(?:amp|lt|gt);)/)
          }
        }
        expect(text.isWellFormed()).toBe(true)
        expect(text).not.toMatch(/&(?!(?:amp|lt|gt);)/)
      }),
      { numRuns: 300 },
    )
  })

  it.each(['&', '<'])('stays within them with a reason of %j, which loses its end and no fact', (character) => {
    const known = { last_success_at: '2026-11-20T03:00:05.123Z' }
    const facts = { reason: 'failed', detail: character.repeat(1_024), ...known } as const
    for (const lastPing of [null, aLastPing()]) {
      const event = aFlipEvent({ facts, check: { name: '&'.repeat(100), description: 'x'.repeat(500) }, lastPing })
      const { text } = renderMessage(event, links)
      expect(text.length).toBeLessThanOrEqual(SLACK_LIMITS.text)
      const fact = 'Last success: 2026-11-20 03:00:05 UTC'
      expect(text).toContain(`…\n${fact}\nProject shop: <${LINK}>`)
      const reason = textsOf(event)[1]!
      expect(reason.length).toBeLessThanOrEqual(SLACK_LIMITS.section)
      expect(reason.endsWith(`;…\n${fact}`)).toBe(true)
      for (const sent of [text, reason]) expect(sent).not.toMatch(/&(?!(?:amp|lt|gt);)/)
    }
  })

  it("is shorter for Discord than in Slack's blocks", () => {
    const { text } = renderMessage(failedWith(`${'x'.repeat(2_400)}END`), links)
    expect(text).toHaveLength(SLACK_LIMITS.text)
    expect(codeOf(text)).toMatch(/^…x+END$/)
    expect(codeBlockOf(failedWith(`${'x'.repeat(2_400)}END`))).toHaveLength(2_403)
  })
})

it('is posted as JSON, to an address that is as trusted as its channel', async () => {
  const client = createFakeHttpClient()
  const send = createSlackSender({ client, clock: createManualClock(), links })
  const event = failedWith('disk full')
  for (const isTrusted of [false, true]) {
    const settings = { kind: 'slack', url: 'https://hooks.slack.com/services/T0/B0/secret' } as const
    const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Team chat', isTrusted, settings }
    expect(await send({ channel, event, checkKey: 1 }, new AbortController().signal)).toMatchObject({
      kind: 'delivered',
    })
  }
  const request = {
    method: 'POST',
    url: 'https://hooks.slack.com/services/T0/B0/secret',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(renderMessage(event, links)),
  }
  expect(client.requests).toEqual([
    { ...request, isTrusted: false },
    { ...request, isTrusted: true },
  ])
})

describe('a response of Slack', () => {
  const judge = async (status: number, text: string) =>
    (
      await sendTo(
        createSlackSender,
        { kind: 'slack', url: 'https://hooks.slack.com/services/T0/B0/s3cret' },
        { status, text },
      )
    ).outcome

  it.each([
    [404, 'no_service', 'the webhook is turned off or deleted: make a new one'],
    [404, 'no_service_id', 'the webhook is turned off or deleted'],
    [404, 'no_active_hooks\n', 'the webhook is turned off or deleted'],
    [403, 'invalid_token', 'the webhook is turned off or deleted'],
    [404, 'channel_not_found', 'its channel is archived or deleted: restore it, or make a new one'],
    [410, 'channel_is_archived', 'its channel is archived or deleted'],
    [404, 'no_team', 'the app is no longer in the workspace'],
    [403, 'team_disabled', 'the workspace is disabled'],
    [403, 'action_prohibited', 'an administrator of the workspace does not let the webhook post there'],
    [403, 'posting_to_general_channel_denied', 'an administrator of the workspace does not let the webhook post there'],
  ])('is final: %i %j', async (status, text, advice) => {
    const error = expect.stringContaining(`: ${text.trim()}; ${advice}`)
    expect(await judge(status, text)).toEqual({ kind: 'rejected', status, error })
  })

  it.each([
    [400, 'invalid_payload', { kind: 'rejected', isOfMessage: true }],
    [404, 'page not found', { kind: 'retry', isRefusal: true }],
    [404, 'no_service here', { kind: 'retry', isRefusal: true }],
    [403, '', { kind: 'retry', isRefusal: true }],
    [500, 'rollup_error', { kind: 'retry' }],
    [200, 'no_service', { kind: 'delivered' }],
  ])('is judged by its status otherwise: %i %j', async (status, text, outcome) => {
    expect(await judge(status, text)).toMatchObject(outcome)
  })
})
