/** Messages to Microsoft Teams: what they say, what fits, and that untrusted text stays text. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { renderDigest, renderMessage, TEAMS_BYTES } from '../../../src/channels/kinds/teams/message.ts'
import { createTeamsSender } from '../../../src/channels/kinds/teams/send.ts'
import type { Event } from '../../../src/domain/event.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { demandCard } from '../../support/receivers/teams.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
const ALL = 'https://heartbeat.example.com/checks'
const FACTS = { last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 }

const run = (text: string, style: object = {}) => ({
  type: 'RichTextBlock',
  inlines: [{ type: 'TextRun', text, ...style }],
})
const headline = (text: string, color: string) => run(text, { size: 'Large', weight: 'Bolder', color })
const openCheck = { type: 'Action.OpenUrl', title: 'Open the check', url: LINK }
const message = (body: object[], actions: object[]) => ({
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
const textsOf = ({ attachments }: ReturnType<typeof renderMessage>) =>
  attachments[0]!.content.body.map(({ inlines }) => inlines.map(({ text }) => text).join(''))
/** Bytes in the encoding in which it is longer. */
const sizeOf = (sent: object) =>
  Math.max(Buffer.byteLength(JSON.stringify(sent)), Buffer.byteLength(JSON.stringify(sent), 'utf16le'))
const failedWith = (body: string, description?: string) =>
  aFlipEvent({
    facts: { reason: 'failed' },
    check: description === undefined ? {} : { description },
    lastPing: aLastPing({ body }),
  })

describe('a message to Microsoft Teams', () => {
  it('has all that is known of a check that is down', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
    const event = aFlipEvent({
      facts: { reason: 'failed', ...FACTS },
      check: { kubernetes, description: 'Runbook: https://wiki.example.com/backup' },
      lastPing: aLastPing({ body: 'dumping shop\ndisk full' }),
    })
    expect(renderMessage(event, links)).toEqual(
      message(
        [
          headline('Nightly backup is down', 'Attention'),
          run('The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC'),
          run(
            'Last success: 2026-11-20 03:00:00 UTC\nUsual duration: 12 min 34 s\nHeartbeatCheck shop/backup in cluster default, project shop',
            { isSubtle: true },
          ),
          run('Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):'),
          run('dumping shop\ndisk full', { fontType: 'Monospace' }),
          run('About this check:'),
          {
            type: 'RichTextBlock',
            inlines: [
              { type: 'TextRun', text: 'Runbook: ' },
              {
                type: 'TextRun',
                text: 'https://wiki.example.com/backup',
                selectAction: { type: 'Action.OpenUrl', url: 'https://wiki.example.com/backup' },
              },
            ],
          },
        ],
        [openCheck],
      ),
    )
  })

  it('has the runs that were missed of one that is up again', () => {
    const facts = { reason: 'recovered', status: 'up', down_for_seconds: 7_500, missed_runs: 2 } as const
    expect(renderMessage(aFlipEvent({ type: 'check.up', facts }), links)).toEqual(
      message(
        [
          headline('Nightly backup is up again after 2 h 5 min', 'Good'),
          run('The job reported a success at 2026-11-21 03:00:00 UTC'),
          run('2 runs were missed\nProject shop', { isSubtle: true }),
        ],
        [openCheck],
      ),
    )
  })

  it('has nothing of a check for a test', () => {
    expect(renderMessage(aTestEvent, links)).toEqual(
      message(
        [
          headline('A test of this channel', 'Default'),
          run('A test was requested at 2026-11-21 03:00:00 UTC: the channel works'),
        ],
        [],
      ),
    )
  })

  it('has the colour of a warning', () => {
    const [first] = renderMessage(aFlipEvent({ type: 'check.warned' }), links).attachments[0]!.content.body
    expect(first).toEqual(headline('Nightly backup ended with a warning', 'Warning'))
  })
})

describe('a digest to Microsoft Teams', () => {
  it('has a line for each check, and the number of the others', () => {
    const digest = aDigest(manyFlipEvents(2), { counts: [{ type: 'check.down', checks: 5 }], events: 6 })
    const lines = [
      'Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
      'Job 2 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
      'And 3 more: 3 down',
      '6 events in all: of each check its newest counts',
    ]
    expect(renderDigest(digest, links)).toEqual(
      message(
        [headline('5 checks: 5 down', 'Attention'), run(lines.join('\n'))],
        [{ type: 'Action.OpenUrl', title: 'All checks', url: ALL }],
      ),
    )
  })

  it('counts the checks whose lines do not fit', () => {
    const digest = aDigest(manyFlipEvents(50, () => ({ check: { name: '"'.repeat(100) } })))
    const sent = renderDigest(digest, links)
    expect(sizeOf(sent)).toBeLessThanOrEqual(TEAMS_BYTES)
    const lines = textsOf(sent)[1]!.split('\n')
    const shown = lines.length - 1
    expect(lines.at(-1)).toBe(`And ${50 - shown} more: ${50 - shown} down`)
    // One more would not fit.
    expect(sizeOf(sent) + 2 * JSON.stringify(lines[0]).length).toBeGreaterThan(TEAMS_BYTES)
    expect(shown).toBeGreaterThan(20)
  })
})

describe('untrusted text', () => {
  const NASTY = [
    '**bold** _it_ [Open the check](https://evil.example.com) `code`',
    '# head\n- item\n1. item',
    '<at>everyone</at> @everyone @Team',
    '@{a} {b} }} {',
    '<b>&amp; \'q\' "q" \\ 👩‍👩‍👧‍👦🇩🇪 e\u0301',
  ]

  it.each(NASTY)('stays as it is, where Teams knows no mark-up: %s', (nasty) => {
    const event = aFlipEvent({ check: { name: nasty, description: nasty }, lastPing: aLastPing({ body: nasty }) })
    const sent = renderMessage(event, links)
    demandCard(JSON.stringify(sent))
    expect(textsOf(sent).slice(3)).toEqual([expect.any(String), nasty, 'About this check:', nasty])
    expect(textsOf(sent)[0]).toBe(`${nasty.replaceAll('\n', ' ')} is down`)
  })

  it.each(['{{DATE(2017-02-14T06:08:00Z, SHORT)}}', '{{{TIME(2017-02-14T06:08:00Z)}}}'])('is no date: %s', (nasty) => {
    const sent = renderMessage(failedWith(nasty, nasty), links)
    demandCard(JSON.stringify(sent))
    expect(textsOf(sent).at(-1)).not.toContain('{{')
    expect(textsOf(sent).at(-1)!.replaceAll('\u200b', '')).toBe(nasty)
  })
})

describe("a text at Teams' limit", () => {
  const room = (TEAMS_BYTES - sizeOf(renderMessage(failedWith('x'), links))) / 2 + 1

  it('keeps an output that just fits', () => {
    const sent = renderMessage(failedWith('x'.repeat(room)), links)
    expect(sizeOf(sent)).toBe(TEAMS_BYTES)
    demandCard(JSON.stringify(sent))
    expect(textsOf(sent).at(-1)).toBe('x'.repeat(room))
  })

  it('loses the beginning of a longer one, and nothing else', () => {
    const sent = renderMessage(failedWith(`${'x'.repeat(room)}END`), links)
    expect(sizeOf(sent)).toBe(TEAMS_BYTES)
    expect(textsOf(sent).at(-1)).toBe(`…${'x'.repeat(room - 4)}END`)
    expect(textsOf(sent).slice(0, -1)).toEqual(textsOf(renderMessage(failedWith('x'), links)).slice(0, -1))
  })

  it('counts in UTF-8 where the text is longer in it', () => {
    const sent = renderMessage(failedWith('漢'.repeat(10_000)), links)
    expect(Buffer.byteLength(JSON.stringify(sent))).toBeLessThanOrEqual(TEAMS_BYTES)
    expect(Buffer.byteLength(JSON.stringify(sent))).toBeGreaterThan(TEAMS_BYTES - 10)
  })

  it('stays within it, whatever it contains', () => {
    const anyText = fc.string({ unit: fc.constantFrom('"', '{', '漢', 'x', '\n', '🔥', '\u200b'), maxLength: 8_000 })
    const sizes = (event: Event) => {
      const sent = renderMessage(event, links)
      demandCard(JSON.stringify(sent))
      for (const text of textsOf(sent)) expect(text.isWellFormed()).toBe(true)
      expect(sent.attachments[0]!.content.actions).toEqual([openCheck])
    }
    fc.assert(
      fc.property(anyText, anyText, anyText, (name, detail, body) => {
        sizes(
          aFlipEvent({
            facts: { reason: 'failed', detail: detail.slice(0, 1_024).toWellFormed(), ...FACTS },
            check: { name: [...name].slice(0, 100).join(''), description: detail },
            lastPing: aLastPing({ body }),
          }),
        )
      }),
      { numRuns: 200 },
    )
  })
})

const send = (client: ReturnType<typeof createFakeHttpClient>) => {
  const settings = { kind: 'teams', url: 'https://x.example.com/invoke?sv=1.0&sig=s3cret' } as const
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Team chat', isTrusted: false, settings }
  return createTeamsSender({ client, clock: createManualClock(), links })(
    { channel, event: aFlipEvent(), checkKey: 1 },
    new AbortController().signal,
  )
}

it('is posted as JSON, to the URL as it is', async () => {
  const client = createFakeHttpClient({ status: 202 })
  expect(await send(client)).toEqual({ kind: 'delivered', status: 202 })
  expect(client.requests).toEqual([
    {
      method: 'POST',
      url: 'https://x.example.com/invoke?sv=1.0&sig=s3cret',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(renderMessage(aFlipEvent(), links)),
      isTrusted: false,
    },
  ])
})

describe('a response of a workflow', () => {
  const judge = (status: number, error: unknown) =>
    send(createFakeHttpClient({ status, text: JSON.stringify({ error }) }))

  it.each([
    [400, 'WorkflowTriggerIsNotEnabled', 'the workflow is turned off or deleted: turn it on, or make a new one'],
    [404, 'WorkflowNotFound', 'the workflow is deleted: make a new one in the Workflows app of Teams'],
    [401, 'DirectApiAuthorizationRequired', 'the URL has no signature: let anyone trigger the workflow'],
  ])('is final: %d with the code %s', async (status, code, advice) => {
    const outcome = await judge(status, { code, message: 'Could not execute s3cret' })
    expect(outcome).toEqual({ kind: 'rejected', status, error: expect.stringContaining(advice) })
    expect(outcome).not.toMatchObject({ error: expect.stringContaining('s3cret') })
  })

  it.each([
    [400, { code: 'TriggerInputSchemaMismatch' }, { kind: 'rejected', isOfMessage: true }],
    [400, { code: 'constructor' }, { kind: 'rejected', isOfMessage: true }],
    [413, null, { kind: 'rejected', isOfMessage: true }],
    [404, 'not found', { kind: 'retry', isRefusal: true }],
    [502, { code: 'NoResponse' }, { kind: 'retry' }],
    [202, { code: 'WorkflowNotFound' }, { kind: 'delivered' }],
  ])('is judged by its status otherwise: %d %j', async (status, error, outcome) => {
    expect(await judge(status, error)).toMatchObject(outcome)
  })
})
