import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { MatrixSettings } from '../../../src/channels/kinds/matrix/config.ts'
import { renderDigest, renderMessage } from '../../../src/channels/kinds/matrix/message.ts'
import { createMatrixSender } from '../../../src/channels/kinds/matrix/send.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { findForeignLink, readMarkup } from '../../support/markup.ts'
import { anUp, crowd, everything, LINK, links, sendTo } from './sending.ts'

/** Of 65,536, with room for what the homeserver adds. */
const LIMIT = 60_000
const TOKEN = 'syt_s3cret_XXXX'
const settings: MatrixSettings = {
  kind: 'matrix',
  homeserver: 'https://matrix.example.com',
  room_id: '!abc/d:example.com',
  token: TOKEN,
}
const read = (html: string) => readMarkup(html, { p: [], strong: [], pre: [], code: [], a: ['href'] })

describe('a message to Matrix', () => {
  it('contains all that is known, plain and as HTML', () => {
    expect(renderMessage(everything, links)).toEqual({
      msgtype: 'm.text',
      body: [
        '🔴 Shop <backup> is down',
        'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
        'Last success: 2026-11-20 03:00:00 UTC',
        'Usual duration: 12 min 34 s',
        'HeartbeatCheck shop/backup in cluster default, project shop',
        '',
        'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):',
        'pg_dump: "shop" & <all>\ndisk full',
        '',
        'About this check:',
        'Runbook: https://wiki.example.com/backup?a&b\nCall @\u200bann',
        '',
        `Check: ${LINK}`,
      ].join('\n'),
      format: 'org.matrix.custom.html',
      formatted_body: [
        '<p><strong>🔴 Shop &lt;backup&gt; is down</strong>',
        '<br>The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
        '<br>Last success: 2026-11-20 03:00:00 UTC',
        '<br>Usual duration: 12 min 34 s',
        '<br>HeartbeatCheck shop/backup in cluster default, project shop</p>',
        '<p>Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):</p>',
        '<pre><code>pg_dump: &quot;shop&quot; &amp; &lt;all&gt;\ndisk full</code></pre>',
        '<p>About this check:</p>',
        '<p>Runbook: <a href="https://wiki.example.com/backup?a&amp;b">https://wiki.example.com/backup?a&amp;b</a>',
        '<br>Call @\u200bann</p>',
        `<p><a href="${LINK}">Open the check</a></p>`,
      ].join(''),
      'm.mentions': {},
    })
  })

  it('of a recovery', () => {
    expect(renderMessage(anUp, links).body).toBe(
      [
        '🟢 Nightly backup is up again after 2 h 5 min',
        'The job reported a success at 2026-11-21 03:00:00 UTC',
        '2 runs were missed',
        'Project shop',
        '',
        `Check: ${LINK}`,
      ].join('\n'),
    )
  })

  it('of a test has nothing about a check', () => {
    const reason = 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works'
    expect(renderMessage(aTestEvent, links)).toEqual({
      msgtype: 'm.text',
      body: `🔵 A test of this channel\n${reason}`,
      format: 'org.matrix.custom.html',
      formatted_body: `<p><strong>🔵 A test of this channel</strong><br>${reason}</p>`,
      'm.mentions': {},
    })
  })

  it('has addresses that end in their attribute', () => {
    const odd = { ...links, dashboard: () => 'https://example.com/?a="><b>&c' }
    expect(read(renderMessage(aFlipEvent(), odd).formatted_body).elements).toContainEqual({
      tag: 'a',
      attributes: { href: 'https://example.com/?a="><b>&c' },
      text: 'Open the check',
    })
  })
})

describe('a digest to Matrix', () => {
  it('names each check, and links to all', () => {
    const { body, formatted_body } = renderDigest(crowd, links)
    const lines = body.split('\n')
    expect(lines[0]).toBe('🔴 21 checks: 20 down, 1 up again')
    expect(lines[1]).toBe('Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC')
    expect(lines[21]).toBe('Job 21 is up again after 1 min: The job reported a success at 2026-11-21 03:00:00 UTC')
    expect(lines.slice(22)).toEqual(['', 'All checks: https://heartbeat.example.com/checks'])
    const { text, elements } = read(formatted_body)
    expect(text).toBe(`${lines.slice(0, 22).join('\n')}All checks`)
    expect(elements.map(({ tag }) => tag)).toEqual(['strong', 'p', 'a', 'p'])
  })
})

it('a message to Matrix loses the beginning of the output, and the end of the description', () => {
  const quotes = '"'.repeat(4_096)
  const event = aFlipEvent({ check: { description: `${quotes}END` }, lastPing: aLastPing({ body: `START${quotes}` }) })
  const message = renderMessage(event, links)
  expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(LIMIT)
  expect(Buffer.byteLength(JSON.stringify(message))).toBeGreaterThan(LIMIT - 6_000)
  expect(message.body).toMatch(/:\n…"+\n\nAbout this check:\n"+…\n/)
})

it('a digest to Matrix names all, also with the longest texts', () => {
  const quotes = '"'.repeat(1_024)
  const events = manyFlipEvents(51, () => ({
    facts: { reason: 'failed', detail: quotes },
    check: { name: quotes.slice(-100) },
  }))
  const digest = renderDigest(aDigest(events), links)
  expect(digest.body.match(/ is down: /g)).toHaveLength(50)
  expect(digest.body).toContain('\nAnd 1 more: 1 down\n')
  expect(Buffer.byteLength(JSON.stringify(digest))).toBeLessThanOrEqual(LIMIT)
})

it('a message to Matrix fits into an event, is well-formed and mentions nobody, whatever is in it', () => {
  const unit = fc.constantFrom('&', '<', '"', '</code>', '\\', 'x', '\n', '🔥', 'é', '漢', '@', '.', '#', 'https://')
  const text = (maxLength: number) => fc.string({ unit, minLength: maxLength / 2, maxLength })
  fc.assert(
    fc.property(text(100), text(1_024), text(4_096), text(4_096), (name, detail, body, description) => {
      const facts = { reason: 'failed', detail } as const
      const event = aFlipEvent({
        facts,
        check: { name: [...name].slice(0, 100).join(''), description },
        lastPing: aLastPing({ body }),
      })
      const crowded = aDigest(manyFlipEvents(60, () => ({ facts, check: { name: event.check.name } })))
      for (const message of [renderMessage(event, links), renderDigest(crowded, links)]) {
        expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThanOrEqual(LIMIT)
        expect(message.body.isWellFormed()).toBe(true)
        const { elements, prose } = read(message.formatted_body)
        const links = elements.filter(({ tag }) => tag === 'a')
        expect(links.filter(({ attributes, text }) => attributes.href !== text)).toHaveLength(1)
        expect(findForeignLink(prose)).toBeNull()
      }
    }),
    { numRuns: 20, endOnFailure: true },
  )
})

describe('a request to Matrix', () => {
  it('has the id of what is sent, so that a repeat is one message', async () => {
    const { request, digestRequest } = await sendTo(createMatrixSender, settings)
    const room = 'https://matrix.example.com/_matrix/client/v3/rooms/!abc%2Fd%3Aexample.com/send/m.room.message'
    expect(request).toMatchObject({ method: 'PUT', url: `${room}/${everything.id}` })
    expect(request.headers).toMatchObject({ authorization: `Bearer ${TOKEN}` })
    expect(request.body).toBe(JSON.stringify(renderMessage(everything, links)))
    expect(digestRequest).toMatchObject({ method: 'PUT', url: `${room}/${crowd.id}` })
    const below = await sendTo(createMatrixSender, { ...settings, homeserver: 'https://example.com/matrix/' })
    expect(below.request.url).toMatch(/^https:\/\/example\.com\/matrix\/_matrix\/client\/v3\//)
  })

  const respond = async (status: number, errcode: string, more?: object, headers = {}) => {
    const json = { errcode, error: 'why', ...more }
    return (await sendTo(createMatrixSender, settings, { status, json, headers })).outcome
  }

  it('waits as long as the response says', async () => {
    const limited = (more: object, headers?: object) => respond(429, 'M_LIMIT_EXCEEDED', more, headers)
    expect(await limited({ retry_after_ms: 9_500 })).toMatchObject({ kind: 'retry', retryAfterMs: 9_500 })
    expect(await limited({}, { 'retry-after': '10' })).toMatchObject({ kind: 'retry', retryAfterMs: 10_000 })
    expect(await limited({})).not.toHaveProperty('retryAfterMs')
  })

  it.each([
    [401, 'M_UNKNOWN_TOKEN', 'the token is not valid or was logged out: log in again and give the new one'],
    [401, 'M_MISSING_TOKEN', 'the homeserver got no token: check for a proxy before it'],
    [403, 'M_USER_DEACTIVATED', 'the user of the token is deactivated: give the token of another one'],
    [
      403,
      'M_FORBIDDEN',
      'the user of the token may not send there: invite the user to the room, accept the invitation, and let the user send messages',
    ],
    [404, 'M_NOT_FOUND', 'check room_id'],
    [400, 'M_INVALID_PARAM', 'check room_id'],
    [404, 'M_UNRECOGNIZED', 'homeserver must be the address of the client API of a homeserver'],
  ])('gives up at once after %i %s', async (status, errcode, what) => {
    const error = `matrix.example.com responded ${status}: {"errcode":"${errcode}","error":"why"}; ${what}`
    expect(await respond(status, errcode)).toEqual({ kind: 'rejected', status, error })
  })

  it.each([
    [413, 'M_TOO_LARGE'],
    [400, 'M_BAD_JSON'],
  ])('is refused as a message: %i %s', async (status, errcode) => {
    expect(await respond(status, errcode)).toMatchObject({ kind: 'rejected', isOfMessage: true })
  })

  it('that a proxy refuses, and one that the homeserver refuses for a time, is tried again', async () => {
    const { outcome } = await sendTo(createMatrixSender, settings, { status: 404, text: 'no route' })
    expect(outcome).toMatchObject({ kind: 'retry', isRefusal: true })
    expect(await respond(403, 'M_RESOURCE_LIMIT_EXCEEDED')).toMatchObject({ kind: 'retry', isRefusal: true })
    expect(await respond(502, 'M_UNKNOWN')).toMatchObject({ kind: 'retry' })
  })

  it('never shows the token', async () => {
    for (const status of [400, 403, 500])
      expect(JSON.stringify(await respond(status, 'M_UNKNOWN', { got: `Bearer ${TOKEN}` }))).not.toMatch(/s3cret/)
  })
})
