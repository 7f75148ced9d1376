import { describe, expect, it } from 'vitest'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { ask } from '../support/sent-pings.ts'
import type { Service } from '../support/service-process.ts'
import { isReady, openStage, type Stage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'
import { letTimePass } from './time-shift.ts'

/** Our own downtime notifies no channel (design, section 4, "Own downtime"), and a job that is really dead is found afterwards. */

const PATIENCE_MS = 45_000

interface State {
  readonly status: string
  readonly expected: number
  readonly due: number
  readonly runs: { readonly deadlineAt: number }[] | null
}

const keyOf = ({ id }: { id: string }) => `(select key from checks where id = '${id}')`

async function stateOf(stage: Stage, check: { id: string }): Promise<State> {
  const [row] = await stage.query(
    `select (array['new', 'up', 'down', 'paused'])[status + 1] as status, extract(epoch from expected_at)::float8 * 1000 as expected, extract(epoch from due_at)::float8 * 1000 as due, runs
      from check_states where check_key = ${keyOf(check)}`,
  )
  return row as unknown as State
}

/** One column of the check's rows, oldest first. */
const listOf = async (stage: Stage, check: { id: string }, column: 'reason' | 'type') => {
  const table = column === 'reason' ? 'flips' : 'events'
  const rows = await stage.query(`select ${column} from ${table} where check_key = ${keyOf(check)} order by id`)
  return rows.map((row) => row[column])
}

/** When a replica last wrote that pings can be stored: there a gap begins. */
const beatOf = async (stage: Stage) =>
  (await stage.query('select extract(epoch from beat_at)::float8 * 1000 as at from service_beat'))[0]!.at as number

const listGaps = async (stage: Stage) =>
  (await stage.query(
    'select extract(epoch from started_at)::float8 * 1000 as "startedAt", extract(epoch from ended_at)::float8 * 1000 as "endedAt" from gaps order by id',
  )) as { startedAt: number; endedAt: number }[]

const untilDown = (stage: Stage, check: { id: string }) =>
  eventually('the check is down', async () => (await stateOf(stage, check)).status === 'down', PATIENCE_MS)

/** Long enough for a gap, which begins with the last beat. */
const waitOutGap = (since: number) => eventually('a gap has passed', () => performance.now() - since > 5_500)
const EVERY_TEN_SECONDS = { period_seconds: 10, grace_seconds: 0 }

describe('a database that is away for more than five seconds', () => {
  it.concurrent.each<
    [string, (server: PostgresServer) => Promise<void>, (server: PostgresServer) => Promise<void>, RegExp]
  >([
    ['killed', (server) => server.kill(), (server) => server.start(), /^heartbeat_gaps_total 1$/m],
    // A beat that the replica gave up may still be carried out when the server goes on: on record, and not counted.
    ['hung', (server) => server.pause(), (server) => server.resume(), /^heartbeat_gaps_total [01]$/m],
  ])('(%s) is a gap: a deadline in it is moved, and passes afterwards', async (_name, begin, end, counted) => {
    await using server = await startPostgresServer()
    await using stage = await openStage(server.url)
    const service = await stage.startReplica()
    const dead = await stage.makeCheck(service, EVERY_TEN_SECONDS)
    const alive = await stage.makeCheck(service, EVERY_TEN_SECONDS)
    expect([await dead.ping(service), await alive.ping(service)]).toEqual([200, 200])
    // The deadline is four seconds away: not before the gap, and in it.
    await letTimePass(stage.url, 6_000, false)
    const before = await beatOf(stage)
    await begin(server)
    // While the processes of the server are listed, one of them may still write a beat.
    const [begunAt, startedAt] = [Date.now() + 1, performance.now()]
    await waitOutGap(startedAt)
    await end(server)
    await eventually('the service is ready', () => isReady(service), PATIENCE_MS)
    expect(await eventually('a ping is answered', () => alive.ping(service))).toBe(200)

    const [gap, ...more] = await eventually('a gap is stored', async () =>
      (await listGaps(stage)).length > 0 ? listGaps(stage) : null,
    )
    expect(more).toEqual([])
    expect(gap!.endedAt - gap!.startedAt).toBeGreaterThan(5_000)
    expect(gap!.startedAt).toBeGreaterThanOrEqual(before)
    expect(gap!.startedAt).toBeLessThanOrEqual(begunAt)
    expect((await ask(`${service.ops}/metrics`)).text).toMatch(counted)
    // The deadline was in the gap, and the evaluator has looked.
    const { status } = await eventually('the check is due a minute after the gap', async () =>
      (await stateOf(stage, dead)).due > gap!.endedAt + 59_000 ? stateOf(stage, dead) : null,
    )
    expect(status).toBe('up')
    for (const check of [dead, alive])
      expect(await listOf(stage, check, 'reason')).toEqual(['created', 'first_success'])

    await letTimePass(stage.url, 70_000, false)
    await untilDown(stage, dead)
    expect(await listOf(stage, dead, 'reason')).toEqual(['created', 'first_success', 'missed'])
    expect(await listOf(stage, dead, 'type')).toEqual(['check.down'])
  })
})

describe('every replica', () => {
  it.concurrent.each<[string, (service: Service) => Promise<unknown>]>([
    ['stopped in order', (service) => service.stop()],
    ['killed', (service) => service.kill()],
  ])('%s for ten minutes is one gap: an interval in it is excused, and the next one counts', async (_name, stop) => {
    await using stage = await openStage()
    const replicas = await Promise.all([stage.startReplica(), stage.startReplica()])
    const [first] = replicas
    const hidden = await stage.makeCheck(first, { period_seconds: 120, grace_seconds: 60 })
    const later = await stage.makeCheck(first, { period_seconds: 3_600, grace_seconds: 60 })
    const running = await stage.makeCheck(first, { max_runtime_seconds: 30 })
    const start = { type: 'start', exitCode: null } as const
    expect([await hidden.ping(first), await later.ping(first), await running.ping(first, start)]).toEqual([
      200, 200, 200,
    ])
    await Promise.all(replicas.map(stop))
    const stoppedAt = await beatOf(stage)
    await letTimePass(stage.url, 600_000, true)
    const [again] = await Promise.all([stage.startReplica(), stage.startReplica()])

    const [gap, ...more] = await listGaps(stage)
    expect(more).toEqual([])
    expect(gap!.startedAt).toBeCloseTo(stoppedAt - 600_000, 0)
    expect(gap!.endedAt - gap!.startedAt).toBeGreaterThan(599_000)

    // We cannot know whether it ran: that is on record, and no channel hears of it as of a failure.
    await eventually('the flip for the outage is stored', async () =>
      (await listOf(stage, hidden, 'reason')).includes('outage'),
    )
    const excused = await stateOf(stage, hidden)
    expect(excused.status).toBe('up')
    expect(excused.expected).toBeGreaterThan(gap!.endedAt)
    expect(excused.expected).toBeLessThanOrEqual(gap!.endedAt + 132_000)
    expect(await listOf(stage, hidden, 'type')).toEqual(['check.unknown'])
    // Its run may have ended while no replica listened, and its client tries again.
    const spared = await eventually('the deadline of the run is after the gap', async () =>
      (await stateOf(stage, running)).runs![0]!.deadlineAt > gap!.endedAt ? stateOf(stage, running) : null,
    )
    expect(spared.status).toBe('new')
    expect(spared.runs![0]!.deadlineAt).toBe(Math.ceil(gap!.endedAt) + 3_600_000)
    expect((await stateOf(stage, later)).status).toBe('up')
    expect(await listOf(stage, later, 'reason')).toEqual(['created', 'first_success'])

    await letTimePass(stage.url, excused.due - gap!.endedAt + 1_000, false)
    await untilDown(stage, hidden)
    expect(await listOf(stage, hidden, 'reason')).toEqual(['created', 'first_success', 'outage', 'missed'])
    expect(await listOf(stage, running, 'reason')).toEqual(['created'])
    await letTimePass(stage.url, 3_600_000, false)
    await untilDown(stage, running)
    expect(await listOf(stage, running, 'reason')).toEqual(['created', 'overran'])
    expect(await hidden.ping(again)).toBe(200)
    expect(await listGaps(stage)).toHaveLength(1)
  })
})

describe('one replica of two', () => {
  it.concurrent('that is away makes no gap, and the other finds the dead job', async () => {
    await using stage = await openStage()
    const [one, two] = await Promise.all([stage.startReplica(), stage.startReplica()])
    const dead = await stage.makeCheck(one, EVERY_TEN_SECONDS)
    expect(await dead.ping(one)).toBe(200)
    await letTimePass(stage.url, 5_000, false)
    const { due } = await stateOf(stage, dead)
    const killedAt = performance.now()
    await one.kill()
    await waitOutGap(killedAt)
    expect(await isReady(two)).toBe(true)
    await untilDown(stage, dead)
    const [flip] = await stage.query(
      `select extract(epoch from at)::float8 * 1000 as at, extract(epoch from detected_at - at)::float8 as delay from flips where reason = 'missed'`,
    )
    expect(flip!.at).toBeCloseTo(due, -1)
    // No lease of the killed one is waited for: a busy machine alone takes longer than usual.
    expect(flip!.delay).toBeLessThan(10)
    await stage.startReplica()
    expect(await listGaps(stage)).toEqual([])
  })

  it.concurrent('after the other, in a rollout, makes no gap either', async () => {
    await using stage = await openStage()
    let current = await stage.startReplica()
    const check = await stage.makeCheck(current, EVERY_TEN_SECONDS)
    expect(await check.ping(current)).toBe(200)
    await letTimePass(stage.url, 7_000, false)
    for (let round = 0; round < 2; round += 1) {
      const next = await stage.startReplica()
      await current.stop()
      current = next
    }
    await untilDown(stage, check)
    expect(await listGaps(stage)).toEqual([])
    expect(await listOf(stage, check, 'reason')).toEqual(['created', 'first_success', 'missed'])
  })
})

describe('the only replica', () => {
  const now = async (stage: Stage) =>
    (await stage.query('select extract(epoch from clock_timestamp())::float8 * 1000 as at'))[0]!.at as number

  it.concurrent.each<[string, (service: Service) => Promise<unknown>]>([
    ['stopped', (service) => service.stop()],
    ['killed', (service) => service.kill()],
  ])(
    'that was %s before, and is restarted in order later, makes no gap of the time in which it worked',
    async (_name, end) => {
      await using stage = await openStage()
      await end(await stage.startReplica())
      const service = await stage.startReplica()
      const worksSince = await now(stage)
      await waitOutGap(performance.now())
      const worksUntil = await now(stage)
      await service.stop()
      await stage.startReplica()
      const ofWork = ({ startedAt, endedAt }: { startedAt: number; endedAt: number }) =>
        startedAt < worksUntil - 1_500 && endedAt > worksSince
      expect((await listGaps(stage)).filter(ofWork)).toEqual([])
    },
  )
})
