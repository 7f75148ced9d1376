/** HeartbeatChannels: what they declare, what the service sends for them, and what people see. */

import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { listen } from '../support/operator.ts'
import { startReceiver } from '../support/receiver.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { openChannelPlace, slack } from './channel-place.ts'
import { useScene } from './scene.ts'

const t = useScene({ orphanMs: 3_000 }, { ALLOWED_TARGETS: '127.0.0.1/32' })
const receiver = use(startReceiver)
const place = useEach(() => openChannelPlace(t))

const REQUEST = 'heartbeat-operator.io/reconcile-requested-at'

const fail = async (name: string) => {
  const url = await place.checks.pingUrl(name)
  expect((await fetch(`${url}/fail`, { method: 'POST' })).status).toBe(200)
}
// biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
const readAll = async (what: string): Promise<any[]> => (await t.sql(what)).rows

describe('a HeartbeatChannel', () => {
  it('is sent the events of the checks of its namespace, by the URL in its Secret, and of no other one', async () => {
    const other = await openChannelPlace(t)
    await Promise.all([
      place.putSecret('chat', `${receiver.url}/own\n`),
      other.putSecret('chat', `${receiver.url}/other`),
    ])
    await Promise.all([place.makeReady('ops', slack('chat')), other.makeReady('ops', slack('chat'))])
    await place.checks.makeReady('backup')
    expect(await place.channelOf('ops')).toMatchObject({
      kind: 'slack',
      name: 'ops',
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'default', namespace: place.name, name: 'ops' },
      config: { url: `${receiver.url}/…` },
    })
    await fail('backup')
    await eventually('it is delivered', () => receiver.requests.some(({ path }) => path === '/own'))
    await eventually('the status says so', async () => (await place.statusOf('ops')).lastDeliveryTime !== undefined)
    expect(await place.condition('ops', 'Delivering')).toMatchObject({ status: 'True', reason: 'Delivered' })
    expect(await other.condition('ops', 'Delivering')).toMatchObject({ status: 'Unknown', reason: 'NothingSent' })
    expect(receiver.requests.some(({ path }) => path === '/other')).toBe(false)
  })

  it('is read-only in the API, but for a test', async () => {
    await place.putSecret('chat', `${receiver.url}/tested`)
    await place.makeReady('ops', slack('chat'))
    const { channelId } = await place.statusOf('ops')
    const path = `/channels/${channelId}`
    const calls = [
      ['PATCH', path, { name: 'mine' }],
      ['DELETE', path],
      ['DELETE', `${path}?force=true`],
      ['POST', `${path}/rotate-secret`],
    ] as const
    for (const [method, of, body] of calls)
      expect(await t.app.call(method, of, body), `${method} ${of}`).toMatchObject({
        status: 409,
        body: {
          code: 'managed_by_kubernetes',
          error: `channel is managed by HeartbeatChannel ${place.name}/ops in cluster default; change the resource instead`,
        },
      })
    expect(await t.app.call('POST', `${path}/test`)).toMatchObject({ status: 202 })
    await eventually('the test arrives', () => receiver.requests.some((request) => request.path === '/tested'))
  })

  it('follows its specification', async () => {
    await place.putSecret('chat', `${receiver.url}/x`)
    await place.makeReady('ops', slack('chat'))
    const { id } = await place.channelOf('ops')
    await place.apply('ops', {
      displayName: 'The ops',
      events: ['check.down'],
      muted: true,
      afterSeconds: 600,
      ...slack('chat'),
    })
    await place.ready('ops')
    expect(await place.channelOf('ops')).toMatchObject({
      id,
      name: 'The ops',
      events: ['check.down'],
      muted: true,
      after_seconds: 600,
    })
    expect(await place.condition('ops', 'Delivering')).toMatchObject({ status: 'Unknown', reason: 'Muted' })
  })

  it('signs with the secret of a Secret, and with a changed one', async () => {
    const secrets = [24, 64].map((bytes) => `whsec_${randomBytes(bytes).toString('base64')}`)
    const path = `/signed-${place.name}`
    const webhook = { url: receiver.url + path, signingSecretRef: { name: 'signing', key: 'value' } }
    await place.putSecret('signing', `${secrets[0]}\n`)
    await place.makeReady('ops', { webhook })
    const received = () => receiver.requests.filter((request) => request.path === path)
    const isSignedWith = async (secret: string) => {
      const seen = received().length
      await t.app.call('POST', `/channels/${(await place.statusOf('ops')).channelId}/test`)
      await eventually('the test arrives', () => received().length > seen)
      const { headers, body } = received().at(-1)!
      const [id, at] = [headers['webhook-id'], headers['webhook-timestamp']] as [string, string]
      return headers['webhook-signature'] === new Webhook(secret).sign(id, new Date(Number(at) * 1_000), body)
    }
    expect(await isSignedWith(secrets[0]!)).toBe(true)
    await place.patch('secrets', 'signing', { data: { value: Buffer.from(secrets[1]!).toString('base64') } })
    await place.event('ops', 'Updated')
    expect(await isSignedWith(secrets[1]!)).toBe(true)
    await place.apply('ops', { displayName: 'Other', webhook })
    await place.ready('ops')
    expect(await isSignedWith(secrets[1]!), 'after another change').toBe(true)
    const seen = JSON.stringify([await place.get('ops'), await place.channelOf('ops'), await place.events('ops')])
    for (const secret of secrets) expect(seen).not.toContain(secret)
  })

  it.each([
    ['too short', `whsec_${Buffer.alloc(23).toString('base64')}`],
    ['too long', `whsec_${Buffer.alloc(65).toString('base64')}`],
    ['without its beginning', Buffer.alloc(32).toString('base64')],
    ['without its end', `whsec_${Buffer.alloc(32).toString('base64').replace('=', '')}`],
  ])('is stalled by a signing secret %s', async (_, value) => {
    const { log, said, errors } = listen()
    await t.restart({ log })
    await place.putSecret('signing', value)
    const signingSecretRef = { name: 'signing', key: 'value' }
    await place.apply('ops', { webhook: { url: 'https://hooks.example.com/x', signingSecretRef } })
    const message = await place.stalled('ops', 'InvalidSpec')
    expect(message).toBe('the value of the key value of Secret signing must be whsec_ and 24 to 64 bytes in base64')
    await place.event('ops', 'InvalidSpec')
    const seen = JSON.stringify([await place.get('ops'), await place.events('ops'), said, errors])
    expect(seen).not.toContain(value)
  })

  it('notices a changed Secret within a resync', async () => {
    await place.putSecret('chat', `${receiver.url}/before`)
    await place.makeReady('ops', slack('chat'))
    const value = Buffer.from('https://hooks.example.com/after').toString('base64')
    await place.patch('secrets', 'chat', { data: { value } })
    await eventually('the channel has it', async () =>
      (await place.channelOf('ops')).config.url.includes('hooks.example'),
    )
  })

  it('writes nothing while nothing changes', async () => {
    await place.putSecret('chat', `${receiver.url}/x`)
    const { metadata } = await place.makeReady('ops', slack('chat'))
    const sealed = () => readAll('select id, sealed from channels order by id')
    const before = await sealed()
    await t.restart()
    const reads = () =>
      t.cluster.server.requests.filter(({ path }) => path.endsWith(`${place.name}/secrets/chat`)).length
    const from = reads()
    await eventually('it is reconciled three times', () => reads() >= from + 3)
    expect((await place.get('ops')).metadata.resourceVersion).toBe(metadata.resourceVersion)
    expect(await sealed()).toEqual(before)
  })

  it('keeps its id when it is created again, and sends nothing of before', async () => {
    await place.putSecret('chat', `${receiver.url}/again`)
    await place.makeReady('ops', slack('chat'))
    await place.checks.makeReady('backup')
    const { id } = await place.channelOf('ops')
    const sent = async () => (await t.app.call('GET', `/deliveries?channel_id=${id}`)).body.deliveries
    receiver.answer({ status: 500 })
    await fail('backup')
    await eventually('it was tried', async () => (await sent())[0]?.attempts > 0)
    await place.delete('ops')
    expect(await t.app.call('GET', `/channels/${id}`)).toMatchObject({ status: 404 })
    receiver.answer({ status: 200 })
    await place.makeReady('ops', slack('chat'))
    expect((await place.channelOf('ops')).id).toBe(id)
    await place.event('ops', 'Revived')
    expect(await sent()).toEqual([
      expect.objectContaining({ status: 'failed', last_error: 'the channel was removed, and is back since' }),
    ])
    // Of these no one waits, however old they are.
    await t.sql(`update deliveries set created_at = created_at - interval '301 seconds' where channel_id = $1`, id)
    await place.change('ops', { metadata: { annotations: { [REQUEST]: 'now' } } })
    await eventually(
      'it is reconciled',
      async () => (await place.statusOf('ops')).lastHandledReconcileRequest === 'now',
    )
    expect(await place.condition('ops', 'Delivering')).toMatchObject({ status: 'Unknown', reason: 'NothingSent' })
  })

  it('is another channel of the same id when it comes back as another kind', async () => {
    await place.putSecret('chat', `${receiver.url}/kind`)
    await place.makeReady('ops', slack('chat'))
    const { id } = await place.channelOf('ops')
    await t.operator().stop()
    await place.forceAway('ops')
    await place.apply('ops', { webhook: { url: 'https://hooks.example.com/x' } })
    await t.restart()
    await place.makeReady('ops', { webhook: { url: 'https://hooks.example.com/x' } })
    expect(await place.channelOf('ops')).toMatchObject({ id, kind: 'webhook' })
  })

  it('takes its channel along when its finalizer was removed by force', async () => {
    await place.putSecret('chat', `${receiver.url}/orphan`)
    await place.makeReady('ops', slack('chat'))
    const { id } = await place.channelOf('ops')
    await t.operator().stop()
    await place.forceAway('ops')
    await t.restart()
    await eventually('it is gone', async () => (await t.app.call('GET', `/channels/${id}`)).status === 404)
  })

  it('is made again when the database has lost its channel', async () => {
    await place.putSecret('chat', `${receiver.url}/lost`)
    await t.restart({ resyncMs: 3_600_000 })
    await place.makeReady('ops', slack('chat'))
    const { id } = await place.channelOf('ops')
    await t.sql('delete from channels where id = $1', id)
    await eventually('it is back', async () => (await t.app.call('GET', `/channels/${id}`)).status === 200)
    const both = 'with gone as (delete from channels where id = $1) delete from declared_channels where channel_id = $1'
    await t.sql(both, id)
    await eventually('it has another', async () => (await place.statusOf('ops')).channelId !== id)
    expect(await place.channelOf('ops')).toMatchObject({ kind: 'slack' })
    await t.restart()
  })
})

describe('what a person has to correct', () => {
  it('is said of a Secret that is not there, not labelled, or without the key, and noticed by a request', async () => {
    await place.apply('ops', slack('chat'))
    expect(await place.stalled('ops', 'SecretNotFound')).toBe('there is no Secret chat in this namespace: create it')
    await place.putSecret('chat', `${receiver.url}/x`, {})
    const ask = (value: string) => place.change('ops', { metadata: { annotations: { [REQUEST]: value } } })
    await ask('1')
    const isSaid = (text: string) =>
      eventually(text, async () => (await place.condition('ops', 'Ready'))?.message === text)
    await isSaid('Secret chat is not for channels: give it the label heartbeat-operator.io/channel: "true"')
    await place.patch('secrets', 'chat', { metadata: { labels: { 'heartbeat-operator.io/channel': 'true' } } })
    await place.change('ops', { spec: { slack: { secretRef: { name: 'chat', key: 'other' } } } })
    await isSaid('Secret chat has no key other: add it, or name another key')
    await place.apply('ops', slack('chat'))
    await place.ready('ops')
    expect((await place.statusOf('ops')).lastHandledReconcileRequest).toBe('1')
  })

  it('is said without the value of the Secret, anywhere', async () => {
    await place.putSecret('chat', 'geheim is no URL')
    await place.apply('ops', slack('chat'))
    const message = await place.stalled('ops', 'InvalidSpec')
    expect(message).toMatch(/^the value of the key value of Secret chat must be an http or https URL/)
    expect(JSON.stringify([await place.get('ops'), await place.event('ops', 'InvalidSpec')])).not.toContain('geheim')
  })

  it('is said of credentials in a manifest', async () => {
    await place.apply('ops', { ntfy: { topic: 'ops', url: 'https://user:geheim@ntfy.example.com' } })
    expect(await place.stalled('ops', 'InvalidSpec')).toBe(
      'spec.ntfy.url must have no user and password: a manifest is no secret',
    )
    await place.apply('other', { ntfy: { topic: 'ops', url: 'https://:geheim@ntfy.example.com' } })
    expect(await place.stalled('other', 'InvalidSpec')).toContain('must have no user and password')
  })

  it('is said while the project has as many channels as it can have', async () => {
    for (let index = 0; index < 20; index += 1)
      await place.makeReady(`n${index}`, { ntfy: { topic: `topic-${index}` } })
    await place.apply('more', { ntfy: { topic: 'more' } })
    expect(await place.stalled('more', 'ChannelRefused')).toBe(
      'the project has 20 channels, the maximum: remove one first',
    )
    const other = await openChannelPlace(t)
    await other.makeReady('ops', { ntfy: { topic: 'other' } })
    await place.delete('n0')
    await place.ready('more')
  })

  it('is said before the api role has saved its public key, and is over when it has', async () => {
    const key = (await readAll('select sealing_key as key from installation'))[0]!.key
    await t.sql('update installation set sealing_key = null')
    await place.apply('ops', { ntfy: { topic: 'ops' } })
    expect(await place.stalled('ops', 'SealingKeyMissing')).toContain('start its role api (or all)')
    await t.sql('update installation set sealing_key = $1', key)
    await place.ready('ops')
  })
})

describe('Delivering', () => {
  it('is False with the last error when a delivery is five minutes old, and True again', async () => {
    await place.putSecret('chat', `${receiver.url}/broken`)
    await place.makeReady('ops', slack('chat'))
    await place.checks.makeReady('backup')
    receiver.answer({ status: 500 })
    await fail('backup')
    const { id } = await place.channelOf('ops')
    await eventually(
      'it was tried',
      async () => (await t.app.call('GET', `/deliveries?channel_id=${id}`)).body.deliveries[0]?.last_error != null,
    )
    expect(await place.condition('ops', 'Delivering')).toMatchObject({ status: 'Unknown', reason: 'NothingSent' })
    await t.sql(`update deliveries set created_at = created_at - interval '301 seconds' where channel_id = $1`, id)
    await eventually('it is False', async () => (await place.condition('ops', 'Delivering'))?.status === 'False')
    expect((await place.condition('ops', 'Delivering'))!.message).toMatch(/^a delivery of .*: .*500/)
    expect(await place.condition('ops', 'Ready')).toMatchObject({ status: 'True' })
    await place.event('ops', 'NotDelivered')
    receiver.answer({ status: 200 })
    await t.sql('update deliveries set next_attempt_at = now() where status = 0')
    await eventually('it is True', async () => (await place.condition('ops', 'Delivering'))?.status === 'True')
  })
})

describe('the Namespace', () => {
  it('decides the project, and a channel moves with it', async () => {
    await t.app.call('POST', '/projects', { name: 'Payments', slug: 'payments' })
    const { id } = (await t.app.call('GET', '/projects')).body.projects.find(
      ({ slug }: { slug: string }) => slug === 'payments',
    )
    await place.makeReady('ops', { ntfy: { topic: 'ops' } })
    expect((await place.channelOf('ops')).project_id).not.toBe(id)
    await t.cluster.api('PATCH', `/api/v1/namespaces/${place.name}`, {
      metadata: { annotations: { 'heartbeat-operator.io/projects': 'payments' } },
    })
    await eventually('it moves', async () => (await place.channelOf('ops')).project_id === id)
  })

  it('that leaves a project takes along a channel that cannot be declared any more', async () => {
    await t.app.call('POST', '/projects', { name: 'Shared', slug: 'shared' })
    const setProjects = (projects: string | null) =>
      t.cluster.api('PATCH', `/api/v1/namespaces/${place.name}`, {
        metadata: { annotations: { 'heartbeat-operator.io/projects': projects } },
      })
    await setProjects('shared')
    await place.putSecret('chat', `${receiver.url}/x`)
    const { id: shared } = (await t.app.call('GET', '/projects')).body.projects.find(
      ({ slug }: { slug: string }) => slug === 'shared',
    )
    await place.apply('ops', slack('chat'))
    await eventually('it is in the project', async () => (await place.channelOf('ops'))?.project_id === shared)
    const { id } = await place.channelOf('ops')
    await place.patch('secrets', 'chat', { metadata: { labels: { 'heartbeat-operator.io/channel': null } } })
    await place.change('ops', { metadata: { annotations: { [REQUEST]: '1' } } })
    await place.stalled('ops', 'SecretNotFound')
    expect((await t.app.call('GET', `/channels/${id}`)).status).toBe(200)
    await setProjects('elsewhere')
    await eventually('it is gone', async () => (await t.app.call('GET', `/channels/${id}`)).status === 404)
    await setProjects('shared')
    await place.patch('secrets', 'chat', { metadata: { labels: { 'heartbeat-operator.io/channel': 'true' } } })
    await place.change('ops', { metadata: { annotations: { [REQUEST]: '2' } } })
    await eventually('it is back', async () => (await t.app.call('GET', `/channels/${id}`)).status === 200)
  })

  it.each([
    ['nothing else', {}, 200],
    ['no channel', { channelId: null }, 200],
    ['a channel of its own', { channelId: '01999999-9999-7999-8999-999999999999' }, 404],
  ])('a status that names another installation with %s', async (_, others, status) => {
    await place.makeReady('ops', { ntfy: { topic: 'ops' } })
    const { id } = await place.channelOf('ops')
    await t.cluster.api('PATCH', `${place.pathOf('ops')}/status`, {
      status: { installation: '01999999-9999-7999-8999-000000000000', ...others },
    })
    await place.event('ops', 'ManagedElsewhere')
    expect((await t.app.call('GET', `/channels/${id}`)).status).toBe(status)
  })
})
