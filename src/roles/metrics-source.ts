/** What /metrics shows: the gauges that are read for each scrape, and the series of the checks. */

import type { MetricsSource } from '../http/ops/metrics.ts'
import { countByStatus, oldestOverdueSeconds } from '../store/checks/states.ts'
import { countHistoryRows } from '../store/history/sizes.ts'
import { listSeen } from '../store/jobs/seen-areas.ts'
import { oldestPendingSeconds } from '../store/outbox/deliveries.ts'
import type { Database } from '../store/postgres/database.ts'
import type { ApiRole } from './api.ts'
import type { Base } from './base.ts'

const MAX_CLUSTERS = 100

export interface ShownParts extends Pick<Base, 'metrics' | 'log' | 'database' | 'databaseClock'> {
  /** By name. */
  readonly pools: Readonly<Record<string, Database | null>>
  readonly api: Pick<ApiRole, 'setGauges' | 'exportChecks'> | null
  /** Whether the database can be asked. */
  readonly isStoring: () => boolean
}

/** Without the database, the metrics of the process alone. */
export function createMetricsSource(parts: ShownParts): Pick<MetricsSource, 'readChecks' | 'render'> {
  const { metrics, log, database, databaseClock, pools, api, isStoring } = parts
  return {
    async readChecks(add) {
      if (api === null || !isStoring()) return false
      try {
        return await api.exportChecks(add)
      } catch (error) {
        log.warn({ error }, 'the series of the checks could not be read')
        return false
      }
    },
    /** Gauges of the database are read for each scrape. A gauge that cannot be read keeps its value. */
    async render(exported) {
      metrics.exporterActive.set(exported.isActive ? 1 : 0)
      metrics.checkSeriesDropped.set(exported.dropped)
      api?.setGauges()
      for (const [pool, opened] of Object.entries(pools)) if (opened !== null) setConnections(pool, opened)
      if (api !== null && isStoring()) {
        const read = await Promise.allSettled([
          // First: in a flood it matters most, and many checks take long to count.
          oldestOverdueSeconds(database).then((seconds) => metrics.oldestOverdueSeconds.set(seconds)),
          oldestPendingSeconds(database, databaseClock.now()).then((seconds) =>
            metrics.outboxOldestSeconds.set(seconds),
          ),
          countByStatus(database).then((counts) => {
            for (const [status, count] of Object.entries(counts)) metrics.checks.set({ status }, count)
          }),
          countHistoryRows(database).then((counts) => {
            for (const [kind, rows] of Object.entries(counts)) metrics.historyRows.set({ kind }, rows)
          }),
          (exported.isActive ? listSeen(database, MAX_CLUSTERS) : Promise.resolve([])).then((seen) => {
            metrics.cronJobsSeen.reset()
            for (const { cluster, seenAt } of seen) metrics.cronJobsSeen.set({ cluster }, seenAt / 1_000)
          }),
        ])
        const failed = read.find((outcome) => outcome.status === 'rejected')
        if (failed !== undefined) log.warn({ error: failed.reason }, 'gauges of the database could not be read')
      }
      return metrics.registry.metrics()
    },
  }

  function setConnections(pool: string, opened: Database): void {
    const { total, idle, waiting } = opened.connections()
    metrics.connections.set({ pool, state: 'busy' }, total - idle)
    metrics.connections.set({ pool, state: 'idle' }, idle)
    metrics.connections.set({ pool, state: 'waiting' }, waiting)
  }
}
