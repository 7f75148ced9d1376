import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { aPing, ask, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from '../support/service-process.ts'
import { until } from '../support/until.ts'
import { letTimePass } from './time-shift.ts'

/** Nobody is paged because we were away (design, section 4, "Own downtime"), and whoever is really dead is found afterwards. */

let server: PostgresServer
let services: Service[] = []

beforeAll(async () => {
  server = await startPostgresServer()
})
afterAll(() => server.remove())
afterEach(async () => {
  await Promise.all(services.map((service) => service.kill()))
  services = []
  await query(
    server.url,
    'truncate gaps, checks, check_states, pings, ping_bodies, flips, events; update service_beat set beat_at = null',
  )
})

async function startReplica(): Promise<Service> {
  const service = await startService(databaseEnvironment(server.url))
  services.push(service)
  return service
}

async function makeCheck(service: Service, spec: object) {
  const client = await createApiClient(service.api, API_KEY)
  const { body } = await client.post('/checks', { project_id: PROJECT_ID, name: 'Job', ...spec })
  const publicId = body.public_id as string
  return {
    id: body.id as string,
    publicId,
    ping: async (from: Service, type: 'success' | 'start' = 'success') =>
      (await sendPing(from.ping, aPing(publicId, { type, exitCode: type === 'success' ? 0 : null }))).status,
  }
}

interface State {
  status: string
  expected: number
  due: number
  runs: { deadlineAt: number }[] | null
}

async function stateOf({ id }: { id: string }): Promise<State> {
  const [row] = await query(
    server.url,
    `select (array['new', 'up', 'down', 'paused'])[status + 1] as status, extract(epoch from expected_at)::float8 * 1000 as expected, extract(epoch from due_at)::float8 * 1000 as due, runs
      from check_states where check_key = (select key from checks where id = '${id}')`,
  )
  return row as unknown as State
}

const reasonsOf = async ({ id }: { id: string }) =>
  (
    await query(
      server.url,
      `select reason from flips where check_key = (select key from checks where id = '${id}') order by id`,
    )
  ).map(({ reason }) => reason)
const eventsOf = async ({ id }: { id: string }) =>
  (
    await query(
      server.url,
      `select type from events where check_key = (select key from checks where id = '${id}') order by id`,
    )
  ).map(({ type }) => type)

const listGaps = async () =>
  (await query(
    server.url,
    'select extract(epoch from started_at)::float8 * 1000 as "startedAt", extract(epoch from ended_at)::float8 * 1000 as "endedAt" from gaps order by id',
  )) as { startedAt: number; endedAt: number }[]
const isReady = async (service: Service) => (await ask(`${service.ops}/readyz`)).status === 200
/** Long enough for a gap: it begins with the last beat, which is not older than a second. */
const waitOutGap = (since: number) => until(() => performance.now() - since > 5_500)
const EVERY_TEN_SECONDS = { period_seconds: 10, grace_seconds: 0 }

describe('a database that is away for more than five seconds', () => {
  it.each([
    ['killed', () => server.kill(), () => server.start(), /^heartbeat_gaps_total 1$/m],
    // A beat that the replica gave up may still be carried out when the server goes on: on record, and not counted.
    ['hung', () => server.pause(), () => server.resume(), /^heartbeat_gaps_total [01]$/m],
  ])('(%s) is a gap: a deadline in it is moved, and passes afterwards', async (_name, begin, end, counted) => {
    const service = await startReplica()
    const [dead, alive] = [await makeCheck(service, EVERY_TEN_SECONDS), await makeCheck(service, EVERY_TEN_SECONDS)]
    expect([await dead.ping(service), await alive.ping(service)]).toEqual([200, 200])
    await letTimePass(server.url, 8_000, false)
    const before = Date.now()
    const startedAt = performance.now()
    await begin()
    await waitOutGap(startedAt)
    await end()
    await until(() => isReady(service))
    expect(await until(() => alive.ping(service))).toBe(200)

    const [gap, ...more] = await until(async () => ((await listGaps()).length > 0 ? listGaps() : null))
    expect(more).toEqual([])
    expect(gap!.endedAt - gap!.startedAt).toBeGreaterThan(5_000)
    expect(Math.abs(gap!.startedAt - before)).toBeLessThan(2_000)
    expect((await ask(`${service.ops}/metrics`)).text).toMatch(counted)
    // The deadline was in the gap, and the evaluator has looked.
    const { status } = await until(async () =>
      (await stateOf(dead)).due > gap!.endedAt + 59_000 ? stateOf(dead) : null,
    )
    expect(status).toBe('up')
    expect([await reasonsOf(dead), await reasonsOf(alive)]).toEqual([
      ['created', 'first_success'],
      ['created', 'first_success'],
    ])

    await letTimePass(server.url, 70_000, false)
    await until(async () => (await stateOf(dead)).status === 'down')
    expect(await reasonsOf(dead)).toEqual(['created', 'first_success', 'missed'])
    expect(await eventsOf(dead)).toEqual(['check.down'])
  })
})

describe('every replica', () => {
  it.each<[string, (service: Service) => Promise<unknown>]>([
    ['stopped in order', (service) => service.stop()],
    ['killed', (service) => service.kill()],
  ])('%s for ten minutes is one gap: an interval in it is excused, and the next one counts', async (_name, stop) => {
    const replicas = await Promise.all([startReplica(), startReplica()])
    const [first] = replicas
    const hidden = await makeCheck(first, { period_seconds: 120, grace_seconds: 60 })
    const later = await makeCheck(first, { period_seconds: 3_600, grace_seconds: 60 })
    const running = await makeCheck(first, { max_runtime_seconds: 30 })
    expect([await hidden.ping(first), await later.ping(first), await running.ping(first, 'start')]).toEqual([
      200, 200, 200,
    ])
    const stoppedAt = Date.now()
    await Promise.all(replicas.map(stop))
    await letTimePass(server.url, 600_000, true)
    const [again] = await Promise.all([startReplica(), startReplica()])

    const [gap, ...more] = await listGaps()
    expect(more).toEqual([])
    expect(Math.abs(gap!.startedAt - (stoppedAt - 600_000))).toBeLessThan(2_000)
    expect(gap!.endedAt - gap!.startedAt).toBeGreaterThan(599_000)

    // We cannot tell whether it ran: said, and not paged.
    await until(async () => (await reasonsOf(hidden)).includes('outage'))
    const excused = await stateOf(hidden)
    expect(excused.status).toBe('up')
    expect(excused.expected).toBeGreaterThan(gap!.endedAt)
    expect(excused.expected).toBeLessThanOrEqual(gap!.endedAt + 132_000)
    expect(await eventsOf(hidden)).toEqual(['check.unknown'])
    // Its run may have ended while nobody listened, and its client tries again.
    const spared = await until(async () =>
      (await stateOf(running)).runs![0]!.deadlineAt > gap!.endedAt ? stateOf(running) : null,
    )
    expect(spared.status).toBe('new')
    expect(spared.runs![0]!.deadlineAt).toBe(Math.ceil(gap!.endedAt) + 3_600_000)
    expect([(await stateOf(later)).status, await reasonsOf(later)]).toEqual(['up', ['created', 'first_success']])

    await letTimePass(server.url, excused.due - gap!.endedAt + 1_000, false)
    await until(async () => (await stateOf(hidden)).status === 'down')
    expect(await reasonsOf(hidden)).toEqual(['created', 'first_success', 'outage', 'missed'])
    expect(await reasonsOf(running)).toEqual(['created'])
    await letTimePass(server.url, 3_600_000, false)
    await until(async () => (await stateOf(running)).status === 'down')
    expect(await reasonsOf(running)).toEqual(['created', 'overran'])
    expect(await hidden.ping(again)).toBe(200)
    expect(await listGaps()).toHaveLength(1)
  })
})

describe('one replica of two', () => {
  it('that is away makes no gap, and the other finds who is missing', async () => {
    const [one, two] = await Promise.all([startReplica(), startReplica()])
    const dead = await makeCheck(one, EVERY_TEN_SECONDS)
    expect(await dead.ping(one)).toBe(200)
    await letTimePass(server.url, 5_000, false)
    const due = (await stateOf(dead)).due
    const killedAt = performance.now()
    await one.kill()
    await waitOutGap(killedAt)
    expect(await isReady(two)).toBe(true)
    await until(async () => (await stateOf(dead)).status === 'down')
    const [flip] = await query(
      server.url,
      `select extract(epoch from at)::float8 * 1000 as at, extract(epoch from detected_at - at)::float8 as delay from flips where reason = 'missed'`,
    )
    expect(flip!.at).toBeCloseTo(due, -1)
    expect(flip!.delay).toBeLessThan(2)
    await startReplica()
    expect(await listGaps()).toEqual([])
  })

  it('after the other makes no gap either: a rollout', async () => {
    const first = await startReplica()
    const check = await makeCheck(first, EVERY_TEN_SECONDS)
    expect(await check.ping(first)).toBe(200)
    await letTimePass(server.url, 7_000, false)
    let current = first
    for (let round = 0; round < 3; round += 1) {
      const next = await startReplica()
      await current.stop()
      current = next
    }
    await until(async () => (await stateOf(check)).status === 'down')
    expect(await listGaps()).toEqual([])
    expect(await reasonsOf(check)).toEqual(['created', 'first_success', 'missed'])
  })
})
