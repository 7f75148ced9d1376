import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { pickPort } from '../../tools/cluster/control-plane-ports.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { aPing, ask, sendPing } from '../support/sent-pings.ts'
import { databaseEnvironment, spawnService } from '../support/service-process.ts'
import { openStage } from '../support/stage.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { openLedger } from './ledger.ts'
import { countSpooled, openLine, rejectedOf, spooledOf, spoolIn } from './spool-stage.ts'
import { startStatementProxy } from './statement-proxy.ts'

/** What happens to a spool in an outage: an update, a failover, a limit, checks that are not known. */

const PATIENCE_MS = 45_000
const UNKNOWN = '00000000-0000-4000-8000-000000000000'

it('an update during an outage keeps the spool; the next process is ready when all of it is recorded', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using line = await openLine(stage.url)
  const environment = { ...databaseEnvironment(line.url), ...spoolIn(join(folder.path, 'spool')) }
  const before = await stage.startReplica(environment)
  const publicIds: string[] = []
  while (publicIds.length < 10) publicIds.push((await stage.makeCheck(before)).publicId)
  let base: string | null = before.ping
  const ledger = openLedger(() => base)
  ledger.run(publicIds, 10)
  await eventually('more than 50 pings are answered', () => ledger.entries.length > 50)
  line.cut()
  await eventually('more than 500 pings are spooled', () => spooledOf(ledger).length > 500, PATIENCE_MS)
  expect((await before.stop()).status).toBe(0)
  base = null

  const [ops, ping] = [await pickPort(), await pickPort()]
  const ports = { OPS_PORT: String(ops), PING_PORT: String(ping) }
  await using after = spawnService({ ...environment, ...ports, DATABASE_WAIT_SECONDS: '60' })
  await after.waitFor(/^waiting for the database/m)
  await line.mend()
  // Jobs need not wait until it is ready.
  base = `http://127.0.0.1:${ping}`
  const ready = () => ask(`http://127.0.0.1:${ops}/readyz`).catch(() => null)
  await eventually('the service is ready', async () => (await ready())?.status === 200, PATIENCE_MS)
  expect(await countSpooled({ ops: `http://127.0.0.1:${ops}` })).toBeLessThan(50)
  await ledger.stop()
  const stopped = spooledOf(ledger)
  expect(stopped.length).toBeGreaterThan(500)
  await eventually(
    'the spool is empty',
    async () => (await countSpooled({ ops: `http://127.0.0.1:${ops}` })) === 0,
    PATIENCE_MS,
  )
  expect(rejectedOf(ledger)).toEqual([])
  expect(await ledger.findFaults(stage)).toEqual([])
})

it('a failover to another server loses no ping, and records none twice', async () => {
  await using folder = await makeTempFolder()
  const dataDir = join(folder.path, 'primary')
  const standbyDir = join(folder.path, 'standby')
  await using primary = await startPostgresServer({ dataDir })
  let port = primary.port
  await using line = await openLine(primary.url, () => port)
  await using stage = await openStage(line.url)
  const service = await stage.startReplica(spoolIn(join(folder.path, 'spool')))
  const publicIds: string[] = []
  while (publicIds.length < 10) publicIds.push((await stage.makeCheck(service)).publicId)
  const ledger = openLedger(() => service.ping)
  ledger.run(publicIds, 10)
  await eventually('more than 200 pings are answered', () => ledger.entries.length > 200, PATIENCE_MS)
  await primary.kill()
  await eventually('more than 200 pings are spooled', () => spooledOf(ledger).length > 200, PATIENCE_MS)
  // What a standby has that is replicated synchronously.
  await promisify(execFile)('cp', ['-a', dataDir, standbyDir])
  await using standby = await startPostgresServer({ dataDir: standbyDir, port: await pickPort() })
  port = standby.port
  await eventually('the spool is empty', async () => (await countSpooled(service)) === 0, PATIENCE_MS)
  await ledger.stop()
  await eventually('the spool is empty', async () => (await countSpooled(service)) === 0, PATIENCE_MS)
  expect(rejectedOf(ledger)).toEqual([])
  expect(await ledger.findFaults(stage)).toEqual([])
})

const LEAST_BYTES = 8_388_608

it('a full spool rejects pings, loses none that it took, and takes pings again after the outage', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using line = await openLine(stage.url)
  const spool = spoolIn(join(folder.path, 'spool'), LEAST_BYTES)
  const service = await stage.startReplica({ DATABASE_URL: line.url, ...spool })
  const { publicId } = await stage.makeCheck(service)
  const ledger = openLedger(() => service.ping)
  await ledger.send(publicId)
  line.cut()
  const output = 'x'.repeat(10_000)
  const long = () => sendPing(service.ping, aPing(publicId, { body: output }))
  let rejected = await long()
  for (let sent = 0; rejected.status === 200 && sent < 2_000; sent += 1) {
    if (sent % 50 === 0) await ledger.send(publicId)
    rejected = await long()
  }
  expect(rejected).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) })
  const spooled = await countSpooled(service)
  expect(spooled).toBeGreaterThan(700)
  await eventually('the service is not ready', async () => (await ask(`${service.ops}/readyz`)).status === 503)
  // So that the outage is a gap.
  const gaps = () => stage.query('select spooled from gaps')
  const cutAt = Date.now()
  await eventually('six seconds have passed since the cut', () => Date.now() - cutAt > 6_000)
  await line.mend()
  await eventually('the spool is empty', async () => (await countSpooled(service)) === 0, PATIENCE_MS)
  await eventually('the service is ready', async () => (await ask(`${service.ops}/readyz`)).status === 200)
  expect(
    await eventually(
      'the gap is stored, without the spool',
      async () => ((await gaps())[0]?.spooled === false ? gaps() : null),
      PATIENCE_MS,
    ),
  ).toEqual([{ spooled: false }])
  const [stored] = await stage.query('select count(*) from pings')
  expect(Number(stored!.count)).toBe(spooled + 1)

  line.cut()
  await eventually('a ping is spooled', async () => (await ledger.send(publicId)).isSpooled, { retryErrors: false })
  await line.mend()
  await eventually('the spool is empty', async () => (await countSpooled(service)) === 0, PATIENCE_MS)
  await ledger.stop()
  expect(await ledger.findFaults(stage)).toEqual([])
})

it('ids that are not known are rejected in an outage and written nowhere, those of the youngest checks too; without a spool all are', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using line = await openLine(stage.url)
  const spool = join(folder.path, 'spool')
  const elsewhere = await stage.startReplica({ SPOOL_MAX_BYTES: '0' })
  const { publicId } = await stage.makeCheck(elsewhere)
  const service = await stage.startReplica({ DATABASE_URL: line.url, ...spoolIn(spool) })
  const without = await stage.startReplica({ DATABASE_URL: line.url, SPOOL_MAX_BYTES: '0' })
  const ledger = openLedger(() => service.ping)
  await ledger.send(publicId)
  const young = await stage.makeCheck(elsewhere)
  line.cut()
  expect(
    await eventually('a ping is spooled', async () => ((await ledger.send(publicId)).isSpooled ? 'spooled' : null), {
      retryErrors: false,
    }),
  ).toBe('spooled')
  const spooled = await countSpooled(service)
  for (const id of [UNKNOWN, young.publicId]) {
    for (let sent = 0; sent < 5; sent += 1) {
      const outcome = await sendPing(service.ping, aPing(id))
      expect(outcome).toMatchObject({ status: 503, retryAfter: expect.stringMatching(/^\d+$/) })
    }
  }
  expect(await sendPing(without.ping, aPing(publicId))).toMatchObject({ status: 503 })
  await eventually(
    'the service without a spool is not ready',
    async () => (await ask(`${without.ops}/readyz`)).status === 503,
  )
  expect(await countSpooled(service)).toBe(spooled)
  expect((await readdir(folder.path)).sort()).toEqual(['spool'])
  await line.mend()
  await eventually('the spool is empty', async () => (await countSpooled(service)) === 0, PATIENCE_MS)
  for (const id of [publicId, young.publicId])
    await eventually('a ping is stored', async () => (await sendPing(service.ping, aPing(id))).status === 200)
  expect((await sendPing(service.ping, aPing(UNKNOWN))).status).toBe(404)
  await ledger.stop()
  expect(await ledger.findFaults(stage)).toEqual([])
})

it('a process takes its first ping, and is ready, when it knows the checks, so that it spools their pings when the database goes away at once', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using proxy = await startStatementProxy(stage.url)
  await using line = await openLine(proxy.url)
  const elsewhere = await stage.startReplica({ SPOOL_MAX_BYTES: '0' })
  const { publicId } = await stage.makeCheck(elsewhere)
  const held = proxy.holdAt('management', { statement: 'read_known_ids', side: 'before' })
  const PING_PORT = String(await pickPort())
  const environment = { ...databaseEnvironment(line.url), ...spoolIn(join(folder.path, 'spool')), PING_PORT }
  await using service = spawnService(environment)
  await held
  await expect(service.ready(2_000)).rejects.toThrow('still no')
  // A ping that comes earlier would overtake the pings of its check that wait on disk.
  const early = await sendPing(`http://127.0.0.1:${PING_PORT}`, aPing(publicId))
  expect(early).toMatchObject({ status: null, error: expect.stringContaining('ECONNREFUSED') })
  const { ping } = await service.ready()
  line.cut()
  expect((await sendPing(ping, aPing(publicId))).status).toBe(200)
})
