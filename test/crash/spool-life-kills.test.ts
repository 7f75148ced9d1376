import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { chooseSeed, createRandom } from '../support/random.ts'
import { databaseEnvironment, spawnService } from '../support/service-process.ts'
import { openStage } from '../support/stage.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { KILLS } from './kills.ts'
import { openLedger } from './ledger.ts'
import { openLine, openLives, rejectedOf, spooledOf, spoolIn } from './spool-stage.ts'

/** kill -9 of a service while it stores pings on disk. */

const PATIENCE_MS = 60_000

it(`${KILLS} kills while pings are spooled lose none that was acknowledged, and record none twice`, async () => {
  const seed = chooseSeed()
  const random = createRandom(seed)
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using line = await openLine(stage.url)
  const first = await stage.startReplica(spoolIn(join(folder.path, 'first')))
  const publicIds: string[] = []
  while (publicIds.length < 20) publicIds.push((await stage.makeCheck(first)).publicId)
  await first.kill()

  await using lives = openLives({ ...databaseEnvironment(line.url), ...spoolIn(join(folder.path, 'spool')) })
  const { ledger } = lives
  ledger.run(publicIds, 10)
  for (let kill = 0; kill < KILLS; kill += 1) {
    lives.spawn()
    await lives.ready()
    line.cut()
    const before = spooledOf(ledger).length
    const wanted = random.int(1, 200)
    await eventually(
      `the spool has ${wanted} more pings`,
      () => spooledOf(ledger).length - before >= wanted,
      PATIENCE_MS,
    )
    await lives.kill()
    await line.mend()
  }
  lives.spawn()
  await lives.ready()
  await ledger.stop()
  expect(await ledger.findFaults(stage), `FUZZ_SEED=${seed}`).toEqual([])
  expect(rejectedOf(ledger)).toEqual([])
  console.log(`seed ${seed}: ${ledger.entries.length} pings, ${spooledOf(ledger).length} of them spooled`)
})

it('a start without the database keeps the spool as it is, and ends with a message; the next one records it', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using line = await openLine(stage.url)
  const spool = join(folder.path, 'spool')
  const environment = { ...databaseEnvironment(line.url), ...spoolIn(spool), DATABASE_WAIT_SECONDS: '1' }
  const service = await stage.startReplica(environment)
  const { publicId } = await stage.makeCheck(service)
  const ledger = openLedger(() => service.ping)
  await ledger.send(publicId)
  line.cut()
  for (let sent = 0; sent < 10; sent += 1) await ledger.send(publicId)
  await service.kill()
  const before = await readSegments(spool)

  const startedAt = performance.now()
  const { status } = await spawnService(environment).end()
  console.log(`a start without the database ended after ${Math.round(performance.now() - startedAt)} ms`)
  expect(status).not.toBe(0)
  expect(await readSegments(spool)).toEqual(before)

  await line.mend()
  await stage.startReplica(environment)
  await ledger.stop()
  expect(spooledOf(ledger).length).toBeGreaterThan(0)
  expect(rejectedOf(ledger)).toEqual([])
  expect(await ledger.findFaults(stage)).toEqual([])
})

async function readSegments(folder: string): Promise<Record<string, string>> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.segment')).sort()
  const contents = await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'hex')]))
  return Object.fromEntries(contents)
}
