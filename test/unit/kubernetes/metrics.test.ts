import { readFileSync } from 'node:fs'
import type { Registry } from 'prom-client'
import { describe, expect, it } from 'vitest'
import { createKubernetesMetrics } from '../../../src/kubernetes/metrics.ts'
import { createQueue } from '../../../src/kubernetes/queue.ts'
import { createWorkers, type ReconcileResult } from '../../../src/kubernetes/workers.ts'
import { createRegistry } from '../../../src/runtime/metrics.ts'
import { createManualClock } from '../../support/manual-clock.ts'

function someMetrics() {
  const registry = createRegistry()
  return { registry, metrics: createKubernetesMetrics(registry) }
}

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** What a scrape gives, read as Prometheus would. */
async function scrape(registry: Registry): Promise<Sample[]> {
  const samples: Sample[] = []
  for (const line of (await registry.metrics()).split('\n')) {
    const match = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (match === null) continue
    const labels = Object.fromEntries(
      [...(match[2] ?? '').matchAll(/([a-z]+)="([^"]*)"/g)].map(([, name, value]) => [name, value]),
    )
    samples.push({ name: match[1]!, labels, value: Number(match[3]) })
  }
  return samples
}

/** The value of the one series with these labels. */
async function readValue(registry: Registry, name: string, labels: Record<string, string> = {}): Promise<number> {
  const found = (await scrape(registry)).filter(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
  )
  expect(found, `${name} ${JSON.stringify(labels)}`).toHaveLength(1)
  return found[0]!.value
}

/** A controller that has reconciled one thing with each of these outcomes. */
async function reconcileOnce(metrics: ReturnType<typeof createKubernetesMetrics>, outcomes: (() => ReconcileResult)[]) {
  const clock = createManualClock()
  const queue = createQueue({ clock, metrics: metrics.queue('things'), random: () => 0 })
  const waiting = [...outcomes]
  const workers = createWorkers({
    queue,
    count: 3,
    clock,
    metrics: metrics.workers('things', 3),
    onError: () => {},
    async reconcile() {
      await clock.sleep(250)
      return waiting.shift()!()
    },
  })
  for (const index of outcomes.keys()) queue.add(`ns/thing-${index}`)
  workers.start()
  // Each once: what failed would come again after its back-off.
  await clock.advance(250 * Math.ceil(outcomes.length / 3))
  await workers.stop(0)
  queue.stop()
}

interface Dashboard {
  queries: { panel: string; series: string; labels: string[]; kind: 'gauge' | 'counter' | 'histogram' }[]
}
const dashboard: Dashboard = JSON.parse(
  readFileSync(new URL('../../fixtures/controller-runtime-dashboard.json', import.meta.url), 'utf8'),
)

describe('the stock dashboard', () => {
  it.each(dashboard.queries)('finds $series for "$panel" after one reconcile', async ({ series, labels, kind }) => {
    const { registry, metrics } = someMetrics()
    await reconcileOnce(metrics, [() => ({ kind: 'done' })])
    const found = (await scrape(registry)).filter(({ name }) => name === series)
    expect(found.length).toBeGreaterThan(kind === 'histogram' ? 10 : 0)
    for (const sample of found) {
      expect(Object.keys(sample.labels)).toEqual(expect.arrayContaining(labels))
      // Scraping gives these to every series, and renames ours if we have them.
      for (const label of ['job', 'namespace', 'pod', 'instance']) expect(sample.labels).not.toHaveProperty(label)
    }
    const base = kind === 'histogram' ? series.replace(/_bucket$/, '') : series
    expect(await registry.getSingleMetricAsString(base)).toContain(`# TYPE ${base} ${kind}\n`)
  })
})

/** Names, kinds and labels as controller-runtime 0.24 and client-go have them, and our own. */
const NAMES: [string, string, string[]][] = [
  ['controller_runtime_reconcile_total', 'counter', ['controller', 'result']],
  ['controller_runtime_reconcile_errors_total', 'counter', ['controller']],
  ['controller_runtime_terminal_reconcile_errors_total', 'counter', ['controller']],
  ['controller_runtime_reconcile_panics_total', 'counter', ['controller']],
  ['controller_runtime_reconcile_time_seconds', 'histogram', ['controller']],
  ['controller_runtime_max_concurrent_reconciles', 'gauge', ['controller']],
  ['controller_runtime_active_workers', 'gauge', ['controller']],
  ['workqueue_depth', 'gauge', ['controller', 'name', 'priority']],
  ['workqueue_adds_total', 'counter', ['controller', 'name']],
  ['workqueue_queue_duration_seconds', 'histogram', ['controller', 'name']],
  ['workqueue_work_duration_seconds', 'histogram', ['controller', 'name']],
  ['workqueue_unfinished_work_seconds', 'gauge', ['controller', 'name']],
  ['workqueue_longest_running_processor_seconds', 'gauge', ['controller', 'name']],
  ['workqueue_retries_total', 'counter', ['controller', 'name']],
  ['leader_election_master_status', 'gauge', ['name']],
  ['rest_client_requests_total', 'counter', ['code', 'host', 'method']],
  ['rest_client_request_duration_seconds', 'histogram', ['host', 'verb']],
  ['kubernetes_watch_restarts_total', 'counter', ['reason', 'resource']],
  ['kubernetes_watch_last_contact_timestamp_seconds', 'gauge', ['resource']],
  ['kubernetes_cache_objects', 'gauge', ['resource']],
  ['kubernetes_events_dropped_total', 'counter', ['reason']],
]

function useAll(metrics: ReturnType<typeof createKubernetesMetrics>): void {
  metrics.queue('things')
  metrics.workers('things', 8)
  metrics.leading('the-lease', false)
  metrics.reflector('things')
}

it('has the names, kinds and labels of controller-runtime and client-go, and our own', async () => {
  const { registry, metrics } = someMetrics()
  useAll(metrics)
  metrics.requests.request('get', 'GET', 'example.com:6443', '200', 0.1)
  const runtime = /^(controller_runtime|workqueue|leader_election|rest_client|kubernetes)_/
  const found = (await registry.getMetricsAsJSON())
    .filter(({ name }) => runtime.test(name))
    .map(({ name, type, values }) => {
      const { le: _, ...labels } = values[0]!.labels as Record<string, unknown>
      return [name, String(type), Object.keys(labels).sort()]
    })
  expect(found.sort()).toEqual(NAMES.toSorted())
})

it('begins at zero with every label that is known before anything happens', async () => {
  const { registry, metrics } = someMetrics()
  useAll(metrics)
  for (const result of ['success', 'error', 'requeue', 'requeue_after'])
    expect(await readValue(registry, 'controller_runtime_reconcile_total', { controller: 'things', result })).toBe(0)
  for (const priority of ['0', '-100'])
    expect(await readValue(registry, 'workqueue_depth', { name: 'things', controller: 'things', priority })).toBe(0)
  for (const reason of ['timeout', 'closed', 'error', 'expired', 'stalled'])
    expect(await readValue(registry, 'kubernetes_watch_restarts_total', { resource: 'things', reason })).toBe(0)
  for (const reason of ['queue_full', 'rate_limited', 'failed', 'stopped'])
    expect(await readValue(registry, 'kubernetes_events_dropped_total', { reason })).toBe(0)
  for (const [name, kind] of NAMES) {
    if (name.startsWith('rest_client') || name.endsWith('max_concurrent_reconciles')) continue
    const samples = (await scrape(registry)).filter(
      (sample) => sample.name === (kind === 'histogram' ? `${name}_count` : name),
    )
    expect(
      samples.map(({ value }) => value),
      name,
    ).toEqual(samples.map(() => 0))
    expect(samples.length, name).toBeGreaterThan(0)
  }
})

it('has the buckets of controller-runtime', async () => {
  const { registry, metrics } = someMetrics()
  useAll(metrics)
  metrics.requests.request('get', 'GET', 'h', '200', 0.1)
  const buckets = async (name: string) =>
    (await scrape(registry)).filter((sample) => sample.name === `${name}_bucket`).map(({ labels }) => Number(labels.le))
  const exponential = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10, 100, 1e3, Number.NaN]
  expect(await buckets('workqueue_queue_duration_seconds')).toEqual(exponential)
  expect(await buckets('workqueue_work_duration_seconds')).toEqual(exponential)
  expect(await buckets('controller_runtime_reconcile_time_seconds')).toHaveLength(41)
  expect((await buckets('controller_runtime_reconcile_time_seconds')).slice(0, 6)).toEqual([
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15,
  ])
  expect((await buckets('controller_runtime_reconcile_time_seconds')).slice(-4, -1)).toEqual([40, 50, 60])
  const latencies = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, Number.NaN]
  expect(await buckets('rest_client_request_duration_seconds')).toEqual(latencies)
})

it('counts each outcome of a reconcile as controller-runtime does', async () => {
  const { registry, metrics } = someMetrics()
  await reconcileOnce(metrics, [
    () => ({ kind: 'done' }),
    () => ({ kind: 'again', afterMs: 60_000 }),
    () => ({ kind: 'stalled', retryMs: 60_000 }),
    () => {
      throw new Error('no')
    },
    () => {
      throw new TypeError('not a function')
    },
  ])
  const results = async (result: string) => readValue(registry, 'controller_runtime_reconcile_total', { result })
  expect([await results('success'), await results('requeue_after'), await results('error')]).toEqual([1, 1, 3])
  expect(await readValue(registry, 'controller_runtime_reconcile_errors_total')).toBe(3)
  expect(await readValue(registry, 'controller_runtime_terminal_reconcile_errors_total')).toBe(1)
  expect(await readValue(registry, 'controller_runtime_reconcile_panics_total')).toBe(1)
  expect(await readValue(registry, 'controller_runtime_reconcile_time_seconds_count')).toBe(5)
  expect(await readValue(registry, 'controller_runtime_reconcile_time_seconds_sum')).toBe(1.25)
  expect(await readValue(registry, 'controller_runtime_max_concurrent_reconciles')).toBe(3)
  expect(await readValue(registry, 'controller_runtime_active_workers')).toBe(0)
  expect(await readValue(registry, 'workqueue_adds_total')).toBe(5)
  // One that asked for a later look, one that stalled, two that failed.
  expect(await readValue(registry, 'workqueue_retries_total')).toBe(4)
  expect(await readValue(registry, 'workqueue_work_duration_seconds_sum')).toBe(1.25)
  // Three at once, then two.
  expect(await readValue(registry, 'workqueue_queue_duration_seconds_sum')).toBe(0.5)
})

it('shows what is waiting and being worked on at the moment of a scrape', async () => {
  const { registry, metrics } = someMetrics()
  const clock = createManualClock()
  const queue = createQueue({ clock, metrics: metrics.queue('things') })
  for (const key of ['a', 'b', 'c']) queue.add(key)
  queue.add('d', 'background')
  await queue.take()
  await clock.advance(3_000)
  queue.add('b')
  await queue.take()
  expect(await readValue(registry, 'workqueue_queue_duration_seconds_sum')).toBe(3)
  await clock.advance(1_000)
  expect(await readValue(registry, 'workqueue_depth', { priority: '0' })).toBe(1)
  expect(await readValue(registry, 'workqueue_depth', { priority: '-100' })).toBe(1)
  expect(await readValue(registry, 'workqueue_unfinished_work_seconds')).toBe(5)
  expect(await readValue(registry, 'workqueue_longest_running_processor_seconds')).toBe(4)
  queue.done('a')
  expect(await readValue(registry, 'workqueue_unfinished_work_seconds')).toBe(1)
})

it('continues its counters when parts are created again, as with each term of a leader', async () => {
  const { registry, metrics } = someMetrics()
  for (let term = 0; term < 2; term += 1) {
    await reconcileOnce(metrics, [() => ({ kind: 'done' })])
    const clock = createManualClock()
    // Left behind full.
    createQueue({ clock, metrics: metrics.queue('things') }).add('left')
  }
  createQueue({ clock: createManualClock(), metrics: metrics.queue('things') })
  expect(await readValue(registry, 'controller_runtime_reconcile_total', { result: 'success' })).toBe(2)
  expect(await readValue(registry, 'controller_runtime_reconcile_time_seconds_count')).toBe(2)
  expect(await readValue(registry, 'workqueue_work_duration_seconds_count')).toBe(2)
  expect(await readValue(registry, 'workqueue_depth', { priority: '0' })).toBe(0)
})

it('keeps controllers, leases and resources apart, and counts watches and dropped events', async () => {
  const { registry, metrics } = someMetrics()
  metrics.workers('one', 1).reconciled('success', 0.1)
  metrics.workers('two', 2)
  metrics.leading('one', true)
  metrics.leading('two', false)
  metrics.reflector('one').objects(7)
  metrics.reflector('two').objects(9)
  metrics.reflector('one').restarted('stalled')
  metrics.reflector('one').contact(Date.UTC(2026, 0, 1) + 500)
  metrics.dropped('queue_full')
  for (const [name, labels, value] of [
    ['controller_runtime_reconcile_total', { controller: 'one', result: 'success' }, 1],
    ['controller_runtime_reconcile_total', { controller: 'two', result: 'success' }, 0],
    ['leader_election_master_status', { name: 'one' }, 1],
    ['leader_election_master_status', { name: 'two' }, 0],
    ['kubernetes_cache_objects', { resource: 'one' }, 7],
    ['kubernetes_watch_restarts_total', { resource: 'one', reason: 'stalled' }, 1],
    ['kubernetes_watch_last_contact_timestamp_seconds', { resource: 'one' }, 1_767_225_600.5],
    ['kubernetes_events_dropped_total', { reason: 'queue_full' }, 1],
  ] as const)
    expect(await readValue(registry, name, labels)).toBe(value)
  metrics.leading('one', false)
  expect(await readValue(registry, 'leader_election_master_status', { name: 'one' })).toBe(0)
})

it('counts requests as client-go does: the method for a verb, and no duration for a watch', async () => {
  const { registry, metrics } = someMetrics()
  metrics.requests.request('list', 'GET', 'example.com:6443', '200', 0.2)
  metrics.requests.request('watch', 'GET', 'example.com:6443', '200', 5)
  metrics.requests.request('update', 'PUT', 'example.com:6443', '<error>', 30)
  const host = 'example.com:6443'
  expect(await readValue(registry, 'rest_client_requests_total', { code: '200', method: 'GET', host })).toBe(2)
  expect(await readValue(registry, 'rest_client_requests_total', { code: '<error>', method: 'PUT', host })).toBe(1)
  expect(await readValue(registry, 'rest_client_request_duration_seconds_count', { verb: 'GET', host })).toBe(1)
  expect(await readValue(registry, 'rest_client_request_duration_seconds_sum', { verb: 'PUT', host })).toBe(30)
})
