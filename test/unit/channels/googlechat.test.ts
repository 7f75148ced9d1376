/** Messages to Google Chat: what they say, what fits, and that untrusted text stays text. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { GOOGLE_CHAT_BYTES, renderDigest, renderMessage } from '../../../src/channels/kinds/googlechat/message.ts'
import { createGoogleChatSender } from '../../../src/channels/kinds/googlechat/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { demandMessage, readHtml } from '../../support/receivers/googlechat.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const CHECK = '0197a000-0000-7000-8000-000000000002'
const LINK = `https://heartbeat.example.com/checks/${CHECK}`
const FACTS = { last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 }

const paragraph = (text: string) => ({ textParagraph: { text } })
const button = (text: string, url: string) => ({ buttonList: { buttons: [{ text, onClick: { openLink: { url } } }] } })
const message = (fallbackText: string, widgets: object[], isThread = true) => ({
  fallbackText,
  cardsV2: [{ cardId: 'heartbeat', card: { sections: [{ widgets }] } }],
  ...(isThread ? { thread: { threadKey: CHECK } } : {}),
})
const textsOf = ({ cardsV2 }: ReturnType<typeof renderMessage>) =>
  cardsV2[0]!.card.sections[0]!.widgets.flatMap((widget) =>
    'textParagraph' in widget ? [widget.textParagraph.text] : [],
  )
const sizeOf = (sent: object) => Buffer.byteLength(JSON.stringify(sent))
const failedWith = (body: string) => aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing({ body }) })

describe('a message to Google Chat', () => {
  it('has all that is known of a check that is down', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
    const event = aFlipEvent({
      facts: { reason: 'failed', ...FACTS },
      check: { kubernetes, description: 'Runbook:\nhttps://wiki.example.com/backup' },
      lastPing: aLastPing({ body: 'dumping shop\ndisk full' }),
    })
    const reason = 'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC'
    const details = [
      'Last success: 2026-11-20 03:00:00 UTC',
      'Usual duration: 12 min 34 s',
      'HeartbeatCheck shop/backup in cluster default, project shop',
    ]
    expect(renderMessage(event, links)).toEqual(
      message(`Nightly backup is down\n${reason}`, [
        paragraph(`<b><font color="#cf222e">Nightly backup is down</font></b><br>${reason}`),
        paragraph(details.join('<br>')),
        paragraph(
          '<b>Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):</b><br>dumping shop<br>disk full',
        ),
        paragraph(
          '<b>About this check:</b><br>Runbook:<br><a href="https://wiki.example.com/backup">https://wiki.example.com/backup</a>',
        ),
        button('Open the check', LINK),
      ]),
    )
  })

  it('has the runs that were missed of one that is up again', () => {
    const facts = { reason: 'recovered', status: 'up', down_for_seconds: 7_500, missed_runs: 2 } as const
    const [headline, reason] = [
      'Nightly backup is up again after 2 h 5 min',
      'The job reported a success at 2026-11-21 03:00:00 UTC',
    ]
    expect(renderMessage(aFlipEvent({ type: 'check.up', facts }), links)).toEqual(
      message(`${headline}\n${reason}`, [
        paragraph(`<b><font color="#1a7f37">${headline}</font></b><br>${reason}`),
        paragraph('2 runs were missed<br>Project shop'),
        button('Open the check', LINK),
      ]),
    )
  })

  it('has nothing of a check for a test, and no thread', () => {
    const reason = 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works'
    expect(renderMessage(aTestEvent, links)).toEqual(
      message(
        `A test of this channel\n${reason}`,
        [paragraph(`<b><font color="#57606a">A test of this channel</font></b><br>${reason}`)],
        false,
      ),
    )
  })

  it('has the colour of a warning', () => {
    expect(textsOf(renderMessage(aFlipEvent({ type: 'check.warned' }), links))[0]).toContain('<font color="#9a6700">')
  })
})

describe('a digest to Google Chat', () => {
  it('has a line for each check, the number of the others, and no thread', () => {
    const digest = aDigest(manyFlipEvents(2), { counts: [{ type: 'check.down', checks: 5 }], events: 6 })
    const lines = [
      '<b><font color="#cf222e">5 checks: 5 down</font></b>',
      'Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
      'Job 2 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
      'And 3 more: 3 down',
      '6 events in all: of each check its newest counts',
    ]
    const widgets = [paragraph(lines.join('<br>')), button('All checks', 'https://heartbeat.example.com/checks')]
    expect(renderDigest(digest, links)).toEqual(message('5 checks: 5 down', widgets, false))
  })

  it('counts the checks whose lines do not fit', () => {
    const digest = aDigest(manyFlipEvents(50, () => ({ check: { name: '&'.repeat(150) } })))
    const sent = renderDigest(digest, links)
    demandMessage(JSON.stringify(sent))
    expect(readHtml(textsOf(sent)[0]!)).toContain(`${'&'.repeat(99)}… is down: No ping`)
    // 50 lines of five bytes for each & are about 30,000.
    expect(readHtml(textsOf(sent)[0]!)).not.toContain('more')
    const longer = renderDigest(
      aDigest(
        manyFlipEvents(50, () => ({
          facts: { reason: 'failed', detail: '&'.repeat(90) },
          check: { name: '&'.repeat(100) },
        })),
      ),
      links,
    )
    demandMessage(JSON.stringify(longer))
    const shown = readHtml(textsOf(longer)[0]!).split('\n').length - 2
    expect(readHtml(textsOf(longer)[0]!)).toMatch(new RegExp(`\nAnd ${50 - shown} more: ${50 - shown} down$`))
    expect(shown).toBeGreaterThan(30)
    // One more would not fit.
    expect(sizeOf(longer) + 5 * 180).toBeGreaterThan(GOOGLE_CHAT_BYTES)
  })
})

describe('untrusted text', () => {
  const NASTY = [
    '<users/all> @all <b>bold</b> <a href="https://evil.example.com">Open the check</a>',
    '</font></b><br><BR/>',
    '&lt;b&gt; &amp; &#60; &',
    '*bold* _it_ ~s~ `code` <https://evil.example.com|x>',
    '\'q\' "q" \\ 👩‍👩‍👧‍👦🇩🇪 e\u0301',
  ]

  it.each(NASTY)('stays as it is: %s', (nasty) => {
    const event = aFlipEvent({
      facts: { reason: 'failed', detail: nasty },
      check: { name: nasty, description: nasty, kubernetes: { cluster: nasty, namespace: 'shop', name: 'backup' } },
      lastPing: aLastPing({ body: nasty }),
    })
    const sent = renderMessage(event, links)
    demandMessage(JSON.stringify(sent))
    const [first, details, output, description] = textsOf(sent).map(readHtml)
    expect(first).toBe(`${nasty} is down\nThe job reported a failure at 2026-11-21 03:00:00 UTC: ${nasty}`)
    expect(details).toBe(`HeartbeatCheck shop/backup in cluster ${nasty}, project shop`)
    expect(output).toMatch(/^Output of the last ping .*:\n/)
    expect(output).toContain(`:\n${nasty}`)
    expect(description).toBe(`About this check:\n${nasty}`)
  })
})

describe("a text at Google Chat's limit", () => {
  const room = GOOGLE_CHAT_BYTES - sizeOf(renderMessage(failedWith('x'), links)) + 1

  it('keeps an output that just fits', () => {
    const sent = renderMessage(failedWith('x'.repeat(room)), links)
    expect(sizeOf(sent)).toBe(GOOGLE_CHAT_BYTES)
    demandMessage(JSON.stringify(sent))
    expect(textsOf(sent)[2]).toContain('x'.repeat(room))
  })

  it('loses the beginning of a longer one, and nothing else', () => {
    const sent = renderMessage(failedWith(`${'x'.repeat(room)}END`), links)
    expect(sizeOf(sent)).toBe(GOOGLE_CHAT_BYTES)
    // The ellipsis has three bytes.
    expect(textsOf(sent)[2]).toContain(`<br>…${'x'.repeat(room - 6)}END`)
    expect(textsOf(sent).slice(0, 2)).toEqual(textsOf(renderMessage(failedWith('x'), links)).slice(0, 2))
  })

  it('stays within it, whatever it contains', () => {
    const anyText = fc.string({ unit: fc.constantFrom('&', '<', '"', '漢', 'x', '\n', '🔥'), maxLength: 6_000 })
    fc.assert(
      fc.property(anyText, anyText, anyText, (name, detail, body) => {
        const event = aFlipEvent({
          facts: { reason: 'failed', detail: detail.slice(0, 1_024).toWellFormed(), ...FACTS },
          check: { name: `x${[...name].slice(0, 99).join('')}`, description: detail },
          lastPing: aLastPing({ body }),
        })
        const sent = renderMessage(event, links)
        demandMessage(JSON.stringify(sent))
        for (const text of textsOf(sent)) expect(text.isWellFormed()).toBe(true)
        expect(sent.cardsV2[0]!.card.sections[0]!.widgets.at(-1)).toEqual(button('Open the check', LINK))
      }),
      { numRuns: 200 },
    )
  })
})

const URL_OF_SPACE = 'https://chat.googleapis.com/v1/spaces/AAAA/messages?key=key-s3cret&token=s3cret%3D'
const send = (client: ReturnType<typeof createFakeHttpClient>) => {
  const settings = { kind: 'googlechat', url: URL_OF_SPACE } as const
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Team chat', isTrusted: false, settings }
  return createGoogleChatSender({ client, clock: createManualClock(), links })(
    { channel, event: aFlipEvent(), checkKey: 1 },
    new AbortController().signal,
  )
}

it('is posted as JSON, with key and token as they are, in the thread of its check', async () => {
  const client = createFakeHttpClient()
  expect(await send(client)).toEqual({ kind: 'delivered', status: 200 })
  expect(client.requests).toEqual([
    {
      method: 'POST',
      url: `${URL_OF_SPACE}&messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD&requestId=${aFlipEvent().id}`,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(renderMessage(aFlipEvent(), links)),
      isTrusted: false,
    },
  ])
})

describe('a response of Google Chat', () => {
  const judge = (status: number, error: unknown) =>
    send(createFakeHttpClient({ status, text: JSON.stringify({ error }) }))

  it.each([
    [404, { status: 'NOT_FOUND' }, 'the space or its webhook is deleted: make a new one'],
    [403, { status: 'PERMISSION_DENIED' }, 'the webhook may not post in the space: allow apps of Google Chat'],
    [401, { status: 'UNAUTHENTICATED' }, 'copy the URL of the webhook again, with its key and its token'],
    [
      400,
      { status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] },
      'copy the URL of the webhook again, with its key and its token',
    ],
  ])('is final: %d %j', async (status, error, advice) => {
    const outcome = await judge(status, { message: `No: ${URL_OF_SPACE}`, ...error })
    expect(outcome).toEqual({ kind: 'rejected', status, error: expect.stringContaining(`; ${advice}`) })
    expect(outcome).not.toMatchObject({ error: expect.stringContaining('s3cret') })
  })

  it.each([
    [400, { status: 'INVALID_ARGUMENT' }, { kind: 'rejected', isOfMessage: true }],
    [429, { status: 'RESOURCE_EXHAUSTED' }, { kind: 'retry' }],
    [404, 'not found', { kind: 'retry', isRefusal: true }],
    [403, null, { kind: 'retry', isRefusal: true }],
    [200, { status: 'NOT_FOUND' }, { kind: 'delivered' }],
  ])('is judged by its status otherwise: %d %j', async (status, error, outcome) => {
    expect(await judge(status, error)).toMatchObject(outcome)
  })
})
