/** The faults of a service that every kind meets (test/db/delivery/kinds-faults.test.ts): what each answers by HTTP, and by SMTP. */

import type { Received, ReceiverAnswer } from '../receiver.ts'
import type { SmtpStage } from '../smtp-receiver.ts'

export interface Fault {
  readonly http: ReceiverAnswer | ((request: Received) => ReceiverAnswer)
  /** A stage and its answer; null where SMTP has no such fault. */
  readonly smtp: readonly [stage: SmtpStage, answer: string] | null
  /** `retried`: until it is over. `final`: the message is given up at once, and the next one is sent. */
  readonly outcome: 'retried' | 'final' | 'delivered'
  /** What the error of the delivery says. */
  readonly says?: RegExp
}

/** What a proxy or a framework does with an error: it repeats the whole request, with all of its secrets. */
const repeatAs =
  (status: number) =>
  ({ method, path, headers, body }: Received): ReceiverAnswer => ({
    status,
    text: `${method} ${path} failed: ${JSON.stringify(headers)} ${body.slice(0, 500)}`,
  })

const MEGABYTE = 2 ** 20

export const FAULTS: Readonly<Record<string, Fault>> = {
  'fails, and repeats the request': {
    http: repeatAs(500),
    smtp: ['RCPT', '451 4.3.0 Out of disk'],
    outcome: 'retried',
    says: /\b(500|451)\b/,
  },
  'is down for a while': {
    http: { status: 503, headers: { 'content-type': 'text/html' }, text: '<h1>s3cret</h1>' },
    smtp: ['MAIL', '421 4.3.2 Shutting down'],
    outcome: 'retried',
    says: /\b(503|421)\b/,
  },
  'closes the connection': { http: 'reset', smtp: ['RCPT', 'close'], outcome: 'retried', says: /closed/ },
  'is cut off in its answer': {
    http: { raw: 'HTTP/1.1 200 OK\r\nContent-Le' },
    smtp: ['DATA', 'close'],
    outcome: 'retried',
    says: /closed/,
  },
  'never answers': {
    http: 'hang',
    smtp: ['DATA', 'hang'],
    outcome: 'retried',
    says: /no response|in time/,
  },
  'fails with an answer without end': {
    http: { status: 502, body: 'flood', text: 'f'.repeat(MEGABYTE) },
    smtp: ['RCPT', `450 4.7.1 ${'f'.repeat(MEGABYTE)}`],
    outcome: 'retried',
    says: /\b(502|450)\b.*f…/,
  },
  'accepts with an answer without end': { http: { status: 200, body: 'flood' }, smtp: null, outcome: 'delivered' },
  'accepts, and is cut off': { http: { status: 200, body: 'break' }, smtp: null, outcome: 'delivered' },
  'refuses the message': {
    http: repeatAs(422),
    smtp: ['DATA', '554 5.6.0 Not such a mail'],
    outcome: 'final',
    says: /\b(422|554)\b/,
  },
  'leads elsewhere': {
    http: { status: 302, headers: { location: '/s3cret/elsewhere' } },
    smtp: ['RCPT', '551 5.1.6 User has moved'],
    outcome: 'final',
    says: /302: redirects are not followed|\b551\b/,
  },
}
