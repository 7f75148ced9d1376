/** The objects for Prometheus and Grafana: made of files/, changed by values. */

import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { CASES } from './cases.ts'
import { CHART, listPods, pick, readRefusal, renderChart, type Values } from './chart.ts'

interface Rule {
  readonly alert?: string
  readonly expr: string
  readonly for?: string
  readonly labels?: Record<string, string>
  readonly annotations?: Record<string, string>
}
interface Group {
  readonly name: string
  readonly rules: readonly Rule[]
}

const { groups: GROUPS } = parse(readFileSync(`${CHART}/files/rules.yaml`, 'utf8')) as { groups: Group[] }

async function readGroups(rules: Record<string, unknown> = {}): Promise<Group[]> {
  return pick(await renderChart({ prometheusRule: { enabled: true, rules } }), 'PrometheusRule').spec.groups
}
const listAlerts = (groups: readonly Group[]) => groups.flatMap(({ rules }) => rules)
const find = (groups: readonly Group[], alert: string) => listAlerts(groups).find((rule) => rule.alert === alert)

describe('the token of /metrics', () => {
  const readToken = async (metricsToken: object) => {
    const objects = await renderChart({ serviceMonitor: { enabled: true }, metricsToken })
    const variables = listPods(objects).flatMap(({ spec }) =>
      (spec.containers[0].env ?? []).filter(({ name }) => name === 'METRICS_TOKEN'),
    )
    return { objects, variables, authorization: pick(objects, 'ServiceMonitor').spec.endpoints[0].authorization }
  }

  it('is neither required nor sent without a value', async () => {
    const { variables, authorization } = await readToken({})
    expect([variables, authorization]).toEqual([[], undefined])
  })

  it.each([
    ['of a Secret', { existingSecret: 'metrics', existingSecretKey: 'token' }, { name: 'metrics', key: 'token' }],
    ['of a value', { value: 'x'.repeat(32) }, { name: 'heartbeat-metrics', key: 'METRICS_TOKEN' }],
  ])('%s reaches api and controller, and the ServiceMonitor sends it', async (_, values, source) => {
    const { objects, variables, authorization } = await readToken(values)
    expect(variables).toEqual(
      ['api', 'controller'].map(() => ({ name: 'METRICS_TOKEN', valueFrom: { secretKeyRef: source } })),
    )
    expect(authorization).toEqual({ credentials: source })
    const made = objects.filter(({ metadata }) => metadata.name === 'heartbeat-metrics')
    expect(made.map(({ data }) => Buffer.from(data.METRICS_TOKEN, 'base64').toString())).toEqual(
      'value' in values ? [values.value] : [],
    )
  })
})

describe('the PrometheusRule', () => {
  it('holds the rules of files/rules.yaml to the letter, but HeartbeatLate, which is to be asked for', async () => {
    const without = GROUPS.map((group) => ({
      ...group,
      rules: group.rules.filter(({ alert }) => alert !== 'HeartbeatLate'),
    }))
    expect(await readGroups()).toEqual(without)
    expect(find(GROUPS, 'HeartbeatLate')).toBeDefined()
    expect(await readGroups({ HeartbeatLate: { enabled: true } })).toEqual(GROUPS)
  })

  it('can be changed alert by alert', async () => {
    const groups = await readGroups({
      HeartbeatMissed: {
        severity: 'info',
        for: '10m',
        labels: { team: 'jobs' },
        annotations: { runbook_url: 'https://wiki/missed' },
      },
      HeartbeatFailed: { enabled: false },
    })
    const before = find(GROUPS, 'HeartbeatMissed')!
    expect(find(groups, 'HeartbeatMissed')).toEqual({
      ...before,
      for: '10m',
      labels: { ...before.labels, severity: 'info', team: 'jobs' },
      annotations: { ...before.annotations, runbook_url: 'https://wiki/missed' },
    })
    expect(find(groups, 'HeartbeatFailed')).toBeUndefined()
    expect(find(groups, 'HeartbeatOverran')).toEqual(find(GROUPS, 'HeartbeatOverran'))
  })

  it('has no group without rules', async () => {
    const [first] = GROUPS
    const off = first!.rules.map(({ alert }) => [alert, { enabled: false }])
    expect((await readGroups(Object.fromEntries(off))).map(({ name }) => name)).toEqual(
      GROUPS.slice(1).map(({ name }) => name),
    )
  })

  it('is refused for an alert that there is not, with the names of those that there are', async () => {
    const message = await readRefusal({
      prometheusRule: { enabled: true, rules: { HeartbeatMised: { enabled: false } } },
    })
    expect(message).toContain('prometheusRule.rules.HeartbeatMised: there is no such alert')
    for (const { alert } of listAlerts(GROUPS)) if (alert !== undefined) expect(message).toContain(alert)
  })

  it('carries the labels that a Prometheus selects by', async () => {
    const objects = await renderChart({ prometheusRule: { enabled: true, additionalLabels: { release: 'stack' } } })
    expect(pick(objects, 'PrometheusRule').metadata.labels).toMatchObject({ release: 'stack' })
  })
})

describe('the PodMonitor', () => {
  it('finds the pods of /metrics, and scrapes them as the ServiceMonitor does', async () => {
    const monitor = { ...(CASES.everything.podMonitor as Values), namespace: '' }
    const objects = await renderChart({ serviceMonitor: monitor, podMonitor: monitor })
    const [service, pod] = [pick(objects, 'ServiceMonitor'), pick(objects, 'PodMonitor')]
    expect(pod.metadata).toEqual(service.metadata)
    expect(pod.spec.podMetricsEndpoints).toEqual(service.spec.endpoints)
    expect(pod.spec.podMetricsEndpoints).toMatchObject([{ port: 'ops', scheme: 'https', honorLabels: true }])
    const found = listPods(objects).filter(({ labels }) =>
      Object.entries(pod.spec.selector.matchLabels).every(([label, value]) => labels[label] === value),
    )
    expect(found.map(({ labels }) => labels['app.kubernetes.io/component']).sort()).toEqual(['api', 'controller'])
  })
})

describe('a monitor in another namespace', () => {
  it.each([
    ['ServiceMonitor', 'serviceMonitor'],
    ['PodMonitor', 'podMonitor'],
  ])('%s looks into that of the release, and has the token beside it', async (kind, name) => {
    const values = { [name]: { enabled: true, namespace: 'prometheus' }, metricsToken: { value: 'x'.repeat(32) } }
    const objects = await renderChart(values)
    const { spec, metadata } = pick(objects, kind)
    expect(metadata.namespace).toBe('prometheus')
    expect(spec.namespaceSelector).toEqual({ matchNames: ['monitoring'] })
    const tokens = objects.filter(({ metadata }) => metadata.name === 'heartbeat-metrics')
    expect(tokens.map(({ metadata }) => metadata.namespace).sort()).toEqual(['monitoring', 'prometheus'])
    const [one, other] = tokens.map(({ data }) => data)
    expect(one).toEqual(other)
  })

  it('has no token there while it is disabled', async () => {
    const values = { serviceMonitor: { namespace: 'prometheus' }, metricsToken: { value: 'x'.repeat(32) } }
    const objects = await renderChart(values)
    expect(objects.filter(({ metadata }) => metadata.name === 'heartbeat-metrics')).toHaveLength(1)
  })
})

describe('the ServiceMonitor', () => {
  it('finds the Service of /metrics, and leaves the labels of series as they are', async () => {
    const objects = await renderChart({
      serviceMonitor: { enabled: true, interval: '15s', additionalLabels: { release: 'stack' } },
    })
    const { spec, metadata } = pick(objects, 'ServiceMonitor')
    expect(metadata.labels).toMatchObject({ release: 'stack' })
    const services = objects.filter(
      ({ kind, metadata: { labels } }) =>
        kind === 'Service' &&
        Object.entries(spec.selector.matchLabels).every(([label, value]) => labels[label] === value),
    )
    expect(services.map(({ metadata: { name } }) => name)).toEqual(['heartbeat-ops'])
    expect(spec.endpoints).toEqual([{ port: services[0]!.spec.ports[0].name, honorLabels: true, interval: '15s' }])
    const ports = listPods(objects).flatMap(({ spec: pod }) => pod.containers[0].ports ?? [])
    expect(ports.filter(({ name }) => name === services[0]!.spec.ports[0].targetPort)).toEqual([
      { name: 'ops', containerPort: 9090 },
      { name: 'ops', containerPort: 9090 },
    ])
  })
})

describe('the dashboards', () => {
  const files = readdirSync(`${CHART}/files/dashboards`).filter((name) => name.endsWith('.json'))

  it('are a ConfigMap each, as Grafana finds them', async () => {
    const objects = await renderChart({ dashboards: { enabled: true } })
    const maps = objects.filter(
      ({ kind, metadata }) => kind === 'ConfigMap' && metadata.labels.grafana_dashboard === '1',
    )
    expect(maps.map(({ data }) => Object.keys(data)[0]).sort()).toEqual(files.map((name) => `heartbeat-${name}`).sort())
    expect(maps.length).toBeGreaterThanOrEqual(3)
    for (const { data, metadata } of maps) {
      const [[name, text]] = Object.entries(data) as [[string, string]]
      expect(JSON.parse(text)).toEqual(
        JSON.parse(readFileSync(`${CHART}/files/dashboards/${name.replace('heartbeat-', '')}`, 'utf8')),
      )
      expect(metadata.namespace).toBe('monitoring')
    }
  })

  it('go where they are wanted, with the labels and annotations that are wanted', async () => {
    const dashboards = {
      enabled: true,
      namespace: 'grafana',
      labels: { dashboards: 'yes' },
      annotations: { folder: 'Jobs' },
    }
    const maps = (await renderChart({ dashboards })).filter(({ metadata }) => metadata.labels.dashboards === 'yes')
    expect(maps).toHaveLength(files.length)
    for (const { metadata } of maps)
      expect(metadata).toMatchObject({ namespace: 'grafana', annotations: { folder: 'Jobs' } })
  })
})

it('nothing of it is made unless asked for', async () => {
  const kinds = (await renderChart()).map(({ kind }) => kind)
  expect(
    kinds.filter((kind) => ['ServiceMonitor', 'PodMonitor', 'PrometheusRule', 'HTTPRoute', 'Ingress'].includes(kind)),
  ).toEqual([])
  expect(kinds.filter((kind) => kind === 'ConfigMap')).toHaveLength(1)
})
