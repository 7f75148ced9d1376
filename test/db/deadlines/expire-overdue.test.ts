import { beforeEach, describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { beat } from '../../support/beats.ts'
import type { CheckInput } from '../../support/check.ts'
import { wakeOf } from '../../support/state.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, usePings } from '../pings/fixture.ts'

const t = usePings()
const replica = useEach(() => t.addReplica('pings'))
beforeEach(() => beat(replica))

/** Evaluates until nothing is overdue, in batches. No search counts as a stall, however long it takes, unless `now` says so. */
async function expire({ batch = 500, now = (): number => 0 } = {}) {
  const flips: { reason: string; seconds: number }[] = []
  const failed: number[] = []
  for (;;) {
    const expired = await expireOverdue({ database: replica.database, now }, batch)
    flips.push(...expired.flips)
    failed.push(...expired.failed.map(({ key }) => key))
    if (!expired.isFull) return { flips, failed }
  }
}

const stateOf = (id: string) => t.stateOf({ id } as never)
const flipsOf = (id: string) => t.flipsOf({ id } as never)
const eventsOf = async (key: number) =>
  (await t.database.query('select type, data from events where check_key = $1 order by id', [key])).rows

/** A check that was up `ageMs` ago: pinged then. */
async function upSince(ageMs: number, input: CheckInput = {}, type: 'success' | 'start' = 'success') {
  const at = systemClock.now() - ageMs
  const check = await t.addCheck(input, at)
  expect((await replica.commit([pingOf(check, { at, type })])).outcomes).toEqual(['stored'])
  await t.stayUp()
  return { check, ping: () => replica.record(check) }
}

/** One after the other, as so many at once wait long for a connection when the machine is busy. */
async function manyUpSince(count: number, ageMs: number, input: CheckInput) {
  const made: Awaited<ReturnType<typeof upSince>>[] = []
  while (made.length < count) made.push(await upSince(ageMs, input))
  return made
}

const TEN_SECONDS = { spec: { periodSeconds: 10, graceSeconds: 0 } }

describe('a passed deadline', () => {
  it('takes the check down at the deadline, with its event', async () => {
    const { check } = await upSince(15_000, TEN_SECONDS)
    const due = (await stateOf(check.id)).dueAt!
    const { flips } = await expire()
    expect(flips).toHaveLength(1)
    expect(flips[0]!.reason).toBe('missed')
    expect(flips[0]!.seconds).toBeGreaterThan(4)
    expect(await stateOf(check.id)).toMatchObject({ status: 'down', since: due, dueAt: null })
    expect((await flipsOf(check.id))[0]).toMatchObject({
      at: due,
      reason: 'missed',
      from: 'up',
      to: 'down',
      pingId: null,
    })
    expect(await eventsOf(check.key)).toMatchObject([{ type: 'check.down', data: { reason: 'missed' } }])
    expect((await expire()).flips).toEqual([])
  })

  it('is left alone before its time', async () => {
    const { check } = await upSince(5_000, TEN_SECONDS)
    expect((await expire()).flips).toEqual([])
    expect((await stateOf(check.id)).status).toBe('up')
  })

  it('that a later ping moved is postponed, without a flip', async () => {
    const { check, ping } = await upSince(15_000, TEN_SECONDS)
    expect(await ping()).toBe('stored')
    expect((await expire()).flips).toEqual([])
    expect(await wakeOf(t, check)).toBe((await stateOf(check.id)).dueAt)
  })

  it('of a run has the reason overran', async () => {
    const { check } = await upSince(60_000, { spec: { maxRuntimeSeconds: 30 } }, 'start')
    expect((await expire()).flips).toMatchObject([{ reason: 'overran' }])
    expect((await stateOf(check.id)).status).toBe('down')
  })

  it('is followed by a recovery with the time that the check was down', async () => {
    const { check, ping } = await upSince(130_000, TEN_SECONDS)
    await expire()
    await ping()
    expect(await eventsOf(check.key)).toMatchObject([
      { type: 'check.down' },
      { type: 'check.up', data: { reason: 'recovered', down_for_seconds: 120 } },
    ])
  })
})

describe('two replicas', () => {
  it('never make two flips', async () => {
    const checks = await manyUpSince(40, 15_000, TEN_SECONDS)
    const ran = await Promise.all(Array.from({ length: 4 }, () => expire({ batch: 7 })))
    expect(ran.flatMap(({ flips }) => flips)).toHaveLength(40)
    for (const { check } of checks) {
      expect((await flipsOf(check.id)).map((flip) => flip.reason)).toEqual(['missed', 'first_success', 'created'])
      expect(await eventsOf(check.key)).toHaveLength(1)
    }
  })

  it('and pings at the time of the deadline leave one consistent history', async () => {
    const checks = await manyUpSince(40, 15_000, TEN_SECONDS)
    await Promise.all([...checks.map(({ ping }) => ping()), expire({ batch: 5 }), expire({ batch: 5 })])
    for (const { check } of checks) {
      const flips = (await flipsOf(check.id)).map((flip) => flip.reason)
      expect([
        ['first_success', 'created'],
        ['recovered', 'missed', 'first_success', 'created'],
      ]).toContainEqual(flips)
      expect((await stateOf(check.id)).status).toBe('up')
    }
  })
})

describe('a check that cannot be evaluated', () => {
  it.each([
    ['schedule', `period_seconds = null, schedule = 'nonsense', time_zone = 'UTC'`],
    ['last ping', `last_ping_at = 'infinity'`],
    ['newest entry', `stamped_at = '-infinity'`],
    ['deadline', `due_at = 'infinity'`],
  ])('is postponed and returned, and the others are found: by its %s', async (_, setting) => {
    const [{ check: broken }, { check: fine }] = [
      await upSince(20_000, TEN_SECONDS),
      await upSince(15_000, TEN_SECONDS),
    ]
    await t.database.query(`update check_states set ${setting} where check_key = $1`, [broken.key])
    const { flips, failed } = await expire({ batch: 1 })
    expect(failed).toEqual([broken.key])
    expect(flips).toHaveLength(1)
    expect((await stateOf(fine.id)).status).toBe('down')
    expect((await expire()).failed).toEqual([])
  })
})

describe('a gap', () => {
  const setBeat = (ageMs: number) =>
    t.database.query(`update service_beat set beat_at = clock_timestamp() - $1 * interval '1 millisecond'`, [ageMs])
  const findGaps = async () => {
    const gaps: { startedAt: number; endedAt: number }[] = []
    await beat(replica, { onGap: (gap) => gaps.push(gap) })
    return gaps
  }

  it('stops the evaluation of deadlines until it is recorded', async () => {
    const { check } = await upSince(15_000, TEN_SECONDS)
    await setBeat(5_100)
    expect((await expire()).flips).toEqual([])
    expect((await stateOf(check.id)).status).toBe('up')
  })

  it('is five seconds long at least', async () => {
    await setBeat(4_500)
    expect(await findGaps()).toEqual([])
    await setBeat(5_100)
    expect(await findGaps()).toHaveLength(1)
  })

  it('is recorded once by replicas that beat at the same time', async () => {
    await setBeat(100_000)
    const gaps = (await Promise.all(Array.from({ length: 4 }, findGaps))).flat()
    expect(gaps).toHaveLength(1)
    expect(gaps[0]!.endedAt - gaps[0]!.startedAt).toBeGreaterThan(99_000)
  })

  it('of a minute over an expected ping excuses the interval, with an outage and the event check.unknown', async () => {
    const { check } = await upSince(300_000, { spec: { periodSeconds: 120, graceSeconds: 60 } })
    await setBeat(200_000)
    await findGaps()
    expect((await expire()).flips.map(({ reason }) => reason)).toEqual(['outage'])
    const state = await stateOf(check.id)
    expect(state.status).toBe('up')
    expect(state.expectedAt).toBeGreaterThan(systemClock.now())
    expect((await flipsOf(check.id))[0]).toMatchObject({ reason: 'outage', from: 'up', to: 'up' })
    expect((await eventsOf(check.key))[0]).toMatchObject({
      type: 'check.unknown',
      data: { gap: { started_at: expect.any(String) } },
    })
  })

  it('of ten seconds gives time to retry', async () => {
    const { check } = await upSince(15_000, { spec: { periodSeconds: 10, graceSeconds: 0 } })
    await setBeat(10_000)
    const [gap] = await findGaps()
    expect((await expire()).flips).toEqual([])
    const state = await stateOf(check.id)
    expect(state.status).toBe('up')
    expect(state.dueAt! - gap!.endedAt).toBeGreaterThanOrEqual(60_000)
  })

  it('goes on while pings fail: the beat first writes as a ping does', async () => {
    let isWell = false
    const recorder = { isWell: () => isWell, recovered: () => (isWell = true) }
    await beat(replica, { recorder })
    expect(isWell).toBe(true)
    expect((await t.database.query('select from pings where check_key = 0')).rowCount).toBe(0)

    isWell = false
    await setBeat(3_000)
    await t.database.query('alter table pings rename to pings_away')
    try {
      await expect(beat(replica, { recorder })).rejects.toThrow('pings')
      expect(isWell).toBe(false)
      const { rows } = await t.database.query<{ age: number }>(
        'select extract(epoch from clock_timestamp() - beat_at)::float8 as age from service_beat',
      )
      expect(rows[0]!.age).toBeGreaterThan(2.9)
    } finally {
      await t.database.query('alter table pings_away rename to pings')
    }
  })

  it('goes on while only the states cannot be written: another session has locked them', async () => {
    let isWell = false
    const recorder = { isWell: () => isWell, recovered: () => (isWell = true) }
    await t.database.transaction(async (other) => {
      await other.query('lock table check_states in access exclusive mode')
      await expect(beat(replica, { recorder })).rejects.toMatchObject({ cause: { code: '55P03' } })
      expect(isWell).toBe(false)
      // The beat's own row is not what is locked.
      await beat(replica)
    })
    await beat(replica, { recorder })
    expect(isWell).toBe(true)
  })
})

describe('a stall', () => {
  it('leaves the checks to the next batch, so that the pings that wait commit first', async () => {
    const { check } = await upSince(15_000, TEN_SECONDS)
    // Finding the checks took long: a clock that jumps meanwhile.
    let reads = 0
    expect((await expire({ now: () => (reads++ === 0 ? 0 : 501) })).flips).toEqual([])
    expect((await stateOf(check.id)).status).toBe('up')
    expect((await expire()).flips).toHaveLength(1)
  })
})
