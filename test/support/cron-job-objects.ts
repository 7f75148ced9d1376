/**
 * CronJobs and Jobs as an API server stores them, in their usual size: 3.5 KB of JSON for a Job, half of it managedFields. Control planes
 * without nodes store them past the API server (`store` of tools/cluster/control-plane.ts).
 */

import { randomUUID } from 'node:crypto'
import { API_VERSION, GROUP, HEARTBEAT_CHECKS, KIND } from '../../src/operator/names.ts'
import type { StoredObject } from '../../tools/cluster/control-plane.ts'

export interface MadeCronJob extends StoredObject {
  readonly uid: string
  readonly namespace: string
  readonly name: string
}

const IMAGE = 'registry.example.com/payments/backup:2026.11.3'
const SLOT = 'batch.kubernetes.io/cronjob-scheduled-timestamp'

const toTime = (ms: number) => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** It fires on the first of January. */
export function makeCronJob(namespace: string, name: string): MadeCronJob {
  const uid = randomUUID()
  const metadata = { namespace, name, uid, generation: 1, creationTimestamp: toTime(Date.now() - 86_400_000) }
  const spec = {
    schedule: '0 0 1 1 *',
    concurrencyPolicy: 'Forbid',
    suspend: false,
    successfulJobsHistoryLimit: 20,
    failedJobsHistoryLimit: 20,
    jobTemplate: { metadata: {}, spec: { template: makeTemplate(name) } },
  }
  const managedFields = [manager('kubectl-client-side-apply'), manager('kube-controller-manager')]
  const object = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { ...metadata, managedFields },
    spec,
    status: {},
  }
  return { plural: 'cronjobs', object, uid, namespace, name }
}

/** The HeartbeatCheck that follows it. */
export function makeFollower({ namespace, name }: MadeCronJob): StoredObject {
  const metadata = { namespace, name, uid: randomUUID(), generation: 1, creationTimestamp: toTime(Date.now()) }
  const object = { apiVersion: API_VERSION, kind: KIND, metadata, spec: { sourceRef: { kind: 'CronJob', name } } }
  return { plural: `${GROUP}/${HEARTBEAT_CHECKS.plural}`, object }
}

export type JobState = 'succeeded' | 'failed' | 'running'

export interface MadeJob extends StoredObject {
  readonly uid: string
  readonly namespace: string
  readonly name: string
  readonly startedAt: number
}

/** The Job of a slot: it started a second after that, and took a minute if it has ended. `uid`: another state of that Job. */
export function makeJob(cronJob: MadeCronJob, slotAt: number, state: JobState, uid: string = randomUUID()): MadeJob {
  const { namespace } = cronJob
  const name = `${cronJob.name}-${Math.floor(slotAt / 60_000)}`
  const startedAt = Math.floor(slotAt / 1_000) * 1_000 + 1_000
  const labels = { 'batch.kubernetes.io/controller-uid': uid, 'batch.kubernetes.io/job-name': name }
  const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name: cronJob.name, uid: cronJob.uid }
  const object = {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      namespace,
      name,
      uid,
      generation: 1,
      creationTimestamp: toTime(slotAt),
      labels: { ...labels, 'controller-uid': uid, 'job-name': name },
      annotations: { [SLOT]: toTime(slotAt) },
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
      managedFields: [manager('kube-controller-manager'), manager('kube-controller-manager', 'status')],
    },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: 'TerminatingOrFailed',
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } },
      template: makeTemplate(cronJob.name, labels),
    },
    status: STATUSES[state](startedAt, startedAt + 60_000),
  }
  return { plural: 'jobs', object, uid, namespace, name, startedAt }
}

/** As the Job controller writes it, in one update. */
export function statusOfSuccess(startedAt: number, endedAt: number) {
  const message = 'Reached expected number of succeeded pods'
  const conditions = ['SuccessCriteriaMet', 'Complete'].map((type) =>
    conditionOf(type, 'CompletionsReached', message, endedAt),
  )
  return { ...ended(startedAt), completionTime: toTime(endedAt), succeeded: 1, conditions }
}

export function statusOfFailure(startedAt: number, endedAt: number) {
  const message = 'Job has reached the specified backoff limit'
  const conditions = ['FailureTarget', 'Failed'].map((type) =>
    conditionOf(type, 'BackoffLimitExceeded', message, endedAt),
  )
  return { ...ended(startedAt), failed: 7, conditions }
}

const STATUSES = {
  running: (startedAt: number) => ({ ...ended(startedAt), active: 1, ready: 1 }),
  succeeded: statusOfSuccess,
  failed: statusOfFailure,
}

function ended(startedAt: number) {
  return { startTime: toTime(startedAt), active: 0, ready: 0, terminating: 0, uncountedTerminatedPods: {} }
}

function conditionOf(type: string, reason: string, message: string, at: number) {
  return { type, status: 'True', reason, message, lastProbeTime: toTime(at), lastTransitionTime: toTime(at) }
}

function makeTemplate(name: string, labels: Record<string, string> = {}) {
  const container = {
    name: 'backup',
    image: IMAGE,
    command: ['/bin/backup', '--target', 's3://payments-backups/nightly', '--retention', '30d'],
    env: ['DATABASE_HOST', 'DATABASE_NAME', 'BUCKET', 'LOG_LEVEL'].map((key) => ({ name: key, value: `${key}-value` })),
    resources: { limits: { cpu: '1', memory: '512Mi' }, requests: { cpu: '100m', memory: '256Mi' } },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
    imagePullPolicy: 'IfNotPresent',
  }
  return {
    metadata: { labels: { ...labels, app: name } },
    spec: {
      containers: [container],
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      schedulerName: 'default-scheduler',
      securityContext: {},
    },
  }
}

function manager(name: string, subresource?: string) {
  const condition = { '.': {}, 'f:lastProbeTime': {}, 'f:lastTransitionTime': {}, 'f:message': {}, 'f:reason': {} }
  const fieldsV1 =
    subresource === undefined
      ? {
          'f:metadata': {
            'f:annotations': { '.': {}, [`f:${SLOT}`]: {} },
            'f:ownerReferences': { '.': {}, 'k:{"uid":"00000000-0000-0000-0000-000000000000"}': {} },
          },
          'f:spec': {
            ...{ 'f:backoffLimit': {}, 'f:completionMode': {}, 'f:completions': {}, 'f:parallelism': {} },
            'f:template': {
              'f:spec': {
                'f:containers': { 'k:{"name":"backup"}': { '.': {}, 'f:command': {}, 'f:env': {}, 'f:image': {} } },
              },
            },
          },
        }
      : {
          'f:status': {
            'f:completionTime': {},
            'f:conditions': {
              '.': {},
              'k:{"type":"Complete"}': condition,
              'k:{"type":"SuccessCriteriaMet"}': condition,
            },
            ...{ 'f:ready': {}, 'f:startTime': {}, 'f:succeeded': {}, 'f:terminating': {} },
          },
        }
  return {
    manager: name,
    operation: 'Update',
    apiVersion: 'batch/v1',
    time: toTime(Date.now()),
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource === undefined ? {} : { subresource }),
  }
}
