/** A mail server: SMTP by the library smtp-server. */

import { startSmtpReceiver } from '../smtp-receiver.ts'
import type { Service } from './service.ts'

const ANSWERS = {
  'too many': '450 4.7.1 Too many mails',
  gone: '550 5.1.1 No such user',
} as const

export async function startEmail(): Promise<Service & { readonly smtpPort: number }> {
  const server = await startSmtpReceiver()
  /** Mails that began. */
  let senders = 0
  return {
    smtpPort: server.port,
    settings: { kind: 'email', to: ['ops@example.com'] } as Service['settings'],
    settingsAt: undefined,
    tooManyMs: null,
    isGoneAtOnce: true,
    get accepted() {
      return server.mails.map(({ headers, text }) => `${headers.subject}\n${text}`)
    },
    get keys() {
      return server.mails.map(({ headers }) => headers['message-id']!)
    },
    refused: [],
    requests: () => senders,
    become(how) {
      const [at, answer] = typeof how === 'string' ? ['RCPT', how === 'well' ? null : ANSWERS[how]] : how.smtp!
      server.answer((stage) => {
        if (stage === 'MAIL') senders += 1
        return stage === at ? answer : null
      })
    },
    limit: undefined,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
