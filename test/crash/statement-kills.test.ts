import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../support/api-client.ts'
import { replayAll } from '../support/replay.ts'
import { aPing, ask, findMissing, type SentPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, type Service } from '../support/service-process.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'
import { type HoldPoint, startStatementProxy } from './statement-proxy.ts'

/**
 * kill -9 between any two statements of each path that changes a check: the service is held before every statement of the path
 * in turn, and after the last one, killed there, and started again. What was acknowledged is stored, and nothing is half done.
 */

interface Path {
  /** The pool whose connections the path uses. */
  readonly pool: string
  readonly spec: object
  /** Brings a new check to where the path begins. */
  prepare(attempt: Attempt): Promise<void>
  /** Begins the path; may fail when the service is killed. */
  act(attempt: Attempt): Promise<unknown>
  /** Completes what a kill interrupted. */
  complete(attempt: Attempt): Promise<unknown>
}

interface Attempt {
  readonly stage: Stage
  service: Service
  readonly id: string
  readonly publicId: string
  /** What was acknowledged in all attempts. */
  readonly acknowledged: SentPing[]
  /** The ping of the path: it can be sent again, as it has a run id. */
  readonly ping: SentPing
}

/** Statements of the same pool that belong to timers. */
const TIMERS = /^beat$|lock_due_states|list_gaps|snapshot|pg_is_in_recovery|read_known_ids/

async function send(attempt: Attempt, ping: SentPing): Promise<boolean> {
  const { status } = await sendPing(attempt.service.ping, ping)
  if (status === 200) attempt.acknowledged.push(ping)
  return status === 200
}

async function turn({ service, id }: Attempt, verb: 'pause' | 'resume'): Promise<boolean> {
  const headers = { Authorization: `Bearer ${API_KEY}` }
  const response = await fetch(`${service.api}/checks/${id}/${verb}`, { method: 'PATCH', headers }).catch(() => null)
  return response?.status === 200
}

const succeed = (attempt: Attempt) =>
  eventually('a success is acknowledged', () => send(attempt, aPing(attempt.publicId)), { retryErrors: false })

const PATHS: [string, Path][] = [
  [
    'a ping that flips the check',
    {
      pool: 'pings',
      spec: {},
      prepare: async (attempt) => void (await succeed(attempt)),
      act: (attempt) => send(attempt, { ...attempt.ping, type: 'fail', exitCode: 1 }),
      complete: (attempt) =>
        eventually('the fail is acknowledged', () => send(attempt, { ...attempt.ping, type: 'fail', exitCode: 1 }), {
          retryErrors: false,
        }),
    },
  ],
  [
    'a ping of a cached check',
    {
      pool: 'pings',
      spec: {},
      async prepare(attempt) {
        for (let i = 0; i < 3; i += 1) await succeed(attempt)
      },
      // Once: a second one would wait for the service that is started after it.
      act: (attempt) => send(attempt, attempt.ping),
      complete: (attempt) =>
        eventually('the ping is acknowledged', () => send(attempt, attempt.ping), { retryErrors: false }),
    },
  ],
  [
    'a pause by the management API',
    {
      pool: 'management',
      spec: {},
      prepare: async (attempt) => void (await succeed(attempt)),
      act: (attempt) => turn(attempt, 'pause'),
      complete: (attempt) =>
        eventually('the pause is acknowledged', () => turn(attempt, 'pause'), { retryErrors: false }),
    },
  ],
]

it.each(PATHS)('kill -9 between any two statements of %s loses and halves nothing', async (_name, path) => {
  await using stage = await openStage()
  await using proxy = await startStatementProxy(stage.url)
  const start = () => stage.startReplica({ DATABASE_URL: proxy.url, RATE_LIMIT_PER_MINUTE: '1000000' })
  const acknowledged: SentPing[] = []
  let service = await start()
  const client = await createApiClient(service.api, API_KEY)
  const config = { url: 'https://localhost:1/unreachable' }
  expect((await client.post('/channels', { kind: 'webhook', name: 'Any', config })).status).toBe(201)

  async function prepare(): Promise<Attempt> {
    const { id, publicId } = await stage.makeCheck(service, path.spec)
    const attempt = { stage, service, id, publicId, acknowledged, ping: aPing(publicId, { runId: randomUUID() }) }
    await path.prepare(attempt)
    return attempt
  }

  // The first call sends statements that later ones do not.
  await path.act(await prepare())
  const recorded = await prepare()
  proxy.takeStatements(path.pool)
  await path.act(recorded)
  await path.complete(recorded)
  const statements = [...new Set(proxy.takeStatements(path.pool))].filter((one) => !TIMERS.test(one))
  const points: HoldPoint[] = statements.map((statement) => ({ statement, side: 'before' }))
  points.push({ statement: 'commit', side: 'after' })

  /** The service has got what it could of the statements before, so that it would acknowledge what it must not. */
  async function untilAnswered(): Promise<void> {
    const busy = `select from pg_stat_activity where datname = current_database() and state = 'active'
      and application_name = 'heartbeat-operator ${path.pool}'`
    await eventually('no statement of ours runs', async () => (await stage.query(busy)).length === 0)
    await ask(`${service.ops}/livez`)
  }

  const database = createDatabase({ url: stage.url, name: 'test', connections: 2 })
  await using _closed = { [Symbol.asyncDispose]: database.close }

  let kills = 0
  for (const point of points) {
    const attempt = await prepare()
    const held = proxy.holdAt(path.pool, point)
    const acting = path.act(attempt).catch(() => null)
    // Some statements come now and then only, such as the note when an API key was used.
    const isHeld = await Promise.race([held.then(() => true), acting.then(() => false)])
    proxy.cancel()
    if (!isHeld) continue
    kills += 1
    await untilAnswered()
    await service.kill()
    await acting
    // Before anything is sent again.
    expect(await findMissing(database, acknowledged), `${point.side} ${point.statement}`).toEqual([])
    service = await start()
    attempt.service = service
    await path.complete(attempt)
  }
  expect(kills).toBeGreaterThan(2)
  await service.stop()

  expect(await findMissing(database, acknowledged)).toEqual([])
  const { rows: doubled } = await database.query('select body from ping_bodies group by body having count(*) > 1')
  expect(doubled).toEqual([])
  const { rows: unnotified } = await database.query(
    `select from flips f where f.reason in ('failed', 'recovered', 'missed', 'overran')
      and (select count(*) from events e join deliveries d on d.event_id = e.id where e.flip_id = f.id) <> 1`,
  )
  expect(unnotified).toEqual([])
  const replayed = await replayAll(database, { isGiven: () => false })
  expect(replayed.problems).toEqual([])
  expect(replayed.checks).toBe(points.length + 2)
})
