/** Sets of values that the chart is rendered, validated, tried and scored with. */

import { parse } from 'yaml'
import { listBlocks } from '../support/documents.ts'
import type { Values } from './chart.ts'

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`

/** Of RFC 8037, appendix A.2. */
const ISSUER_KEY = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' }

/** A container of the user, as the Pod Security standard restricted takes it. */
const GUEST = {
  image: 'example.com/guest:1',
  resources: {
    requests: { cpu: '10m', memory: '32Mi', 'ephemeral-storage': '8Mi' },
    limits: { memory: '64Mi', 'ephemeral-storage': '8Mi' },
  },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
}

const MONITOR: Values = {
  enabled: true,
  namespace: 'prometheus',
  additionalLabels: { release: 'kube-prometheus-stack' },
  interval: '30s',
  scrapeTimeout: '10s',
  scheme: 'https',
  tlsConfig: { insecureSkipVerify: true },
  relabelings: [{ action: 'labeldrop', regex: 'endpoint' }],
  metricRelabelings: [{ action: 'labeldrop', regex: 'project' }],
}

/** As far as it goes: each value differs from its default, and every object is made that can be made beside the others. */
const EVERYTHING: Values = {
  commonLabels: { team: 'platform' },
  commonAnnotations: { 'example.com/owner': 'platform' },
  global: { imageRegistry: 'mirror.example.com/cache', imagePullSecrets: ['mirror'] },
  image: { repository: 'registry.example.com/heartbeat', digest: DIGEST, pullPolicy: 'Always' },
  imagePullSecrets: [{ name: 'registry' }],
  clusterName: 'prod-1',
  cronJobs: { watch: 'all', timeZone: 'Europe/Berlin', logs: 'failed' },
  takeOver: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10',
  revival: 'uid',
  projects: { payments: ['payments', 'shared'] },
  projectAnnotation: false,
  metricLabels: ['team', 'example.com/tier'],
  pingUrl: 'https://ping.example.com',
  baseUrl: 'https://heartbeat.example.com/api/v1',
  logLevel: 'warn',
  logFormat: 'pretty',
  rateLimitPerMinute: 1_000_000,
  pingCreate: { perMinute: 30, maxChecks: 500 },
  history: { maxPings: 500_000, maxDays: 3_650, maxFlips: 5_000 },
  maxConnections: 1_000_000,
  audit: { maxDays: 30 },
  trustedProxies: ['10.1.0.0/16', '2001:db8::7'],
  passwordLogin: false,
  signIn: { existingSecret: 'sign-in' },
  dashboard: { enabled: false },
  metricsToken: { existingSecret: 'metrics', existingSecretKey: 'token' },
  allowedTargets: ['10.0.0.0/8', 'fd00::/8'],
  oidcIssuers: [
    { issuer: 'https://login.example.com/a&b', audience: 'heartbeat' },
    {
      issuer: 'https://kubernetes.default.svc',
      audience: 'heartbeat-operator',
      users: { 'system:serviceaccount:ci:deploy': 'ci@example.com' },
      jwks: { keys: [ISSUER_KEY] },
    },
  ],
  alertmanager: { urls: ['http://alertmanager-0:9093', 'http://alertmanager-1:9093'] },
  watchdog: { existingSecret: 'watchdog', existingSecretKey: 'url' },
  smtp: {
    existingSecret: 'mail',
    from: 'Heartbeat <heartbeat@example.com>',
    tls: 'required',
    name: 'heartbeat.example.com',
  },
  bootstrap: { email: 'ops@example.com', projectId: '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10' },
  postgresql: {
    storage: { size: '20Gi', storageClassName: 'fast' },
    parameters: { max_connections: 300, log_min_duration_statement: '1s', work_mem: 1_000_000, jit: false },
    podAnnotations: { 'example.com/backup': 'yes please' },
    podLabels: { tier: 'data' },
    nodeSelector: { disk: 'fast' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'system-cluster-critical',
  },
  api: {
    spool: { maxBytes: 134_217_728 },
    autoscaling: { enabled: true },
    podAnnotations: { 'example.com/mesh': 'none' },
    podLabels: { tier: 'front' },
    nodeSelector: { disk: 'any' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'system-cluster-critical',
    runtimeClassName: 'gvisor',
    dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
    hostAliases: [{ ip: '10.1.2.3', hostnames: ['db.example.com'] }],
    extraContainers: [{ name: 'beside', ...GUEST }],
    initContainers: [{ name: 'proxy', restartPolicy: 'Always', ...GUEST }],
    strategy: { rollingUpdate: { maxSurge: '50%', maxUnavailable: 1 } },
    revisionHistoryLimit: 3,
    deploymentAnnotations: { 'reloader.example.com/auto': 'true' },
    serviceAccount: { annotations: { 'example.com/role': 'api' }, labels: { tier: 'account' } },
    topologySpread: { whenUnsatisfiable: 'DoNotSchedule', topologyKey: 'topology.kubernetes.io/zone' },
  },
  controller: {
    replicas: 3,
    podAnnotations: { 'example.com/mesh': 'none' },
    podLabels: { tier: 'back' },
    nodeSelector: { disk: 'any' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'system-cluster-critical',
    runtimeClassName: 'gvisor',
    dnsConfig: { options: [{ name: 'ndots', value: '2' }] },
    hostAliases: [{ ip: '10.1.2.3', hostnames: ['db.example.com'] }],
    extraContainers: [{ name: 'beside', ...GUEST }],
    initContainers: [{ name: 'proxy', restartPolicy: 'Always', ...GUEST }],
    strategy: { rollingUpdate: { maxSurge: '50%', maxUnavailable: 1 } },
    revisionHistoryLimit: 3,
    deploymentAnnotations: { 'reloader.example.com/auto': 'true' },
    serviceAccount: { annotations: { 'example.com/role': 'controller' }, labels: { tier: 'account' } },
  },
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' }],
  extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }],
  rbac: { secrets: 'namespaces' },
  service: {
    ping: {
      type: 'LoadBalancer',
      annotations: { 'example.com/lb': 'internal' },
      nodePort: 30_080,
      loadBalancerClass: 'example.com/internal',
      loadBalancerSourceRanges: ['10.0.0.0/8', 'fd00::/8'],
      externalTrafficPolicy: 'Local',
      ipFamilyPolicy: 'PreferDualStack',
    },
    api: { annotations: { 'example.com/lb': 'none' }, ipFamilyPolicy: 'SingleStack' },
  },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'example.com/issuer': 'public' },
    pingHost: 'ping.example.com',
    apiHost: 'heartbeat.example.com',
    tls: [{ hosts: ['ping.example.com', 'heartbeat.example.com'], secretName: 'heartbeat-tls' }],
  },
  httpRoute: {
    enabled: true,
    annotations: { 'example.com/route': 'public' },
    parentRefs: [{ name: 'public', namespace: 'gateways' }],
    pingHost: 'ping.example.com',
    apiHost: 'heartbeat.example.com',
  },
  networkPolicy: {
    enabled: true,
    pingFrom: [{ namespaceSelector: {} }],
    apiFrom: [{ podSelector: { matchLabels: { app: 'gateway' } } }],
    opsFrom: [{ namespaceSelector: { matchLabels: { name: 'monitoring' } } }],
    databaseFrom: [{ podSelector: { matchLabels: { app: 'backup' } } }],
    egress: { enabled: true, rules: [{ ports: [{ port: 443 }] }] },
  },
  serviceMonitor: MONITOR,
  podMonitor: MONITOR,
  prometheusRule: {
    enabled: true,
    additionalLabels: { release: 'kube-prometheus-stack' },
    rules: { HeartbeatLate: { enabled: true } },
  },
  dashboards: { enabled: true, annotations: { grafana_folder: 'Heartbeat' } },
}

/** With nothing that can be left out. */
const LEAST: Values = {
  crds: { enabled: false },
  api: { replicas: 1, pdb: { enabled: false }, topologySpread: { enabled: false } },
  controller: { replicas: 1, pdb: { enabled: false }, topologySpread: { enabled: false } },
  cronJobs: { watch: 'none' },
  rbac: { create: false },
  admissionPolicy: { enabled: false },
  uninstall: { releaseFinalizers: false },
  database: { existingSecret: 'heartbeat-db-app' },
  secretKey: { existingSecret: 'heartbeat-keys' },
  bootstrap: { existingSecret: 'heartbeat-first-user' },
}

const NAMESPACED: Values = { crds: { enabled: false }, watchNamespaces: ['payments', 'shop'] }

const OWN_SECRETS: Values = {
  database: { existingSecret: 'heartbeat-db-app', existingSecretKey: 'fqdn-uri' },
  secretKey: { existingSecret: 'heartbeat-keys', existingSecretKey: 'key' },
  bootstrap: { existingSecret: 'heartbeat-first-user' },
  alertmanager: { existingSecret: 'alertmanager', existingSecretKey: 'urls' },
  watchdog: { existingSecret: 'watchdog' },
  smtp: { existingSecret: 'mail', existingSecretKey: 'url' },
  signIn: { existingSecret: 'sign-in', existingSecretKey: 'providers' },
  networkPolicy: { enabled: true, egress: { enabled: true, databasePort: 6432 } },
}

/** The api as a StatefulSet. */
const OWN_VOLUMES: Values = {
  api: {
    spool: {
      persistentVolume: {
        enabled: true,
        size: '2Gi',
        storageClassName: 'fast',
        accessModes: ['ReadWriteOncePod'],
        annotations: { 'example.com/backup': 'no' },
      },
    },
    autoscaling: { enabled: true },
  },
  extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }],
}

const PRODUCTION: Values = parse(
  listBlocks('docs/operate/production.md').find(({ text }) => text.startsWith('# values.yaml'))!.text,
)

export const CASES = {
  default: {},
  everything: EVERYTHING,
  least: LEAST,
  namespaced: NAMESPACED,
  'own secrets': OWN_SECRETS,
  'own volumes': OWN_VOLUMES,
  production: PRODUCTION,
  renamed: { nameOverride: 'watch', fullnameOverride: 'the-watch' },
} as const satisfies Record<string, Values>

export const EACH_CASE = Object.entries(CASES) as [name: string, values: Values][]
