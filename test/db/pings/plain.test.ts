/** A plain success is one statement without a lock, and right in any case: what is not plain is left to the locks. */

import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decideChanges } from '../../../src/checks/change.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { createKnownChecks } from '../../../src/checks/ping/known-checks.ts'
import { toChange } from '../../../src/checks/ping/ping.ts'
import { commitPlain } from '../../../src/checks/ping/plain.ts'
import type { Ping } from '../../../src/checks/ping/record.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { type CheckState, COMPLETIONS, PING_TYPES, STATUS_REASONS, STATUSES } from '../../../src/domain/check.ts'
import { newState } from '../../../src/domain/transition.ts'
import { saveChanges } from '../../../src/store/checks/change-sets.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { StoredSpec } from '../../../src/store/checks/columns.ts'
import { savePlainPings } from '../../../src/store/checks/plain-pings.ts'
import { type LockedCheck, lockStates } from '../../../src/store/checks/states.ts'
import type { Statement } from '../../../src/store/postgres/connection.ts'
import type { Session } from '../../../src/store/postgres/database.ts'
import { DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'
import { createRandom } from '../../support/random.ts'
import { replayAll } from '../../support/replay.ts'
import { useEach } from '../../support/use.ts'
import { clock, LEFT, LOCKED, PLAIN, pingOf, usePings } from './fixture.ts'

const SEED = Number(process.env.TEST_SEED ?? 20_261_122)
const t = usePings()
const one = useEach(() => t.addReplica('one'))
const two = useEach(() => t.addReplica('two'))

const commit = (check: CheckRecord, overrides: Partial<Ping> = {}) => one.commit([pingOf(check, overrides)])
const withText = (text: string) => ({ body: Buffer.from(text) })
const rowOf = ({ key }: CheckRecord) => t.database.transaction(async (tx) => (await lockStates(tx, [key]))[0]!)

describe('the statement', () => {
  /** Each within some days of NOON; a fraction carries microseconds. */
  const anInstant = fc.integer({ min: -3 * DAY * 1_000, max: 3 * DAY * 1_000 }).map((us) => NOON + us / 1_000)
  const aTime = anInstant.map(Math.floor)
  const orNull = <T>(one: fc.Arbitrary<T>) => fc.option(one, { freq: 2 })
  /** Mostly one of the common case, so that both outcomes are frequent. */
  const mostly = <T>(common: T, others: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 12, arbitrary: fc.constant(common) }, others)
  const aRun = fc.record({ id: orNull(fc.uuid()), startedAt: aTime, deadlineAt: orNull(aTime) })
  const aState: fc.Arbitrary<CheckState> = fc.record({
    status: mostly('up', fc.constantFrom(...STATUSES)),
    since: aTime,
    reason: fc.constantFrom(...STATUS_REASONS),
    lastPingAt: orNull(aTime),
    lastOutcome: orNull(fc.constantFrom(...COMPLETIONS)),
    lastSuccessAt: orNull(aTime),
    lastDurationMs: orNull(fc.nat(604_800_000)),
    lastStartAt: orNull(aTime),
    expectedAt: orNull(aTime),
    dueAt: orNull(aTime),
    runs: mostly([], fc.array(aRun, { maxLength: 2 })),
    pingsTotal: fc.nat(2 ** 31),
    incidentSince: orNull(aTime),
    changes: mostly(
      [],
      fc.array(aTime, { maxLength: 3 }).map((changes) => changes.sort((a, b) => a - b)),
    ),
    notified: mostly(null, fc.constantFrom(...STATUSES)),
    quietAt: mostly(null, aTime),
    hold: fc.constant(null),
    warnedAt: orNull(aTime),
    downNotifiedAt: fc.constant(null),
    escalation: fc.constant(null),
    reminders: fc.constant(0),
    consecutiveFailures: mostly(0, fc.nat(3)),
    consecutiveMisses: mostly(0, fc.nat(3)),
    pause: fc.constant(null),
    acknowledged: fc.constant(null),
    repeats: fc.constant([]),
  })
  const aSchedule = fc.oneof(
    fc.integer({ min: 10, max: 31_536_000 }).map((period) => ({ period, schedule: null, zone: null })),
    fc.record({
      period: fc.constant(null),
      schedule: fc.constantFrom('*/5 * * * *', '0 2 * * *', '0 9-17 * * 1-5', '30 2 29 2 *', '0 0 1 1 *', '0 0 30 2 *'),
      zone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York'),
    }),
  )
  const aCase = fc.record({
    when: aSchedule,
    grace: fc.integer({ min: 0, max: 2 * 86_400 }),
    maxRuntime: orNull(fc.integer({ min: 1, max: 86_400 })),
    resumeOnPing: fc.boolean(),
    state: aState,
    stampedAt: anInstant,
    wakeAt: orNull(aTime),
    at: anInstant,
    durationMs: orNull(fc.nat(604_800_000)),
    exitCode: orNull(fc.constant(0)),
    text: orNull(fc.string({ maxLength: 20 })),
    isOtherSpec: mostly(false, fc.constant(true)),
  })

  it('leaves the row alone, or makes of it what the state machine does', async () => {
    const check = await t.addCheck()
    const seen = { left: 0, period: 0, cron: 0 }
    const readPings = () =>
      t.database.query<{ createdAt: number; durationMs: number | null; exitCode: number | null; body: Buffer | null }>(
        `select type, source, p.run_id, created_at as "createdAt", duration_ms as "durationMs", exit_code as "exitCode", body
          from pings p left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id`,
      )
    const prove = async (given: typeof aCase extends fc.Arbitrary<infer T> ? T : never) => {
      const { when, grace, maxRuntime, resumeOnPing, state, stampedAt, wakeAt, at, durationMs, exitCode, text } = given
      await t.database.transaction(async (tx) => {
        await tx.query('delete from pings')
        await tx.query('delete from ping_bodies')
        await tx.query(
          `update check_states set period_seconds = $1, schedule = $2, time_zone = $3, grace_seconds = $4,
            dialect = case when $2::text is not null then 'cron' end, max_runtime_seconds = $5, resume_on_ping = $6`,
          [when.period, when.schedule, when.zone, grace, maxRuntime, resumeOnPing],
        )
        const states = [{ key: check.key, state, stampedAt, wakeAt }]
        await saveChanges(tx, { states, pings: [], flips: [], events: [] })
      })
      const before = await rowOf(check)
      const ping = pingOf(check, { at, durationMs, exitCode, body: text === null ? null : Buffer.from(text) })
      const { specHash: hash, stored: own, spec } = before
      const stored = given.isOtherSpec ? { ...own, graceSeconds: own.graceSeconds + 1 } : own
      const candidate = { ping, key: check.key, spec: { hash, stored, spec: spec! } }
      const [isStored] = await t.database.session((session) => commitPlain(session, 5_000, [candidate]))
      const after = await rowOf(check)
      const { rows } = await readPings()
      if (!isStored) {
        expect(after).toEqual(before)
        expect(rows).toEqual([])
        seen.left += 1
        return
      }
      expect(given.isOtherSpec).toBe(false)
      const decided = decideChanges([before], [toChange(ping, check.key)], 'earlier')
      expect(decided.changeSet.flips).toEqual([])
      expect(decided.changeSet.events).toEqual([])
      expect(after).toEqual(decided.after[0])
      const [expected] = decided.changeSet.pings
      expect(rows).toEqual([
        {
          type: PING_TYPES.indexOf('success'),
          source: 0,
          run_id: null,
          createdAt: expected!.at,
          durationMs: expected!.durationMs,
          exitCode: expected!.exitCode,
          body: expected!.body,
        },
      ])
      seen[when.period === null ? 'cron' : 'period'] += 1
    }
    await fc.assert(fc.asyncProperty(aCase, prove), { numRuns: 800, seed: SEED })
    // It proves something only if all of it happened.
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(30)
  })

  /** What the common case relies on, each alone: just so, and just not. */
  const PLAIN_STATE: CheckState = {
    ...newState(NOON - DAY),
    status: 'up',
    reason: 'first_success',
    lastPingAt: NOON - HOUR,
    lastSuccessAt: NOON - HOUR,
    expectedAt: NOON,
    dueAt: NOON + MINUTE,
    pingsTotal: 7,
  }
  const storePlain = async (
    check: CheckRecord,
    state: Partial<CheckState>,
    timing: Partial<LockedCheck> = {},
    otherSpec: Partial<StoredSpec> = {},
  ) => {
    const states = [
      { key: check.key, state: { ...PLAIN_STATE, ...state }, stampedAt: NOON - HOUR, wakeAt: NOON, ...timing },
    ]
    await saveChanges(t.database, { states, pings: [], flips: [], events: [] })
    const { spec, stored, specHash: hash } = await rowOf(check)
    const known = { hash, stored: { ...stored, ...otherSpec }, spec: spec! }
    const candidate = { ping: pingOf(check, { at: NOON }), key: check.key, spec: known }
    const [isStored] = await t.database.session((session) => commitPlain(session, 5_000, [candidate]))
    return isStored
  }
  const DUE = NOON + HOUR + 5 * MINUTE

  it.each<[string, Partial<CheckState>, Partial<LockedCheck>, boolean]>([
    ['the common case', {}, {}, true],
    ['a check that is new', { status: 'new' }, {}, false],
    ['a check that is down', { status: 'down' }, {}, false],
    ['a check that is paused', { status: 'paused' }, {}, false],
    ['an open run', { runs: [{ id: null, startedAt: NOON - SECOND, deadlineAt: null }] }, {}, false],
    ['changes that may still make it flap', { changes: [NOON - MINUTE] }, {}, false],
    ['a check that flaps', { notified: 'down', quietAt: NOON + MINUTE }, {}, false],
    ['an entry of a microsecond before', {}, { stampedAt: NOON - 0.001 }, true],
    ['an entry of the same moment', {}, { stampedAt: NOON }, false],
    ['an evaluation at the new deadline', {}, { wakeAt: DUE }, true],
    ['an evaluation a millisecond after the new deadline', {}, { wakeAt: DUE + 1 }, false],
    ['no evaluation', {}, { wakeAt: null }, false],
  ])('%s', async (_, state, timing, expected) => {
    const check = await t.addCheck({ spec: { periodSeconds: 3_600, graceSeconds: 300 } })
    expect(await storePlain(check, state, timing)).toBe(expected)
  })

  it.each<Partial<StoredSpec>>([
    { periodSeconds: 3_600 },
    { schedule: '5 * * * *' },
    { timeZone: 'Europe/Berlin' },
    { dialect: 'kubernetes' },
    { graceSeconds: 301 },
  ])('a spec in memory with %o, which is not that of the row', async (otherSpec) => {
    const check = await t.addCheck({ spec: { schedule: '0 * * * *', timeZone: 'UTC', graceSeconds: 300 } })
    expect(await storePlain(check, {}, {}, otherSpec)).toBe(false)
    expect(await storePlain(check, {})).toBe(true)
  })
})

it('the plan finds each row by its key, also where the statistics are of a time when all checks were new', async () => {
  const { projectId } = await t.addCheck()
  await t.database.query(
    `insert into checks (id, public_id, project_id, name, slug, created_at)
      select gen_random_uuid(), gen_random_uuid(), $1, 'new', 'new-' || n, now() from generate_series(1, 5000) n`,
    [projectId],
  )
  await t.database.query(
    `insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at)
      select key, 3600, 300, 0, now(), now() from checks where name = 'new'`,
  )
  await t.database.query('analyze check_states')
  let statement: Statement | null = null
  const noting = {
    ...one.database,
    queryColumns: (asked: Statement) => {
      statement = asked
      return one.database.queryColumns(asked)
    },
  }
  await savePlainPings(noting, [])
  const { rows } = await one.database.query(`explain (generic_plan, format json) ${statement!.text}`)
  expect(JSON.stringify(rows).match(/"(Index Name|Index Cond)":"[^"]+"/g)).toEqual([
    '"Index Name":"check_states_pkey"',
    expect.stringMatching(/"Index Cond":"\(check_key = /),
  ])
})

describe('a ping of a check that is up', () => {
  it('is one statement, whatever it carries', async () => {
    const [check] = await t.addUp(one, 1)
    const body = Buffer.from([0x66, 0x00, 0xff])
    for (const overrides of [{ durationMs: 12 }, { body }, { isBodyTruncated: true }, {}])
      expect(await commit(check, overrides)).toEqual(PLAIN)
    const history = await t.historyOf(check)
    expect(history.map(({ durationMs, body, isBodyTruncated }) => [durationMs, body, isBodyTruncated])).toEqual([
      [null, null, false],
      [null, null, true],
      [null, body, false],
      [12, null, false],
      [null, null, false],
    ])
    const completed = Math.floor(history[0]!.createdAt)
    expect(await t.stateOf(check)).toMatchObject({
      status: 'up',
      lastPingAt: completed,
      lastDurationMs: null,
      pingsTotal: 5,
      dueAt: completed + 3_900_000,
    })
    await t.expectOrdered(check, 5)
  })

  it.each<[string, Partial<Ping>]>([
    ['a start', { type: 'start', exitCode: null }],
    ['a fail', { type: 'fail', exitCode: 1 }],
    ['a log', { type: 'log', exitCode: null }],
    ['a success with a run id', { runId: randomUUID() }],
  ])('takes a lock as %s', async (_, overrides) => {
    const [check] = await t.addUp(one, 1)
    expect(await commit(check, overrides)).toEqual(LOCKED)
    await t.expectOrdered(check, 2)
  })

  it('takes a lock behind a start and behind a fail, and none behind that', async () => {
    const [check] = await t.addUp(one, 1)
    for (const type of ['start', 'fail'] as const) {
      expect(await commit(check, { type })).toEqual(LOCKED)
      expect(await commit(check)).toEqual(LOCKED)
    }
    // The change into down and the change out of it count for ten minutes.
    expect(await commit(check)).toEqual(LOCKED)
    await t.database.query('update check_states set changes = null where check_key = $1', [check.key])
    expect(await commit(check)).toEqual(LOCKED)
    expect(await commit(check)).toEqual(PLAIN)
    expect(await t.reasonsOf(check)).toEqual(['recovered', 'failed', 'first_success', 'created'])
  })

  it('with another one in its group takes a lock: the second follows from the first', async () => {
    const [check, other] = await t.addUp(one, 2)
    const { outcomes, tries } = await one.commit([check, other, check].map((of) => pingOf(of)))
    expect(outcomes).toEqual(['stored', 'stored', 'stored'])
    expect(tries).toEqual(['plain', 'locked'])
    await t.expectOrdered(check, 3)
    await t.expectOrdered(other, 2)
  })
})

it(`the history tells the states after groups of pings of all kinds on two replicas (seed ${SEED})`, async () => {
  const random = createRandom(SEED)
  const checks: CheckRecord[] = []
  for (const spec of [{}, { maxRuntimeSeconds: 60 }, { schedule: '*/5 * * * *', timeZone: 'UTC' }, {}])
    checks.push(await t.addCheck({ spec }))
  const tries = { plain: 0, locked: 0, 'look-up': 0 }
  let at = clock.now()
  for (let sent = 0; sent < 200; ) {
    const hasRuns = random.chance(0.2)
    const group: Ping[] = []
    for (let left = random.int(1, 4); left > 0; left -= 1, sent += 1) {
      // Forwards by up to twenty minutes, to the microsecond; now and then a clock that is behind.
      at += random.chance(0.1) ? -5_000 : random.int(0, 1_200_000_000) / 1_000
      group.push(
        pingOf(random.pick(checks), {
          type: random.chance(0.9) ? 'success' : random.pick(PING_TYPES),
          durationMs: random.chance(0.3) ? random.int(0, 604_800_000) : null,
          runId: hasRuns && random.chance(0.5) ? randomUUID() : null,
          body: random.chance(0.3) ? Buffer.from(`ping ${sent}`) : null,
          at,
        }),
      )
    }
    const committed = await random.pick([one, two]).commit(group)
    expect(new Set(committed.outcomes)).toEqual(new Set(['stored']))
    for (const one of committed.tries) tries[one] += 1
  }
  expect(tries.plain).toBeGreaterThan(10)
  expect(tries.locked).toBeGreaterThan(10)
  expect((await replayAll(t.database, { isGiven: () => true })).problems).toEqual([])
})

describe('a check that is not as this process knows it', () => {
  const GRACE = 'update check_states set grace_seconds = 11 where check_key = $1'

  it('because another replica has pinged it, is stored in one statement all the same', async () => {
    const [check] = await t.addUp(one, 1)
    expect(await two.record(check)).toBe('stored')
    expect(await commit(check)).toEqual(PLAIN)
    await t.expectOrdered(check, 3)
  })

  it.each([
    ['another replica has started a run', (check) => two.record(check, { type: 'start' }), { status: 'up' }],
    ['another replica has flipped it', (check) => two.record(check, { type: 'fail' }), { status: 'up' }],
    [
      'a person has paused it',
      (check) => pauseCheck(t.context, t.tenant(), check.id),
      { status: 'paused', dueIn: null },
    ],
    [
      'a person has changed its spec',
      (check) => updateCheck(t.context, t.tenant(), check.id, { periodSeconds: 60, graceSeconds: 7 }),
      { status: 'up', dueIn: 67_000 },
    ],
    [
      'a resource has changed what it follows',
      ({ key }) => t.database.query(`update check_states set job_area = 'area' where check_key = $1`, [key]),
      { status: 'up' },
    ],
    [
      'an SQL statement has changed it',
      ({ key }) => t.database.query(GRACE, [key]),
      { status: 'up', dueIn: 3_611_000 },
    ],
  ] as [string, (check: CheckRecord) => Promise<unknown>, { status: string; dueIn?: number | null }][])(
    'because %s, is left to the locks',
    async (_, change, { status, dueIn = 3_900_000 }) => {
      const [check] = await t.addUp(one, 1)
      await change(check)
      const before = (await t.historyOf(check)).length
      expect(await commit(check)).toEqual(LEFT)
      const state = await t.stateOf(check)
      expect(state.status).toBe(status)
      expect(state.dueAt).toBe(dueIn === null ? null : state.lastPingAt! + dueIn)
      await t.expectOrdered(check, before + 1)
    },
  )

  it('because a person has changed its spec, is plain under the new one then', async () => {
    const [check] = await t.addUp(one, 1)
    await updateCheck(t.context, t.tenant(), check.id, { periodSeconds: 60, graceSeconds: 7 })
    expect(await commit(check)).toEqual(LEFT)
    expect(await commit(check)).toEqual(PLAIN)
    const { lastPingAt, dueAt } = await t.stateOf(check)
    expect(dueAt).toBe(lastPingAt! + 67_000)
  })

  it('because the spec of a check of others has the same hash, is left to the locks', async () => {
    const [check, ofOthers] = await t.addUp(one, 2)
    await updateCheck(t.context, t.tenant(), ofOthers.id, { periodSeconds: 31_536_000 })
    const known = createKnownChecks({ database: t.database, clock })
    known.learn(check.publicId, check.key)
    const { specHash } = await rowOf(check)
    known.noteRow({ ...(await rowOf(ofOthers)), specHash })
    known.noteRow(await rowOf(check))
    expect(await t.addReplica('three', known).commit([pingOf(check)])).toEqual(LEFT)
    const { lastPingAt, dueAt } = await t.stateOf(check)
    expect(dueAt).toBe(lastPingAt! + 3_900_000)
  })

  it('because an SQL statement has left it without a schedule: its ping is rejected', async () => {
    const [check] = await t.addUp(one, 1)
    await t.database.query(
      `update check_states set period_seconds = null, schedule = 'nonsense', time_zone = 'UTC' where check_key = $1`,
      [check.key],
    )
    expect(await commit(check)).toEqual({ ...LEFT, outcomes: ['rejected'] })
    await t.expectOrdered(check, 1)
  })

  it('because a person has removed it: its ping is looked up, and is unknown', async () => {
    const [check, other] = await t.addUp(one, 2)
    await removeCheck(t.context, t.tenant(), check.id)
    const both = [check, other].map((of) => pingOf(of))
    const lookedUp = [...LEFT.tries, 'look-up']
    expect(await one.commit(both)).toEqual({ tries: lookedUp, outcomes: ['unknown', 'stored'] })
    expect((await one.commit(both)).outcomes).toEqual(['unknown', 'stored'])
    await t.expectOrdered(other, 3)
    expect((await t.database.query('select from pings where check_key = $1', [check.key])).rows).toEqual([])
  })

  it.each([
    ['commits', 'commit', LEFT, 3_611_000],
    ['is rolled back', 'rollback', PLAIN, 3_900_000],
  ] as const)('or is, when a transaction that the ping waits for %s', async (_, end, expected, dueIn) => {
    const [check, other] = await t.addUp(one, 2)
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

it('rows are locked in the order of their keys, so that no two groups wait for each other', async () => {
  const [first, second] = await t.addUp(one, 2)
  const holding = await t.holdRow(first)
  const both = one.commit([second, first].map((check) => pingOf(check)))
  await t.untilBlocked(one)
  // The group waits for the first row, and has not locked the second.
  const { rows } = await t.database.query('select from check_states where check_key = $1 for update nowait', [
    second.key,
  ])
  expect(rows).toHaveLength(1)
  await holding.end()
  expect(await both).toEqual({ ...PLAIN, outcomes: ['stored', 'stored'] })
})

it('a group has every outcome in its place', async () => {
  const [first, started, last] = await t.addUp(one, 3)
  expect(await two.record(started, { type: 'start' })).toBe('stored')
  const pings: [Pick<CheckRecord, 'publicId'>, string | null][] = [
    [last, 'a'],
    [started, 'b'],
    [{ publicId: randomUUID() }, 'c'],
    [first, null],
  ]
  const { outcomes } = await one.commit(
    pings.map(([check, text]) => pingOf(check, { body: text === null ? null : Buffer.from(text) })),
  )
  expect(outcomes).toEqual(['stored', 'stored', 'unknown', 'stored'])
  expect(await t.textsOf(first)).toEqual([null, null])
  expect(await t.textsOf(started)).toEqual(['b', null, null])
  expect(await t.textsOf(last)).toEqual(['a', null])
  expect((await t.database.query('select from ping_bodies')).rows).toHaveLength(2)
})

describe('a connection that breaks', () => {
  const BROKEN = () => new Error('Connection terminated unexpectedly')

  it('while a plain group waits for a row: its pings are lost, and nothing is stored', async () => {
    const [held, other] = await t.addUp(one, 2)
    const holding = await t.holdRow(held)
    const committing = one.commit([held, other].map((check) => pingOf(check)))
    await t.cut(await t.untilBlocked(one))
    expect((await committing).outcomes).toEqual(['lost', 'lost'])
    await holding.end()
    expect(await one.commit([held, other].map((check) => pingOf(check)))).toEqual({
      ...PLAIN,
      outcomes: ['stored', 'stored'],
    })
    for (const check of [held, other]) await t.expectOrdered(check, 2)
  })

  it('while a plain group waits for a row: what needs a lock was not sent', async () => {
    const [held, other] = await t.addUp(one, 2)
    await t.holdRow(held)
    const committing = one.commit([pingOf(held), pingOf(other, { type: 'start' })])
    await t.cut(await t.untilBlocked(one))
    expect((await committing).outcomes).toEqual(['lost', 'unsent'])
  })

  it('while what the plain statement has left waits for its lock: that was not sent, the rest is stored', async () => {
    const [check, held] = await t.addUp(one, 2)
    await t.holdRow(held)
    const committing = one.commit([pingOf(check), pingOf(held, { type: 'start' })])
    await t.cut(await t.untilBlocked(one))
    expect((await committing).outcomes).toEqual(['stored', 'unsent'])
    await t.expectOrdered(check, 2)
    await t.expectOrdered(held, 1)
  })

  it('after a plain group was saved: its pings are lost', async () => {
    const checks = await t.addUp(one, 2)
    const both = (text: string) => checks.map((check) => pingOf(check, withText(text)))
    const first = await one.commit(both('first'), (session) => ({
      ...session,
      async within(budgetMs, work) {
        await session.within(budgetMs, work)
        throw BROKEN()
      },
    }))
    expect(first.outcomes).toEqual(['lost', 'lost'])
    expect(await one.commit(both('second'))).toEqual({ ...PLAIN, outcomes: ['stored', 'stored'] })
    for (const check of checks) expect(await t.textsOf(check)).toEqual(['second', 'first', null])
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
