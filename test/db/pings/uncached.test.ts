/** Pings of checks that a process has not cached: their rows are read without locks, and what changes between reading and saving is found out. */

import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { Queryable, Session } from '../../../src/store/postgres/database.ts'
import { createPingFixture, OPTIMISTIC, type PingFixture, pingOf, type Replica } from './fixture.ts'

let t: PingFixture
let one: Replica
let two: Replica
beforeAll(async () => {
  t = await createPingFixture()
})
afterAll(() => t.close())
beforeEach(async () => {
  await t.clear()
  one = t.addReplica('one')
  two = t.addReplica('two')
})
afterEach(() => t.cleanUp())

const BROKEN = () => new Error('Connection terminated unexpectedly')

/** Runs `act` when the rows are read, before the statement that saves them is sent. */
function onRead(act: () => Promise<unknown>): (session: Session) => Session {
  return (session) => ({
    ...session,
    within: (budgetMs, work) =>
      session.within(budgetMs, (db) => work({ ...db, queryColumns: (statement) => readThen(db, statement, act) })),
  })
}

async function readThen(
  db: Queryable,
  statement: Parameters<Queryable['queryColumns']>[0],
  act: () => Promise<unknown>,
) {
  const rows = await db.queryColumns(statement)
  if (statement.name === 'read_states') await act()
  return rows
}

/** Up, cached by the replica `two`, and known to `one`, which has cached one of them. In the order of their keys. */
async function addUncached() {
  const [first, second, third] = await t.addCached(two, 3)
  for (const check of [first, second, third]) await one.commit([pingOf(check)])
  one.cache.drop([first.key, third.key])
  return [first, second, third]
}

it('are read and saved without locks, together with those that are cached', async () => {
  const checks = await addUncached()
  expect(await one.commit([...checks].reverse().map((check) => pingOf(check)))).toEqual({
    ...OPTIMISTIC,
    outcomes: ['stored', 'stored', 'stored'],
  })
  for (const check of checks) {
    await t.expectOrdered(check, 3)
    const { cached, row } = await t.readBoth(one, check)
    expect(cached).toEqual(row)
  }
})

it('are cached then: the next ping is not read', async () => {
  const [check] = await addUncached()
  await one.commit([pingOf(check!)])
  let reads = 0
  const counting = onRead(async () => {
    reads += 1
  })
  expect(await one.commit([pingOf(check!)], counting)).toEqual(OPTIMISTIC)
  expect(reads).toBe(0)
})

it('are decided again where another replica saved a ping in between: the others are not', async () => {
  const [check, , other] = await addUncached()
  const pings = [check, other].map((of) => pingOf(of!))
  const { outcomes, tries } = await one.commit(
    pings,
    onRead(() => two.record(check!)),
  )
  expect([outcomes, tries]).toEqual([
    ['stored', 'stored'],
    ['optimistic', 'locked'],
  ])
  await t.expectOrdered(check!, 4)
  await t.expectOrdered(other!, 3)
  expect((await t.stateOf(check!)).lastPingAt).toBe(Math.floor((await t.historyOf(check!))[0]!.createdAt))
})

it('stay paused when they are paused in between', async () => {
  const [check] = await addUncached()
  const { outcomes } = await one.commit(
    [pingOf(check!)],
    onRead(() => pauseCheck(t.context, t.tenant(), check!.id)),
  )
  expect(outcomes).toEqual(['stored'])
  expect(await t.stateOf(check!)).toMatchObject({ status: 'paused', dueAt: null })
})

it('are unknown when they are removed in between', async () => {
  const [check, , other] = await addUncached()
  const { outcomes } = await one.commit(
    [check, other].map((of) => pingOf(of!)),
    onRead(() => removeCheck(t.context, t.tenant(), check!.id)),
  )
  expect(outcomes).toEqual(['unknown', 'stored'])
})

it('were not sent when the connection breaks as they are read', async () => {
  const [check] = await addUncached()
  const breaking = onRead(() => Promise.reject(BROKEN()))
  expect((await one.commit([pingOf(check!)], breaking)).outcomes).toEqual(['unsent'])
  await t.expectOrdered(check!, 2)
})

it('are flipped under a lock', async () => {
  const [check] = await addUncached()
  expect(await one.commit([pingOf(check!, { type: 'fail', exitCode: 1 })])).toEqual({
    outcomes: ['stored'],
    tries: ['optimistic', 'locked'],
  })
  expect((await t.reasonsOf(check!))[0]).toBe('failed')
})
