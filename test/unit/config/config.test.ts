import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.ts'
import { faultsOf as faultsOfConfig } from './faults.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const SECRET = 'hunter2'

const faultsOf = (environment: Record<string, string>) => faultsOfConfig(environment, KEY.slice(0, 8))

describe('a secret', () => {
  const database = { DATABASE_URL: `postgres://heartbeat:${SECRET}@127.0.0.1/heartbeat`, SECRET_KEY: KEY }
  const keyFault = 'SECRET_KEY must be 32 bytes in base64: make one with `openssl rand -base64 32`'

  const apiKeyFault =
    'BOOTSTRAP_API_KEY must have the form hbk_<prefix>_<secret>: 1-32 letters or digits, and 32-128 letters, digits, - or _'
  const lengthFault = 'BOOTSTRAP_PASSWORD must be text of 12 to 200 characters'
  const emailFault = 'BOOTSTRAP_EMAIL must be an e-mail address'
  const SHORT_API_KEY = `hbk_a_${'x'.repeat(31)}`

  it.each<[string, Record<string, string>, string]>([
    [
      'key is needed with DATABASE_URL',
      { SECRET_KEY: '' },
      'SECRET_KEY is needed with DATABASE_URL, the same for every replica: make one with `openssl rand -base64 32`',
    ],
    ['key that is too short is rejected', { SECRET_KEY: Buffer.alloc(31).toString('base64') }, keyFault],
    ['key that is not base64 is rejected', { SECRET_KEY: '!'.repeat(11) + 'A'.repeat(43) }, keyFault],
    ['API key of another form is rejected', { BOOTSTRAP_API_KEY: SECRET }, apiKeyFault],
    ['API key with a secret of 31 characters is rejected', { BOOTSTRAP_API_KEY: SHORT_API_KEY }, apiKeyFault],
    ['password that is too short is rejected', { BOOTSTRAP_PASSWORD: SECRET }, lengthFault],
    ['password that is too long is rejected', { BOOTSTRAP_PASSWORD: SECRET.padEnd(201, 'x') }, lengthFault],
    [
      'password that is common is rejected',
      { BOOTSTRAP_PASSWORD: 'Password1234' },
      'BOOTSTRAP_PASSWORD is one of the most common passwords: choose another, such as four random words',
    ],
    [
      'password that is the e-mail address is rejected',
      { BOOTSTRAP_EMAIL: 'Ann@example.com', BOOTSTRAP_PASSWORD: 'ann@EXAMPLE.com' },
      'BOOTSTRAP_PASSWORD must not be the e-mail address',
    ],
    ['text that is no e-mail address is rejected', { BOOTSTRAP_EMAIL: SECRET }, emailFault],
    ['e-mail address beyond ASCII is rejected', { BOOTSTRAP_EMAIL: 'adm\u0130n@example.com' }, emailFault],
    [
      'text that is no id of a project is rejected',
      { BOOTSTRAP_PROJECT_ID: SECRET },
      'BOOTSTRAP_PROJECT_ID must be a UUID',
    ],
  ])('%s', (_name, changes, fault) => {
    expect(faultsOf({ ...database, ...changes })).toEqual([fault])
  })

  it('of the longest password, and an address in capitals, is read as it is stored', () => {
    const { bootstrapEmail, secrets } = readConfig(
      { ...database, BOOTSTRAP_EMAIL: 'Ann@Example.com', BOOTSTRAP_PASSWORD: SECRET.padEnd(200, 'x') },
      false,
    )
    expect([bootstrapEmail, secrets.bootstrapPassword]).toEqual(['ann@example.com', SECRET.padEnd(200, 'x')])
  })

  it.each([
    ['without a scheme', `heartbeat:${SECRET}@127.0.0.1`, 'must be a URL such as postgres://user:password@host:5432/'],
    ['of another scheme', `mysql://heartbeat:${SECRET}@127.0.0.1/heartbeat`, 'must be a URL such as postgres://'],
    [
      'with # in its password',
      `postgres://heartbeat:${SECRET}#@127.0.0.1/heartbeat`,
      'must be a URL such as postgres://',
    ],
    [
      'with a broken escape',
      `postgres://heartbeat:${SECRET}@127.0.0.1/%zz`,
      'has a % in the name of the database that does not begin an escape: write it as %25',
    ],
  ])('DATABASE_URL %s is rejected', (_name, url, fault) => {
    expect(faultsOf({ ...database, DATABASE_URL: url })).toEqual([expect.stringContaining(`DATABASE_URL ${fault}`)])
  })
})

describe('a secret that can be guessed', () => {
  const STRONG = {
    SECRET_KEY: createHash('sha256').update('a key').digest('base64'),
    BOOTSTRAP_API_KEY: `hbk_first_${createHash('sha256').update('an API key').digest('hex')}`,
    BOOTSTRAP_PASSWORD: 'correct horse battery',
  }
  const API_KEY_OF_README = 'hbk_demo_0123456789abcdef0123456789abcdef'
  const WEAK: Record<keyof typeof STRONG, [value: string, warning: string]> = {
    SECRET_KEY: [
      KEY,
      'SECRET_KEY can be guessed, because it has too few different characters: make one with `openssl rand -base64 32`',
    ],
    BOOTSTRAP_API_KEY: [
      API_KEY_OF_README,
      'BOOTSTRAP_API_KEY can be guessed, because it is an example of the documents: make one with `echo hbk_first_$(openssl rand -hex 20)`',
    ],
    BOOTSTRAP_PASSWORD: [
      'correct horse battery staple',
      'BOOTSTRAP_PASSWORD can be guessed, because it is an example of the documents: make one with `openssl rand -base64 18`',
    ],
  }
  const names = Object.keys(STRONG) as (keyof typeof STRONG)[]

  it.each(['', '127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', 'localhost'])(
    'is a warning on the loopback address %j',
    (address) => {
      for (const name of names) {
        const [value, warning] = WEAK[name]
        expect(readConfig({ ...STRONG, [name]: value, BIND_ADDRESS: address }, false).warnings).toEqual([warning])
      }
    },
  )

  it.each(['0.0.0.0', '::', '192.0.2.1', '::ffff:0.0.0.0', 'heartbeat.example.com'])(
    'is a fault on the address %s',
    (address) => {
      for (const name of names) {
        const [value, warning] = WEAK[name]
        expect(faultsOf({ ...STRONG, [name]: value, BIND_ADDRESS: address })).toEqual([
          `${warning}. Only a loopback BIND_ADDRESS accepts it`,
        ])
      }
    },
  )

  it('is none of random characters, nor a previous key, which only reads', () => {
    for (const address of ['127.0.0.1', '0.0.0.0'])
      expect(readConfig({ ...STRONG, PREVIOUS_SECRET_KEYS: KEY, BIND_ADDRESS: address }, false).warnings).toEqual([])
  })
})

describe('METRICS_TOKEN', () => {
  it('is null unless it is given, and text that a header can carry', () => {
    const tokenOf = (environment: Record<string, string>) => readConfig(environment, false).secrets.metricsToken
    expect([tokenOf({}), tokenOf({ METRICS_TOKEN: '' }), tokenOf({ METRICS_TOKEN: 'x'.repeat(1_000) })]).toEqual([
      null,
      null,
      'x'.repeat(1_000),
    ])
    const fault =
      'METRICS_TOKEN must be 1 to 1,000 characters of ASCII without spaces: make one with `openssl rand -hex 32`'
    for (const token of [`${SECRET} x`, `${SECRET}\u00fc`, SECRET.padEnd(1_001, 'x')])
      expect(faultsOf({ METRICS_TOKEN: token })).toEqual([fault])
  })
})

describe('METRIC_LABELS', () => {
  it('is a list of names of labels, each once', () => {
    const labelsOf = (text: string) => readConfig({ METRIC_LABELS: text }, false).metricLabels
    expect(readConfig({}, false).metricLabels).toEqual([])
    expect(labelsOf(' team, app.kubernetes.io/part-of,,team ')).toEqual(['team', 'app.kubernetes.io/part-of'])
    expect(labelsOf('a,b,c,d,e,f,g,h,i,j')).toHaveLength(10)
  })

  it.each([
    ['a,b,c,d,e,f,g,h,i,j,k', 'must have at most 10 entries, and has 11'],
    [
      'team,not a name',
      'must be names of labels separated by commas, such as team,app.kubernetes.io/part-of: entry 2 is not valid',
    ],
    ['a.b,a-b', 'must not have both a.b and a-b: each would be the label label_a_b of a series'],
  ])('may not be %s', (text, fault) => expect(faultsOf({ METRIC_LABELS: text })).toEqual([`METRIC_LABELS ${fault}`]))
})

describe('a variable for channels', () => {
  const urlOf = (length: number) => `https://example.com/${'x'.repeat(length - 'https://example.com/'.length)}`
  const peers = (count: number) => Array.from({ length: count }, (_, at) => `http://peer-${at}:9093`).join(',')
  const keys = (count: number) => Array(count).fill(KEY).join(',')

  const right: [string, string][] = [
    ['ALLOWED_TARGETS', '10.1.2.3'],
    ['ALLOWED_TARGETS', '0.0.0.0/0,10.0.0.0/32'],
    ['ALLOWED_TARGETS', '::/0,::1/128, fd00::/8 ,FE80::1,::ffff:10.0.0.1/128'],
    ['ALLOWED_TARGETS', '127.0.0.0/8,'],
    ['TRUSTED_PROXIES', '10.0.0.0/8, fd00::/8,192.0.2.1'],
    ['PASSWORD_LOGIN', 'off'],
    ['ALERTMANAGER_URL', 'http://alertmanager:9093'],
    ['ALERTMANAGER_URL', 'https://user:p%2Css@[::1]:9093/prefix'],
    ['ALERTMANAGER_URL', urlOf(2_048)],
    ['ALERTMANAGER_URL', peers(10)],
    ['WATCHDOG_URL', 'https://user:password@heartbeat.example.com/ping/x?rid=1'],
    ['WATCHDOG_URL', urlOf(2_048)],
    ['SMTP_URL', 'smtp://localhost'],
    ['SMTP_URL', 'smtp://localhost:25/'],
    ['SMTP_URL', 'smtp://user%40example.com:p%2Fss@[::1]:587'],
    ['SMTP_URL', 'smtps://user:password@mail.example.com:465'],
    ['SMTP_TLS', 'opportunistic'],
    ['SMTP_TLS', 'required'],
    ['SMTP_NAME', 'heartbeat'],
    ['SMTP_NAME', 'Heartbeat.example.com'],
    ['SMTP_NAME', '[192.0.2.1]'],
    ['SMTP_NAME', '[IPv6:2001:db8::1]'],
    ['SMTP_NAME', `${'a'.repeat(63)}.example.com`],
    ['SMTP_FROM', 'heartbeat@example.com'],
    ['SMTP_FROM', 'Müller, Jobs <jobs@münchen.example>'],
    ['SMTP_FROM', `a@${'b'.repeat(318)}`],
    ['PREVIOUS_SECRET_KEYS', KEY],
    ['PREVIOUS_SECRET_KEYS', ` ${KEY}, ${KEY.slice(0, 43)},`],
    ['PREVIOUS_SECRET_KEYS', keys(10)],
  ]
  it.each(right)('%s may be %s', (name, value) => {
    expect(faultsOf({ [name]: value })).toEqual([])
  })

  const wrong: [string, string, string][] = [
    ['ALLOWED_TARGETS', '10.0.0.0/33', '"10.0.0.0/33" is not valid'],
    ['TRUSTED_PROXIES', 'proxy.example.com', '"proxy.example.com" is not valid'],
    ['PASSWORD_LOGIN', 'no', 'must be one of on, off'],
    ['ALLOWED_TARGETS', '10.0.0.1, ::1/129', '"::1/129" is not valid'],
    ['ALLOWED_TARGETS', '10.0.0.0/', '"10.0.0.0/" is not valid'],
    ['ALLOWED_TARGETS', '10.0.0.0/08', '"10.0.0.0/08" is not valid'],
    ['ALLOWED_TARGETS', '10.0.0', '"10.0.0" is not valid'],
    ['ALLOWED_TARGETS', '167772161', '"167772161" is not valid'],
    ['ALLOWED_TARGETS', '10.0.0.256', '"10.0.0.256" is not valid'],
    ['ALLOWED_TARGETS', '[::1]', '"[::1]" is not valid'],
    ['ALLOWED_TARGETS', '*', '"*" is not valid'],
    ['ALLOWED_TARGETS', 'localhost', '"localhost" is not valid'],
    ['ALLOWED_TARGETS', 'fe80::1%eth0', 'entry 1 is not valid'],
    ['ALLOWED_TARGETS', '::1,http://user:hunter2@host', 'entry 2 is not valid'],
    [
      'ALERTMANAGER_URL',
      'http://user:hunter2@alertmanager:9093,ftp://user:hunter2@alertmanager',
      'entry 2 is not valid',
    ],
    ['ALERTMANAGER_URL', 'http://user:hunter2@alertmanager:9093?x=1', 'entry 1 is not valid'],
    ['ALERTMANAGER_URL', 'http://user:hunter2@alertmanager:9093#x', 'entry 1 is not valid'],
    ['ALERTMANAGER_URL', 'http://user:hunter2%@alertmanager:9093', 'entry 1 is not valid'],
    ['ALERTMANAGER_URL', 'user:hunter2@alertmanager', 'entry 1 is not valid'],
    ['ALERTMANAGER_URL', urlOf(2_049), 'entry 1 is not valid'],
    ['ALERTMANAGER_URL', peers(11), 'must have at most 10 entries, and has 11'],
    ['WATCHDOG_URL', 'ftp://user:hunter2@host', 'must be a URL such as https://heartbeat.example.com/ping/...'],
    ['WATCHDOG_URL', 'https://user:hunter2%@host', 'that does not begin an escape'],
    ['WATCHDOG_URL', urlOf(2_049), 'must have at most 2048 characters'],
    ['SMTP_URL', 'http://user:hunter2@host', 'must be a URL such as smtp://user:password@mail.example.com:587'],
    ['SMTP_URL', 'smtp:user:hunter2@host', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://user:hunter2/s@host', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://user:25/hunter2@host', 'must end after the host or the port'],
    ['SMTP_URL', 'smtp://user:hunter2@host?tls.rejectUnauthorized=false', 'must end after the host or the port'],
    ['SMTP_URL', 'smtp://user@host', 'must have both a user and a password, or neither'],
    ['SMTP_URL', 'smtp://:hunter2@host', 'must have both a user and a password, or neither'],
    ['SMTP_URL', 'smtp://user:hunter2%@host', 'that does not begin an escape'],
    ['SMTP_TLS', 'yes', 'must be one of opportunistic, required'],
    ['SMTP_NAME', '192.0.2.1:25', 'must be a host name, or an address in brackets'],
    ['SMTP_NAME', 'heartbeat example', 'must be a host name'],
    ['SMTP_NAME', 'heartbeat\r\nMAIL FROM:<a@example.com>', 'must be a host name'],
    ['SMTP_NAME', `${'a'.repeat(64)}.example.com`, 'must be a host name'],
    ['SMTP_NAME', `${'a.'.repeat(150)}example`, 'must be a host name'],
    ['SMTP_FROM', 'Heartbeat', 'must be an e-mail address, or a name and the address'],
    ['SMTP_FROM', 'Heartbeat <heartbeat@localhost', 'must be an e-mail address'],
    ['SMTP_FROM', 'a@example.com, b@example.com', 'must be an e-mail address'],
    ['SMTP_FROM', 'Heartbeat\r\nBcc: x <a@example.com>', 'must be an e-mail address'],
    ['SMTP_FROM', `a@${'b'.repeat(319)}`, 'must have at most 320 characters'],
    ['PREVIOUS_SECRET_KEYS', `${KEY},${Buffer.alloc(31, 7).toString('base64')}`, 'entry 2 is not valid'],
    ['PREVIOUS_SECRET_KEYS', 'hunter2', 'entry 1 is not valid'],
    ['PREVIOUS_SECRET_KEYS', keys(11), 'must have at most 10 entries, and has 11'],
  ]
  it.each(wrong)('%s may not be %s', (name, value, fault) => {
    const faults = faultsOf({ [name]: value })
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(new RegExp(`^${name} `))
    expect(faults[0]).toContain(fault)
    expect(faults[0]).not.toContain('xxxx')
  })

  it('is not needed', () => {
    expect(readConfig({}, false)).toMatchObject({
      allowedTargets: [],
      smtpFrom: 'Heartbeat Operator <heartbeat@localhost>',
      isSmtpTlsRequired: false,
      smtpName: undefined,
      secrets: { previousSecretKeys: [], alertmanagerUrls: [], watchdogUrl: null, smtpUrl: undefined },
    })
  })

  it('is read into what the parts take', () => {
    const config = readConfig(
      {
        ALLOWED_TARGETS: '10.0.0.0/8, ::1',
        ALERTMANAGER_URL: 'http://a:9093/,https://b/prefix//',
        WATCHDOG_URL: 'https://heartbeat.example.com/ping/x/',
        SMTP_URL: 'smtp://localhost',
        SMTP_FROM: 'a@example.com',
        PREVIOUS_SECRET_KEYS: `${KEY},${Buffer.alloc(32, 8).toString('base64url')}`,
      },
      false,
    )
    expect(config).toMatchObject({ allowedTargets: ['10.0.0.0/8', '::1'], smtpFrom: 'a@example.com' })
    expect(config.secrets).toMatchObject({
      previousSecretKeys: [Buffer.alloc(32, 7), Buffer.alloc(32, 8)],
      alertmanagerUrls: ['http://a:9093', 'https://b/prefix'],
      watchdogUrl: 'https://heartbeat.example.com/ping/x/',
      smtpUrl: 'smtp://localhost',
    })
  })
})

describe('the name for the mail server', () => {
  it.each([
    [{ BASE_URL: 'https://heartbeat.example.com/api/v1' }, 'heartbeat.example.com'],
    [{ BASE_URL: 'https://heartbeat.example.com./api/v1', SMTP_NAME: 'jobs.example.com' }, 'jobs.example.com'],
    [{ BASE_URL: 'https://heartbeat.example.com.:8443/api/v1' }, 'heartbeat.example.com'],
    [{ BASE_URL: 'https://münchen.example/api/v1' }, 'xn--mnchen-3ya.example'],
    [{ BASE_URL: 'http://192.0.2.1:8081/api/v1' }, '[192.0.2.1]'],
    [{ BASE_URL: 'http://heartbeat-api:8081/api/v1' }, undefined],
    [{ BASE_URL: 'http://[2001:db8::1]:8081/api/v1' }, undefined],
  ])('is, with %o, %s', (environment, name) => {
    expect(readConfig(environment, false).smtpName).toBe(name)
  })
})

describe('NAME_FILE', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'heartbeat-config-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))
  const inFile = (name: string, text: string) => {
    const file = join(folder, name)
    writeFileSync(file, text)
    return file
  }

  it('gives a value as a mounted secret, without its last line break', () => {
    const config = readConfig(
      {
        SECRET_KEY_FILE: inFile('key', `${KEY}\r\n`),
        BOOTSTRAP_PASSWORD_FILE: inFile('password', 'correct horse\n'),
        // Compose and Helm pass an empty variable for one that is not set.
        SECRET_KEY: '',
      },
      false,
    )
    expect(config.secrets).toMatchObject({ secretKey: Buffer.alloc(32, 7), bootstrapPassword: 'correct horse' })
  })

  it('beside the value itself is rejected', () => {
    expect(faultsOf({ SECRET_KEY: KEY, SECRET_KEY_FILE: inFile('second', SECRET) })).toEqual([
      'SECRET_KEY and SECRET_KEY_FILE are both set: keep one of them',
      expect.stringContaining('SECRET_KEY must be 32 bytes'),
    ])
  })

  it('of a file that does not exist, or is a folder, is rejected', () => {
    expect(faultsOf({ DATABASE_URL_FILE: join(folder, 'missing'), BOOTSTRAP_PASSWORD_FILE: folder })).toEqual([
      expect.stringMatching(/^DATABASE_URL_FILE names a file that cannot be read: ENOENT/),
      expect.stringMatching(/^BOOTSTRAP_PASSWORD_FILE names a file that cannot be read: EISDIR/),
    ])
  })

  it('of a file with an invalid value is rejected', () => {
    expect(faultsOf({ LOG_LEVEL_FILE: inFile('level', 'loud\n') })).toEqual([
      'LOG_LEVEL must be one of debug, info, warn, error, silent',
    ])
  })
})

describe('CronJobs', () => {
  it('are watched by their labels, in UTC, without their logs, by default', () => {
    expect(readConfig({}, false).cronJobs).toEqual({ watch: 'labelled', timeZone: 'Etc/UTC', logs: 'off' })
  })

  it.each(['labelled', 'all', 'none'])('are watched as WATCH_CRONJOBS says: %s', (watch) => {
    expect(readConfig({ WATCH_CRONJOBS: watch }, false).cronJobs.watch).toBe(watch)
  })

  it('have the time zone and the logs that are set', () => {
    const { cronJobs } = readConfig({ CRONJOB_TIME_ZONE: 'Europe/Berlin', CRONJOB_LOGS: 'failed' }, false)
    expect(cronJobs).toEqual({ watch: 'labelled', timeZone: 'Europe/Berlin', logs: 'failed' })
  })

  it('reports each wrong value', () => {
    const zone = 'CRONJOB_TIME_ZONE must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC'
    expect(faultsOf({ WATCH_CRONJOBS: 'some', CRONJOB_TIME_ZONE: 'europe/berlin', CRONJOB_LOGS: 'all' })).toEqual([
      'WATCH_CRONJOBS must be one of labelled, all, none',
      zone,
      'CRONJOB_LOGS must be one of off, failed',
    ])
    expect(faultsOf({ CRONJOB_TIME_ZONE: 'Local' })).toEqual([zone])
  })

  it('reports the word that replaces off', () => {
    expect(faultsOf({ WATCH_CRONJOBS: 'off' })).toEqual([
      'WATCH_CRONJOBS must be one of labelled, all, none: none replaces off',
    ])
  })
})

describe('PROJECTS', () => {
  const like = 'PROJECTS must be a JSON object such as {"shop":["payments","shared"]}'

  it('is a map of namespaces to slugs, which replaces the annotation', () => {
    const { projects, isProjectAnnotationOn, revival } = readConfig(
      { PROJECTS: '{"shop": ["payments", "shared"], "empty": []}', PROJECT_ANNOTATION: 'off', REVIVAL: 'uid' },
      false,
    )
    expect([...projects!]).toEqual([
      ['shop', ['payments', 'shared']],
      ['empty', []],
    ])
    expect([isProjectAnnotationOn, revival]).toEqual([false, 'uid'])
  })

  it('is absent by default, and the annotation decides', () => {
    const { projects, isProjectAnnotationOn, revival } = readConfig({}, false)
    expect([projects, isProjectAnnotationOn, revival]).toEqual([null, true, 'name'])
  })

  it.each([
    ['{', 'it is no JSON'],
    ['[]', 'it is no object'],
    ['null', 'it is no object'],
    ['{"Shop": []}', '"Shop" is no name of a namespace'],
    ['{"shop": "payments"}', 'shop has no array of slugs'],
    ['{"shop": ["payments", "Pay!"]}', 'entry 2 of shop is no slug of a project'],
    ['{"shop": [1]}', 'entry 1 of shop is no slug of a project'],
  ])('%s is rejected', (PROJECTS, fault) => {
    expect(faultsOf({ PROJECTS })).toEqual([`${like}: ${fault}`])
  })
})

describe('TAKE_OVER', () => {
  const id = '2F0C5AA1-2B9D-4A7A-9C3E-0B1A5D6E7F80'
  it('is the id of an installation, as the resources have it', () => {
    expect(readConfig({ TAKE_OVER: id }, false).takeOver).toBe(id.toLowerCase())
    // As the chart sets it when its value is empty.
    expect(readConfig({ TAKE_OVER: '' }, false).takeOver).toBeNull()
  })

  it.each(['production', `${id},${id}`, id.slice(1)])('is rejected when it is "%s"', (TAKE_OVER) => {
    expect(faultsOf({ TAKE_OVER })).toEqual([
      'TAKE_OVER must be the id of an installation, a UUID: status.installation of its HeartbeatChecks',
    ])
  })
})

it.each([
  ['https://example.com/api/v1', null],
  ['https://example.com/ops/heartbeat/api/v1/', null],
  ['https://example.com/heartbeat', 'BASE_URL must end in /api/v1'],
  ['https://example.com/checks/api/v1', 'BASE_URL must not begin its path with /checks before /api/v1'],
  ['https://example.com//evil.example/api/v1', 'BASE_URL must have only letters'],
])('BASE_URL %s', (url, fault) => {
  if (fault === null) expect(readConfig({ BASE_URL: url }, false).baseUrl).toBe(url.replace(/\/$/, ''))
  else expect(faultsOf({ BASE_URL: url })).toEqual([expect.stringContaining(fault)])
})
