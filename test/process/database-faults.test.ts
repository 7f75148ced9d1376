import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/database.ts'
import { type ApiClient, createApiClient } from '../support/api-client.ts'
import { poll, query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, ask, createAgent, findMissing, type Outcome, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from '../support/service-process.ts'
import { startTrickle, type Trickle } from './trickle.ts'

/**
 * One replica lives through everything that can be wrong with its database, in one life, while jobs go on pinging. A job
 * hears 200 or, within five seconds, 503 with Retry-After: never 404 or 500, and never silence.
 */

const PROMISED_MS = 5_000
/** From the moment the database is well to the moment the service says so of itself. */
const RECOVERY_MS = 8_000
const MAX_CONNECTIONS = 25
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

let server: PostgresServer
let service: Service
let client: ApiClient
let checks: { id: string; key: number; publicId: string }[]
let trickle: Trickle
const acknowledged: Outcome[] = []

beforeAll(async () => {
  server = await startPostgresServer({ settings: { max_connections: String(MAX_CONNECTIONS) } })
  service = await startService({ ...databaseEnvironment(server.url), RATE_LIMIT_PER_MINUTE: '1000000' })
  client = await createApiClient(service.api, API_KEY)
  checks = []
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
  acknowledged.push(...trickle.outcomes.filter(({ status }) => status === 200))
  for (const outcome of trickle.outcomes) assertPromised(outcome)
})

function assertPromised({ ping, status, retryAfter, ms, error }: Outcome): void {
  const good = ping.publicId === UNKNOWN ? 404 : 200
  expect({ status, error }).toEqual({ status: status === good ? good : 503, error: null })
  if (status === 503) expect(Number(retryAfter)).toBeGreaterThan(0)
  expect(ms).toBeLessThan(PROMISED_MS)
}

const statusOf = async (path: string) => (await ask(service.ops + path)).status
const isReady = async () => (await statusOf('/readyz')) === 200

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
  expect({
    live: live.status,
    ready: ready.status,
    metrics: metrics.status,
    api: api.status,
    ping: ping.status,
  }).toEqual({ live: 200, ready: 503, metrics: 200, api: api.status, ping: 503 })
  // Whether there is such a check nobody can tell while the database cannot be asked.
  if (!isReadable) expect({ api: api.status, unknown: unknown.status }).toEqual({ api: 503, unknown: 503 })
  if (api.status === 503) expect(api.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(metrics.text).toMatch(/^heartbeat_pings_total\{type="success",result="unavailable"\} [1-9]/m)
  expect(live.ms).toBeLessThan(1_000)
  expect(ready.ms).toBeLessThan(1_000)
  expect(performance.now() - startedAt).toBeLessThan(PROMISED_MS)
}

interface Fault {
  begin(): Promise<unknown>
  end(): Promise<unknown>
  lastsMs?: number
  /** It can be asked, though nothing can be stored. */
  isReadable?: boolean
}

/** The service must be out during the fault and back after it, by itself. */
async function live(fault: Fault): Promise<void> {
  const { lastsMs = 0, isReadable = false } = fault
  const before = performance.now()
  await poll(isReady)
  await poll(() => trickle.outcomes.some(({ status, sentAt }) => status === 200 && sentAt > before))
  const startedAt = performance.now()
  await fault.begin()
  try {
    await poll(() => trickle.since(startedAt).some(({ status }) => status === 503))
    await poll(async () => !(await isReady()))
    await assertOut(isReadable)
    // Pings that are sent in the middle of it, too, not only those that it met.
    await poll(() => performance.now() - startedAt > lastsMs)
    await assertOut(isReadable)
  } finally {
    await fault.end()
  }
  const endedAt = performance.now()
  await poll(isReady, RECOVERY_MS)
  await poll(() => trickle.since(endedAt).some(({ status }) => status === 200), RECOVERY_MS)
  expect((await client.get(`/checks/${checks[0]!.id}`)).status).toBe(200)
  // What lasted long enough is on record as our own downtime, also when the beat's own row could have been written.
  if (endedAt - startedAt < 8_000) return
  const elapsedMs = performance.now() - startedAt
  expect(
    await query(
      server.url,
      `select from gaps where ended_at > clock_timestamp() - ${elapsedMs} * interval '1 millisecond'`,
    ),
  ).toHaveLength(1)
}

/** Our connections, without those of the test. */
const OURS = `application_name like 'heartbeat-operator %'`

describe('the database', () => {
  it('is killed', () => live({ begin: () => server.kill(), end: () => server.start() }))

  it('hangs', () => live({ begin: () => server.pause(), end: () => server.resume(), lastsMs: 9_000 }))

  it('hangs for a moment: nobody hears of it but those who wait', async () => {
    await poll(isReady)
    const startedAt = performance.now()
    await server.pause()
    await poll(() => performance.now() - startedAt > 1_500)
    await server.resume()
    const endedAt = performance.now()
    await poll(() => trickle.since(endedAt).some(({ status }) => status === 200), RECOVERY_MS)
    await trickle.stop()
    expect(trickle.outcomes.filter(({ status }) => status === 503)).toEqual([])
  })

  it('is read-only', () =>
    live({
      begin: () => alterSystem(`alter system set default_transaction_read_only = on`),
      end: () => alterSystem(`alter system reset default_transaction_read_only`),
      isReadable: true,
    }))

  it('lets the user connect no more', () =>
    live({
      begin: async () => {
        await query(server.adminUrl, 'alter role heartbeat connection limit 0')
        await query(server.adminUrl, `select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
      },
      end: async () => {
        await query(server.adminUrl, 'alter role heartbeat connection limit -1')
        // Whoever reads the log learns from it what PostgreSQL said.
        expect(service.stderr).toContain('too many connections for role')
      },
    }))

  it('has all its connections taken by others', async () => {
    const admin = await connect(server.adminUrl)
    const hogs = [admin]
    await live({
      async begin() {
        // Each of the service's that ends leaves a place, a little after it is gone from the view; the service and we race for it.
        let refusals = 0
        await poll(async () => {
          const { rowCount } = await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
          const place = await connect(server.url).catch(() => null)
          if (place !== null) hogs.push(place)
          refusals = rowCount === 0 && place === null ? refusals + 1 : 0
          return refusals === 20
        })
      },
      end: () => Promise.all(hogs.map((hog) => hog.end())),
    })
  })

  it('hangs in a statement, which it cancels itself', () =>
    live({
      begin: () =>
        query(
          server.url,
          `create function hang() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
           create trigger hang before insert on pings for each row execute function hang()`,
        ),
      end: () => query(server.url, 'drop function hang cascade'),
      lastsMs: 9_000,
      isReadable: true,
    }))

  async function alterSystem(sql: string) {
    await query(server.adminUrl, sql)
    await query(server.adminUrl, 'select pg_reload_conf()')
  }
})

describe('somebody', () => {
  it('holds the row of one check: its job is told to try again, the others hear nothing of it', async () => {
    const [held, ...others] = checks
    const holder = await connect(server.url)
    await holder.query('begin')
    await holder.query('select from check_states where check_key = $1 for update', [held!.key])
    const startedAt = performance.now()
    await poll(
      () =>
        trickle.since(startedAt).filter(({ ping, status }) => ping.publicId === held!.publicId && status === 503)
          .length >= 3,
    )
    await trickle.stop()
    const during = trickle.since(startedAt)
    for (const { publicId } of others)
      expect(new Set(during.filter(({ ping }) => ping.publicId === publicId).map(({ status }) => status))).toEqual(
        new Set([200]),
      )
    expect(await statusOf('/readyz')).toBe(200)
    expect((await client.patch(`/checks/${held!.id}/pause`)).status).toBe(503)
    await holder.query('rollback')
    await holder.end()
    expect((await sendPing(service.ping, aPing(held!.publicId))).status).toBe(200)
  })

  it('holds the table of pings: every job is told to try again, and served when it is free', async () => {
    const holder = await connect(server.url)
    await holder.query('begin')
    await holder.query('lock table pings in access exclusive mode')
    const startedAt = performance.now()
    await poll(() => trickle.since(startedAt).filter(({ status }) => status === 503).length >= 20)
    await holder.query('rollback')
    await holder.end()
    const endedAt = performance.now()
    await poll(() => trickle.since(endedAt).some(({ status }) => status === 200), RECOVERY_MS)
    await poll(isReady, RECOVERY_MS)
  })

  it('cancels a statement of ours', async () => {
    const startedAt = performance.now()
    await holdUp(async (admin) => {
      const { rows } = await admin.query(
        `select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'heartbeat-operator pings' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    await poll(() => trickle.since(startedAt).some(({ status }) => status === 503))
    await assertServing()
  })

  it('terminates a connection of ours in the middle of a group', async () => {
    await holdUp(async (admin) => {
      const { rows } = await admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'heartbeat-operator pings' and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    await assertServing()
  })

  it('terminates all our connections again and again', async () => {
    const admin = await connect(server.adminUrl)
    // At every moment of a connection's life: while it is opened, idle, in a group, in a call of the management API.
    let isOver = false
    const busy = Array.from({ length: 8 }, async (_, index) => {
      const agent = createAgent()
      const { id, publicId } = checks[index % checks.length]!
      const outcomes: Outcome[] = []
      while (!isOver) {
        if (index < 2) expect([200, 503]).toContain((await client.get(`/checks/${id}`)).status)
        else outcomes.push(await sendPing(service.ping, aPing(publicId), agent))
      }
      agent.destroy()
      return outcomes
    })
    for (let round = 0; round < 1_000; round += 1) {
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
    }
    await admin.end()
    isOver = true
    for (const outcome of (await Promise.all(busy)).flat()) {
      assertPromised(outcome)
      if (outcome.status === 200) acknowledged.push(outcome)
    }
    await assertServing()
  })

  /** While the row of the first check is held, until `act` has found a statement of ours that waits for it. */
  async function holdUp(act: (admin: pg.Client) => Promise<boolean>) {
    const [holder, admin] = [await connect(server.url), await connect(server.adminUrl)]
    await holder.query('begin')
    await holder.query('select from check_states where check_key = $1 for update', [checks[0]!.key])
    await poll(() => act(admin))
    await holder.query('rollback')
    await Promise.all([holder.end(), admin.end()])
  }

  async function assertServing() {
    const since = performance.now()
    await poll(() => trickle.since(since).some(({ status }) => status === 200), RECOVERY_MS)
    await poll(isReady, RECOVERY_MS)
  }
})

describe('after all of that', () => {
  it('it is the same process, nothing acknowledged is missing, and it ends in order', async () => {
    await trickle.stop()
    acknowledged.push(...trickle.outcomes.filter(({ status }) => status === 200))
    const database = createDatabase({ url: server.url, name: 'test', connections: 1 })
    expect(acknowledged.length).toBeGreaterThan(100)
    expect(
      await findMissing(
        database,
        acknowledged.map(({ ping }) => ping),
      ),
    ).toEqual([])
    await database.close()
    expect(await service.stop(), service.stderr.slice(-4_000)).toEqual({ status: 0, signal: null })
  })
})

async function connect(url: string): Promise<pg.Client> {
  const connected = new pg.Client({ connectionString: url, application_name: 'test' })
  // Killed servers and terminated backends are what these tests are about.
  connected.on('error', () => {})
  await connected.connect()
  return connected
}
