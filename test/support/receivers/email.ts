/** A mail server: SMTP by the library smtp-server. */

import { startSmtpReceiver } from '../smtp-receiver.ts'
import type { Service } from './service.ts'

const ANSWERS = {
  'too many': '450 4.7.1 Too many mails',
  gone: '550 5.1.1 No such user',
  broken: '451 4.3.0 Out of disk',
  away: '421 4.3.2 Shutting down',
} as const

export async function startEmail(): Promise<Service & { readonly smtpPort: number }> {
  const server = await startSmtpReceiver()
  return {
    smtpPort: server.port,
    settings: { kind: 'email', to: ['ops@example.com'] } as Service['settings'],
    tooManyMs: null,
    isGoneAtOnce: true,
    get accepted() {
      return server.mails.map(({ headers, text }) => `${headers.subject}\n${text}`)
    },
    refused: [],
    become: (mood) => server.answer((stage) => (mood === 'well' || stage !== 'RCPT' ? null : ANSWERS[mood])),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
