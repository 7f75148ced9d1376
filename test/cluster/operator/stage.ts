/** What the tests of faults share: HeartbeatChecks of one namespace, the ping port, and an operator that is watched. */

import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config.ts'
import { createClient, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import { findConnection } from '../../../src/kubernetes/connection.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createLog, type Log } from '../../../src/runtime/log.ts'
import { type Cluster, waitFor } from '../../support/cluster-client.ts'
import type { TestDatabase } from '../../support/database.ts'
import type { TestOperator } from '../../support/operator.ts'
import { silentLog } from '../../support/silent-log.ts'

export interface Checks {
  /** Applies it, as kubectl would; resolves with what the API server holds. */
  apply(name: string, spec?: object, metadata?: object): Promise<HeartbeatCheck>
  find(name: string): Promise<HeartbeatCheck | null>
  /** Waits until the status tells that this generation is in line. */
  whenReady(name: string, limitMs?: number): Promise<HeartbeatCheck>
  /** The ping URL in the Secret. */
  urlOf(name: string): Promise<string>
  /** Deletes it, and waits until it is gone unless told otherwise. */
  remove(name: string, options?: { wait: boolean }): Promise<void>
  /** As somebody does who is tired of waiting: deletes it with its finalizers taken off. */
  forceAway(name: string): Promise<void>
}

const GROUP_PATH = '/apis/heartbeat-operator.io/v1alpha1'

export function checksOf(cluster: Cluster, namespace: string): Checks {
  const pathOf = (name: string) => `${GROUP_PATH}/namespaces/${namespace}/heartbeatchecks/${name}`

  async function find(name: string): Promise<HeartbeatCheck | null> {
    const { status, body } = await cluster.api('GET', pathOf(name))
    if (status === 404) return null
    if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`)
    return body
  }

  async function whenGone(name: string): Promise<void> {
    await waitFor(`${name} is gone`, async () => (await find(name)) === null, 20_000)
  }

  return {
    find,
    async apply(name, spec = { periodSeconds: 3600 }, metadata = {}) {
      const object = {
        apiVersion: 'heartbeat-operator.io/v1alpha1',
        kind: 'HeartbeatCheck',
        metadata: { name, namespace, ...metadata },
        spec,
      }
      const path = `${pathOf(name)}?fieldManager=test&force=true`
      const { status, body } = await cluster.api('PATCH', path, object, 'application/apply-patch+yaml')
      if (status >= 300) throw new Error(`${name} was not applied: ${status} ${JSON.stringify(body)}`)
      return body
    },
    whenReady: (name, limitMs = 15_000) =>
      waitFor(
        `${name} is Ready`,
        async () => {
          const object = await find(name)
          if (object?.status?.observedGeneration !== object?.metadata.generation) return null
          const ready = object?.status?.conditions?.find(({ type }) => type === 'Ready')
          return ready?.status === 'True' && object
        },
        limitMs,
      ),
    async urlOf(name) {
      const { status, body } = await cluster.api('GET', `/api/v1/namespaces/${namespace}/secrets/${name}-heartbeat`)
      if (status !== 200) throw new Error(`no Secret ${name}-heartbeat: ${status}`)
      return Buffer.from(body.data.HEARTBEAT_URL, 'base64').toString()
    },
    async remove(name, { wait } = { wait: true }) {
      await cluster.api('DELETE', pathOf(name))
      if (wait) await whenGone(name)
    },
    async forceAway(name) {
      // The operator may put its finalizer back on one that lives, and never on one that is being deleted.
      await cluster.api('DELETE', pathOf(name))
      await cluster.api('PATCH', pathOf(name), { metadata: { finalizers: null } })
      await whenGone(name)
    },
  }
}

export interface PingPort extends AsyncDisposable {
  readonly url: string
}

/** The api role on somebody's database: jobs ping there whatever the operator does. */
export async function startPingPort({ url: databaseUrl }: Pick<TestDatabase, 'url'>): Promise<PingPort> {
  const secretKey = Buffer.alloc(32, 7)
  const ports = { PING_PORT: '0', API_PORT: '0', OPS_PORT: '0' }
  const config = readConfig(
    { ROLE: 'api', DATABASE_URL: databaseUrl, SECRET_KEY: secretKey.toString('base64'), ...ports },
    false,
  )
  const app = createApp({ config, databaseUrl, secretKey, log: silentLog })
  const { ping } = await app.start()
  return { url: ping!, [Symbol.asyncDispose]: () => app.stop() }
}

/** A job that pings again and again, until it is stopped; resolves then with the statuses of all answers. */
export function startJob(url: () => string, everyMs = 100): { stop(): Promise<number[]> } {
  const stopping = new AbortController()
  const statuses: number[] = []
  const running = (async () => {
    while (!stopping.signal.aborted) {
      statuses.push((await fetch(url())).status)
      await systemClock.sleep(everyMs, stopping.signal)
    }
  })()
  return {
    async stop() {
      stopping.abort()
      await running
      return statuses
    },
  }
}

export interface Listening {
  readonly log: Log
  /** Messages of warnings and errors, oldest first. */
  readonly said: string[]
  /** What the errors in them say themselves. */
  readonly errors: string[]
}

/** A log that is kept. */
export function listen(): Listening {
  const said: string[] = []
  const errors: string[] = []
  const hear = ({ error }: { error?: unknown }, message: string) => {
    said.push(message)
    if (error !== undefined) errors.push(String(error))
  }
  const quiet = createLog({ level: 'silent', format: 'json' })
  return { said, errors, log: { debug: quiet.debug, info: quiet.info, warn: hear, error: hear } as Log }
}

/** A client that goes its own way to the API server, for a part of what an operator asks. */
export async function connectBy(kubeconfig: string): Promise<KubernetesClient & AsyncDisposable> {
  const connection = await findConnection({ KUBECONFIG: kubeconfig }, { clock: systemClock })
  const client = createClient({ connection: connection!, clock: systemClock })
  return { ...client, [Symbol.asyncDispose]: client.close }
}

export function whenLeading({ operator }: TestOperator, limitMs = 25_000): Promise<true> {
  return waitFor('the operator leads', () => operator.isLeader(), limitMs)
}

/** The sum over all label sets that hold these labels. */
export async function readMetric(
  { metrics: { registry } }: Pick<TestOperator, 'metrics'>,
  name: string,
  labels: Record<string, string> = {},
): Promise<number> {
  const metric = await registry.getSingleMetric(name)?.get()
  if (metric === undefined) throw new Error(`there is no metric ${name}`)
  return metric.values
    .filter((value) => Object.entries(labels).every(([key, wanted]) => String(value.labels[key]) === wanted))
    .reduce((sum, { value }) => sum + value, 0)
}
