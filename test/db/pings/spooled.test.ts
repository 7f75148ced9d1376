/** Pings that waited on disk: each is recorded once, in its place, whatever becomes of a transaction. */

import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { SPOOL_LIMITS } from '../../../src/checks/ping/commit.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { pause } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { useEach } from '../../support/use.ts'
import { clock, pingOf, usePings } from './fixture.ts'
import { openSpoolReplica, type SpoolReplicaOptions, withUnknownCommits } from './spool-fixture.ts'

const t = usePings()
/** A replica that reaches the database all the time. */
const other = useEach(() => t.addReplica('other'))
const folder = useEach(makeTempFolder)
afterEach(() => folder.remove())

const open = (options: Partial<SpoolReplicaOptions> = {}) =>
  openSpoolReplica({ url: t.url, folder: join(folder.path, 'spool'), ...options })

async function drain({ readBack, pings }: Awaited<ReturnType<typeof open>>): Promise<void> {
  await readBack.drain()
  expect(pings.isEmpty()).toBe(true)
}

const typesOf = async (check: CheckRecord) => (await t.historyOf(check)).map(({ type }) => type).reverse()
const textOf = (text: string) => ({ body: Buffer.from(text) })

describe('a commit that took place without a response', () => {
  it.each([
    ['without locks', true],
    ['with locks', false],
  ])('%s is found, and nothing is recorded twice', async (_name, isCached) => {
    let wrap: SpoolReplicaOptions['wrap'] = (session) => session
    await using one = await open({ wrap: (session) => wrap!(session) })
    const checks = await t.addChecks(3)
    if (isCached) for (const check of checks) expect(await one.recorder.record(pingOf(check))).toBe('stored')
    const before = isCached ? 1 : 0
    wrap = withUnknownCommits
    const sent = checks.map((check) => one.recorder.record(pingOf(check, textOf('in doubt'))))
    expect(new Set(await Promise.all(sent))).toEqual(new Set(['spooled']))
    expect(await Promise.all(checks.map(async (check) => (await t.historyOf(check)).length))).toEqual(
      checks.map(() => before + 1),
    )
    const behind = checks.map((check) => one.recorder.record(pingOf(check, textOf('behind'))))
    expect(new Set(await Promise.all(behind))).toEqual(new Set(['spooled']))
    await drain(one)
    for (const check of checks) {
      expect((await t.textsOf(check)).slice(0, 2)).toEqual(['behind', 'in doubt'])
      await t.expectOrdered(check, before + 2)
    }
  })
})

describe('a ping that cannot be recorded now', () => {
  const reject = (sqlState: string) =>
    t.database.query(`create function reject_ping() returns trigger language plpgsql as
        $$ begin if new.duration_ms = 666 then raise exception using errcode = '${sqlState}'; end if; return new; end $$;
      create trigger reject_ping before insert on pings for each row execute function reject_ping()`)
  afterEach(() => t.database.query('drop function if exists reject_ping cascade'))

  it.each([
    ['it lost a race', '40001'],
    ['a deadlock', '40P01'],
    ['a right is missing', '42501'],
    ['a table is missing', '42P01'],
    ['a lock is held', '55P03'],
  ])('because of what passes (%s) waits, and is not dropped', async (_name, sqlState) => {
    await using one = await open()
    const [first, second, third] = await t.addChecks(3)
    await reject(sqlState)
    await one.spool(pingOf(first), pingOf(second, { durationMs: 666 }), pingOf(third!))
    for (let run = 0; run < 2; run += 1) await one.readBack.run().catch(() => {})
    expect(one.dropped).toEqual([])
    expect(one.pings.isEmpty()).toBe(false)
    await t.database.query('drop function reject_ping cascade')
    await drain(one)
    expect(one.dropped).toEqual([])
    for (const check of [first, second, third!]) await t.expectOrdered(check, 1)
  })

  it.each([
    ['its data', '23514'],
    ['a trigger', 'P0001'],
  ])('because of itself (%s) is counted, and keeps no other one waiting', async (_name, sqlState) => {
    await using one = await open()
    const [first, second, third] = await t.addChecks(3)
    await reject(sqlState)
    await one.spool(pingOf(first), pingOf(second, { durationMs: 666 }), pingOf(third!), pingOf(second))
    await drain(one)
    expect(one.dropped).toEqual(['rejected'])
    for (const check of [first, second, third!]) await t.expectOrdered(check, 1)
  })

  it('because its check was removed is counted', async () => {
    await using one = await open()
    const [gone, kept] = await t.addChecks(2)
    await one.spool(pingOf(gone), pingOf(kept))
    await removeCheck(t.context, t.tenant(), gone.id)
    await drain(one)
    expect(one.dropped).toEqual(['check_removed'])
    await t.expectOrdered(kept, 1)
  })
})

describe('the position of the spool', () => {
  it('is kept, also when the database has lost it: a standby may never have had it', async () => {
    const checks = await t.addChecks(2)
    const pings = Array.from({ length: 1_500 }, (_, index) => pingOf(checks[index % 2]!, textOf(`${index}`)))
    {
      let isForgetting = true
      // The process is killed before it deletes the file.
      const forget = async () => {
        if (!isForgetting) throw new Error('killed')
      }
      await using one = await open({ spoolOf: (spool) => ({ ...spool, isEmpty: spool.isEmpty, forget }) })
      await one.spool(...pings)
      expect(await one.readBack.run()).toBe('again')
      await t.database.query('delete from spools')
      isForgetting = false
      await expect(one.readBack.run()).rejects.toThrow('killed')
    }
    await using next = await open()
    expect(next.pings.pings()).toBe(1_500)
    await drain(next)
    for (const check of checks) await t.expectOrdered(check, 750)
  })
})

describe('beside another replica', () => {
  it('a ping that is older than a completion is history only', async () => {
    await using one = await open()
    const check = await t.addCheck()
    const late = pingOf(check, { type: 'fail', at: clock.now() - 5_000 })
    expect(await other.record(check)).toBe('stored')
    await one.spool(late)
    await drain(one)
    expect(await t.stateOf(check)).toMatchObject({ status: 'up' })
    expect(await typesOf(check)).toEqual(['fail', 'success'])
    expect(await t.reasonsOf(check)).toEqual(['first_success', 'created'])
  })

  it('a ping that is newer decides', async () => {
    await using one = await open()
    const check = await t.addCheck()
    expect(await other.record(check, { at: clock.now() - 5_000 })).toBe('stored')
    await one.spool(pingOf(check, { type: 'fail' }))
    await drain(one)
    expect(await t.stateOf(check)).toMatchObject({ status: 'down' })
    expect(await typesOf(check)).toEqual(['success', 'fail'])
    expect((await t.eventsOf(check)).filter((type) => type === 'check.down')).toHaveLength(1)
  })
})

describe('many pings', () => {
  it('with long bodies that wait when the database fails are all stored', async () => {
    const { promise: failing, resolve: fail } = Promise.withResolvers<void>()
    const outage = { kind: 'outage', error: new Error('no database') } as const
    await using one = await open({
      commit: async (_session, group) => {
        await failing
        return group.map(() => outage)
      },
    })
    const check = await t.addCheck()
    const body = Buffer.alloc(10_000, 'x')
    const sent = Array.from({ length: 1_000 }, () => one.recorder.record(pingOf(check, { body })))
    fail()
    expect(new Set(await Promise.all(sent))).toEqual(new Set(['spooled']))
    expect(one.errors).toEqual([])
    await drain(one)
    expect((await t.database.query('select from pings')).rowCount).toBe(1_000)
  })

  it('of checks that ping all the time do not keep the spool in use for ever', async () => {
    const checks: CheckRecord[] = []
    while (checks.length < 64) checks.push(await t.addCheck())
    {
      await using before = await open()
      await before.spool(...checks.map((check) => pingOf(check)))
    }
    // It does not know whose pings the process before it left, so that all pings wait behind them.
    await using one = await open()
    let isOver = false
    const results = new Set<string>()
    const jobs = checks.map(async (check) => {
      while (!isOver) results.add(await one.recorder.record(pingOf(check)))
    })
    try {
      const giveUpAt = clock.now() + 10_000
      while (!one.pings.isEmpty() && clock.now() < giveUpAt) await one.readBack.run()
      expect(one.pings.isEmpty()).toBe(true)
      expect([...results]).toContain('spooled')
    } finally {
      isOver = true
      await Promise.all(jobs)
    }
    expect(results).not.toContain('unavailable')
    for (const check of checks.slice(0, 5)) {
      const times = (await t.historyOf(check)).map(({ createdAt }) => createdAt)
      expect(times).toEqual([...new Set(times)].sort((a, b) => b - a))
    }
  })
})

it('a row that another session holds is no outage: others are stored, and its ping waits as long as without a spool', async () => {
  await using one = await open({ limits: SPOOL_LIMITS })
  const [held, other, third] = await t.addChecks(3)
  const holder = await t.holdRow(held)
  const startedAt = clock.now()
  const sent = [held, held, other].map((check) => one.recorder.record(pingOf(check)))
  expect(await sent[2]).toBe('stored')
  expect(await one.recorder.record(pingOf(third!))).toBe('stored')
  expect(clock.now() - startedAt).toBeLessThan(1_400)
  expect(await Promise.all(sent)).toEqual(['unavailable', 'unavailable', 'stored'])
  expect(clock.now() - startedAt).toBeGreaterThan(1_400)
  expect([one.recorder.isWell(), one.pings.isEmpty()]).toEqual([true, true])
  await holder.end()
})

it('a row that another session holds for less than a ping waits without a spool loses none, and keeps their order', async () => {
  await using one = await open({ limits: SPOOL_LIMITS })
  const [held] = await t.addChecks(1)
  const holder = await t.holdRow(held)
  const sent = [one.recorder.record(pingOf(held!, { exitCode: 1 }))]
  await pause(700)
  sent.push(one.recorder.record(pingOf(held!, { exitCode: 2 })))
  await holder.end()
  expect(await Promise.all(sent)).toEqual(['stored', 'stored'])
  expect((await t.historyOf(held!)).map(({ exitCode }) => exitCode)).toEqual([2, 1])
})
