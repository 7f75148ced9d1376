import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { choosePort } from '../../src/embedded-postgres/port.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { databaseEnvironment, spawnService, startService } from '../support/service-process.ts'
import { changed, failureOf, PASSWORD, takePort } from './start-failure.ts'

/** What the program needs around it: ports, and a database. */

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgresServer({ settings: { fsync: 'off' } })
})
afterAll(() => server.remove())

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

async function freeAddress(url: string): Promise<string> {
  await using taken = await takePort()
  return changed(url, (copy) => (copy.port = taken.port))
}

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

  it.concurrent('where nobody listens is given up at once when nobody wants to wait', async () => {
    const url = await freeAddress(server.url)
    await using service = spawnService({ ...databaseEnvironment(url), DATABASE_WAIT_SECONDS: '0' })
    expect((await service.end()).status).toBe(2)
    expect(service.stdout).not.toContain('waiting for the database')
  })

  it.concurrent('with a name that is not known yet is waited for when somebody asks for more patience than usual', async () => {
    const url = `postgres://heartbeat:${PASSWORD}@nowhere.invalid/heartbeat`
    await using service = spawnService({ ...databaseEnvironment(url), DATABASE_WAIT_SECONDS: '11' })
    await service.waitFor(/^waiting for the database at nowhere\.invalid \.\.\.$/m)
    expect((await service.stop()).status).toBe(0)
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
