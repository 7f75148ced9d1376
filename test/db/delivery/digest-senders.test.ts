/** Digests with the real senders, to real receivers: an HTTP server for Slack and for a webhook, and an SMTP server. */

import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createSenders } from '../../../src/channels/kinds/index.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { createHttpClient } from '../../../src/delivery/http.ts'
import { CHANNEL_KINDS, INCIDENT_KINDS } from '../../../src/domain/channel.ts'
import { DIGEST } from '../../../src/domain/digest.ts'
import { MINUTE } from '../../support/builders.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { type SmtpReceiver, startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { createFixture, createReceiver, type Fixture, keysFrom } from './fixture.ts'

const stack = new AsyncDisposableStack()
let fixture: Fixture
let smtp: SmtpReceiver
let http: Receiver
beforeAll(async () => {
  fixture = stack.use(await createFixture())
  smtp = stack.use(await startSmtpReceiver())
})
afterAll(() => stack.disposeAsync())
beforeEach(async () => {
  await fixture.clear()
  http = stack.use(await startReceiver())
})

function createOutbox() {
  const client = stack.adopt(createHttpClient({ allowedTargets: ['127.0.0.0/8'] }), (opened) => opened.close())
  const senders = createSenders({
    client,
    clock: fixture.clock,
    links: createLinks(() => 'https://heartbeat.example.com/api/v1', true),
    database: fixture.database,
    smtp: { url: `smtp://127.0.0.1:${smtp.port}`, from: 'heartbeat@example.com' },
  })
  for (const sender of Object.values(senders)) stack.defer(() => sender.close?.())
  return { outbox: fixture.createOutbox(createReceiver().send, { senders }), senders }
}

it('a webhook and what keeps incidents get every event, all others get digests', () => {
  const { senders } = createOutbox()
  const alone = CHANNEL_KINDS.filter((kind) => senders[kind].sendDigest === undefined)
  expect(alone).toEqual(CHANNEL_KINDS.filter((kind) => kind === 'webhook' || INCIDENT_KINDS.includes(kind)))
})

it('51 events are one message to Slack, one mail, and 51 requests to a webhook', async () => {
  const channels = [
    await fixture.addChannel({ settings: { kind: 'slack', url: `${http.url}/slack` } }),
    await fixture.addChannel({ settings: { kind: 'email', to: ['ops@example.com'] } }),
    await fixture.addChannel({
      settings: { kind: 'webhook', url: `${http.url}/hook`, secrets: [{ secret: 'whsec_c2VjcmV0', expiresAt: null }] },
    }),
  ]
  for (const channel of channels) await fixture.addEvents(channel, keysFrom(1, 51))
  const before = smtp.mails.length
  await createOutbox().outbox.drain()
  const paths = Map.groupBy(http.requests, ({ path }) => path)
  expect(paths.get('/hook')).toHaveLength(51)
  expect(paths.get('/slack')).toHaveLength(1)
  const message = JSON.parse(paths.get('/slack')![0]!.body)
  expect(message.blocks[0].text.text).toBe('🔴 51 checks: 51 down')
  expect(JSON.stringify(message.blocks)).toContain('<https://heartbeat.example.com/checks|All checks>')
  const [mail, ...others] = smtp.mails.slice(before)
  expect(others).toEqual([])
  expect(mail!.headers.subject).toBe('51 checks: 51 down')
  expect(mail!.text).toContain('And 1 more: 1 down.')
  const rows = await fixture.deliveries()
  const idsOf = (channel: string) =>
    new Set(rows.filter((row) => row.channel_id === channel).map((row) => row.digest_id))
  expect(rows.map(({ status }) => status)).toEqual(Array(153).fill(1))
  const [slack, email, hook] = channels.map((channel) => idsOf(channel!))
  expect([slack!.size, email!.size, hook]).toEqual([1, 1, new Set([null])])
  expect([...slack!, ...email!]).not.toContain(null)
  expect(mail!.headers['message-id']).toBe(`<${[...email!][0]}@example.com>`)
})

it('a receiver that refuses the message of a digest gets its events one by one', async () => {
  const count = DIGEST.crowd + 1
  const [slack, email] = [
    await fixture.addChannel({ settings: { kind: 'slack', url: `${http.url}/slack` } }),
    await fixture.addChannel({ settings: { kind: 'email', to: ['ops@example.com'] } }),
  ]
  for (const channel of [slack, email]) await fixture.addEvents(channel, keysFrom(1, count))
  const before = smtp.mails.length
  http.answer({ status: 400, text: 'invalid_blocks' })
  smtp.answer((stage) => (stage === 'DATA' ? '552 5.3.4 Too large' : null))
  const { outbox } = createOutbox()
  await outbox.run(AbortSignal.abort())
  await outbox.stop()
  http.answer({ status: 200, text: 'ok' })
  smtp.answer(() => null)
  await outbox.drain()
  expect(http.requests).toHaveLength(1 + count)
  expect(smtp.mails).toHaveLength(before + count)
  for (const row of await fixture.deliveries()) expect(row).toMatchObject({ status: 1, attempts: 2, digest_id: null })
})

it('a receiver that is away gets the digest later, no sooner than it asks for', async () => {
  const channel = await fixture.addChannel({ settings: { kind: 'slack', url: `${http.url}/slack` } })
  await fixture.addEvents(channel, keysFrom(1, DIGEST.crowd + 1))
  http.answer({ status: 429, headers: { 'retry-after': '60' }, text: 'slow down' })
  const { outbox } = createOutbox()
  await outbox.drain()
  for (const row of await fixture.deliveries())
    expect(row).toMatchObject({ status: 0, last_status: 429, last_error: expect.stringContaining('slow down') })
  http.answer({ status: 200, text: 'ok' })
  await fixture.clock.advance(MINUTE - 1)
  await outbox.drain()
  expect(http.requests).toHaveLength(1)
  await fixture.clock.advance(1)
  await outbox.drain()
  expect(http.requests).toHaveLength(2)
  for (const row of await fixture.deliveries()) expect(row).toMatchObject({ status: 1, attempts: 2 })
})
