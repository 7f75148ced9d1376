import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import {
  API_KEY,
  databaseEnvironment,
  PROJECT_ID,
  type Service,
  type ServiceProcess,
  startService,
} from '../support/service-process.ts'
import { until } from '../support/until.ts'

/** Of all replicas one exports the series of the checks, whatever becomes of it. */

const SERIES = /^heartbeat_check_status\{.*check="job".*\} [01]$/gm
/** Five seconds of its lease, the next one's turn within a second of that, and a slow machine. */
const TAKEN_OVER_MS = 15_000

let server: PostgresServer

beforeAll(async () => {
  server = await startPostgresServer()
  await using service = await startService(databaseEnvironment(server.url))
  const client = await createApiClient(service.api, API_KEY)
  await client.post('/checks', { project_id: PROJECT_ID, name: 'Job' })
  await service.stop()
})
afterAll(() => server.remove())

const start = (environment: Record<string, string> = {}) =>
  startService({ ...databaseEnvironment(server.url), ...environment })

async function exports({ ops }: Service): Promise<boolean> {
  const answer = await fetch(`${ops}/metrics`)
  const text = await answer.text()
  expect(answer.status).toBe(200)
  const series = text.match(SERIES)?.length ?? 0
  const isActive = text.includes('\nheartbeat_exporter_active 1\n')
  expect(series).toBe(isActive ? 5 : 0)
  return isActive
}

async function isLeaseFree(): Promise<boolean> {
  return (await query(server.url, 'select from exporter where expires_at > now()')).length === 0
}

/** The one that exports, and the other one, which does not. */
async function startTwo(): Promise<[Service, Service]> {
  const first = await start()
  await until(() => exports(first), TAKEN_OVER_MS)
  const second = await start()
  expect([await exports(first), await exports(second)]).toEqual([true, false])
  return [first, second]
}

it('when it is killed another one takes over, and the killed one comes back without it', async () => {
  const [killed, other] = await startTwo()
  await using _other = killedAfter(other)
  const killedAt = performance.now()
  await killed.kill()
  await until(() => exports(other), TAKEN_OVER_MS)
  console.log(`taken over ${Math.round(performance.now() - killedAt)} ms after kill -9`)
  await using again = await start()
  expect(await exports(again)).toBe(false)
  expect(await exports(other)).toBe(true)
})

it('when it stops it hands over first, and serves what else there is while it drains', async () => {
  const leaving = await start({ DRAIN_SECONDS: '300' })
  await using _ended = killedAfter(leaving)
  await until(() => exports(leaving), TAKEN_OVER_MS)
  await using other = await start()
  const [lease] = await query(server.url, 'select holder from exporter')
  leaving.signal('SIGTERM')
  await until(async () => {
    // It never runs out, whoever renews it when: the other one has it because it was given back, or not at all.
    await query(
      server.url,
      `update exporter set expires_at = now() + interval '1 hour' where holder = '${lease!.holder}'`,
    )
    return exports(other)
  }, TAKEN_OVER_MS)
  expect(await exports(leaving)).toBe(false)
})

it('when it is frozen another one takes over, and it tells nothing once it goes on', async () => {
  const [frozen, other] = await startTwo()
  await using _one = killedAfter(frozen)
  await using _other = killedAfter(other)
  frozen.signal('SIGSTOP')
  await until(() => exports(other), TAKEN_OVER_MS)
  frozen.signal('SIGCONT')
  expect([await exports(frozen), await exports(other)]).toEqual([false, true])
})

it('while it is not ready it lets the lease run out, and takes it again once it is', async () => {
  await using service = await start()
  await until(() => exports(service), TAKEN_OVER_MS)
  const database = createDatabase({ url: server.url, name: 'test', connections: 1, patient: true })
  await using _closed = { [Symbol.asyncDispose]: database.close }
  await database.transaction(async (tx) => {
    // No beat, so it is not ready, though it could still write its lease.
    await tx.query('lock table service_beat in access exclusive mode')
    await until(async () => (await fetch(`${service.ops}/readyz`)).status === 503, TAKEN_OVER_MS)
    await until(isLeaseFree, TAKEN_OVER_MS)
    expect(await exports(service)).toBe(false)
  })
  await until(() => exports(service), TAKEN_OVER_MS)
  expect((await fetch(`${service.ops}/readyz`)).status).toBe(200)
})

it('while the database is away nobody exports, and everything else is there', async () => {
  await using service = await start()
  await until(() => exports(service), TAKEN_OVER_MS)
  await server.kill()
  expect(await exports(service)).toBe(false)
  await server.start()
  await until(() => exports(service), TAKEN_OVER_MS)
})

function killedAfter(service: ServiceProcess): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => service.kill() }
}
