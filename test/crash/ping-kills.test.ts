import { expect, it } from 'vitest'
import { FLIP_REASONS } from '../../src/domain/check.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../support/api-client.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { createRandom } from '../support/random.ts'
import { replayAll } from '../support/replay.ts'
import { aPing, findMissing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'
import { GIVEN_DURATION_MS, type Job, startJob, wait } from './job.ts'
import { KILLS } from './kills.ts'
import { createReplica } from './replica.ts'

/**
 * Two replicas and their PostgreSQL are killed again and again while jobs ping: acknowledged means committed, and
 * nothing is half done. Kills at every single statement are in statement-kills.test.ts; here they meet groups, other
 * replicas and timers.
 */

const KILL_POSTGRES_EVERY = 5
const LONG_OUTAGE_AFTER = 10
const SEED = Number(process.env.TEST_SEED ?? 20_261_121)

const server = use(startPostgresServer)

const environment = () => ({
  ...databaseEnvironment(server.url),
  RATE_LIMIT_PER_MINUTE: '1000000',
  HISTORY_MAX_PINGS: '1000000',
})

/** Several kinds of checks: what a crash can spoil depends on what is waited for. */
const KINDS: { body: object; silenceMs: number }[] = [
  { body: {}, silenceMs: 0 },
  { body: {}, silenceMs: 0 },
  { body: { schedule: '* * * * *', grace_seconds: 30 }, silenceMs: 0 },
  { body: { period_seconds: 10, grace_seconds: 0 }, silenceMs: 0 },
  { body: { period_seconds: 10, grace_seconds: 1 }, silenceMs: 12_000 },
  { body: { period_seconds: 10, grace_seconds: 0 }, silenceMs: 11_000 },
  { body: { max_runtime_seconds: 1 }, silenceMs: 0 },
  { body: { max_runtime_seconds: 2, period_seconds: 60 }, silenceMs: 3_000 },
]

it(`${KILLS} kills lose nothing that was acknowledged, and leave exactly what the history says`, async () => {
  const random = createRandom(SEED)
  await using one = createReplica(environment)
  await one.started()
  await using two = createReplica(environment)
  const replicas = [one, two]
  await two.started()

  const client = await createApiClient(one.api()!, API_KEY)
  const makeCheck = async (spec: object): Promise<{ id: string; publicId: string }> => {
    const { status, body } = await client.post('/checks', { project_id: PROJECT_ID, name: 'Job', ...spec })
    expect(status).toBe(201)
    return { id: body.id, publicId: body.public_id }
  }
  const checks = []
  for (const { body } of [...KINDS, ...KINDS]) checks.push(await makeCheck(body))
  const hung = await makeCheck({ max_runtime_seconds: 3, grace_seconds: 0 })
  const silent = await makeCheck({ period_seconds: 10, grace_seconds: 0 })
  await sendPing(one.ping()!, aPing(silent.publicId))
  const pickReplica = () =>
    random.pick(replicas.map(({ ping }) => ping()).filter((address) => address !== null)) ?? null
  const jobs: Job[] = checks.map(({ publicId }, index) =>
    startJob({
      publicId,
      random: createRandom(SEED + index),
      pickReplica,
      silenceMs: KINDS[index % KINDS.length]!.silenceMs,
    }),
  )
  const waitForFlip = async (id: string, reason: string) => {
    const database = createDatabase({ url: server.url, name: 'test', connections: 1 })
    const sql = 'select from flips f join checks c on c.key = f.check_key where c.id = $1 and f.reason = $2'
    await eventually(
      `a flip for ${reason}`,
      async () => (await database.query(sql, [id, reason])).rows.length > 0,
      90_000,
    )
    await database.close()
  }
  const startRun = (publicId: string) =>
    eventually(
      'a replica takes the start',
      async () => {
        const replica = pickReplica()
        return (
          replica !== null &&
          (await sendPing(replica, aPing(publicId, { type: 'start', exitCode: null }))).status === 200
        )
      },
      { retryErrors: false },
    )
  const people = startTurning(
    checks.slice(0, 2).map(({ id }) => id),
    () => replicas.map(({ api }) => api()).find((address) => address !== null) ?? null,
  )

  for (let kill = 1; kill <= KILLS; kill += 1) {
    const victim = random.pick(replicas)
    // Now and then in the middle of its start.
    if (random.chance(0.8)) await victim.started()
    await wait(random.int(0, 400))
    await victim.kill()
    if (kill % KILL_POSTGRES_EVERY === 0) {
      await wait(random.int(0, 300))
      // A gap moves deadlines by a minute, so the one that is missed must pass before it.
      if (kill === LONG_OUTAGE_AFTER) await waitForFlip(silent.id, 'missed')
      if (kill === LONG_OUTAGE_AFTER) await startRun(hung.publicId)
      await server.kill()
      // Long enough for a gap: the deadline of the run is in it, and moved.
      if (kill === LONG_OUTAGE_AFTER) await wait(6_500)
      await server.start()
    }
  }
  await Promise.all(replicas.map((replica) => replica.started()))
  await wait(2_000)
  await Promise.all([...jobs.map((job) => job.stop()), people.stop()])
  expect(await Promise.all(replicas.map((replica) => replica.stop()))).toEqual([
    { status: 0, signal: null },
    { status: 0, signal: null },
  ])

  const outcomes = jobs.flatMap((job) => job.outcomes)
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set([200, 503, null]))
  const acknowledged = outcomes.filter(({ status }) => status === 200).map(({ ping }) => ping)
  const database = createDatabase({ url: server.url, name: 'test', connections: 4 })
  expect(await findMissing(database, acknowledged)).toEqual([])
  // Each body was sent once, unless its run id keeps it from being stored twice.
  const { rows: doubled } = await database.query('select body from ping_bodies group by body having count(*) > 1')
  expect(doubled).toEqual([])
  const replayed = await replayAll(database, { isGiven: (durationMs) => durationMs >= GIVEN_DURATION_MS })
  expect(replayed.problems).toEqual([])

  // It is worth something only if all of it happened.
  const { rows } = await database.query<{ reason: string }>('select distinct reason from flips')
  expect(rows.map(({ reason }) => reason).sort()).toEqual(FLIP_REASONS.filter((reason) => reason !== 'outage').sort())
  expect(acknowledged.length).toBeGreaterThan(700)
  expect(people.turned()).toBeGreaterThan(5)
  const { rows: gaps } = await database.query('select from gaps')
  expect(gaps.length).toBeGreaterThan(0)
  const { rows: spared } = await database.query(
    'select from flips f join checks c on c.key = f.check_key where c.id = $1',
    [hung.id],
  )
  expect(spared).toHaveLength(1)
  console.log(
    `${acknowledged.length} pings acknowledged, ${outcomes.length - acknowledged.length} not; replayed ${JSON.stringify({ ...replayed, problems: 0 })}; ${gaps.length} gaps`,
  )
  await database.close()
})

/** A client that pauses and resumes checks by the management API all the time. */
function startTurning(ids: readonly string[], pickReplica: () => string | null) {
  const stopping = new AbortController()
  let turned = 0
  const working = (async () => {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      await wait(150, stopping.signal)
      const base = pickReplica()
      if (base === null) continue
      const verb = round % 4 < 2 ? 'pause' : 'resume'
      const headers = { Authorization: `Bearer ${API_KEY}` }
      const status = await fetch(`${base}/checks/${ids[round % ids.length]}/${verb}`, {
        method: 'PATCH',
        headers,
      }).then(
        (answer) => answer.status,
        () => null,
      )
      expect([200, 503, null]).toContain(status)
      if (status === 200) turned += 1
    }
  })()
  return {
    turned: () => turned,
    async stop() {
      stopping.abort()
      await working
    },
  }
}
