import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { poll, query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import {
  API_KEY,
  databaseEnvironment,
  PROJECT_ID,
  type Service,
  type ServiceProcess,
  startService,
} from '../support/service-process.ts'

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

/** The one that exports, and the other one, which does not. */
async function startTwo(): Promise<[Service, Service]> {
  const first = await start()
  await poll(() => exports(first), TAKEN_OVER_MS)
  const second = await start()
  expect([await exports(first), await exports(second)]).toEqual([true, false])
  return [first, second]
}

it('when it is killed another one takes over, and the killed one comes back without it', async () => {
  const [killed, other] = await startTwo()
  await using _other = killedAfter(other)
  const killedAt = performance.now()
  await killed.kill()
  await poll(() => exports(other), TAKEN_OVER_MS)
  console.log(`taken over ${Math.round(performance.now() - killedAt)} ms after kill -9`)
  await using again = await start()
  expect(await exports(again)).toBe(false)
  expect(await exports(other)).toBe(true)
})

it('when it stops it hands over first, and serves what else there is while it drains', async () => {
  const leaving = await start({ DRAIN_SECONDS: '300' })
  await using _ended = killedAfter(leaving)
  await poll(() => exports(leaving), TAKEN_OVER_MS)
  await using other = await start()
  // So long that nobody takes it before it is given back.
  await query(server.url, `update exporter set expires_at = now() + interval '1 hour'`)
  leaving.signal('SIGTERM')
  await poll(() => exports(other), TAKEN_OVER_MS)
  expect(await exports(leaving)).toBe(false)
})

it('when it is frozen another one takes over, and it tells nothing once it goes on', async () => {
  const [frozen, other] = await startTwo()
  await using _one = killedAfter(frozen)
  await using _other = killedAfter(other)
  frozen.signal('SIGSTOP')
  await poll(() => exports(other), TAKEN_OVER_MS)
  frozen.signal('SIGCONT')
  expect([await exports(frozen), await exports(other)]).toEqual([false, true])
})

it('while the database is away nobody exports, and everything else is there', async () => {
  await using service = await start()
  await poll(() => exports(service), TAKEN_OVER_MS)
  await server.kill()
  expect(await exports(service)).toBe(false)
  await server.start()
  await poll(() => exports(service), TAKEN_OVER_MS)
})

function killedAfter(service: ServiceProcess): AsyncDisposable {
  return { [Symbol.asyncDispose]: () => service.kill() }
}
