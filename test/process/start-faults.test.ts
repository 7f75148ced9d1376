import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { choosePort } from '../../src/store/embedded/port.ts'
import { createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, LOG_IN, spawnService, startService } from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'

/** What somebody meets who starts it wrongly: one clear message, status 2, and no secret in it. */

let temp: TempFolder
let server: PostgresServer
const PASSWORD = 'hunter2-s3cret'

beforeAll(async () => {
  temp = await makeTempFolder()
  server = await startPostgresServer({ settings: { fsync: 'off' } })
})
afterAll(async () => {
  await server.remove()
  await temp.remove()
})

/** Starts where that must fail, and gives the lines that a person reads. */
async function failureOf(environment: Record<string, string>): Promise<string[]> {
  await using service = spawnService({ DATA_DIR: join(temp.path, 'never'), ...environment })
  const { status, signal } = await service.end()
  const { stdout, stderr } = service
  expect({ status, signal, stderr }).toEqual({ status: 2, signal: null, stderr: expect.stringMatching(/^.+\n/) })
  expect(stdout).not.toContain('ready')
  for (const secret of [PASSWORD, passwordOf(server.url), API_KEY, LOG_IN.password])
    expect(stdout + stderr).not.toContain(secret)
  return stderr.trimEnd().split('\n')
}

const passwordOf = (url: string) => new URL(url).password

function changed(url: string, change: (url: URL) => void): string {
  const copy = new URL(url)
  change(copy)
  return copy.href
}

async function takePort() {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  return {
    port: String((holder.address() as { port: number }).port),
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => holder.close(() => resolve())),
  }
}

describe('a port', () => {
  it.concurrent.each(['PING_PORT', 'API_PORT', 'OPS_PORT'])('%s in use is named, with what to do', async (name) => {
    await using taken = await takePort()
    expect(await failureOf({ ...databaseEnvironment(server.url), [name]: taken.port })).toEqual([
      `port ${taken.port} on 127.0.0.1 is in use: stop what uses it, or set ${name} to another port (0 takes a free one)`,
    ])
  })

  it.concurrent('that is free is taken', async () => {
    const port = String(await choosePort(''))
    await using service = await startService({ ...databaseEnvironment(server.url), PING_PORT: port })
    expect(service.ping).toBe(`http://127.0.0.1:${port}`)
    expect((await service.stop()).status).toBe(0)
  })

  it.concurrent('on an address that is not of this machine is explained', async () => {
    const [line, ...more] = await failureOf({ ...databaseEnvironment(server.url), BIND_ADDRESS: '192.0.2.1' })
    expect(line).toContain('192.0.2.1 is no address of this machine')
    expect(more).toEqual([])
  })
})

describe('DATABASE_URL', () => {
  const wrong: [string, (url: string) => string | Promise<string>, string | RegExp][] = [
    [
      'where nobody listens',
      freeAddress,
      /^DATABASE_URL: nobody listens on 127\.0\.0\.1:\d+: start PostgreSQL there, or correct the address$/,
    ],
    [
      'with a wrong password',
      (url) => changed(url, (copy) => (copy.password = PASSWORD)),
      /^DATABASE_URL: 127\.0\.0\.1:\d+ refuses user heartbeat or the password: correct them$/,
    ],
    [
      'with an unknown user',
      (url) => changed(url, (copy) => (copy.username = 'nobody')),
      /^DATABASE_URL: 127\.0\.0\.1:\d+ refuses user nobody or the password: correct them$/,
    ],
    [
      'with an unknown database',
      (url) => changed(url, (copy) => (copy.pathname = '/nowhere')),
      /^DATABASE_URL: there is no database nowhere on 127\.0\.0\.1:\d+: create it, or name another$/,
    ],
    [
      'with an unknown host',
      () => `postgres://heartbeat:${PASSWORD}@nowhere.invalid/heartbeat`,
      'DATABASE_URL: there is no host nowhere.invalid: correct the name',
    ],
  ]

  it.concurrent.each(wrong)('%s is explained in one line', async (_name, make, message) => {
    const url = await make(server.url)
    expect(await failureOf(databaseEnvironment(url))).toEqual([
      typeof message === 'string' ? message : expect.stringMatching(message),
    ])
  })

  it.concurrent.each([
    ['that is none', `heartbeat:${PASSWORD}@127.0.0.1`],
    ['of something else', `mysql://heartbeat:${PASSWORD}@127.0.0.1/heartbeat`],
    ['with a sign in the password that must be escaped', `postgres://heartbeat:${PASSWORD}#@127.0.0.1/heartbeat`],
  ])('%s is a fault of the configuration', async (_name, url) => {
    expect(await failureOf(databaseEnvironment(url))).toEqual([
      'the configuration has a fault:',
      expect.stringMatching(/^ {2}DATABASE_URL must be a URL such as postgres:\/\/user:password@host:5432\/database/),
    ])
  })

  it.concurrent('with a broken escape is a fault of the configuration', async () => {
    expect(await failureOf(databaseEnvironment(`postgres://heartbeat:${PASSWORD}@127.0.0.1/%zz`))).toEqual([
      'the configuration has a fault:',
      '  DATABASE_URL has a % that begins no escape in the name of the database: write it as %25',
    ])
  })

  async function freeAddress(url: string): Promise<string> {
    await using taken = await takePort()
    return changed(url, (copy) => (copy.port = taken.port))
  }
})

describe('a database', () => {
  it.concurrent('with a schema newer than the program is refused', async () => {
    await using newer = await startPostgresServer({ settings: { fsync: 'off' } })
    await using service = await startService(databaseEnvironment(newer.url))
    await service.stop()
    await query(newer.url, `insert into schema_migrations (version, name) values (4711, '4711_future.sql')`)
    expect(await failureOf(databaseEnvironment(newer.url))).toEqual([
      expect.stringMatching(
        /^the database has schema 4711, this program knows up to \d+: run the newer release that made it, or restore a backup of schema \d+$/,
      ),
    ])
  })

  it.concurrent('in which the user may make nothing is explained', async () => {
    await query(server.adminUrl, `create role guest login password '${PASSWORD}'`)
    const url = changed(server.url, (copy) => {
      copy.username = 'guest'
      copy.password = PASSWORD
    })
    const [line, ...more] = await failureOf(databaseEnvironment(url))
    expect(line).toMatch(/^DATABASE_URL: .*guest/)
    expect(more).toEqual([])
  })

  it.concurrent('that is read-only is explained', async () => {
    await query(server.adminUrl, 'create database standby owner heartbeat')
    await query(server.adminUrl, 'alter database standby set default_transaction_read_only = on')
    const [line, ...more] = await failureOf(
      databaseEnvironment(changed(server.url, (copy) => (copy.pathname = '/standby'))),
    )
    expect(line).toMatch(/^DATABASE_URL: .* is read-only/)
    expect(more).toEqual([])
  })

  it.concurrent('that comes up a little later than the service is waited for', async () => {
    await using late = await startPostgresServer({ settings: { fsync: 'off' } })
    await late.stop()
    await using service = spawnService(databaseEnvironment(late.url))
    await service.waitFor(/^waiting for the database at 127\.0\.0\.1:\d+ \.\.\.$/m)
    await late.start()
    const { ping } = await service.ready()
    expect((await sendPing(ping, aPing('00000000-0000-4000-8000-000000000000'))).status).toBe(404)
    expect((await service.stop()).status).toBe(0)
    expect(service.stdout.match(/waiting/g)).toHaveLength(1)
  })
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
    for (const secret of [API_KEY, LOG_IN.password, passwordOf(url)])
      expect(service.stdout + service.stderr).not.toContain(secret)
    expect((await (await createApiClient(service.api, API_KEY)).get('/me')).status).toBe(200)
    expect((await service.stop()).status).toBe(0)
  })
})
