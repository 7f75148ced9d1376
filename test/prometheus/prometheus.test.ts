/**
 * A real Prometheus that scrapes two replicas and a controller with the rules of the chart, sixty times as fast: the alerts fire and
 * resolve on real series, and the dashboards' queries answer. The last tests take the replicas away, in their order.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CheckedService, startCheckedService } from './checked-service.ts'
import { type ControllerMetrics, serveControllerMetrics } from './controller-metrics.ts'
import { listQueries, readDashboards } from './read-dashboards.ts'
import { readFastRules } from './read-rules.ts'
import { type FiringAlert, type Prometheus, startPrometheus } from './server.ts'

/** Queries that rightly find nothing here. */
const RIGHTLY_EMPTY: Readonly<Record<string, string>> = {
  'operator.json: Time of an attempt, 99 % A': 'there is no channel, so nothing is delivered',
  'operator.json: Jobs seen until A': 'no check follows a CronJob',
}

let stage: CheckedService
let controller: ControllerMetrics
let prometheus: Prometheus

beforeAll(async () => {
  stage = await startCheckedService()
  controller = await serveControllerMetrics()
  const podLabels = (pod: string) => ({ namespace: 'monitoring', pod })
  prometheus = await startPrometheus({
    job: 'heartbeat-ops',
    targets: [
      ...stage.replicas.map(({ ops }, index) => ({ url: ops, labels: podLabels(`api-${index}`) })),
      { url: controller.url, labels: podLabels('controller-0') },
    ],
    rules: readFastRules(),
  })
  await prometheus.waitFor('three targets', async () => (await prometheus.query('up == 1')).length === 3)
}, 300_000)
afterAll(async () => {
  await prometheus?.[Symbol.asyncDispose]()
  await controller?.[Symbol.asyncDispose]()
  await stage?.close()
})

const find = async (name: string, check?: string) =>
  (await prometheus.alerts()).find((alert) => alert.name === name && alert.labels.check === check)
const waitForAlert = (name: string, check?: string): Promise<FiringAlert> =>
  prometheus.waitFor(`${name} of ${check ?? 'the service'}`, () => find(name, check))
const waitForEnd = (name: string, check?: string) =>
  prometheus.waitFor(`the end of ${name} of ${check ?? 'the service'}`, async () => !(await find(name, check)))
const exporters = async () =>
  (await prometheus.query('heartbeat_exporter_active == 1')).map(({ labels }) => labels.pod!)

describe('the series of a check', () => {
  it('have the namespace of the check, not that of the pod: none for a check of the API', async () => {
    const samples = await prometheus.waitFor('the series', async () => {
      const found = await prometheus.query('heartbeat_check_up')
      return found.length >= 5 && found
    })
    const identities = samples.map(({ labels: { pod, instance, job, ...labels }, value }) => ({ ...labels, value }))
    expect(identities).toHaveLength(5)
    expect(identities).toEqual(
      expect.arrayContaining([
        { check: 'hourly-job', project: 'default', value: 1 },
        { check: 'late-job', project: 'default', value: 1 },
        { check: 'failed-job', project: 'default', value: 0 },
        { namespace: 'shop', check: 'nightly-backup', project: 'default', value: 0 },
        { namespace: 'shop', check: 'nightly-backup', project: 'default', cluster: 'east', value: 1 },
      ]),
    )
  })

  it('come from one replica', async () => {
    expect(await exporters()).toHaveLength(1)
    expect(await prometheus.query('count(count by (pod) (heartbeat_check_status))')).toEqual([{ labels: {}, value: 1 }])
  })
})

describe('an alert about a check', () => {
  it('fires when the job fails, says which, and resolves with its success', async () => {
    const { publicId } = await stage.createCheck('failing')
    await stage.ping(publicId, '/3')
    const { labels, annotations } = await waitForAlert('HeartbeatFailed', 'failing')
    expect(labels).toEqual({ check: 'failing', project: 'default', severity: 'critical' })
    expect(annotations).toMatchObject({
      summary: 'failing failed',
      description: expect.stringMatching(/Project default\.$/),
    })
    await stage.ping(publicId)
    await waitForEnd('HeartbeatFailed', 'failing')
  })

  it('fires while the job is late, and another when it is missed', async () => {
    const { publicId } = await stage.createCheck('missing', { period_seconds: 10, grace_seconds: 10 })
    await stage.ping(publicId)
    const late = await waitForAlert('HeartbeatLate', 'missing')
    expect(late.labels).toEqual({ check: 'missing', project: 'default', severity: 'info' })
    const missed = await waitForAlert('HeartbeatMissed', 'missing')
    expect(missed.labels).toEqual({ check: 'missing', project: 'default', severity: 'critical' })
    await waitForEnd('HeartbeatLate', 'missing')
    await stage.ping(publicId)
    await waitForEnd('HeartbeatMissed', 'missing')
  })

  it('fires when a run takes too long', async () => {
    const { publicId } = await stage.createCheck('hanging', { max_runtime_seconds: 1 })
    await stage.ping(publicId, '/start')
    const { labels } = await waitForAlert('HeartbeatOverran', 'hanging')
    expect(labels).toEqual({ check: 'hanging', project: 'default', severity: 'critical' })
    await stage.ping(publicId)
    await waitForEnd('HeartbeatOverran', 'hanging')
  })

  it('ends when the check is paused or removed', async () => {
    const [paused, removed] = [await stage.createCheck('to-pause'), await stage.createCheck('to-remove')]
    for (const { publicId } of [paused, removed]) await stage.ping(publicId, '/fail')
    for (const name of ['to-pause', 'to-remove']) await waitForAlert('HeartbeatFailed', name)
    await stage.client.patch(`/checks/${paused.id}/pause`)
    await stage.client.delete(`/checks/${removed.id}`)
    for (const name of ['to-pause', 'to-remove']) await waitForEnd('HeartbeatFailed', name)
  })
})

describe('the dashboards', () => {
  const substitute = (expr: string) =>
    expr.replaceAll('$__rate_interval', '30s').replaceAll(/=~?"\$(job|namespace|project|cluster|check)"/g, '=~".*"')

  it.each(listQueries(readDashboards()))('$name answers', async ({ name, expr, isInstant }) => {
    expect(substitute(expr)).not.toContain('$')
    const count = isInstant
      ? (await prometheus.query(substitute(expr))).length
      : await prometheus.countRange(substitute(expr), 10)
    expect(count > 0, RIGHTLY_EMPTY[name]).toBe(RIGHTLY_EMPTY[name] === undefined)
  })
})

describe('the service itself', () => {
  it('has no alert about it while it is well', async () => {
    const firing = (await prometheus.alerts()).map(({ name }) => name)
    expect(firing.filter((name) => name.startsWith('HeartbeatOperator'))).toEqual([])
  })

  it('has another replica serve the checks when one is killed, and an alert is still the same one', async () => {
    const before = await waitForAlert('HeartbeatFailed', 'nightly-backup')
    const [pod] = await exporters()
    await stage.replicas[pod === 'api-0' ? 0 : 1]!.kill()
    await prometheus.waitFor('the other replica', async () => {
      const [other] = await exporters()
      return other !== undefined && other !== pod
    })
    // Until the alert comes from the new series.
    await prometheus.waitFor('its series', async () => (await prometheus.query('heartbeat_check_down')).length >= 2)
    expect(await waitForAlert('HeartbeatFailed', 'nightly-backup')).toEqual(before)

    const overTime = async (kind: string, expr: string) =>
      (await prometheus.query(`${kind}((${expr})[30s:1s])`))[0]?.value
    // Prometheus saw a time in which no replica served them, and never two that did.
    expect(await overTime('min_over_time', 'sum(heartbeat_exporter_active)')).toBe(0)
    const series = 'max(count by (namespace, check, project, cluster) (heartbeat_check_status{status="down"}))'
    expect(await overTime('max_over_time', series)).toBe(1)
  })

  it('is missed when all replicas are gone, and known again when one is back', async () => {
    for (const replica of stage.replicas) await replica.kill()
    const { labels, annotations } = await waitForAlert('HeartbeatOperatorAbsent')
    expect(labels).toEqual({ severity: 'critical' })
    expect(annotations.summary).toBe('Heartbeat Operator cannot be scraped')
    // What was known then is not for ever.
    await waitForEnd('HeartbeatFailed', 'nightly-backup')
    const { port } = new URL(stage.replicas[0]!.ops)
    await stage.start({ OPS_PORT: port })
    await waitForEnd('HeartbeatOperatorAbsent')
    await waitForAlert('HeartbeatFailed', 'nightly-backup')
    // More than five seconds without a process that takes pings.
    const gap = await waitForAlert('HeartbeatOperatorDowntime')
    expect(gap.labels).toEqual({ severity: 'info', namespace: 'monitoring', job: 'heartbeat-ops' })
  })
})
