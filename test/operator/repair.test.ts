/**
 * What is published is put right without a change of its resource: by a resync, and on request. Where a test does not
 * restart the operator with another time, no resync comes.
 */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { type Published, urlIn } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const NEVER = 3_600_000
const t = useScene({ resyncMs: NEVER })

const base64 = (text: string) => Buffer.from(text).toString('base64')
const REQUEST = 'heartbeat-operator.io/reconcile-requested-at'
const request = (name: string, value: string | null) =>
  t.place.change(name, { metadata: { annotations: { [REQUEST]: value } } })
const secretOf = async (name: string) => (await t.place.find('secrets', `${name}-heartbeat`))!
const secretPath = (name: string) => `/api/v1/namespaces/${t.place.name}/secrets/${name}-heartbeat`

const waitForSecret = (name: string, isRight: (secret: Published) => boolean) =>
  eventually(`the Secret of ${name} is right`, async () => {
    const secret = await t.place.find('secrets', `${name}-heartbeat`)
    if (secret !== null && isRight(secret)) return secret
    throw new Error(JSON.stringify(secret))
  })

describe('what is published', () => {
  it.each<[string, (name: string) => Promise<unknown>]>([
    ['deleted', (name) => t.cluster.api('DELETE', secretPath(name))],
    [
      'edited',
      (name) => t.place.patch('secrets', `${name}-heartbeat`, { data: { HEARTBEAT_URL: base64('http://evil') } }),
    ],
    ['emptied', (name) => t.place.patch('secrets', `${name}-heartbeat`, { data: null })],
    ['relabelled', (name) => t.place.patch('secrets', `${name}-heartbeat`, { metadata: { labels: null } })],
    ['orphaned', (name) => t.place.patch('secrets', `${name}-heartbeat`, { metadata: { ownerReferences: null } })],
  ])('a Secret that was %s is right again on request', async (name, change) => {
    await t.place.makeReady(name)
    const { data, metadata } = await secretOf(name)
    await change(name)
    await request(name, 'now')
    const { metadata: after } = await waitForSecret(
      name,
      (now) =>
        JSON.stringify(now.data) === JSON.stringify(data) &&
        now.metadata.ownerReferences?.length === 1 &&
        now.metadata.labels?.['heartbeat-operator.io/check'] === name,
    )
    expect(after.ownerReferences).toEqual(metadata.ownerReferences)
    await t.place.event(name, 'Published')
  })

  it('is back at the next resync after it was deleted', async () => {
    await t.restart({ resyncMs: 500 })
    await t.place.makeReady('map', { periodSeconds: 3_600, publish: { kind: 'ConfigMap' } })
    const before = (await t.place.find('configmaps', 'map-heartbeat'))!
    await t.cluster.api('DELETE', `/api/v1/namespaces/${t.place.name}/configmaps/map-heartbeat`)
    const after = await eventually('it is back', () => t.place.find('configmaps', 'map-heartbeat'))
    expect(after.data).toEqual(before.data)
    expect(after.metadata.uid).not.toBe(before.metadata.uid)
    await t.restart()
  })
})

describe('F8: a Secret without its owner reference', () => {
  const orphan = (name: string, more: object = {}) =>
    t.place.patch('secrets', `${name}-heartbeat`, { metadata: { ownerReferences: null }, ...more })

  it('is ours by its label and URL also when the key has changed since, and what others have in it stays', async () => {
    await t.place.makeReady('key')
    const { metadata } = await secretOf('key')
    await t.operator().stop()
    await orphan('key', { data: { OTHER: base64('theirs') } })
    await t.place.change('key', { spec: { publish: { key: 'NEW' } } })
    await t.restart()
    await t.place.ready('key')
    const after = await secretOf('key')
    expect(after.metadata.ownerReferences).toEqual(metadata.ownerReferences)
    expect(Object.keys(after.data!).sort()).toEqual(['NEW', 'OTHER'])
  })

  it('is withdrawn like any other of ours when the target changes', async () => {
    await t.place.makeReady('moved')
    await t.operator().stop()
    await orphan('moved')
    await t.place.change('moved', { spec: { publish: { name: 'moved-2' } } })
    await t.restart()
    await t.place.ready('moved')
    expect(await t.place.find('secrets', 'moved-heartbeat')).toBeNull()
  })

  it('goes with its resource, and what others have in it stays', async () => {
    await Promise.all(['gone', 'shared'].map((name) => t.place.makeReady(name)))
    await t.operator().stop()
    await orphan('gone')
    await orphan('shared', { data: { OTHER: base64('theirs') } })
    await t.restart()
    await Promise.all(['gone', 'shared'].map((name) => t.place.delete(name)))
    expect(await t.place.find('secrets', 'gone-heartbeat')).toBeNull()
    expect((await secretOf('shared')).data).toEqual({ OTHER: base64('theirs') })
  })

  it.each([
    [
      'holds another URL',
      { data: { HEARTBEAT_URL: base64('http://evil') } },
      'has the label of this HeartbeatCheck, but neither its owner reference nor its ping URL, and is not touched',
    ],
    [
      'has no label',
      { metadata: { ownerReferences: null, labels: { 'heartbeat-operator.io/check': null } } },
      /^Secret no-label-heartbeat is managed by (?!heartbeat-operator)|was there before and is not touched/,
    ],
    [
      'has the label of another',
      { metadata: { ownerReferences: null, labels: { 'heartbeat-operator.io/check': 'twin' } } },
      'has the label of HeartbeatCheck twin and is not touched',
    ],
  ])('is not ours when it %s: Stalled, and the message does not call us the stranger', async (what, more, message) => {
    const name = what.replace(/^(holds|has) /, '').replaceAll(' ', '-')

    await t.place.makeReady(name)
    await orphan(name, more)
    const before = await secretOf(name)
    await request(name, 'now')
    expect(await t.place.stalled(name, 'TargetNotOwned')).toMatch(message)
    expect(await secretOf(name)).toEqual(before)
  })
})

describe('F3: a request to reconcile', () => {
  const timeOf = async (name: string) => (await t.place.get(name)).status?.lastHandledReconcileTime

  it('has everything put right at once, and the status says when', async () => {
    await t.place.makeReady('asked')
    expect(await timeOf('asked')).toBeUndefined()
    const url = urlIn(await secretOf('asked'))
    for (const value of ['one', 'two']) {
      await t.cluster.api('DELETE', secretPath('asked'))
      const { metadata } = await request('asked', value)
      await eventually('it is handled', async () => {
        const { status } = await t.place.get('asked')
        return status?.lastHandledReconcileRequest === value
      })
      expect(urlIn(await secretOf('asked'))).toBe(url)
      expect((await t.place.get('asked')).metadata.generation).toBe(metadata.generation)
    }
    expect(Math.abs(Date.parse((await timeOf('asked'))!) - Date.now())).toBeLessThan(30_000)
  })

  it('acts on a resource that is Stalled', async () => {
    await t.place.put('secrets', { metadata: { name: 'theirs' } })
    await t.place.apply('waiting', { periodSeconds: 3_600, publish: { name: 'theirs' } })
    await t.place.stalled('waiting', 'TargetNotOwned')
    await request('waiting', 'still theirs')
    await eventually('it is handled', () => timeOf('waiting'))
    await t.cluster.api('DELETE', `/api/v1/namespaces/${t.place.name}/secrets/theirs`)
    await request('waiting', 'now')
    await t.place.ready('waiting')
  })

  it('reads the projects of the namespace anew', async () => {
    await t.app.call('POST', '/projects', { name: 'Payments', slug: 'payments' })
    const { body: before } = await t.app.call('GET', `/checks/${(await t.place.makeReady('moving')).status!.checkId}`)
    const annotations = { 'heartbeat-operator.io/projects': 'payments' }
    await t.cluster.api('PATCH', `/api/v1/namespaces/${t.place.name}`, { metadata: { annotations } })
    await eventually('it is in the other project', async () => {
      await request('moving', String(performance.now()))
      const { body } = await t.app.call('GET', `/checks/${before.id}`)
      return body.project_id !== before.project_id
    })
    annotations['heartbeat-operator.io/projects'] = t.place.name
    await t.cluster.api('PATCH', `/api/v1/namespaces/${t.place.name}`, {
      metadata: { annotations: { 'heartbeat-operator.io/projects': null } },
    })
  })
})
