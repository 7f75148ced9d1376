/**
 * What monitoring is told of each check (design, section 11), and by whom: of all replicas one holds the lease, or Prometheus would
 * get everything as often as there are replicas. hold() is a background loop's work; read() asks PostgreSQL again whether the lease
 * is still held, in the statement that reads the checks, so a replica that was frozen or cut off tells nothing old.
 */

import { randomUUID } from 'node:crypto'
import {
  DEFAULT_CLUSTER,
  type FlipReason,
  type Instant,
  isOpen,
  type ShownStatus,
  shownStatus,
} from '../domain/check.ts'
import { deadlineOf } from '../domain/transition.ts'
import { type CheckSeriesRow, readCheckSeries } from '../store/checks/check-series.ts'
import type { Context } from '../store/context.ts'
import { claimExport, releaseExport } from '../store/leases/exporter.ts'

/** A check as monitoring knows it, by names that outlive a reinstall: no id, and nothing that a job has sent. */
export interface ExportedCheck {
  /** Empty for a check that no resource declares. */
  readonly namespace: string
  /** The project's slug. */
  readonly project: string
  /** The resource's name, else the slug. */
  readonly name: string
  /** Null for the one that nobody gave a name, and for a check that no resource declares. */
  readonly cluster: string | null
  readonly status: ShownStatus
  /** Why it is down; null while it is not. */
  readonly downReason: FlipReason | null
  readonly lastPingAt: Instant | null
  readonly lastSuccessAt: Instant | null
  /** When it goes down unless something happens; null when nothing is awaited. */
  readonly deadlineAt: Instant | null
  readonly lastDurationMs: number | null
  /** Null for a cron schedule. */
  readonly periodSeconds: number | null
  readonly graceSeconds: number
  readonly isRunning: boolean
}

export interface Exporter {
  /** Takes or renews the lease; to be called every EXPORTER_MS. */
  hold(): Promise<void>
  /** Another replica may have it at once. */
  release(): Promise<void>
  /** Hands over each check, the oldest first. False, and none: another replica exports. Fails when the database is away. */
  read(onCheck: (check: ExportedCheck) => void): Promise<boolean>
}

export const EXPORTER_MS = 1_000
/** Some turns may fail. With one turn of the others it is how long nobody exports after the holder was killed. */
const LEASE_MS = 5_000

export function createExporter({ database, clock }: Context): Exporter {
  const holder = randomUUID()
  return {
    async hold() {
      await claimExport(database, holder, LEASE_MS)
    },
    release: () => releaseExport(database, holder),
    read(onCheck) {
      const now = clock.now()
      return readCheckSeries(database, holder, (row) => onCheck(toExported(row, now)))
    },
  }
}

function toExported(row: CheckSeriesRow, now: Instant): ExportedCheck {
  const { namespace, project, name, cluster, downReason, periodSeconds, graceSeconds } = row
  return {
    namespace,
    project,
    name,
    cluster: cluster === DEFAULT_CLUSTER ? null : cluster,
    status: shownStatus(row, now),
    downReason,
    lastPingAt: row.lastPingAt,
    lastSuccessAt: row.lastSuccessAt,
    deadlineAt: deadlineOf(row),
    lastDurationMs: row.lastDurationMs,
    periodSeconds,
    graceSeconds,
    isRunning: row.runs.some((run) => isOpen(run, now)),
  }
}
