/** The only reader of the environment (design, section 12). It reports all faults at once and returns plain values. */

import { isIP } from 'node:net'
import { join, resolve } from 'node:path'
import { z } from 'zod'
import { findBootstrapKeyFault } from '../domain/api-key.ts'
import { toUserEmail, USER_EMAIL_RULE } from '../domain/email.ts'
import { findSeriesLabelsFault } from '../domain/labels.ts'
import { findPasswordFault } from '../domain/password.ts'
import { findSitePathFault } from '../domain/site.ts'
import { findPattern, findWeakness } from '../domain/weak-secret.ts'
import { isLoopbackHost } from '../runtime/addresses.ts'
import { isDecodable } from '../runtime/percent.ts'
import { type OidcIssuer, oidcIssuers } from './issuers.ts'
import { DNS_LABEL, KUBERNETES_VARIABLES, type KubernetesConfig } from './kubernetes.ts'
import { type SignInProvider, signInProviders } from './sign-in.ts'
import {
  blocks,
  integer,
  list,
  listOf,
  oneOf,
  port,
  readVariable,
  textThat,
  textWithout,
  url,
  webUrl,
  withFault,
} from './values.ts'

export interface Config extends KubernetesConfig {
  readonly role: (typeof ROLES)[number]
  readonly bindAddress: string
  readonly pingPort: number
  readonly apiPort: number
  readonly opsPort: number
  /** Public addresses without a slash at the end; null: made from the listening port. */
  readonly pingUrl: string | null
  readonly baseUrl: string | null
  readonly dataDir: string
  /** Where pings are stored while the database is unavailable, and how many bytes at most; 0: they are not. */
  readonly spoolDir: string
  readonly spoolMaxBytes: number
  readonly rateLimitPerMinute: number
  /** Of checks that pings create: of a project in a minute, and up to how many checks of the project in all. */
  readonly pingCreatePerMinute: number
  readonly pingCreateMaxChecks: number
  /** Addresses and CIDRs of proxies whose X-Forwarded-For counts. */
  readonly trustedProxies: readonly string[]
  readonly isPasswordLoginOn: boolean
  readonly isDashboardOn: boolean
  readonly historyMaxPings: number
  readonly historyMaxDays: number
  /** For each check: flips, with their events and deliveries. */
  readonly historyMaxFlips: number
  /** For each port. */
  readonly maxConnections: number
  /** How long the entries of the audit log are kept. */
  readonly auditMaxDays: number
  /** How long a start waits for a database that cannot be reached. */
  readonly databaseWaitSeconds: number
  /** How long the process is not ready before its ports close, so that load balancers notice. */
  readonly drainSeconds: number
  readonly logLevel: string
  readonly logFormat: 'pretty' | 'json'
  readonly kubernetes: (typeof KUBERNETES)[number]
  /** Null: all namespaces. */
  readonly watchNamespaces: readonly string[] | null
  readonly bootstrapEmail: string
  readonly bootstrapProjectId: string | undefined
  /** Addresses and CIDRs that channels may reach although they are private. */
  readonly allowedTargets: readonly string[]
  /** Labels of checks that are labels of their series. */
  readonly metricLabels: readonly string[]
  /** The issuers whose tokens the management API accepts. */
  readonly oidcIssuers: readonly OidcIssuer[]
  /** `Name <address>` or an address alone. */
  readonly smtpFrom: string
  /** What the log says at the start: secrets that can be guessed, which only a loopback address accepts. */
  readonly warnings: readonly string[]
  readonly isSmtpTlsRequired: boolean
  /** How we introduce ourselves to the mail server; undefined: as the machine is called. */
  readonly smtpName: string | undefined
  /** In a branch of its own, so that they are not printed with the rest. */
  readonly secrets: {
    readonly databaseUrl: string | undefined
    readonly secretKey: Buffer | undefined
    /** Channel settings that are sealed under one of these can still be read. */
    readonly previousSecretKeys: readonly Buffer[]
    /** One for each peer, without a slash at the end. Here and below, a URL may hold credentials. */
    readonly alertmanagerUrls: readonly string[]
    readonly watchdogUrl: string | null
    readonly smtpUrl: string | undefined
    /** The identity providers of the dashboard, in the order of their buttons. */
    readonly signIn: readonly SignInProvider[]
    /** What a client must send to read /metrics; null: nothing. */
    readonly metricsToken: string | null
    readonly bootstrapPassword: string | undefined
    readonly bootstrapApiKey: string | undefined
  }
}

/** One line for each fault of the environment, with the variable's name and what would be right. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const count = faults.length === 1 ? 'a fault' : `${faults.length} faults`
    super(`the configuration has ${count}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

const ROLES = ['api', 'controller', 'all'] as const
/** `auto`: reconcile when a kubeconfig or a ServiceAccount is found. `required`: it is an error when there is none. */
const KUBERNETES = ['auto', 'off', 'required'] as const

/** Default. A longer wait also retries host names that do not resolve yet. */
export const DATABASE_WAIT_SECONDS = 10

/** Default: a million pings without text. */
const SPOOL_BYTES = 64 * 2 ** 20
/** Two files of the spool, so that one can be deleted while the other one is written. */
const SMALLEST_SPOOL_BYTES = 8 * 2 ** 20

/** Node's decoder skips characters that are not base64, so it would make a key of any text. */
const SECRET_KEY = /^[0-9A-Za-z+/_-]{43}=?$/
const PREVIOUS_KEYS = 10
const ALERTMANAGER_PEERS = 10
const URL_LENGTH = 2_048
/** The common forms of RFC 5322: an address, or a name and the address in angle brackets. */
const MAILBOX = /^(?:[^<>\p{Cc}]*<[^\s<>@,;:"()[\]\\]+@[\p{L}\p{N}.-]+>|[^\s<>@,;:"()[\]\\]+@[\p{L}\p{N}.-]+)$/u
const MAILBOX_LENGTH = 320

function isAlertmanagerUrl(text: string): boolean {
  if (text.length > URL_LENGTH || !URL.canParse(text)) return false
  const { protocol, search, hash } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && search === '' && hash === '' && hasReadableCredentials(text)
}

const SMTP_EXAMPLE = 'smtp://user:password@mail.example.com:587'

/** What is wrong with the URL, as a message; null when it is right. */
function findSmtpUrlFault(text: string): string | null {
  if (!URL.canParse(text)) return `must be a URL such as ${SMTP_EXAMPLE}`
  const { protocol, hostname, pathname, search, hash, username, password } = new URL(text)
  if (!['smtp:', 'smtps:'].includes(protocol) || hostname === '') return `must be a URL such as ${SMTP_EXAMPLE}`
  // A password that contains / or ? ends up here, and its beginning in the port.
  if (!['', '/'].includes(pathname) || search !== '' || hash !== '')
    return 'must end after the host or the port (in the password write / as %2F, ? as %3F and # as %23)'
  if ((username === '') !== (password === '')) return 'must have both a user and a password, or neither'
  return hasReadableCredentials(text) ? null : UNREADABLE_CREDENTIALS
}

/** RFC 5321, section 4.1.1.1: a domain, or an address in brackets. */
const SMTP_NAME =
  /^(?:[a-z\d](?:[a-z\d-]{0,62})(?:\.[a-z\d][a-z\d-]{0,62}){0,20}|\[[\da-f.:]{2,45}\]|\[IPv6:[\da-f.:]{2,45}\])$/i

/** The host of BASE_URL, if it may be known elsewhere. */
function smtpNameOf(baseUrl: string | undefined): string | undefined {
  const host = baseUrl === undefined ? '' : new URL(baseUrl).hostname.replace(/\.$/, '')
  if (!host.includes('.')) return undefined
  return isIP(host) === 0 ? host : `[${host}]`
}

const UNREADABLE_CREDENTIALS = 'has a % in the user or the password that does not begin an escape: write it as %25'
function hasReadableCredentials(text: string): boolean {
  const { username, password } = new URL(text)
  return isDecodable(username) && isDecodable(password)
}

const VARIABLES = {
  ROLE: oneOf(...ROLES).default('all'),
  BIND_ADDRESS: z.string().default('127.0.0.1'),
  PING_PORT: port(8080),
  API_PORT: port(8081),
  OPS_PORT: port(9090),
  PING_URL: webUrl('https://ping.example.com').optional(),
  BASE_URL: webUrl('https://heartbeat.example.com/api/v1')
    .refine((text) => text.endsWith('/api/v1'), 'must end in /api/v1')
    .superRefine(withFault(findSitePathFault))
    .optional(),
  DATABASE_URL: url(['postgres:', 'postgresql:'], 'postgres://user:password@host:5432/database')
    .refine(
      (text) => !URL.canParse(text) || isDecodable(new URL(text).pathname),
      'has a % in the name of the database that does not begin an escape: write it as %25',
    )
    .optional(),
  DATA_DIR: z
    .string()
    .default('./.data')
    .transform((text) => resolve(text)),
  SPOOL_DIR: z
    .string()
    .transform((text) => resolve(text))
    .optional(),
  SPOOL_MAX_BYTES: integer(0, 2 ** 40)
    .refine((bytes) => bytes === 0 || bytes >= SMALLEST_SPOOL_BYTES, `must be 0, or at least ${SMALLEST_SPOOL_BYTES}`)
    .default(SPOOL_BYTES),
  SECRET_KEY: textThat(
    (text) => SECRET_KEY.test(text.trim()),
    'must be 32 bytes in base64: make one with `openssl rand -base64 32`',
  )
    .transform((text) => Buffer.from(text, 'base64'))
    .optional(),
  PREVIOUS_SECRET_KEYS: listOf(
    (entry) => SECRET_KEY.test(entry),
    PREVIOUS_KEYS,
    'must be keys of 32 bytes in base64, separated by commas',
  )
    .transform((keys) => keys.map((key) => Buffer.from(key, 'base64')))
    .optional(),
  BOOTSTRAP_EMAIL: z
    .string()
    .refine((text) => toUserEmail(text) !== null, USER_EMAIL_RULE)
    .default('admin@example.com'),
  BOOTSTRAP_PASSWORD: textWithout((text) => findPasswordFault(text, null)).optional(),
  BOOTSTRAP_API_KEY: textWithout(findBootstrapKeyFault).optional(),
  BOOTSTRAP_PROJECT_ID: z
    .guid('must be a UUID')
    .transform((text) => text.toLowerCase())
    .optional(),
  KUBERNETES: oneOf(...KUBERNETES).default('auto'),
  WATCH_NAMESPACES: list()
    .transform((names) => [...new Set(names)])
    .refine(
      (names) => names.every((name) => DNS_LABEL.test(name)),
      'must be names of namespaces separated by commas, for example payments,shop',
    )
    .optional(),
  CLUSTER_NAME: KUBERNETES_VARIABLES.clusterName,
  TAKE_OVER: KUBERNETES_VARIABLES.takeOver,
  REVIVAL: KUBERNETES_VARIABLES.revival,
  PROJECTS: KUBERNETES_VARIABLES.projects,
  PROJECT_ANNOTATION: KUBERNETES_VARIABLES.projectAnnotation,
  WATCH_CRONJOBS: KUBERNETES_VARIABLES.watchCronJobs,
  CRONJOB_TIME_ZONE: KUBERNETES_VARIABLES.cronJobTimeZone,
  CRONJOB_LOGS: KUBERNETES_VARIABLES.cronJobLogs,
  ALERTMANAGER_URL: listOf(
    isAlertmanagerUrl,
    ALERTMANAGER_PEERS,
    'must be URLs such as http://alertmanager:9093, separated by commas, without query and fragment (write a % in the user or password as %25)',
  )
    .transform((urls) => urls.map((text) => text.replace(/\/+$/, '')))
    .optional(),
  WATCHDOG_URL: url(['http:', 'https:'], 'https://heartbeat.example.com/ping/...')
    .max(URL_LENGTH, `must have at most ${URL_LENGTH} characters`)
    .refine((text) => !URL.canParse(text) || hasReadableCredentials(text), UNREADABLE_CREDENTIALS)
    .optional(),
  ALLOWED_TARGETS: blocks().optional(),
  TRUSTED_PROXIES: blocks().optional(),
  PASSWORD_LOGIN: oneOf('on', 'off').default('on'),
  DASHBOARD: oneOf('on', 'off').default('on'),
  SIGN_IN: signInProviders.optional(),
  SMTP_URL: textWithout(findSmtpUrlFault).optional(),
  SMTP_FROM: z
    .string()
    .max(MAILBOX_LENGTH, `must have at most ${MAILBOX_LENGTH} characters`)
    .regex(MAILBOX, 'must be an e-mail address, or a name and the address: Heartbeat Operator <heartbeat@example.com>')
    .default('Heartbeat Operator <heartbeat@localhost>'),
  SMTP_TLS: oneOf('opportunistic', 'required').default('opportunistic'),
  SMTP_NAME: textThat(
    (text) => text.length <= 255 && SMTP_NAME.test(text),
    'must be a host name, or an address in brackets: heartbeat.example.com',
  ).optional(),
  METRIC_LABELS: list()
    .transform((names) => [...new Set(names)])
    .superRefine(withFault(findSeriesLabelsFault))
    .optional(),
  METRICS_TOKEN: textThat(
    (text) => /^[\x21-\x7e]{1,1000}$/.test(text),
    'must be 1 to 1,000 characters of ASCII without spaces: make one with `openssl rand -hex 32`',
  ).optional(),
  OIDC_ISSUERS: oidcIssuers.optional(),
  RATE_LIMIT_PER_MINUTE: integer(1, 1_000_000).default(1_000),
  PING_CREATE_PER_MINUTE: integer(1, 1_000_000).default(60),
  PING_CREATE_MAX_CHECKS: integer(0, 1_000_000).default(10_000),
  HISTORY_MAX_PINGS: integer(1, 1_000_000).default(1_000),
  HISTORY_MAX_DAYS: integer(1, 3_650).default(90),
  HISTORY_MAX_FLIPS: integer(1, 1_000_000).default(1_000),
  MAX_CONNECTIONS: integer(1, 1_000_000).default(10_000),
  AUDIT_MAX_DAYS: integer(1, 3_650).default(365),
  DATABASE_WAIT_SECONDS: integer(0, 3_600).default(DATABASE_WAIT_SECONDS),
  DRAIN_SECONDS: integer(0, 300).default(0),
  LOG_LEVEL: oneOf('debug', 'info', 'warn', 'error', 'silent').default('info'),
  LOG_FORMAT: oneOf('pretty', 'json').optional(),
} as const

type Values = { [Name in keyof typeof VARIABLES]: z.output<(typeof VARIABLES)[Name]> }

export function readConfig(environment: NodeJS.ProcessEnv, isTerminal: boolean): Config {
  const faults: string[] = []
  const values: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(VARIABLES)) {
    const given = readVariable(environment, name, faults)
    const parsed = schema.safeParse(given)
    if (parsed.success) values[name] = parsed.data
    else for (const issue of parsed.error.issues) faults.push(`${name} ${issue.message}`)
  }
  const read = values as Values
  const hasNoKey = read.SECRET_KEY === undefined && !faults.some((fault) => fault.startsWith('SECRET_KEY'))
  // A controller opens no channel and signs no token (notes, M5).
  if (read.DATABASE_URL !== undefined && hasNoKey && read.ROLE !== 'controller')
    faults.push(
      'SECRET_KEY is needed with DATABASE_URL, the same for every replica: make one with `openssl rand -base64 32`',
    )
  if (read.ROLE === 'controller' && read.KUBERNETES === 'off')
    faults.push('KUBERNETES must be auto or required with ROLE controller, and it is off')
  // Whether it is one of the other faults was checked above.
  if (read.BOOTSTRAP_PASSWORD !== undefined && read.BOOTSTRAP_EMAIL !== undefined) {
    const fault = findPasswordFault(read.BOOTSTRAP_PASSWORD, read.BOOTSTRAP_EMAIL)
    if (fault !== null) faults.push(`BOOTSTRAP_PASSWORD ${fault}`)
  }
  const weak = findWeakSecrets(read)
  const isLoopback = isLoopbackHost(read.BIND_ADDRESS)
  if (!isLoopback) faults.push(...weak.map((text) => `${text}. Only a loopback BIND_ADDRESS accepts it`))
  if (faults.length > 0) throw new ConfigError(faults)
  return Object.freeze({
    role: read.ROLE,
    bindAddress: read.BIND_ADDRESS,
    pingPort: read.PING_PORT,
    apiPort: read.API_PORT,
    opsPort: read.OPS_PORT,
    pingUrl: read.PING_URL ?? null,
    baseUrl: read.BASE_URL ?? null,
    dataDir: read.DATA_DIR,
    spoolDir: read.SPOOL_DIR ?? join(read.DATA_DIR ?? '', 'spool'),
    spoolMaxBytes: read.SPOOL_MAX_BYTES,
    rateLimitPerMinute: read.RATE_LIMIT_PER_MINUTE,
    pingCreatePerMinute: read.PING_CREATE_PER_MINUTE,
    pingCreateMaxChecks: read.PING_CREATE_MAX_CHECKS,
    trustedProxies: read.TRUSTED_PROXIES ?? [],
    isPasswordLoginOn: read.PASSWORD_LOGIN === 'on',
    isDashboardOn: read.DASHBOARD === 'on',
    historyMaxPings: read.HISTORY_MAX_PINGS,
    historyMaxDays: read.HISTORY_MAX_DAYS,
    historyMaxFlips: read.HISTORY_MAX_FLIPS,
    maxConnections: read.MAX_CONNECTIONS,
    auditMaxDays: read.AUDIT_MAX_DAYS,
    databaseWaitSeconds: read.DATABASE_WAIT_SECONDS,
    drainSeconds: read.DRAIN_SECONDS,
    logLevel: read.LOG_LEVEL,
    logFormat: read.LOG_FORMAT ?? (isTerminal ? 'pretty' : 'json'),
    kubernetes: read.KUBERNETES,
    watchNamespaces: read.WATCH_NAMESPACES?.length ? read.WATCH_NAMESPACES : null,
    clusterName: read.CLUSTER_NAME,
    takeOver: read.TAKE_OVER ?? null,
    revival: read.REVIVAL,
    projects: read.PROJECTS ?? null,
    isProjectAnnotationOn: read.PROJECT_ANNOTATION === 'on',
    cronJobs: Object.freeze({
      watch: read.WATCH_CRONJOBS,
      timeZone: read.CRONJOB_TIME_ZONE,
      logs: read.CRONJOB_LOGS,
    }),
    bootstrapEmail: read.BOOTSTRAP_EMAIL,
    bootstrapProjectId: read.BOOTSTRAP_PROJECT_ID,
    allowedTargets: read.ALLOWED_TARGETS ?? [],
    metricLabels: read.METRIC_LABELS ?? [],
    oidcIssuers: read.OIDC_ISSUERS ?? [],
    smtpFrom: read.SMTP_FROM,
    warnings: weak,
    isSmtpTlsRequired: read.SMTP_TLS === 'required',
    smtpName: read.SMTP_NAME ?? smtpNameOf(read.BASE_URL),
    secrets: Object.freeze({
      databaseUrl: read.DATABASE_URL,
      secretKey: read.SECRET_KEY,
      previousSecretKeys: read.PREVIOUS_SECRET_KEYS ?? [],
      alertmanagerUrls: read.ALERTMANAGER_URL ?? [],
      watchdogUrl: read.WATCHDOG_URL ?? null,
      smtpUrl: read.SMTP_URL,
      signIn: read.SIGN_IN ?? [],
      metricsToken: read.METRICS_TOKEN ?? null,
      bootstrapPassword: read.BOOTSTRAP_PASSWORD,
      bootstrapApiKey: read.BOOTSTRAP_API_KEY,
    }),
  })
}

/** One line for each secret that a stranger would try first. */
function findWeakSecrets({ SECRET_KEY: key, BOOTSTRAP_API_KEY, BOOTSTRAP_PASSWORD }: Values): string[] {
  const found: [name: string, why: string | null, command: string][] = [
    ['SECRET_KEY', key === undefined ? null : findPattern([...key]), 'openssl rand -base64 32'],
    ['BOOTSTRAP_API_KEY', findWeakness(BOOTSTRAP_API_KEY), 'echo hbk_first_$(openssl rand -hex 20)'],
    ['BOOTSTRAP_PASSWORD', findWeakness(BOOTSTRAP_PASSWORD), 'openssl rand -base64 18'],
  ]
  return found.flatMap(([name, why, command]) =>
    why === null ? [] : [`${name} can be guessed, because it ${why}: make one with \`${command}\``],
  )
}
