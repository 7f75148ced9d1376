/** What the Job of a CronJob reports of itself, and what became of the report. */

import type { Instant } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import type { Resource } from '../../store/checks/checks.ts'

/** One entry of the history. `at` is the Job's own time. */
export type JobEntry =
  /** A pod of the Job runs. `slotAt`: the slot of the schedule that the Job was created for, else its creation. */
  | { readonly type: 'start'; readonly at: Instant; readonly slotAt: Instant }
  | { readonly type: 'success'; readonly at: Instant; readonly durationMs: number | null }
  | (JobFailure & { readonly type: 'fail' })
  /** The Job is suspended, and its pods are gone: its run is closed without a record until it starts again. */
  | { readonly type: 'suspend'; readonly at: Instant }
  /**
   * The Job was deleted before it ended. Closes its run without a completion. `overran`: its CronJob replaced it
   * because the next run was due, in one sentence for people; then the check goes down.
   */
  | { readonly type: 'log'; readonly at: Instant; readonly body: string; readonly overran?: string }

interface JobFailure {
  readonly at: Instant
  readonly durationMs: number | null
  readonly exitCode: number | null
  /** Its first line says why, for people. At most 10,240 bytes are stored, the first ones. */
  readonly body: string
}

/** An entry as the check reads it: a Job itself knows no warning. */
export type ReadEntry = JobEntry | (JobFailure & { readonly type: 'warn' })

export interface JobReport {
  /** The HeartbeatCheck. */
  readonly resource: Resource
  /** The name of the CronJob. */
  readonly source: string
  /** The Job's uid, lower case. Null: only that there was a success is known, from the CronJob's lastSuccessfulTime. */
  readonly runId: string | null
  /** The name of the Job. */
  readonly job: string | null
  /** In order of time. May be empty: then only `lastRun` is saved. */
  readonly entries: readonly JobEntry[]
  /** Null: stays as it is. That of an older run than the one stored is ignored. */
  readonly lastRun: LastRun | null
}

export type JobOutcome =
  /** An entry of the report is stored. */
  | 'recorded'
  /** All of its entries were stored before. */
  | 'repeated'
  /** The resource has no check, or its check follows no source. To be reported again once it does. */
  | 'unknown'
  /** Another transaction holds the check's row. To be reported again; other reports are not affected. */
  | 'held'
  /** The check's row is invalid, or PostgreSQL rejects what the report would write. Other reports are not affected. */
  | 'failed'
