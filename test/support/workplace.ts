/** A namespace of a test, on the fake API server or a real one, and what a person does in it. */

import type { Connection } from '../../src/kubernetes/connection.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { eventually } from './until.ts'

export interface TestCluster {
  readonly connection: Connection
  /** One call as the admin; never throws for a status. */
  api(
    method: string,
    path: string,
    body?: unknown,
    contentType?: string,
    // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  ): Promise<{ readonly status: number; readonly body: any }>
  makeNamespace(annotations?: Record<string, string>): Promise<{ readonly name: string }>
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

export interface Workplace {
  readonly name: string
  /** Path of a HeartbeatCheck. */
  pathOf(name: string): string
  /** Creates or changes it, as `kubectl apply --server-side` does. */
  apply(name: string, spec?: object, metadata?: object): Promise<HeartbeatCheck>
  /** A JSON merge patch. */
  change(name: string, patch: object): Promise<HeartbeatCheck>
  get(name: string): Promise<HeartbeatCheck>
  list(): Promise<HeartbeatCheck[]>
  /** Waits until the newest generation is Ready. */
  ready(name: string, limitMs?: number): Promise<HeartbeatCheck>
  /** Applies one and waits until it is Ready. */
  makeReady(name: string, spec?: object, metadata?: object): Promise<HeartbeatCheck>
  /** Waits until the newest generation is Stalled for this reason; resolves with the message. */
  stalled(name: string, reason: string): Promise<string>
  /** Waits until the status says this state. */
  inState(name: string, state: string): Promise<HeartbeatCheck>
  /** Its condition of this type. */
  condition(name: string, type: string): Promise<ReturnType<typeof conditionOf>>
  /** Waits until there is none of the name. */
  gone(name: string): Promise<unknown>
  /** Deletes it, and waits until it is gone. */
  delete(name: string): Promise<void>
  /** Deletes it, and takes its finalizers off, as a person does after a long wait. */
  forceAway(name: string): Promise<void>
  put(plural: 'secrets' | 'configmaps', object: object): Promise<Published>
  patch(plural: 'secrets' | 'configmaps', name: string, patch: object): Promise<Published>
  /** Null when there is none. */
  find(plural: 'secrets' | 'configmaps', name: string): Promise<Published | null>
  /** What the Secret `<name>-heartbeat` says. */
  pingUrl(name: string): Promise<string>
  events(name: string): Promise<KubernetesEvent[]>
  /** Waits until an Event of this reason is written. */
  event(name: string, reason: string): Promise<KubernetesEvent>
}

const GROUP = '/apis/heartbeat-operator.io/v1'
const HOURLY = { periodSeconds: 3_600 }

/** Returns a call as the admin, which throws what the API server says when it rejects one. */
export function callerOf(cluster: Pick<TestCluster, 'api'>) {
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  return async <T = any>(method: string, path: string, body?: object, contentType?: string): Promise<T> => {
    const answer = await cluster.api(method, path, body, contentType)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body?.message}`)
    return answer.body
  }
}

export async function openWorkplace(cluster: TestCluster, annotations?: Record<string, string>): Promise<Workplace> {
  return workIn(cluster, (await cluster.makeNamespace(annotations)).name)
}

/** `kind`: of the resources, which have at least the conditions of a HeartbeatCheck. */
export function workIn(cluster: Pick<TestCluster, 'api'>, namespace: string, kind = 'HeartbeatCheck'): Workplace {
  const checks = `${GROUP}/namespaces/${namespace}/${kind.toLowerCase()}s`
  const core = `/api/v1/namespaces/${namespace}`
  const pathOf = (name: string) => `${checks}/${name}`

  const call = callerOf(cluster)
  const get = (name: string) => call<HeartbeatCheck>('GET', pathOf(name))
  const isGone = async (name: string) => (await cluster.api('GET', pathOf(name))).status === 404
  const gone = (name: string) => eventually(`${name} is gone`, () => isGone(name))
  const apply = (name: string, spec: object = HOURLY, metadata: object = {}) =>
    call<HeartbeatCheck>(
      'PATCH',
      `${pathOf(name)}?fieldManager=test&force=true`,
      {
        apiVersion: 'heartbeat-operator.io/v1',
        kind,
        metadata: { name, namespace, ...metadata },
        spec,
      },
      'application/apply-patch+yaml',
    )
  const find = async (plural: string, name: string): Promise<Published | null> => {
    const { status, body } = await cluster.api('GET', `${core}/${plural}/${name}`)
    return status === 404 ? null : body
  }
  const events = async (name: string) => {
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`
    const { items } = await call<{ items: (KubernetesEvent & { regarding: { name: string } })[] }>('GET', path)
    return items.filter(({ regarding }) => regarding.name === name)
  }
  /** Waits until the resource, at its newest generation, is as `pick` wants it. */
  const whenSeen = <T>(what: string, name: string, pick: (object: HeartbeatCheck) => T | null, limitMs?: number) =>
    eventually(
      `${name} is ${what}`,
      async () => {
        const object = await get(name)
        const isSeen = object.status?.observedGeneration === object.metadata.generation
        const picked = isSeen ? pick(object) : null
        if (picked === null) throw new Error(JSON.stringify(object.status))
        return picked
      },
      limitMs,
    )
  const ready = (name: string, limitMs?: number) =>
    whenSeen('Ready', name, (object) => (conditionOf(object, 'Ready')?.status === 'True' ? object : null), limitMs)

  return {
    name: namespace,
    pathOf,
    apply,
    get,
    ready,
    find,
    events,
    gone,
    condition: async (name, type) => conditionOf(await get(name), type),
    list: async () => (await call<{ items: HeartbeatCheck[] }>('GET', checks)).items,
    change: (name, patch) => call('PATCH', pathOf(name), patch),
    stalled: (name, reason) =>
      whenSeen(`stalled by ${reason}`, name, (object) => {
        const stalled = conditionOf(object, 'Stalled')
        return stalled?.status === 'True' && stalled.reason === reason ? stalled.message : null
      }),
    inState: (name, state) =>
      eventually(`${name} is ${state}`, async () => {
        const object = await get(name)
        return object.status?.state === state && object
      }),
    async makeReady(name, spec, metadata) {
      await apply(name, spec, metadata)
      return ready(name)
    },
    async delete(name) {
      await call('DELETE', pathOf(name))
      await gone(name)
    },
    async forceAway(name) {
      // The operator may put its finalizer back on one that lives, and never on one that is being deleted.
      await call('DELETE', pathOf(name))
      await call('PATCH', pathOf(name), { metadata: { finalizers: null } })
      await gone(name)
    },
    put: (plural, object) => call('POST', `${core}/${plural}`, object),
    patch: (plural, name, patch) => call('PATCH', `${core}/${plural}/${name}`, patch),
    pingUrl: async (name) => urlIn(await find('secrets', `${name}-heartbeat`)),
    event: (name, reason) =>
      eventually(`an Event of ${name} says ${reason}`, async () =>
        (await events(name)).find((event) => event.reason === reason),
      ),
  }
}

/** What the key of a Secret says. */
export function urlIn(secret: Published | null, key = 'HEARTBEAT_URL'): string {
  return Buffer.from(secret?.data?.[key] ?? '', 'base64').toString()
}

export function conditionOf({ status }: HeartbeatCheck, type: string) {
  return status?.conditions?.find((condition) => condition.type === type)
}
