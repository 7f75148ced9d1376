import { type Counter, type Gauge, metricsOn, type Registry } from '../runtime/metrics.ts'

export interface OperatorMetrics {
  readonly publishes: Counter<'result'>
  readonly forcedFinalizers: Counter
  readonly orphans: Counter
  readonly clusterNameTaken: Gauge
}

export function createOperatorMetrics(registry: Registry): OperatorMetrics {
  const { counter, gauge } = metricsOn(registry)
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
  }
}
