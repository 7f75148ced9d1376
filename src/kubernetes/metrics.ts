/**
 * The metrics of the runtime. Names, labels, help texts and buckets are those of controller-runtime 0.24 and client-go,
 * so that dashboards and alerts made for any controller work. Known label sets exist at zero from the start.
 *
 * Our own, which have no counterpart there: `kubernetes_watch_restarts_total{resource,reason}`,
 * `kubernetes_watch_last_contact_timestamp_seconds{resource}`, `kubernetes_cache_objects{resource}`,
 * `kubernetes_events_dropped_total{reason}`.
 */

import { Gauge, type Registry } from 'prom-client'
import { metricsOn } from '../runtime/metrics.ts'
import type { Priority, QueueMetrics, WorkInProgress } from './queue.ts'
import type { DropReason } from './recorder.ts'
import type { ReflectorMetrics } from './reflector.ts'
import type { RequestMetrics } from './transport.ts'
import type { ReconcileOutcome, WorkerMetrics } from './workers.ts'

export type KubernetesMetrics = ReturnType<typeof createKubernetesMetrics>

/** controller-runtime's priorities: of a change, and of a start or resync. */
const PRIORITY_LABELS = { live: '0', background: '-100' } as const satisfies Record<Priority, string>

/** Why a watch ended, as the reflector reports it. */
const RESTART_REASONS = ['timeout', 'closed', 'error', 'expired', 'stalled', 'quiet']

const DROP_REASONS = ['queue_full', 'rate_limited', 'failed', 'stopped'] as const satisfies DropReason[]

/** From ten nanoseconds to a quarter of an hour and more. */
const QUEUE_SECONDS = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1_000]
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
]

/** As controller-runtime counts: stalls and panics are errors, and each has a counter of its own besides. */
const resultOf = (outcome: ReconcileOutcome) => (outcome === 'stalled' || outcome === 'panicked' ? 'error' : outcome)

export function createKubernetesMetrics(registry: Registry) {
  const { counter, gauge } = metricsOn(registry)
  const dropped = counter(
    'kubernetes_events_dropped_total',
    'Kubernetes Events that were dropped instead of written, by reason',
    { reason: DROP_REASONS },
  )
  const leading = gauge(
    'leader_election_master_status',
    'Whether the reporting system holds the lease: 0 indicates backup, 1 indicates master. Group by name.',
    { name: [] },
  )
  return {
    /** One queue for each name: by convention the name of its controller. */
    queue: keep(createQueueMetrics(registry)),
    workers: keep(createWorkerMetrics(registry)),
    /** By the lease's name. */
    leading: (name: string, isLeader: boolean) => leading.set({ name }, isLeader ? 1 : 0),
    requests: createRequestMetrics(registry),
    /** By the resource's plural. */
    reflector: keep(createReflectorMetrics(registry)),
    dropped: (reason: DropReason) => dropped.inc({ reason }),
  }
}

/** Once for each name: the parts of a leader's next term continue the counters of the last one. */
function keep<Rest extends unknown[], Made>(make: (name: string, ...rest: Rest) => Made): typeof make {
  const made = new Map<string, Made>()
  return (name, ...rest) => {
    const metrics = made.get(name) ?? make(name, ...rest)
    made.set(name, metrics)
    return metrics
  }
}

function createQueueMetrics(registry: Registry): (name: string) => QueueMetrics {
  const { counter, gauge, histogram } = metricsOn(registry)
  const none = { name: [], controller: [] }
  const depth = gauge('workqueue_depth', 'Current depth of workqueue by workqueue and priority', {
    ...none,
    priority: [],
  })
  const adds = counter('workqueue_adds_total', 'Total number of adds handled by workqueue', none)
  const queueSeconds = histogram(
    'workqueue_queue_duration_seconds',
    'How long in seconds an item stays in workqueue before being requested',
    ['name', 'controller'],
    QUEUE_SECONDS,
  )
  const workSeconds = histogram(
    'workqueue_work_duration_seconds',
    'How long in seconds processing an item from workqueue takes.',
    ['name', 'controller'],
    QUEUE_SECONDS,
  )
  const retries = counter(
    'workqueue_retries_total',
    'Total number of items added to the workqueue with a delay: after a failure, or requested by a reconcile',
    none,
  )
  const readers = new Map<string, () => WorkInProgress>()
  /** Read at each scrape, so that long work shows before it ends. */
  function gaugeOfWork(name: string, help: string, pick: (work: WorkInProgress) => number) {
    return new Gauge({
      name,
      help,
      labelNames: ['name', 'controller'],
      registers: [registry],
      collect() {
        for (const [queue, read] of readers) this.set({ name: queue, controller: queue }, pick(read()))
      },
    })
  }
  gaugeOfWork(
    'workqueue_unfinished_work_seconds',
    'How many seconds of work is in progress and has not been observed by work_duration. Large values indicate stuck work.',
    (work) => work.unfinishedSeconds,
  )
  gaugeOfWork(
    'workqueue_longest_running_processor_seconds',
    'How many seconds has the longest running processor for workqueue been running.',
    (work) => work.longestSeconds,
  )
  return (name) => {
    const labels = { name, controller: name }
    for (const one of [adds, retries]) one.inc(labels, 0)
    for (const one of [queueSeconds, workSeconds]) one.zero(labels)
    readers.set(name, () => ({ unfinishedSeconds: 0, longestSeconds: 0 }))
    const empty = () => {
      for (const priority of Object.values(PRIORITY_LABELS)) depth.set({ ...labels, priority }, 0)
    }
    empty()
    return {
      begin(read) {
        readers.set(name, read)
        empty()
      },
      added: () => adds.inc(labels),
      depthChanged: (priority, by) => depth.inc({ ...labels, priority: PRIORITY_LABELS[priority] }, by),
      waited: (seconds) => queueSeconds.observe(labels, seconds),
      worked: (seconds) => workSeconds.observe(labels, seconds),
      retried: () => retries.inc(labels),
    }
  }
}

function createWorkerMetrics(registry: Registry): (controller: string, workers: number) => WorkerMetrics {
  const { counter, gauge, histogram } = metricsOn(registry)
  const none = { controller: [] }
  const count = (name: string, what: string) =>
    counter(`controller_runtime_${name}_total`, `Total number of ${what} per controller`, none)
  const total = counter('controller_runtime_reconcile_total', 'Total number of reconciliations per controller', {
    controller: [],
    result: [],
  })
  const errors = count('reconcile_errors', 'reconciliation errors')
  const terminal = count('terminal_reconcile_errors', 'terminal reconciliation errors')
  const panics = count('reconcile_panics', 'reconciliation panics')
  const time = histogram(
    'controller_runtime_reconcile_time_seconds',
    'Length of time per reconciliation per controller',
    ['controller'],
    RECONCILE_SECONDS,
  )
  const max = gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Maximum number of concurrent reconciles per controller',
    none,
  )
  const active = gauge('controller_runtime_active_workers', 'Number of currently used workers per controller', none)
  return (controller, workers) => {
    const labels = { controller }
    for (const result of ['success', 'error', 'requeue', 'requeue_after']) total.inc({ controller, result }, 0)
    for (const one of [errors, terminal, panics]) one.inc(labels, 0)
    time.zero(labels)
    max.set(labels, workers)
    active.set(labels, 0)
    return {
      activeChanged: (by) => active.inc(labels, by),
      reconciled(outcome, seconds) {
        const result = resultOf(outcome)
        total.inc({ controller, result })
        time.observe(labels, seconds)
        if (result === 'error') errors.inc(labels)
        if (outcome === 'stalled') terminal.inc(labels)
        if (outcome === 'panicked') panics.inc(labels)
      },
    }
  }
}

function createRequestMetrics(registry: Registry): RequestMetrics {
  const { counter, histogram } = metricsOn(registry)
  const total = counter(
    'rest_client_requests_total',
    'Number of HTTP requests, partitioned by status code, method, and host.',
    { code: [], method: [], host: [] },
  )
  const latency = histogram(
    'rest_client_request_duration_seconds',
    'Request latency in seconds. Broken down by verb and host.',
    ['verb', 'host'],
    REQUEST_SECONDS,
  )
  return {
    request(verb, method, host, code, seconds) {
      total.inc({ code, method, host })
      // client-go's "verb" is the HTTP method, and it leaves watches out here.
      if (verb !== 'watch') latency.observe({ verb: method, host }, seconds)
    },
  }
}

function createReflectorMetrics(registry: Registry): (resource: string) => ReflectorMetrics {
  const { counter, gauge } = metricsOn(registry)
  const restarts = counter(
    'kubernetes_watch_restarts_total',
    'Watches that were restarted, by the reason why the previous one ended',
    { resource: [], reason: [] },
  )
  const contact = gauge(
    'kubernetes_watch_last_contact_timestamp_seconds',
    'Time of the last data from the API server for this resource, by its watch or a list; 0: none yet',
    { resource: [] },
  )
  const objects = gauge('kubernetes_cache_objects', 'Objects in the cache', { resource: [] })
  return (resource) => {
    for (const reason of RESTART_REASONS) restarts.inc({ resource, reason }, 0)
    contact.set({ resource }, 0)
    objects.set({ resource }, 0)
    return {
      restarted: (reason) => restarts.inc({ resource, reason }),
      contact: (atMs) => contact.set({ resource }, atMs / 1_000),
      objects: (held) => objects.set({ resource }, held),
    }
  }
}
