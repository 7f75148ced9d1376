/** CronJobs, Jobs and pods as an API server sends them, and what the operator keeps of them. */

import type { KubernetesObject } from '../../src/kubernetes/objects.ts'
import { type TrimmedPod, trimPod } from '../../src/operator/reasons/trim-pod.ts'
import { cronJob } from '../../src/operator/sources/kinds/cron-job.ts'
import type { Source, SourceRun } from '../../src/operator/sources/source-kind.ts'

export const SLOT = Date.parse('2026-11-23T02:00:00Z')

/** What stands for names in the table of causes (job-causes.ts). */
export const NAMES = {
  NAMESPACE: 'payments',
  CRONJOB: 'nightly-backup',
  JOB: 'nightly-backup-29384620',
  POD: 'nightly-backup-29384620-x7k2p',
  POLICY: 'payments-images',
  SLOT: '2026-11-23T02:00:00Z',
  KILLED: '2026-11-23T02:05:00Z',
}

const metaOf = (name: string, uid: string) => ({
  namespace: NAMES.NAMESPACE,
  name,
  uid,
  resourceVersion: '7',
  creationTimestamp: '2026-11-23T02:00:00Z',
})
const JOB_UID = '5d0cfa5e-0f0b-4a3f-9f5e-2f9f4c1b7a01'
const CRONJOB_UID = '1c3d0d5e-5f6a-4b7c-8d9e-0a1b2c3d4e5f'

interface JobParts {
  readonly spec?: object | undefined
  /** Of type Failed. */
  readonly condition?: { readonly reason: string; readonly message: string } | undefined
  readonly isIndexed?: boolean
  readonly hasFailed?: boolean
  readonly failed?: number
}

export function makeJob({ spec, condition, isIndexed = false, hasFailed = false, failed = 1 }: JobParts): object {
  const at = { lastProbeTime: '2026-11-23T02:04:12Z', lastTransitionTime: '2026-11-23T02:04:12Z' }
  const conditions = ['FailureTarget', 'Failed'].map((type) => ({ type, status: 'True', ...condition, ...at }))
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...metaOf(NAMES.JOB, JOB_UID),
      ownerReferences: [{ kind: 'CronJob', name: NAMES.CRONJOB, uid: CRONJOB_UID, controller: true }],
    },
    spec: { backoffLimit: 0, completions: 1, parallelism: 1, ...spec },
    status: {
      startTime: '2026-11-23T02:00:00Z',
      ...(hasFailed ? { failed } : { active: 1, ready: 0 }),
      ...(isIndexed ? { failedIndexes: '0' } : {}),
      ...(condition === undefined ? {} : { conditions }),
    },
  }
}

interface PodParts {
  readonly name?: string
  readonly status?: object | undefined
  readonly spec?: object | undefined
  readonly annotations?: Record<string, string> | undefined
  readonly metadata?: object
}

export function makePod({ name = NAMES.POD, status, spec, annotations = {}, metadata }: PodParts): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...metaOf(name, `uid-of-${name}`),
      labels: { 'batch.kubernetes.io/job-name': NAMES.JOB },
      annotations,
      ownerReferences: [{ kind: 'Job', name: NAMES.JOB, uid: JOB_UID, controller: true, blockOwnerDeletion: true }],
      ...metadata,
    },
    spec: { restartPolicy: 'Never', containers: [{ name: 'backup', image: 'example.com/backup:1' }], ...spec },
    status: { phase: 'Pending', ...status },
  }
}

/** `changes`: of the trimmed CronJob. */
export function sourceOf(changes: object = {}): Source {
  const raw = { metadata: metaOf(NAMES.CRONJOB, CRONJOB_UID), spec: { schedule: '0 2 * * *' } }
  return { ...cronJob.trimSource(raw as KubernetesObject), ...changes }
}

export const runOf = (job: object): SourceRun => cronJob.trimRun(job as KubernetesObject)
export const podOf = (pod: object): TrimmedPod => trimPod(pod as KubernetesObject, 'Job')
