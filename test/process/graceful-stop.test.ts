import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../support/api-client.ts'
import { createEmptyDatabase } from '../support/database.ts'
import {
  aPing,
  ask,
  beginPing,
  createAgent,
  findMissing,
  type Outcome,
  type SentPing,
  sendPing,
} from '../support/sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'

/** SIGTERM in the middle of everything: what was answered 200 is stored, and what had begun is answered. */

const ENDED_WELL = { status: 0, signal: null }
const CLIENTS = 16

const server = use(createEmptyDatabase)
beforeAll(async () => {
  // The first start makes the schema; the replicas of the tests then start together.
  await (await startService(databaseEnvironment(server.url))).stop()
})

async function startReplica(environment: Record<string, string> = {}) {
  const service = await startService({ ...databaseEnvironment(server.url), ...environment })
  const client = await createApiClient(service.api, API_KEY)
  const { body } = await client.post('/checks', { project_id: PROJECT_ID, name: 'Job' })
  return { service, client, publicId: body.public_id as string, id: body.id as string }
}

/** Keep-alive clients that send the next ping when the last was answered, until stopped or rejected. */
function startClients(service: Service, publicId: string) {
  const outcomes: Outcome[] = []
  let isOver = false
  const running = Array.from({ length: CLIENTS }, async () => {
    const agent = createAgent(1)
    for (let isRefused = false; !isOver && !isRefused; ) {
      const outcome = await sendPing(service.ping, aPing(publicId), agent)
      outcomes.push(outcome)
      isRefused = outcome.error?.includes('ECONNREFUSED') === true
    }
    agent.destroy()
  })
  return {
    outcomes,
    stop: () => {
      isOver = true
    },
    stopped: Promise.all(running),
  }
}

async function missingOf(outcomes: readonly Outcome[]): Promise<SentPing[]> {
  const database = createDatabase({ url: server.url, name: 'test', connections: 1 })
  const missing = await findMissing(
    database,
    outcomes.filter(({ status }) => status === 200).map(({ ping }) => ping),
  )
  await database.close()
  return missing
}

describe('SIGTERM under load', () => {
  it.concurrent('with a drain, and a balancer that looks at readiness, costs no request at all', async () => {
    const { service, publicId } = await startReplica({ DRAIN_SECONDS: '2' })
    const clients = startClients(service, publicId)
    const idle = createAgent(1)
    expect((await sendPing(service.ping, aPing(publicId), idle)).isClosing).toBe(false)
    await eventually('more than 200 pings are answered', () => clients.outcomes.length > 200)

    service.signal('SIGTERM')
    const { text } = await eventually('the service is not ready', () =>
      ask(`${service.ops}/readyz`).then((answer) => (answer.status === 503 ? answer : null)),
    )
    clients.stop()
    expect(text).toBe('stopping\n')
    expect((await ask(`${service.ops}/livez`)).status).toBe(200)
    // New requests are served, with `Connection: close`.
    const late = [await sendPing(service.ping, aPing(publicId)), await sendPing(service.ping, aPing(publicId), idle)]
    expect(late).toMatchObject([
      { status: 200, isClosing: true },
      { status: 200, isClosing: true },
    ])
    expect((await ask(`${service.api}/openapi.json`)).headers.connection).toBe('close')

    await clients.stopped
    expect(await service.end(10_000)).toEqual(ENDED_WELL)
    expect(clients.outcomes.filter(({ status }) => status !== 200)).toEqual([])
    expect(await missingOf([...clients.outcomes, ...late])).toEqual([])
  })

  it.concurrent('without a drain loses nothing that was answered, and answers what it had begun', async () => {
    const { service, publicId } = await startReplica()
    const held = await startReplica()
    await held.service.stop()
    const clients = startClients(service, publicId)
    const begun = await Promise.all(Array.from({ length: 5 }, () => beginPing(service, publicId)))
    // One more waits in PostgreSQL.
    const holder = new pg.Client({ connectionString: server.url })
    await holder.connect()
    await holder.query('begin')
    await holder.query('select from check_states where check_key = (select key from checks where id = $1) for update', [
      held.id,
    ])
    await eventually('more than 200 pings are answered', () => clients.outcomes.length > 200)
    const waiting = sendPing(service.ping, aPing(held.publicId))
    await eventually(
      'a ping waits for the lock',
      async () =>
        (
          await holder.query(
            `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and application_name = 'heartbeat-operator pings'`,
          )
        ).rowCount === 1,
    )

    service.signal('SIGTERM')
    await eventually('the service is not ready', async () => (await ask(`${service.ops}/readyz`)).status === 503)
    // Further signals change nothing: npm passes Ctrl-C on, and people press it twice.
    for (const signal of ['SIGINT', 'SIGTERM'] as const) service.signal(signal)
    await holder.query('rollback')
    await holder.end()
    await clients.stopped
    expect((await waiting).status).toBe(200)
    for (const { finish } of begun) finish()
    const answers = await Promise.all(begun.map(({ answer }) => answer))
    const answeredAt = performance.now()
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n(.*\r\n)*Connection: close\r\n/i)

    expect(await service.end(10_000)).toEqual(ENDED_WELL)
    expect(performance.now() - answeredAt).toBeLessThan(8_000)
    // A client without a response knows it: there was no connection, or it ended.
    expect(clients.outcomes.filter(({ status }) => status !== 200 && status !== null)).toEqual([])
    const outcomes = [
      ...clients.outcomes,
      await waiting,
      ...begun.map(({ ping }) => ({ ping, status: 200 }) as Outcome),
    ]
    expect(await missingOf(outcomes)).toEqual([])
  })
})
