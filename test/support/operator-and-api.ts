/**
 * The operator on the lane's API server and the product's ports over the same database, as a person has them: resources go in
 * through Kubernetes, pings and calls through HTTP. The operator has the rights that manifests/ give it, and no others, so
 * that every test of it is also one of them.
 */

import { readFileSync } from 'node:fs'
import { inject } from 'vitest'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { startTestApp, type TestApp } from './app.ts'
import { cluster, type TestNamespace, waitFor } from './cluster.ts'
import type { TestDatabase } from './database.ts'
import { startTestOperator, type TestOperator } from './operator.ts'

export interface OperatorAndApi extends AsyncDisposable {
  readonly app: TestApp
  /** The one that was started last. */
  operator(): TestOperator
  /** Stops the operator and starts another, which knows nothing of what this one has seen. */
  restart(changes?: Partial<OperatorOptions>): Promise<void>
}

const INSTALLED = 'heartbeat-operator'
/** With waits that suit a test. */
const SOON: Partial<OperatorOptions> = { pollMs: 300, resyncMs: 2_000 }

const part = (name: string) => readFileSync(new URL(`../../manifests/parts/${name}.yaml`, import.meta.url), 'utf8')

export async function startOperatorAndApi(changes: Partial<OperatorOptions> = {}): Promise<OperatorAndApi> {
  const [kubeconfig, app] = await Promise.all([installRights(), startTestApp()])
  const testDatabase = await databaseOf(app)
  const start = (more: Partial<OperatorOptions> = {}) =>
    startTestOperator({
      kubeconfig,
      leaseNamespace: INSTALLED,
      testDatabase,
      changes: { ...SOON, pingUrl: () => app.pingUrl, ...changes, ...more },
    })
  let operator = await start()
  return {
    app,
    operator: () => operator,
    async restart(more) {
      await operator.stop()
      operator = await start(more)
    },
    async [Symbol.asyncDispose]() {
      await operator.stop()
      await app.close()
    },
  }
}

/** The cluster-wide installation's; resolves with the kubeconfig of its ServiceAccount. */
export async function installRights(): Promise<string> {
  await cluster.applyManifest(['namespace', 'service-accounts', 'rbac-lease', 'rbac'].map(part).join('\n---\n'))
  return kubeconfigOf(INSTALLED)
}

/** The namespaced installation's, in another namespace than its own, as its first comment describes. */
export async function installNamespacedRights(namespace: string): Promise<string> {
  const texts = ['service-accounts', 'rbac-lease', 'rbac-namespaced'].map(part).join('\n---\n')
  await cluster.applyManifest(texts.replaceAll('namespace: heartbeat-operator', `namespace: ${namespace}`))
  return kubeconfigOf(namespace)
}

async function kubeconfigOf(namespace: string): Promise<string> {
  const token = await cluster.tokenFor(`${namespace}/heartbeat-operator`)
  return cluster.writeKubeconfig({ credential: { token }, namespace })
}

async function databaseOf({ database }: TestApp): Promise<TestDatabase> {
  const { rows } = await database.query<{ name: string }>('select current_database() as name')
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${rows[0]!.name}`
  return { database, url: url.href, clear: () => Promise.resolve(), close: () => Promise.resolve() }
}

export interface KubernetesEvent {
  readonly metadata: { readonly name: string }
  readonly type: string
  readonly reason: string
  readonly note: string
}

/** A Secret or ConfigMap, as far as tests look into it. */
export interface Published {
  readonly metadata: HeartbeatCheck['metadata']
  readonly data?: Record<string, string>
}

/** A namespace of a test, and what a person does in it. */
export interface Workplace extends TestNamespace {
  create(name: string, spec?: object, metadata?: object): Promise<HeartbeatCheck>
  /** A JSON merge patch. */
  change(name: string, patch: object): Promise<HeartbeatCheck>
  get(name: string): Promise<HeartbeatCheck>
  /** Waits until the newest generation is Ready. */
  ready(name: string): Promise<HeartbeatCheck>
  /** Waits until the newest generation is Stalled for this reason; resolves with the message. */
  stalled(name: string, reason: string): Promise<string>
  /** Waits until it is gone. */
  delete(name: string): Promise<void>
  /** Makes one and waits until it is Ready. */
  makeReady(name: string, spec?: object, metadata?: object): Promise<HeartbeatCheck>
  put(plural: 'secrets' | 'configmaps', object: object): Promise<Published>
  patch(plural: 'secrets' | 'configmaps', name: string, patch: object): Promise<Published>
  /** Null when there is none. */
  find(plural: 'secrets' | 'configmaps', name: string): Promise<Published | null>
  /** What the Secret `<name>-heartbeat` says. */
  pingUrl(name: string): Promise<string>
  events(name: string): Promise<KubernetesEvent[]>
}

const HOURLY = { periodSeconds: 3_600 }

export async function openWorkplace(annotations?: Record<string, string>): Promise<Workplace> {
  const namespace = await cluster.makeNamespace(annotations)
  const checks = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${namespace.name}/heartbeatchecks`
  const core = `/api/v1/namespaces/${namespace.name}`

  async function call<T>(method: string, path: string, body?: object): Promise<T> {
    const answer = await cluster.api(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body?.message}`)
    return answer.body
  }

  const get = (name: string) => call<HeartbeatCheck>('GET', `${checks}/${name}`)
  const create = (name: string, spec: object = HOURLY, metadata: object = {}) =>
    call<HeartbeatCheck>('POST', checks, {
      apiVersion: 'heartbeat-operator.io/v1alpha1',
      kind: 'HeartbeatCheck',
      metadata: { name, ...metadata },
      spec,
    })
  const find = async (plural: string, name: string): Promise<Published | null> => {
    const { status, body } = await cluster.api('GET', `${core}/${plural}/${name}`)
    return status === 404 ? null : body
  }
  const ready = (name: string) =>
    waitFor(`${name} is Ready`, async () => {
      const object = await get(name)
      const isSeen = object.status?.observedGeneration === object.metadata.generation
      if (isSeen && conditionOf(object, 'Ready')?.status === 'True') return object
      throw new Error(JSON.stringify(object.status))
    })

  return {
    ...namespace,
    create,
    get,
    ready,
    find,
    change: (name, patch) => call('PATCH', `${checks}/${name}`, patch),
    stalled: (name, reason) =>
      waitFor(`${name} is stalled by ${reason}`, async () => {
        const object = await get(name)
        const isSeen = object.status?.observedGeneration === object.metadata.generation
        const stalled = conditionOf(object, 'Stalled')
        if (isSeen && stalled?.status === 'True' && stalled.reason === reason) return stalled.message
        throw new Error(JSON.stringify(object.status))
      }),
    async delete(name) {
      await call('DELETE', `${checks}/${name}`)
      await waitFor(`${name} is gone`, async () => (await cluster.api('GET', `${checks}/${name}`)).status === 404)
    },
    async makeReady(name, spec, metadata) {
      await create(name, spec, metadata)
      return ready(name)
    },
    put: (plural, object) => call('POST', `${core}/${plural}`, object),
    patch: (plural, name, patch) => call('PATCH', `${core}/${plural}/${name}`, patch),
    async pingUrl(name) {
      return urlIn(await find('secrets', `${name}-heartbeat`))
    },
    async events(name) {
      const path = `/apis/events.k8s.io/v1/namespaces/${namespace.name}/events`
      const { items } = await call<{ items: (KubernetesEvent & { regarding: { name: string } })[] }>('GET', path)
      return items.filter(({ regarding }) => regarding.name === name)
    },
  }
}

/** What the key of a Secret says. */
export function urlIn(secret: Published | null, key = 'HEARTBEAT_URL'): string {
  return Buffer.from(secret?.data?.[key] ?? '', 'base64').toString()
}

export function conditionOf({ status }: HeartbeatCheck, type: string) {
  return status?.conditions?.find((condition) => condition.type === type)
}
