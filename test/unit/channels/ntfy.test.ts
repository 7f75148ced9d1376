import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NtfySettings } from '../../../src/channels/kinds/ntfy/config.ts'
import { renderDigest, renderMessage } from '../../../src/channels/kinds/ntfy/message.ts'
import { createNtfySender } from '../../../src/channels/kinds/ntfy/send.ts'
import type { CheckEventType } from '../../../src/domain/event.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { anUp, crowd, everything, LINK, links, sendTo } from './sending.ts'

/** A message of 4,096 becomes an attachment. */
const LIMIT = 4_095
const settings: NtfySettings = { kind: 'ntfy', topic: 'heartbeat' }
const TOKEN = 'tk_s3cret7mVBoFD37zQVN29RhuMzNIz2'

describe('a message to ntfy', () => {
  it('contains all that is known', () => {
    expect(renderMessage(everything, links, settings)).toEqual({
      topic: 'heartbeat',
      title: 'Shop <backup> is down',
      message: [
        'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
        'Last success: 2026-11-20 03:00:00 UTC',
        'Usual duration: 12 min 34 s',
        'HeartbeatCheck shop/backup in cluster default, project shop',
        '',
        'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):',
        'pg_dump: "shop" & <all>\ndisk full',
        '',
        'About this check:',
        'Runbook: https://wiki.example.com/backup?a&b\nCall @ann',
      ].join('\n'),
      tags: ['rotating_light'],
      priority: 4,
      click: LINK,
      actions: [{ action: 'view', label: 'Open the check', url: LINK }],
    })
  })

  it('of a recovery', () => {
    expect(renderMessage(anUp, links, settings)).toEqual({
      topic: 'heartbeat',
      title: 'Nightly backup is up again after 2 h 5 min',
      message: 'The job reported a success at 2026-11-21 03:00:00 UTC\n2 runs were missed\nProject shop',
      tags: ['white_check_mark'],
      priority: 3,
      click: LINK,
      actions: [{ action: 'view', label: 'Open the check', url: LINK }],
    })
  })

  it('of a test has nothing about a check', () => {
    expect(renderMessage(aTestEvent, links, settings)).toEqual({
      topic: 'heartbeat',
      title: 'A test of this channel',
      message: 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works',
      tags: ['information_source'],
      priority: 3,
    })
  })

  it.each<[CheckEventType, number | undefined, string, number]>([
    ['check.down', undefined, 'rotating_light', 4],
    ['check.down', 5, 'rotating_light', 5],
    ['check.flapping', 1, 'rotating_light', 1],
    ['check.warned', undefined, 'warning', 3],
    ['check.up', 5, 'white_check_mark', 3],
    ['check.up', 2, 'white_check_mark', 2],
    ['check.paused', 1, 'information_source', 1],
  ])('of %s with the priority %s of the channel has the tag %s and the priority %i', (type, given, tag, priority) => {
    const own = given === undefined ? settings : { ...settings, priority: given }
    expect(renderMessage(aFlipEvent({ type }), links, own)).toMatchObject({ tags: [tag], priority })
  })
})

describe('a digest to ntfy', () => {
  it('names each check, and links to all', () => {
    const { message, ...others } = renderDigest(crowd, links, { ...settings, priority: 5 })
    const lines = message.split('\n')
    expect(lines[0]).toBe('Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC')
    expect(lines[20]).toBe('Job 21 is up again after 1 min: The job reported a success at 2026-11-21 03:00:00 UTC')
    expect(lines).toHaveLength(21)
    expect(others).toEqual({
      topic: 'heartbeat',
      title: '21 checks: 20 down, 1 up again',
      tags: ['rotating_light'],
      priority: 5,
      click: 'https://heartbeat.example.com/checks',
      actions: [{ action: 'view', label: 'All checks', url: 'https://heartbeat.example.com/checks' }],
    })
  })
})

describe("ntfy's limit", () => {
  const failedWith = (body: string) => renderMessage(aFlipEvent({ lastPing: aLastPing({ body }) }), links, settings)
  const room = LIMIT - Buffer.byteLength(failedWith('x').message) + 1

  it('is of the bytes of the message', () => {
    const { message } = failedWith('x'.repeat(room))
    expect(message).toMatch(/:\nx+$/)
    expect(Buffer.byteLength(message)).toBe(LIMIT)
    // `…` has three bytes.
    expect(failedWith(`${'x'.repeat(room)}END`).message.endsWith(`\n…${'x'.repeat(room - 6)}END`)).toBe(true)
  })

  it('is also of the bytes of the JSON', () => {
    const whole = failedWith('"'.repeat(100))
    const quotes = Math.floor((8_191 - Buffer.byteLength(JSON.stringify(whole))) / 2) + 100
    expect(quotes).toBeLessThan(room)
    expect(failedWith('"'.repeat(quotes)).message).toMatch(/:\n"+$/)
    expect(failedWith('"'.repeat(quotes + 1)).message).toMatch(/:\n…"+$/)
    expect(Buffer.byteLength(JSON.stringify(failedWith('"'.repeat(quotes + 1))))).toBeLessThanOrEqual(8_191)
  })

  it('holds, whatever is in the message', () => {
    const unit = fc.constantFrom('"', '\\', 'x', '\n', '🔥', 'é', '漢', '\u200b')
    const text = (maxLength: number) => fc.string({ unit, maxLength })
    fc.assert(
      fc.property(text(100), text(1_024), text(3_000), text(3_000), (name, detail, body, description) => {
        const facts = { reason: 'failed', detail } as const
        const event = aFlipEvent({
          facts,
          check: { name: [...name].slice(0, 100).join(''), description },
          lastPing: aLastPing({ body }),
        })
        const crowded = aDigest(manyFlipEvents(60, () => ({ facts, check: { name: event.check.name } })))
        for (const message of [renderMessage(event, links, settings), renderDigest(crowded, links, settings)]) {
          expect(Buffer.byteLength(message.message)).toBeLessThanOrEqual(LIMIT)
          expect(Buffer.byteLength(JSON.stringify(message))).toBeLessThan(8_192)
          expect(message.message.isWellFormed()).toBe(true)
        }
      }),
      { numRuns: 40, endOnFailure: true },
    )
  })
})

describe('a request to ntfy', () => {
  it('is JSON to the root of the server, with the token', async () => {
    const { request, digestRequest } = await sendTo(createNtfySender, settings)
    expect(request).toMatchObject({ method: 'POST', url: 'https://ntfy.sh/' })
    expect(request.headers).toEqual({ 'content-type': 'application/json' })
    expect(request.body).toBe(JSON.stringify(renderMessage(everything, links, settings)))
    expect(digestRequest.body).toBe(JSON.stringify(renderDigest(crowd, links, settings)))
    const own = await sendTo(createNtfySender, { ...settings, url: 'https://ntfy.example.com', token: TOKEN })
    expect(own.request.url).toBe('https://ntfy.example.com/')
    expect(own.request.headers).toMatchObject({ authorization: `Bearer ${TOKEN}` })
  })

  const respond = async (code: number, error = 'forbidden') => {
    const status = Math.floor(code / 100)
    return (
      await sendTo(createNtfySender, { ...settings, token: TOKEN }, { status, json: { code, http: status, error } })
    ).outcome
  }

  it.each([
    [40009, 'choose another topic'],
    [40010, 'choose another topic: the server has reserved this one for itself'],
    [
      40101,
      'the token, or the password in url, is not valid or has expired: make another token in the account of ntfy',
    ],
    [40301, 'the topic may not be written to: give the token the right to write, or give a token'],
    [40401, 'url must be the address of an ntfy server'],
  ])('gives up at once after %i', async (code, what) => {
    const status = Math.floor(code / 100)
    const error = expect.stringMatching(new RegExp(`^ntfy\\.sh responded ${status}: .*forbidden.*; ${what}$`))
    expect(await respond(code)).toEqual({ kind: 'rejected', status, error })
  })

  it('waits for an hour when the quota of the day is used up, and as usual at other limits', async () => {
    expect(await respond(42908, 'limit reached: daily message quota reached')).toMatchObject({
      kind: 'retry',
      retryAfterMs: 3_600_000,
    })
    expect(await respond(42901)).not.toHaveProperty('retryAfterMs')
    expect(await respond(50001)).toMatchObject({ kind: 'retry' })
  })

  it.each([40014, 40018, 41303])('is refused as a message: %i', async (code) => {
    expect(await respond(code)).toMatchObject({ kind: 'rejected', isOfMessage: true })
  })

  it('that a proxy refuses is tried again', async () => {
    const { outcome } = await sendTo(createNtfySender, settings, { status: 403, text: 'no' })
    expect(outcome).toMatchObject({ kind: 'retry', isRefusal: true })
  })

  it('never shows the token', async () => {
    for (const code of [40001, 40301, 50001])
      expect(JSON.stringify(await respond(code, `Bearer ${TOKEN}`))).not.toMatch(/s3cret/)
  })
})
