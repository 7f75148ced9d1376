/** The definition of HeartbeatChannel, judged by the API server that enforces it, and by the operator. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HeartbeatChannel, readChannel } from '../../src/operator/schema/channel.ts'
import { cluster } from '../support/cluster.ts'

let namespace: Awaited<ReturnType<typeof cluster.makeNamespace>>
let channels: string

beforeAll(async () => {
  namespace = await cluster.makeNamespace()
  channels = `/apis/heartbeat-operator.io/v1/namespaces/${namespace.name}/heartbeatchannels`
  expect(await create({ slack: { secretRef } }, 'kept', 'fieldValidation=Strict')).toMatchObject({ status: 201 })
})
afterAll(() => namespace[Symbol.asyncDispose]())

const secretRef = { name: 'chat', key: 'value' }
const describeChannel = (spec: object, name: string) => ({
  apiVersion: 'heartbeat-operator.io/v1',
  kind: 'HeartbeatChannel',
  metadata: { name },
  spec,
})
const create = (spec: object, name = 'a', query = 'dryRun=All&fieldValidation=Strict') =>
  cluster.api('POST', `${channels}?${query}`, describeChannel(spec, name))
const isRead = (spec: object) => {
  const read = readChannel(describeChannel(spec, 'a') as unknown as HeartbeatChannel)
  if ('faults' in read) return read
  return read.readConfig(null)
}

const EMAIL = { email: { to: ['ops@example.com'] } }
const WEBHOOK = { webhook: { url: 'https://hooks.example.com/x' } }
const APPRISE = { url: 'https://apprise.example.com' }
const NTFY = { topic: 'ops' }

describe('a spec is accepted', () => {
  it.each([
    [EMAIL],
    [WEBHOOK],
    [{ webhook: { secretRef } }],
    [{ webhook: { ...WEBHOOK.webhook, signingSecretRef: secretRef } }],
    [{ webhook: { secretRef, signingSecretRef: secretRef } }],
    [{ slack: { secretRef } }],
    [{ discord: { secretRef } }],
    [{ teams: { secretRef } }],
    [{ googlechat: { secretRef } }],
    [{ pagerduty: { secretRef, severity: 'error' } }],
    [{ telegram: { secretRef, chatId: -1001234567890, threadId: 42 } }],
    [{ telegram: { secretRef, chatId: '@operations' } }],
    [{ ntfy: NTFY }],
    [{ ntfy: { ...NTFY, secretRef, priority: 5, url: 'https://ntfy.example.com' } }],
    [{ matrix: { secretRef, homeserver: 'https://matrix.example.com', roomId: '!abcdefg:example.com' } }],
    [{ apprise: { ...APPRISE, key: 'ops', tag: 'on-call' } }],
    [{ apprise: { ...APPRISE, secretRef } }],
    [{ alertmanager: { urls: ['https://alertmanager.example.com'], labels: { team: 'shop' } } }],
    [{ displayName: 'On call', events: ['check.down'], muted: true, ...EMAIL }],
  ])('%j', async (spec) => {
    const { status, body } = await create(spec)
    expect(status, JSON.stringify(body)).toBe(201)
    expect(readChannel(describeChannel(spec, 'a') as unknown as HeartbeatChannel)).not.toHaveProperty('faults')
  })
})

describe('a spec is refused', () => {
  it.each([
    ['without a kind', {}, 'must have exactly one of'],
    ['with two kinds', { ...EMAIL, ...WEBHOOK }, 'must have exactly one of'],
    [
      'with the URL of a webhook twice',
      { webhook: { ...WEBHOOK.webhook, secretRef } },
      'must have either url or secretRef',
    ],
    ['without the URL of a webhook', { webhook: {} }, 'must have either url or secretRef'],
    [
      'with services beside a key',
      { apprise: { ...APPRISE, key: 'ops', secretRef } },
      'must have either key or secretRef',
    ],
    ['without services and a key', { apprise: APPRISE }, 'must have either key or secretRef'],
    [
      'with a signing secret in the manifest',
      { webhook: { ...WEBHOOK.webhook, signingSecret: 'whsec_x' } },
      'signingSecret',
    ],
    [
      'with a signing secret without a key',
      { webhook: { ...WEBHOOK.webhook, signingSecretRef: { name: 'a' } } },
      '.key',
    ],
    ['with a signing secret of a chat', { slack: { secretRef, signingSecretRef: secretRef } }, 'signingSecretRef'],
    ['without the Secret of a chat', { slack: {} }, 'secretRef'],
    ['with the token of a bot in the manifest', { telegram: { token: '1:A', chatId: 1, secretRef } }, 'token'],
    ['with a URL that is none', { webhook: { url: 'hooks.example.com' } }, 'webhook.url'],
    ['with a priority that ntfy has not', { ntfy: { ...NTFY, priority: 6 } }, 'ntfy.priority'],
    ['with an event that is none', { events: ['check.moved'], ...EMAIL }, 'events'],
    ['without an event', { events: [], ...EMAIL }, 'events'],
    ['with an event twice', { events: ['check.down', 'check.down'], ...EMAIL }, 'events'],
    ['with a name that is none', { displayName: ' ', ...EMAIL }, 'displayName'],
  ])('%s', async (_, spec, says) => {
    const { status, body } = await create(spec)
    expect([400, 422], JSON.stringify(body)).toContain(status)
    expect(body.message).toContain(says)
    if (!/signing|token/.test(says)) expect(isRead(spec)).toHaveProperty('faults')
  })

  it('when it changes the kind', async () => {
    const change = (spec: object) => cluster.api('PATCH', `${channels}/kept?dryRun=All`, { spec })
    expect(await change({ slack: { secretRef: { name: 'other' } } })).toMatchObject({ status: 200 })
    const { status, body } = await change({ slack: null, ...EMAIL })
    expect(status).toBe(422)
    expect(body.message).toContain(
      'the kind of a channel cannot be changed: delete this HeartbeatChannel and create it again',
    )
  })
})
