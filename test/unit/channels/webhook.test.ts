import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import { createWebhookSender } from '../../../src/channels/kinds/webhook/send.ts'
import { makeSecret, type SigningSecret } from '../../../src/channels/kinds/webhook/signature.ts'
import type { HttpRequest, HttpResponse } from '../../../src/delivery/http.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'

const links = createLinks(() => 'https://heartbeat.test/api/v1')
const event = { id: '0197a1b2-0000-7000-8000-000000000001', type: 'channel.test', at: Date.UTC(2026, 0, 1) } as const
const URL = 'https://hooks.test/hook'

/** The time is the real one unless a test moves it: the library that verifies has no other. */
function setUp(response: Partial<HttpResponse> = {}) {
  const client = createFakeHttpClient(response)
  const { requests } = client
  const clock = { now: () => Date.now() }
  const sender = createWebhookSender({ client, clock, links })
  const send = (secrets: readonly SigningSecret[], isTrusted = false) => {
    const settings = { kind: 'webhook', url: URL, secrets } as const
    const channel = { id: 'c', name: 'Team', isTrusted, settings }
    return sender({ channel, event, checkKey: null }, AbortSignal.timeout(10_000))
  }
  return { requests, clock, send }
}

const valid = () => ({ secret: makeSecret(), expiresAt: null })
const verify = ({ secret }: SigningSecret, { body, headers }: HttpRequest) =>
  new Webhook(secret).verify(body!, headers!)

describe('a webhook', () => {
  it.each([true, false])(
    'is posted as signed JSON, to an address that is as trusted as its channel: %s',
    async (isTrusted) => {
      const { requests, send } = setUp()
      const secret = valid()
      expect(await send([secret], isTrusted)).toEqual({ kind: 'delivered', status: 200 })
      expect(requests).toMatchObject([
        {
          method: 'POST',
          url: URL,
          isTrusted,
          body: renderPayload(event, links),
          headers: { 'content-type': 'application/json', 'webhook-id': event.id },
        },
      ])
      expect(verify(secret, requests[0]!)).toEqual(JSON.parse(renderPayload(event, links)))
    },
  )

  it('is signed by each secret until the millisecond in which it expires', async () => {
    const { requests, clock, send } = setUp()
    const expiresAt = Date.now()
    const [next, last] = [valid(), { secret: makeSecret(), expiresAt }]
    for (const now of [expiresAt - 1, expiresAt]) {
      clock.now = () => now
      await send([next, last])
    }
    const [before, after] = requests
    for (const secret of [next, last]) expect(verify(secret, before!)).toMatchObject({ id: event.id })
    expect(verify(next, after!)).toMatchObject({ id: event.id })
    expect(() => verify(last, after!)).toThrow('No matching signature')
  })

  it('has the same id and bytes in every attempt, and the time and signature of the attempt', async () => {
    const { requests, clock, send } = setUp()
    const secret = valid()
    const first = Date.now()
    for (const now of [first - 0.25, first + 90_000]) {
      clock.now = () => now
      await send([secret])
    }
    const [one, two] = requests.map(({ body, headers }) => ({ body, id: headers!['webhook-id'] }))
    expect(one).toEqual(two)
    expect(requests.map(({ headers }) => headers!['webhook-timestamp'])).toEqual(
      [first - 0.25, first + 90_000].map((ms) => String(Math.floor(ms / 1_000))),
    )
    for (const request of requests) expect(verify(secret, request)).toMatchObject({ id: event.id })
  })

  it('has the outcome of its response', async () => {
    const { send } = setUp({ status: 401, text: 'who' })
    expect(await send([valid()])).toEqual({ kind: 'rejected', status: 401, error: 'hooks.test responded 401: who' })
  })
})
