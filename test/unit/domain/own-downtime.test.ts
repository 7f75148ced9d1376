import { describe, expect, it } from 'vitest'
import type { Gap } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { deadlineOf, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aSpec, aState, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const UP = aState()
const PAUSED = aState({ status: 'paused', expectedAt: null, dueAt: null })
const deadline = (...gaps: Gap[]): CheckEvent => ({ kind: 'deadline', gaps })
const start = (runId: string): CheckEvent => ({ kind: 'start', runId })

describe('own downtime', () => {
  const due = UP.dueAt!
  const expected = UP.expectedAt!

  it('a gap of a minute in the window excuses one interval, and is reported', () => {
    const gap = { startedAt: expected, endedAt: expected + MINUTE }
    const { state, flip, outage } = transition(aSpec(), UP, deadline(gap), due)
    expect(flip).toBeNull()
    expect(outage).toEqual(gap)
    expect(state).toMatchObject({ status: 'up', expectedAt: expected + HOUR, dueAt: due + HOUR })
    // A job that is really dead is found one interval later.
    expect(transition(aSpec(), state, deadline(gap), due + HOUR).flip).toMatchObject({
      reason: 'missed',
      at: due + HOUR,
    })
  })

  it('a gap counts from the early tolerance on', () => {
    // The tolerance is min(grace, a tenth of the period) = 5 minutes.
    const ending = (endedAt: number) => transition(aSpec(), UP, deadline({ startedAt: endedAt - MINUTE, endedAt }), due)
    expect(ending(expected - 5 * MINUTE).outage).not.toBeNull()
    expect(ending(expected - 5 * MINUTE - 1).outage).toBeNull()
  })

  it('a gap of less than a minute only gives clients time to retry', () => {
    const gap = { startedAt: due - 30 * SECOND, endedAt: due - 30 * SECOND + 59_999 }
    const { state, flip, outage } = transition(aSpec(), UP, deadline(gap), due)
    expect({ flip, outage }).toEqual({ flip: null, outage: null })
    expect(state).toMatchObject({ expectedAt: expected, dueAt: gap.endedAt + 5 * MINUTE })
    expect(transition(aSpec(), state, deadline(gap), state.dueAt!).flip).toMatchObject({ at: state.dueAt })
  })

  it('a gap gives clients at least a minute, even without grace', () => {
    const spec = aSpec({ graceMs: 0 })
    const state = aState({ dueAt: expected })
    const gap = { startedAt: expected - 10 * SECOND, endedAt: expected - SECOND }
    expect(transition(spec, state, deadline(gap), expected).state.dueAt).toBe(gap.endedAt + MINUTE)
  })

  it('a gap before the last completion or long before the deadline changes nothing', () => {
    const before = { startedAt: NOON - HOUR, endedAt: NOON - 1 }
    const early = { startedAt: NOON + 1, endedAt: NOON + 10 * MINUTE }
    expect(transition(aSpec(), UP, deadline(before, early), due).flip).toMatchObject({ reason: 'missed', at: due })
  })

  it('a gap that ended before the check was armed excuses nothing', () => {
    const spec = aSpec({ graceMs: HOUR, schedule: { kind: 'period', periodMs: 10 * HOUR } })
    const resumed = transition(spec, PAUSED, { kind: 'resume' }, NOON).state
    const gap = { startedAt: NOON - 2 * HOUR, endedAt: NOON - 1 }
    const early = { ...resumed, expectedAt: NOON + MINUTE, dueAt: NOON + 2 * MINUTE }
    expect(transition(spec, early, deadline(gap), NOON + HOUR)).toMatchObject({
      outage: null,
      flip: { reason: 'missed' },
    })
  })

  it('a gap over many intervals excuses all of them in one step', () => {
    const spec = aSpec({ schedule: { kind: 'period', periodMs: 10 * SECOND }, graceMs: 0 })
    const state = aState({ expectedAt: NOON + 10 * SECOND, dueAt: NOON + 10 * SECOND })
    const gap = { startedAt: NOON + SECOND, endedAt: NOON + 7 * DAY + 5 * SECOND }
    const { state: excused } = transition(spec, state, deadline(gap), gap.endedAt)
    expect(excused.expectedAt).toBe(NOON + 7 * DAY + 10 * SECOND)
    expect(excused.dueAt).toBe(gap.endedAt + MINUTE)
  })

  it('a gap excuses cron slots up to the first one after it', () => {
    const spec = aCronSpec('0 * * * *')
    const gap = { startedAt: NOON + 30 * MINUTE, endedAt: NOON + 3 * HOUR }
    const { state } = transition(spec, UP, deadline(gap), gap.endedAt + 1)
    expect(state.expectedAt).toBe(NOON + 4 * HOUR)
  })

  it('a gap that begins at the deadline may hide the ping, one that begins after it may not', () => {
    const from = (startedAt: number) => {
      const gap = { startedAt, endedAt: startedAt + MINUTE }
      return transition(aSpec(), UP, deadline(gap), gap.endedAt)
    }
    expect(from(due).outage).toEqual({ startedAt: due, endedAt: due + MINUTE })
    expect(from(due + 1)).toMatchObject({ outage: null, flip: { reason: 'missed', at: due } })
  })

  it('a short gap that begins at the deadline gives clients time to retry, one that begins after it gives none', () => {
    const from = (startedAt: number) => {
      const gap = { startedAt, endedAt: startedAt + SECOND }
      return transition(aSpec(), UP, deadline(gap), gap.endedAt)
    }
    expect(from(due)).toMatchObject({ flip: null, state: { dueAt: due + SECOND + 5 * MINUTE } })
    expect(from(due + 1).flip).toMatchObject({ reason: 'missed', at: due })
  })

  it('a gap that ended with the last completion excuses nothing, whenever the check went up', () => {
    // The tolerance is an hour, so that the window of the completion reaches back before the last one.
    const spec = aSpec({ graceMs: HOUR, schedule: { kind: 'period', periodMs: 10 * HOUR } })
    const state = aState({ since: NOON - DAY, expectedAt: NOON + MINUTE, dueAt: NOON + 2 * MINUTE })
    const until = (endedAt: number) =>
      transition(spec, state, deadline({ startedAt: NOON - HOUR, endedAt }), NOON + 2 * MINUTE)
    expect(until(NOON)).toMatchObject({ outage: null, flip: { reason: 'missed' } })
    expect(until(NOON + 1)).toMatchObject({ outage: { endedAt: NOON + 1 }, flip: null })
  })

  it('a gap is not looked at before the deadline', () => {
    const gap = { startedAt: expected, endedAt: expected + MINUTE }
    expect(transition(aSpec(), UP, deadline(gap), due - 1)).toMatchObject({ state: UP, outage: null })
  })

  it('an excuse moves no deadline to an earlier time', () => {
    const moved = aState({ dueAt: due + 3 * HOUR })
    const gap = { startedAt: expected, endedAt: expected + MINUTE }
    const { flip, outage } = transition(aSpec(), moved, deadline(gap), due + 3 * HOUR)
    expect([outage, flip]).toMatchObject([gap, { reason: 'missed', at: due + 3 * HOUR }])
  })

  it('an excused interval is one whose tolerance had begun: a tenth of the interval, or of the slots beside it', () => {
    const gapUntil = (endedAt: number) => ({ startedAt: expected, endedAt })
    // A tenth of an hour, as the grace time is longer.
    const period = aSpec({ graceMs: 20 * MINUTE })
    const of = aState({ dueAt: expected + 20 * MINUTE })
    const expectedAfter = (spec: typeof period, endedAt: number) =>
      transition(spec, of, deadline(gapUntil(endedAt)), expected + HOUR).state.expectedAt
    expect(expectedAfter(period, expected + 54 * MINUTE - 1)).toBe(expected + HOUR)
    expect(expectedAfter(period, expected + 54 * MINUTE)).toBe(expected + 2 * HOUR)
    const cron = aCronSpec('0 * * * *', { graceMs: 20 * MINUTE })
    expect(expectedAfter(cron, expected + 54 * MINUTE - 1)).toBe(expected + HOUR)
    expect(expectedAfter(cron, expected + 54 * MINUTE)).toBe(expected + 2 * HOUR)
  })

  it('a gap moves the deadlines of those runs that it touches', () => {
    const gap = { startedAt: due - MINUTE, endedAt: due }
    const runOf = (id: string, startedAt: number, deadlineAt: number | null) => ({ id, startedAt, deadlineAt })
    const runs = [
      runOf('without a limit', NOON, null),
      runOf('over when it began', NOON, gap.startedAt - 1),
      runOf('over as it began', NOON, gap.startedAt),
      runOf('begun before its end', gap.endedAt - 1, due + 1),
      runOf('begun at its end', gap.endedAt, due + 1),
    ]
    const { state } = transition(aSpec(), aState({ runs }), deadline(gap), due)
    const retriedBy = gap.endedAt + 5 * MINUTE
    expect(state.runs.map(({ id, deadlineAt }) => [id, deadlineAt])).toEqual([
      ['without a limit', null],
      ['over when it began', gap.startedAt - 1],
      ['over as it began', retriedBy],
      ['begun before its end', retriedBy],
      ['begun at its end', due + 1],
    ])
  })

  it('a gap moves the deadlines of open runs, and never excuses them', () => {
    const spec = aSpec({ maxRuntimeMs: 10 * MINUTE })
    const started = transition(spec, UP, start('a'), NOON).state
    const gap = { startedAt: NOON + MINUTE, endedAt: NOON + 9 * MINUTE }
    const { state, outage } = transition(spec, started, deadline(gap), NOON + 10 * MINUTE)
    expect(outage).toBeNull()
    expect(deadlineOf(state)).toBe(NOON + 14 * MINUTE)
    expect(transition(spec, state, deadline(gap), NOON + 14 * MINUTE).flip).toMatchObject({ reason: 'overran' })
  })
})
