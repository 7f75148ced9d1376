/** Signatures of webhooks (Standard Webhooks, https://www.standardwebhooks.com, "Signature scheme", symmetric). */

import { createHmac } from 'node:crypto'

export interface Signable {
  /** The header webhook-id. */
  readonly id: string
  /** The header webhook-timestamp: seconds since the epoch, of the attempt. */
  readonly atSeconds: number
  /** As it is sent, to the byte. */
  readonly body: string
  /** `whsec_` and the key in base64, each. */
  readonly secrets: readonly string[]
}

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/

/**
 * The header webhook-signature: `v1,<base64>` for each secret, separated by spaces; a receiver is content with one that fits.
 * Throws an Error, which does not quote it, for a secret of another form.
 */
export function sign({ id, atSeconds, body, secrets }: Signable): string {
  return secrets
    .map((secret) => {
      const [, base64] = SECRET.exec(secret) ?? []
      if (base64 === undefined) throw new Error('the secret of a webhook is not whsec_ and a key in base64')
      const mac = createHmac('sha256', Buffer.from(base64, 'base64')).update(`${id}.${atSeconds}.${body}`)
      return `v1,${mac.digest('base64')}`
    })
    .join(' ')
}
