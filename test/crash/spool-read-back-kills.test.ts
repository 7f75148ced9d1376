import { join } from 'node:path'
import { expect, it } from 'vitest'
import { chooseSeed, createRandom } from '../support/random.ts'
import { databaseEnvironment } from '../support/service-process.ts'
import { openStage } from '../support/stage.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { KILLS } from './kills.ts'
import { openLine, openLives, rejectedOf, spooledOf, spoolIn } from './spool-stage.ts'
import { type HoldPoint, startStatementProxy } from './statement-proxy.ts'

/**
 * kill -9 of a service while it records the pings of its spool: between any two statements, in a life that spooled and
 * in one that has just started.
 */

const PATIENCE_MS = 60_000

const STATEMENTS = ['find_keys', 'lock_spool', 'lock_states wait', 'move_spool', 'commit']
const POINTS: readonly HoldPoint[] = [
  ...STATEMENTS.map((statement) => ({ statement, side: 'before' as const })),
  { statement: 'move_spool', side: 'after' },
  { statement: 'commit', side: 'after' },
]

it(`${KILLS} kills while the spool is recorded lose no ping that was acknowledged, and record none twice`, async () => {
  const seed = chooseSeed()
  const random = createRandom(seed)
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using proxy = await startStatementProxy(stage.url)
  await using line = await openLine(proxy.url)
  const first = await stage.startReplica(spoolIn(join(folder.path, 'first')))
  const publicIds: string[] = []
  while (publicIds.length < 20) publicIds.push((await stage.makeCheck(first)).publicId)
  await first.kill()

  await using lives = openLives({ ...databaseEnvironment(line.url), ...spoolIn(join(folder.path, 'spool')) })
  const { ledger } = lives
  ledger.run(publicIds, 10)
  const counts = new Map<string, number>()
  let kills = 0
  const killAt = async (point: HoldPoint, begin: () => unknown) => {
    const held = proxy.holdAt('pings', point)
    await begin()
    await held
    await lives.kill()
    kills += 1
    const name = `${point.side} ${point.statement}`
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  while (kills < KILLS) {
    await lives.kill()
    lives.spawn()
    await lives.ready()
    line.cut()
    const before = spooledOf(ledger).length
    const wanted = random.int(1, 100)
    await eventually(
      `the spool has ${wanted} more pings`,
      () => spooledOf(ledger).length - before >= wanted,
      PATIENCE_MS,
    )
    await killAt(random.pick(POINTS), line.mend)
    // What that life did not record, the start of the next one does.
    while (kills < KILLS && random.chance(0.5)) {
      const killing = killAt(random.pick(POINTS), () => lives.spawn())
      // The last life may have recorded all, so that this one is ready without.
      const isReady = await Promise.race([killing, lives.ready().catch(() => killing)])
      proxy.cancel()
      if (isReady !== undefined) break
    }
  }
  await lives.kill()
  lives.spawn()
  await lives.ready()
  await ledger.stop()
  expect(await ledger.findFaults(stage), `FUZZ_SEED=${seed}`).toEqual([])
  expect(rejectedOf(ledger)).toEqual([])
  console.log(`seed ${seed}: ${spooledOf(ledger).length} spooled of ${ledger.entries.length}`, counts)
})
