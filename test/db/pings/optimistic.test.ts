/** Pings of cached checks are saved without locks where nothing has come between, and right in any case. */

import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import type { Ping } from '../../../src/checks/ping/record.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { PING_TYPES } from '../../../src/domain/check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { Session } from '../../../src/store/postgres/database.ts'
import { createRandom } from '../../support/random.ts'
import { replayAll } from '../../support/replay.ts'
import {
  clock,
  createPingFixture,
  LOCKED,
  OPTIMISTIC,
  type PingFixture,
  pingOf,
  type Replica,
  STALE,
} from './fixture.ts'

const SEED = Number(process.env.TEST_SEED ?? 20_261_122)
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

const commit = (check: CheckRecord, overrides: Partial<Ping> = {}) => one.commit([pingOf(check, overrides)])
const withText = (text: string) => ({ body: Buffer.from(text) })

describe('a ping of a cached check', () => {
  it('takes no lock, whatever it carries', async () => {
    const [check] = await t.addCached(one, 1)
    const body = Buffer.from([0x66, 0x00, 0xff])
    for (const overrides of [
      { durationMs: 12 },
      { body },
      { type: 'start', exitCode: null },
      { type: 'log', exitCode: null, body: Buffer.from('half way') },
      {},
    ] as const)
      expect(await commit(check, overrides)).toEqual(OPTIMISTIC)

    const history = await t.historyOf(check)
    expect(history.map(({ type, exitCode, body }) => [type, exitCode, body?.toString('latin1') ?? null])).toEqual([
      ['success', 0, null],
      ['log', null, 'half way'],
      ['start', null, null],
      ['success', 0, 'f\u0000\u00ff'],
      ['success', 0, null],
      ['success', 0, null],
    ])
    expect(history[4]!.durationMs).toBe(12)
    // The completion of the run that was started, as the core measures it.
    const [started, completed] = [history[2]!.createdAt, history[0]!.createdAt].map(Math.floor) as [number, number]
    expect(history[0]!.durationMs).toBe(completed - started)
    expect(await t.stateOf(check)).toMatchObject({
      status: 'up',
      lastPingAt: completed,
      lastStartAt: started,
      lastDurationMs: completed - started,
      dueAt: completed + 3_900_000,
    })
    await t.expectOrdered(check, 6)
  })

  it('takes a lock with a run id: repeats are found among pings that took none', async () => {
    const [check] = await t.addCached(one, 1)
    const runId = randomUUID()
    const duplicate = { ...LOCKED, outcomes: ['duplicate'] }
    expect(await commit(check, { type: 'start', runId })).toEqual(LOCKED)
    expect(await commit(check)).toEqual(OPTIMISTIC)
    expect(await commit(check, { type: 'start', runId })).toEqual(duplicate)
    expect(await commit(check, { runId })).toEqual(LOCKED)
    expect(await commit(check)).toEqual(OPTIMISTIC)
    expect(await commit(check, { runId })).toEqual(duplicate)
    const group = [{}, { runId }, {}].map((overrides) => pingOf(check, overrides))
    expect(await one.commit(group)).toEqual({ ...LOCKED, outcomes: ['stored', 'duplicate', 'stored'] })
    await t.expectOrdered(check, 7)
  })

  it('takes a lock when it flips its check; the flip and its event are written', async () => {
    const [check] = await t.addCached(one, 1)
    const fail = { type: 'fail', exitCode: 1 } as const
    expect(await commit(check)).toEqual(OPTIMISTIC)
    expect(await commit(check, fail)).toEqual(LOCKED)
    expect(await t.stateOf(check)).toMatchObject({ status: 'down', dueAt: null })
    // It is down already: only its state changes.
    expect(await commit(check, fail)).toEqual(OPTIMISTIC)
    expect(await commit(check)).toEqual(LOCKED)
    expect(await t.reasonsOf(check)).toEqual(['recovered', 'failed', 'first_success', 'created'])
    expect(await t.eventsOf(check)).toEqual(['check.down', 'check.up'])
    await t.expectOrdered(check, 5)
  })

  it('takes a lock when it brings the deadline nearer: the evaluator must come earlier', async () => {
    const [check] = await t.addCached(one, 1, { spec: { maxRuntimeSeconds: 60 } })
    expect(await commit(check, { type: 'start' })).toEqual(LOCKED)
    const { row } = await t.readBoth(one, check)
    expect(row.wakeAt).toBe(row.state.runs[0]!.deadlineAt)
  })
})

it(`the cache holds the row as it is after each group of pings of all kinds (seed ${SEED})`, async () => {
  const random = createRandom(SEED)
  const checks: CheckRecord[] = []
  for (const spec of [{}, { maxRuntimeSeconds: 60 }, { schedule: '*/5 * * * *', timeZone: 'UTC' }, {}])
    checks.push(await t.addCheck({ spec }))
  const tries = { optimistic: 0, locked: 0 }
  let at = clock.now()
  for (let sent = 0; sent < 200; ) {
    const hasRuns = random.chance(0.2)
    const group: Ping[] = []
    for (let left = random.int(1, 6); left > 0; left -= 1, sent += 1) {
      // Forwards by up to twenty minutes, to the microsecond; now and then a clock that is behind.
      at += random.chance(0.1) ? -5_000 : random.int(0, 1_200_000_000) / 1_000
      group.push(
        pingOf(random.pick(checks), {
          type: random.chance(0.6) ? 'success' : random.pick(PING_TYPES),
          durationMs: random.chance(0.3) ? random.int(0, 604_800_000) : null,
          runId: hasRuns && random.chance(0.5) ? randomUUID() : null,
          body: random.chance(0.3) ? Buffer.from(`ping ${sent}`) : null,
          at,
        }),
      )
    }
    const committed = await one.commit(group)
    expect(new Set(committed.outcomes)).toEqual(new Set(['stored']))
    tries[committed.tries.at(-1)!] += 1
    for (const check of checks) {
      const { cached, row } = await t.readBoth(one, check)
      if (cached !== null) expect(cached).toEqual(row)
    }
  }
  for (const check of checks) {
    const { cached, row } = await t.readBoth(one, check)
    expect(cached === null).toBe(row.state.runs.length > 2)
  }
  expect(tries.optimistic).toBeGreaterThan(10)
  expect(tries.locked).toBeGreaterThan(10)
  expect((await replayAll(t.database, { isGiven: () => true })).problems).toEqual([])
})

describe('a cached row is found to be stale', () => {
  const GRACE = 'update check_states set grace_seconds = 11 where check_key = $1'

  it.each([
    ['that another replica has pinged', (check) => two.record(check, { type: 'start' }), { status: 'up' }],
    ['that another replica has flipped', (check) => two.record(check, { type: 'fail' }), { status: 'up' }],
    [
      'that a person has paused',
      (check) => pauseCheck(t.context, t.tenant(), check.id),
      { status: 'paused', dueIn: null },
    ],
    [
      'whose spec a person has changed',
      (check) => updateCheck(t.context, t.tenant(), check.id, { periodSeconds: 60, graceSeconds: 7 }),
      { status: 'up', dueIn: 67_000 },
    ],
    [
      'that an SQL statement has changed',
      ({ key }) => t.database.query(GRACE, [key]),
      { status: 'up', dueIn: 3_611_000 },
    ],
  ] as [string, (check: CheckRecord) => Promise<unknown>, { status: string; dueIn?: number | null }][])(
    '%s',
    async (_, change, { status, dueIn = 3_900_000 }) => {
      const [check] = await t.addCached(one, 1)
      await change(check)
      const before = (await t.historyOf(check)).length
      expect(await commit(check)).toEqual(STALE)
      expect(one.groups).toEqual([1])
      const state = await t.stateOf(check)
      expect(state.status).toBe(status)
      expect(state.dueAt).toBe(dueIn === null ? null : state.lastPingAt! + dueIn)
      const { cached, row } = await t.readBoth(one, check)
      expect(cached).toEqual(row)
      await t.expectOrdered(check, before + 1)
    },
  )

  it('that an SQL statement has left without a schedule: its ping is rejected', async () => {
    const [check] = await t.addCached(one, 1)
    await t.database.query(
      `update check_states set period_seconds = null, schedule = 'nonsense', time_zone = 'UTC' where check_key = $1`,
      [check.key],
    )
    expect(await commit(check)).toEqual({ ...STALE, outcomes: ['rejected'] })
    // Or each of its pings would make the next groups take locks.
    expect(one.cache.find([check.key])).toEqual([])
    await t.expectOrdered(check, 1)
  })

  it('that a person has removed: its ping is looked up, and is unknown', async () => {
    const [check, other] = await t.addCached(one, 2)
    await removeCheck(t.context, t.tenant(), check.id)
    const both = [check, other].map((of) => pingOf(of))
    const lookedUp = [...STALE.tries, 'optimistic']
    expect(await one.commit(both)).toEqual({ tries: lookedUp, outcomes: ['unknown', 'stored'] })
    expect((await one.commit(both)).outcomes).toEqual(['unknown', 'stored'])
    await t.expectOrdered(other, 3)
    expect((await t.database.query('select from pings where check_key = $1', [check.key])).rows).toEqual([])
  })

  it.each([
    ['commits', 'commit', STALE, 3_611_000],
    ['is rolled back', 'rollback', OPTIMISTIC, 3_900_000],
  ] as const)('or not, when a transaction that the ping waits for %s', async (_, end, expected, dueIn) => {
    const [check, other] = await t.addCached(one, 2)
    const changing = await t.hold(GRACE, [check.key])
    const committing = one.commit([check, other].map((of) => pingOf(of, withText('late'))))
    await t.untilBlocked(one)
    await changing.end(end)
    expect(await committing).toEqual({ ...expected, outcomes: ['stored', 'stored'] })
    const { lastPingAt, dueAt } = await t.stateOf(check)
    expect(dueAt).toBe(lastPingAt! + dueIn)
    for (const each of [check, other]) expect(await t.textsOf(each)).toEqual(['late', null])
  })
})

describe('a group of cached checks', () => {
  it('of which one is stale is stored once, with every outcome in its place', async () => {
    const [first, stale, last] = await t.addCached(one, 3)
    expect(await two.record(stale, withText('two'))).toBe('stored')
    const pings: [Pick<CheckRecord, 'publicId'>, string | null][] = [
      [last, 'a'],
      [stale, 'b'],
      [{ publicId: randomUUID() }, 'c'],
      [first, null],
      [stale, 'd'],
      [first, 'e'],
    ]
    const { outcomes } = await one.commit(
      pings.map(([check, text]) => pingOf(check, { body: text === null ? null : Buffer.from(text) })),
    )
    expect(outcomes).toEqual(['stored', 'stored', 'unknown', 'stored', 'stored', 'stored'])
    // Those of the stale check are a group of their own.
    expect(one.groups).toEqual([4, 2])
    expect(await t.textsOf(first)).toEqual(['e', null, null])
    expect(await t.textsOf(stale)).toEqual(['d', 'b', 'two', null])
    expect(await t.textsOf(last)).toEqual(['a', null])
    expect((await t.database.query('select from ping_bodies')).rows).toHaveLength(5)
    for (const check of [first, stale, last]) {
      const { cached, row } = await t.readBoth(one, check)
      expect(cached).toEqual(row)
    }
  })

  it('is locked after conflicts, and tried without locks again when there are none', async () => {
    const [check] = await t.addCached(one, 1)
    const conflict = async () => {
      await two.record(check)
      expect(await commit(check)).toEqual(STALE)
    }
    await conflict()
    await conflict()
    expect(await commit(check)).toEqual(LOCKED)
    await conflict()
    for (let i = 0; i < 3; i += 1) expect(await commit(check)).toEqual(LOCKED)
    expect(await commit(check)).toEqual(OPTIMISTIC)
    await conflict()
    expect(await commit(check)).toEqual(OPTIMISTIC)
  })
})

describe('a connection that breaks', () => {
  const BROKEN = () => new Error('Connection terminated unexpectedly')

  it('while an optimistic group waits for a row: its pings are lost, and nothing is stored', async () => {
    const [held, other] = await t.addCached(one, 2)
    const holding = await t.holdRow(held)
    const committing = one.commit([held, other].map((check) => pingOf(check)))
    await t.cut(await t.untilBlocked(one))
    expect((await committing).outcomes).toEqual(['lost', 'lost'])
    await holding.end()
    // The cache is still true, since nothing was saved.
    expect(await one.commit([held, other].map((check) => pingOf(check)))).toEqual({
      ...OPTIMISTIC,
      outcomes: ['stored', 'stored'],
    })
    for (const check of [held, other]) await t.expectOrdered(check, 2)
  })

  it('while the stale part of a group waits for its lock: that part was not sent, the rest is stored', async () => {
    const [check, held] = await t.addCached(one, 2)
    await two.record(held)
    await t.holdRow(held)
    const committing = one.commit([check, held].map((of) => pingOf(of)))
    await t.cut(await t.untilBlocked(one))
    expect((await committing).outcomes).toEqual(['stored', 'unsent'])
    await t.expectOrdered(check, 2)
    await t.expectOrdered(held, 2)
  })

  it('after an optimistic group was saved: its pings are lost, and the stale cache is found out', async () => {
    const checks = await t.addCached(one, 2)
    const both = (text: string) => checks.map((check) => pingOf(check, withText(text)))
    const first = await one.commit(both('first'), (session) => ({
      ...session,
      async within(budgetMs, work) {
        await session.within(budgetMs, work)
        throw BROKEN()
      },
    }))
    expect(first.outcomes).toEqual(['lost', 'lost'])
    expect(await one.commit(both('second'))).toEqual({ ...STALE, outcomes: ['stored', 'stored'] })
    for (const check of checks) {
      expect(await t.textsOf(check)).toEqual(['second', 'first', null])
      const { cached, row } = await t.readBoth(one, check)
      expect(cached).toEqual(row)
    }
  })

  it('over half of a rejected group: the other half was not sent', async () => {
    const checks = await t.addChecks(4)
    const failures = [Object.assign(new Error('poison'), { severity: 'ERROR', code: '23514' }), BROKEN()]
    const { outcomes, tries } = await one.commit(
      checks.map((check) => pingOf(check)),
      (session): Session => ({ ...session, groupTransaction: () => Promise.reject(failures.shift()) }),
    )
    expect(outcomes).toEqual(['unsent', 'unsent', 'unsent', 'unsent'])
    expect(tries.filter((way) => way === 'locked')).toHaveLength(2)
  })

  it('while a locked group waits for a row: its pings are stored over another connection', async () => {
    const [held, other] = await t.addChecks(2)
    const holding = await t.holdRow(held)
    const results = Promise.all([held, other].map((check) => one.record(check)))
    const pid = await t.untilBlocked(one)
    await t.cut(pid)
    await holding.end()
    expect(await results).toEqual(['stored', 'stored'])
    for (const check of [held, other]) await t.expectOrdered(check, 1)
    expect(one.recorder.isWell()).toBe(true)
  })
})
