/** CronJobs of a test, on the fake API server or a real one, and what a person does with them. */

import type { CronJobSettings } from '../../src/domain/cron-job-settings.ts'
import type { KubernetesObject } from '../../src/kubernetes/objects.ts'
import { eventually } from './until.ts'
import { callerOf, type KubernetesEvent, type TestCluster, type Workplace } from './workplace.ts'

export const WATCH_LABEL = 'heartbeat-operator.io/watch'
export const WATCHED = { labels: { [WATCH_LABEL]: 'true' } }

/** As an installation has it that configures nothing. */
export const LABELLED = { watch: 'labelled', timeZone: 'Etc/UTC', logs: 'off' } as const satisfies CronJobSettings

/** The spec of a HeartbeatCheck that follows this CronJob. */
export const follow = (name: string) => ({ sourceRef: { kind: 'CronJob', name } })

export interface CronJobs {
  /** Suspended, unless `spec` says otherwise: then a real controller creates no Jobs. */
  create(name: string, metadata?: object, spec?: object): Promise<KubernetesObject>
  /** A JSON merge patch. */
  change(name: string, patch: object): Promise<void>
  /** What its controller writes. */
  changeStatus(name: string, status: object): Promise<void>
  /** Null: without the label. */
  label(name: string, value: string | null): Promise<void>
  annotate(name: string, annotations: Record<string, string | null>): Promise<void>
  delete(name: string, propagationPolicy?: 'Background' | 'Foreground'): Promise<void>
  /** Waits until a Warning of this reason is written; resolves with all of them, their notes in alphabetical order. */
  warnings(name: string, reason: string): Promise<string[]>
}

export function cronJobsIn(cluster: TestCluster, { name: namespace, events }: Workplace): CronJobs {
  const all = `/apis/batch/v1/namespaces/${namespace}/cronjobs`
  const call = callerOf(cluster)
  const change = (name: string, patch: object) => call<void>('PATCH', `${all}/${name}`, patch)
  const isWarning = (reason: string) => (event: KubernetesEvent) => event.type === 'Warning' && event.reason === reason
  return {
    create: (name, metadata = {}, spec = {}) =>
      call('POST', all, {
        apiVersion: 'batch/v1',
        kind: 'CronJob',
        metadata: { name, namespace, ...metadata },
        spec: { schedule: '0 2 * * *', suspend: true, jobTemplate: JOB_TEMPLATE, ...spec },
      }),
    change,
    changeStatus: (name, status) => call('PATCH', `${all}/${name}/status`, { status }),
    label: (name, value) => change(name, { metadata: { labels: { [WATCH_LABEL]: value } } }),
    annotate: (name, annotations) =>
      change(name, {
        metadata: {
          annotations: Object.fromEntries(
            Object.entries(annotations).map(([key, value]) => [`heartbeat-operator.io/${key}`, value]),
          ),
        },
      }),
    async delete(name, propagationPolicy = 'Background') {
      await call('DELETE', `${all}/${name}`, { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy })
    },
    warnings: (name, reason) =>
      eventually(`the CronJob ${name} has a Warning ${reason}`, async () => {
        const found = (await events(name)).filter(isWarning(reason))
        return found.length > 0 && found.map(({ note }) => note).sort()
      }),
  }
}

const JOB_TEMPLATE = {
  spec: {
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'backup', image: 'example.com/backup:1' }] } },
  },
}

/** `kubectl label namespace`; null removes the label. */
export async function labelNamespace(cluster: TestCluster, name: string, value: string | null): Promise<void> {
  const patch = { metadata: { labels: { [WATCH_LABEL]: value } } }
  const { status } = await cluster.api('PATCH', `/api/v1/namespaces/${name}`, patch)
  if (status !== 200) throw new Error(`the Namespace ${name} could not be labelled: ${status}`)
}
