/** Every metric of ours with its help text and labels, on a registry of its own. No label takes a value that a caller can invent. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export interface Metrics {
  readonly registry: Registry
  readonly httpSeconds: Histogram<'server' | 'route' | 'method' | 'status'>
  readonly connections: Gauge<'pool' | 'state'>
  readonly pings: Counter<'type' | 'result'>
  readonly pingWarnings: Counter<'warning'>
  readonly pingCommitSeconds: Histogram
  readonly pingGroupSize: Histogram
  readonly pingsWaiting: Gauge
  readonly flips: Counter<'reason'>
  readonly detectionSeconds: Histogram
  readonly oldestOverdueSeconds: Gauge
  readonly undecidable: Counter
  readonly gaps: Counter
  readonly gapSeconds: Counter
  readonly checks: Gauge<'status'>
  readonly exporterActive: Gauge
  readonly checkSeriesDropped: Gauge
  readonly pruned: Counter
  readonly clockOffsetSeconds: Gauge
  readonly loopFailures: Counter<'loop'>
  readonly deliveries: Counter<'channel' | 'result'>
  readonly deliverySeconds: Histogram<'channel'>
  readonly outboxOldestSeconds: Gauge
  readonly watchdogPings: Counter<'result'>
  readonly operator: {
    readonly publishes: Counter<'result'>
    readonly forcedFinalizers: Counter
    readonly orphans: Counter
    readonly clusterNameTaken: Gauge
  }
}

export interface LabelValues {
  readonly pingTypes: readonly string[]
  readonly pingWarnings: readonly string[]
  readonly flipReasons: readonly string[]
  readonly statuses: readonly string[]
  readonly loops: readonly string[]
  readonly channelKinds: readonly string[]
}

/** Label sets exist at zero from the start, so that a rate over the first occurrence is right. */
export function createMetrics(values: LabelValues): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  const metrics: Metrics = {
    registry,
    httpSeconds: new Histogram({
      name: 'heartbeat_http_request_seconds',
      help: 'Time from a request to its answer',
      labelNames: ['server', 'route', 'method', 'status'],
      buckets: SECONDS,
      registers,
    }),
    connections: new Gauge({
      name: 'heartbeat_database_connections',
      help: 'Connections to PostgreSQL, and callers that wait for one',
      labelNames: ['pool', 'state'],
      registers,
    }),
    pings: new Counter({
      name: 'heartbeat_pings_total',
      help: 'Pings by what became of them',
      labelNames: ['type', 'result'],
      registers,
    }),
    pingWarnings: new Counter({
      name: 'heartbeat_ping_warnings_total',
      help: 'Pings accepted without a part of their metadata',
      labelNames: ['warning'],
      registers,
    }),
    pingCommitSeconds: new Histogram({
      name: 'heartbeat_ping_commit_seconds',
      help: 'Time from sending a group of pings to PostgreSQL to its commit',
      buckets: SECONDS,
      registers,
    }),
    pingGroupSize: new Histogram({
      name: 'heartbeat_ping_group_size',
      help: 'Pings committed together',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 500],
      registers,
    }),
    pingsWaiting: new Gauge({
      name: 'heartbeat_pings_waiting',
      help: 'Pings that wait for a group in flight',
      registers,
    }),
    flips: new Counter({
      name: 'heartbeat_flips_total',
      help: 'Flips written by the deadline evaluation of this replica',
      labelNames: ['reason'],
      registers,
    }),
    detectionSeconds: new Histogram({
      name: 'heartbeat_deadline_detection_seconds',
      help: 'Time from a missed deadline to its flip',
      buckets: SECONDS,
      registers,
    }),
    oldestOverdueSeconds: new Gauge({
      name: 'heartbeat_deadline_oldest_overdue_seconds',
      help: 'How long the oldest wake-up time has been waiting',
      registers,
    }),
    undecidable: new Counter({
      name: 'heartbeat_deadline_undecidable_total',
      help: 'Checks put aside since what is stored of them cannot be read: a schedule, or a time',
      registers,
    }),
    gaps: new Counter({ name: 'heartbeat_gaps_total', help: 'Own downtimes put on record by this replica', registers }),
    gapSeconds: new Counter({ name: 'heartbeat_gap_seconds_total', help: 'Their length', registers }),
    checks: new Gauge({ name: 'heartbeat_checks', help: 'Checks by status', labelNames: ['status'], registers }),
    exporterActive: new Gauge({
      name: 'heartbeat_exporter_active',
      help: '1 on the replica whose /metrics has the series of each check, 0 on the others',
      registers,
    }),
    checkSeriesDropped: new Gauge({
      name: 'heartbeat_check_series_dropped',
      help: 'Checks that /metrics leaves out since another has the same labels',
      registers,
    }),
    pruned: new Counter({
      name: 'heartbeat_pruned_rows_total',
      help: 'Rows of history forgotten by this replica',
      registers,
    }),
    clockOffsetSeconds: new Gauge({
      name: 'heartbeat_clock_offset_seconds',
      help: 'PostgreSQL clock minus the clock of this process',
      registers,
    }),
    loopFailures: new Counter({
      name: 'heartbeat_loop_failures_total',
      help: 'Failed runs of background work',
      labelNames: ['loop'],
      registers,
    }),
    deliveries: new Counter({
      name: 'heartbeat_deliveries_total',
      help: 'Attempts to deliver an event by kind of channel and what became of them',
      labelNames: ['channel', 'result'],
      registers,
    }),
    deliverySeconds: new Histogram({
      name: 'heartbeat_delivery_attempt_seconds',
      help: 'Time that an attempt to deliver took',
      labelNames: ['channel'],
      buckets: SECONDS,
      registers,
    }),
    outboxOldestSeconds: new Gauge({
      name: 'heartbeat_outbox_oldest_seconds',
      help: 'How long the oldest pending delivery has been waiting',
      registers,
    }),
    watchdogPings: new Counter({
      name: 'heartbeat_watchdog_pings_total',
      help: 'Turns of the dead man switch for ourselves (WATCHDOG_URL) by what became of them',
      labelNames: ['result'],
      registers,
    }),
    operator: {
      publishes: new Counter({
        name: 'heartbeat_publish_total',
        help: 'Ping URLs brought in line with their Secret or ConfigMap, by what it took',
        labelNames: ['result'],
        registers,
      }),
      forcedFinalizers: new Counter({
        name: 'heartbeat_finalizers_forced_total',
        help: 'Deleted HeartbeatChecks that went without their check, which could not be removed in time',
        registers,
      }),
      orphans: new Counter({
        name: 'heartbeat_orphans_total',
        help: 'Checks removed since their HeartbeatCheck was gone without its finalizer',
        registers,
      }),
      clusterNameTaken: new Gauge({
        name: 'heartbeat_cluster_name_taken',
        help: '1 while another live cluster reconciles under the same CLUSTER_NAME, and this one does not',
        registers,
      }),
    },
  }
  for (const type of values.pingTypes) {
    for (const result of ['stored', 'duplicate', 'not_found', 'unavailable', 'body_too_large', 'body_compressed'])
      metrics.pings.inc({ type, result }, 0)
  }
  for (const result of ['not_found', 'invalid_exit_code', 'wrong_method'])
    metrics.pings.inc({ type: 'unknown', result }, 0)
  for (const warning of values.pingWarnings) metrics.pingWarnings.inc({ warning }, 0)
  for (const reason of values.flipReasons) metrics.flips.inc({ reason }, 0)
  for (const status of values.statuses) metrics.checks.set({ status }, 0)
  for (const loop of values.loops) metrics.loopFailures.inc({ loop }, 0)
  for (const channel of values.channelKinds)
    for (const result of ['delivered', 'retried', 'failed']) metrics.deliveries.inc({ channel, result }, 0)
  for (const result of ['pinged', 'failed', 'withheld']) metrics.watchdogPings.inc({ result }, 0)
  for (const result of ['written', 'unchanged', 'refused']) metrics.operator.publishes.inc({ result }, 0)
  return metrics
}

const KNOWN_METHODS = new Set(['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Callers may make up methods, and a label must not follow them. */
export function observeHttp(
  { httpSeconds }: Metrics,
  labels: { server: string; route: string; method: string; status: string },
  seconds: number,
): void {
  httpSeconds.observe(KNOWN_METHODS.has(labels.method) ? labels : { ...labels, method: 'other' }, seconds)
}
