/** All variables: the name, the reader and the default of each. Faults are reported in the order of the table. */

import { resolve } from 'node:path'
import { z } from 'zod'
import { findBootstrapKeyFault } from '../domain/api-key.ts'
import { toUserEmail, USER_EMAIL_RULE } from '../domain/email.ts'
import { findSeriesLabelsFault } from '../domain/labels.ts'
import { findPasswordFault } from '../domain/password.ts'
import { findSitePathFault } from '../domain/site.ts'
import { isTimeZone } from '../domain/time-zone.ts'
import { isDecodable } from '../runtime/percent.ts'
import { oidcIssuers } from './issuers.ts'
import { mailbox, mailServer, smtpName } from './mail.ts'
import { DNS_LABEL, namespaceProjects } from './projects.ts'
import { signInProviders } from './sign-in.ts'
import {
  blocks,
  hasReadableCredentials,
  integer,
  isOn,
  list,
  listOf,
  oneOf,
  port,
  textThat,
  textWithout,
  UNREADABLE_CREDENTIALS,
  url,
  uuid,
  webUrl,
  withFault,
} from './values.ts'

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

function isAlertmanagerUrl(text: string): boolean {
  if (text.length > URL_LENGTH || !URL.canParse(text)) return false
  const { protocol, search, hash } = new URL(text)
  return ['http:', 'https:'].includes(protocol) && search === '' && hash === '' && hasReadableCredentials(text)
}

const folder = () => z.string().transform((text) => resolve(text))
const watchOfCronJobs = z.enum(['labelled', 'all', 'none'], {
  error: ({ input }) => `must be one of labelled, all, none${input === 'off' ? ': none replaces off' : ''}`,
})
const names = () => list().transform((entries): readonly string[] => [...new Set(entries)])

/** A `secret` stands in the branch `secrets`, so that it is not printed with the rest. A URL may hold credentials. */
export const VARIABLES = {
  role: ['ROLE', oneOf('api', 'controller', 'all').default('all')],
  bindAddress: ['BIND_ADDRESS', z.string().default('127.0.0.1')],
  pingPort: ['PING_PORT', port(8080)],
  apiPort: ['API_PORT', port(8081)],
  opsPort: ['OPS_PORT', port(9090)],
  /** Public addresses without a slash at the end; null: made from the listening port. */
  pingUrl: ['PING_URL', webUrl('https://ping.example.com').nullable().default(null)],
  baseUrl: [
    'BASE_URL',
    webUrl('https://heartbeat.example.com/api/v1')
      .refine((text) => text.endsWith('/api/v1'), 'must end in /api/v1')
      .superRefine(withFault(findSitePathFault))
      .nullable()
      .default(null),
  ],
  databaseUrl: [
    'DATABASE_URL',
    url(['postgres:', 'postgresql:'], 'postgres://user:password@host:5432/database')
      .refine(
        (text) => !URL.canParse(text) || isDecodable(new URL(text).pathname),
        'has a % in the name of the database that does not begin an escape: write it as %25',
      )
      .optional(),
    'secret',
  ],
  dataDir: ['DATA_DIR', folder().prefault('./.data')],
  /** Where pings are stored while the database is unavailable, and how many bytes at most; 0: they are not. */
  spoolDir: ['SPOOL_DIR', folder().optional()],
  spoolMaxBytes: [
    'SPOOL_MAX_BYTES',
    integer(0, 2 ** 40)
      .refine((bytes) => bytes === 0 || bytes >= SMALLEST_SPOOL_BYTES, `must be 0, or at least ${SMALLEST_SPOOL_BYTES}`)
      .default(SPOOL_BYTES),
  ],
  secretKey: [
    'SECRET_KEY',
    textThat(
      (text) => SECRET_KEY.test(text.trim()),
      'must be 32 bytes in base64: make one with `openssl rand -base64 32`',
    )
      .transform((text) => Buffer.from(text, 'base64'))
      .optional(),
    'secret',
  ],
  /** Channel settings that are sealed under one of these keys can still be read. */
  previousSecretKeys: [
    'PREVIOUS_SECRET_KEYS',
    listOf((entry) => SECRET_KEY.test(entry), PREVIOUS_KEYS, 'must be keys of 32 bytes in base64, separated by commas')
      .transform((keys): readonly Buffer[] => keys.map((key) => Buffer.from(key, 'base64')))
      .default([]),
    'secret',
  ],
  /** As it is stored. */
  bootstrapEmail: [
    'BOOTSTRAP_EMAIL',
    z
      .string()
      .refine((text) => toUserEmail(text) !== null, USER_EMAIL_RULE)
      .transform((text) => toUserEmail(text)!)
      .default('admin@example.com'),
  ],
  bootstrapPassword: ['BOOTSTRAP_PASSWORD', textWithout((text) => findPasswordFault(text, null)).optional(), 'secret'],
  bootstrapApiKey: ['BOOTSTRAP_API_KEY', textWithout(findBootstrapKeyFault).optional(), 'secret'],
  bootstrapProjectId: ['BOOTSTRAP_PROJECT_ID', uuid('must be a UUID').optional()],
  /** `auto`: reconcile when a cluster is found. `required`: it is an error when there is none. */
  kubernetes: ['KUBERNETES', oneOf('auto', 'off', 'required').default('auto')],
  /** Null: all namespaces. */
  watchNamespaces: [
    'WATCH_NAMESPACES',
    names()
      .refine(
        (given) => given.every((name) => DNS_LABEL.test(name)),
        'must be names of namespaces separated by commas, for example payments,shop',
      )
      .transform((given) => (given.length === 0 ? null : given))
      .default(null),
  ],
  clusterName: [
    'CLUSTER_NAME',
    z
      .string()
      .regex(DNS_LABEL, 'must be at most 63 lower case letters, digits and -, with a letter or digit at both ends')
      .default('default'),
  ],
  /** The id of an installation whose HeartbeatChecks this one takes over. */
  takeOver: [
    'TAKE_OVER',
    uuid('must be the id of an installation, a UUID: status.installation of its HeartbeatChecks')
      .nullable()
      .default(null),
  ],
  /**
   * Which resources get the check of a deleted one back: `name`, resources of the same name; `uid`, only those in the
   * same namespace.
   */
  revival: ['REVIVAL', oneOf('name', 'uid').default('name')],
  /** Replaces the annotation of the Namespaces; null: they decide. */
  projects: ['PROJECTS', namespaceProjects.nullable().default(null)],
  isProjectAnnotationOn: ['PROJECT_ANNOTATION', isOn()],
  watchCronJobs: ['WATCH_CRONJOBS', watchOfCronJobs.default('labelled')],
  cronJobTimeZone: [
    'CRONJOB_TIME_ZONE',
    z
      .string()
      .refine(isTimeZone, 'must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC')
      .default('Etc/UTC'),
  ],
  cronJobLogs: ['CRONJOB_LOGS', oneOf('off', 'failed').default('off')],
  /** One for each peer, without a slash at the end. */
  alertmanagerUrls: [
    'ALERTMANAGER_URL',
    listOf(
      isAlertmanagerUrl,
      ALERTMANAGER_PEERS,
      'must be URLs such as http://alertmanager:9093, separated by commas, without query and fragment (write a % in the user or password as %25)',
    )
      .transform((urls): readonly string[] => urls.map((text) => text.replace(/\/+$/, '')))
      .default([]),
    'secret',
  ],
  watchdogUrl: [
    'WATCHDOG_URL',
    url(['http:', 'https:'], 'https://heartbeat.example.com/ping/...')
      .max(URL_LENGTH, `must have at most ${URL_LENGTH} characters`)
      .refine((text) => !URL.canParse(text) || hasReadableCredentials(text), UNREADABLE_CREDENTIALS)
      .nullable()
      .default(null),
    'secret',
  ],
  /** Addresses and CIDRs that channels may reach although they are private. */
  allowedTargets: ['ALLOWED_TARGETS', blocks().default([])],
  /** Addresses and CIDRs of proxies whose X-Forwarded-For counts. */
  trustedProxies: ['TRUSTED_PROXIES', blocks().default([])],
  isPasswordLoginOn: ['PASSWORD_LOGIN', isOn()],
  isDashboardOn: ['DASHBOARD', isOn()],
  /** The identity providers of the dashboard, in the order of their buttons. */
  signIn: ['SIGN_IN', signInProviders.default([]), 'secret'],
  smtpUrl: ['SMTP_URL', mailServer.optional(), 'secret'],
  /** `Name <address>` or an address alone. */
  smtpFrom: ['SMTP_FROM', mailbox.default('Heartbeat Operator <heartbeat@localhost>')],
  isSmtpTlsRequired: [
    'SMTP_TLS',
    oneOf('opportunistic', 'required')
      .default('opportunistic')
      .transform((mode) => mode === 'required'),
  ],
  /** How we introduce ourselves to the mail server; undefined: as the machine is called. */
  smtpName: ['SMTP_NAME', smtpName.optional()],
  /** Labels of checks that are labels of their series. */
  metricLabels: ['METRIC_LABELS', names().superRefine(withFault(findSeriesLabelsFault)).default([])],
  /** What a client must send to read /metrics; null: nothing. */
  metricsToken: [
    'METRICS_TOKEN',
    textThat(
      (text) => /^[\x21-\x7e]{1,1000}$/.test(text),
      'must be 1 to 1,000 characters of ASCII without spaces: make one with `openssl rand -hex 32`',
    )
      .nullable()
      .default(null),
    'secret',
  ],
  /** The issuers whose tokens the management API accepts. */
  oidcIssuers: ['OIDC_ISSUERS', oidcIssuers.default([])],
  rateLimitPerMinute: ['RATE_LIMIT_PER_MINUTE', integer(1, 1_000_000).default(1_000)],
  /** Of checks that pings create: of a project in a minute, and up to how many checks of the project in all. */
  pingCreatePerMinute: ['PING_CREATE_PER_MINUTE', integer(1, 1_000_000).default(60)],
  pingCreateMaxChecks: ['PING_CREATE_MAX_CHECKS', integer(0, 1_000_000).default(10_000)],
  historyMaxPings: ['HISTORY_MAX_PINGS', integer(1, 1_000_000).default(1_000)],
  historyMaxDays: ['HISTORY_MAX_DAYS', integer(1, 3_650).default(90)],
  /** For each check: flips, with their events and deliveries. */
  historyMaxFlips: ['HISTORY_MAX_FLIPS', integer(1, 1_000_000).default(1_000)],
  /** For each port. */
  maxConnections: ['MAX_CONNECTIONS', integer(1, 1_000_000).default(10_000)],
  /** How long the entries of the audit log are kept. */
  auditMaxDays: ['AUDIT_MAX_DAYS', integer(1, 3_650).default(365)],
  /** How long a start waits for a database that cannot be reached. */
  databaseWaitSeconds: ['DATABASE_WAIT_SECONDS', integer(0, 3_600).default(DATABASE_WAIT_SECONDS)],
  /** How long the process is not ready before its ports close, so that load balancers notice. */
  drainSeconds: ['DRAIN_SECONDS', integer(0, 300).default(0)],
  logLevel: ['LOG_LEVEL', oneOf('debug', 'info', 'warn', 'error', 'silent').default('info')],
  logFormat: ['LOG_FORMAT', oneOf('pretty', 'json').optional()],
} as const

type Table = typeof VARIABLES
type SecretKeys = { [Key in keyof Table]: Table[Key] extends { 2: 'secret' } ? Key : never }[keyof Table]
type ValuesOf<Keys extends keyof Table> = { readonly [Key in Keys]: z.output<Table[Key][1]> }
export type Values = ValuesOf<Exclude<keyof Table, SecretKeys>>
export type Secrets = ValuesOf<SecretKeys>
