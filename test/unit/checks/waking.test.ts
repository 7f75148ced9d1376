/** When a check is evaluated next, and whether that evaluation finds it late (design, section 5, check.late). */

import { describe, expect, it } from 'vitest'
import { type Change, decideChanges, type Waking } from '../../../src/checks/change.ts'
import type { CheckSpec, CheckState, Gap } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { newState } from '../../../src/domain/transition.ts'
import type { LockedCheck } from '../../../src/store/checks/states.ts'
import { aCronSpec, aSpec, aState, HOUR, MINUTE, NOON, SECOND, UNREAD_SPEC } from '../../support/builders.ts'

const EXPECTED = NOON + HOUR
const DUE = EXPECTED + 5 * MINUTE
const LATE_WANTED = { isLateWanted: true }

function decide(event: CheckEvent, at: number, given: Partial<LockedCheck> = {}, waking: Waking = LATE_WANTED) {
  const locked: LockedCheck = {
    key: 1,
    ...UNREAD_SPEC,
    spec: aSpec(),
    state: aState(),
    stampedAt: NOON,
    wakeAt: EXPECTED,
    ...given,
  }
  return decideChanges([locked], [{ key: 1, event, at }], waking)
}
const evaluation = (...gaps: Gap[]): CheckEvent => ({ kind: 'deadline', gaps })
const typesOf = ({ changeSet }: ReturnType<typeof decide>) => changeSet.events.map(({ type }) => type)
const wakeOf = ({ changeSet }: ReturnType<typeof decide>) => changeSet.states[0]!.wakeAt

describe('an evaluation finds a check late', () => {
  it('at the expected time, the first time since then', () => {
    const found = decide(evaluation(), EXPECTED)
    expect(typesOf(found)).toEqual(['check.late'])
    expect(found.changeSet.events[0]).toMatchObject({ data: { reason: 'late' }, flipId: null, pingId: null })
    expect(wakeOf(found)).toBe(DUE)
    expect(typesOf(decide(evaluation(), EXPECTED, { wakeAt: EXPECTED + 1 }))).toEqual([])
    expect(typesOf(decide(evaluation(), EXPECTED - 1, { wakeAt: EXPECTED - 1 }))).toEqual([])
  })

  it('only where a channel wants to know', () => {
    for (const waking of [{ isLateWanted: false }, 'earlier', 'first'] as const)
      expect(typesOf(decide(evaluation(), EXPECTED, {}, waking))).toEqual([])
  })

  it('not by a ping', () => {
    expect(typesOf(decide({ kind: 'log' }, EXPECTED))).toEqual([])
  })

  it('only while it is up, and not as it goes down', () => {
    const fresh = { ...newState(NOON), expectedAt: EXPECTED, dueAt: DUE }
    expect(typesOf(decide(evaluation(), EXPECTED, { state: fresh }))).toEqual([])
    expect(typesOf(decide(evaluation(), DUE))).toEqual(['check.down'])
    const running = aState({ expectedAt: null, dueAt: null, runs: [{ id: 'a', startedAt: NOON, deadlineAt: DUE }] })
    expect(typesOf(decide(evaluation(), EXPECTED, { state: running }))).toEqual([])
    expect(typesOf(decide(evaluation(), EXPECTED, { wakeAt: null }))).toEqual([])
  })

  it('not where a gap may have hidden the ping', () => {
    const gapTo = (endedAt: number) => ({ startedAt: endedAt - SECOND, endedAt })
    expect(typesOf(decide(evaluation(gapTo(EXPECTED)), EXPECTED))).toEqual([])
    expect(typesOf(decide(evaluation(gapTo(EXPECTED - 1)), EXPECTED))).toEqual(['check.late'])
    const hiding = { startedAt: EXPECTED - MINUTE, endedAt: EXPECTED }
    expect(typesOf(decide(evaluation(hiding), DUE))).toEqual(['check.unknown'])
  })
})

describe('the next evaluation', () => {
  const success: CheckEvent = { kind: 'success', runId: null, durationMs: null }
  const wakeAfter = (waking: Waking, wakeAt: number | null, state: CheckState = aState()) =>
    wakeOf(decide(success, NOON + 10 * MINUTE, { wakeAt, state }, waking))

  it('of a ping is never later than it was', () => {
    expect(wakeAfter('earlier', EXPECTED)).toBe(EXPECTED)
    expect(wakeAfter('earlier', NOON + 3 * HOUR)).toBe(DUE + 10 * MINUTE)
    expect(wakeAfter('earlier', DUE + 10 * MINUTE)).toBe(DUE + 10 * MINUTE)
    // Of a check that was not waited for, from the expected time on.
    expect(wakeAfter('earlier', null)).toBe(EXPECTED + 10 * MINUTE)
    const down = decide({ kind: 'fail', runId: null, durationMs: null }, NOON + MINUTE, {}, 'earlier')
    expect(wakeOf(down)).toBe(EXPECTED)
  })

  it('is at the deadline, or where a channel wants to know of late checks at the expected time', () => {
    expect(wakeAfter({ isLateWanted: false }, EXPECTED)).toBe(DUE + 10 * MINUTE)
    expect(wakeAfter(LATE_WANTED, EXPECTED)).toBe(EXPECTED + 10 * MINUTE)
    expect(wakeAfter('first', EXPECTED)).toBe(EXPECTED + 10 * MINUTE)
  })

  it('of a check that is late already is when it may be late again, at most its deadline', () => {
    const state = aState({ dueAt: NOON + 5 * HOUR })
    expect(wakeOf(decide(evaluation(), EXPECTED, { state }))).toBe(EXPECTED + HOUR)
    // A run of a CronJob may start at the next slot, without a tolerance.
    const at = EXPECTED + 58 * MINUTE
    const wakeUnder = (spec: CheckSpec) => wakeOf(decide(evaluation(), at, { state, spec, wakeAt: at }))
    expect(wakeUnder(aCronSpec('0 * * * *', { awaits: 'start' }))).toBe(NOON + 2 * HOUR)
    expect(wakeUnder(aCronSpec('0 * * * *'))).toBe(NOON + 3 * HOUR)
  })

  it('of a check that is not up yet is when it may be late after a first success', () => {
    const fresh = { ...newState(NOON), expectedAt: EXPECTED, dueAt: NOON + 5 * HOUR }
    expect(wakeOf(decide({ kind: 'log' }, NOON + 10 * MINUTE, { state: fresh }, 'first'))).toBe(EXPECTED + 10 * MINUTE)
  })

  it('is none of a check that awaits nothing, and the end of the flapping of one that flaps', () => {
    const down = aState({ status: 'down', expectedAt: null, dueAt: null })
    expect(wakeOf(decide({ kind: 'log' }, NOON, { state: down }, 'first'))).toBeNull()
    const flapping = { ...down, notified: 'up', quietAt: NOON + 7 * HOUR } as const
    expect(wakeOf(decide({ kind: 'log' }, NOON, { state: flapping }, 'first'))).toBe(NOON + 7 * HOUR)
  })
})

describe('a change', () => {
  it('of a check that is gone, or whose row cannot be read, changes nothing', () => {
    const log: Change = { key: 2, event: { kind: 'log' }, at: NOON }
    expect(decideChanges([], [log], 'earlier').decisions).toEqual([{ kind: 'unknown' }])
    const { decisions, changeSet } = decide({ kind: 'log' }, NOON, { spec: null })
    expect(decisions).toMatchObject([{ kind: 'failed', error: { message: expect.stringContaining('of check 1') } }])
    expect(changeSet.states).toEqual([])
  })

  it('that begins paused is no news', () => {
    expect(typesOf(decide({ kind: 'pause' }, NOON))).toEqual(['check.paused'])
    expect(typesOf(decide({ kind: 'pause', isSilent: false }, NOON))).toEqual(['check.paused'])
    expect(typesOf(decide({ kind: 'pause', isSilent: true }, NOON))).toEqual([])
  })

  it('that ends flapping tells the last status before its own news', () => {
    const state = aState({ status: 'down', notified: 'up', quietAt: NOON, expectedAt: null, dueAt: null })
    expect(typesOf(decide(evaluation(), NOON, { state, wakeAt: NOON }))).toEqual(['check.down'])
  })
})
