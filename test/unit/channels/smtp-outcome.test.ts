/** Outcomes of mails: of a server's responses over SMTP, of failures by the errors of nodemailer. */

import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EmailSender } from '../../../src/channels/kinds/email/send.ts'
import { judgeFailure, type SmtpError } from '../../../src/channels/kinds/email/smtp-outcome.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'
import { aFlipEvent } from '../../support/events.ts'
import { type SmtpReceiver, type SmtpStage, startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { eventually } from '../../support/until.ts'
import { aSender, closeSenders, deliver } from './mailing.ts'

afterAll(closeSenders)

let receiver: SmtpReceiver
/** Shared: each new connection of the receiver takes 100 ms. */
let send: EmailSender
const newSender = () => aSender(`smtp://127.0.0.1:${receiver.port}`)
beforeAll(async () => {
  receiver = await startSmtpReceiver()
  send = newSender()
})
afterEach(() => receiver.answer(() => null))
afterAll(() => receiver.close())

describe('a response of the server', () => {
  it.each<[SmtpStage, string, 'retry' | 'rejected', string]>([
    ['CONNECT', '421 4.3.2 Too many connections', 'retry', ': 421 4.3.2 Too many connections'],
    ['CONNECT', '554 5.3.2 No service', 'retry', ': 554 5.3.2 No service'],
    ['MAIL', '451 4.3.0 Later', 'retry', 'rejected the sender address in SMTP_FROM: 451 4.3.0 Later'],
    ['MAIL', '553 5.7.1 Not yours', 'retry', 'rejected the sender address in SMTP_FROM: 553 5.7.1 Not yours'],
    ['RCPT', '450 4.2.0 Greylisted', 'retry', 'rejected every recipient: 450 4.2.0 Greylisted'],
    ['RCPT', '550 5.1.1 No such user', 'rejected', 'rejected every recipient: 550 5.1.1 No such user'],
    ['DATA', '452 4.3.1 Disk full', 'retry', 'rejected the mail: 452 4.3.1 Disk full'],
    ['DATA', '554 5.7.1 Spam', 'rejected', 'rejected the mail: 554 5.7.1 Spam'],
    ['DATA', '503 5.5.1 Out of turn', 'retry', 'rejected the mail: 503 5.5.1 Out of turn'],
  ])('%s: %s has the outcome %s', async (stage, response, kind, words) => {
    receiver.answer((at) => (at === stage ? response : null))
    const before = receiver.mails.length
    expect(await deliver(stage === 'CONNECT' ? newSender() : send)).toEqual({
      kind,
      ...(kind === 'rejected' && stage === 'DATA' ? { isOfMessage: true } : {}),
      status: Number(response.slice(0, 3)),
      error: expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:${receiver.port} .*${words}$`)),
    })
    expect(receiver.mails).toHaveLength(before)
    receiver.answer(() => null)
    if (stage !== 'CONNECT') expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
  })

  it('that rejects some recipients has the outcome delivered, with a note', async () => {
    receiver.answer((stage, address) =>
      stage === 'RCPT' && /^[bc]@/.test(address) ? `550 5.1.1 <${address}> unknown` : null,
    )
    expect(await deliver(send, aFlipEvent(), ['a@example.com', 'b@example.com', 'c@example.com'])).toEqual({
      kind: 'delivered',
      status: 250,
      note: `127.0.0.1:${receiver.port} rejected 2 of 3 recipients: 550 5.1.1 <…@example.com> unknown`,
    })
    expect(receiver.mails.at(-1)!.to).toEqual(['a@example.com'])
  })

  it('that rejects every recipient, one of them for now, is retried', async () => {
    receiver.answer((stage, address) =>
      stage !== 'RCPT' ? null : address === 'b@example.com' ? '450 4.2.0 Later' : '550 5.1.1 Gone',
    )
    const to = ['a@example.com', 'b@example.com', 'c@example.com']
    expect(await deliver(send, aFlipEvent(), to)).toMatchObject({ kind: 'retry' })
    expect(await deliver(send, aFlipEvent(), ['a@example.com', 'c@example.com'])).toMatchObject({ kind: 'rejected' })
  })

  it('that is long is cut, and its addresses lose their owners', async () => {
    receiver.answer((stage) =>
      stage === 'DATA' ? `554 5.7.1 <ops@example.com>: "Jane" jane.doe@example.org\u0007 ${'é'.repeat(400)}` : null,
    )
    const outcome = await deliver(send)
    if (outcome.kind !== 'rejected') throw new Error(`it is ${outcome.kind}`)
    expect(outcome.error).toContain('<…@example.com>: "Jane" …@example.org é')
    expect(outcome.error).not.toMatch(/\p{Cc}|ops@|jane\.doe/u)
    const quoted = outcome.error.slice(outcome.error.indexOf('554 5.7.1'))
    expect([...quoted]).toHaveLength(200)
    expect(quoted).toMatch(/é…$/)
  })
})

describe('a mail', () => {
  const lateError = ({ port }: SmtpReceiver) => `127.0.0.1:${port} did not accept the mail in time`

  it.each(['CONNECT', 'MAIL', 'RCPT', 'DATA'] as const)(
    'without a response to %s is retried when the signal aborts, and not sent later',
    async (stage) => {
      // A receiver of its own: at the shared one, connections of other tests may still be closing.
      await using own = await startSmtpReceiver()
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
      own.answer((at) => {
        if (at !== stage) return null
        reach()
        return 'hang'
      })
      const sender = aSender(`smtp://127.0.0.1:${own.port}`)
      const timeout = new AbortController()
      const outcome = deliver(sender, aFlipEvent(), ['ops@example.com'], timeout.signal)
      await reached
      timeout.abort()
      expect(await outcome).toEqual({ kind: 'retry', status: null, error: lateError(own) })
      await eventually('no connection is open', () => own.connections().open === 0)
      expect(own.mails).toEqual([])
    },
  )

  it('that waits for a connection of the pool is retried when the signal aborts, and not sent later', async () => {
    let hanging = 0
    const { promise: full, resolve: fill } = Promise.withResolvers<void>()
    receiver.answer((at) => {
      if (at !== 'DATA') return null
      hanging += 1
      if (hanging === 5) fill()
      return 'hang'
    })
    const own = newSender()
    const stopping = new AbortController()
    const others = Array.from({ length: 5 }, () => deliver(own, aFlipEvent(), ['x@example.com'], stopping.signal))
    await full
    const waiting = new AbortController()
    const late = deliver(own, aFlipEvent(), ['late@example.com'], waiting.signal)
    waiting.abort()
    expect(await late).toMatchObject({ kind: 'retry', error: lateError(receiver) })
    receiver.answer(() => null)
    stopping.abort()
    await Promise.all(others)
    expect(await deliver(own)).toMatchObject({ kind: 'delivered' })
    expect(receiver.mails.filter(({ to }) => to.includes('late@example.com'))).toEqual([])
  })

  it('whose signal has aborted before is retried, and not sent', async () => {
    const before = receiver.mails.length
    expect(await deliver(send, aFlipEvent(), ['a@example.com'], AbortSignal.abort())).toMatchObject({ kind: 'retry' })
    expect(receiver.mails).toHaveLength(before)
  })
})

describe('a server that does not speak SMTP', () => {
  const servers: Server[] = []
  afterAll(() => {
    for (const server of servers) server.close()
  })

  async function listen(onSocket: (socket: Socket) => void): Promise<number> {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      onSocket(socket)
    })
    servers.push(server)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return (server.address() as { port: number }).port
  }

  it.each<[string, (socket: Socket) => void, string, 'smtp' | 'smtps']>([
    ['closes connections', (socket) => socket.end(), 'closed the connection', 'smtp'],
    ['resets connections', (socket) => socket.resetAndDestroy(), 'before it responded (ECONNRESET)', 'smtp'],
    [
      'speaks HTTP',
      (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
      'does not respond as an SMTP server should',
      'smtp',
    ],
    [
      'speaks no TLS where smtps: needs it',
      (socket) => socket.write('220 mail.example.com ESMTP\r\n'),
      'does not speak TLS as expected',
      'smtps',
    ],
  ])('and %s is retried', async (_, onSocket, words, scheme) => {
    const outcome = await deliver(aSender(`${scheme}://127.0.0.1:${await listen(onSocket)}`))
    expect(outcome).toMatchObject({ kind: 'retry', error: expect.stringContaining(words) })
  })

  it('because it is not running is retried', async () => {
    const port = await listen(() => {})
    await new Promise((resolve) => servers.pop()!.close(resolve))
    const words = 'refused the connection: check that it is running, and the port in SMTP_URL (ECONNREFUSED)'
    const outcome = await deliver(aSender(`smtp://user:hunter2@127.0.0.1:${port}`))
    expect(outcome).toEqual({ kind: 'retry', status: null, error: `127.0.0.1:${port} ${words}` })
  })
})

describe('a response of many characters', () => {
  it('is quoted in a time that does not grow with its length', () => {
    const response = `550 ${'a'.repeat(1_000_000)}`
    const used = startCpuTimer()
    const outcome = judgeFailure({ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 550, response }, 'mail:587')
    expect(used()).toBeLessThan(1_000)
    expect(outcome).toMatchObject({ error: expect.stringMatching(/: 550 a{195}…$/) })
  })
})

describe('an error of nodemailer', () => {
  it.each<[SmtpError, boolean]>([
    [{ code: 'EMESSAGE', command: 'DATA', responseCode: 552 }, true],
    [{ code: 'EMESSAGE', command: 'DATA', responseCode: 554 }, true],
    [{ code: 'EMESSAGE', command: 'DATA', responseCode: 550 }, false],
    [{ code: 'EENVELOPE', command: 'DATA', responseCode: 554 }, false],
    [{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 552 }, false],
    [{ code: 'EENVELOPE', command: 'RCPT TO', responseCode: 554 }, false],
  ])('%j is final, only for this message: %s', (error, isOfMessage) => {
    const outcome = judgeFailure(error, 'mail.example.com:587')
    expect(outcome.kind).toBe('rejected')
    expect('isOfMessage' in outcome).toBe(isOfMessage)
  })

  it.each<[SmtpError, string]>([
    [{ code: 'ETIMEDOUT', command: 'CONN' }, 'did not respond in time'],
    [{ code: 'EDNS', originalCode: 'ENOTFOUND' }, 'has no address: check the host name in SMTP_URL (ENOTFOUND)'],
    [{ code: 'EDNS' }, 'could not be resolved: the name servers did not respond (EDNS)'],
    [{ code: 'ESOCKET', originalCode: 'CERT_HAS_EXPIRED' }, 'presents an expired certificate (CERT_HAS_EXPIRED)'],
    [{ code: 'ETLS', originalCode: 'CERT_HAS_EXPIRED' }, 'presents an expired certificate (CERT_HAS_EXPIRED)'],
    [
      { code: 'ETLS', originalCode: 'ERR_SSL_WRONG_VERSION_NUMBER' },
      'does not speak TLS as expected: smtps: is for port 465, smtp: for 587 and 25 (ERR_SSL_WRONG_VERSION_NUMBER)',
    ],
    [{ code: 'ENOAUTH' }, 'rejected the log-in: check the user and the password in SMTP_URL'],
    [{ code: 'ESOMETHING' }, 'did not accept the mail (ESOMETHING)'],
    [{}, 'did not accept the mail (unknown)'],
  ])('%j is retried', (error, words) => {
    expect(judgeFailure(error, 'mail.example.com:587')).toEqual({
      kind: 'retry',
      status: null,
      error: `mail.example.com:587 ${words}`,
    })
  })

  it('about the mail itself is final', () => {
    expect(judgeFailure({ code: 'EENVELOPE', command: 'API' }, 'mail.example.com:587')).toEqual({
      kind: 'rejected',
      status: null,
      error: 'mail.example.com:587 rejected the mail',
    })
  })
})
