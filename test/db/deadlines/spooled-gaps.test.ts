/** A gap whose pings were all spooled hides nothing, and that is known when each process has recorded what it spooled (design, section 4, "Own downtime"). */

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { keepBeat } from '../../../src/checks/deadlines/beat.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { lockDueStates } from '../../../src/store/checks/states.ts'
import {
  beat,
  endBeat,
  listGaps,
  listNewestGaps,
  lockBeat,
  type SpoolReport,
  settleGaps,
} from '../../../src/store/history/gaps.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { untilWaiting } from '../../support/database.ts'
import { pingOf, usePings } from '../pings/fixture.ts'

const t = usePings()
beforeEach(async () => {
  await t.database.query('delete from gaps')
  await t.database.query('delete from ping_beats')
  await t.database.query('update service_beat set beat_at = null')
})

const DRAINED: SpoolReport = { pendingSince: null, refusedAt: null }
const now = () => t.context.clock.now()

/** An api process. */
function aProcess(spool: SpoolReport | null = DRAINED) {
  const id = randomUUID()
  return {
    id,
    beat: (report = spool) =>
      t.database.transaction(async (tx) => {
        await lockBeat(tx)
        return beat(tx, { id, spool: report })
      }),
    end: () => endBeat(t.database, id),
  }
}

/** The service has not beaten for so long. */
const setBeat = (ageMs: number) =>
  t.database.query(`update service_beat set beat_at = clock_timestamp() - $1 * interval '1 millisecond'`, [ageMs])

/** All that is known becomes older. */
async function letPass(ms: number): Promise<void> {
  const interval = `$1 * interval '1 millisecond'`
  await t.database.query(`update service_beat set beat_at = beat_at - ${interval}`, [ms])
  await t.database.query(`update gaps set started_at = started_at - ${interval}, ended_at = ended_at - ${interval}`, [
    ms,
  ])
  await t.database.query(
    `update ping_beats set started_at = started_at - ${interval}, beat_at = beat_at - ${interval},
      pending_since = pending_since - ${interval}, refused_at = refused_at - ${interval}`,
    [ms],
  )
}

const settled = async () => (await settleGaps(t.database)).map(({ isSpooled }) => isSpooled)
const gaps = async () => (await listNewestGaps(t.database, 0, 10)).map(({ isSpooled }) => isSpooled)

async function addOverdue(): Promise<CheckRecord> {
  const replica = t.addReplica(randomUUID())
  const check = await t.addCheck({ spec: { periodSeconds: 10, graceSeconds: 0 } }, now() - 61_000)
  await replica.record(check, pingOf(check, { at: now() - 60_000 }))
  return check
}

/** The keys of the checks that are evaluated now. */
async function listDue(): Promise<number[]> {
  await setBeat(0)
  const { checks } = await t.database.transaction((tx) => lockDueStates(tx, 10, 5_000))
  return checks.map(({ key }) => key)
}

/** Whether a deadline that passed long ago is found. */
async function isEvaluated(): Promise<boolean> {
  const { key } = await addOverdue()
  return (await listDue()).includes(key)
}

/** The process and what it reports after an outage of `ms`. */
async function outage(process = aProcess(), { ms = 20_000, report = DRAINED as SpoolReport | null } = {}) {
  await process.beat()
  await letPass(ms)
  await process.beat(report)
  return process
}

describe('a gap', () => {
  it('whose pings were spooled and are recorded is a spooled one, and moves no deadline', async () => {
    await outage()
    expect(await gaps()).toEqual([null])
    expect(await settled()).toEqual([true])
    expect(await gaps()).toEqual([true])
    expect(await listGaps(t.database, 0)).toEqual([])
    expect(await isEvaluated()).toBe(true)
  })

  it('of a process without a spool is not', async () => {
    await outage(aProcess(null), { report: null })
    expect(await gaps()).toEqual([false])
    expect(await listGaps(t.database, 0)).toHaveLength(1)
  })

  it('of two processes, of which one has no spool, is not', async () => {
    await aProcess(null).beat()
    await outage()
    expect(await gaps()).toEqual([false])
  })

  it('of processes that beat at the same time is one: each sees the row of the other', async () => {
    const processes = [aProcess(), aProcess()]
    const beatTogether = async () => {
      const beats = await t.database.transaction(async (tx) => {
        await lockBeat(tx)
        const waiting = processes.map((process) => process.beat())
        await untilWaiting(t, processes.length)
        return waiting
      })
      await Promise.all(beats)
    }
    await beatTogether()
    await beatTogether()
    await letPass(20_000)
    await beatTogether()
    expect(await settled()).toEqual([true])
  })

  it('after the end of another process, whose beat was the last one, is one', async () => {
    const [process, other] = [aProcess(), aProcess()]
    await process.beat()
    await other.beat()
    await other.end()
    await outage(process)
    expect(await settled()).toEqual([true])
  })

  it('after a clock of the database that was set back is one', async () => {
    const process = aProcess()
    await process.beat()
    await letPass(-3_000)
    await process.beat()
    await process.beat()
    await letPass(30_000)
    await process.beat()
    expect(await settled()).toEqual([true])
  })

  it('before which all processes had stopped is not', async () => {
    const process = aProcess()
    await process.beat()
    await process.end()
    await letPass(20_000)
    await process.beat()
    expect(await gaps()).toEqual([false])
  })

  it('before which a process without a spool stopped is one: that process took no pings any more', async () => {
    const [process, other] = [aProcess(), aProcess(null)]
    await process.beat()
    await other.beat()
    await other.end()
    await outage(process)
    expect(await settled()).toEqual([true])
  })

  it('is one although a process that spooled its pings stops before that is known', async () => {
    const process = await outage(aProcess(), { report: { pendingSince: now() - 10_000, refusedAt: null } })
    expect(await settled()).toEqual([])
    await process.end()
    expect(await settled()).toEqual([true])
  })

  it('is not one although the process that refused its pings stops before that is known', async () => {
    const process = await outage(aProcess(), { report: { pendingSince: now(), refusedAt: now() - 1_000 } })
    await process.end()
    expect(await settled()).toEqual([false])
  })

  it('in which the spool refused a ping is not', async () => {
    await outage(aProcess(), { report: { pendingSince: null, refusedAt: now() - 1_000 } })
    expect(await settled()).toEqual([false])
  })

  it('is not concerned by what the spool refused before it', async () => {
    await outage(aProcess(), { report: { pendingSince: null, refusedAt: now() - 30_000 } })
    expect(await settled()).toEqual([true])
  })
})

describe('deadlines wait', () => {
  it('while a process has not recorded all', async () => {
    const pending = { pendingSince: now() - 10_000, refusedAt: null }
    const process = await outage(aProcess(), { report: pending })
    expect(await settled()).toEqual([])
    expect(await isEvaluated()).toBe(false)
    await process.beat()
    expect(await settled()).toEqual([true])
    expect(await isEvaluated()).toBe(true)
  })

  it('for a process that worked at the beginning of the gap, until it beats again', async () => {
    const other = aProcess()
    await other.beat()
    await outage()
    expect(await settled()).toEqual([])
    expect(await isEvaluated()).toBe(false)
    await other.beat()
    expect(await settled()).toEqual([true])
  })

  it.each([
    [14_000, []],
    [16_000, [false]],
  ])('for such a process no longer than 15 s: after %i ms %j is known', async (ms, expected) => {
    await aProcess().beat()
    const process = await outage()
    await letPass(ms)
    await process.beat()
    // That silence is a gap of its own.
    await t.database.query('delete from gaps where started_at > (select min(started_at) from gaps)')
    expect(await settled()).toEqual(expected)
  })

  it('not for a process that was gone before the gap', async () => {
    await aProcess().beat()
    await letPass(30_000)
    const process = aProcess()
    await process.beat()
    await t.database.query('delete from gaps')
    await outage(process)
    expect(await settled()).toEqual([true])
  })

  it('not for a process that has started since', async () => {
    await outage()
    await aProcess().beat({ pendingSince: now(), refusedAt: null })
    expect(await settled()).toEqual([true])
  })

  it('without a gap while pings wait on disk: an outage of under five seconds', async () => {
    const process = aProcess()
    await process.beat({ pendingSince: now(), refusedAt: null })
    expect(await isEvaluated()).toBe(false)
    await process.beat()
    expect(await isEvaluated()).toBe(true)
  })

  it('of a check whose pings wait on disk for its row, and of no other check', async () => {
    const [locked, other] = [await addOverdue(), await addOverdue()]
    const process = aProcess()
    await process.beat({ ...DRAINED, lockedChecks: [locked.key] })
    await aProcess().beat()
    expect(await listDue()).toEqual([other.key])
    await process.beat()
    expect((await listDue()).sort()).toEqual([locked.key, other.key].sort())
  })

  it('of such a check also where it follows a source, whose container pings', async () => {
    const jobArea = 'c1'
    const spec = { periodSeconds: 10, graceSeconds: 0, jobArea }
    const { key } = await t.addCheck({ armed: true, spec }, now() - 60_000)
    await t.database.query(
      `insert into seen_areas (area, cluster, seen_at) values ($1, $1, now()) on conflict (area) do update set seen_at = now()`,
      [jobArea],
    )
    const process = aProcess()
    await process.beat({ ...DRAINED, lockedChecks: [key] })
    expect(await listDue()).toEqual([])
    await process.beat()
    expect(await listDue()).toEqual([key])
  })

  it('of such a check no longer than 15 s after the last beat of the process', async () => {
    const { key } = await addOverdue()
    const process = aProcess()
    await process.beat({ ...DRAINED, lockedChecks: [key] })
    await process.end()
    await letPass(14_000)
    expect(await listDue()).toEqual([])
    await letPass(2_000)
    expect(await listDue()).toEqual([key])
  })

  it.each([
    ['is there', DRAINED, 1_500, true],
    ['has missed one: it may have spooled pings', DRAINED, 2_500, false],
    ['has missed all for five seconds', DRAINED, 5_050, false],
    ['is gone', DRAINED, 6_500, true],
    ['has missed one, and has no spool', null, 2_500, true],
  ])('without a gap for the beat of another process, which %s', async (_, spool, ms, expected) => {
    await aProcess(spool).beat()
    await letPass(ms)
    await aProcess().beat()
    await t.database.query('delete from gaps')
    expect(await isEvaluated()).toBe(expected)
  })

  it('for pings that were spooled while the beat was on its way', async () => {
    const process = aProcess()
    const said = [DRAINED, { pendingSince: now(), refusedAt: null }]
    await keepBeat({
      database: t.database,
      recorder: { isWell: () => true, recovered: () => {} },
      self: () => ({ id: process.id, spool: said.shift()! }),
      onGap: () => {},
      onSettled: () => {},
    })
    expect(said).toEqual([])
    expect(await isEvaluated()).toBe(false)
  })

  it.each([
    [599_000, false],
    [601_000, true],
  ])('no longer than ten minutes: pings that wait for %i ms on disk, evaluated %s', async (ms, expected) => {
    await aProcess().beat({ pendingSince: now() - ms, refusedAt: null })
    expect(await isEvaluated()).toBe(expected)
  })

  it.each([1_500, 2_500, 5_500])('not for a process that stopped %i ms ago', async (ms) => {
    const process = aProcess()
    await process.beat({ pendingSince: now(), refusedAt: null })
    await process.end()
    await letPass(ms)
    await aProcess(null).beat()
    await t.database.query('delete from gaps')
    expect(await isEvaluated()).toBe(true)
  })

  it('not for a process that has not beaten for 15 s', async () => {
    await aProcess().beat({ pendingSince: now(), refusedAt: null })
    await letPass(16_000)
    expect(await isEvaluated()).toBe(true)
  })
})

describe('a beat on a connection of pings, which wait 400 ms for a row,', () => {
  let database: Database
  beforeAll(() => {
    database = createDatabase({ url: t.url, name: 'impatient', connections: 1, lockMs: 400 })
  })
  afterAll(() => database.close())

  /** While another replica's beat takes so long. */
  async function beatBeside(seconds: number): Promise<unknown> {
    let beating: Promise<unknown> | undefined
    await t.database.transaction(async (tx) => {
      await lockBeat(tx)
      beating = database
        .transaction(async (own) => {
          await lockBeat(own)
          await beat(own, { id: randomUUID(), spool: DRAINED })
        })
        .then(
          () => 'written',
          ({ cause }) => cause.code,
        )
      await untilWaiting(t, 1)
      await tx.query('select pg_sleep($1)', [seconds])
    })
    return beating
  }

  it.each([
    [0.6, 'written'],
    [1.7, '55P03'],
  ])('waits for one of another replica that takes %f s: %s', async (seconds, expected) => {
    expect(await beatBeside(seconds)).toBe(expected)
  })
})

it('a stop moves the beat of the service in no direction, whatever other processes have left', async () => {
  const beatOf = async () => (await t.database.query<{ at: number }>('select beat_at as at from service_beat')).rows
  await aProcess().beat()
  await letPass(3_000)
  const process = aProcess()
  await process.beat()
  const before = await beatOf()
  await process.end()
  await process.end()
  expect(await beatOf()).toEqual(before)
})

it('beats of processes that are long gone are removed', async () => {
  await aProcess().beat()
  await letPass(86_300_000)
  await settled()
  const count = async () => (await t.database.query('select from ping_beats')).rowCount
  expect(await count()).toBe(1)
  await letPass(200_000)
  await settled()
  expect(await count()).toBe(0)
})
