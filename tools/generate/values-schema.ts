/**
 * What the chart takes as values: `npm run manifests` makes values.schema.json of it, with what values.yaml says of each as its
 * description. Strict: a misspelt value is refused by Helm. Open is what the chart hands on to Kubernetes as it is.
 */

import { z } from 'zod'
import { listValues } from './values-table.ts'

type Json = Record<string, unknown>

const UUID = /[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}/
/** Of Kubernetes: a name, if wanted behind a domain and a slash. */
const LABEL_KEY = /^([a-z0-9][a-z0-9.-]{0,252}\/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/
const DNS_NAME = /[a-z0-9]([a-z0-9.-]*[a-z0-9])?/
const DNS_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

const whole = (min: number, max?: number) => {
  const least = z.int().min(min)
  return max === undefined ? least : least.max(max)
}
/** Values of Kubernetes' own, which the API server judges. */
const open = () => z.looseObject({})
const list = () => z.array(open())
const texts = () => z.record(z.string(), z.union([z.string(), z.null()]))
const named = () => z.string().min(1)
const optional = (pattern: RegExp) => z.string().regex(new RegExp(`^(${pattern.source})?$`))
const section = <Shape extends z.ZodRawShape>(shape: Shape) => z.strictObject(shape).partial()

const duration = () => z.string().regex(/^([0-9]+(ms|[smhd]))*$/)
const quantity = () => z.string().regex(/^[0-9.]+([KMGTPE]i?)?$/)
const port = () => whole(1, 65_535)
/** Addresses and CIDRs. */
const blocks = () => z.array(z.string().regex(/^[0-9A-Fa-f.:]+(\/[0-9]+)?$/))

const image = section({
  repository: named(),
  tag: z.string(),
  digest: optional(/sha256:[0-9a-f]{64}/),
  pullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']),
})

const pod = {
  resources: open(),
  podAnnotations: texts(),
  podLabels: texts(),
  nodeSelector: texts(),
  tolerations: list(),
  affinity: open(),
  priorityClassName: z.string(),
}

const strategy = section({ type: z.enum(['RollingUpdate', 'Recreate']), rollingUpdate: open() })

const extras = {
  extraEnv: z.array(z.looseObject({ name: named() })),
  extraVolumes: list(),
  extraVolumeMounts: list(),
}

const deployment = {
  ...pod,
  ...extras,
  initContainers: list(),
  extraContainers: list(),
  runtimeClassName: z.string(),
  dnsConfig: open(),
  hostAliases: list(),
  replicas: whole(0),
  strategy,
  revisionHistoryLimit: whole(0),
  deploymentAnnotations: texts(),
  pdb: section({ enabled: z.boolean(), maxUnavailable: z.union([whole(1), z.string().regex(/^[0-9]+%$/)]) }),
  topologySpread: section({
    enabled: z.boolean(),
    topologyKey: named(),
    whenUnsatisfiable: z.enum(['ScheduleAnyway', 'DoNotSchedule']),
  }),
  terminationGracePeriodSeconds: whole(0),
  serviceAccount: section({
    create: z.boolean(),
    name: optional(DNS_NAME).max(253),
    annotations: texts(),
    labels: texts(),
  }),
}

const fromSecret = { existingSecret: z.string(), existingSecretKey: named() }
const service = section({
  type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']),
  annotations: texts(),
  nodePort: whole(0, 65_535),
  loadBalancerClass: z.string(),
  loadBalancerSourceRanges: blocks(),
  externalTrafficPolicy: z.enum(['', 'Cluster', 'Local']),
  ipFamilyPolicy: z.enum(['', 'SingleStack', 'PreferDualStack', 'RequireDualStack']),
})
const monitor = section({
  enabled: z.boolean(),
  namespace: z.string().regex(/^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$/),
  additionalLabels: texts(),
  interval: duration(),
  scrapeTimeout: duration(),
  scheme: z.enum(['', 'http', 'https']),
  tlsConfig: open(),
  relabelings: list(),
  metricRelabelings: list(),
})
const hosts = { enabled: z.boolean(), annotations: texts(), pingHost: z.string(), apiHost: z.string() }

const alert = section({
  enabled: z.boolean(),
  severity: z.string(),
  for: duration(),
  labels: texts(),
  annotations: texts(),
})

/** The limits of variables are those of src/config/variables.ts. */
const VALUES = section({
  // Of all charts, when the chart is part of another: with values that this one does not know.
  global: z.looseObject({ imageRegistry: z.string(), imagePullSecrets: z.array(z.union([named(), open()])) }).partial(),
  nameOverride: z.string().max(63),
  fullnameOverride: z
    .string()
    .max(40)
    .regex(/^([a-z]([-a-z0-9]*[a-z0-9])?)?$/),
  commonLabels: texts(),
  commonAnnotations: texts(),
  extraObjects: z.array(z.union([named(), open()])),
  image,
  imagePullSecrets: list(),
  crds: section({ enabled: z.boolean(), keep: z.boolean() }),
  clusterName: z.string().regex(DNS_LABEL),
  watchNamespaces: z.array(z.string().regex(DNS_LABEL)),
  cronJobs: section({
    watch: z.enum(['labelled', 'all', 'none']),
    timeZone: z.string().max(64),
    // YAML reads off without quotes as false.
    logs: z.union([z.enum(['off', 'failed']), z.literal(false)]),
  }),
  takeOver: optional(UUID),
  revival: z.enum(['name', 'uid']),
  projects: z.record(z.string().regex(DNS_LABEL), z.array(z.string().regex(/^[a-z0-9_-]{1,100}$/))),
  projectAnnotation: z.boolean(),
  metricLabels: z.array(z.string().regex(LABEL_KEY)).max(10),
  pingUrl: optional(/https?:\/\/.+/),
  baseUrl: optional(/https?:\/\/.+\/api\/v1/),
  logLevel: z.enum(['debug', 'info', 'warn', 'error', 'silent']),
  logFormat: z.enum(['json', 'pretty']),
  rateLimitPerMinute: whole(1, 1_000_000),
  pingCreate: section({ perMinute: whole(1, 1_000_000), maxChecks: whole(0, 1_000_000) }),
  history: section({ maxPings: whole(1, 1_000_000), maxDays: whole(1, 3_650), maxFlips: whole(1, 1_000_000) }),
  maxConnections: whole(1, 1_000_000),
  audit: section({ maxDays: whole(1, 3_650) }),
  trustedProxies: blocks(),
  passwordLogin: z.boolean(),
  signIn: section(fromSecret),
  dashboard: section({ enabled: z.boolean() }),
  metricsToken: section({ ...fromSecret, value: optional(/[!-~]{1,1000}/) }),
  allowedTargets: blocks(),
  oidcIssuers: z
    .array(
      z.strictObject({
        issuer: z.string().regex(/^https?:\/\/[^?#]+$/),
        audience: named().max(255),
        users: z.record(z.string(), z.string()).optional(),
        jwks: open().optional(),
      }),
    )
    .max(20),
  alertmanager: section({ ...fromSecret, urls: z.array(z.string().regex(/^https?:\/\/[^,]+$/)).max(10) }),
  watchdog: section(fromSecret),
  smtp: section({
    ...fromSecret,
    from: z.string().max(320),
    tls: z.enum(['', 'opportunistic', 'required']),
    name: z.string().max(255),
  }),
  bootstrap: section({
    email: z
      .string()
      .max(254)
      .regex(/^[^\s@]+@[^\s@]+$/),
    projectId: optional(UUID),
    existingSecret: z.string(),
  }),
  secretKey: section(fromSecret),
  generateSecrets: z.boolean(),
  database: section(fromSecret),
  postgresql: section({
    ...pod,
    image,
    existingSecret: z.string(),
    storage: section({ size: quantity(), storageClassName: z.string() }),
    parameters: z.record(z.string().regex(/^[a-z_][a-z0-9_.]*$/), z.union([z.string(), z.number(), z.boolean()])),
    podSecurityContext: open(),
  }),
  api: section({
    ...deployment,
    autoscaling: section({
      enabled: z.boolean(),
      minReplicas: whole(1),
      maxReplicas: whole(1),
      targetCPUUtilizationPercentage: whole(1),
    }),
    drainSeconds: whole(0, 300),
    spool: section({
      maxBytes: z.union([z.literal(0), whole(8_388_608, 2 ** 40)]),
      persistentVolume: section({
        enabled: z.boolean(),
        size: quantity(),
        storageClassName: z.string(),
        accessModes: z.array(z.enum(['ReadWriteOnce', 'ReadWriteOncePod', 'ReadWriteMany'])).min(1),
        annotations: texts(),
      }),
    }),
  }),
  controller: section(deployment),
  podSecurityContext: open(),
  securityContext: open(),
  ...extras,
  rbac: section({ create: z.boolean(), secrets: z.enum(['cluster', 'namespaces']), aggregatedRoles: z.boolean() }),
  admissionPolicy: section({ enabled: z.boolean() }),
  service: section({ ping: service, api: service }),
  ingress: section({ ...hosts, className: z.string(), tls: list() }),
  httpRoute: section({ ...hosts, parentRefs: list() }),
  networkPolicy: section({
    enabled: z.boolean(),
    pingFrom: list(),
    apiFrom: list(),
    opsFrom: list(),
    databaseFrom: list(),
    egress: section({
      enabled: z.boolean(),
      rules: list(),
      dnsPorts: z.array(port()).min(1),
      apiServerPorts: z.array(port()).min(1),
      databasePort: port(),
    }),
  }),
  serviceMonitor: monitor,
  podMonitor: monitor,
  prometheusRule: section({ enabled: z.boolean(), additionalLabels: texts(), rules: z.record(z.string(), alert) }),
  dashboards: section({
    enabled: z.boolean(),
    labels: texts(),
    annotations: texts(),
    namespace: z.string(),
  }),
  uninstall: section({ releaseFinalizers: z.boolean() }),
})

/** The text of values.schema.json. Throws when values.yaml documents a value that the schema does not know. */
export function renderValuesSchema(valuesYaml: string): string {
  // Draft 7 is what every Helm since 3 reads.
  const schema = z.toJSONSchema(VALUES, {
    target: 'draft-7',
    io: 'input',
    reused: 'inline',
    override: listWords,
  }) as Json
  const { $schema, ...rest } = schema
  for (const { path, about } of listValues(valuesYaml)) find(rest, path).description = about
  return format({ $schema, title: 'Values of the chart heartbeat-operator', ...rest })
}

/** Without a type, so that Helm lists the words also for `off` without quotes, which YAML reads as false. */
function listWords({ jsonSchema }: { jsonSchema: Json }): void {
  if (jsonSchema.enum !== undefined) delete jsonSchema.type
}

/** As the formatter of this repository writes JSON: a list of words on one line. */
function format(json: Json): string {
  const text = JSON.stringify(json, null, 2)
  return `${text.replace(/\[\n\s+("[^[\]{}]*?")\n\s+\]/g, (_, words: string) => `[${words.replace(/,\n\s+/g, ', ')}]`)}\n`
}

function find(schema: Json, path: string): Json {
  return path.split('.').reduce((parent, name) => {
    const child = (parent.properties as Record<string, Json> | undefined)?.[name]
    if (child === undefined) throw new Error(`values.yaml has ${path}, and values-schema.ts does not`)
    return child
  }, schema)
}
