/**
 * What our code relies on in an API server, as tests. They run against the real one, and against the fake, which is thereby
 * proven to be true.
 */

import { beforeAll, describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import { ApiError } from '../../src/kubernetes/errors.ts'
import type { KubernetesObject, ResourceType } from '../../src/kubernetes/objects.ts'
import type { WatchEvent } from '../../src/kubernetes/watch-lines.ts'

export interface ServerUnderTest {
  readonly client: KubernetesClient
  /** Nobody else writes ConfigMaps with the tests' labels in it. */
  readonly namespace: string
  /** A watch of so many seconds gets a bookmark before it ends. */
  readonly bookmarkSeconds: number
  /** Lists and watches that have begun before are too old afterwards. */
  expire(): Promise<void>
}

export interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>
}

export const CONFIG_MAPS: ResourceType = { group: '', version: 'v1', plural: 'configmaps' }
/** Longer than a server may take to tell what has happened. */
export const PATIENCE_MS = 45_000

/** The ApiError that a call is rejected with. */
export async function refusalOf(call: Promise<unknown>): Promise<ApiError> {
  const error = await call.then(
    () => null,
    (reason) => reason,
  )
  expect(error).toBeInstanceOf(ApiError)
  return error
}

export function describeApiContract(open: () => Promise<ServerUnderTest>): void {
  let server: ServerUnderTest
  let client: KubernetesClient
  let namespace: string
  let made = 0

  beforeAll(async () => {
    server = await open()
    client = server.client
    namespace = server.namespace
  })

  /** A label of its own for each test, so that none sees another's objects. */
  function startTest() {
    made += 1
    const suite = `contract-${made}`
    const label = { suite }
    return {
      labelSelector: `suite=${suite}`,
      label,
      nameOf: (name: string) => ({ namespace, name: `${suite}-${name}` }),
      create: (name: string, data: Record<string, string> = {}, labels: Record<string, string> = label) =>
        client.create<ConfigMap>(CONFIG_MAPS, {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: `${suite}-${name}`, namespace, labels },
          data,
        }),
    }
  }

  /** Everything until the server ends the watch, or until `isEnough`. */
  async function watchFrom(
    resourceVersion: string,
    labelSelector: string,
    isEnough: (events: WatchEvent<ConfigMap>[]) => boolean,
    timeoutSeconds = 30,
  ): Promise<WatchEvent<ConfigMap>[]> {
    const events: WatchEvent<ConfigMap>[] = []
    const signal = AbortSignal.timeout(PATIENCE_MS)
    const options = { namespace, resourceVersion, labelSelector, timeoutSeconds, signal }
    for await (const event of client.watch<ConfigMap>(CONFIG_MAPS, options)) {
      events.push(event)
      if (isEnough(events)) break
    }
    return events
  }

  it('says whether its caller has a right', async () => {
    const resourceAttributes = { namespace, verb: 'get', group: '', resource: 'pods', subresource: 'log' }
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    }
    const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
    expect(await client.raw('POST', path, review)).toMatchObject({ status: { allowed: true } })
  })

  describe('objects', () => {
    it('gives a new object a uid and a version, and gives it back', async () => {
      const { create, nameOf } = startTest()
      const created = await create('a', { greeting: 'grüß dich, 世界' })
      expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(created.metadata.resourceVersion).toMatch(/^[1-9][0-9]*$/)
      const found = await client.get<ConfigMap>(CONFIG_MAPS, nameOf('a'))
      expect(found).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { greeting: 'grüß dich, 世界' } })
      expect(found.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
    })

    it('rejects to get, patch or delete a missing object', async () => {
      const { nameOf, create } = startTest()
      await create('gone')
      await client.delete(CONFIG_MAPS, nameOf('gone'))
      for (const call of [
        () => client.get(CONFIG_MAPS, nameOf('gone')),
        () => client.mergePatch(CONFIG_MAPS, nameOf('gone'), { data: { a: '1' } }),
        () => client.delete(CONFIG_MAPS, nameOf('gone')),
      ]) {
        const refusal = await refusalOf(call())
        expect(refusal).toMatchObject({ status: 404, reason: 'NotFound', details: { name: nameOf('gone').name } })
        expect(refusal.message).toContain(nameOf('gone').name)
      }
    })

    it('rejects to replace a deleted object: 1.33 with Conflict, 1.36 with NotFound', async () => {
      const { nameOf, create } = startTest()
      const gone = await create('gone')
      await client.delete(CONFIG_MAPS, nameOf('gone'))
      const { status, reason } = await refusalOf(client.replace(CONFIG_MAPS, gone))
      expect(['404 NotFound', '409 Conflict']).toContain(`${status} ${reason}`)
    })

    it('rejects to create an existing object with AlreadyExists', async () => {
      const { create, nameOf } = startTest()
      await create('a')
      const refusal = await refusalOf(create('a'))
      expect(refusal).toMatchObject({ status: 409, reason: 'AlreadyExists', details: { name: nameOf('a').name } })
    })

    it('replaces the newest version only, and calls anything else Conflict', async () => {
      const { create, nameOf } = startTest()
      const first = await create('a')
      const second = await client.replace<ConfigMap>(CONFIG_MAPS, { ...first, data: { n: '2' } })
      expect(Number(second.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion))
      expect(second.metadata.uid).toBe(first.metadata.uid)
      const refusal = await refusalOf(client.replace<ConfigMap>(CONFIG_MAPS, { ...first, data: { n: '3' } }))
      expect(refusal).toMatchObject({ status: 409, reason: 'Conflict', details: { name: nameOf('a').name } })
      expect((await client.get<ConfigMap>(CONFIG_MAPS, nameOf('a'))).data).toEqual({ n: '2' })
    })

    it('merges a patch: sets, takes away with null, and leaves the rest', async () => {
      const { create, nameOf } = startTest()
      await create('a', { kept: '1', changed: '1', removed: '1' })
      const patch = { data: { changed: '2', removed: null, added: '2' } }
      const patched = await client.mergePatch<ConfigMap>(CONFIG_MAPS, nameOf('a'), patch)
      expect(patched.data).toEqual({ kept: '1', changed: '2', added: '2' })
    })

    it('takes a version in a patch as a condition', async () => {
      const { create, nameOf } = startTest()
      const { metadata } = await create('a')
      const patch = { metadata: { resourceVersion: metadata.resourceVersion }, data: { n: '1' } }
      await client.mergePatch(CONFIG_MAPS, nameOf('a'), patch)
      const refusal = await refusalOf(client.mergePatch(CONFIG_MAPS, nameOf('a'), { ...patch, data: { n: '2' } }))
      expect(refusal).toMatchObject({ status: 409, reason: 'Conflict' })
    })

    it('makes no new version of what a write does not change', async () => {
      const { create, nameOf } = startTest()
      const created = await create('a', { n: '1' })
      const patched = await client.mergePatch<ConfigMap>(CONFIG_MAPS, nameOf('a'), { data: { n: '1' } })
      const replaced = await client.replace<ConfigMap>(CONFIG_MAPS, patched)
      expect(patched.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
      expect(replaced.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
    })

    it('deletes only what has the given uid and version', async () => {
      const { create, nameOf } = startTest()
      const { metadata } = await create('a')
      const uid = '00000000-0000-0000-0000-000000000000'
      const otherUid = await refusalOf(client.delete(CONFIG_MAPS, nameOf('a'), { uid }))
      const otherVersion = await refusalOf(client.delete(CONFIG_MAPS, nameOf('a'), { resourceVersion: '1' }))
      expect(otherUid).toMatchObject({ status: 409, reason: 'Conflict' })
      expect(otherVersion).toMatchObject({ status: 409, reason: 'Conflict' })
      await client.delete(CONFIG_MAPS, nameOf('a'), { uid: metadata.uid, resourceVersion: metadata.resourceVersion })
      expect((await refusalOf(client.get(CONFIG_MAPS, nameOf('a')))).status).toBe(404)
    })

    it('gives an object that is made again another uid', async () => {
      const { create, nameOf } = startTest()
      const first = await create('a')
      await client.delete(CONFIG_MAPS, nameOf('a'))
      const second = await create('a')
      expect(second.metadata.uid).not.toBe(first.metadata.uid)
      expect(Number(second.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion))
    })

    it.each([
      ['resource', { ...CONFIG_MAPS, plural: 'wonders' }],
      ['group', { group: 'unknown.example.com', version: 'v1', plural: 'wonders' }],
      ['version', { group: '', version: 'v9', plural: 'configmaps' }],
    ])('answers 404 for a %s that it does not know, to lists and watches', async (_, type) => {
      expect(await refusalOf(client.list(type, { namespace, limit: 5 }))).toMatchObject({
        status: 404,
        reason: 'NotFound',
      })
      const options = { namespace, resourceVersion: '1', timeoutSeconds: 5, signal: AbortSignal.timeout(PATIENCE_MS) }
      const watch = async () => {
        for await (const _event of client.watch(type, options));
      }
      expect(await refusalOf(watch())).toMatchObject({ status: 404, reason: 'NotFound' })
    })
  })

  describe('lists', () => {
    it('come in pages of one state: what is written meanwhile is not on the later ones', async () => {
      const { create, nameOf, labelSelector } = startTest()
      for (const name of ['a', 'b', 'c', 'd', 'e']) await create(name)
      const options = { namespace, labelSelector, limit: 2 }
      const first = await client.list<ConfigMap>(CONFIG_MAPS, options)
      await create('z')
      await client.delete(CONFIG_MAPS, nameOf('d'))
      const second = await client.list<ConfigMap>(CONFIG_MAPS, { ...options, continueToken: first.continueToken! })
      const third = await client.list<ConfigMap>(CONFIG_MAPS, { ...options, continueToken: second.continueToken! })
      const pages = [first, second, third]
      expect(pages.map(({ items }) => items.map(({ metadata }) => metadata.name.slice(-1)))).toEqual([
        ['a', 'b'],
        ['c', 'd'],
        ['e'],
      ])
      expect(new Set(pages.map(({ resourceVersion }) => resourceVersion)).size).toBe(1)
      expect(third.continueToken).toBeNull()
      expect(pages.flatMap(({ items }) => items).every(({ kind }) => kind === 'ConfigMap')).toBe(true)
    })

    it('are not older than the last write', async () => {
      const { create, labelSelector } = startTest()
      for (let n = 0; n < 10; n += 1) {
        const { metadata } = await create(`n${n}`)
        const { items, resourceVersion } = await client.list<ConfigMap>(CONFIG_MAPS, {
          namespace,
          labelSelector,
          limit: 500,
        })
        expect(items.length).toBe(n + 1)
        expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Number(metadata.resourceVersion))
      }
    })

    it('hold the object of a name when its name is selected, in one namespace or all', async () => {
      const { create, nameOf } = startTest()
      for (const name of ['a', 'b']) await create(name)
      const { name } = nameOf('a')
      for (const where of [{ namespace }, {}]) {
        const { items } = await client.list(CONFIG_MAPS, { ...where, fieldSelector: `metadata.name=${name}` })
        expect(items.map(({ metadata }) => metadata.name)).toEqual([name])
      }
    })

    it('reject an invalid continue token', async () => {
      const { labelSelector } = startTest()
      const refusal = await refusalOf(
        client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 5, continueToken: '!' }),
      )
      expect(refusal).toMatchObject({ status: 400, reason: 'BadRequest' })
    })
  })

  describe('watches', () => {
    it('report the changes after their version, in order, and none before it', async () => {
      const { create, nameOf, labelSelector } = startTest()
      const before = await create('before')
      const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 500 })
      expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Number(before.metadata.resourceVersion))
      const added = await create('a', { n: '1' })
      const changed = await client.mergePatch<ConfigMap>(CONFIG_MAPS, nameOf('a'), { data: { n: '2' } })
      await client.delete(CONFIG_MAPS, nameOf('a'))
      const events = await watchFrom(resourceVersion, labelSelector, (seen) => seen.length === 3)
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
      const [first, second, third] = events.map(({ object }) => object)
      expect(first).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { n: '1' } })
      expect(first!.metadata.resourceVersion).toBe(added.metadata.resourceVersion)
      expect(second!.metadata.resourceVersion).toBe(changed.metadata.resourceVersion)
      // The last state, with a version of its own.
      expect(third!.data).toEqual({ n: '2' })
      expect(Number(third!.metadata.resourceVersion)).toBeGreaterThan(Number(changed.metadata.resourceVersion))
    })

    it('report live changes', async () => {
      const { create, labelSelector } = startTest()
      const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 500 })
      const watched = watchFrom(resourceVersion, labelSelector, (seen) => seen.length === 2)
      await create('a')
      await create('b')
      expect((await watched).map(({ object }) => object.metadata.name.slice(-1))).toEqual(['a', 'b'])
    })

    it('say DELETED of what no longer matches their labels, and ADDED of what begins to', async () => {
      const { create, nameOf, labelSelector, label } = startTest()
      const { metadata } = await create('a', {}, {})
      await client.mergePatch(CONFIG_MAPS, nameOf('a'), { metadata: { labels: label } })
      await client.mergePatch(CONFIG_MAPS, nameOf('a'), { metadata: { labels: { suite: null } } })
      const events = await watchFrom(metadata.resourceVersion, labelSelector, (seen) => seen.length === 2)
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'DELETED'])
    })

    it('end after their time, and send a bookmark before if anything has changed since they began', async () => {
      const { create, labelSelector } = startTest()
      const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 500 })
      await create('before')
      let live: Promise<ConfigMap> | undefined
      const from = performance.now()
      const createOnce = () => {
        live ??= create('live')
        return false
      }
      const events = await watchFrom(resourceVersion, labelSelector, createOnce, server.bookmarkSeconds)
      expect(Math.round((performance.now() - from) / 1_000)).toBe(server.bookmarkSeconds)
      expect(events.slice(0, 2).map(({ type }) => type)).toEqual(['ADDED', 'ADDED'])
      const { object, type } = events.at(-1)!
      expect(type).toBe('BOOKMARK')
      const { metadata } = await live!
      expect(Number(object.metadata.resourceVersion)).toBeGreaterThanOrEqual(Number(metadata.resourceVersion))
      expect(object.metadata.name).toBeUndefined()
    })

    it('of one second deliver at once what a list is not older than, and no bookmark: by them a cache is confirmed', async () => {
      const { create, labelSelector, nameOf } = startTest()
      const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 500 })
      await create('a')
      await client.mergePatch(CONFIG_MAPS, nameOf('a'), { data: { n: '1' } })
      const listed = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 1 })
      const from = performance.now()
      const seenAt: number[] = []
      const note = () => {
        seenAt.push(performance.now() - from)
        return false
      }
      const events = await watchFrom(resourceVersion, labelSelector, note, 1)
      const tookMs = performance.now() - from
      expect(tookMs).toBeGreaterThan(900)
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED'])
      expect(Math.max(...seenAt)).toBeLessThan(900)
      const { metadata } = events[1]!.object
      expect(Number(listed.resourceVersion)).toBeGreaterThanOrEqual(Number(metadata.resourceVersion))
    })

    it('send nothing from a future version, which is why the reflector checks before it continues from an old one', async () => {
      const { create, labelSelector } = startTest()
      const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, labelSelector, limit: 500 })
      const watched = watchFrom(String(Number(resourceVersion) + 100_000), labelSelector, () => false, 1)
      await create('a')
      expect(await watched).toEqual([])
    })
  })

  // Last: they make everything old that came before.
  describe('what is too old', () => {
    it('a version that is too old fails a watch with an ERROR event in a response with status 200', async () => {
      const { create, labelSelector } = startTest()
      const { metadata } = await create('a')
      await create('b')
      await server.expire()
      await create('c')
      const events = await watchFrom(metadata.resourceVersion, labelSelector, (seen) => seen.length > 0)
      expect(events).toHaveLength(1)
      expect(events[0]).toMatchObject({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } })
    })

    it('a version that is too old fails a list on its next page', async () => {
      const { create, labelSelector } = startTest()
      for (const name of ['a', 'b', 'c']) await create(name)
      const options = { namespace, labelSelector, limit: 1 }
      const first = await client.list(CONFIG_MAPS, options)
      await create('d')
      await server.expire()
      const refusal = await refusalOf(client.list(CONFIG_MAPS, { ...options, continueToken: first.continueToken! }))
      expect(refusal).toMatchObject({ status: 410, reason: 'Expired' })
    })
  })
}
