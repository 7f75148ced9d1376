import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { createEmptyDatabase } from '../support/database.ts'
import { findFreePort, takePort } from '../support/ports.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, LOG_IN, spawnService, startService } from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { use } from '../support/use.ts'
import { changed, failureOf, PASSWORD } from './start-failure.ts'

/**
 * One fault of each kind that ends the program or makes it wait. Each line that a person reads is tested where it is
 * made: test/unit/config/config.test.ts, test/db/first-connection.test.ts, test/db/embedded-postgres.test.ts and
 * test/http/listen.test.ts.
 */

const STRONG_KEY = createHash('sha256').update('a key').digest('base64')

const temp = use(makeTempFolder)
const database = use(createEmptyDatabase)
const server = use(() => startPostgresServer({ settings: { fsync: 'off' } }))

describe('the program ends with status 2 and one clear message', () => {
  it.concurrent('for several faults of the configuration, listed together', async () => {
    const lines = await failureOf({
      ROLE: 'everything',
      PING_PORT: '99999',
      OPS_PORT: 'x',
      BASE_URL: 'nowhere',
      LOG_LEVEL: 'loud',
      BOOTSTRAP_PROJECT_ID: 'one',
      DATABASE_URL: database.url,
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

  it.concurrent('for secrets that can be guessed, unless only this machine reaches the ports', async () => {
    const key = { BOOTSTRAP_API_KEY: 'hbk_demo_0123456789abcdef0123456789abcdef', SECRET_KEY: STRONG_KEY }
    expect(await failureOf({ ...databaseEnvironment(database.url), ...key, BIND_ADDRESS: '0.0.0.0' })).toEqual([
      'the configuration has a fault:',
      '  BOOTSTRAP_API_KEY can be guessed, because it is an example of the documents: make one with `echo hbk_first_$(openssl rand -hex 20)`. Only a loopback BIND_ADDRESS accepts it',
    ])
    const empty = await createEmptyDatabase()
    const loopback = { ...databaseEnvironment(empty.url), ...key, BIND_ADDRESS: '127.0.0.1', LOG_LEVEL: 'warn' }
    const service = await startService(loopback)
    expect(service.stderr).toContain('BOOTSTRAP_API_KEY can be guessed')
    expect(service.stderr).not.toContain('SECRET_KEY can be guessed')
    await service.kill()
    // Another value of the variable leaves the key of the first start in the database.
    const strong = { SECRET_KEY: STRONG_KEY, BOOTSTRAP_API_KEY: `hbk_first_${Buffer.from(STRONG_KEY).toString('hex')}` }
    const exposed = { ...databaseEnvironment(empty.url), ...strong, BIND_ADDRESS: '192.0.2.1' }
    expect(await failureOf(exposed)).toEqual([
      'the database has an API key that is an example of the documents, "bootstrap", and BIND_ADDRESS is 192.0.2.1: start with a loopback BIND_ADDRESS and revoke the key first',
    ])
    await empty.close()
  })

  it.concurrent('for a port in use', async () => {
    await using taken = await takePort()
    expect(await failureOf({ ...databaseEnvironment(database.url), LOG_LEVEL: 'warn', OPS_PORT: taken.port })).toEqual([
      `port ${taken.port} on 127.0.0.1 is in use: stop what uses it, or set OPS_PORT to another port (0 takes a free one)`,
    ])
  })

  it.concurrent('for a DATABASE_URL with a wrong password', async () => {
    const url = changed(database.url, (copy) => (copy.password = PASSWORD))
    expect(await failureOf(databaseEnvironment(url))).toEqual([
      expect.stringMatching(/^DATABASE_URL: 127\.0\.0\.1:\d+ refuses user \w+ or the password: correct them$/),
    ])
  })

  it.concurrent('for a DATA_DIR that is a file', async () => {
    const dataDir = join(temp.path, 'a-file')
    await writeFile(dataDir, '')
    expect(await failureOf({ DATA_DIR: dataDir })).toEqual([
      `data folder ${dataDir} is not a folder: remove the file in its place, or set DATA_DIR to another folder`,
    ])
  })
})

describe('a database that is not there yet', () => {
  it.concurrent('is not waited for with DATABASE_WAIT_SECONDS=0', async () => {
    const url = changed(database.url, (copy) => Object.assign(copy, { port: '1' }))
    await using service = spawnService({ ...databaseEnvironment(url), DATABASE_WAIT_SECONDS: '0' })
    expect((await service.end()).status).toBe(2)
    expect(service.stdout).not.toContain('waiting for the database')
  })

  it.concurrent('is waited for, also by an unknown name, with a longer wait than the default', async () => {
    const url = `postgres://heartbeat:${PASSWORD}@nowhere.invalid/heartbeat`
    await using service = spawnService({ ...databaseEnvironment(url), DATABASE_WAIT_SECONDS: '11' })
    await service.waitFor(/^waiting for the database at nowhere\.invalid \.\.\.$/m)
    expect((await service.stop()).status).toBe(0)
  })

  it.concurrent('is waited for by default, and served when it comes', async () => {
    await server.stop()
    await using service = spawnService(databaseEnvironment(server.url))
    await service.waitFor(/^waiting for the database at 127\.0\.0\.1:\d+ \.\.\.$/m)
    await server.start()
    const { ping } = await service.ready()
    expect((await sendPing(ping, aPing('00000000-0000-4000-8000-000000000000'))).status).toBe(404)
    expect((await service.stop()).status).toBe(0)
    expect(service.stdout.match(/waiting/g)).toHaveLength(1)
  })
})

describe('the first start', () => {
  it.concurrent('takes a given port and given secrets, and prints no secret', async () => {
    const port = await findFreePort()
    await using service = await startService({ ...databaseEnvironment(database.url), PING_PORT: port })
    expect(service.ping).toBe(`http://127.0.0.1:${port}`)
    for (const secret of [API_KEY, LOG_IN.password, new URL(database.url).password])
      expect(service.stdout + service.stderr).not.toContain(secret)
    expect((await (await createApiClient(service.api, API_KEY)).get('/me')).status).toBe(200)
    expect((await service.stop()).status).toBe(0)
  })
})
