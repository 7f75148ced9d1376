import { beforeAll, expect, it } from 'vitest'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import type { Log } from '../../src/runtime/log.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { silentLog } from '../support/silent-log.ts'
import { use } from '../support/use.ts'

const server = use(startPostgresServer)
beforeAll(async () => {
  const database = createDatabase({ url: server.url, name: 'migrate', connections: 1, patient: true })
  await migrate(database)
  await database.close()
})

function createTestApp(environment = {}, log = silentLog) {
  const config = readConfig(
    { SPOOL_MAX_BYTES: '0', PING_PORT: '0', API_PORT: '0', OPS_PORT: '0', ...environment },
    false,
  )
  return createApp({ config, databaseUrl: server.url, secretKey: Buffer.alloc(32, 1), log })
}

it('a start that the database leaves in the middle goes on when it is back', async () => {
  const app = createTestApp()
  await server.kill()
  const starting = app.start()
  await server.start()
  const { listening } = await starting
  expect((await fetch(`${listening.ops}/readyz`)).status).toBe(200)
  await app.stop()
})

it('a start without its database ends with the signal', async () => {
  const app = createTestApp()
  await server.kill()
  const stopping = new AbortController()
  const starting = app.start(stopping.signal)
  stopping.abort()
  await expect(starting).rejects.toThrow('cannot reach its database')
  await app.stop()
  await server.start()
})

it('a start warns once of what is sent unencrypted', async () => {
  const warnings: unknown[] = []
  // On a busy machine there may be another warning: of a gap since the beat of the last test.
  const warn = (fields: object, message: string) => 'unencrypted' in fields && warnings.push({ ...fields, message })
  const app = createTestApp({ PING_URL: 'http://ping.example.com' }, { ...silentLog, warn } as unknown as Log)
  await app.start()
  await app.stop()
  const message = expect.stringMatching(/^sent unencrypted;/)
  expect(warnings).toEqual([{ unencrypted: [expect.stringContaining('PING_URL is http')], message }])

  const other = createTestApp({}, { ...silentLog, warn } as unknown as Log)
  await other.start()
  await other.stop()
  expect(warnings).toHaveLength(1)
})
