/** CronJobs in the namespace of a scene, as a person makes them, and their Jobs and pods, as Kubernetes makes them. */

import { cronJobsIn } from '../support/cron-jobs.ts'
import type { Scene } from '../support/operator.ts'
import { callerOf } from '../support/workplace.ts'

export interface CronJobSpec {
  readonly schedule: string
  readonly timeZone?: string
  readonly suspend?: boolean
  readonly concurrencyPolicy?: string
  readonly activeDeadlineSeconds?: number
}

/** What is asked and changed in the database of a check that follows a CronJob. */
export function useChecks(t: Pick<Scene, 'sql'>) {
  return {
    /** As if the check had been so for a day: what ended before it was created would be its history. */
    age: (id: string) =>
      t.sql(
        `with old as (update checks set created_at = created_at - interval '1 day' where id = $1 returning key)
           update check_states set since = since - interval '1 day' where check_key in (select key from old)`,
        id,
      ),
    /** Types of its events, oldest first. */
    async eventsOf(id: string): Promise<string[]> {
      const sql = 'select e.type from events e join checks c on c.key = e.check_key where c.id = $1 order by e.id'
      return ((await t.sql(sql, id)).rows as { type: string }[]).map(({ type }) => type)
    },
  }
}

export function useCronJobs(t: Pick<Scene, 'cluster' | 'place'>) {
  const cronJobs = () => cronJobsIn(t.cluster, t.place)
  const jobs = () => `/apis/batch/v1/namespaces/${t.place.name}/jobs`
  const call = (method: string, path: string, body?: object) => callerOf(t.cluster)(method, path, body)
  return {
    /** Resolves with its uid. */
    async create(name: string, { activeDeadlineSeconds, ...spec }: CronJobSpec): Promise<{ uid: string }> {
      const container = { name: 'main', image: 'busybox' }
      const template = { spec: { restartPolicy: 'Never', containers: [container] } }
      const jobTemplate = { spec: { ...(activeDeadlineSeconds && { activeDeadlineSeconds }), template } }
      const { metadata } = await cronJobs().create(name, {}, { suspend: false, ...spec, jobTemplate })
      return { uid: metadata.uid! }
    },
    change: (name: string, patch: object) => cronJobs().change(name, patch),
    changeStatus: (name: string, status: object) => cronJobs().changeStatus(name, status),
    delete: (name: string) => cronJobs().delete(name),
    /** A Job of the CronJob with this uid; resolves with its own. */
    async createJob(
      name: string,
      owner: string,
      { status = {}, annotations = {}, ownerReferences = [{ ...ownedBy(owner), controller: true }] }: JobParts = {},
    ): Promise<string> {
      const metadata = { name, ownerReferences, annotations }
      const manifest = { apiVersion: 'batch/v1', kind: 'Job', metadata, spec: { backoffLimit: 3 }, status }
      return (await call('POST', jobs(), manifest)).metadata.uid
    },
    /** What its controller writes. */
    changeJob: (name: string, status: object) => call('PATCH', `${jobs()}/${name}`, { status }),
    deleteJob: (name: string) => call('DELETE', `${jobs()}/${name}`),
    /** A pod of the Job with this uid. */
    async createPod(name: string, job: string, status: object): Promise<void> {
      const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'x', uid: job, controller: true }]
      const metadata = { name, ownerReferences, labels: { 'batch.kubernetes.io/job-name': 'x' } }
      const spec = { nodeName: 'worker-3', containers: [{ name: 'main' }] }
      await call('POST', `/api/v1/namespaces/${t.place.name}/pods`, { metadata, spec, status })
    },
  }
}

export interface JobParts {
  readonly status?: object
  readonly annotations?: object
  /** Default: that of the CronJob, which controls it. */
  readonly ownerReferences?: readonly object[]
}

export const ownedBy = (uid: string) => ({ apiVersion: 'batch/v1', kind: 'CronJob', name: 'x', uid })

/** Of a Job whose pod runs, which succeeded, and which failed. */
export const running = (start: string, more: object = {}) => ({ startTime: start, active: 1, ready: 1, ...more })
export const succeeded = (start: string, end: string, more: object = {}) => ({
  startTime: start,
  completionTime: end,
  active: 0,
  ready: 0,
  succeeded: 1,
  conditions: [conditionAt('SuccessCriteriaMet', end), conditionAt('Complete', end)],
  ...more,
})
export const failed = (start: string, end: string, more: object = {}) => ({
  startTime: start,
  active: 0,
  ready: 0,
  failed: 1,
  conditions: [conditionAt('FailureTarget', end), conditionAt('Failed', end)],
  ...more,
})
const conditionAt = (type: string, lastTransitionTime: string) => ({
  type,
  status: 'True',
  reason: 'BackoffLimitExceeded',
  message: 'Job has reached the specified backoff limit',
  lastTransitionTime,
})
