import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AppriseSettings, appriseConfig } from '../../../src/channels/kinds/apprise/config.ts'
import { renderDigest, renderEvent, TEXT_LIMIT } from '../../../src/channels/kinds/apprise/message.ts'
import { createAppriseSender } from '../../../src/channels/kinds/apprise/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { HttpResponse } from '../../../src/delivery/http.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
const BY_KEY: AppriseSettings = { kind: 'apprise', url: 'https://apprise.example.com', key: 'ops' }
const URLS = 'pover://us3r@t0ken/device, json://robot:p%21ssword@10.0.0.1/hook?x=y'
const BY_URLS: AppriseSettings = { kind: 'apprise', url: 'https://apprise.example.com', urls: URLS }

const FACTS = { last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 }
const failedWith = (output: string, description?: string, detail?: string) =>
  aFlipEvent({
    facts: { reason: 'failed', ...FACTS, ...(detail === undefined ? {} : { detail }) },
    check: description === undefined ? {} : { description },
    lastPing: aLastPing({ body: output }),
  })
const bodyOf = (...given: Parameters<typeof failedWith>) => renderEvent(failedWith(...given), links).body
const TITLE = 'Nightly backup is down'
const ROOM = TEXT_LIMIT - TITLE.length
const OUTPUT = 'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):'
const REASON = 'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC'
const HEAD = [
  REASON,
  'Last success: 2026-11-20 03:00:00 UTC',
  'Usual duration: 12 min 34 s',
  'Project shop',
  `Check: ${LINK}`,
].join('\n')

describe('a message to Apprise', () => {
  it('of a check that is down has all that is known', () => {
    expect(renderEvent(failedWith('disk full', 'Runbook: https://wiki.example.com/backup'), links)).toEqual({
      title: TITLE,
      body: `${HEAD}\n\n${OUTPUT}\ndisk full\n\nAbout this check:\nRunbook: https://wiki.example.com/backup`,
      type: 'failure',
      format: 'text',
    })
  })

  it('of a check that is up again is a success', () => {
    const facts = { reason: 'recovered', status: 'up', down_for_seconds: 7_500, missed_runs: 2 } as const
    expect(renderEvent(aFlipEvent({ type: 'check.up', facts }), links)).toEqual({
      title: 'Nightly backup is up again after 2 h 5 min',
      body: `The job reported a success at 2026-11-21 03:00:00 UTC\n2 runs were missed\nProject shop\nCheck: ${LINK}`,
      type: 'success',
      format: 'text',
    })
  })

  it('of a test has no check', () => {
    expect(renderEvent(aTestEvent, links)).toEqual({
      title: 'A test of this channel',
      body: 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works',
      type: 'info',
      format: 'text',
    })
  })

  it('of a crowd has a line for each check, and counts the others', () => {
    const digest = aDigest(manyFlipEvents(57, (number) => (number <= 50 ? {} : { type: 'check.up' })))
    const line = (number: number) =>
      `Job ${number} is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC`
    expect(renderDigest(digest, links)).toEqual({
      title: '57 checks: 50 down, 7 up again',
      body: [
        ...Array.from({ length: 11 }, (_, index) => line(index + 1)),
        'And 46 more: 39 down, 7 up again',
        'All checks: https://heartbeat.example.com/checks',
      ].join('\n'),
      type: 'failure',
      format: 'text',
    })
  })
})

describe('a body', () => {
  const room = ROOM - `${HEAD}\n\n${OUTPUT}\n`.length

  it('is whole at the limit; beyond it, the output loses its beginning', () => {
    expect(bodyOf('x'.repeat(room))).toBe(`${HEAD}\n\n${OUTPUT}\n${'x'.repeat(room)}`)
    const cut = bodyOf(`${'x'.repeat(room)}END`)
    expect(cut).toBe(`${HEAD}\n\n${OUTPUT}\n…${'x'.repeat(room - 4)}END`)
    expect(cut).toHaveLength(ROOM)
  })

  it('gives the description half of what is left, or all of it without output', () => {
    const left = ROOM - HEAD.length
    const half = Math.floor(left / 2)
    const body = bodyOf('x'.repeat(4_096), `About ${'d'.repeat(4_000)}`)
    expect(body).toHaveLength(ROOM)
    expect(body).toMatch(new RegExp(`\\n\\nAbout this check:\\nAbout d{${half - 27}}…$`))
    const alone = bodyOf('', `About ${'d'.repeat(4_000)}`)
    expect(alone).toHaveLength(ROOM)
    expect(alone).toMatch(new RegExp(`\\n\\nAbout this check:\\nAbout d{${left - 27}}…$`))
  })

  it('gives the description what the output does not need', () => {
    const address = `https://wiki.example.com/${'x'.repeat(500)}`
    expect(bodyOf('disk full', `Runbook: ${address}`)).toBe(
      `${HEAD}\n\n${OUTPUT}\ndisk full\n\nAbout this check:\nRunbook: ${address}`,
    )
    const cut = bodyOf('disk full', 'd'.repeat(4_000))
    expect(cut).toContain(`${OUTPUT}\ndisk full\n\nAbout`)
    expect(cut).toHaveLength(ROOM)
  })

  it('leaves out a description of which nothing would be left, and gives its room to the output', () => {
    const address = `https://wiki.example.com/${'x'.repeat(900)}`
    expect(bodyOf('x'.repeat(4_096), address)).toBe(bodyOf('x'.repeat(4_096)))
    expect(bodyOf('', address)).toBe(bodyOf(''))
  })

  it('has a whole address of the description, or none of it', () => {
    const left = ROOM - HEAD.length - '\n\nAbout this check:\n'.length
    const about = (address: string) => bodyOf('', `${'d'.repeat(left - 21)} ${address} x`)
    expect(about('https://wiki.a/bcde')).toMatch(/d https:\/\/wiki\.a\/bcde…$/)
    expect(about('https://wiki.a/bcdef')).toMatch(/d …$/)
  })

  it('leaves out a text of which little would be left', () => {
    const head = bodyOf('', undefined, 'r').length - 1
    const detail = 'r'.repeat(ROOM - head - `\n\n${OUTPUT}\n`.length - 40)
    const long = 'x'.repeat(100)
    expect(bodyOf(long, undefined, detail)).toMatch(/:\n…x{39}$/)
    const short = bodyOf(long, undefined, `${detail}r`)
    expect(short).not.toContain(OUTPUT)
    expect(short).toMatch(new RegExp(`Check: ${LINK}$`))
    expect(bodyOf('short', undefined, `${detail}r`)).toMatch(/:\nshort$/)
  })

  it('keeps headline, reason and link when nothing else fits', () => {
    const body = bodyOf('output', 'description', 'r'.repeat(1_024))
    expect(body).toHaveLength(ROOM)
    expect(body).toMatch(new RegExp(`^The job reported a failure at [^\\n]+: r+…\\nCheck: ${LINK}$`))
  })

  it('is within the limit and well-formed, and no mention is left, whatever the texts are', () => {
    const anyText = (maxLength: number) =>
      fc.string({
        unit: fc.constantFrom('<', '!', '@', 'everyone', ' @bob', '[', '](', 'x', '\n', '🔥', '\ud800', 'é', ' '),
        maxLength,
      })
    fc.assert(
      fc.property(anyText(100), anyText(1_024), anyText(4_096), anyText(4_096), (name, detail, body, description) => {
        const check = { name: [...name].slice(0, 100).join(''), description }
        const event = aFlipEvent({ facts: { reason: 'failed', detail }, check, lastPing: aLastPing({ body }) })
        const digest = aDigest(manyFlipEvents(60, () => ({ facts: { reason: 'failed', detail }, check })))
        for (const message of [renderEvent(event, links), renderDigest(digest, links)]) {
          expect(message.title.length + message.body.length).toBeLessThanOrEqual(TEXT_LIMIT)
          expect(message.body).not.toBe('')
          for (const text of [message.title, message.body]) {
            expect(text.isWellFormed()).toBe(true)
            expect(text).not.toMatch(/@everyone| @bob|<[@!]|\]\(/)
          }
        }
      }),
      { numRuns: 100 },
    )
  })
})

/** What is posted for an event, and the outcome. */
async function send(settings: AppriseSettings, response: Partial<HttpResponse> = {}) {
  const client = createFakeHttpClient(response)
  const sender = createAppriseSender({ client, clock: createManualClock(), links })
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Ops', isTrusted: false, settings }
  const outcome = await sender({ channel, event: aFlipEvent(), checkKey: 1 }, new AbortController().signal)
  return { outcome, request: client.requests[0]!, sent: JSON.parse(String(client.requests[0]!.body)) }
}

describe('a request', () => {
  it.each([
    [BY_KEY, 'https://apprise.example.com/notify/ops', {}],
    [{ ...BY_KEY, tag: 'a, b' }, 'https://apprise.example.com/notify/ops', { tag: 'a, b' }],
    [{ ...BY_KEY, url: 'https://u:p@example.com/apprise/' }, 'https://u:p@example.com/apprise/notify/ops', {}],
    [BY_URLS, 'https://apprise.example.com/notify', { urls: URLS }],
  ])('of %j goes to %s', async (settings, url, fields) => {
    const { request, sent } = await send(settings)
    expect(request).toMatchObject({
      method: 'POST',
      url,
      headers: { 'content-type': 'application/json', accept: 'text/plain', 'x-apprise-log-level': 'WARNING' },
    })
    expect(sent).toEqual({ ...renderEvent(aFlipEvent(), links), ...fields })
  })
})

describe('a response', () => {
  it.each<[Partial<HttpResponse>, object]>([
    [{ status: 200 }, { kind: 'delivered', status: 200 }],
    [{ status: 204 }, { kind: 'retry', status: 204, isRefusal: true, error: expect.stringContaining('sent nothing') }],
    [
      { status: 424, text: '[WARNING] apprise: Failed to send Pushover notification: error=401.' },
      {
        kind: 'retry',
        status: 424,
        isRefusal: true,
        error:
          'apprise.example.com responded 424: [WARNING] apprise: Failed to send Pushover notification: error=401.; a service behind Apprise failed, or none has the tag',
      },
    ],
    [{ status: 400 }, { kind: 'rejected', status: 400, isOfMessage: true }],
    [
      { status: 429, headers: { 'retry-after': '20' } },
      { kind: 'retry', status: 429, retryAfterMs: 20_000 },
    ],
    [{ status: 500 }, { kind: 'retry', status: 500 }],
  ])('%j is %j', async (response, expected) => {
    const { outcome } = await send(BY_URLS, response)
    expect(outcome).toMatchObject(expected)
    if (response.status !== 204 && response.status !== 424) expect(outcome).not.toHaveProperty('isRefusal')
  })

  it('that repeats the URLs, or parts of them, makes an error without these', async () => {
    const text = `cannot reach ${URLS}: us3r, t0ken, robot, p%21ssword, p!ssword, 10.0.0.1`
    const { outcome } = await send(BY_URLS, { status: 400, text })
    expect(outcome).toHaveProperty('error', 'apprise.example.com responded 400: cannot reach …: …, …, …, …, …, …')
  })
})

describe('the config', () => {
  const { toSettings, show } = appriseConfig
  const url = 'https://apprise.example.com'
  const ONE = 'must be given, or else urls: exactly one of the two'

  it.each<[AppriseSettings, object]>([
    [BY_KEY, { url, key: 'ops' }],
    [
      { ...BY_KEY, tag: 'a b' },
      { url, key: 'ops', tag: 'a b' },
    ],
    [BY_URLS, { url, urls: '…' }],
    [
      { ...BY_KEY, url: 'https://u:s3cret@example.com/x' },
      { url: 'https://…@example.com/x', key: 'ops' },
    ],
  ])('of %j is shown as %j, and keeps its values when it is sent back', (settings, shown) => {
    expect(show(settings)).toEqual(shown)
    expect(toSettings(show(settings), settings)).toEqual(settings)
  })

  it('replaces what is stored', () => {
    expect(toSettings({ url, key: 'ops' }, BY_URLS)).toEqual(BY_KEY)
    expect(toSettings({ url, urls: URLS }, { ...BY_KEY, tag: 'a' })).toEqual(BY_URLS)
  })

  it.each([
    [{ url }, null, 'config.key', ONE],
    [{ url, key: 'ops', urls: URLS }, null, 'config.key', ONE],
    [{ url, tag: 'a', urls: URLS }, null, 'config.tag', 'needs a key: urls have no tags'],
    [{ url, urls: '…' }, null, 'config.urls', expect.stringContaining('must be written out')],
    [{ url, urls: '…' }, BY_KEY, 'config.urls', expect.stringContaining('must be written out')],
    [
      { url: 'https://evil.example', urls: '…' },
      BY_URLS,
      'config.urls',
      expect.stringContaining('must be written out'),
    ],
  ])('may not be %j after %j', (config, stored, field, message) => {
    expect(() => toSettings(config, stored)).toThrow(
      expect.objectContaining({ code: 'invalid_request', field, message }),
    )
  })

  it('says in the document which fields exclude each other', () => {
    expect(appriseConfig.input.meta()).toMatchObject({
      not: { required: ['key', 'urls'] },
      dependentRequired: { tag: ['key'] },
    })
  })

  it('sends to its server', () => {
    expect(appriseConfig.urlsOf(BY_URLS)).toEqual([{ url, field: 'url' }])
  })
})
