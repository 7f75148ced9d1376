import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError, readConfig } from '../../src/config.ts'
import { createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { API_KEY, databaseEnvironment, LOG_IN, startService } from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { changed, failureOf } from './start-failure.ts'

/** What people write into the environment, and the folder that they choose. */

let temp: TempFolder
let server: PostgresServer

beforeAll(async () => {
  temp = await makeTempFolder()
  server = await startPostgresServer({ settings: { fsync: 'off' } })
})
afterAll(async () => {
  await server.remove()
  await temp.remove()
})

describe('a secret', () => {
  const faults: [string, () => Record<string, string>, string][] = [
    [
      'key is needed with DATABASE_URL',
      () => ({ SECRET_KEY: '' }),
      'SECRET_KEY is needed with DATABASE_URL, the same for every replica: make one with `openssl rand -base64 32`',
    ],
    [
      'key that is too short is refused',
      () => ({ SECRET_KEY: Buffer.alloc(31).toString('base64') }),
      'SECRET_KEY must be 32 bytes in base64: make one with `openssl rand -base64 32`',
    ],
    [
      'key that is no base64 is refused',
      () => ({ SECRET_KEY: '!'.repeat(11) + 'A'.repeat(43) }),
      'SECRET_KEY must be 32 bytes in base64: make one with `openssl rand -base64 32`',
    ],
    [
      'API key of another form is refused',
      () => ({ BOOTSTRAP_API_KEY: 'secret' }),
      'BOOTSTRAP_API_KEY must have the form hbk_<prefix>_<secret>: 1-32 letters or digits, and 6-128 letters, digits, - or _',
    ],
    [
      'password that is too short is refused',
      () => ({ BOOTSTRAP_PASSWORD: 'short' }),
      'BOOTSTRAP_PASSWORD must have at least 8 characters',
    ],
  ]

  it.concurrent.each(faults)('%s', async (_name, environment, fault) => {
    expect(await failureOf({ ...databaseEnvironment(server.url), ...environment() })).toEqual([
      'the configuration has a fault:',
      `  ${fault}`,
    ])
  })
})

describe('several faults', () => {
  it.concurrent('are listed together', async () => {
    const lines = await failureOf({
      ROLE: 'everything',
      PING_PORT: '99999',
      OPS_PORT: 'x',
      BASE_URL: 'nowhere',
      LOG_LEVEL: 'loud',
      BOOTSTRAP_PROJECT_ID: 'one',
      DATABASE_URL: server.url,
    })
    expect(lines[0]).toBe('the configuration has 7 faults:')
    expect(lines.slice(1).map((line) => /^ {2}(\w+) /.exec(line)?.[1])).toEqual([
      'ROLE',
      'PING_PORT',
      'OPS_PORT',
      'BASE_URL',
      'BOOTSTRAP_PROJECT_ID',
      'LOG_LEVEL',
      'SECRET_KEY',
    ])
  })
})

/** Limits of single variables: no process is needed to try them. */
describe('a variable for channels', () => {
  const faultsOf = (environment: Record<string, string>): readonly string[] => {
    try {
      readConfig(environment, false)
      return []
    } catch (error) {
      if (error instanceof ConfigError) return error.faults
      throw error
    }
  }
  const KEY = Buffer.alloc(32, 7).toString('base64')
  const urlOf = (length: number) => `https://example.com/${'x'.repeat(length - 'https://example.com/'.length)}`
  const peers = (count: number) => Array.from({ length: count }, (_, at) => `http://peer-${at}:9093`).join(',')
  const keys = (count: number) => Array(count).fill(KEY).join(',')

  const right: [string, string][] = [
    ['ALLOWED_TARGETS', '10.1.2.3'],
    ['ALLOWED_TARGETS', '0.0.0.0/0,10.0.0.0/32'],
    ['ALLOWED_TARGETS', '::/0,::1/128, fd00::/8 ,FE80::1,::ffff:10.0.0.1/128'],
    ['ALLOWED_TARGETS', '127.0.0.0/8,'],
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
    ['ALLOWED_TARGETS', '10.0.0.0/33', '"10.0.0.0/33" is none'],
    ['ALLOWED_TARGETS', '10.0.0.1, ::1/129', '"::1/129" is none'],
    ['ALLOWED_TARGETS', '10.0.0.0/', '"10.0.0.0/" is none'],
    ['ALLOWED_TARGETS', '10.0.0.0/08', '"10.0.0.0/08" is none'],
    ['ALLOWED_TARGETS', '10.0.0', '"10.0.0" is none'],
    ['ALLOWED_TARGETS', '167772161', '"167772161" is none'],
    ['ALLOWED_TARGETS', '10.0.0.256', '"10.0.0.256" is none'],
    ['ALLOWED_TARGETS', '[::1]', '"[::1]" is none'],
    ['ALLOWED_TARGETS', '*', '"*" is none'],
    ['ALLOWED_TARGETS', 'localhost', '"localhost" is none'],
    ['ALLOWED_TARGETS', 'fe80::1%eth0', 'entry 1 is none'],
    ['ALLOWED_TARGETS', '::1,http://user:hunter2@host', 'entry 2 is none'],
    ['ALERTMANAGER_URL', 'http://user:hunter2@alertmanager:9093,ftp://user:hunter2@alertmanager', 'entry 2 is none'],
    ['ALERTMANAGER_URL', 'http://user:hunter2@alertmanager:9093?x=1', 'entry 1 is none'],
    ['ALERTMANAGER_URL', 'http://user:hunter2@alertmanager:9093#x', 'entry 1 is none'],
    ['ALERTMANAGER_URL', 'http://user:hunter2%@alertmanager:9093', 'entry 1 is none'],
    ['ALERTMANAGER_URL', 'user:hunter2@alertmanager', 'entry 1 is none'],
    ['ALERTMANAGER_URL', urlOf(2_049), 'entry 1 is none'],
    ['ALERTMANAGER_URL', peers(11), 'must have at most 10 entries, and has 11'],
    ['WATCHDOG_URL', 'ftp://user:hunter2@host', 'must be a URL such as https://heartbeat.example.com/ping/...'],
    ['WATCHDOG_URL', 'https://user:hunter2%@host', 'has a % that begins no escape'],
    ['WATCHDOG_URL', urlOf(2_049), 'must have at most 2048 characters'],
    ['SMTP_URL', 'http://user:hunter2@host', 'must be a URL such as smtp://user:password@mail.example.com:587'],
    ['SMTP_URL', 'smtp:user:hunter2@host', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://user:hunter2/s@host', 'must be a URL such as'],
    ['SMTP_URL', 'smtp://user:25/hunter2@host', 'must end after the host or the port'],
    ['SMTP_URL', 'smtp://user:hunter2@host?tls.rejectUnauthorized=false', 'must end after the host or the port'],
    ['SMTP_URL', 'smtp://user@host', 'must have both a user and a password, or neither'],
    ['SMTP_URL', 'smtp://:hunter2@host', 'must have both a user and a password, or neither'],
    ['SMTP_URL', 'smtp://user:hunter2%@host', 'has a % that begins no escape'],
    ['SMTP_FROM', 'Heartbeat', 'must be an e-mail address, or a name and the address'],
    ['SMTP_FROM', 'Heartbeat <heartbeat@localhost', 'must be an e-mail address'],
    ['SMTP_FROM', 'a@example.com, b@example.com', 'must be an e-mail address'],
    ['SMTP_FROM', 'Heartbeat\r\nBcc: x <a@example.com>', 'must be an e-mail address'],
    ['SMTP_FROM', `a@${'b'.repeat(319)}`, 'must have at most 320 characters'],
    ['PREVIOUS_SECRET_KEYS', `${KEY},${Buffer.alloc(31, 7).toString('base64')}`, 'entry 2 is none'],
    ['PREVIOUS_SECRET_KEYS', 'hunter2', 'entry 1 is none'],
    ['PREVIOUS_SECRET_KEYS', keys(11), 'must have at most 10 entries, and has 11'],
  ]
  it.each(wrong)('%s may not be %s', (name, value, fault) => {
    const faults = faultsOf({ [name]: value })
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(new RegExp(`^${name} `))
    expect(faults[0]).toContain(fault)
    for (const secret of ['hunter2', KEY.slice(0, 8), 'xxxx']) expect(faults[0]).not.toContain(secret)
  })

  it('is not needed', () => {
    expect(readConfig({}, false)).toMatchObject({
      allowedTargets: [],
      smtpFrom: 'Heartbeat Operator <heartbeat@localhost>',
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

describe('NAME_FILE', () => {
  const inFile = async (name: string, text: string) => {
    const file = join(temp.path, name)
    await writeFile(file, text)
    return file
  }

  it.concurrent('gives a value as a mounted secret', async () => {
    const { DATABASE_URL, SECRET_KEY, BOOTSTRAP_API_KEY } = databaseEnvironment(server.url)
    await using service = await startService({
      DATABASE_URL_FILE: await inFile('url', `${DATABASE_URL}\n`),
      SECRET_KEY_FILE: await inFile('key', `${SECRET_KEY}\r\n`),
      BOOTSTRAP_API_KEY_FILE: await inFile('api-key', BOOTSTRAP_API_KEY!),
      // Left empty by Compose or Helm: the same as not set.
      DATABASE_URL: '',
    })
    expect((await service.stop()).status).toBe(0)
  })

  it.concurrent('beside the value itself is refused', async () => {
    expect(
      await failureOf({ ...databaseEnvironment(server.url), SECRET_KEY_FILE: await inFile('second', 'x') }),
    ).toEqual([
      'the configuration has 2 faults:',
      '  SECRET_KEY and SECRET_KEY_FILE are both set: keep one of them',
      expect.stringContaining('SECRET_KEY must be 32 bytes'),
    ])
  })

  it.concurrent('of a file that is not there, or is a folder, is refused', async () => {
    const file = join(temp.path, 'missing')
    expect(await failureOf({ DATABASE_URL_FILE: file })).toEqual([
      'the configuration has a fault:',
      expect.stringMatching(/^ {2}DATABASE_URL_FILE names a file that cannot be read: ENOENT/),
    ])
    expect(await failureOf({ BOOTSTRAP_PASSWORD_FILE: temp.path })).toEqual([
      'the configuration has a fault:',
      expect.stringMatching(/^ {2}BOOTSTRAP_PASSWORD_FILE names a file that cannot be read: EISDIR/),
    ])
  })

  it.concurrent('of a file whose contents are wrong is refused', async () => {
    expect(await failureOf({ LOG_LEVEL_FILE: await inFile('level', 'loud\n') })).toEqual([
      'the configuration has a fault:',
      '  LOG_LEVEL must be one of debug, info, warn, error, silent',
    ])
  })
})

describe('DATA_DIR', () => {
  it.concurrent('with a database of another PostgreSQL is refused, and how to move it said', async () => {
    const dataDir = join(temp.path, 'older')
    await mkdir(join(dataDir, 'postgres'), { recursive: true })
    await writeFile(join(dataDir, 'postgres', 'PG_VERSION'), '17\n')
    expect(await failureOf({ DATA_DIR: dataDir })).toEqual([
      `data folder ${dataDir} holds a PostgreSQL 17 database, and this is PostgreSQL 18: move it with pg_dump of PostgreSQL 17 and DATABASE_URL, or set DATA_DIR to a new folder`,
    ])
  })

  it.concurrent('that is a file is refused', async () => {
    const dataDir = join(temp.path, 'a-file')
    await writeFile(dataDir, '')
    expect(await failureOf({ DATA_DIR: dataDir })).toEqual([
      `data folder ${dataDir} is not a folder: remove the file in its place, or set DATA_DIR to another folder`,
    ])
  })

  it.concurrent('that cannot be written is refused', async () => {
    // Root may write everywhere but among the kernel's own files.
    const isRoot = process.geteuid?.() === 0
    const parent = isRoot ? '/sys' : join(temp.path, 'locked')
    if (!isRoot) {
      await mkdir(parent)
      await chmod(parent, 0o500)
    }
    const [line, ...more] = await failureOf({ DATA_DIR: join(parent, 'data') })
    expect(line).toContain(`data folder ${join(parent, 'data')} is not writable`)
    expect(more).toEqual([])
  })

  it.concurrent('in use by another process is refused', async () => {
    const dataDir = join(temp.path, 'shared')
    await using first = await startService({ DATA_DIR: dataDir })
    expect(await failureOf({ DATA_DIR: dataDir })).toEqual([
      `data folder ${dataDir} is in use by process ${first.pid}: stop it, or set DATA_DIR to another folder`,
    ])
    expect((await first.stop()).status).toBe(0)
  })
})

describe('a given secret', () => {
  it.concurrent('is not printed at the first start', async () => {
    await query(server.adminUrl, 'create database fresh owner heartbeat')
    const url = changed(server.url, (copy) => (copy.pathname = '/fresh'))
    await using service = await startService(databaseEnvironment(url))
    for (const secret of [API_KEY, LOG_IN.password, new URL(url).password])
      expect(service.stdout + service.stderr).not.toContain(secret)
    expect((await (await createApiClient(service.api, API_KEY)).get('/me')).status).toBe(200)
    expect((await service.stop()).status).toBe(0)
  })
})
