/** From values to the environment of the pods, and on to the product's own reader of it. */

import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { type Config, readConfig } from '../../src/config/config.ts'
import { VARIABLES } from '../../src/config/variables.ts'
import { readImageEnvironment } from '../support/image-environment.ts'
import { CASES } from './cases.ts'
import { type ChartObject, listPods, parseObjects, pick, renderChart, renderText, type Values } from './chart.ts'

const keyOf = (name: string) => createHash('sha256').update(name).digest('base64')
const API_KEY = `hbk_abc_${createHash('sha256').update('an API key').digest('hex')}`

const SIGN_IN_JSON = JSON.stringify([
  { name: 'Example', issuer: 'https://login.example.com', client_id: 'heartbeat', client_secret: 'a secret' },
])

/** What others put into Secrets that are not the chart's. */
const SECRETS: Record<string, Record<string, string>> = {
  'heartbeat-db-app': {
    uri: 'postgresql://app:password@heartbeat-db-rw:5432/app',
    'fqdn-uri': 'postgresql://app:password@heartbeat-db-rw.monitoring.svc.cluster.local:5432/app',
  },
  'heartbeat-keys': {
    SECRET_KEY: keyOf('one'),
    key: keyOf('two'),
    PREVIOUS_SECRET_KEYS: keyOf('three'),
  },
  'heartbeat-first-user': { BOOTSTRAP_PASSWORD: 'correct horse', BOOTSTRAP_API_KEY: API_KEY },
  metrics: { token: 'a-token-of-32-characters-for-metrics' },
  alertmanager: { urls: 'http://user:password@alertmanager:9093' },
  watchdog: { url: 'https://example.com/ping/1', WATCHDOG_URL: 'https://example.com/ping/2' },
  'sign-in': { SIGN_IN: SIGN_IN_JSON, providers: SIGN_IN_JSON },
  mail: { SMTP_URL: 'smtp://mail.example.com:587', url: 'smtps://mail.example.com:465' },
}

/** As the kubelet has it, the variables of the image included. Throws for a Secret or key that does not exist. */
function readEnvironment(objects: readonly ChartObject[], component: string): Record<string, string> {
  const made = objects
    .filter(({ kind }) => kind === 'Secret')
    .map(({ metadata, data }) => {
      const entries = Object.entries(data as Record<string, string>)
      return [
        metadata.name,
        Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, 'base64').toString()])),
      ]
    })
  const secrets: typeof SECRETS = { ...SECRETS, ...Object.fromEntries(made) }
  const pod = listPods(objects).find(({ labels }) => labels['app.kubernetes.io/component'] === component)!
  const { env = [], envFrom } = pod.spec.containers[0]
  const own = env.flatMap(({ name, value, valueFrom }) => {
    if (value !== undefined) return [[name, value] as const]
    const { name: secret, key, optional } = valueFrom!.secretKeyRef
    const found = secrets[secret]?.[key]
    if (found === undefined && optional !== true) throw new Error(`${name}: there is no ${key} in the Secret ${secret}`)
    return found === undefined ? [] : [[name, found] as const]
  })
  const [{ configMapRef }] = envFrom as [{ configMapRef: { name: string } }]
  return {
    ...readImageEnvironment(),
    ...pick(objects, 'ConfigMap', configMapRef.name).data,
    ...Object.fromEntries(own),
  }
}

async function configOf(values: Values, component = 'api'): Promise<Config> {
  return readConfig(readEnvironment(await renderChart(values), component), false)
}

describe('without any value', () => {
  it.each(['api', 'controller'] as const)(
    'the %s starts, over the database and with the secrets of the chart',
    async (role) => {
      const config = await configOf({}, role)
      expect(config).toMatchObject({
        role,
        bindAddress: '::',
        pingPort: 8080,
        apiPort: 8081,
        opsPort: 9090,
        pingUrl: 'http://heartbeat-ping.monitoring.svc',
        baseUrl: 'http://heartbeat-api.monitoring.svc/api/v1',
        clusterName: 'default',
        watchNamespaces: null,
        drainSeconds: role === 'api' ? 5 : 0,
        logFormat: 'json',
      })
      const { hostname, username, password, pathname } = new URL(config.secrets.databaseUrl!)
      expect([hostname, username, pathname]).toEqual(['heartbeat-postgresql.monitoring.svc', 'heartbeat', '/heartbeat'])
      expect(password).toMatch(/^[0-9A-Za-z]{40}$/)
      if (role === 'controller') return
      expect(config.secrets.secretKey).toHaveLength(32)
      expect(config.secrets.bootstrapPassword).toMatch(/^[0-9A-Za-z]{24}$/)
      expect(config.secrets.bootstrapApiKey).toMatch(/^hbk_[0-9A-Za-z]{8}_[0-9A-Za-z]{40}$/)
    },
  )

  it('the limits of values are defaults of the product, where it has some', async () => {
    const own = readConfig({ SECRET_KEY: Buffer.alloc(32).toString('base64') }, false)
    const {
      trustedProxies,
      isPasswordLoginOn,
      rateLimitPerMinute,
      pingCreatePerMinute,
      pingCreateMaxChecks,
      historyMaxPings,
      historyMaxDays,
      historyMaxFlips,
      maxConnections,
      auditMaxDays,
      logLevel,
      clusterName,
      bootstrapEmail,
    } = own
    expect(await configOf({})).toMatchObject({
      trustedProxies,
      isPasswordLoginOn,
      rateLimitPerMinute,
      pingCreatePerMinute,
      pingCreateMaxChecks,
      historyMaxPings,
      historyMaxDays,
      historyMaxFlips,
      maxConnections,
      auditMaxDays,
      logLevel,
      clusterName,
      bootstrapEmail,
    })
  })

  it('PostgreSQL is prepared with the user, database and password that the others use', async () => {
    const objects = await renderChart()
    const { password, uri } = pick(objects, 'Secret', 'heartbeat-postgresql').data
    const url = new URL(Buffer.from(uri, 'base64').toString())
    expect(url.password).toBe(Buffer.from(password, 'base64').toString())
    const { containers, volumes } = pick(objects, 'StatefulSet').spec.template.spec
    const env = Object.fromEntries(
      containers[0].env.map(({ name, value }: { name: string; value: string }) => [name, value]),
    )
    expect(env).toMatchObject({ POSTGRES_USER: url.username, POSTGRES_DB: url.pathname.slice(1) })
    const mount = (path: string) =>
      containers[0].volumeMounts.find(({ mountPath }: { mountPath: string }) => path.startsWith(`${mountPath}/`)).name
    expect(
      volumes.find(({ name }: { name: string }) => name === mount(env.POSTGRES_PASSWORD_FILE)).secret,
    ).toMatchObject({
      secretName: 'heartbeat-postgresql',
      items: [{ key: 'password', path: 'password' }],
    })
    expect(mount(env.PGDATA)).toBe('data')
    expect(url.hostname.split('.')[0]).toBe(pick(objects, 'StatefulSet').spec.serviceName)
    // Without an address its name would not exist until PostgreSQL is ready, and the service would not wait for it.
    expect(pick(objects, 'Service', 'heartbeat-postgresql').spec).not.toHaveProperty('clusterIP')
  })

  it('what is generated differs from one installation to the next', async () => {
    const data = async () =>
      parseObjects(await renderText())
        .filter(({ kind }) => kind === 'Secret')
        .flatMap(({ data }) => Object.values(data))
    const [one, other] = [await data(), await data()]
    expect(one).toHaveLength(5)
    expect(one.filter((value) => other.includes(value))).toEqual([])
  })
})

describe('with values', () => {
  it('everything that can be said is said', async () => {
    const config = await configOf(CASES.everything)
    expect(config).toMatchObject({
      pingUrl: 'https://ping.example.com',
      baseUrl: 'https://heartbeat.example.com/api/v1',
      clusterName: 'prod-1',
      takeOver: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10',
      metricLabels: ['team', 'example.com/tier'],
      logLevel: 'warn',
      logFormat: 'pretty',
      rateLimitPerMinute: 1_000_000,
      pingCreatePerMinute: 30,
      pingCreateMaxChecks: 500,
      historyMaxPings: 500_000,
      historyMaxDays: 3_650,
      historyMaxFlips: 5_000,
      maxConnections: 1_000_000,
      auditMaxDays: 30,
      allowedTargets: ['10.0.0.0/8', 'fd00::/8'],
      trustedProxies: ['10.1.0.0/16', '2001:db8::7'],
      isPasswordLoginOn: false,
      oidcIssuers: [
        { issuer: 'https://login.example.com/a&b', audience: 'heartbeat', users: new Map(), jwks: null },
        {
          issuer: 'https://kubernetes.default.svc',
          audience: 'heartbeat-operator',
          users: new Map([['system:serviceaccount:ci:deploy', 'ci@example.com']]),
          jwks: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }] },
        },
      ],
      smtpFrom: 'Heartbeat <heartbeat@example.com>',
      isSmtpTlsRequired: true,
      smtpName: 'heartbeat.example.com',
      bootstrapEmail: 'ops@example.com',
      bootstrapProjectId: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10',
      secrets: {
        alertmanagerUrls: ['http://alertmanager-0:9093', 'http://alertmanager-1:9093'],
        watchdogUrl: 'https://example.com/ping/1',
        smtpUrl: 'smtp://mail.example.com:587',
      },
    })
  })

  it('secrets of others are used, by the keys that are named, and none is generated beside them', async () => {
    const objects = await renderChart(CASES['own secrets'])
    expect(objects.map(({ kind }) => kind)).not.toContain('Secret')
    const { secrets } = readConfig(readEnvironment(objects, 'api'), false)
    expect(secrets).toMatchObject({
      databaseUrl: SECRETS['heartbeat-db-app']!['fqdn-uri'],
      secretKey: Buffer.from(keyOf('two'), 'base64'),
      previousSecretKeys: [Buffer.from(keyOf('three'), 'base64')],
      alertmanagerUrls: ['http://user:password@alertmanager:9093'],
      watchdogUrl: 'https://example.com/ping/2',
      smtpUrl: 'smtps://mail.example.com:465',
      bootstrapPassword: 'correct horse',
      bootstrapApiKey: API_KEY,
    })
  })

  it.each(['own secrets', 'everything'] as const)(
    'of all secrets the controller gets the database and its metrics token (%s)',
    async (name) => {
      const environment = readEnvironment(await renderChart(CASES[name]), 'controller')
      const secrets = ['SECRET_KEY', 'PREVIOUS_SECRET_KEYS', 'SMTP_URL', 'WATCHDOG_URL', 'SIGN_IN']
      const given = Object.keys(environment).filter((key) => secrets.includes(key) || key.startsWith('BOOTSTRAP_'))
      expect(given).toEqual([])
      expect(readConfig(environment, false).secrets.databaseUrl).toBeDefined()
    },
  )

  it('what namespaces may have reaches the controller, and without values is the default of the product', async () => {
    const { revival, projects, isProjectAnnotationOn, takeOver } = await configOf(CASES.everything, 'controller')
    expect({ revival, isProjectAnnotationOn }).toEqual({ revival: 'uid', isProjectAnnotationOn: false })
    expect(projects).toEqual(new Map([['payments', ['payments', 'shared']]]))
    expect(takeOver).toBe('0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10')
    expect(await configOf({}, 'controller')).toMatchObject({
      revival: 'name',
      projects: null,
      isProjectAnnotationOn: true,
      takeOver: null,
      metricLabels: [],
    })
  })

  it('what is monitored of CronJobs reaches the controller, also when YAML made false of logs: off', async () => {
    const variables = async (values: Values) => {
      const environment = readEnvironment(await renderChart(values), 'controller')
      return [environment.WATCH_CRONJOBS, environment.CRONJOB_TIME_ZONE, environment.CRONJOB_LOGS]
    }
    expect(await variables({})).toEqual(['labelled', 'Etc/UTC', 'off'])
    expect(await variables(CASES.everything)).toEqual(['all', 'Europe/Berlin', 'failed'])
    expect(await variables({ cronJobs: { watch: 'none', logs: false } })).toEqual(['none', 'Etc/UTC', 'off'])
  })

  it('how many checks pings create reaches the api', async () => {
    const variables = async (values: Values) => {
      const environment = readEnvironment(await renderChart(values), 'api')
      return [environment.PING_CREATE_PER_MINUTE, environment.PING_CREATE_MAX_CHECKS]
    }
    expect(await variables({})).toEqual(['60', '10000'])
    expect(await variables({ pingCreate: { perMinute: 5, maxChecks: 0 } })).toEqual(['5', '0'])
  })

  it('the dashboard is served unless it is disabled', async () => {
    const variable = async (values: Values) => readEnvironment(await renderChart(values), 'api').DASHBOARD ?? 'on'
    expect(await variable({})).toBe('on')
    expect(await variable({ dashboard: { enabled: false } })).toBe('off')
  })

  it('identity providers for the dashboard come from a Secret, by the key that is named', async () => {
    const { SIGN_IN } = readEnvironment(await renderChart(CASES['own secrets']), 'api')
    expect(SIGN_IN).toBe(SECRETS['sign-in']!.providers)
    expect(readEnvironment(await renderChart(), 'api')).not.toHaveProperty('SIGN_IN')
  })

  it('an external database replaces the own one', async () => {
    const objects = await renderChart({ database: { existingSecret: 'heartbeat-db-app' } })
    expect(objects.filter(({ metadata }) => metadata.labels['app.kubernetes.io/component'] === 'postgresql')).toEqual(
      [],
    )
    expect(readEnvironment(objects, 'api').DATABASE_URL).toBe(SECRETS['heartbeat-db-app']!.uri)
  })

  it('the own database takes a password from an existing Secret', async () => {
    const objects = await renderChart({ postgresql: { existingSecret: 'heartbeat-db-app' } })
    expect(objects.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name)).toEqual(['heartbeat'])
    expect(readEnvironment(objects, 'api').DATABASE_URL).toBe(SECRETS['heartbeat-db-app']!.uri)
    expect(pick(objects, 'StatefulSet').spec.template.spec.volumes[0].secret.secretName).toBe('heartbeat-db-app')
  })

  it('PostgreSQL gets its settings as arguments', async () => {
    const { args } = pick(await renderChart(CASES.everything), 'StatefulSet').spec.template.spec.containers[0]
    const settings = ['jit=false', 'log_min_duration_statement=1s', 'max_connections=300', 'work_mem=1000000']
    expect(args).toEqual(settings.flatMap((setting) => ['-c', setting]))
    const [server] = pick(await renderChart(), 'StatefulSet').spec.template.spec.containers
    expect(server.args).toEqual(['-c', 'max_connections=200'])
    const without = await renderChart({ postgresql: { parameters: null } })
    expect(pick(without, 'StatefulSet').spec.template.spec.containers[0]).not.toHaveProperty('args')
  })

  it('watched namespaces reach the controller and the Job of the uninstallation', async () => {
    const objects = await renderChart(CASES.namespaced)
    expect(readConfig(readEnvironment(objects, 'controller'), false).watchNamespaces).toEqual(['payments', 'shop'])
    expect(pick(objects, 'Job').spec.template.spec.containers[0].env).toEqual([
      { name: 'WATCH_NAMESPACES', value: 'payments,shop' },
    ])
  })

  it('the installation to take over and further variables and volumes reach the Job of the uninstallation', async () => {
    const takeOver = '22222222-2222-4222-8222-222222222222'
    const { spec } = pick(await renderChart({ ...CASES.everything, takeOver }), 'Job').spec.template
    const [{ env, volumeMounts }] = spec.containers
    expect(env).toContainEqual({ name: 'TAKE_OVER', value: takeOver })
    expect(env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' })
    expect(volumeMounts).toEqual([{ name: 'ca', mountPath: '/ca' }])
    // The uninstallation may have deleted it before.
    expect(spec.volumes).toEqual([{ name: 'ca', configMap: { name: 'ca', optional: true } }])
    const secretKeyRef = { name: 'mine', key: 'proxy' }
    const extraEnv = [
      { name: 'TAKE_OVER', value: 'theirs' },
      { name: 'HTTPS_PROXY', valueFrom: { secretKeyRef } },
    ]
    const overridden = pick(await renderChart({ takeOver, extraEnv }), 'Job').spec.template.spec.containers[0]
    const optional = { name: 'HTTPS_PROXY', valueFrom: { secretKeyRef: { ...secretKeyRef, optional: true } } }
    expect(overridden.env).toEqual([extraEnv[0], optional])
    expect(pick(await renderChart(), 'Job').spec.template.spec.containers[0]).not.toHaveProperty('env')
  })

  it('credentials of another cluster reach the controller and the Job of the uninstallation, and no pod of the api', async () => {
    const objects = await renderChart({
      extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' }],
      api: { extraEnv: [{ name: 'HTTPS_PROXY', value: 'http://proxy:3128' }] },
      controller: {
        extraEnv: [{ name: 'KUBECONFIG', value: '/other/kubeconfig' }],
        extraVolumes: [{ name: 'other', secret: { secretName: 'other-cluster' } }],
        extraVolumeMounts: [{ name: 'other', mountPath: '/other', readOnly: true }],
      },
    })
    const podOf = (object: ChartObject) => object.spec.template.spec
    const api = podOf(pick(objects, 'Deployment', 'heartbeat-api'))
    expect(JSON.stringify(api)).not.toMatch(/other|KUBECONFIG/)
    expect(api.containers[0].env).toContainEqual({ name: 'HTTPS_PROXY', value: 'http://proxy:3128' })
    const controller = podOf(pick(objects, 'Deployment', 'heartbeat-controller'))
    expect(JSON.stringify(controller)).not.toContain('HTTPS_PROXY')
    expect(controller.volumes).toContainEqual({ name: 'other', secret: { secretName: 'other-cluster' } })
    const job = podOf(pick(objects, 'Job'))
    expect(job.volumes).toContainEqual({ name: 'other', secret: { secretName: 'other-cluster', optional: true } })
    for (const { containers } of [controller, job]) {
      const [{ env, volumeMounts }] = containers
      expect(env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' })
      expect(env).toContainEqual({ name: 'KUBECONFIG', value: '/other/kubeconfig' })
      expect(volumeMounts).toContainEqual({ name: 'other', mountPath: '/other', readOnly: true })
    }
  })

  it('further variables and volumes reach both Deployments', async () => {
    const objects = await renderChart(CASES.everything)
    for (const component of ['api', 'controller']) {
      const { spec } = pick(objects, 'Deployment', `heartbeat-${component}`).spec.template
      expect(spec.containers[0].env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' })
      expect(spec.containers[0].volumeMounts).toContainEqual({ name: 'ca', mountPath: '/ca' })
      expect(spec.volumes).toContainEqual({ name: 'ca', configMap: { name: 'ca' } })
    }
  })
})

it('every variable of the configuration can be set, but those that the image and the pods fix', async () => {
  const variables = Object.values(VARIABLES).map(([name]) => name)
  expect(variables.length).toBeGreaterThan(25)
  const [most, secrets, namespaced] = await Promise.all(
    [CASES.everything, CASES['own secrets'], CASES.namespaced].map(async (values) =>
      readEnvironment(await renderChart(values), 'api'),
    ),
  )
  const settable = new Set(Object.keys({ ...most, ...secrets, ...namespaced }))
  settable.delete('BIND_ADDRESS')
  expect(variables.filter((name) => !settable.has(name)).sort()).toEqual([
    'API_PORT',
    'BIND_ADDRESS',
    'DATA_DIR',
    'KUBERNETES',
    'OPS_PORT',
    'PING_PORT',
  ])
})
