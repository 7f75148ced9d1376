/**
 * The checks as monitoring sees them (design, section 11). One replica holds a lease and exports them, else Prometheus
 * would get every series once per replica. read() checks the lease again: a replica that was cut off exports nothing
 * old.
 */

import { randomUUID } from 'node:crypto'
import { type ExportedCheck, readCheckSeries } from '../store/checks/check-series.ts'
import type { Context } from '../store/context.ts'
import { claimExport, releaseExport } from '../store/leases/exporter.ts'

export type { ExportedCheck } from '../store/checks/check-series.ts'
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
    read: (onCheck: (check: ExportedCheck) => void): Promise<boolean> =>
      readCheckSeries(database, holder, labelNames, clock.now(), onCheck),
  }
}
