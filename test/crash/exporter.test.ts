import { describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { ask } from '../support/sent-pings.ts'
import type { Service } from '../support/service-process.ts'
import { isReady, openStage, type Stage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'

/** One of all replicas exports the series of the checks. Each test has a database of its own, so all wait for leases together. */

const SERIES = /^heartbeat_check_status\{.*check="job".*\} [01]$/gm
/** A lease of five seconds, the other replica's poll within a second of its end, and a slow machine. */
const TAKEN_OVER_MS = 45_000

async function exports({ ops }: Service): Promise<boolean> {
  const { status, text } = await ask(`${ops}/metrics`)
  expect(status).toBe(200)
  const isActive = text.includes('\nheartbeat_exporter_active 1\n')
  expect(text.match(SERIES)?.length ?? 0).toBe(isActive ? 5 : 0)
  return isActive
}

/** Starts a replica, makes the check, and resolves when the replica exports it. */
async function startExporter(stage: Stage, environment: Record<string, string> = {}): Promise<Service> {
  const first = await stage.startReplica(environment)
  await stage.makeCheck(first)
  await eventually('the first replica exports', () => exports(first), TAKEN_OVER_MS)
  return first
}

/** The replica that exports, and another, which does not. */
async function startTwo(stage: Stage, environment: Record<string, string> = {}): Promise<[Service, Service]> {
  const first = await startExporter(stage, environment)
  const second = await stage.startReplica()
  expect([await exports(first), await exports(second)]).toEqual([true, false])
  return [first, second]
}

describe('the replica that exports', () => {
  it.concurrent('is replaced when it is killed, and comes back without the lease', async () => {
    await using stage = await openStage()
    const [killed, other] = await startTwo(stage)
    await killed.kill()
    await eventually('the other replica exports', () => exports(other), TAKEN_OVER_MS)
    const again = await stage.startReplica()
    expect([await exports(again), await exports(other)]).toEqual([false, true])
  })

  it.concurrent('hands over first when it stops, and serves the rest while it drains', async () => {
    await using stage = await openStage()
    const [leaving, other] = await startTwo(stage, { DRAIN_SECONDS: '300' })
    const [lease] = await stage.query('select holder from exporter')
    leaving.signal('SIGTERM')
    await eventually(
      'the other replica exports',
      async () => {
        // The lease never expires, so that the other one can have it only because it was released.
        await stage.query(
          `update exporter set expires_at = now() + interval '1 hour' where holder = '${lease!.holder}'`,
        )
        return exports(other)
      },
      TAKEN_OVER_MS,
    )
    expect(await exports(leaving)).toBe(false)
  })

  it.concurrent('is replaced when it is frozen, and exports nothing when it continues', async () => {
    await using stage = await openStage()
    const [frozen, other] = await startTwo(stage)
    frozen.signal('SIGSTOP')
    await eventually('the other replica exports', () => exports(other), TAKEN_OVER_MS)
    frozen.signal('SIGCONT')
    expect([await exports(frozen), await exports(other)]).toEqual([false, true])
  })

  it.concurrent('lets the lease expire while it is not ready, and takes it again once it is', async () => {
    await using stage = await openStage()
    const service = await startExporter(stage)
    const database = createDatabase({ url: stage.url, name: 'test', connections: 1, patient: true })
    await using _closed = { [Symbol.asyncDispose]: database.close }
    await database.transaction(async (tx) => {
      // Without a beat it is not ready, though it could still write its lease.
      await tx.query('lock table service_beat in access exclusive mode')
      await eventually('the service is not ready', async () => !(await isReady(service)), TAKEN_OVER_MS)
      const isFree = async () => (await stage.query('select from exporter where expires_at > now()')).length === 0
      await eventually('no lease is left', isFree, TAKEN_OVER_MS)
      expect(await exports(service)).toBe(false)
    })
    await eventually('the service exports again', () => exports(service), TAKEN_OVER_MS)
    expect(await isReady(service)).toBe(true)
  })

  it.concurrent('exports nothing while the database is away, and serves everything else', async () => {
    await using server = await startPostgresServer()
    await using stage = await openStage(server.url)
    const service = await startExporter(stage)
    await server.kill()
    expect(await exports(service)).toBe(false)
    await server.start()
    await eventually('the service exports again', () => exports(service), TAKEN_OVER_MS)
  })
})
