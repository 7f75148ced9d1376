/** Which checks a process knows, and what becomes of pings when it is wrong. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createKnownChecks } from '../../../src/checks/ping/known-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { replayAll } from '../../support/replay.ts'
import { settle } from '../../support/until.ts'
import { pingOf, usePings } from './fixture.ts'

const t = usePings()

/** The checks that a replica knows. Statements take no time on its clock, unless `takes` says so. */
function createKnown(page?: number) {
  const clock = createManualClock()
  const pages: number[] = []
  let statementMs = 0
  const database = {
    async queryColumns(statement: Parameters<Queryable['queryColumns']>[0]) {
      await clock.advance(statementMs)
      const rows = await t.database.queryColumns(statement)
      pages.push(rows.length)
      return rows
    },
  } as Queryable
  const known = createKnownChecks({ database, clock, ...(page === undefined ? {} : { page }) })
  return {
    known,
    clock,
    /** How many checks each statement returned. */
    pages,
    takes(ms: number) {
      statementMs = ms
    },
  }
}

async function insertMany(count: number): Promise<void> {
  await t.database.query(
    `insert into checks (id, public_id, project_id, name, slug, created_at)
     select gen_random_uuid(), gen_random_uuid(), $1, 'check', 'check-' || n, now() from generate_series(1, $2::int) n`,
    [t.tenant().project, count],
  )
}

/** As a resource that is created again gets its check back. */
const insertAgain = ({ key, publicId }: CheckRecord) =>
  t.database.query(
    `insert into checks (key, id, public_id, project_id, name, slug, created_at) overriding system value
     values ($1, gen_random_uuid(), $2, $3, 'check', 'again', now())`,
    [key, publicId, t.tenant().project],
  )
const remove = ({ id }: CheckRecord) => removeCheck(t.context, t.tenant(), id)

describe('a refresh', () => {
  it('knows checks that were added, and those that came back with their key; a removed one is gone', async () => {
    const [kept, removed] = await t.addChecks(2)
    const { known } = createKnown()
    await known.refresh()
    expect([known.keyOf(kept.publicId), known.keyOf(removed.publicId)]).toEqual([kept.key, removed.key])
    expect(known.size).toBe(2)
    const added = await t.addCheck()
    await remove(removed)
    await known.refresh()
    expect([known.keyOf(added.publicId), known.has(removed.publicId), known.size]).toEqual([added.key, false, 2])
    await insertAgain(removed)
    await known.refresh()
    expect([known.keyOf(removed.publicId), known.size]).toEqual([removed.key, 3])
  })

  it('reads keys of any size', async () => {
    const other = await t.addCheck()
    for (const key of [2 ** 29 - 1, 2 ** 29, 2 ** 31, 2 ** 32 + 3, 2 ** 40 + 5, 2 ** 48 - 1]) {
      const check = { ...other, publicId: randomUUID(), key }
      await insertAgain(check)
      const { known } = createKnown()
      await known.refresh()
      expect(known.keyOf(check.publicId)).toBe(key)
      await t.database.query('delete from checks where key = $1', [key])
    }
  })

  it('replaces the key of a check that was made anew under its public id', async () => {
    const before = await t.addCheck()
    const { known } = createKnown()
    await known.refresh()
    await remove(before)
    const { key } = await t.addCheck({ publicId: before.publicId })
    expect(key).not.toBe(before.key)
    await known.refresh()
    expect([known.keyOf(before.publicId), known.size]).toEqual([key, 1])
  })

  it('reads only what is new while all checks were read lately, and they took long', async () => {
    const [removed] = await t.addChecks(3)
    const { known, clock, pages, takes } = createKnown(2)
    takes(500)
    await known.refresh()
    expect([pages, known.size]).toEqual([[2, 1], 3])
    const added = await t.addCheck()
    await remove(removed)
    pages.length = 0
    // It took a second, and may take a fiftieth of the time.
    await clock.advance(48_000)
    await known.refresh()
    expect([known.keyOf(added.publicId), known.has(removed.publicId), known.size]).toEqual([added.key, true, 4])
    await clock.advance(2_000)
    await known.refresh()
    expect([known.has(removed.publicId), known.size]).toEqual([false, 3])
  })

  it('finds a check whose transaction commits after that of a newer one', async () => {
    const { known, takes } = createKnown()
    const [removed] = await t.addChecks(1)
    takes(1_000)
    await known.refresh()
    await remove(removed)
    const publicId = randomUUID()
    const holding = await t.hold(
      `insert into checks (id, public_id, project_id, name, slug, created_at) values (gen_random_uuid(), $1, $2, 'check', 'late', now())`,
      [publicId, t.tenant().project],
    )
    const newer = await t.addCheck()
    await known.refresh()
    expect([known.keyOf(newer.publicId), known.has(publicId)]).toEqual([newer.key, false])
    await holding.end('commit')
    await known.refresh()
    expect(known.keyOf(publicId)).toBeLessThan(newer.key)
    // Only the new checks were read.
    expect(known.has(removed.publicId)).toBe(true)
  })

  it('keeps what was learnt while it read', async () => {
    await t.addChecks(3)
    const { known, pages } = createKnown(1)
    const learnt = randomUUID()
    const refreshing = known.refresh()
    while (pages.length < 2) await settle()
    known.learn(learnt, 1)
    await refreshing
    expect([known.keyOf(learnt), known.size]).toEqual([1, 4])
    // The next reading does not find it.
    await known.refresh()
    expect([known.has(learnt), known.size]).toEqual([false, 3])
  })

  it('that fails or is ended leaves what is known, and the next one reads all', async () => {
    const [removed] = await t.addChecks(2)
    const { known } = createKnown(1)
    await known.refresh()
    await remove(removed)
    const ending = new AbortController()
    ending.abort()
    await known.refresh(ending.signal)
    const failing = createKnownChecks({
      database: { queryColumns: () => Promise.reject(new Error('away')) } as unknown as Queryable,
      clock: createManualClock(),
    })
    failing.learn(removed.publicId, removed.key)
    await expect(failing.refresh()).rejects.toThrow('away')
    expect([failing.keyOf(removed.publicId), known.has(removed.publicId)]).toEqual([removed.key, true])
    await known.refresh()
    expect([known.has(removed.publicId), known.size]).toEqual([false, 1])
  })

  it('reads 20,000 checks in pages of 2,000, with turns of the event loop in between', async () => {
    await insertMany(20_000)
    const { known, pages } = createKnown()
    /** How many pages were read at each turn. */
    let turns: number[] = []
    let isOver = false
    const count = () => {
      turns.push(pages.length)
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    await known.refresh()
    expect(known.size).toBe(20_000)
    expect(pages).toEqual([...Array.from({ length: 10 }, () => 2_000), 0])
    expect(new Set(turns).size).toBeGreaterThanOrEqual(pages.length - 1)
    await t.database.query('delete from checks where key % 2 = 0')
    turns = []
    await known.refresh()
    expect(known.size).toBe(10_000)
    isOver = true
    // Behind the last page a turn after each 2,000 of the entries that are looked at.
    expect(turns.filter((read) => read === pages.length).length).toBeGreaterThanOrEqual(20_000 / 2_000)
    const { rows } = await t.database.query<{ public_id: string; key: number }>('select public_id, key from checks')
    expect(rows).toHaveLength(10_000)
    expect(rows.every(({ public_id, key }) => known.keyOf(public_id) === key)).toBe(true)
  })
})

describe('a ping', () => {
  it('of a check that a refresh found is committed without a look-up', async () => {
    const check = await t.addCheck()
    const { known } = createKnown()
    await known.refresh()
    const one = t.addReplica('one', known)
    // It becomes up, which takes a lock.
    expect(await one.commit([pingOf(check)])).toEqual({ outcomes: ['stored'], tries: ['locked'] })
    expect(await one.commit([pingOf(check)])).toEqual({ outcomes: ['stored'], tries: ['plain'] })
  })

  it('of a check that is up is plain from the first refresh on, under a period and a cron expression', async () => {
    const two = t.addReplica('two')
    const [hourly] = await t.addUp(two, 1)
    const [nightly] = await t.addUp(two, 1, { spec: { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' } })
    const [started] = await t.addUp(two, 1)
    await two.commit([pingOf(started, { type: 'start' })])
    const { known } = createKnown()
    await known.refresh()
    const one = t.addReplica('one', known)
    expect((await one.commit([hourly, nightly].map((of) => pingOf(of)))).tries).toEqual(['plain'])
    expect((await one.commit([pingOf(started)])).tries).toEqual(['locked'])
    for (const check of [hourly, nightly]) await t.expectOrdered(check, 2)
    expect((await replayAll(t.database, { isGiven: () => false })).problems).toEqual([])
  })

  it('of a check that is not known is looked up once', async () => {
    const check = await t.addCheck()
    const { known } = createKnown()
    const one = t.addReplica('one', known)
    expect((await one.commit([pingOf(check), pingOf(check)])).tries).toEqual(['look-up', 'locked'])
    expect(known.keyOf(check.publicId)).toBe(check.key)
  })

  it('of a check that was made anew is stored at the first try, on each replica, among others', async () => {
    const [before, other] = await t.addChecks(2)
    const replicas = ['one', 'two'].map((name) => ({ ...createKnown(), name }))
    for (const { known } of replicas) await known.refresh()
    await remove(before)
    const check = await t.addCheck({ publicId: before.publicId })
    for (const { known, name } of replicas) {
      const replica = t.addReplica(name, known)
      const { outcomes } = await replica.commit([other, before, other, before].map((of) => pingOf(of)))
      expect(outcomes).toEqual(['stored', 'stored', 'stored', 'stored'])
      expect(known.keyOf(before.publicId)).toBe(check.key)
    }
    expect(await t.historyOf(check)).toHaveLength(4)
    await t.expectOrdered(other, 4)
  })

  it('of a check that was made anew, and was up, is stored at the first try', async () => {
    const { known } = createKnown()
    const one = t.addReplica('one', known)
    const [before] = await t.addUp(one, 1)
    await remove(before)
    const check = await t.addCheck({ publicId: before.publicId })
    expect((await one.commit([pingOf(before)])).outcomes).toEqual(['stored'])
    expect(await t.historyOf(check)).toHaveLength(1)
  })

  it('of a check that was removed is unknown once the database has said so, and forgotten', async () => {
    const [gone, kept] = await t.addChecks(2)
    const { known } = createKnown()
    await known.refresh()
    const one = t.addReplica('one', known)
    await remove(gone)
    const { outcomes } = await one.commit([gone, kept, gone].map((of) => pingOf(of)))
    expect(outcomes).toEqual(['unknown', 'stored', 'unknown'])
    expect(known.has(gone.publicId)).toBe(false)
    await t.expectOrdered(kept, 1)
  })
})
