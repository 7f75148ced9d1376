import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { query } from '../support/embedded.ts'
import { type PostgresServer, startPostgresServer } from '../support/postgres-server.ts'
import { startReceiver } from '../support/receiver.ts'
import { ask } from '../support/sent-pings.ts'
import { API_KEY, type Service } from '../support/service-process.ts'
import { openStage, type Stage } from '../support/stage.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { openLedger } from './ledger.ts'

/** While the database is unavailable pings are stored on disk (design, section 10): jobs get their 200, and nothing is lost or alarmed in vain. */

const PATIENCE_MS = 45_000

async function isDrained({ ops }: Service): Promise<boolean> {
  const { text } = await ask(`${ops}/metrics`)
  return /^heartbeat_spool_pings 0$/m.test(text)
}

const statusOf = async (stage: Stage, { id }: { id: string }) =>
  (
    await stage.query(
      `select (array['new', 'up', 'down', 'paused'])[status + 1] as status from check_states where check_key = (select key from checks where id = '${id}')`,
    )
  )[0]!.status

const alter = (server: PostgresServer, sql: string) => async () => {
  await query(server.adminUrl, sql)
  await query(server.adminUrl, 'select pg_reload_conf()')
}

const FAULTS: readonly [string, (server: PostgresServer) => [() => Promise<unknown>, () => Promise<unknown>]][] = [
  ['killed', (server) => [() => server.kill(), () => server.start()]],
  ['hung', (server) => [() => server.pause(), () => server.resume()]],
  [
    'read-only',
    (server) => [
      alter(server, 'alter system set default_transaction_read_only = on'),
      alter(server, 'alter system reset default_transaction_read_only'),
    ],
  ],
  [
    'out of connections',
    (server) => [
      async () => {
        await query(server.adminUrl, 'alter role heartbeat connection limit 0')
        await query(
          server.adminUrl,
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'heartbeat-operator %'`,
        )
      },
      () => query(server.adminUrl, 'alter role heartbeat connection limit -1'),
    ],
  ],
]

describe('a database that is unavailable for eight seconds', () => {
  it.each(FAULTS)(
    '(%s) loses no ping, delays none by five seconds, and causes no alarm but that of the job that failed',
    async (_name, faultOf) => {
      await using folder = await makeTempFolder()
      await using server = await startPostgresServer()
      await using receiver = await startReceiver()
      await using stage = await openStage(server.url)
      const [begin, end] = faultOf(server)
      const service = await stage.startReplica({
        SPOOL_DIR: join(folder.path, 'spool'),
        SPOOL_MAX_BYTES: '67108864',
        ALLOWED_TARGETS: '127.0.0.0/8',
        RATE_LIMIT_PER_MINUTE: '100000',
      })
      const client = await createApiClient(service.api, API_KEY)
      await client.post('/channels', { kind: 'webhook', name: 'receiver', config: { url: receiver.url } })
      const jobs = await Promise.all(
        Array.from({ length: 20 }, () => stage.makeCheck(service, { period_seconds: 10, grace_seconds: 0 })),
      )
      const [failing, ...working] = jobs
      const ledger = openLedger(() => service.ping)
      ledger.run(
        working.map(({ publicId }) => publicId),
        50,
      )
      await ledger.send(failing!.publicId)
      await eventually('more than 100 pings are answered', async () => ledger.entries.length > 100)

      await begin()
      const begunAt = Date.now()
      const failed = await ledger.send(failing!.publicId, { type: 'fail', exitCode: null })
      await eventually('the outage has lasted eight seconds', () => Date.now() - begunAt > 8_000, PATIENCE_MS)
      const readiness = await ask(`${service.ops}/readyz`)
      expect([readiness.status, readiness.text]).toEqual([200, 'database unavailable; spooling\n'])
      await end()
      const endedAt = Date.now()
      const [alarm] = await receiver.waitFor(1)
      expect(Date.now() - endedAt).toBeLessThan(10_000)
      expect(JSON.parse(alarm!.body)).toMatchObject({ type: 'check.down', data: { check: { id: failing!.id } } })
      await eventually('the spool is drained', () => isDrained(service), PATIENCE_MS)
      await ledger.send(failing!.publicId)
      await receiver.waitFor(2)
      await ledger.stop()
      // On a busy machine some of the last ones may have taken the way over the disk, too.
      await eventually('the spool is drained', () => isDrained(service), PATIENCE_MS)

      const during = ledger.entries.filter(({ sentAt }) => sentAt > begunAt && sentAt < endedAt)
      expect(during.filter(({ isSpooled }) => isSpooled).length).toBeGreaterThan(500)
      expect(failed).toMatchObject({ status: 200, isSpooled: true })
      expect(ledger.entries.filter(({ status }) => status !== 200)).toEqual([])
      expect(Math.max(...ledger.entries.map(({ sentAt, answeredAt }) => answeredAt - sentAt))).toBeLessThan(5_000)
      expect(await ledger.findFaults(stage)).toEqual([])
      // The service had recorded all before it looked at a deadline: the gap hides nothing.
      const gaps = () => stage.query('select spooled from gaps where spooled is not null')
      expect(await eventually('a gap is stored', async () => ((await gaps()).length > 0 ? gaps() : null))).toEqual([
        { spooled: true },
      ])
      expect(await Promise.all(jobs.map((job) => statusOf(stage, job)))).toEqual(jobs.map(() => 'up'))
      expect(receiver.requests.map(({ body }) => JSON.parse(body).type)).toEqual(['check.down', 'check.up'])
    },
  )
})
