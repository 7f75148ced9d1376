/** A program of a user that takes webhooks, and verifies them by the library of Standard Webhooks. */

import { Webhook } from 'standardwebhooks'
import { demand, startHttpService } from './service.ts'

const SECRET = `whsec_${Buffer.from('the s3cret of a webhook').toString('base64')}`

/** @param verify false where the clock of the test is not that of the library. */
export const startWebhook = () =>
  startHttpService({
    settingsAt: (url) => ({
      kind: 'webhook',
      url: `${url.replace('//', '//robot:s3cret@')}/hook?token=s3cret`,
      secrets: [{ secret: SECRET, expiresAt: null }],
    }),
    accept({ headers, body }) {
      const id = headers['webhook-id'] as string
      const at = Number(headers['webhook-timestamp'])
      demand(new Webhook(SECRET).sign(id, new Date(at * 1_000), body) === headers['webhook-signature'], 'bad signature')
      return { status: 204 }
    },
    keyOf: ({ headers }) => headers['webhook-id'] as string,
    tooMany: { status: 429, headers: { 'retry-after': '60' }, text: 'slow down' },
    tooManyMs: 60_000,
    gone: { status: 410, text: 'Gone: /hook?token=s3cret' },
    isGoneAtOnce: false,
  })
