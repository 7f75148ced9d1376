import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openStage } from '../support/stage.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { openLedger } from './ledger.ts'
import { countSpooled, openLine, rejectedOf, spooledOf, spoolIn } from './spool-stage.ts'

/** Replicas with a spool of their own are cut off from the database: two while a third one goes on recording, and all of them. */

const PATIENCE_MS = 45_000
/** No replica has reached the database for longer than the shortest gap. */
const SILENT = `select from service_beat where beat_at < clock_timestamp() - interval '5.5 seconds'`

it('what two replicas spooled while a third one wrote is recorded once, at its own time, and the newest ping decides', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using lines = await openLine(stage.url)
  const own = (name: string, url: string) => ({ DATABASE_URL: url, ...spoolIn(join(folder.path, name)) })
  const writing = await stage.startReplica(own('writing', stage.url))
  const makeChecks = async (count: number) => {
    const made = []
    while (made.length < count) made.push(await stage.makeCheck(writing))
    return made
  }
  // Replicas know the checks that are there when they start.
  const mixed = await makeChecks(40)
  const [lateFails, lateSucceeds] = await makeChecks(2)
  const [one, two] = [await stage.startReplica(own('one', lines.url)), await stage.startReplica(own('two', lines.url))]
  const replicas = [one, two, writing]
  // Each job sends to one replica after the other, with a pause in which the difference of their clocks does not matter.
  let turn = 0
  const ledger = openLedger(() => replicas[turn++ % replicas.length]!.ping)
  const sendTo = async (replica: typeof one, publicId: string, isFail: boolean) => {
    const single = openLedger(() => replica.ping)
    const entry = await single.send(publicId, isFail ? { type: 'fail', exitCode: null } : {})
    ledger.entries.push(entry)
    await single.stop()
    return entry
  }
  for (const check of [lateFails, lateSucceeds]) await sendTo(writing, check!.publicId, check === lateSucceeds)
  ledger.run(
    mixed.map(({ publicId }) => publicId),
    250,
  )
  await eventually('more than 100 pings are answered', () => ledger.entries.length > 100)

  lines.cut()
  await eventually('more than 300 pings are spooled', () => spooledOf(ledger).length > 300, PATIENCE_MS)
  // Older than what the third replica then records.
  expect(await sendTo(one, lateFails!.publicId, true)).toMatchObject({ status: 200, isSpooled: true })
  expect(await sendTo(two, lateSucceeds!.publicId, true)).toMatchObject({ status: 200, isSpooled: true })
  expect(await sendTo(writing, lateFails!.publicId, false)).toMatchObject({ status: 200, isSpooled: false })
  // The newest one waits on disk.
  expect(await sendTo(one, lateSucceeds!.publicId, false)).toMatchObject({ status: 200, isSpooled: true })
  await eventually('more than 600 pings are spooled', () => spooledOf(ledger).length > 600, PATIENCE_MS)
  await lines.mend()
  for (const replica of [one, two])
    await eventually('the spool is empty', async () => (await countSpooled(replica)) === 0, PATIENCE_MS)
  await ledger.stop()
  for (const replica of [one, two])
    await eventually('the spool is empty', async () => (await countSpooled(replica)) === 0, PATIENCE_MS)

  expect(rejectedOf(ledger)).toEqual([])
  expect(await ledger.findFaults(stage)).toEqual([])
  const facts = await stage.query(
    `select c.id, s.status, (select count(*) from flips f where f.check_key = c.key and f.reason = 'failed') as failed
      from checks c join check_states s on s.check_key = c.key`,
  )
  const UP = 1
  expect(facts.filter(({ status }) => status !== UP)).toEqual([])
  // A failure that a newer success of another replica overtook is no flip.
  expect(facts.find(({ id }) => id === lateFails!.id)).toMatchObject({ failed: '0' })
})

it('while no replica of three reaches the database all is spooled, time after time: nothing is excused', async () => {
  await using folder = await makeTempFolder()
  await using stage = await openStage()
  await using lines = await openLine(stage.url)
  const start = (name: string) => stage.startReplica({ DATABASE_URL: lines.url, ...spoolIn(join(folder.path, name)) })
  const first = await start('first')
  const checks = [await stage.makeCheck(first), await stage.makeCheck(first)]
  const replicas = [await start('two'), await start('three')]
  let turn = 0
  const ledger = openLedger(() => replicas[turn++ % replicas.length]!.ping)
  const gaps = () => stage.query('select spooled from gaps order by started_at')
  for (const round of [1, 2, 3]) {
    for (const { publicId } of checks) await ledger.send(publicId)
    lines.cut()
    for (const { publicId } of [...checks, ...checks]) await ledger.send(publicId)
    await eventually(
      'the silence has lasted long enough',
      async () => (await stage.query(SILENT)).length === 1,
      PATIENCE_MS,
    )
    await lines.mend()
    await eventually(
      `the gap of round ${round} is stored, with its spool`,
      async () => (await gaps()).length === round && (await gaps()).at(-1)!.spooled !== null,
      PATIENCE_MS,
    )
  }
  await ledger.stop()

  expect(await gaps()).toEqual([1, 2, 3].map(() => ({ spooled: true })))
  // None was taken for one of the release before, which would have no spool.
  expect(await stage.query(`select from ping_beats where id = '00000000-0000-0000-0000-000000000000'`)).toEqual([])
  expect(rejectedOf(ledger)).toEqual([])
  expect(await ledger.findFaults(stage)).toEqual([])
})
