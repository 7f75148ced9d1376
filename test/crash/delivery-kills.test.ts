import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { createTestDatabase } from '../support/database.ts'
import { createRandom, type Random } from '../support/random.ts'
import { aPing, sendPing } from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'
import { wait } from './job.ts'
import { KILLS } from './kills.ts'
import { createReplica } from './replica.ts'

/**
 * Two replicas are killed again and again while checks flip: every event arrives at every channel, in order, and
 * repeats are repeats. Every second kill hits both the moment a receiver has accepted an event, before the outbox can
 * write that down.
 */

/** Jobs that run at the same time. */
const JOBS = 12
/** A check that changes more often flaps, and then sends nothing. Each job goes on with its next check. */
const CHANGES = 8
const CHECKS_OF_A_JOB = 8 * KILLS
const SEED = Number(process.env.TEST_SEED ?? 20_261_121)
const PATIENCE_MS = 90_000

const server = use(createTestDatabase)

interface Arrival {
  readonly id: string
  readonly body: string
  readonly status: number
}

/** Takes events, now and then refuses one, hangs up, or takes its time. */
async function startReceiver(random: Random, trouble: number) {
  const arrivals: Arrival[] = []
  let onAccepted = () => {}
  let share = trouble
  let verify: (body: string, headers: Record<string, string>) => void = () => {}
  const receive = async (request: IncomingMessage): Promise<number> => {
    const body = await text(request)
    const headers = request.headers as Record<string, string>
    verify(body, headers)
    if (random.chance(share)) await wait(random.int(0, 60))
    const status = random.chance(share) ? 503 : 200
    arrivals.push({ id: headers['webhook-id']!, body, status })
    return status
  }
  const receiver = createServer((request, response) => {
    if (random.chance(share / 4)) return void request.socket.destroy()
    receive(request).then(
      (status) => response.writeHead(status).end(() => status === 200 && onAccepted()),
      (error) => {
        arrivals.push({ id: `cannot be believed: ${error}`, body: '', status: 0 })
        response.writeHead(401).end()
      },
    )
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`,
    arrivals,
    /** Resolves when the next event has been accepted. */
    accepted: () =>
      new Promise<void>((resolve) => {
        onAccepted = resolve
      }),
    calmDown() {
      share = 0
    },
    believe(secret: string) {
      const webhook = new Webhook(secret)
      verify = (body, headers) => void webhook.verify(body, headers)
    },
    async [Symbol.asyncDispose]() {
      receiver.closeAllConnections()
      await new Promise((resolve) => receiver.close(resolve))
    },
  }
}

it(`${KILLS} kills lose no delivery and spoil no order`, async () => {
  const random = createRandom(SEED)
  const environment = () => ({
    ...databaseEnvironment(server.url),
    RATE_LIMIT_PER_MINUTE: '1000000',
    ALLOWED_TARGETS: '127.0.0.0/8',
    // Both replicas send the same links, as behind one Service.
    BASE_URL: 'http://heartbeat.test/api/v1',
    LOG_LEVEL: 'warn',
  })
  await using one = createReplica(environment)
  await one.started()
  await using two = createReplica(environment)
  const replicas = [one, two]
  await two.started()

  const client = await createApiClient(one.api()!, API_KEY)
  await using well = await startReceiver(createRandom(SEED + 1), 0)
  await using moody = await startReceiver(createRandom(SEED + 2), 0.2)
  await using bad = await startReceiver(createRandom(SEED + 3), 0.5)
  const channels = []
  for (const receiver of [well, moody, bad]) {
    const { status, body } = await client.post('/channels', {
      kind: 'webhook',
      name: receiver.url,
      config: { url: receiver.url },
    })
    expect(status).toBe(201)
    receiver.believe(body.secret)
    channels.push({ id: body.id as string, receiver })
  }
  const makeCheck = async (name: string): Promise<string> =>
    (await client.post('/checks', { project_id: PROJECT_ID, name })).body.public_id
  const checksOfJobs: string[][] = []
  for (let job = 0; job < JOBS; job += 1) {
    const names = Array.from({ length: CHECKS_OF_A_JOB }, (_, index) => `Job ${job}-${index}`)
    checksOfJobs.push(await Promise.all(names.map(makeCheck)))
  }

  const stopping = new AbortController()
  const jobs = checksOfJobs.map(async (publicIds, index) => {
    const own = createRandom(SEED + 10 + index)
    let changes = 0
    for (let isFailing = true; !stopping.signal.aborted; await wait(own.int(20, 200), stopping.signal)) {
      const publicId = publicIds[Math.floor(changes / CHANGES)]
      if (publicId === undefined) throw new Error('a job has changed all of its checks: give it more')
      const replica = own.pick(replicas)?.ping()
      if (replica === null || replica === undefined) continue
      const ping = aPing(publicId, isFailing ? { type: 'fail', exitCode: 1 } : {})
      if ((await sendPing(replica, ping)).status !== 200) continue
      isFailing = !isFailing
      changes += 1
    }
  })
  const { database } = server
  let expired = 0
  /** While no replica lives: each claim is a dead one's, and would expire by itself in half a minute. */
  const expireClaims = async () => {
    const sql = 'update deliveries set claimed_until = null where claimed_until is not null and status = 0'
    expired += (await database.query(sql)).rowCount
  }
  for (let kill = 1; kill <= KILLS; kill += 1) {
    if (kill % 2 === 0) {
      await Promise.all(replicas.map((replica) => replica.started()))
      await well.accepted()
      await Promise.all(replicas.map((replica) => replica.kill()))
      await expireClaims()
    } else {
      const victim = random.pick(replicas)
      if (random.chance(0.8)) await victim.started()
      await wait(random.int(0, 400))
      await victim.kill()
    }
  }
  await Promise.all(replicas.map((replica) => replica.started()))
  stopping.abort()
  await Promise.all(jobs)

  const stopAll = async () =>
    expect(await Promise.all(replicas.map((replica) => replica.stop()))).toEqual([
      { status: 0, signal: null },
      { status: 0, signal: null },
    ])
  await stopAll()
  for (const { receiver } of channels) receiver.calmDown()
  await expireClaims()
  for (const replica of replicas) replica.start()
  await Promise.all(replicas.map((replica) => replica.started()))
  await eventually(
    'no delivery waits',
    async () => {
      // What failed often waits for minutes by now. Younger ones of the same sequence become due by themselves.
      await database.query(
        `update deliveries set next_attempt_at = now() where (event_id, channel_id) in (
        select event_id, channel_id from deliveries d
        where status = 0 and claimed_until is null and next_attempt_at > now() + interval '2 seconds'
          and not exists (select from deliveries o
            where o.status = 0 and o.channel_id = d.channel_id and o.check_key = d.check_key and o.event_id < d.event_id)
        for update skip locked)`,
      )
      const { rowCount } = await database.query('select from deliveries where status = 0 limit 1')
      await wait(100)
      return rowCount === 0
    },
    PATIENCE_MS,
  )
  await stopAll()

  const { rows: events } = await database.query<{ id: string; check_key: number }>(
    'select id, check_key from events order by id',
  )
  const { rows: untold } = await database.query(
    `select from flips f where f.reason in ('failed', 'recovered', 'missed', 'overran')
      and (select count(*) from events e where e.flip_id = f.id) <> 1`,
  )
  expect(untold).toEqual([])
  const { rows: undelivered } = await database.query(
    `select from events e cross join channels c
      where not exists (select from deliveries d where d.event_id = e.id and d.channel_id = c.id and d.status = 1)`,
  )
  expect(undelivered).toEqual([])

  let repeats = 0
  for (const { receiver } of channels) {
    const { arrivals } = receiver
    const taken = new Set(arrivals.filter(({ status }) => status === 200).map(({ id }) => id))
    expect(taken).toEqual(new Set(events.map(({ id }) => id)))
    const bodies = Map.groupBy(arrivals, ({ id }) => id)
    for (const same of bodies.values()) {
      expect(new Set(same.map(({ body }) => body)).size).toBe(1)
      repeats += same.filter(({ status }) => status === 200).length - 1
    }
    const firsts = [...bodies.keys()]
    const checkOf = new Map(events.map(({ id, check_key }) => [id, check_key]))
    for (const own of Map.groupBy(firsts, (id) => checkOf.get(id)).values()) expect(own).toEqual([...own].sort())
  }
  // It is worth something only if all of it happened.
  expect(events.length).toBeGreaterThan(100)
  expect(expired).toBeGreaterThan(0)
  const { rows: tried } = await database.query<{ attempts: number }>('select max(attempts) as attempts from deliveries')
  expect(tried[0]!.attempts).toBeGreaterThan(2)
  expect(repeats).toBeGreaterThanOrEqual(Math.floor(KILLS / 2))
  console.log(`${events.length} events to ${channels.length} channels; ${repeats} came twice with the same id`)
})
