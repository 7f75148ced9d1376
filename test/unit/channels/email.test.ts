import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { EmailSender } from '../../../src/channels/kinds/email/send.ts'
import type { Event } from '../../../src/domain/event.ts'
import { type Certified, createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'
import { type SmtpReceiver, startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { aSender, authority, closeSenders, deliver, FROM } from './mailing.ts'

const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002?a=1&b=2'
const LOG_IN = { user: 'mailer@example.com', password: 'p/ss: w@rd' }
const CREDENTIALS = `${encodeURIComponent(LOG_IN.user)}:${encodeURIComponent(LOG_IN.password)}`

const certified = signServer(authority, ['127.0.0.1'])
const ca = authority.certificate

afterAll(closeSenders)

describe('a mail', () => {
  let receiver: SmtpReceiver
  let send: EmailSender
  beforeAll(async () => {
    receiver = await startSmtpReceiver()
    send = aSender(`smtp://127.0.0.1:${receiver.port}`)
  })
  afterAll(() => receiver.close())

  const receive = async (event: Event, to?: readonly string[], from?: string) => {
    const sender = from === undefined ? send : aSender(`smtp://127.0.0.1:${receiver.port}`, { from })
    expect(await deliver(sender, event, to)).toMatchObject({ kind: 'delivered', status: 250 })
    return receiver.mails.at(-1)!
  }

  it('contains the event, its reason, its check and the output of the job, as text', async () => {
    const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
    const event = aFlipEvent({ facts: { reason: 'failed' }, check: { kubernetes }, lastPing: aLastPing() })
    const { headers, text } = await receive(event)
    expect(headers.subject).toBe('Nightly backup is down')
    expect(text).toBe(`Nightly backup is down

The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC.
HeartbeatCheck shop/backup in cluster default, project shop.

Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):

disk full

Check: ${LINK}

-- 
Sent by Heartbeat Operator to the channel On call.
`)
  })

  it('contains the same as HTML', async () => {
    const mail = await receive(aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing() }))
    expect(mail.headers['content-type']).toMatch(/^multipart\/alternative/)
    for (const words of [
      '<title>Nightly backup is down</title>',
      'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC.<br>Project shop.',
      '>disk full</pre>',
      '<a href="https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002?a=1&amp;b=2">',
    ])
      expect(mail.html).toContain(words)
  })

  it('contains what else is known, and the description, in both parts', async () => {
    const facts = { last_success_at: '2026-11-20T03:00:05.123Z', usual_ms: 754_000 }
    const check = { description: 'Runbook:\n<https://wiki.example.com>' }
    const mail = await receive(aFlipEvent({ facts, check, lastPing: aLastPing() }))
    expect(mail.text).toContain(
      'due at 2026-11-21 03:00:00 UTC.\nLast success: 2026-11-20 03:00:05 UTC.\nUsual duration: 12 min 34 s.\nProject shop.\n',
    )
    expect(mail.text).toContain('disk full\n\nAbout this check:\n\nRunbook:\n<https://wiki.example.com>\n\nCheck:')
    expect(mail.html).toContain(
      '.<br>Last success: 2026-11-20 03:00:05 UTC.<br>Usual duration: 12 min 34 s.<br>Project shop.</p>',
    )
    expect(mail.html).toContain(
      '>Runbook:\n&lt;<a href="https://wiki.example.com">https://wiki.example.com</a>&gt;</p>',
    )
  })

  it('for a test contains nothing about a check', async () => {
    const { headers, text, html } = await receive(aTestEvent)
    expect(headers.subject).toBe('A test of this channel')
    expect(headers).not.toHaveProperty('references')
    expect(headers).not.toHaveProperty('in-reply-to')
    expect(text + html).not.toMatch(/Check:|<pre|<a |undefined|null/)
  })

  it('is sent once, to all recipients', async () => {
    const before = receiver.mails.length
    const mail = await receive(aFlipEvent(), ['a@example.com', 'b@example.com'])
    expect(receiver.mails).toHaveLength(before + 1)
    expect(mail).toMatchObject({ from: 'heartbeat@example.com', to: ['a@example.com', 'b@example.com'] })
    expect(mail.headers).toMatchObject({ from: FROM, to: 'a@example.com, b@example.com' })
  })

  it('has one id in every attempt, the thread of its check, and asks for no automatic reply', async () => {
    const [first, again] = [await receive(aFlipEvent()), await receive(aFlipEvent())]
    expect(first.headers['message-id']).toBe('<0197a000-0000-7000-8000-000000000001@example.com>')
    expect(again.headers['message-id']).toBe(first.headers['message-id'])
    expect(again.headers.date).toBe('Sat, 21 Nov 2026 03:00:00 +0000')
    const next = await receive(aFlipEvent({ id: '0197a000-0000-7000-8000-00000000000f', type: 'check.up' }))
    expect(next.headers['message-id']).toBe('<0197a000-0000-7000-8000-00000000000f@example.com>')
    for (const { headers } of [first, next])
      expect(headers).toMatchObject({
        references: '<check.0197a000-0000-7000-8000-000000000002@example.com>',
        'in-reply-to': '<check.0197a000-0000-7000-8000-000000000002@example.com>',
        'auto-submitted': 'auto-generated',
      })
  })

  it.each([
    ['jobs@example.org', 'jobs@example.org', 'jobs@example.org', 'example.org'],
    ['"Doe, Jane" <jane@example.org>', '"Doe, Jane" <jane@example.org>', 'jane@example.org', 'example.org'],
    ['Jürgen <j@münchen.example>', 'Jürgen <j@xn--mnchen-3ya.example>', 'j@münchen.example', 'xn--mnchen-3ya.example'],
  ])('comes from %s', async (from, header, address, domain) => {
    const mail = await receive(aFlipEvent(), undefined, from)
    expect(mail.headers.from).toBe(header)
    expect(mail.from).toBe(address)
    expect(mail.headers['message-id']).toBe(`<0197a000-0000-7000-8000-000000000001@${domain}>`)
  })

  const NASTY = [
    '<script>alert(1)</script>',
    '</pre><img src=x onerror=alert(1)>',
    '&lt;b&gt; &amp; &',
    `"quoted" 'quoted' \`quoted\``,
    '=?utf-8?q?a=0D=0ABcc:_evil=40example.com?=',
    '\u200frtl \u202egnp.exe',
    '👩‍👩‍👧‍👦 Größe',
    'a\u2028Bcc: evil@example.com',
    '.',
    'From the start',
    'x'.repeat(2_000),
  ]
  it.each(NASTY)('escapes the name of a check and the output of a job: %s', async (nasty) => {
    const name = nasty.slice(0, 100)
    const event = aFlipEvent({ facts: { reason: 'failed' }, check: { name }, lastPing: aLastPing({ body: nasty }) })
    const mail = await receive(event)
    const [shownName, shownOutput] = [name, nasty].map((text) => text.replaceAll('\u202e', ''))
    expect(mail.headers.subject!.replaceAll('\u200b', '')).toBe(`${shownName!.replace('\u2028', ' ')} is down`)
    expect(Object.keys(mail.headers)).not.toContain('bcc')
    expect(mail.to).toEqual(['ops@example.com'])
    expect(mail.text).toContain(`:\n\n${shownOutput!.replace('\u2028', '\n')}\n\nCheck:`)

    const pre = /<pre[^>]*>([\s\S]*?)<\/pre>/.exec(mail.html)![1]!
    expect(pre).not.toMatch(/[<>"']|&(?!(?:amp|lt|gt|quot|#39);)/)
    const shown = pre.replace(/&(amp|lt|gt|quot|#39);/g, (_, entity: string) => ENTITIES[entity]!)
    expect(shown).toBe(shownOutput!.replace('\u2028', '\n'))
    // No tag but ours, whatever the name.
    expect(new Set(mail.html.match(/<[a-z0-9]+/g))).toEqual(
      new Set(['<html', '<head', '<meta', '<title', '<body', '<h1', '<p', '<br', '<pre', '<a']),
    )
    for (const line of mail.raw.split('\r\n')) expect(line.length).toBeLessThanOrEqual(998)
  })
  const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

  it('is sent over connections that are kept open', async () => {
    const before = receiver.connections().accepted
    for (let count = 0; count < 5; count++) await receive(aFlipEvent())
    expect(receiver.connections().accepted - before).toBeLessThanOrEqual(1)
    await Promise.all(Array.from({ length: 20 }, () => deliver(send)))
    expect(receiver.connections().accepted - before).toBeLessThanOrEqual(5)
  })
})

it('a mail without SMTP_URL is retried, and the error names the variable', async () => {
  const none = aSender(undefined)
  expect(await deliver(none)).toEqual({ kind: 'retry', status: null, error: expect.stringContaining('SMTP_URL') })
})

describe('a log-in', () => {
  it.each([
    ['smtp', false],
    ['smtps', true],
  ])('with %s: uses TLS', async (scheme, isSecure) => {
    await using receiver = await startSmtpReceiver({ certified, isSecure, logIn: LOG_IN })
    const send = aSender(`${scheme}://${CREDENTIALS}@127.0.0.1:${receiver.port}`, { ca })
    expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
    expect(receiver.mails).toMatchObject([{ isEncrypted: true, user: LOG_IN.user }])
    send.close()
  })

  it('is never sent without TLS', async () => {
    await using receiver = await startSmtpReceiver({ logIn: LOG_IN })
    const outcome = await deliver(aSender(`smtp://${CREDENTIALS}@127.0.0.1:${receiver.port}`))
    expect(outcome).toMatchObject({ kind: 'retry', error: expect.stringContaining('does not offer TLS') })
    expect(receiver.mails).toEqual([])
  })

  it('that is rejected is retried, and the error contains no password', async () => {
    await using receiver = await startSmtpReceiver({ certified, logIn: LOG_IN })
    const outcome = await deliver(aSender(`smtp://mailer:hunter2@127.0.0.1:${receiver.port}`, { ca }))
    const error = `127.0.0.1:${receiver.port} rejected the log-in (535): check the user and the password in SMTP_URL`
    expect(outcome).toEqual({ kind: 'retry', status: 535, error })
  })

  it('is optional, and TLS is used when the server offers it', async () => {
    await using receiver = await startSmtpReceiver({ certified })
    const send = aSender(`smtp://127.0.0.1:${receiver.port}`, { ca })
    expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
    expect(receiver.mails).toMatchObject([{ isEncrypted: true, user: null }])
    send.close()
  })
})

describe('TLS without a password', () => {
  const STARTED = { kind: 'delivered', status: 250 }

  it.each<[string, Certified]>([
    ['of an unknown authority', certified],
    ['for another name', signServer(authority, ['mail.example.com'])],
    ['that signed itself', createAuthority('127.0.0.1')],
  ])('takes a certificate %s', async (_, certified) => {
    await using receiver = await startSmtpReceiver({ certified })
    expect(await deliver(aSender(`smtp://127.0.0.1:${receiver.port}`))).toEqual(STARTED)
    expect(receiver.mails).toMatchObject([{ isEncrypted: true }])
  })

  it.each([
    ['responds with 454', '454 4.7.0 TLS not available', 1],
    ['responds with 502', '502 5.5.1 not implemented', 1],
    ['closes the connection', 'close', 2],
    ['closes the connection before it answers', 'drop', 2],
    ['responds with 421', '421 4.3.2 closing', 2],
  ])('is left out by a server that offers it and %s', async (_, startTls, connections) => {
    await using receiver = await startSmtpReceiver({ certified, startTls })
    expect(await deliver(aSender(`smtp://127.0.0.1:${receiver.port}`))).toEqual(STARTED)
    expect(receiver.mails).toMatchObject([{ isEncrypted: false }])
    expect(receiver.connections().accepted).toBe(connections)
  })

  it.each([
    ['that does not offer it', {}, /does not offer TLS, which SMTP_TLS=required requires/],
    [
      'that cannot begin it',
      { certified, startTls: '454 4.7.0 no TLS now' },
      /SMTP_TLS=required requires: 454 .* no TLS now$/,
    ],
    ['that breaks it off', { certified, startTls: 'close' }, /\(ECONNRESET\)$/],
    ['that closes at it', { certified, startTls: 'drop' }, /closed the connection$/],
    ['with a certificate of an unknown authority', { certified }, /no known authority/],
  ])('is demanded by SMTP_TLS=required from a server %s', async (_, options, error) => {
    await using receiver = await startSmtpReceiver(options)
    const sender = aSender(`smtp://127.0.0.1:${receiver.port}`, { isTlsRequired: true })
    expect(await deliver(sender)).toMatchObject({ kind: 'retry', error: expect.stringMatching(error) })
    expect(receiver.mails).toEqual([])
  })

  it('is used by SMTP_TLS=required with a certificate that is valid', async () => {
    await using receiver = await startSmtpReceiver({ certified })
    const sender = aSender(`smtp://127.0.0.1:${receiver.port}`, { isTlsRequired: true, ca })
    expect(await deliver(sender)).toEqual(STARTED)
    expect(receiver.mails).toMatchObject([{ isEncrypted: true }])
  })
})

describe('TLS with a password', () => {
  it('is not begun: the error has what the server says', async () => {
    await using receiver = await startSmtpReceiver({ certified, logIn: LOG_IN, startTls: '454 4.7.0 no TLS now' })
    expect(await deliver(aSender(`smtp://${CREDENTIALS}@127.0.0.1:${receiver.port}`, { ca }))).toEqual({
      kind: 'retry',
      status: 454,
      error: `127.0.0.1:${receiver.port} did not begin TLS, which a password in SMTP_URL requires: 454 4.7.0 no TLS now`,
    })
    expect(receiver.mails).toEqual([])
  })
})

it.each([
  ['heartbeat.example.com', 'heartbeat.example.com'],
  ['[192.0.2.1]', '[192.0.2.1]'],
])('the client calls itself %s', async (name, expected) => {
  await using receiver = await startSmtpReceiver()
  await deliver(aSender(`smtp://127.0.0.1:${receiver.port}`, { name }))
  expect(receiver.mails).toMatchObject([{ clientName: expected }])
})

describe('a certificate', () => {
  it.each([
    ['smtp', false, `${CREDENTIALS}@`],
    ['smtps', true, ''],
  ])('of an unknown authority is rejected with %s:', async (scheme, isSecure, logIn) => {
    await using receiver = await startSmtpReceiver({ certified, isSecure })
    const outcome = await deliver(aSender(`${scheme}://${logIn}127.0.0.1:${receiver.port}`))
    const error = expect.stringMatching(/ no known authority has signed: NODE_EXTRA_CA_CERTS .* \([A-Z_]+\)$/)
    expect(outcome).toEqual({ kind: 'retry', status: null, error })
    expect(receiver.mails).toEqual([])
  })

  it('for another name is rejected', async () => {
    await using receiver = await startSmtpReceiver({ certified: signServer(authority, ['mail.example.com']) })
    const error = expect.stringContaining('presents a certificate for another name')
    const sender = aSender(`smtp://${CREDENTIALS}@127.0.0.1:${receiver.port}`, { ca })
    expect(await deliver(sender)).toMatchObject({ kind: 'retry', error })
  })
})
