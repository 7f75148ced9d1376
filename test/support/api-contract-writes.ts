/** What our code relies on in an API server where several write: owners of fields, finalizers, statuses and the garbage collector. */

import { beforeAll, describe, expect, it } from 'vitest'
import type { KubernetesClient, NewObject } from '../../src/kubernetes/client.ts'
import type { KubernetesObject, ObjectMeta, OwnerReference } from '../../src/kubernetes/objects.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { HEARTBEAT_CHECKS } from '../../src/operator/names.ts'
import { CONFIG_MAPS, type ConfigMap, refusalOf, type ServerUnderTest } from './api-contract.ts'
import { eventually } from './until.ts'

export function describeWriteContract(open: () => Promise<ServerUnderTest>): void {
  let client: KubernetesClient
  let namespace: string

  beforeAll(async () => {
    ;({ client, namespace } = await open())
  })

  const place = (name: string) => ({ namespace, name })
  const aConfigMap = (name: string, data: object = {}, metadata: object = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, ...metadata },
    data,
  })
  const find = (name: string) => client.get<ConfigMap>(CONFIG_MAPS, place(name))
  const apply = (fieldManager: string, object: NewObject, force = false) =>
    client.apply<ConfigMap>(CONFIG_MAPS, object, { fieldManager, force })
  const update = (fieldManager: string, name: string, patch: object) =>
    client.mergePatch<ConfigMap>(CONFIG_MAPS, place(name), patch, { fieldManager })
  const ownersOf = ({ metadata }: KubernetesObject) =>
    Object.fromEntries(
      (metadata.managedFields ?? []).map(({ manager, operation, fieldsV1 }) => [
        `${manager} ${operation}`,
        Object.keys((fieldsV1 as Record<string, object>)['f:data'] ?? {})
          .filter((key) => key !== '.')
          .sort(),
      ]),
    )

  describe('the owner of a field', () => {
    it('is who created it, applied it, or updated it last', async () => {
      await client.create(CONFIG_MAPS, aConfigMap('owned', { a: '1', b: '1', c: '1' }), { fieldManager: 'maker' })
      await update('updater', 'owned', { data: { b: '2' } })
      const object = await apply('applier', aConfigMap('owned', { c: '1', d: '1' }))
      expect(object.data).toEqual({ a: '1', b: '2', c: '1', d: '1' })
      expect(ownersOf(object)).toEqual({
        'maker Update': ['f:a', 'f:c'],
        'updater Update': ['f:b'],
        'applier Apply': ['f:c', 'f:d'],
      })
    })

    it('is called by its name when another one applies a different value, and loses the field to force', async () => {
      await apply('them', aConfigMap('contested', { text: 'theirs' }))
      const refusal = await refusalOf(apply('us', aConfigMap('contested', { text: 'ours' })))
      expect(refusal).toMatchObject({
        status: 409,
        reason: 'Conflict',
        details: { causes: [{ reason: 'FieldManagerConflict', field: '.data.text' }] },
      })
      expect(refusal.message).toContain('conflict with "them"')
      const forced = await apply('us', aConfigMap('contested', { text: 'ours' }), true)
      expect(forced.data).toEqual({ text: 'ours' })
      expect(ownersOf(forced)).toEqual({ 'us Apply': ['f:text'] })
    })

    it('gives a field up by an apply without it, which takes it away unless another one applied it too', async () => {
      const labels = { ours: 'x' }
      const owner = ownerOf((await client.create<ConfigMap>(CONFIG_MAPS, aConfigMap('owner'))).metadata)
      await apply('us', aConfigMap('given-up', { a: '1', b: '1' }, { labels, ownerReferences: [owner] }))
      await apply('them', aConfigMap('given-up', { b: '1', c: '1' }, { labels: { theirs: 'x' } }))
      const fewer = await apply('us', aConfigMap('given-up', {}, { ownerReferences: [owner] }))
      expect(fewer.data).toEqual({ b: '1', c: '1' })
      expect(fewer.metadata.labels).toEqual({ theirs: 'x' })
      const { apiVersion, kind } = aConfigMap('given-up')
      const nothing = await apply('us', { apiVersion, kind, metadata: place('given-up') })
      expect(nothing.metadata.ownerReferences).toBeUndefined()
      expect(Object.keys(ownersOf(nothing))).toEqual(['them Apply'])
    })

    it('a creator and an applier of one name are two owners, until the entry of the creator says Apply', async () => {
      await client.create(CONFIG_MAPS, aConfigMap('made', { old: '1' }), { fieldManager: 'us' })
      const kept = await apply('us', aConfigMap('made', { new: '1' }), true)
      expect(kept.data).toEqual({ old: '1', new: '1' })
      const { resourceVersion, managedFields } = kept.metadata
      const entry = managedFields!.find(({ operation }) => operation === 'Update')!
      await update('us', 'made', { metadata: { resourceVersion, managedFields: [{ ...entry, operation: 'Apply' }] } })
      expect((await apply('us', aConfigMap('made', { new: '1' }), true)).data).toEqual({ new: '1' })
    })

    it('applies to the object of a uid, and to no other and no new one', async () => {
      const { metadata } = await client.create<ConfigMap>(CONFIG_MAPS, aConfigMap('exact'))
      const uid = '00000000-0000-4000-8000-000000000000'
      const withUid = (name: string) => refusalOf(apply('us', aConfigMap(name, {}, { uid })))
      expect(await withUid('exact')).toMatchObject({ status: 422, reason: 'Invalid' })
      expect(await withUid('absent')).toMatchObject({ status: 409, reason: 'Conflict' })
      const applied = await apply('us', aConfigMap('exact', { a: '1' }, { uid: metadata.uid }))
      expect(applied.data).toEqual({ a: '1' })
    })

    it('applies to the version that is named, by force too, and to no other', async () => {
      const { metadata } = await client.create<ConfigMap>(CONFIG_MAPS, aConfigMap('versioned', { a: '0' }))
      const { uid, resourceVersion } = metadata
      const applyAs = (a: string) => apply('us', aConfigMap('versioned', { a }, { uid, resourceVersion }), true)
      expect((await applyAs('1')).data).toEqual({ a: '1' })
      expect(await refusalOf(applyAs('2'))).toMatchObject({ status: 409, reason: 'Conflict' })
      expect((await find('versioned')).data).toEqual({ a: '1' })
    })

    it('makes no new version by applying the same again', async () => {
      const first = await apply('us', aConfigMap('same', { a: '1' }, { labels: { b: 'c' } }))
      const second = await apply('us', aConfigMap('same', { a: '1' }, { labels: { b: 'c' } }))
      expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion)
    })
  })

  it('an immutable object rejects new data, and may be deleted', async () => {
    await client.create(CONFIG_MAPS, { ...aConfigMap('immutable', { a: '1' }), immutable: true })
    expect(await refusalOf(update('us', 'immutable', { data: { a: '2' } }))).toMatchObject({
      status: 422,
      reason: 'Invalid',
      message: expect.stringContaining('immutable'),
    })
    await client.delete(CONFIG_MAPS, place('immutable'))
  })

  describe('a finalizer', () => {
    const finalizers = ['example.com/first', 'example.com/second']

    it('keeps an object that is deleted until the last one is off', async () => {
      const { metadata } = await client.create<ConfigMap>(CONFIG_MAPS, aConfigMap('held', {}, { finalizers }))
      await client.delete(CONFIG_MAPS, place('held'))
      const ending = await find('held')
      expect(ending.metadata).toMatchObject({ uid: metadata.uid, finalizers })
      expect(Date.parse(ending.metadata.deletionTimestamp!)).not.toBeNaN()
      await client.delete(CONFIG_MAPS, place('held'))
      expect((await find('held')).metadata.resourceVersion).toBe(ending.metadata.resourceVersion)
      await update('us', 'held', { metadata: { finalizers: [finalizers[1]] } })
      expect((await find('held')).metadata.finalizers).toEqual([finalizers[1]])
      await update('us', 'held', { metadata: { finalizers: null } })
      expect(await refusalOf(find('held'))).toMatchObject({ status: 404 })
    })

    it('cannot be put on an object that is being deleted', async () => {
      await client.create(CONFIG_MAPS, aConfigMap('ending', {}, { finalizers: finalizers.slice(0, 1) }))
      await client.delete(CONFIG_MAPS, place('ending'))
      expect(await refusalOf(update('us', 'ending', { metadata: { finalizers } }))).toMatchObject({
        status: 422,
        reason: 'Invalid',
      })
      await update('us', 'ending', { metadata: { finalizers: null } })
    })
  })

  it('the garbage collector takes what has lost its owner, and leaves what never had one or gave it up', async () => {
    const owner = ownerOf((await client.create<ConfigMap>(CONFIG_MAPS, aConfigMap('parent'))).metadata)
    await client.create(CONFIG_MAPS, aConfigMap('child', {}, { ownerReferences: [owner] }))
    await client.create(CONFIG_MAPS, aConfigMap('stranger'))
    await client.create(CONFIG_MAPS, aConfigMap('grown-up', {}, { ownerReferences: [owner] }))
    await update('us', 'grown-up', { metadata: { ownerReferences: null } })
    await client.delete(CONFIG_MAPS, place('parent'))
    await eventually('the child is gone', async () => (await find('child').catch(({ status }) => status)) === 404)
    expect((await find('stranger')).metadata.name).toBe('stranger')
    expect((await find('grown-up')).metadata.name).toBe('grown-up')
  })

  describe('a custom resource', () => {
    const aCheck = (name: string, fields: object = {}) =>
      client.create<HeartbeatCheck>(HEARTBEAT_CHECKS, {
        apiVersion: 'heartbeat-operator.io/v1',
        kind: 'HeartbeatCheck',
        metadata: { name, namespace },
        spec: { periodSeconds: 60 },
        ...fields,
      } as NewObject)
    const status = { observedGeneration: 7 }

    it('is not written by a patch that changes nothing', async () => {
      const { metadata } = await aCheck('unchanged')
      const object = await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place('unchanged'), {})
      expect(object.metadata.resourceVersion).toBe(metadata.resourceVersion)
    })

    it('has a status that only its own endpoint writes, and which writes nothing else', async () => {
      const made = await aCheck('with-status', { status })
      expect(made.status).toBeUndefined()
      const replaced = await client.replace<HeartbeatCheck>(
        HEARTBEAT_CHECKS,
        { ...made, metadata: { ...made.metadata, labels: { a: 'b' } }, spec: { periodSeconds: 120 }, status },
        { subresource: 'status' },
      )
      expect(replaced.status).toEqual(status)
      expect(replaced.spec.periodSeconds).toBe(60)
      expect(replaced.metadata.labels).toBeUndefined()
      const patch = { spec: { periodSeconds: 120 }, status: null }
      const patched = await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place('with-status'), patch)
      expect(patched.spec.periodSeconds).toBe(120)
      expect(patched.status).toEqual(status)
      const merged = { status: { checkId: 'x' } }
      const options = { subresource: 'status' } as const
      const { status: _, ...without } = patched
      expect((await client.replace<HeartbeatCheck>(HEARTBEAT_CHECKS, without, options)).status).toBeUndefined()
      expect(
        (await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place('with-status'), merged, options)).status,
      ).toEqual({ checkId: 'x' })
      expect(await refusalOf(client.replace(HEARTBEAT_CHECKS, made, options))).toMatchObject({ reason: 'Conflict' })
    })

    it('has owners of its fields that are changed at the object itself, and not at its status', async () => {
      const name = 'with-owners'
      await aCheck(name)
      const [owner, heir] = ['former', 'present']
      const toStatus = { subresource: 'status', fieldManager: owner } as const
      const first = await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place(name), { status }, toStatus)
      const entriesOf = ({ metadata }: KubernetesObject) =>
        metadata.managedFields!.filter(({ subresource }) => subresource === 'status')
      const managersOf = (object: KubernetesObject) => entriesOf(object).map(({ manager }) => manager)
      const managedFields = first.metadata.managedFields!.map((entry) =>
        entry.manager === owner ? { ...entry, manager: heir } : entry,
      )
      const metadata = { ...first.metadata, managedFields }
      const written = { ...first, metadata, status: { observedGeneration: 8 } }
      const replaced = await client.replace<HeartbeatCheck>(HEARTBEAT_CHECKS, written, toStatus)
      expect(managersOf(replaced)).toEqual([owner])
      const patch = { metadata: { managedFields } }
      const patched = await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place(name), patch)
      expect(managersOf(patched)).toEqual([heir])
      expect(patched.status).toEqual(replaced.status)
    })

    it('has a generation that counts the changes of its spec, and its deletion', async () => {
      const name = 'with-generation'
      const change = async (patch: object, options = {}) =>
        (await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place(name), patch, options)).metadata.generation
      expect((await aCheck(name)).metadata.generation).toBe(1)
      expect(await change({ status }, { subresource: 'status' })).toBe(1)
      expect(await change({ metadata: { labels: { a: 'b' }, finalizers: ['example.com/first'] } })).toBe(1)
      expect(await change({ spec: { periodSeconds: 120 } })).toBe(2)
      await client.delete(HEARTBEAT_CHECKS, place(name))
      const { metadata } = await client.get(HEARTBEAT_CHECKS, place(name))
      expect(metadata.generation).toBe(3)
      await change({ metadata: { finalizers: null } })
    })
  })
}

function ownerOf({ name, uid }: ObjectMeta): OwnerReference {
  return { apiVersion: 'v1', kind: 'ConfigMap', name, uid, controller: true, blockOwnerDeletion: false }
}
