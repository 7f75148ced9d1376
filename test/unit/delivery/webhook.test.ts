import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { afterEach, describe, expect, it } from 'vitest'
import { createHttpClient } from '../../../src/delivery/http.ts'
import { createLinks } from '../../../src/delivery/links.ts'
import type { Attempt } from '../../../src/delivery/outcome.ts'
import { renderPayload } from '../../../src/delivery/payload.ts'
import { createWebhookSender } from '../../../src/delivery/webhook.ts'
import type { SigningSecret } from '../../../src/domain/channel.ts'
import { type Received, startReceiver } from '../../support/receiver.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const links = createLinks(() => 'https://heartbeat.test/api/v1')
const event = { id: '0197a1b2-0000-7000-8000-000000000001', type: 'channel.test', at: Date.UTC(2026, 0, 1) } as const
const makeSecret = () => `whsec_${randomBytes(24).toString('base64')}`

/** The time is the real one unless a test moves it: the package that verifies has no other. */
async function setUp() {
  const receiver = await startReceiver()
  const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'] })
  ends.push(receiver.close, client.close)
  const clock = { now: () => Date.now() }
  const sender = createWebhookSender({ client, clock, links })
  const send = (secrets: readonly SigningSecret[], channel: Partial<Attempt<'webhook'>['channel']> = {}) => {
    const settings = { kind: 'webhook', url: `${receiver.url}/hook`, secrets } as const
    const open = { id: 'c', name: 'Team', isTrusted: false, settings, ...channel }
    return sender({ channel: open, event, checkKey: null }, AbortSignal.timeout(10_000))
  }
  return { receiver, clock, send }
}

const verify = (secret: string, { body, headers }: Received) =>
  new Webhook(secret).verify(body, headers as Record<string, string>)

describe('a webhook', () => {
  it('is posted as JSON, with a signature that the package of the scheme accepts', async () => {
    const { receiver, send } = await setUp()
    const secret = makeSecret()
    expect(await send([{ secret, expiresAt: null }])).toEqual({ kind: 'delivered', status: 204 })
    const [request] = receiver.requests
    expect(request).toMatchObject({
      method: 'POST',
      path: '/hook',
      body: renderPayload(event, links),
      headers: { 'content-type': 'application/json', 'webhook-id': event.id, 'user-agent': 'heartbeat-operator' },
    })
    expect(verify(secret, request!)).toEqual(JSON.parse(renderPayload(event, links)))
  })

  it('is signed by both secrets while both are valid, the newest first', async () => {
    const { receiver, send } = await setUp()
    const [next, last, stranger] = [makeSecret(), makeSecret(), makeSecret()]
    await send([
      { secret: next, expiresAt: null },
      { secret: last, expiresAt: Date.now() + 60_000 },
    ])
    const [request] = receiver.requests
    expect(String(request!.headers['webhook-signature']).split(' ')).toHaveLength(2)
    for (const secret of [next, last]) expect(verify(secret, request!)).toMatchObject({ id: event.id })
    expect(() => verify(stranger, request!)).toThrow('No matching signature')
  })

  it('is not signed by a secret that has expired, from the very millisecond', async () => {
    const { receiver, clock, send } = await setUp()
    const [next, last] = [makeSecret(), makeSecret()]
    const expiresAt = Date.now()
    const secrets = [
      { secret: next, expiresAt: null },
      { secret: last, expiresAt },
    ]
    clock.now = () => expiresAt - 1
    await send(secrets)
    clock.now = () => expiresAt
    await send(secrets)
    const [before, after] = receiver.requests
    expect(verify(last, before!)).toMatchObject({ id: event.id })
    expect(() => verify(last, after!)).toThrow('No matching signature')
    expect(verify(next, after!)).toMatchObject({ id: event.id })
  })

  it('carries in every attempt the same id and bytes, and the time and signature of the attempt', async () => {
    const { receiver, clock, send } = await setUp()
    const secret = makeSecret()
    const first = Date.now()
    for (const now of [first - 0.25, first + 90_000]) {
      clock.now = () => now
      await send([{ secret, expiresAt: null }])
    }
    const [one, two] = receiver.requests
    expect(one!.body).toBe(two!.body)
    expect(one!.headers['webhook-id']).toBe(two!.headers['webhook-id'])
    expect(one!.headers['webhook-timestamp']).toBe(String(Math.floor((first - 0.25) / 1_000)))
    expect(two!.headers['webhook-timestamp']).toBe(String(Math.floor((first + 90_000) / 1_000)))
    for (const request of receiver.requests) expect(verify(secret, request)).toMatchObject({ id: event.id })
  })

  it('that is turned down gives what became of it', async () => {
    const { receiver, send } = await setUp()
    receiver.answer({ status: 410, text: 'gone' })
    expect(await send([{ secret: makeSecret(), expiresAt: null }])).toEqual({
      kind: 'refused',
      status: 410,
      error: `127.0.0.1:${receiver.port} answered 410: gone`,
    })
  })

  it('of a channel that the operator configured may go to a private address', async () => {
    const receiver = await startReceiver()
    const client = createHttpClient({ allowedTargets: [] })
    ends.push(receiver.close, client.close)
    const sender = createWebhookSender({ client, clock: { now: () => Date.now() }, links })
    const settings = {
      kind: 'webhook',
      url: receiver.url,
      secrets: [{ secret: makeSecret(), expiresAt: null }],
    } as const
    const kinds = []
    for (const isTrusted of [true, false]) {
      const channel = { id: 'c', name: 'Team', isTrusted, settings }
      kinds.push((await sender({ channel, event, checkKey: null }, AbortSignal.timeout(10_000))).kind)
    }
    expect(kinds).toEqual(['delivered', 'refused'])
    expect(receiver.requests).toHaveLength(1)
  })

  it('without a secret that is valid is not sent', async () => {
    const { receiver, send } = await setUp()
    expect(await send([{ secret: makeSecret(), expiresAt: 1 }])).toEqual({
      kind: 'refused',
      status: null,
      error: 'the channel has no secret left to sign with; rotate its secret',
    })
    expect(receiver.requests).toEqual([])
  })
})
