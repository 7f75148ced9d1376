/**
 * The checks as monitoring sees them (design, section 11). One replica holds a lease and exports them, otherwise
 * Prometheus would get every series once per replica. A background loop calls hold(). read() checks the lease again, in
 * the statement that reads the checks, so that a replica that was frozen or cut off exports nothing old.
 */

import { randomUUID } from 'node:crypto'
import { type Instant, isFlapping, isRunning, type ShownStatus, shownStatus } from '../domain/check.ts'
import type { RunOutcome } from '../domain/last-run.ts'
import { deadlineOf } from '../domain/transition.ts'
import { type CheckSeriesRow, readCheckSeries } from '../store/checks/check-series.ts'
import type { Context } from '../store/context.ts'
import { claimExport, releaseExport } from '../store/leases/exporter.ts'

/** A check as monitoring knows it, by names that outlive a reinstall: no id, and nothing that a job has sent. */
export interface ExportedCheck
  extends Omit<CheckSeriesRow, 'status' | 'lastRunOutcome' | 'runs' | 'notified' | 'expectedAt' | 'dueAt'> {
  readonly status: ShownStatus
  /** When it goes down unless something happens; null when nothing is awaited. */
  readonly deadlineAt: Instant | null
  readonly isRunning: boolean
  readonly isFlapping: boolean
  /** Of the newest run of the CronJob that it follows. Left out without one. */
  readonly lastRunOutcome?: RunOutcome | undefined
}

export type Exporter = ReturnType<typeof createExporter>

export const EXPORTER_MS = 1_000
/** Tolerates a few failed renewals. After a crash, exporting resumes within LEASE_MS + EXPORTER_MS. */
const LEASE_MS = 5_000

/** `labelNames`: the labels of checks that are exported. */
export function createExporter({ database, clock }: Context, labelNames: readonly string[] = []) {
  const holder = randomUUID()
  return {
    /** Takes or renews the lease. To be called every EXPORTER_MS. */
    async hold(): Promise<void> {
      await claimExport(database, holder, LEASE_MS)
    },
    /** Gives up the lease: another replica can take it at once. */
    release: (): Promise<void> => releaseExport(database, holder),
    /** Hands over each check, as readCheckSeries does. False, and none: another replica exports. */
    read(onCheck: (check: ExportedCheck) => void): Promise<boolean> {
      const now = clock.now()
      return readCheckSeries(database, holder, labelNames, (row) => onCheck(toExported(row, now)))
    },
  }
}

function toExported(row: CheckSeriesRow, now: Instant): ExportedCheck {
  const { notified, expectedAt, dueAt, runs, ...shown } = row
  return {
    ...shown,
    status: shownStatus(row, now),
    deadlineAt: deadlineOf(row),
    isRunning: runs.some((run) => isRunning(run, now)),
    isFlapping: isFlapping(row),
    lastRunOutcome: row.lastRunOutcome ?? undefined,
  }
}
