/**
 * What a HeartbeatCheck can follow: a source (a CronJob) whose runs (its Jobs) report. A kind of source is one pure
 * file in `kinds/`: what is watched, how it is trimmed before it is cached, what its schedule is, and what a run
 * reports.
 */

import type { JobEntry } from '../../checks/jobs/job-report.ts'
import type { Instant } from '../../domain/check.ts'
import type { Selection } from '../../kubernetes/client.ts'
import type { CachedObject, KubernetesObject, ResourceType } from '../../kubernetes/objects.ts'
import type { Failure } from '../reasons/explain-failure.ts'

/** What a cluster has 10,000 of: only what is read. */
export interface Source extends CachedObject {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly generation?: number
    readonly deletionTimestamp?: string
    /** Only those of heartbeat-operator.io. */
    readonly labels?: Readonly<Record<string, string>>
    /** Only those of heartbeat-operator.io. */
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly createdAt: Instant
  /** As written. */
  readonly schedule: string
  readonly timeZone: string | null
  readonly suspended: boolean
  readonly concurrencyPolicy: string
  readonly startingDeadlineSeconds: number | null
  /** Of each run. */
  readonly activeDeadlineSeconds: number | null
  readonly lastScheduleTime: string | null
  readonly lastSuccessfulTime: string | null
  /** The names of its runs that have not ended. */
  readonly active: readonly string[]
}

export type Outcome = 'Running' | 'Succeeded' | 'Failed'

/** What a cluster has 100,000 of: numbers instead of texts, and only what is read. */
export interface SourceRun extends CachedObject {
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }
  /** Null: it belongs to no source of this kind. */
  readonly sourceUid: string | null
  /** It names no owner, and a person created it from a source, which has its name in front (ownerless-runs.ts). */
  readonly isOwnerless: boolean
  /** The slot of the schedule that it was created for; its creation, where it names none. */
  readonly slotAt: Instant
  readonly createdAt: Instant
  /** A person created it from the source. */
  readonly isManual: boolean
  readonly startedAt: Instant | null
  /** One of its pods runs or ran, as the Job says, or the pod itself (watch-sources.ts). */
  readonly hasPod: boolean
  /** Null: none of its pods runs yet, and it has not ended. */
  readonly outcome: Outcome | null
  readonly endedAt: Instant | null
  /** Why it failed. */
  readonly condition: { readonly reason: string; readonly message: string } | null
  readonly backoffLimit: number | null
  /** How many of its pods have failed: not its outcome. */
  readonly failedPods: number
  /** Of an indexed Job, as `1,3-5`; only the beginning of a long text. */
  readonly failedIndexes: string | null
  readonly suspended: boolean
}

/** A schedule as HeartbeatChecks have it, or, in words that follow `the CronJob NAME`, why it cannot be read. */
export type SourceSchedule =
  | { readonly schedule: string; readonly periodSeconds: null; readonly timeZone: string }
  | { readonly schedule: null; readonly periodSeconds: number; readonly timeZone: null }
  | { readonly fault: string }

export interface SourceKind {
  readonly kind: string
  readonly type: ResourceType
  readonly runType: ResourceType
  /** As owner references to a run have it: `Job`. */
  readonly runKind: string
  /** Selects the pods of runs that have not succeeded. */
  readonly podSelection: Required<Pick<Selection, 'labelSelector' | 'fieldSelector'>>
  /** Does not throw, whatever the object lacks. */
  trimSource(object: KubernetesObject): Source
  /** Does not throw, whatever the object lacks. */
  trimRun(object: KubernetesObject): SourceRun
  /** @param defaultZone of a source that names none */
  scheduleOf(source: Source, defaultZone: string): SourceSchedule
  /**
   * What a run has reported so far, in the order of time.
   *
   * @param failure why it failed; null: not known, or it did not fail
   */
  entriesOf(run: SourceRun, failure: Failure | null): JobEntry[]
}

/** Whether it has ended. */
export function hasEnded({ outcome }: Pick<SourceRun, 'outcome'>): boolean {
  return outcome === 'Succeeded' || outcome === 'Failed'
}
