import { beforeEach, describe, expect, it } from 'vitest'
import {
  createNamespaces,
  type Namespaces,
  type NamespacesOptions,
} from '../../../../src/operator/namespaces/namespaces.ts'
import { anApiError } from '../../../support/builders.ts'
import { createManualClock } from '../../../support/manual-clock.ts'
import { useEach } from '../../../support/use.ts'

let answer: () => Record<string, string>
let asked: string[]
let namespaces: Namespaces

const clock = useEach(createManualClock)
/** `read`: what the API server answers to a get, or throws. */
const namespacesBy = (read: (name: string) => unknown, options: NamespacesOptions = {}) =>
  createNamespaces({ get: async (_: object, { name }: { name: string }) => read(name) } as never, clock, options)
const aNamespace = (uid: string, annotations?: Record<string, string>, name = 'shop') => ({
  metadata: { name, uid, resourceVersion: '1', ...(annotations && { annotations }) },
})

beforeEach(() => {
  asked = []
  answer = () => ({ 'heartbeat-operator.io/projects': ' payments, shared,' })
  namespaces = namespacesBy((name) => {
    asked.push(name)
    return aNamespace('u', answer(), name)
  })
})

const refuse = (status: number) => () => {
  throw anApiError(status)
}
const look = (age: 'cached' | 'fresh' = 'cached') => namespaces.allowedProjects('shop', age)

describe('the projects that a namespace may use', () => {
  it('are listed in its annotation, or not restricted to any', async () => {
    expect(await look()).toEqual(['payments', 'shared'])
    answer = () => ({})
    await clock.advance(30_000)
    expect(await look()).toBeNull()
  })

  it('are remembered for half a minute, and for a second by those who wait for a change', async () => {
    await look()
    await clock.advance(999)
    await look('fresh')
    expect(asked).toHaveLength(1)
    await clock.advance(1)
    await look('fresh')
    expect(asked).toHaveLength(2)
    await clock.advance(29_999)
    await look()
    expect(asked).toHaveLength(2)
    await clock.advance(1)
    await look()
    expect(asked).toHaveLength(3)
  })

  it('are unknown to one who never had the right to read them', async () => {
    answer = refuse(403)
    expect(await look()).toBeNull()
  })

  it('stay what they are for ten minutes after the right was removed, and are its own project then', async () => {
    await look()
    answer = refuse(403)
    await clock.advance(30_000)
    expect(await look()).toEqual(['payments', 'shared'])
    expect(namespaces.denial('shop')).toBe('no')
    // What must be true now is not made up, and forgets nothing.
    await expect(namespaces.allowedProjects('shop', 'now')).rejects.toThrow('the Namespace shop cannot be read: no')
    await clock.advance(599_999)
    expect(await look('fresh')).toEqual(['payments', 'shared'])
    await clock.advance(1_000)
    expect(await look('fresh')).toBeNull()
    answer = () => ({ 'heartbeat-operator.io/projects': 'payments' })
    await clock.advance(30_000)
    expect(await look()).toEqual(['payments'])
    expect(namespaces.denial('shop')).toBeNull()
    // Each removal has its own ten minutes.
    answer = refuse(403)
    await clock.advance(30_000)
    expect(await look()).toEqual(['payments'])
  })

  it('are tried again for so long where they were not read before', async () => {
    await namespaces.allowedProjects('another', 'cached')
    answer = refuse(403)
    await expect(look()).rejects.toThrow('the Namespace shop cannot be read: no; it is tried again')
    await clock.advance(599_999)
    await expect(look()).rejects.toThrow('no')
    await clock.advance(1)
    expect(await look()).toBeNull()
  })

  it('are unknown where the right is of each namespace and was never there, whatever may be read of others', async () => {
    const denied = new Set(['shop'])
    const read = (name: string) => (denied.has(name) ? refuse(403)() : aNamespace('u', answer(), name))
    namespaces = namespacesBy(read, { isRightOfEach: true })
    const lookAtAnother = () => namespaces.allowedProjects('another', 'cached')
    expect(await lookAtAnother()).toEqual(['payments', 'shared'])
    expect(await look()).toBeNull()
    // Ten minutes after the right was removed also where another namespace can be read all the time.
    denied.delete('shop')
    await clock.advance(30_000)
    expect(await look()).toEqual(['payments', 'shared'])
    denied.add('shop')
    for (let minute = 0; minute <= 10; minute += 1) {
      await clock.advance(60_000)
      expect(await lookAtAnother()).toEqual(['payments', 'shared'])
      expect(await look(), `${minute}`).toEqual(minute < 10 ? ['payments', 'shared'] : null)
    }
  })

  it('stay what a watch said of them when its right is removed', async () => {
    let isWatched = true
    const seen = aNamespace('u', { 'heartbeat-operator.io/projects': 'payments' })
    namespaces = namespacesBy(refuse(403), { watched: () => (isWatched ? seen : undefined) })
    expect(await look()).toEqual(['payments'])
    isWatched = false
    for (const minute of [1, 5, 10]) {
      await clock.advance(60_000)
      expect(await look(), `${minute}`).toEqual(['payments'])
    }
    await clock.advance(600_000)
    expect(await look()).toBeNull()
  })

  it('a failed read of a Namespace is not cached', async () => {
    answer = refuse(500)
    await expect(look()).rejects.toThrow('no')
  })
})

describe('the projects by configuration', () => {
  const configured = (options: NamespacesOptions) => namespacesBy(refuse(500), options)

  it('are those of the map, and no Namespace is read', async () => {
    const { allowedProjects, placeOf, decidedBy } = configured({ projects: new Map([['shop', ['payments']]]) })
    expect(await allowedProjects('shop', 'fresh')).toEqual(['payments'])
    expect(await allowedProjects('constructor', 'cached')).toBeNull()
    expect(await placeOf('shop', true)).toEqual({ namespaceUid: null, clusterUid: null, isFresh: false })
    expect(decidedBy).toBe('configuration')
  })

  it('are none without a map and without the annotation', async () => {
    expect(await configured({ isAnnotationOn: false }).allowedProjects('shop', 'cached')).toBeNull()
  })
})

describe('the place of a resource', () => {
  let uids: Record<string, string>
  let gate: PromiseWithResolvers<void> | null
  const start = (options: NamespacesOptions = {}) =>
    namespacesBy(async (name) => {
      asked.push(name)
      const uid = uids[name]
      await gate?.promise
      return uid === undefined ? refuse(404)() : aNamespace(uid, undefined, name)
    }, options)

  beforeEach(() => {
    uids = { shop: 'shop-1', 'kube-system': 'cluster-1' }
    gate = null
  })

  it('is read with the annotation, and not for itself', async () => {
    const { allowedProjects, placeOf } = start({ clusterUid: () => 'cluster-0' })
    await allowedProjects('shop', 'cached')
    expect(await placeOf('shop', true)).toEqual({ namespaceUid: 'shop-1', clusterUid: 'cluster-0', isFresh: false })
    expect(asked).toEqual(['shop'])
  })

  it('is read anew for the first reconcile of a resource with REVIVAL=uid, the cluster after the namespace', async () => {
    const { placeOf } = start({ revival: 'uid', watched: () => aNamespace('shop-0') })
    expect(await placeOf('shop', false)).toMatchObject({ namespaceUid: 'shop-0', isFresh: false })
    expect(await placeOf('shop', true)).toEqual({ namespaceUid: 'shop-1', clusterUid: 'cluster-1', isFresh: true })
    expect(asked).toEqual(['shop', 'kube-system'])
    uids.shop = 'shop-2'
    expect(await placeOf('shop', true)).toMatchObject({ namespaceUid: 'shop-2' })
  })

  it('is read after each call', async () => {
    const { placeOf } = start({ revival: 'uid' })
    gate = Promise.withResolvers()
    const first = placeOf('shop', true)
    uids = { shop: 'shop-2', 'kube-system': 'cluster-1' }
    const second = placeOf('shop', true)
    gate.resolve()
    expect(await first).toMatchObject({ namespaceUid: 'shop-1' })
    expect(await second).toMatchObject({ namespaceUid: 'shop-2' })
  })

  it('has no cluster for a controller that may read single namespaces only, as long as it never could', async () => {
    let answers: Record<string, () => unknown> = { 'kube-system': refuse(403) }
    const { placeOf } = namespacesBy((name) => answers[name]?.() ?? aNamespace(`${name}-1`), { revival: 'uid' })
    const alone = { namespaceUid: 'shop-1', clusterUid: null, isFresh: true }
    expect([await placeOf('shop', true), await placeOf('shop', true)]).toEqual([alone, alone])
    answers = {}
    expect(await placeOf('shop', true)).toEqual({ ...alone, clusterUid: 'kube-system-1' })
    answers = { 'kube-system': refuse(403) }
    await expect(placeOf('shop', true)).rejects.toThrow('no')
  })

  it('is unknown where there is no such namespace', async () => {
    const { placeOf } = start({ revival: 'uid' })
    expect(await placeOf('gone', true)).toEqual({ namespaceUid: null, clusterUid: null, isFresh: true })
  })
})

describe('a watched Namespace', () => {
  it('is not read', async () => {
    const watched = aNamespace('shop-1', { 'heartbeat-operator.io/projects': 'watched' })
    const { allowedProjects } = namespacesBy(refuse(500), { watched: () => watched })
    expect(await allowedProjects('shop', 'fresh')).toEqual(['watched'])
  })
})
