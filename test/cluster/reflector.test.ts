/** The reflector on a real API server, with what can go wrong between the two and behind it. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient, type KubernetesClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import type { KubernetesObject } from '../../src/kubernetes/objects.ts'
import { createReflector, type Reflector, type ReflectorOptions } from '../../src/kubernetes/reflector.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { type Cluster, cluster, openCluster, type TestNamespace, waitFor } from '../support/cluster.ts'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'

interface ConfigMap extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>
}

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const WIDGETS = { group: 'reflector.test', version: 'v1', plural: 'widgets' }
const LABELS = { suite: 'reflector' }

interface Following extends AsyncDisposable {
  readonly client: KubernetesClient
  readonly reflector: Reflector<ConfigMap>
  readonly changes: string[]
  readonly problems: string[]
  readonly restarts: string[]
  /** Waits until the copy holds exactly these names with these texts: `a=1 b=2`. */
  holds(expected: string, limitMs?: number): Promise<void>
}

async function follow(kubeconfigPath: string, options: Partial<ReflectorOptions<ConfigMap>>): Promise<Following> {
  const connection = await findConnection({ KUBECONFIG: kubeconfigPath }, { clock: systemClock })
  const client = createClient({ connection: connection!, clock: systemClock })
  const changes: string[] = []
  const problems: string[] = []
  const restarts: string[] = []
  const textOf = (object: ConfigMap | undefined) => (object === undefined ? '-' : (object.data?.text ?? '?'))
  const reflector = createReflector<ConfigMap>({
    client,
    type: CONFIG_MAPS,
    labelSelector: 'suite=reflector',
    clock: systemClock,
    onChange: (key, { before, after }) => changes.push(`${key.split('/')[1]}: ${textOf(before)} -> ${textOf(after)}`),
    onProblem: (error, kind) => problems.push(`${kind}: ${(error as Error).message}`),
    metrics: { restarted: (reason) => restarts.push(reason), contact: () => {}, objects: () => {} },
    ...options,
  })
  reflector.start()
  return {
    client,
    reflector,
    changes,
    problems,
    restarts,
    async holds(expected, limitMs) {
      const content = () =>
        [...reflector.values()]
          .map((object) => `${object.metadata.name}=${textOf(object)}`)
          .sort()
          .join(' ')
      await waitFor(`the copy holds ${expected}`, () => content() === expected || null, limitMs).catch((error) => {
        throw new Error(`${error.message}; it holds: ${content()}; problems: ${problems.join(', ')}`)
      })
    },
    async [Symbol.asyncDispose]() {
      await reflector.stop()
      await client.close()
    },
  }
}

/** Writes as somebody else. */
function writerOf(server: Cluster, namespace: string) {
  const path = `/api/v1/namespaces/${namespace}/configmaps`
  return {
    async write(name: string, text: string): Promise<void> {
      const body = { metadata: { name, labels: LABELS }, data: { text } }
      const patched = await server.api('PATCH', `${path}/${name}`, body)
      if (patched.status === 404) expect((await server.api('POST', path, body)).status).toBe(201)
    },
    async remove(name: string): Promise<void> {
      expect((await server.api('DELETE', `${path}/${name}`)).status).toBe(200)
    },
  }
}

describe('on a network that has faults', () => {
  let proxy: TcpProxy
  let namespace: TestNamespace
  let kubeconfigPath: string

  beforeAll(async () => {
    proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    kubeconfigPath = await cluster.writeKubeconfig({ credential: { token: cluster.adminToken }, server: proxy.url })
  })
  afterAll(() => proxy.close())

  const open = async (options: Partial<ReflectorOptions<ConfigMap>> = {}) => {
    namespace = await cluster.makeNamespace()
    const a = await follow(kubeconfigPath, { namespace: namespace.name, ...options })
    return { ...a, ...writerOf(cluster, namespace.name), [Symbol.asyncDispose]: a[Symbol.asyncDispose] }
  }
  /** The watch's connection: bytes have come over it, and it is the youngest. */
  const watchOf = () => proxy.connections().at(-1)!

  it('follows what happens, takes our own writes over, and hears no echo', async () => {
    await using a = await open()
    await a.write('a', '1')
    await a.holds('a=1')
    // Or the watch may tell of our write before its answer is here, which then is no echo.
    const watch = watchOf()
    watch.stall()
    const written = await a.client.mergePatch<ConfigMap>(
      CONFIG_MAPS,
      { namespace: namespace.name, name: 'a' },
      { data: { text: '2' } },
    )
    a.reflector.put(written)
    watch.resume()
    expect(a.reflector.get(`${namespace.name}/a`)?.data).toEqual({ text: '2' })
    await a.write('b', '1')
    await a.remove('a')
    await a.holds('b=1')
    await a.write('a', 'again')
    await a.holds('a=again b=1')
    expect(a.changes).toEqual(['a: - -> 1', 'b: - -> 1', 'a: 2 -> -', 'a: - -> again'])
    expect(a.problems).toEqual([])
  })

  it('is back in under 2 s after a reset, and has lost nothing', async () => {
    await using a = await open()
    await a.write('a', '1')
    await a.holds('a=1')
    await waitFor('the watch', () => proxy.count().open === 2 || null)
    const from = performance.now()
    watchOf().reset()
    await a.write('a', '2')
    await a.holds('a=2')
    expect(performance.now() - from).toBeLessThan(2_000)
    expect(a.restarts).toEqual(['error'])
  })

  it('notices silence in its time, and goes on over another connection', async () => {
    await using a = await open({ stallMs: 3_000 })
    await a.write('a', '1')
    await a.holds('a=1')
    await waitFor('the watch', () => proxy.count().open >= 2 || null)
    const from = performance.now()
    const dead = new Set(proxy.connections())
    proxy.stall((connection) => dead.has(connection))
    await a.write('a', '2')
    // The sockets for requests are dead as well, which takes 10 s to find out.
    await a.holds('a=2', 30_000)
    expect(performance.now() - from).toBeLessThan(3_000 + 10_000 + 5_000)
    proxy.resume()
  })
})

describe('while we may not list', () => {
  it('goes on asking, and works once we may', async () => {
    await using namespace = await cluster.makeNamespace()
    const { write } = writerOf(cluster, namespace.name)
    await write('a', '1')
    const kubeconfigPath = await cluster.writeKubeconfig({ credential: await cluster.certifyUser('jane') })
    await using a = await follow(kubeconfigPath, { namespace: namespace.name })
    await waitFor('a second refusal', () => a.problems.length >= 2 || null)
    expect(a.problems[0]).toMatch(/^list: configmaps is forbidden: User "jane" cannot list resource "configmaps"/)
    expect(a.reflector.hasSynced()).toBe(false)
    await cluster.applyManifest([
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name: 'reader', namespace: namespace.name },
        rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] }],
      },
      {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'reader', namespace: namespace.name },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'jane' }],
      },
    ])
    await a.holds('a=1', 35_000)
  })
})

describe('with a control plane that has faults', () => {
  let plane: ControlPlane
  let own: Cluster
  let a: Following
  let write: (name: string, text: string) => Promise<void>
  let remove: (name: string) => Promise<void>

  beforeAll(async () => {
    plane = await startControlPlane()
    own = openCluster(plane)
    ;({ write, remove } = writerOf(own, 'default'))
    a = await follow(plane.kubeconfigPath, { namespace: 'default' })
    await waitFor('the first list', a.reflector.hasSynced)
  })
  afterAll(async () => {
    await a?.[Symbol.asyncDispose]()
    await plane?.stop()
  })

  it('goes on after a restart of the API server', async () => {
    await write('a', '1')
    await write('b', '1')
    await a.holds('a=1 b=1')
    await plane.restartApiServer()
    await write('a', '2')
    await remove('b')
    await a.holds('a=2', 40_000)
    expect(a.changes).toEqual(['a: - -> 1', 'b: - -> 1', 'a: 1 -> 2', 'b: 1 -> -'])
  })

  it('goes on where nobody knows any more what was', async () => {
    await plane.forgetHistory()
    await write('a', '3')
    await a.holds('a=3', 40_000)
    await write('b', '3')
    await a.holds('a=3 b=3')
  })

  it('sees other objects where etcd was emptied and everything was applied again', async () => {
    const uid = a.reflector.get('default/a')!.metadata.uid
    a.changes.length = 0
    await plane.emptyEtcd()
    await write('a', 'new')
    await a.holds('a=new', 40_000)
    expect(a.reflector.get('default/a')!.metadata.uid).not.toBe(uid)
    expect(a.changes.toSorted()).toEqual(['a: - -> new', 'a: 3 -> -', 'b: 3 -> -'])
    await write('a', 'newer')
    await a.holds('a=newer')
  })

  it('waits for a resource that is not there, also when it goes and comes again', async () => {
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.reflector.test' },
      spec: {
        group: WIDGETS.group,
        scope: 'Namespaced',
        names: { kind: 'Widget', plural: 'widgets', singular: 'widget' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { data: { type: 'object', additionalProperties: { type: 'string' } } },
              },
            },
          },
        ],
      },
    }
    await using widgets = await follow(plane.kubeconfigPath, { type: WIDGETS, labelSelector: 'suite=reflector' })
    const make = (name: string, text: string) =>
      waitFor('the kind is served', async () => {
        const body = {
          apiVersion: 'reflector.test/v1',
          kind: 'Widget',
          metadata: { name, labels: LABELS },
          data: { text },
        }
        return (
          (await own.api('POST', '/apis/reflector.test/v1/namespaces/default/widgets', body)).status === 201 || null
        )
      })
    await waitFor('a refusal', () => widgets.problems.length > 0 || null)
    expect(widgets.problems[0]).toMatch(/^list: /)
    await own.applyManifest(crd)
    await make('a', '1')
    await make('b', '1')
    await widgets.holds('a=1 b=1', 35_000)
    await own.kubectl('delete', 'crd', 'widgets.reflector.test')
    await own.applyManifest(crd)
    await make('a', 'again')
    await widgets.holds('a=again', 40_000)
    expect(widgets.changes.toSorted()).toEqual(['a: - -> 1', 'a: - -> again', 'a: 1 -> -', 'b: - -> 1', 'b: 1 -> -'])
    await make('c', '1')
    await widgets.holds('a=again c=1')
  })
})
