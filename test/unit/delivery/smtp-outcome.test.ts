import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EmailSender } from '../../../src/delivery/email.ts'
import { judgeFailure, type SmtpError } from '../../../src/delivery/smtp-outcome.ts'
import { aFlipEvent } from '../../support/events.ts'
import { type SmtpReceiver, type SmtpStage, startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { aSender, closeSenders, deliver } from './mailing.ts'

afterAll(closeSenders)

describe('the table of retries', () => {
  let receiver: SmtpReceiver
  let send: EmailSender
  beforeAll(async () => {
    receiver = await startSmtpReceiver()
  })
  // Its connections are counted.
  afterEach(() => send.close())
  afterAll(() => receiver.close())

  const answering = (how: (stage: SmtpStage, address: string) => string | null) => {
    receiver.answer(how)
    send = aSender(`smtp://127.0.0.1:${receiver.port}`)
  }

  const rows: [SmtpStage, string, 'retry' | 'refused', string][] = [
    ['CONNECT', '421 4.3.2 Too many connections', 'retry', ': 421 4.3.2 Too many connections'],
    ['CONNECT', '554 5.3.2 No service', 'retry', ': 554 5.3.2 No service'],
    ['MAIL', '451 4.3.0 Later', 'retry', 'does not take mail from the address in SMTP_FROM: 451 4.3.0 Later'],
    ['MAIL', '553 5.7.1 Not yours', 'retry', 'does not take mail from the address in SMTP_FROM: 553 5.7.1 Not yours'],
    ['RCPT', '450 4.2.0 Greylisted', 'retry', 'refuses every recipient: 450 4.2.0 Greylisted'],
    ['RCPT', '550 5.1.1 No such user', 'refused', 'refuses every recipient: 550 5.1.1 No such user'],
    ['DATA', '452 4.3.1 Disk full', 'retry', 'refuses the mail: 452 4.3.1 Disk full'],
    ['DATA', '554 5.7.1 Spam', 'refused', 'refuses the mail: 554 5.7.1 Spam'],
    ['DATA', '503 5.5.1 Out of turn', 'retry', 'refuses the mail: 503 5.5.1 Out of turn'],
  ]
  it.each(rows)('%s answered %s: %s', async (stage, answer, kind, words) => {
    answering((at) => (at === stage ? answer : null))
    const before = receiver.mails.length
    expect(await deliver(send)).toEqual({
      kind,
      status: Number(answer.slice(0, 3)),
      error: expect.stringMatching(new RegExp(`^127\\.0\\.0\\.1:${receiver.port} .*${words}$`)),
    })
    expect(receiver.mails).toHaveLength(before)
  })

  it('a refusal is over with its mail: the next is delivered', async () => {
    answering((stage, address) => (stage === 'RCPT' && address === 'gone@example.com' ? '550 5.1.1 Gone' : null))
    expect(await deliver(send, aFlipEvent(), ['gone@example.com'])).toMatchObject({ kind: 'refused' })
    expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
  })

  it('some recipients refused: delivered, and how many were refused is told', async () => {
    answering((stage, address) =>
      stage === 'RCPT' && /^[bc]@/.test(address) ? `550 5.1.1 <${address}> unknown` : null,
    )
    const outcome = await deliver(send, aFlipEvent(), ['a@example.com', 'b@example.com', 'c@example.com'])
    expect(outcome).toEqual({
      kind: 'delivered',
      status: 250,
      note: `127.0.0.1:${receiver.port} refused 2 of 3 recipients: 550 5.1.1 <…@example.com> unknown`,
    })
    expect(receiver.mails.at(-1)!.to).toEqual(['a@example.com'])
  })

  it('every recipient refused, one of them only for now: retry', async () => {
    answering((stage, address) =>
      stage !== 'RCPT' ? null : address === 'b@example.com' ? '450 4.2.0 Later' : '550 5.1.1 Gone',
    )
    const to = ['a@example.com', 'b@example.com', 'c@example.com']
    expect(await deliver(send, aFlipEvent(), to)).toMatchObject({ kind: 'retry' })
    expect(await deliver(send, aFlipEvent(), ['a@example.com', 'c@example.com'])).toMatchObject({ kind: 'refused' })
  })

  it('a long answer over several lines is cut, and its addresses lose their owners', async () => {
    answering((stage) =>
      stage === 'DATA' ? `554 5.7.1 <ops@example.com>: "Jane" jane.doe@example.org\u0007 ${'é'.repeat(400)}` : null,
    )
    const outcome = await deliver(send)
    if (outcome.kind !== 'refused') throw new Error(`it is ${outcome.kind}`)
    expect(outcome.error).toContain('<…@example.com>: "Jane" …@example.org é')
    expect(outcome.error).not.toMatch(/\p{Cc}|ops@|jane\.doe/u)
    const quoted = outcome.error.slice(outcome.error.indexOf('554'))
    expect([...quoted]).toHaveLength(200)
    expect(quoted).toMatch(/é…$/)
  })

  it('a closed sender: retry, and nothing is sent', async () => {
    answering(() => null)
    expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
    const before = receiver.mails.length
    send.close()
    expect(await deliver(send)).toEqual({
      kind: 'retry',
      status: null,
      error: expect.stringContaining('the service is stopping'),
    })
    expect(receiver.mails).toHaveLength(before)
  })

  it.each(['CONNECT', 'MAIL', 'RCPT', 'DATA'] as const)(
    '%s never answered: retry when the signal says so',
    async (stage) => {
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>()
      answering((at) => {
        if (at !== stage) return null
        reach()
        return 'hang'
      })
      const stopping = new AbortController()
      const outcome = deliver(send, aFlipEvent(), ['ops@example.com'], stopping.signal)
      await reached
      stopping.abort()
      expect(await outcome).toEqual({
        kind: 'retry',
        status: null,
        error: `127.0.0.1:${receiver.port} did not take the mail in time`,
      })
      // What was given up does not go out later, behind the retry's back.
      await expect.poll(() => receiver.connections().open).toBe(0)
      receiver.answer(() => null)
      const before = receiver.mails.length
      expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
      expect(receiver.mails).toHaveLength(before + 1)
    },
  )

  it('waiting for a connection of the pool when the signal says so: retry, and it is not sent later', async () => {
    let hanging = 0
    const { promise: full, resolve: fill } = Promise.withResolvers<void>()
    answering((at) => {
      if (at !== 'DATA') return null
      hanging += 1
      if (hanging === 5) fill()
      return 'hang'
    })
    const stopping = new AbortController()
    const others = Array.from({ length: 5 }, () => deliver(send, aFlipEvent(), ['x@example.com'], stopping.signal))
    await full
    const waiting = new AbortController()
    const late = deliver(send, aFlipEvent(), ['late@example.com'], waiting.signal)
    waiting.abort()
    expect(await late).toMatchObject({ kind: 'retry', error: expect.stringContaining('did not take the mail in time') })
    receiver.answer(() => null)
    stopping.abort()
    await Promise.all(others)
    expect(await deliver(send)).toMatchObject({ kind: 'delivered' })
    expect(receiver.mails.filter(({ to }) => to.includes('late@example.com'))).toEqual([])
  })

  it('aborted before it began: retry', async () => {
    answering(() => null)
    const before = receiver.mails.length
    expect(await deliver(send, aFlipEvent(), ['a@example.com'], AbortSignal.abort())).toMatchObject({ kind: 'retry' })
    expect(receiver.mails).toHaveLength(before)
  })
})

describe('a server that is none', () => {
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

  it('refuses connections: retry', async () => {
    const port = await listen(() => {})
    await new Promise((resolve) => servers.pop()!.close(resolve))
    expect(await deliver(aSender(`smtp://127.0.0.1:${port}`))).toEqual({
      kind: 'retry',
      status: null,
      error: `127.0.0.1:${port} refuses connections: does it run, and is the port in SMTP_URL right? (ECONNREFUSED)`,
    })
  })

  it('has no address: retry', async () => {
    expect(await deliver(aSender('smtp://user:hunter2@mail.invalid'))).toEqual({
      kind: 'retry',
      status: null,
      error: expect.stringMatching(/^mail\.invalid:587 (has no address|could not be looked up)/),
    })
  })

  it('closes every connection: retry', async () => {
    const port = await listen((socket) => socket.end())
    expect(await deliver(aSender(`smtp://127.0.0.1:${port}`))).toMatchObject({
      kind: 'retry',
      status: null,
      error: `127.0.0.1:${port} closed the connection`,
    })
  })

  it('resets every connection: retry', async () => {
    const port = await listen((socket) => socket.resetAndDestroy())
    expect(await deliver(aSender(`smtp://127.0.0.1:${port}`))).toMatchObject({
      kind: 'retry',
      status: null,
      error: `127.0.0.1:${port} broke the connection off (ECONNRESET)`,
    })
  })

  it('speaks HTTP: retry', async () => {
    const port = await listen((socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    expect(await deliver(aSender(`smtp://127.0.0.1:${port}`))).toMatchObject({
      kind: 'retry',
      error: expect.stringContaining('does not answer as an SMTP server should'),
    })
  })

  it('speaks no TLS where smtps: wants it: retry', async () => {
    const port = await listen((socket) => socket.write('220 mail.example.com ESMTP\r\n'))
    expect(await deliver(aSender(`smtps://127.0.0.1:${port}`))).toMatchObject({
      kind: 'retry',
      error: expect.stringContaining('does not speak TLS as expected'),
    })
  })
})

/** What would take longer than a test may, or another network: by the errors that nodemailer gives. */
describe('a failure of the connection', () => {
  const rows: [SmtpError, string][] = [
    [{ code: 'ETIMEDOUT', command: 'CONN' }, 'does not answer in time'],
    [{ code: 'EDNS', originalCode: 'ENOTFOUND' }, 'has no address: is the name in SMTP_URL right? (ENOTFOUND)'],
    [
      { code: 'EDNS', originalCode: 'EAI_AGAIN' },
      'could not be looked up: the name servers gave no answer (EAI_AGAIN)',
    ],
    [{ code: 'EDNS' }, 'could not be looked up (EDNS)'],
    [{ code: 'ESOCKET', originalCode: 'CERT_HAS_EXPIRED' }, 'shows a certificate that has expired (CERT_HAS_EXPIRED)'],
    [
      { code: 'ESOCKET', originalCode: 'ENETUNREACH' },
      'cannot be reached from here: there is no way to its network (ENETUNREACH)',
    ],
    [{ code: 'ENOAUTH' }, 'refuses the log-in: check the user and the password in SMTP_URL'],
    [{ code: 'ESOMETHING' }, 'took no mail (ESOMETHING)'],
    [{}, 'took no mail (unknown)'],
  ]
  it.each(rows)('%j: retry', (error, words) => {
    expect(judgeFailure(error, 'mail.example.com:587')).toEqual({
      kind: 'retry',
      status: null,
      error: `mail.example.com:587 ${words}`,
    })
  })

  it('that nodemailer finds in the mail itself is final', () => {
    expect(judgeFailure({ code: 'EENVELOPE', command: 'API' }, 'mail.example.com:587')).toEqual({
      kind: 'refused',
      status: null,
      error: 'mail.example.com:587 refuses the mail',
    })
  })
})
