/** The values of the chart: what is refused, that each has a description, and that what is made of them is up to date. */

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { renderManifests } from '../../tools/generate/manifests.ts'
import { listValues, replaceValuesTable } from '../../tools/generate/values-table.ts'
import { CASES } from './cases.ts'
import { CHART, helm, readRefusal, renderChart } from './chart.ts'

const read = (file: string) => readFileSync(`${CHART}/${file}`, 'utf8')
const VALUES = parse(read('values.yaml'))

type Json = Record<string, unknown>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Paths of all sections, which hold values that the chart knows by name. */
function listSections(): string[] {
  const rows = listValues(read('values.yaml')).map(({ path }) => path.split('.').slice(0, -1).join('.'))
  // What a chart around this one sets for others too is left open.
  return [...new Set(rows)].filter((path) => path !== 'global')
}

/** `a.b` and 1: `{a: {b: 1}}`. */
const nest = (path: string, value: unknown): Json =>
  path === ''
    ? (value as Json)
    : (path.split('.').reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as Json)

const BALANCED: Json = { service: { ping: { type: 'LoadBalancer' }, api: { type: 'LoadBalancer' } } }
const VOLUMES: Json = { api: { spool: { persistentVolume: { enabled: true } } } }

/** What a value needs beside it to have an effect, where "everything" is in its way. */
const WITH: Record<string, Json> = {
  'api.spool.persistentVolume.size': VOLUMES,
  'api.spool.persistentVolume.storageClassName': VOLUMES,
  'api.spool.persistentVolume.accessModes': VOLUMES,
  'api.spool.persistentVolume.annotations': VOLUMES,
  'api.replicas': { api: {} },
  'api.serviceAccount.create': { api: { serviceAccount: { name: 'theirs' } } },
  'controller.serviceAccount.create': { controller: { serviceAccount: { name: 'theirs' } } },
  ...Object.fromEntries(
    ['nodePort', 'loadBalancerClass', 'loadBalancerSourceRanges', 'externalTrafficPolicy'].map((field) => [
      `service.api.${field}`,
      BALANCED,
    ]),
  ),
  // A ClusterIP has none of the fields of "everything".
  'service.ping.type': { service: {} },
  'image.tag': { image: {} },
  'crds.keep': { crds: {} },
  'rbac.create': { rbac: {} },
  'rbac.aggregatedRoles': { rbac: {} },
  'database.existingSecretKey': { database: { existingSecret: 'database' } },
  'networkPolicy.egress.databasePort': { database: { existingSecret: 'database' } },
  'secretKey.existingSecretKey': { secretKey: { existingSecret: 'keys' } },
  'metricsToken.value': { metricsToken: {} },
  'alertmanager.existingSecretKey': { alertmanager: { existingSecret: 'alertmanager' } },
}

/** What fits where the default says too little. */
const OTHER: Record<string, unknown> = {
  'smtp.tls': 'opportunistic',
  'api.spool.persistentVolume.size': '2Gi',
  'api.spool.persistentVolume.accessModes': ['ReadWriteMany'],
  'api.spool.persistentVolume.annotations': { 'example.com/backup': 'no' },
  commonLabels: { team: 'shop' },
  'image.digest': `sha256:${'b'.repeat(64)}`,
  'image.pullPolicy': 'Never',
  imagePullSecrets: [{ name: 'other' }],
  'global.imagePullSecrets': [{ name: 'other' }],
  extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other' } }],
  watchNamespaces: ['shop'],
  'cronJobs.watch': 'none',
  'cronJobs.timeZone': 'Asia/Tokyo',
  'cronJobs.logs': 'off',
  takeOver: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d11',
  revival: 'name',
  projects: { shop: ['shop'] },
  metricLabels: ['tier'],
  'rbac.secrets': 'cluster',
  trustedProxies: ['10.9.0.0/16'],
  'metricsToken.value': 'y'.repeat(32),
  pingUrl: 'https://other.example.com',
  baseUrl: 'https://other.example.com/api/v1',
  logLevel: 'error',
  logFormat: 'json',
  allowedTargets: ['192.168.0.0/16'],
  oidcIssuers: [{ issuer: 'https://other.example.com', audience: 'other' }],
  'alertmanager.urls': ['http://other:9093'],
  'bootstrap.email': 'other@example.com',
  'bootstrap.projectId': '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d11',
  'postgresql.image.digest': `sha256:${'b'.repeat(64)}`,
  'postgresql.image.pullPolicy': 'Always',
  'postgresql.storage.size': '1Ti',
  'postgresql.tolerations': [{ operator: 'Exists' }],
  'api.tolerations': [{ operator: 'Exists' }],
  'controller.tolerations': [{ operator: 'Exists' }],
  'api.topologySpread.whenUnsatisfiable': 'ScheduleAnyway',
  'controller.topologySpread.whenUnsatisfiable': 'DoNotSchedule',
  ...Object.fromEntries(
    ['', 'api.', 'controller.'].flatMap((component) => [
      [`${component}extraEnv`, [{ name: 'OTHER', value: '1' }]],
      [`${component}extraVolumes`, [{ name: 'other', emptyDir: {} }]],
      [`${component}extraVolumeMounts`, [{ name: 'ca', mountPath: '/other' }]],
    ]),
  ),
  ...Object.fromEntries(
    ['api', 'controller'].flatMap((component) => [
      [`${component}.extraContainers`, [{ name: 'other', image: 'other' }]],
      [`${component}.initContainers`, [{ name: 'other', image: 'other' }]],
      [`${component}.hostAliases`, [{ ip: '10.9.9.9', hostnames: ['other'] }]],
      [`${component}.strategy.type`, 'Recreate'],
    ]),
  ),
  ...Object.fromEntries(
    ['ping', 'api'].flatMap((name) => [
      [`service.${name}.loadBalancerSourceRanges`, ['192.168.0.0/16']],
      [`service.${name}.externalTrafficPolicy`, 'Cluster'],
      [`service.${name}.ipFamilyPolicy`, 'RequireDualStack'],
    ]),
  ),
  'service.ping.type': 'NodePort',
  'service.api.type': 'NodePort',
  'ingress.tls': [{ secretName: 'other' }],
  'httpRoute.parentRefs': [{ name: 'other' }],
  'networkPolicy.pingFrom': [{ podSelector: {} }],
  'networkPolicy.apiFrom': [{ podSelector: {} }],
  'networkPolicy.opsFrom': [{ podSelector: {} }],
  'networkPolicy.databaseFrom': [{ podSelector: {} }],
  'networkPolicy.egress.rules': [{ ports: [{ port: 25 }] }],
  'networkPolicy.egress.dnsPorts': [5353],
  'networkPolicy.egress.apiServerPorts': [8443],
  ...Object.fromEntries(
    ['serviceMonitor', 'podMonitor'].flatMap((monitor) => [
      [`${monitor}.interval`, '45s'],
      [`${monitor}.scrapeTimeout`, '5s'],
      [`${monitor}.scheme`, 'http'],
      [`${monitor}.relabelings`, [{ action: 'keep' }]],
      [`${monitor}.metricRelabelings`, [{ action: 'keep' }]],
    ]),
  ),
  'prometheusRule.rules': { HeartbeatMissed: { enabled: false } },
}

/** Of the same type as the default, and neither it nor what "everything" says. */
function otherThan(preset: unknown, path: string): unknown {
  const set = path
    .split('.')
    .reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), CASES.everything)
  const now = set ?? preset
  if (typeof now === 'boolean') return !now
  if (typeof now === 'number') return now > 1 ? now - 1 : now + 1
  return typeof now === 'string' ? 'other' : { other: 'other' }
}

function merge(one: Json, other: Json): Json {
  const all = [...new Set([...Object.keys(one), ...Object.keys(other)])]
  return Object.fromEntries(
    all.map((name) => {
      const [left, right] = [one[name], other[name]]
      return [name, isObject(left) && isObject(right) ? merge(left, right) : (right ?? left)]
    }),
  )
}

/** Without what is different in every rendering: generated secrets. */
async function renderComparable(values: Json): Promise<string> {
  const objects = await renderChart(values)
  return JSON.stringify(
    objects.map(({ data, ...rest }) =>
      rest.kind === 'Secret' ? { ...rest, data: Object.keys(data) } : { data, ...rest },
    ),
  )
}

describe('the schema', () => {
  it('refuses a misspelt value in any section, and names both', async () => {
    const values = listSections().reduce<Json>((all, path) => merge(all, nest(path, { mispselt: 1 })), {})
    const message = await readRefusal(values)
    expect(listSections().length).toBeGreaterThan(30)
    for (const path of listSections()) {
      const place = path === '' ? '' : `/${path.replaceAll('.', '/')}`
      expect(message).toContain(`at '${place}': additional properties 'mispselt' not allowed`)
    }
  })

  /** As many as Helm can be shown in one rendering: one value a path. */
  const INVALID: Record<string, unknown>[] = [
    {
      'api.replicas': -1,
      'api.drainSeconds': 301,
      'api.topologySpread.whenUnsatisfiable': 'Sometimes',
      baseUrl: 'https://heartbeat.example.com',
      pingUrl: 'ping.example.com',
      clusterName: 'Prod_1',
      watchNamespaces: ['Payments'],
      'cronJobs.watch': 'some',
      'cronJobs.logs': true,
      takeOver: 'the other',
      revival: 'never',
      projects: { payments: ['Not a slug'] },
      projectAnnotation: 'off',
      metricLabels: ['team name'],
      'rbac.secrets': 'none',
      'image.digest': 'sha256:abc',
      logLevel: 'loud',
      rateLimitPerMinute: 0,
      'history.maxDays': 3_651,
      'audit.maxDays': 0,
      allowedTargets: ['receiver.example.com'],
      trustedProxies: ['proxy.example.com'],
      passwordLogin: 'off',
      oidcIssuers: [{ issuer: 'https://login.example.com' }],
      'bootstrap.projectId': '42',
      'postgresql.storage.size': 'much',
      'service.ping.type': 'ExternalName',
      'service.api.nodePort': 65_536,
      'service.api.loadBalancerSourceRanges': ['load-balancer'],
      'service.api.externalTrafficPolicy': 'Global',
      'service.api.ipFamilyPolicy': 'IPv6',
      'api.strategy.type': 'OnDelete',
      'api.revisionHistoryLimit': -1,
      'api.serviceAccount.name': 'No name',
      'podMonitor.scheme': 'ftp',
      'serviceMonitor.namespace': 'No name',
      'global.imageRegistry': 1,
      extraObjects: [1],
      commonAnnotations: { on: true },
      commonLabels: { on: true },
      'prometheusRule.rules': { HeartbeatMissed: { for: 'a while' } },
      extraEnv: [{ value: 'x' }],
    },
    {
      'api.replicas': '2',
      oidcIssuers: [{ issuer: 'https://login.example.com', audience: 'heartbeat', clientId: 'x' }],
    },
  ]

  it.each(INVALID)('rejects values of another type or form, and says where: %j', async (values) => {
    const message = await readRefusal(
      Object.entries(values).reduce<Json>((all, [path, value]) => merge(all, nest(path, value)), {}),
    )
    for (const path of Object.keys(values)) expect(message).toContain(`at '/${path.replaceAll('.', '/')}`)
  })

  it.each(['off', false])('refuses cronJobs.watch: %j with the word that replaces it', async (watch) => {
    expect(await readRefusal({ cronJobs: { watch } })).toContain(
      "at '/cronJobs/watch': value must be one of 'labelled', 'all', 'none'",
    )
  })

  it('leaves open what is handed on to Kubernetes, and what Helm adds for a chart within a chart', async () => {
    await renderChart({
      global: { imageRegistry: 'registry.example.com' },
      api: { affinity: { podAntiAffinity: {} }, resources: { limits: { cpu: '1' } } },
      podSecurityContext: { fsGroup: 65_532 },
    })
  })
})

describe('a value that the schema cannot judge', () => {
  it.each([
    ['extraEnv', [{ name: 'ROLE', value: 'all' }], 'extraEnv: ROLE is set by the chart'],
    ['extraEnv', [{ name: 'DATABASE_URL', value: 'x' }], 'extraEnv: DATABASE_URL is set by the chart'],
    [
      'extraEnv',
      [{ name: 'SMTP_URL', value: 'x' }],
      'extraEnv: SMTP_URL is set by the chart',
      { smtp: { existingSecret: 'mail' } },
    ],
    ['extraEnv', [{ name: 'KUBECONFIG', value: '/k' }], 'set KUBECONFIG in controller.extraEnv'],
    ['api.extraEnv', [{ name: 'KUBECONFIG', value: '/k' }], 'set KUBECONFIG in controller.extraEnv'],
    ['api.extraEnv', [{ name: 'SECRET_KEY', value: 'x' }], 'extraEnv: SECRET_KEY is set by the chart'],
    ['controller.extraEnv', [{ name: 'ROLE', value: 'all' }], 'extraEnv: ROLE is set by the chart'],
    [
      'controller.extraEnv',
      [{ name: 'NODE_OPTIONS', value: 'x' }],
      'extraEnv: NODE_OPTIONS is set twice, by extraEnv and controller.extraEnv together',
      { extraEnv: [{ name: 'NODE_OPTIONS', value: 'y' }] },
    ],
    ['api.serviceAccount', { create: false }, 'api.serviceAccount.create: false needs api.serviceAccount.name'],
    ['controller.serviceAccount', { create: false }, 'needs controller.serviceAccount.name, an account that is there'],
    ['controller.serviceAccount', { name: 'heartbeat-api' }, 'the account of the api must be another one'],
    ['service.ping', { nodePort: 30_080 }, 'service.ping.nodePort needs service.ping.type NodePort or LoadBalancer'],
    ['service.api', { externalTrafficPolicy: 'Local' }, 'service.api.type NodePort or LoadBalancer, and that is'],
    ['service.ping', { type: 'NodePort', loadBalancerClass: 'a' }, 'needs service.ping.type LoadBalancer, and that is'],
    ['service.api', { type: 'NodePort', loadBalancerSourceRanges: ['::/0'] }, 'service.api.loadBalancerSourceRanges'],
    ['api', { drainSeconds: 21 }, 'at least api.drainSeconds and 25 more'],
    ['ingress', { enabled: true }, 'ingress.enabled: set ingress.pingHost'],
    ['httpRoute', { enabled: true, pingHost: 'a.example.com' }, 'name your Gateway in httpRoute.parentRefs'],
    ['httpRoute', { enabled: true, parentRefs: [{ name: 'public' }] }, 'httpRoute.enabled: set httpRoute.pingHost'],
  ])('%s: %j is refused in words', async (path, value, words, more: Json = {}) => {
    expect(await readRefusal({ ...nest(path, value), ...more })).toContain(words)
  })

  it('api.drainSeconds: 20 is taken, which leaves 25 seconds', async () => {
    await renderChart({ api: { drainSeconds: 20 } })
  })
})

describe('values.yaml', () => {
  it('holds defaults of every value that the schema knows', () => {
    const missing: string[] = []
    const walk = (schema: Json, values: unknown, path: string) => {
      for (const [name, child] of Object.entries((schema.properties ?? {}) as Record<string, Json>)) {
        const place = path === '' ? name : `${path}.${name}`
        if (place === 'global') continue
        if (!isObject(values) || !(name in values)) missing.push(place)
        else if (child.type === 'object' && isObject(child.properties)) walk(child, values[name], place)
      }
    }
    walk(JSON.parse(read('values.schema.json')), VALUES, '')
    expect(missing).toEqual([])
  })

  // Without generateSecrets there is no rendering to compare: render.test.ts.
  const compared = listValues(read('values.yaml')).filter(({ path }) => path !== 'generateSecrets')
  it.concurrent.each(compared)('$path makes a difference', async ({ path, preset }) => {
    const before = { ...CASES.everything, ...(WITH[path] ?? {}) }
    const after = merge(before, nest(path, OTHER[path] ?? otherThan(JSON.parse(preset), path)))
    expect(await renderComparable(after)).not.toBe(await renderComparable(before))
  })
})

describe('the README', () => {
  const blocks = [...read('README.md').matchAll(/```yaml\n# values\n([^`]*)```/g)].map(([, yaml]) => yaml!)

  it('shows values that are taken', async () => {
    expect(blocks.length).toBeGreaterThanOrEqual(5)
    for (const yaml of blocks) {
      const { stdout } = await helm(['lint', '--strict', CHART, '--values', '-'], parse(yaml))
      expect(stdout, yaml).toContain('0 chart(s) failed')
    }
  })

  it('names only objects that the chart makes', async () => {
    const names = (await renderChart()).map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    const rows = [
      ...read('README.md').matchAll(/^\| (Deployment|Service|StatefulSet|Secret|ClusterRole)s? (`heartbeat[^|]*) \|/gm),
    ]
    const named = rows.flatMap(([, kind, list]) =>
      [...list!.matchAll(/`([^`]+)`/g)].map(([, name]) => `${kind} ${name}`),
    )
    expect(named).toHaveLength(12)
    for (const name of named) expect(names).toContain(name)
  })
})

describe('what is made of values.yaml', () => {
  it.each(['values.schema.json', 'README.md', 'templates/crds/heartbeatchecks.yaml'])(
    '%s is up to date: npm run manifests',
    (file) => {
      expect(read(file)).toBe(renderManifests().get(`charts/heartbeat-operator/${file}`))
    },
  )

  it('lists each value with its default, and a map with a comment as one row', () => {
    const yaml = '# -- First\na: 1\n\n# no value\nb:\n  # -- Inner | part\n  c: x\n  # -- Whole\n  d:\n    e: [1]\n'
    expect(listValues(yaml)).toEqual([
      { path: 'a', about: 'First', preset: '1' },
      { path: 'b.c', about: 'Inner | part', preset: '"x"' },
      { path: 'b.d', about: 'Whole', preset: '{"e":[1]}' },
    ])
    const readme = 'x\n<!-- values: begin -->\nold\n<!-- values: end -->\ny\n'
    expect(replaceValuesTable(readme, yaml)).toContain('| `b.c` | `"x"` | Inner \\| part |\n')
    expect(replaceValuesTable(readme, yaml)).not.toContain('old')
  })

  it('cannot be made while a value has no description, or the README no place for it', () => {
    expect(() => listValues('# -- First\na: 1\nb: 2\n')).toThrow('b has no comment')
    expect(() => replaceValuesTable('nothing', '# -- First\na: 1\n')).toThrow('<!-- values: begin -->')
  })
})
