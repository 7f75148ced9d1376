/** A digest by e-mail, as a real SMTP server receives it. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EmailSender } from '../../../src/channels/kinds/email/send.ts'
import type { Digest } from '../../../src/domain/digest.ts'
import { aDigest, manyFlipEvents } from '../../support/events.ts'
import { type SmtpReceiver, startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { aSender, closeSenders } from './mailing.ts'

const REASON = 'No ping came in time: it was due at 2026-11-21 03:00:00 UTC'
const channel = {
  id: '0197a000-0000-7000-8000-000000000005',
  name: 'On call',
  isTrusted: false,
  settings: { kind: 'email' as const, to: ['a@example.com', 'b@example.com'] },
}

let receiver: SmtpReceiver
let sender: EmailSender
beforeAll(async () => {
  receiver = await startSmtpReceiver()
  sender = aSender(`smtp://127.0.0.1:${receiver.port}`)
})
afterAll(async () => {
  closeSenders()
  await receiver.close()
})

const deliver = (digest: Digest) => sender.sendDigest({ channel, digest }, AbortSignal.timeout(10_000))
async function receive(digest: Digest) {
  expect(await deliver(digest)).toMatchObject({ kind: 'delivered', status: 250 })
  return receiver.mails.at(-1)!
}

describe('a digest by e-mail', () => {
  it('names each check with its status, reason and page, and links to the list', async () => {
    const events = manyFlipEvents(2, (number) => (number === 1 ? { type: 'check.up' } : {}))
    const before = receiver.mails.length
    const { headers, text, to } = await receive(aDigest([...events, { ...events[0]!, id: '0', type: 'check.down' }]))
    expect(receiver.mails).toHaveLength(before + 1)
    expect(to).toEqual(['a@example.com', 'b@example.com'])
    expect(text).toBe(`2 checks: 1 down, 1 up again

Job 2 is down
  ${REASON}.
  https://heartbeat.example.com/checks/${events[1]!.check.id}?a=1&b=2

Job 1 is up again
  The job reported a success at 2026-11-21 03:00:00 UTC.
  https://heartbeat.example.com/checks/${events[0]!.check.id}?a=1&b=2

3 events in all: of each check its newest counts.

All checks: https://heartbeat.example.com/checks?a=1&b=2

-- 
Sent by Heartbeat Operator to the channel On call.
`)
    expect(headers).toMatchObject({
      subject: '2 checks: 1 down, 1 up again',
      'message-id': '<0197a000-0000-7000-8000-0000000d19e5@example.com>',
      date: 'Sat, 21 Nov 2026 03:00:01 +0000',
      'auto-submitted': 'auto-generated',
    })
    expect(headers).not.toHaveProperty('references')
  })

  it('contains the same as HTML', async () => {
    const events = manyFlipEvents(51)
    const { html } = await receive(aDigest(events))
    expect(html).toContain('<title>51 checks: 51 down</title>')
    expect(html.match(/<li /g)).toHaveLength(50)
    expect(html).toContain(
      `<a href="https://heartbeat.example.com/checks/${events[0]!.check.id}?a=1&amp;b=2">Job 1</a> is down<br>${REASON}.</li>`,
    )
    expect(html).toContain('<p>And 1 more: 1 down.</p>')
    expect(html).toContain('<a href="https://heartbeat.example.com/checks?a=1&amp;b=2">')
  })

  it.each([
    [21, 21, null],
    [50, 50, null],
    [51, 50, 'And 1 more: 1 down.'],
    [1_000, 50, 'And 950 more: 950 down.'],
  ])('of %i checks names %i, and counts the rest: %s', async (count, named, rest) => {
    const { text, headers } = await receive(aDigest(manyFlipEvents(count)))
    expect(headers.subject).toBe(`${count} checks: ${count} down`)
    expect(text.match(/^Job \d+ is down$/gm)).toHaveLength(named)
    expect(/^And .*$/m.exec(text)?.[0] ?? null).toBe(rest)
  })

  const NASTY = [
    '<script>alert(1)</script>',
    '</li></ul><img src=x onerror=alert(1)>',
    '"quoted" \'quoted\'',
    '=?utf-8?q?a=0D=0ABcc:_evil=40example.com?=',
    'a\u2028Bcc: evil@example.com',
    'two\r\nBcc: evil@example.com',
    '\u200frtl \u202egnp.exe',
  ]
  it.each(NASTY)('escapes names and reasons: %j', async (nasty) => {
    const events = manyFlipEvents(21, () => ({ facts: { reason: 'failed', detail: nasty }, check: { name: nasty } }))
    const { headers, text, html, to, raw } = await receive(aDigest(events))
    expect(headers).not.toHaveProperty('bcc')
    expect(to).toEqual(['a@example.com', 'b@example.com'])
    expect(text.match(/^.* is down$/gm)).toHaveLength(21)
    expect(text).not.toMatch(/^Bcc|\u202e/m)
    expect(new Set(html.match(/<[a-z0-9]+/g))).toEqual(
      new Set(['<html', '<head', '<meta', '<title', '<body', '<h1', '<ul', '<li', '<a', '<br', '<p']),
    )
    for (const line of raw.split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
  })

  it('has the outcome of the server', async () => {
    receiver.answer((stage) => (stage === 'DATA' ? '451 4.3.0 try later' : null))
    const outcome = await deliver(aDigest(manyFlipEvents(21)))
    receiver.answer(() => null)
    expect(outcome).toMatchObject({ kind: 'retry', status: 451 })
    const none = aSender(undefined)
    expect(await none.sendDigest({ channel, digest: aDigest(manyFlipEvents(21)) }, AbortSignal.timeout(1_000))).toEqual(
      {
        kind: 'retry',
        status: null,
        error: expect.stringContaining('SMTP_URL'),
      },
    )
  })
})
