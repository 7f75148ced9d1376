/** Who reaches whom: Ingress, HTTPRoutes and NetworkPolicies. */

import { describe, expect, it } from 'vitest'
import { CASES } from './cases.ts'
import { pick, renderChart } from './chart.ts'

describe('the policies', () => {
  const everywhere = { namespaceSelector: {} }
  const testPod = { podSelector: { matchLabels: expect.objectContaining({ 'app.kubernetes.io/component': 'test' }) } }
  const readPolicy = async (name: string, networkPolicy: object = {}) =>
    pick(await renderChart({ networkPolicy }), 'NetworkPolicy', `heartbeat-${name}`).spec

  it('without any value let every pod ping and call the API, and only the own namespace and collectors of metrics read metrics', async () => {
    const { policyTypes, ingress } = await readPolicy('api')
    expect(policyTypes).toEqual(['Ingress'])
    const [api, ops, ping] = ingress
    expect([api, ping]).toEqual([{ ports: [{ port: 'api' }] }, { ports: [{ port: 'ping' }] }])
    const collectors = {
      key: 'app.kubernetes.io/name',
      operator: 'In',
      values: ['prometheus', 'vmagent', 'alloy', 'grafana-agent', 'opentelemetry-collector'],
    }
    const from = [{ podSelector: {} }, { namespaceSelector: {}, podSelector: { matchExpressions: [collectors] } }]
    expect(ops).toEqual({ ports: [{ port: 'ops' }], from })
    expect((await readPolicy('controller')).ingress).toEqual([{ ports: [{ port: 'ops' }], from }])
    expect((await readPolicy('api', { opsFrom: [] })).ingress[1]).toEqual({ ports: [{ port: 'ops' }] })
    const kinds = (await renderChart({ networkPolicy: { enabled: false } })).map(({ kind }) => kind)
    expect(kinds).not.toContain('NetworkPolicy')
  })

  it('let only those of the values reach the ports, and the pod of helm test', async () => {
    const from = [everywhere]
    const closed = await readPolicy('api', { pingFrom: from, apiFrom: from, opsFrom: from })
    expect(closed.ingress).toEqual([
      { ports: [{ port: 'api' }], from: [everywhere, testPod] },
      { ports: [{ port: 'ops' }], from: [everywhere] },
      { ports: [{ port: 'ping' }], from: [everywhere, testPod] },
    ])
    expect((await readPolicy('controller', { opsFrom: from })).ingress).toEqual([{ ports: [{ port: 'ops' }], from }])
  })

  it('let api, controller and those of the values reach the database, which may open no connection', async () => {
    const { ingress, policyTypes, egress } = await readPolicy('postgresql')
    expect([policyTypes, egress]).toEqual([['Ingress', 'Egress'], undefined])
    const [{ from, ports }] = ingress
    expect(ports).toEqual([{ port: 'postgresql' }])
    const components = (from as { podSelector: { matchLabels: Record<string, string> } }[]).map(
      ({ podSelector }) => podSelector.matchLabels['app.kubernetes.io/component'],
    )
    expect(components).toEqual(['api', 'controller'])
    const backup = { podSelector: { matchLabels: { app: 'backup' } } }
    const [rule] = (await readPolicy('postgresql', { databaseFrom: [backup] })).ingress
    expect(rule.from).toEqual([...from, backup])
  })

  it('let our pods reach DNS, the database and the given rules, and the controller also the API server', async () => {
    const rules = [{ ports: [{ port: 443 }], to: [{ ipBlock: { cidr: '192.0.2.0/24' } }] }]
    const egress = { enabled: true, rules, apiServerPorts: [6443] }
    const dns = {
      ports: [
        { port: 53, protocol: 'UDP' },
        { port: 53, protocol: 'TCP' },
      ],
    }
    const database = { ports: [{ port: 'postgresql' }], to: [{ podSelector: expect.anything() }] }
    const { egress: api, policyTypes } = await readPolicy('api', { egress })
    expect(policyTypes).toEqual(['Ingress', 'Egress'])
    expect(api).toEqual([dns, database, ...rules])
    expect((await readPolicy('controller', { egress })).egress).toEqual([
      dns,
      database,
      ...rules,
      { ports: [{ port: 6443 }] },
    ])
    const { spec } = pick(await renderChart(CASES['own secrets']), 'NetworkPolicy', 'heartbeat-api')
    expect(spec.egress).toEqual([dns, { ports: [{ port: 6432 }] }])
  })
})

describe('ways in from outside', () => {
  it('lead one host to both Services by path', async () => {
    const ingress = { enabled: true, pingHost: 'h.example.com', apiHost: 'h.example.com' }
    const { rules } = pick(await renderChart({ ingress }), 'Ingress').spec
    expect(rules).toHaveLength(1)
    const paths = rules[0].http.paths.map(({ path, backend }: { path: string; backend: { service: object } }) => [
      path,
      backend.service,
    ])
    expect(paths).toEqual([
      ['/ping', { name: 'heartbeat-ping', port: { name: 'ping' } }],
      ['/api/push', { name: 'heartbeat-ping', port: { name: 'ping' } }],
      ['/', { name: 'heartbeat-api', port: { name: 'api' } }],
    ])
  })

  it('lead all of a host of its own to the ping API, and both of its paths where the host is shared', async () => {
    const render = async (apiHost: string) => {
      const hosts = { enabled: true, pingHost: 'ping.example.com', apiHost }
      const objects = await renderChart({ ingress: hosts, httpRoute: { ...hosts, parentRefs: [{ name: 'public' }] } })
      const rule = pick(objects, 'Ingress').spec.rules.find(({ host }: { host: string }) => host === 'ping.example.com')
      const route = pick(objects, 'HTTPRoute', 'heartbeat-ping').spec.rules[0]
      return [
        rule.http.paths.map(({ path }: { path: string }) => path),
        route.matches.map(({ path }: { path: { value: string } }) => path.value),
      ]
    }
    expect(await render('api.example.com')).toEqual([['/'], ['/']])
    expect(await render('ping.example.com')).toEqual([
      ['/ping', '/api/push', '/'],
      ['/ping', '/api/push'],
    ])
  })

  it('serve the dashboard at / of the host of the management API', async () => {
    const hosts = { enabled: true, apiHost: 'h.example.com' }
    const objects = await renderChart({ ingress: hosts, httpRoute: { ...hosts, parentRefs: [{ name: 'public' }] } })
    const [{ path, pathType }] = pick(objects, 'Ingress').spec.rules[0].http.paths
    expect([path, pathType]).toEqual(['/', 'Prefix'])
    const { matches, backendRefs } = pick(objects, 'HTTPRoute').spec.rules[0]
    expect(matches).toEqual([{ path: { type: 'PathPrefix', value: '/' } }])
    expect(backendRefs).toEqual([{ name: 'heartbeat-api', port: 80 }])
  })

  it('open only what has a host', async () => {
    const objects = await renderChart({
      ingress: { enabled: true, pingHost: 'ping.example.com' },
      httpRoute: { enabled: true, apiHost: 'api.example.com', parentRefs: [{ name: 'public' }] },
    })
    expect(pick(objects, 'Ingress').spec.rules.map(({ host }: { host: string }) => host)).toEqual(['ping.example.com'])
    const route = pick(objects, 'HTTPRoute')
    expect(route.spec).toMatchObject({ hostnames: ['api.example.com'], parentRefs: [{ name: 'public' }] })
    expect(route.spec.rules[0].backendRefs).toEqual([{ name: 'heartbeat-api', port: 80 }])
  })
})
