/** Where the ping URL is written, and that nothing is touched which is not ours (design, section 6, "Publishing"). */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { conditionOf, type Published, urlIn } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene()

const SECRETS = { group: '', plural: 'secrets' }
const spec = (publish: object) => ({ periodSeconds: 3_600, publish })
const change = (name: string, publish: object) => t.place.change(name, { spec: { publish } })
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** Until the Secret is as the probe wants it; the last look is in the error. */
const waitForSecret = (name: string, what: string, isRight: (secret: Published) => boolean) =>
  eventually(what, async () => {
    const secret = await t.place.find('secrets', name)
    if (secret !== null && isRight(secret)) return secret
    throw new Error(JSON.stringify(secret))
  })

async function urlOf(name: string): Promise<string> {
  const { status } = await t.place.get(name)
  const { body } = await t.app.call('GET', `/checks/${status!.checkId}`)
  return `${t.app.pingUrl}/ping/${body.public_id}`
}

describe('the ping URL', () => {
  it('is in a Secret that the check owns, and that says whose it is', async () => {
    const { metadata, status } = await t.place.makeReady('plain')
    const secret = await t.place.find('secrets', 'plain-heartbeat')
    expect(secret).toMatchObject({
      metadata: {
        labels: { 'app.kubernetes.io/managed-by': 'heartbeat-operator', 'heartbeat-operator.io/check': 'plain' },
      },
    })
    expect(secret?.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'heartbeat-operator.io/v1',
        kind: 'HeartbeatCheck',
        name: 'plain',
        uid: metadata.uid,
        controller: true,
        blockOwnerDeletion: false,
      },
    ])
    expect(Object.keys(secret?.data ?? {})).toEqual(['HEARTBEAT_URL'])
    expect(urlIn(secret)).toBe(await urlOf('plain'))
    expect(status?.published).toEqual({ kind: 'Secret', name: 'plain-heartbeat' })
  })

  it('goes where the spec wants it, with labels and annotations of its own', async () => {
    const wanted = {
      name: 'elsewhere',
      key: 'BACKUP_URL',
      labels: { team: 'shop' },
      annotations: { 'example.com/a': 'b' },
    }
    const { status } = await t.place.makeReady('custom', spec(wanted))
    const secret = await t.place.find('secrets', 'elsewhere')
    expect(secret?.metadata).toMatchObject({ labels: { team: 'shop' }, annotations: { 'example.com/a': 'b' } })
    expect(urlIn(secret, 'BACKUP_URL')).toBe(await urlOf('custom'))
    expect(status?.published).toEqual({ kind: 'Secret', name: 'elsewhere' })
    await change('custom', { labels: { team: null }, annotations: null })
    await t.place.ready('custom')
    const { metadata } = await waitForSecret(
      'elsewhere',
      'the label is gone',
      (now) => !('team' in now.metadata.labels!),
    )
    expect(metadata.annotations ?? {}).not.toHaveProperty('example.com/a')
  })

  it('is plain text in a ConfigMap on request, and moves there from its Secret', async () => {
    await t.place.makeReady('map')
    await change('map', { kind: 'ConfigMap' })
    const { status } = await t.place.ready('map')
    expect((await t.place.find('configmaps', 'map-heartbeat'))?.data).toEqual({ HEARTBEAT_URL: await urlOf('map') })
    expect(await t.place.find('secrets', 'map-heartbeat')).toBeNull()
    expect(status?.published).toEqual({ kind: 'ConfigMap', name: 'map-heartbeat' })
  })

  it('is given to the garbage collector when the finalizer is taken by force', async () => {
    await t.place.makeReady('forced')
    await t.operator().stop()
    await t.place.change('forced', { metadata: { finalizers: null } })
    await t.place.delete('forced')
    await eventually(
      'the Secret is collected',
      async () => (await t.place.find('secrets', 'forced-heartbeat')) === null,
    )
    await t.restart()
  })
})

describe('a target that changes', () => {
  it('is written under its new name before the old one goes: a job always finds one', async () => {
    await t.place.makeReady('moved')
    const { metadata } = (await t.cluster.api('GET', `/api/v1/namespaces/${t.place.name}/secrets`)).body
    await change('moved', { name: 'moved-2' })
    await t.place.ready('moved')
    const seen: string[] = []
    const from = Number(metadata.resourceVersion)
    t.cluster.server.collection(SECRETS).follow(
      from,
      ({ metadata: { name } }) => name.startsWith('moved'),
      ({ type, object }) => {
        seen.push(`${type} ${object.metadata.name}`)
      },
    )()
    expect(seen).toEqual(['ADDED moved-2', 'DELETED moved-heartbeat'])
    expect(urlIn(await t.place.find('secrets', 'moved-2'))).toBe(await urlOf('moved'))
  })

  it('the old Secret loses only our key when it holds data of others', async () => {
    await t.place.makeReady('shared')
    await t.place.patch('secrets', 'shared-heartbeat', {
      data: { OTHER: base64('theirs') },
      metadata: { labels: { theirs: 'x' } },
    })
    await change('shared', { name: 'shared-2' })
    await t.place.ready('shared')
    const left = await waitForSecret('shared-heartbeat', 'our key is gone', ({ data }) => !('HEARTBEAT_URL' in data!))
    expect(left.data).toEqual({ OTHER: base64('theirs') })
    expect(left.metadata.labels).toEqual({ theirs: 'x' })
    expect(left.metadata.ownerReferences).toBeUndefined()
  })
})

describe('a former target that the API server does not let us release', () => {
  it('is named in the status, while jobs find the URL in both; it is released as soon as that is allowed', async () => {
    await t.place.makeReady('held')
    const url = await urlOf('held')
    const quote = `denied: ${base64(url)}`
    const allow = t.cluster.server.disturb(
      ({ method, path }) => method === 'DELETE' && path.endsWith('/held-heartbeat'),
      { status: 422, reason: 'Invalid', message: quote },
      1_000,
    )
    await change('held', { name: 'held-2' })
    expect(await t.place.stalled('held', 'PublishRefused')).toBe(
      'Secret held-heartbeat cannot be released: denied: ***',
    )
    expect(urlIn(await t.place.find('secrets', 'held-2'))).toBe(url)
    expect(urlIn(await t.place.find('secrets', 'held-heartbeat'))).toBe(url)
    allow()
    const { status } = await t.place.ready('held')
    expect(status?.published).toEqual({ kind: 'Secret', name: 'held-2' })
    expect(await t.place.find('secrets', 'held-heartbeat')).toBeNull()
  })
})

describe('a target that is not ours', () => {
  it('is not touched, and the check is Stalled until it is gone or given away', async () => {
    const theirs = await t.place.put('secrets', {
      metadata: { name: 'theirs' },
      data: { HEARTBEAT_URL: base64('http://theirs') },
    })
    await t.place.apply('greedy', spec({ name: 'theirs' }))
    const message = await t.place.stalled('greedy', 'TargetNotOwned')
    expect(message).toMatch(
      /^Secret theirs is managed by \S+ and is not touched: choose another spec.publish.name, or give it away/,
    )
    const stalled = await t.place.get('greedy')
    expect(conditionOf(stalled, 'Published')).toMatchObject({ status: 'False', reason: 'TargetNotOwned' })
    expect(stalled.status).not.toHaveProperty('published')
    expect(stalled.status?.state).toBe('new')
    expect(await t.place.find('secrets', 'theirs')).toEqual(theirs)
    await t.place.patch('secrets', 'theirs', {
      metadata: { annotations: { 'heartbeat-operator.io/adopt': 'true' } },
      data: { OTHER: base64('o') },
    })
    await t.place.ready('greedy')
    expect((await t.place.find('secrets', 'theirs'))?.data).toEqual({
      HEARTBEAT_URL: base64(await urlOf('greedy')),
      OTHER: base64('o'),
    })
    await t.place.event('greedy', 'TargetNotOwned')
    const events = await t.place.events('greedy')
    expect(events.filter(({ reason }) => reason === 'TargetNotOwned')).toEqual([
      expect.objectContaining({ type: 'Warning', note: message }),
    ])
  })

  it('is named with its owner when it has one: another check, or another controller', async () => {
    await t.place.makeReady('first', spec({ name: 'wanted-by-two' }))
    const before = await t.place.find('secrets', 'wanted-by-two')
    await t.place.apply('second', spec({ name: 'wanted-by-two' }))
    expect(await t.place.stalled('second', 'TargetNotOwned')).toContain('belongs to HeartbeatCheck first')
    expect(await t.place.find('secrets', 'wanted-by-two')).toEqual(before)
    await t.place.change('second', { spec: { publish: { name: 'its-own' } } })
    await t.place.ready('second')
    // The collector looks whether an owner is really there.
    const { metadata } = await t.place.put('configmaps', { metadata: { name: 'web' } })
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'web', uid: metadata.uid, controller: true }
    const annotations = { 'heartbeat-operator.io/adopt': 'true' }
    await t.place.put('configmaps', { metadata: { name: 'web-urls', ownerReferences: [owner], annotations } })
    await t.place.apply('third', spec({ kind: 'ConfigMap', name: 'web-urls' }))
    expect(await t.place.stalled('third', 'TargetNotOwned')).toBe(
      'ConfigMap web-urls belongs to ConfigMap web and is not touched: choose another spec.publish.name',
    )
  })

  it('is left alone when a target is changed to it: the URL stays where it was', async () => {
    await t.place.put('secrets', { metadata: { name: 'occupied' } })
    await t.place.makeReady('stays')
    await change('stays', { name: 'occupied' })
    await t.place.stalled('stays', 'TargetNotOwned')
    expect(await t.place.pingUrl('stays')).toBe(await urlOf('stays'))
    expect((await t.place.get('stays')).status?.published).toEqual({ kind: 'Secret', name: 'stays-heartbeat' })
  })
})

describe('a Secret that others changed', () => {
  it('an immutable Secret is reported once it would have to change, and is left for another name', async () => {
    await t.place.makeReady('immutable')
    await t.place.patch('secrets', 'immutable-heartbeat', { immutable: true })
    await change('immutable', { key: 'OTHER_KEY' })
    expect(await t.place.stalled('immutable', 'PublishRefused')).toContain('immutable')
    await change('immutable', { name: 'mutable' })
    await t.place.ready('immutable')
    expect(urlIn(await t.place.find('secrets', 'mutable'), 'OTHER_KEY')).toBe(await urlOf('immutable'))
    expect(await t.place.find('secrets', 'immutable-heartbeat')).toBeNull()
  })
})
