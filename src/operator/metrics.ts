import { type Counter, Gauge, metricsOn, type Registry } from '../runtime/metrics.ts'

/** CronJobs, by the label `watched`: followed by a HeartbeatCheck, in need of none, or rejected. */
export type WatchedCounts = Record<'true' | 'false' | 'rejected', number>

const NONE: WatchedCounts = { true: 0, false: 0, rejected: 0 }

export interface OperatorMetrics {
  readonly publishes: Counter<'result'>
  readonly forcedFinalizers: Counter
  readonly orphans: Counter
  readonly clusterNameTaken: Gauge
  /** The HeartbeatChecks of other installations are counted at each scrape; null: no more. */
  readonly countConflicts: (count: (() => number) | null) => void
  /** The CronJobs are counted at each scrape; null: no more. */
  readonly countCronJobs: (count: (() => WatchedCounts) | null) => void
  readonly jobsRecorded: Counter<'outcome'>
}

export function createOperatorMetrics(registry: Registry): OperatorMetrics {
  const { counter, gauge } = metricsOn(registry)
  let count = () => NONE
  let countForeign = () => 0
  new Gauge({
    name: 'heartbeat_cronjobs',
    help: 'CronJobs of the watched namespaces, by whether a HeartbeatCheck follows them; rejected: it cannot be created; 0 unless this process leads',
    labelNames: ['watched'],
    registers: [registry],
    collect() {
      for (const [watched, value] of Object.entries(count())) this.set({ watched }, value)
    },
  })
  new Gauge({
    name: 'heartbeat_installation_conflicts',
    help: 'HeartbeatChecks of the watched namespaces that belong to another installation and are not reconciled',
    registers: [registry],
    collect() {
      this.set(countForeign())
    },
  })
  return {
    publishes: counter('heartbeat_publish_total', 'Ping URLs published in a Secret or ConfigMap, by result', {
      result: ['written', 'unchanged', 'refused'],
    }),
    forcedFinalizers: counter(
      'heartbeat_finalizers_forced_total',
      'Finalizers removed from deleted HeartbeatChecks although their check could not be deleted in time',
    ),
    orphans: counter(
      'heartbeat_orphans_total',
      'Checks deleted because their HeartbeatCheck was gone from the cluster without its finalizer having run',
    ),
    clusterNameTaken: gauge(
      'heartbeat_cluster_name_taken',
      '1 if another live cluster is registered under the same CLUSTER_NAME, so that this cluster is not reconciled; else 0',
    ),
    countConflicts(by) {
      countForeign = by ?? (() => 0)
    },
    countCronJobs(by) {
      count = by ?? (() => NONE)
    },
    jobsRecorded: counter('heartbeat_jobs_recorded_total', 'Jobs of CronJobs whose end was recorded, by outcome', {
      outcome: ['succeeded', 'failed', 'deleted'],
    }),
  }
}
