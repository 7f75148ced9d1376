/**
 * Data of others in a published object stay, whatever was written before a crash (design, section 6, "Publishing" and
 * "Deleting").
 */

import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import type { ResourceType } from '../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { MAX_CLEANUP_MS } from '../../src/operator/resource/finalizer.ts'
import { clientOf, startTestOperator } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conditionOf, urlIn, workIn } from '../support/workplace.ts'
import { aFinalizer, serviceOf } from './finalizer.ts'
import { useScene } from './scene.ts'

const t = useScene()

const ADOPT = { 'heartbeat-operator.io/adopt': 'true' }
const HELM = { 'app.kubernetes.io/managed-by': 'Helm' }
const base64 = (text: string) => Buffer.from(text).toString('base64')
const NOTE = { note: base64('of others') }
const POLICIES = ['Delete', 'Retain'] as const

const handOver = (name: string) =>
  t.place.put('secrets', { metadata: { name, annotations: ADOPT, labels: HELM }, data: NOTE })
const spec = (name: string, more: object = {}) => ({ periodSeconds: 3_600, publish: { name }, ...more })
const secret = async (name: string) => (await t.place.find('secrets', name))!
const isGone = async (name: string) => (await t.cluster.api('GET', t.place.pathOf(name))).status === 404
const request = (name: string) =>
  t.place.change(name, {
    metadata: { annotations: { 'heartbeat-operator.io/reconcile-requested-at': `${Date.now()}` } },
  })

/** The API server rejects these requests until the returned function is called. */
function forbid(isRejected: (method: string, path: string) => boolean, status = 403): () => void {
  const message = 'heartbeatchecks.heartbeat-operator.io is forbidden: User "beat" cannot patch resource "x"'
  const answer = { status, reason: status === 403 ? 'Forbidden' : 'Invalid', message }
  return t.cluster.server.disturb(({ method, path }) => isRejected(method, path), answer, 100_000)
}
const isStatus = (method: string, path: string) => method !== 'GET' && path.endsWith('/status')
const isWriteOf = (name: string) => (method: string, path: string) => method !== 'GET' && path.endsWith(`/${name}`)

describe('an object of others', () => {
  it('gets a key and the label of the HeartbeatCheck, and nothing that others decide about', async () => {
    await handOver('lent')
    await t.place.makeReady('guest', spec('lent', { publish: { name: 'lent', labels: { team: 'x' } } }))
    const { metadata, data } = await secret('lent')
    expect(metadata.labels).toEqual({ ...HELM, 'heartbeat-operator.io/check': 'guest' })
    expect(metadata.annotations).toEqual(ADOPT)
    expect(metadata.ownerReferences).toBeUndefined()
    expect(data).toEqual({ ...NOTE, HEARTBEAT_URL: expect.any(String) })
    // What Helm and Argo CD set stays as they set it, and nothing is written again.
    await request('guest')
    await eventually('it is handled', async () => (await t.place.get('guest')).status?.lastHandledReconcileTime)
    expect((await secret('lent')).metadata.resourceVersion).toBe(metadata.resourceVersion)
  })

  it('is put right, also when it is no longer handed over', async () => {
    await handOver('put-right')
    await t.place.makeReady('fixer', spec('put-right'))
    const { data } = await secret('put-right')
    await t.place.patch('secrets', 'put-right', { data: { HEARTBEAT_URL: base64('http://evil') } })
    await eventually(
      'its URL is back',
      async () => urlIn(await secret('put-right')) === urlIn({ metadata: {}, data } as never),
    )
    await t.place.patch('secrets', 'put-right', { metadata: { annotations: null } })
    await t.place.change('fixer', { spec: { publish: { key: 'OTHER_URL' } } })
    await eventually('the key is another', async () => 'OTHER_URL' in (await secret('put-right')).data!)
    expect(Object.keys((await secret('put-right')).data!).sort()).toEqual(['OTHER_URL', 'note'])
    expect((await secret('put-right')).metadata.ownerReferences).toBeUndefined()
    await t.place.delete('fixer')
    expect((await secret('put-right')).data).toEqual(NOTE)
  })

  it('is never deleted, also when it held nothing', async () => {
    await t.place.put('secrets', { metadata: { name: 'empty', annotations: ADOPT, labels: HELM } })
    await t.place.makeReady('filler', spec('empty'))
    await t.place.delete('filler')
    const { metadata, data } = await secret('empty')
    expect([metadata.labels, data ?? {}]).toEqual([HELM, {}])
  })

  it.each(['secrets', 'configmaps'] as const)('is lent to one HeartbeatCheck at a time: %s', async (plural) => {
    const name = `wanted-${plural}`
    const kind = plural === 'secrets' ? 'Secret' : 'ConfigMap'
    const shared = async () => (await t.place.find(plural, name))!
    const place = (key: string) => ({ periodSeconds: 3_600, publish: { kind, name, key } })
    await t.place.put(plural, { metadata: { name, annotations: ADOPT, labels: HELM }, data: NOTE })
    await t.place.makeReady(`first-${plural}`, place('FIRST_URL'))
    const before = await shared()
    await t.place.apply(`second-${plural}`, place('SECOND_URL'))
    const message = await t.place.stalled(`second-${plural}`, 'TargetNotOwned')
    expect(message).toContain(`HeartbeatCheck first-${plural}`)
    expect((await shared()).metadata.resourceVersion).toBe(before.metadata.resourceVersion)
    await t.place.delete(`first-${plural}`)
    await request(`second-${plural}`)
    await t.place.ready(`second-${plural}`)
    expect(Object.keys((await shared()).data!).sort()).toEqual(['SECOND_URL', 'note'])
  })

  it('keeps the URL of a retained check, which its resource takes back', async () => {
    await handOver('retaining')
    await t.place.makeReady('kept', spec('retaining', { deletionPolicy: 'Retain' }))
    const before = (await secret('retaining')).data
    await t.place.delete('kept')
    expect((await secret('retaining')).data).toEqual(before)
    await t.place.apply('intruder', spec('retaining'))
    expect(await t.place.stalled('intruder', 'TargetNotOwned')).toContain('keeps the ping URL of the retained check')
    await t.place.delete('intruder')
    await t.place.makeReady('kept', spec('retaining'))
    expect((await secret('retaining')).data).toEqual(before)
    expect((await secret('retaining')).metadata.ownerReferences).toBeUndefined()
    await t.place.delete('kept')
    expect((await secret('retaining')).data).toEqual(NOTE)
  })

  it('keeps that URL also from another check that its resource adopts', async () => {
    await handOver('keeping')
    const { status } = await t.place.makeReady('keeper', spec('keeping', { deletionPolicy: 'Retain' }))
    const before = (await secret('keeping')).data
    await t.place.delete('keeper')
    const { project_id } = (await t.app.call('GET', `/checks/${status!.checkId}`)).body
    const another = await t.app.createCheck({ project_id })
    await t.place.apply('keeper', spec('keeping'), {
      annotations: { 'heartbeat-operator.io/adopt-check-id': another.id },
    })
    expect(await t.place.stalled('keeper', 'TargetNotOwned')).toContain('keeps the ping URL of the retained check')
    expect((await secret('keeping')).data).toEqual(before)
  })

  it.each(POLICIES)('keeps its resource from nothing when it may not be written: %s', async (deletionPolicy) => {
    const name = `barred-${deletionPolicy.toLowerCase()}`
    await handOver(name)
    await t.place.makeReady(`of-${name}`, spec(name, { deletionPolicy }))
    const before = (await secret(name)).data
    const allow = forbid(isWriteOf(name))
    await t.place.delete(`of-${name}`)
    allow()
    expect((await secret(name)).data).toEqual(before)
  })
})

describe('a publication that is not in the status', () => {
  it('is withdrawn from where the specification and the status say', async () => {
    await handOver('first')
    await handOver('second')
    await t.place.makeReady('mover', spec('first'))
    // Both hold the URL: the second is written, and the first is not withdrawn yet.
    const release = forbid(isWriteOf('first'), 422)
    await t.place.change('mover', { spec: { publish: { name: 'second' } } })
    await eventually('the second holds it', async () => 'HEARTBEAT_URL' in ((await secret('second')).data ?? {}))
    const allow = forbid(isStatus)
    await t.operator().stop()
    release()
    await t.cluster.api('DELETE', t.place.pathOf('mover'))
    await t.restart()
    await t.place.gone('mover')
    allow()
    expect([(await secret('first')).data, (await secret('second')).data]).toEqual([NOTE, NOTE])
  })

  it('takes no data of others along when the target was changed twice and never said', async () => {
    await handOver('one')
    await handOver('two')
    const allow = forbid(isStatus)
    await t.place.apply('nomad', spec('one'))
    await eventually('it is in the first', async () => 'HEARTBEAT_URL' in (await secret('one')).data!)
    await t.place.change('nomad', { spec: { publish: { name: 'two' } } })
    await eventually('it is in the second', async () => 'HEARTBEAT_URL' in (await secret('two')).data!)
    await t.place.delete('nomad')
    allow()
    expect((await secret('one')).data).toMatchObject(NOTE)
    expect((await secret('two')).data).toEqual(NOTE)
  })

  it('stays for a retained check, in a Secret that the operator created, also under a schedule that makes no sense', async () => {
    const allow = forbid(isStatus)
    await t.place.apply('stays', { schedule: '0 3 * * *', deletionPolicy: 'Retain' })
    await eventually('the URL is written', async () => (await t.place.pingUrl('stays')) !== '')
    const url = await t.place.pingUrl('stays')
    await t.operator().stop()
    await t.place.change('stays', { spec: { schedule: '0 0 31 2 *' } })
    await t.cluster.api('DELETE', t.place.pathOf('stays'))
    await t.restart()
    await t.place.gone('stays')
    allow()
    expect(await t.place.pingUrl('stays')).toBe(url)
    expect((await fetch(url, { method: 'POST' })).status).toBe(200)
    // The check keeps it there: nothing else may be published in the Secret.
    await t.place.patch('secrets', 'stays-heartbeat', { metadata: { annotations: ADOPT } })
    await t.place.apply('greedy', spec('stays-heartbeat'))
    expect(await t.place.stalled('greedy', 'TargetNotOwned')).toContain('keeps the ping URL of the retained check')
  })

  it('was none: a retained check keeps no Secret of others that holds no URL of it', async () => {
    await t.place.put('secrets', { metadata: { name: 'never', labels: HELM }, data: NOTE })
    await t.place.apply('refused', spec('never', { deletionPolicy: 'Retain' }))
    await t.place.stalled('refused', 'TargetNotOwned')
    await t.place.delete('refused')
    await t.place.patch('secrets', 'never', { metadata: { annotations: ADOPT } })
    await t.place.makeReady('welcome', spec('never'))
  })
})

/** A client of a process that dies before its write of this number; 0: never. Its Lease is free then. */
function dyingClient(client: KubernetesClient, dieAt: number, isCounted: (path: string) => boolean) {
  let writes = 0
  const died = Promise.withResolvers<void>()
  const guard = async <T>(path: string, write: () => Promise<T>): Promise<T> => {
    if (isCounted(path)) writes += 1
    if (isCounted(path) && dieAt > 0 && writes >= dieAt) {
      died.resolve()
      throw new Error('this process is dead')
    }
    return write()
  }
  const guarded =
    (name: 'create' | 'apply' | 'mergePatch' | 'replace' | 'delete') =>
    (type: ResourceType, ...rest: unknown[]) =>
      guard(type.plural, () => (client[name] as (...all: unknown[]) => Promise<never>)(type, ...rest))
  const dying = {
    ...client,
    create: guarded('create'),
    apply: guarded('apply'),
    mergePatch: guarded('mergePatch'),
    replace: guarded('replace'),
    delete: guarded('delete'),
  } as KubernetesClient
  return { client: dying, died: died.promise, writes: () => writes }
}

describe('a process that dies between two writes of a publication', () => {
  const isOfPublication = (plural: string) => ['heartbeatchecks', 'secrets'].includes(plural)
  const testDatabase = () => t.testDatabase

  async function publishWith(dieAt: number, name: string, deletionPolicy: string) {
    await handOver(name)
    await t.operator().stop()
    await using base = clientOf(t.cluster.connection)
    const { client, died, writes } = dyingClient(base, dieAt, isOfPublication)
    const changes = { client, pingUrl: () => t.app.pingUrl, namespaces: [t.place.name], pollMs: 600_000 }
    await t.place.apply(`of-${name}`, spec(name, { deletionPolicy }))
    {
      await using _ = await startTestOperator({
        connection: t.cluster.connection,
        testDatabase: testDatabase(),
        changes,
      })
      await (dieAt === 0 ? t.place.ready(`of-${name}`) : died)
    }
    const left = (await secret(name)).data
    await t.cluster.api('DELETE', t.place.pathOf(`of-${name}`))
    await t.restart()
    await t.place.gone(`of-${name}`)
    return { left, writes: writes() }
  }

  it.each(POLICIES)('leaves the data of others: %s', async (deletionPolicy) => {
    const whole = await publishWith(0, `whole-${deletionPolicy.toLowerCase()}`, deletionPolicy)
    expect(whole.writes).toBeGreaterThanOrEqual(3)
    for (let dieAt = 1; dieAt <= whole.writes; dieAt += 1) {
      const name = `dies-${dieAt}-${deletionPolicy.toLowerCase()}`
      const { left } = await publishWith(dieAt, name, deletionPolicy)
      const { metadata, data } = await secret(name)
      expect(metadata.ownerReferences, name).toBeUndefined()
      expect(data, name).toEqual(deletionPolicy === 'Retain' ? left : NOTE)
    }
  })
})

describe('an object with our owner reference and data of others', () => {
  /** As an earlier release left it, or a person who added data: `manager` wrote the reference. */
  async function share(name: string, more: object = {}) {
    const { metadata } = await t.place.makeReady(name, { periodSeconds: 3_600, ...more })
    const owner = {
      apiVersion: 'heartbeat-operator.io/v1',
      kind: 'HeartbeatCheck',
      name,
      uid: metadata.uid,
      controller: true,
    }
    await t.place.patch('secrets', `${name}-heartbeat`, { data: NOTE, metadata: { ownerReferences: [owner] } })
    await eventually(
      'it has its reference',
      async () => (await secret(`${name}-heartbeat`)).metadata.ownerReferences?.length === 1,
    )
  }

  it.each(POLICIES)(
    'is released with its data, also where another manager wrote the reference: %s',
    async (deletionPolicy) => {
      const name = `owned-${deletionPolicy.toLowerCase()}`
      await share(name, { deletionPolicy })
      await t.operator().stop()
      // A restored backup knows no owners of fields.
      await t.place.patch('secrets', `${name}-heartbeat`, { metadata: { managedFields: [] } })
      await t.cluster.api('DELETE', t.place.pathOf(name))
      await t.restart()
      await t.place.gone(name)
      const { metadata, data } = await secret(`${name}-heartbeat`)
      expect(metadata.ownerReferences ?? []).toEqual([])
      expect(data).toMatchObject(NOTE)
    },
  )

  it('keeps its resource until it can be released, for longer than ten minutes too', async () => {
    await share('endangered')
    await t.operator().stop()
    let isDatabaseAway = false
    await using finalizer = aFinalizer(t, {
      async retireCheck(...call) {
        if (isDatabaseAway) throw new Error('the database is away')
        return serviceOf(t).retireCheck(...call)
      },
    })
    const attempt = (afterMs: number) => finalizer.finalize('endangered', afterMs)
    await t.cluster.api('DELETE', t.place.pathOf('endangered'))
    const allow = forbid(isWriteOf('endangered-heartbeat'), 422)
    await expect(attempt(0)).rejects.toThrow('Secret endangered-heartbeat cannot be released')
    await expect(attempt(2 * MAX_CLEANUP_MS)).rejects.toThrow('with all its data')
    isDatabaseAway = true
    await expect(attempt(2 * MAX_CLEANUP_MS)).rejects.toThrow('with all its data')
    expect(finalizer.said).toEqual(Array(3).fill('Warning CleanupRejected'))
    expect(finalizer.notes[0]).not.toContain('/ping/')
    allow()
    await attempt(2 * MAX_CLEANUP_MS)
    expect(finalizer.said.at(-1)).toBe('Warning CleanupTimeout')
    expect(await isGone('endangered')).toBe(true)
    expect((await secret('endangered-heartbeat')).data).toEqual(NOTE)
    isDatabaseAway = false
    await t.restart()
  })

  it.each(POLICIES)('keeps its resource while it may not be read, for ten minutes: %s', async (deletionPolicy) => {
    const name = `unread-${deletionPolicy.toLowerCase()}`
    await share(name, { deletionPolicy })
    const allow = forbid((_, path) => path.endsWith(`/${name}-heartbeat`))
    await t.cluster.api('DELETE', t.place.pathOf(name))
    expect((await t.place.event(name, 'CleanupRejected')).note).toContain('10 minutes after its deletion')
    expect(await isGone(name)).toBe(false)
    await t.operator().stop()
    await using finalizer = aFinalizer(t)
    await expect(finalizer.finalize(name, MAX_CLEANUP_MS - 1)).rejects.toThrow('cannot be read')
    allow()
    await finalizer.finalize(name, MAX_CLEANUP_MS - 1)
    expect(finalizer.said).toEqual(['Warning CleanupRejected'])
    expect(await isGone(name)).toBe(true)
    expect((await secret(`${name}-heartbeat`)).data).toMatchObject(NOTE)
    expect((await secret(`${name}-heartbeat`)).metadata.ownerReferences ?? []).toEqual([])
    await t.restart()
  })

  it('that may never be read keeps its resource for no longer than ten minutes', async () => {
    await t.place.makeReady('never-read')
    await t.operator().stop()
    await t.cluster.api('DELETE', t.place.pathOf('never-read'))
    const allow = forbid((_, path) => path.endsWith('/never-read-heartbeat'))
    await using finalizer = aFinalizer(t)
    await finalizer.finalize('never-read', MAX_CLEANUP_MS)
    allow()
    expect(finalizer.said).toEqual(['Warning CleanupRejected', 'forced', 'Warning CleanupTimeout'])
    expect(await isGone('never-read')).toBe(true)
    await t.restart()
  })

  it.each(POLICIES)('that never could be read keeps its resource from nothing: %s', async (deletionPolicy) => {
    const name = `ungranted-${deletionPolicy.toLowerCase()}`
    const allow = forbid((_, path) => path.endsWith('/secrets') || path.endsWith(`/${name}-heartbeat`))
    await t.place.apply(name, { periodSeconds: 3_600, deletionPolicy })
    await t.place.stalled(name, 'PublishRefused')
    await t.place.delete(name)
    allow()
  })

  it('that may not be read keeps no namespace that is being deleted', async () => {
    const path = '/api/v1/namespaces/unread'
    await t.cluster.api('POST', '/api/v1/namespaces', {
      metadata: { name: 'unread', finalizers: ['example.com/stay'] },
    })
    const place = workIn(t.cluster, 'unread')
    await place.makeReady('a')
    await t.cluster.api('DELETE', path)
    const allow = forbid((_, path) => path.endsWith('/a-heartbeat'))
    await place.delete('a')
    allow()
    expect((await place.events('a')).map(({ reason }) => reason)).not.toContain('CleanupRejected')
  })

  it('does not keep a namespace that is being deleted: it goes with the namespace', async () => {
    const path = '/api/v1/namespaces/ending'
    await t.cluster.api('POST', '/api/v1/namespaces', { metadata: { name: 'ending' } })
    const place = workIn(t.cluster, 'ending')
    await place.makeReady('a')
    await place.patch('secrets', 'a-heartbeat', { data: NOTE })
    const allow = forbid(isWriteOf('a-heartbeat'), 422)
    await t.cluster.api('DELETE', place.pathOf('a'))
    expect((await place.event('a', 'CleanupRejected')).note).toContain('Secret a-heartbeat')
    allow()
    await t.cluster.api('DELETE', `${path}/secrets/a-heartbeat`)
    await place.gone('a')
    await t.cluster.api('DELETE', path)
  })

  it('of a retained check gets no reference back when others have added data since', async () => {
    const name = 'grown'
    await t.place.makeReady(name, { periodSeconds: 3_600, deletionPolicy: 'Retain' })
    await t.place.delete(name)
    await t.place.patch('secrets', `${name}-heartbeat`, { data: NOTE })
    const object: HeartbeatCheck = await t.place.makeReady(name, { periodSeconds: 3_600 })
    expect(conditionOf(object, 'Published')?.status).toBe('True')
    expect((await secret(`${name}-heartbeat`)).metadata.ownerReferences).toBeUndefined()
    await t.place.delete(name)
    expect((await secret(`${name}-heartbeat`)).data).toEqual(NOTE)
  })
})
