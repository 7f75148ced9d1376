import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { type ApiClient, createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, ask, findMissing, type Outcome, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { startTrickle, type Trickle } from './trickle.ts'

/**
 * One replica that lives through all the tests of a file, while jobs go on pinging. A job hears 200 or, within five seconds,
 * 503 with Retry-After: never 404 or 500, and never silence.
 */
export interface Life {
  readonly server: PostgresServer
  readonly service: Service
  readonly client: ApiClient
  readonly checks: readonly { readonly id: string; readonly key: number; readonly publicId: string }[]
  /** Of the test at hand. */
  readonly trickle: Trickle
  isReady(): Promise<boolean>
  /** The service must be out during the fault and back after it, by itself. */
  outlive(fault: Fault): Promise<void>
  /** It takes pings again, and says so. */
  assertServing(): Promise<void>
  /** Fails when an answer is not one that we promise; those that acknowledge are remembered. */
  keep(outcomes: readonly Outcome[]): void
  /** The last test: it is still the same process, everything acknowledged is stored, and it ends in order. */
  assertNothingLost(): Promise<void>
}

export interface Fault {
  begin(): Promise<unknown>
  end(): Promise<unknown>
  lastsMs?: number
  /** It can be asked, though nothing can be stored. */
  isReadable?: boolean
}

const PROMISED_MS = 5_000
/** From the moment the database is well to the moment the service says so of itself. */
const RECOVERY_MS = 8_000
/** Few enough for a test to take them all. */
const MAX_CONNECTIONS = 25
const UNKNOWN = '00000000-0000-4000-8000-000000000000'
/** The service's connections, without those of the test. */
export const OURS = `application_name like 'heartbeat-operator %'`

/** Registers the hooks of the file. */
export function liveThroughFaults(): Life {
  let server: PostgresServer
  let service: Service
  let client: ApiClient
  let trickle: Trickle
  const checks: { id: string; key: number; publicId: string }[] = []
  const acknowledged: Outcome[] = []

  beforeAll(async () => {
    server = await startPostgresServer({ settings: { max_connections: String(MAX_CONNECTIONS) } })
    service = await startService({ ...databaseEnvironment(server.url), RATE_LIMIT_PER_MINUTE: '1000000' })
    client = await createApiClient(service.api, API_KEY)
    for (let i = 0; i < 5; i += 1) {
      const { body } = await client.post('/checks', { project_id: PROJECT_ID, name: `Job ${i}` })
      const [row] = await query(server.url, `select key from checks where id = '${body.id}'`)
      checks.push({ id: body.id, publicId: body.public_id, key: Number(row!.key) })
    }
  })
  afterAll(async () => {
    await service?.kill()
    await server?.remove()
  })
  beforeEach(() => {
    trickle = startTrickle(service.ping, [...checks.map(({ publicId }) => publicId), UNKNOWN])
  })
  afterEach(async () => {
    await trickle.stop()
    keep(trickle.outcomes)
  })

  const isReady = async () => (await ask(`${service.ops}/readyz`)).status === 200
  /** A fault may need a while to begin: until then pings are stored, and so is the beat. */
  const storedAt = ({ status, sentAt, ms }: Outcome) => (status === 200 ? sentAt + ms : 0)
  const isServed = (since: number) => trickle.since(since).some(({ status }) => status === 200)

  function keep(outcomes: readonly Outcome[]): void {
    for (const { ping, status, retryAfter, ms, error } of outcomes) {
      const good = ping.publicId === UNKNOWN ? 404 : 200
      expect({ status, error }).toEqual({ status: status === good ? good : 503, error: null })
      if (status === 503) expect(Number(retryAfter)).toBeGreaterThan(0)
      expect(ms).toBeLessThan(PROMISED_MS)
    }
    acknowledged.push(...outcomes.filter(({ status }) => status === 200))
  }

  /** Everything that a replica without a database still does, and what it no longer does. */
  async function assertOut(isReadable: boolean): Promise<void> {
    const startedAt = performance.now()
    const [live, ready, metrics, api, ping, unknown] = await Promise.all([
      ask(`${service.ops}/livez`),
      ask(`${service.ops}/readyz`),
      ask(`${service.ops}/metrics`),
      client.get(`/checks/${checks[0]!.id}`),
      sendPing(service.ping, aPing(checks[0]!.publicId)),
      sendPing(service.ping, aPing(UNKNOWN)),
    ])
    const statuses = { live: live.status, ready: ready.status, metrics: metrics.status, ping: ping.status }
    expect(statuses).toEqual({ live: 200, ready: 503, metrics: 200, ping: 503 })
    // Without the database the service cannot know whether the check exists.
    if (!isReadable) expect({ api: api.status, unknown: unknown.status }).toEqual({ api: 503, unknown: 503 })
    if (api.status === 503) expect(api.headers.get('retry-after')).toMatch(/^\d+$/)
    expect(metrics.text).toMatch(/^heartbeat_pings_total\{type="success",result="unavailable"\} [1-9]/m)
    // Neither waits for the database.
    expect(Math.max(live.ms, ready.ms)).toBeLessThan(PROMISED_MS / 2)
    expect(performance.now() - startedAt).toBeLessThan(PROMISED_MS)
  }

  async function assertServing(): Promise<void> {
    const since = performance.now()
    await eventually('pings are served', () => isServed(since), RECOVERY_MS)
    await eventually('the service is ready', isReady, RECOVERY_MS)
  }

  async function outlive({ begin, end, lastsMs = 0, isReadable = false }: Fault): Promise<void> {
    await assertServing()
    const startedAt = performance.now()
    await begin()
    try {
      await eventually('a ping is refused', () => trickle.since(startedAt).some(({ status }) => status === 503))
      await eventually('the service is not ready', async () => !(await isReady()))
      await assertOut(isReadable)
      // Pings that are sent in the middle of it, too, not only those that it met.
      await eventually('the fault has lasted long enough', () => performance.now() - startedAt > lastsMs)
      await assertOut(isReadable)
    } finally {
      await end()
    }
    const lastedMs = performance.now() - Math.max(startedAt, ...trickle.since(startedAt).map(storedAt))
    await assertServing()
    expect((await client.get(`/checks/${checks[0]!.id}`)).status).toBe(200)
    // What lasted long enough is on record as our own downtime, also when the beat's own row could have been written.
    if (lastedMs > 6_500) expect(await countGaps(performance.now() - startedAt)).toBe(1)
  }

  async function countGaps(lastMs: number): Promise<unknown> {
    const since = `clock_timestamp() - ${lastMs} * interval '1 millisecond'`
    const [row] = await query(server.url, `select count(*)::int as count from gaps where ended_at > ${since}`)
    return row!.count
  }

  async function assertNothingLost(): Promise<void> {
    await trickle.stop()
    expect(acknowledged.length).toBeGreaterThan(50)
    const database = createDatabase({ url: server.url, name: 'test', connections: 1 })
    const pings = acknowledged.map(({ ping }) => ping)
    expect(await findMissing(database, pings)).toEqual([])
    await database.close()
    expect(await service.stop(), service.stderr.slice(-4_000)).toEqual({ status: 0, signal: null })
  }

  return {
    get server() {
      return server
    },
    get service() {
      return service
    },
    get client() {
      return client
    },
    get trickle() {
      return trickle
    },
    checks,
    isReady,
    outlive,
    assertServing,
    keep,
    assertNothingLost,
  }
}

export async function connect(url: string): Promise<pg.Client> {
  const connected = new pg.Client({ connectionString: url, application_name: 'test' })
  // Killed servers and terminated backends are what these tests are about.
  connected.on('error', () => {})
  await connected.connect()
  return connected
}
