/**
 * `metrics-server.ts <mode> <database URL>`: the product's ops app on a free port with one of two ways to serve the series of each
 * check. `series` is the product's, `labels` the same with METRIC_LABELS. `prom-client` sets a gauge for each sample, as every client would write it first; the answer is
 * compressed and sent in the same way. Speaks with its parent: see Asked and Answer.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setInterval } from 'node:timers'
import { Gauge, Registry } from 'prom-client'
import { createExporter, type ExportedCheck } from '../../src/checks/export-checks.ts'
import { SHOWN_STATUSES } from '../../src/domain/check.ts'
import { toSeriesLabel } from '../../src/domain/labels.ts'
import { createOpsApp } from '../../src/http/ops/app.ts'
import type { MetricsSource } from '../../src/http/ops/metrics.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'

export type Mode = 'series' | 'labels' | 'prom-client'
/**
 * `begin`: take the lease and watch; `memory` also cleans up first and looks at the memory all the time, which itself costs time.
 * `end`: give the lease back, and send what was seen since.
 */
export type Asked = 'begin' | 'memory' | 'end'
export type Answer = { readonly port: number } | 'begun' | Seen

/** Above what it was at the beginning; in MB and milliseconds. */
export interface Seen {
  readonly heapMB: number
  readonly residentMB: number
  readonly blockedMs: number
  /** Of the server's processor time, all threads: what other work on the machine changes least. */
  readonly busySeconds: number
}

const SAMPLE_MS = 5
const RESOLUTION_MS = 1

const [mode, url] = process.argv.slice(2) as [Mode, string]
const database = createDatabase({ url, name: 'bench', connections: 2 })
const METRIC_LABELS = ['team', 'tier', 'app.kubernetes.io/part-of']
const exporter = createExporter({ database, clock: systemClock }, mode === 'labels' ? METRIC_LABELS : [])
const contentType = Registry.PROMETHEUS_CONTENT_TYPE

const onFault = (error: unknown) => console.error(error)

const SOURCES: Record<Mode, MetricsSource> = {
  series: { contentType, onFault, readChecks: exporter.read, render: async () => '' },
  labels: {
    contentType,
    onFault,
    labelNames: METRIC_LABELS.map(toSeriesLabel),
    readChecks: exporter.read,
    render: async () => '',
  },
  'prom-client': { contentType, onFault, readChecks: async () => false, render: renderByPromClient, writeMs: 60_000 },
}

async function renderByPromClient(): Promise<string> {
  const registry = new Registry()
  const gauge = (name: string, ...more: string[]) =>
    new Gauge({ name, help: name, labelNames: ['namespace', 'project', 'check', ...more], registers: [registry] })
  const up = gauge('heartbeat_check_up')
  const status = gauge('heartbeat_check_status', 'status')
  const down = gauge('heartbeat_check_down', 'reason')
  const numbers: [Gauge, (check: ExportedCheck) => number | null][] = [
    [gauge('heartbeat_check_last_ping_timestamp_seconds'), (check) => whole(check.lastPingAt, Math.floor)],
    [gauge('heartbeat_check_last_success_timestamp_seconds'), (check) => whole(check.lastSuccessAt, Math.floor)],
    [gauge('heartbeat_check_deadline_timestamp_seconds'), (check) => whole(check.deadlineAt, Math.ceil)],
    [
      gauge('heartbeat_check_last_duration_seconds'),
      ({ lastDurationMs }) => (lastDurationMs === null ? null : lastDurationMs / 1_000),
    ],
    [gauge('heartbeat_check_period_seconds'), (check) => check.periodSeconds],
    [gauge('heartbeat_check_grace_seconds'), (check) => check.graceSeconds],
    [gauge('heartbeat_check_running'), (check) => (check.isRunning ? 1 : 0)],
    [gauge('heartbeat_check_flapping'), (check) => (check.isFlapping ? 1 : 0)],
  ]
  // Apart from the reading, whose time limit knows nothing of what is done meanwhile.
  const checks: ExportedCheck[] = []
  await exporter.read((check) => checks.push(check))
  for (const check of checks) {
    const labels = { namespace: check.namespace, project: check.project, check: check.name }
    if (check.status === 'down') up.set(labels, 0)
    if (check.status === 'up' || check.status === 'late') up.set(labels, 1)
    for (const one of SHOWN_STATUSES) status.set({ ...labels, status: one }, one === check.status ? 1 : 0)
    if (check.downReason !== null) down.set({ ...labels, reason: check.downReason }, 1)
    for (const [one, of] of numbers) {
      const value = of(check)
      if (value !== null) one.set(labels, value)
    }
  }
  return registry.metrics()
}

function whole(ms: number | null, round: (seconds: number) => number): number | null {
  return ms === null ? null : round(ms / 1_000)
}

const app = createOpsApp({
  isStarted: () => true,
  whyNotReady: () => null,
  metricsToken: null,
  metrics: SOURCES[mode],
  onRequest: () => {},
})
const server = createHttpServer({
  name: 'ops',
  handler: app.callback(),
  bindAddress: '127.0.0.1',
  port: 0,
  errorText: (text) => ({ type: 'text/plain', text }),
})

let stopWatching: () => Seen
const send = (answer: Answer) => process.send!(answer)
process.on('message', async (asked: Asked) => {
  if (asked === 'end') {
    await exporter.release()
    send(stopWatching())
  } else {
    await exporter.hold()
    stopWatching = watch(asked === 'memory')
    send('begun')
  }
})
process.once('disconnect', () => process.exit())
send(await server.listen())

function watch(isForMemory: boolean): () => Seen {
  if (isForMemory) global.gc!()
  const before = process.memoryUsage()
  let most = before
  const sample = () => {
    const now = process.memoryUsage()
    most = { ...now, heapUsed: Math.max(most.heapUsed, now.heapUsed), rss: Math.max(most.rss, now.rss) }
  }
  const sampling = isForMemory ? setInterval(sample, SAMPLE_MS) : undefined
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  delay.enable()
  const usedBefore = process.cpuUsage()
  return () => {
    const used = process.cpuUsage(usedBefore)
    delay.disable()
    clearInterval(sampling)
    sample()
    return {
      busySeconds: (used.user + used.system) / 1e6,
      heapMB: (most.heapUsed - before.heapUsed) / 1e6,
      residentMB: (most.rss - before.rss) / 1e6,
      blockedMs: delay.max / 1e6 - RESOLUTION_MS,
    }
  }
}
