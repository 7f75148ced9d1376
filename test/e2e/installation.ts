/** The release on the stage: its addresses, its pods, and what they need. */

import { fileURLToPath } from 'node:url'
import { type ApiClient, createApiClient } from '../support/api-client.ts'
import { type PodMemory, readPodMemory } from './pod-memory.ts'
import type { Stage } from './stage.ts'

export const RELEASE = 'heartbeat'
export const NAMESPACE = 'monitoring'
export const CHART = fileURLToPath(new URL('../../charts/heartbeat-operator', import.meta.url))

/** Our images instead of public ones; and webhooks may go to Services of the cluster. */
export const VALUES = Object.entries({
  'image.repository': 'localhost/heartbeat-operator',
  'image.tag': 'dev',
  'postgresql.image.repository': 'localhost/postgres',
  'postgresql.image.tag': 'dev',
  'postgresql.storage.size': '1Gi',
  'allowedTargets[0]': '10.96.0.0/16',
}).flatMap(([key, value]) => ['--set', `${key}=${value}`])

export const LOGS = ['--set', 'cronJobs.logs=failed']

export interface Pod {
  readonly name: string
  readonly uid: string
  readonly component: string
  /** How often a container of it was started again. */
  readonly restarts: number
}

export const createInstallation = (stage: Stage) => {
  const get = async (path: string) => {
    const { status, body } = await stage.api('GET', path)
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${body?.message ?? body}`)
    return body
  }

  const readSecret = async (namespace: string, name: string): Promise<Record<string, string>> => {
    const { data } = await get(`/api/v1/namespaces/${namespace}/secrets/${name}`)
    const decode = (text: string) => Buffer.from(text, 'base64').toString()
    return Object.fromEntries(Object.entries<string>(data).map(([key, text]) => [key, decode(text)]))
  }

  const findService = async (namespace: string, name: string): Promise<string> =>
    `http://${(await get(`/api/v1/namespaces/${namespace}/services/${name}`)).spec.clusterIP}`

  return {
    get,
    readSecret,
    /** http://address of a Service, as the host reaches it. */
    findService,

    /** The management API, as the first admin. */
    async openApi(): Promise<ApiClient> {
      const { BOOTSTRAP_API_KEY } = await readSecret(NAMESPACE, RELEASE)
      return createApiClient(`${await findService(NAMESPACE, `${RELEASE}-api`)}/api/v1`, BOOTSTRAP_API_KEY!)
    },

    /** The ping URL that a job of this HeartbeatCheck gets, and the same by the address that the host reaches. */
    async readUrl(namespace: string, name: string): Promise<{ readonly published: string; readonly reached: string }> {
      const { HEARTBEAT_URL: published = '' } = await readSecret(namespace, `${name}-heartbeat`)
      return { published, reached: `${await findService(NAMESPACE, `${RELEASE}-ping`)}${new URL(published).pathname}` }
    },

    /** Those of the release that run and are not on their way out. */
    async listPods(component?: string): Promise<Pod[]> {
      const { items } = await get(`/api/v1/namespaces/${NAMESPACE}/pods`)
      const pods = items as { metadata: Meta; status: Status }[]
      return pods
        .filter(({ metadata, status }) => status.phase === 'Running' && metadata.deletionTimestamp === undefined)
        .map(({ metadata: { name, uid, labels = {} }, status: { containerStatuses = [] } }) => {
          const restarts = containerStatuses.reduce((sum, { restartCount }) => sum + restartCount, 0)
          return { name, uid, component: labels['app.kubernetes.io/component'] ?? '', restarts }
        })
        .filter((pod) => component === undefined || pod.component === component)
    },

    /** The pod that holds the Lease. */
    async findLeader(): Promise<string> {
      const path = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases/heartbeat-operator`
      const holder: string = (await get(path)).spec.holderIdentity ?? ''
      return holder.replace(/_[^_]*$/, '')
    },

    /** From the start of each api process to its line `ready`, in seconds. */
    async measureStarts(): Promise<number[]> {
      const pods = await this.listPods('api')
      return Promise.all(
        pods.map(async ({ name }) => {
          const log = await stage.kubectl('--namespace', NAMESPACE, 'logs', name, '--timestamps')
          const ready = /^(\S+) ready /m.exec(log)?.[1]
          if (ready === undefined) throw new Error(`${name} does not say that it is ready`)
          const began = await stage.kubectl('--namespace', NAMESPACE, 'exec', name, '--', 'node', '--print', BEGAN_AT)
          return Date.parse(ready) / 1_000 - Number(began)
        }),
      )
    },

    async readMemory(): Promise<Map<Pod, PodMemory>> {
      const pods = (await this.listPods()).filter(({ component }) => component !== 'test')
      return new Map(await Promise.all(pods.map(async (pod) => [pod, await readPodMemory(pod.uid)] as const)))
    },
  }
}

/**
 * When the container's first process began, in seconds since the epoch; the kernel counts hundredths since its own
 * start.
 */
const BEGAN_AT = `
const { readFileSync } = require('node:fs')
const ticks = readFileSync('/proc/1/stat', 'utf8').replace(/^.*\\) /, '').split(' ')[19]
Date.now() / 1_000 - Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]) + ticks / 100`

export type Installation = ReturnType<typeof createInstallation>

interface Status {
  readonly phase: string
  readonly containerStatuses?: readonly { readonly restartCount: number }[]
}

interface Meta {
  readonly name: string
  readonly uid: string
  readonly labels?: Record<string, string>
  readonly deletionTimestamp?: string
}
