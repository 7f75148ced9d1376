/** CronJobs and their Jobs, of batch/v1. */

import type { JobEntry } from '../../../checks/jobs/job-report.ts'
import type { Instant } from '../../../domain/check.ts'
import { LIMITS } from '../../../domain/limits.ts'
import type { KubernetesObject, ObjectMeta } from '../../../kubernetes/objects.ts'
import { GROUP } from '../../names.ts'
import type { Outcome, Source, SourceKind, SourceRun, SourceSchedule } from '../source-kind.ts'

/**
 * On a Job: the slot of the schedule that it was created for, as the controller of CronJobs writes it since Kubernetes
 * 1.28.
 */
const SLOT_ANNOTATION = 'batch.kubernetes.io/cronjob-scheduled-timestamp'

/** On a Job: `manual`, as kubectl create job --from and its like write it. */
const ORIGIN_ANNOTATION = 'cronjob.kubernetes.io/instantiate'

const INDEXES_LENGTH = 200
const DAY_MS = 86_400_000

interface RawCronJob extends KubernetesObject {
  readonly spec?: {
    readonly schedule?: string
    readonly timeZone?: string
    readonly suspend?: boolean
    readonly concurrencyPolicy?: string
    readonly startingDeadlineSeconds?: number
    readonly jobTemplate?: { readonly spec?: { readonly activeDeadlineSeconds?: number } }
  }
  readonly status?: {
    readonly lastScheduleTime?: string
    readonly lastSuccessfulTime?: string
    readonly active?: readonly { readonly name?: string }[]
  }
}

interface RawJob extends KubernetesObject {
  readonly spec?: { readonly backoffLimit?: number; readonly suspend?: boolean }
  readonly status?: {
    readonly startTime?: string
    readonly completionTime?: string
    readonly ready?: number
    readonly succeeded?: number
    readonly failed?: number
    readonly failedIndexes?: string
    readonly conditions?: readonly RawCondition[]
  }
}

interface RawCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

export const cronJob = {
  kind: 'CronJob',
  type: { group: 'batch', version: 'v1', plural: 'cronjobs' },
  runType: { group: 'batch', version: 'v1', plural: 'jobs' },
  runKind: 'Job',
  podSelection: { labelSelector: 'batch.kubernetes.io/job-name', fieldSelector: 'status.phase!=Succeeded' },

  trimSource({ metadata, spec = {}, status = {} }: RawCronJob): Source {
    const { generation, deletionTimestamp } = metadata
    const labels = ours(metadata.labels)
    const annotations = ours(metadata.annotations)
    return {
      metadata: {
        ...nameOf(metadata),
        ...(generation === undefined ? {} : { generation }),
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
      },
      createdAt: readTime(metadata.creationTimestamp) ?? 0,
      schedule: spec.schedule ?? '',
      timeZone: spec.timeZone ?? null,
      suspended: spec.suspend ?? false,
      concurrencyPolicy: spec.concurrencyPolicy ?? 'Allow',
      startingDeadlineSeconds: spec.startingDeadlineSeconds ?? null,
      activeDeadlineSeconds: spec.jobTemplate?.spec?.activeDeadlineSeconds ?? null,
      lastScheduleTime: status.lastScheduleTime ?? null,
      lastSuccessfulTime: status.lastSuccessfulTime ?? null,
      active: (status.active ?? []).flatMap(({ name }) => name ?? []),
    }
  },

  trimRun({ metadata, spec = {}, status = {} }: RawJob): SourceRun {
    const { startTime, completionTime, ready = 0, succeeded = 0, failed = 0, conditions = [] } = status
    // By type, never by position: others come before and after them.
    const complete = conditions.find(({ type, status }) => type === 'Complete' && status === 'True')
    const failure = conditions.find(({ type, status }) => type === 'Failed' && status === 'True')
    const createdAt = readTime(metadata.creationTimestamp) ?? 0
    // The condition ends with the next start, later than the field. Its pods are gone, though earlier ones may count as
    // failed.
    const isHeld =
      spec.suspend === true || conditions.some(({ type, status }) => type === 'Suspended' && status === 'True')
    const suspended = isHeld && !complete && !failure
    const hasPod = !suspended && (ready > 0 || succeeded > 0 || failed > 0)
    const endedAt = readTime(completionTime) ?? readTime((complete ?? failure)?.lastTransitionTime)
    const outcome: Outcome | null = complete ? 'Succeeded' : failure ? 'Failed' : hasPod ? 'Running' : null
    const { owner, isOwnerless } = readOwner(metadata)
    const isMarked = metadata.annotations?.[ORIGIN_ANNOTATION] === 'manual'
    return {
      metadata: nameOf(metadata),
      sourceUid: owner?.uid ?? null,
      isOwnerless: isOwnerless && isMarked,
      slotAt: readSlot(metadata.annotations?.[SLOT_ANNOTATION], createdAt),
      createdAt,
      isManual: isMarked || (owner !== undefined && owner.controller !== true),
      startedAt: readTime(startTime),
      hasPod,
      outcome,
      endedAt: complete || failure ? (endedAt ?? createdAt) : null,
      condition: failure ? { reason: failure.reason ?? '', message: failure.message ?? '' } : null,
      backoffLimit: spec.backoffLimit ?? null,
      failedPods: failed,
      failedIndexes: status.failedIndexes?.slice(0, INDEXES_LENGTH) || null,
      suspended,
    }
  },

  scheduleOf({ schedule, timeZone }, defaultZone): SourceSchedule {
    // Kubernetes rejects the prefix since 1.29, and still runs the CronJobs that have it: there it counts more than the
    // field.
    const prefix = /^\s*(?:CRON_)?TZ=(\S*)\s+(.*)$/s.exec(schedule)
    const [zone, text] = prefix === null ? [timeZone ?? defaultZone, schedule] : [prefix[1]!, prefix[2]!]
    const every = /^\s*@every\s+(\S+)\s*$/.exec(text)
    if (every === null) return { schedule: text, periodSeconds: null, timeZone: zone }
    const seconds = readSeconds(every[1]!)
    const { min, max } = LIMITS.periodSeconds
    if (seconds === null || seconds < min || seconds > max)
      return { fault: `has the schedule "${schedule}": @every must have a length from ${min}s to ${max / 3_600}h` }
    return { schedule: null, periodSeconds: seconds, timeZone: null }
  },

  entriesOf(run, failure): JobEntry[] {
    const { outcome, endedAt, slotAt } = run
    const startedAt = run.startedAt ?? run.createdAt
    const durationMs = endedAt === null ? null : Math.max(0, endedAt - startedAt)
    const entries: JobEntry[] = []
    if (run.hasPod) entries.push({ type: 'start', at: startedAt, slotAt })
    if (outcome === 'Succeeded') entries.push({ type: 'success', at: endedAt!, durationMs })
    if (outcome === 'Failed') {
      const { exitCode, body } = failure ?? { exitCode: null, body: describeCondition(run) }
      entries.push({ type: 'fail', at: endedAt!, durationMs, exitCode, body })
    }
    return entries
  },
} as const satisfies SourceKind

function describeCondition({ metadata: { name }, condition }: SourceRun): string {
  const parts = [`Job ${name} failed`, condition?.reason, condition?.message].filter(Boolean)
  return parts.join(': ')
}

function nameOf({ namespace = '', name, uid, resourceVersion }: ObjectMeta) {
  return { namespace, name, uid, resourceVersion }
}

/**
 * A CronJob controls the Jobs that it creates. A tool may name the CronJob as an owner that does not control the Job.
 */
function readOwner({ ownerReferences = [] }: ObjectMeta) {
  const found = ownerReferences.find(({ controller }) => controller === true) ?? ownerReferences.find(isCronJob)
  return {
    owner: found !== undefined && isCronJob(found) ? found : undefined,
    isOwnerless: ownerReferences.length === 0,
  }
}

const isCronJob = ({ kind }: { readonly kind: string }) => kind === 'CronJob'

function ours(fields: Readonly<Record<string, string>> = {}): Record<string, string> | undefined {
  const kept = Object.entries(fields).filter(([name]) => name.startsWith(`${GROUP}/`))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** A Job is created after its slot, but for clocks that differ. One for a later slot would satisfy all up to that. */
function readSlot(text: string | undefined, createdAt: Instant): Instant {
  const slotAt = readTime(text)
  return slotAt === null || slotAt > createdAt + DAY_MS ? createdAt : slotAt
}

function readTime(text: string | undefined): Instant | null {
  const ms = text === undefined ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

const SECONDS_OF: Record<string, number> = { h: 3_600, m: 60, s: 1, ms: 1e-3, us: 1e-6, µs: 1e-6, μs: 1e-6, ns: 1e-9 }

/** Of Go's lengths of time, like 1h30m. In whole seconds, as robfig/cron counts; null: it is none. */
function readSeconds(text: string): number | null {
  const part = /(\d+(?:\.\d*)?|\.\d+)(h|ms|us|µs|μs|ns|m|s)/g
  // Anchored first: a search from each digit on takes the square of their number.
  if (!/^(?:(?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|us|µs|μs|ns|m|s))+$/.test(text)) return null
  const seconds = [...text.matchAll(part)].reduce((sum, [, count, unit]) => sum + Number(count) * SECONDS_OF[unit!]!, 0)
  return Math.floor(Math.max(1, seconds) + 1e-9)
}
