/** Pings that are recorded some time after their arrival: the database was unavailable meanwhile. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { LIMITS } from '../../../src/domain/limits.ts'
import { newState, resumesFirst, transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const ARRIVED = NOON + 10 * MINUTE
const RECORDED = NOON + 30 * MINUTE

const late = (kind: 'success' | 'warn' | 'fail' | 'start' | 'log', arrivedAt = ARRIVED, runId: string | null = null) =>
  (kind === 'log'
    ? { kind, arrivedAt }
    : kind === 'start'
      ? { kind, runId, arrivedAt }
      : { kind, runId, durationMs: null, arrivedAt }) satisfies CheckEvent

const record = (state: CheckState, event: CheckEvent, spec = aSpec()) => transition(spec, state, event, RECORDED)

describe('a late ping of a check that nothing else has changed', () => {
  it('a success counts from its arrival', () => {
    const { state, flip } = record(aState(), late('success'))
    expect(state).toMatchObject({ lastPingAt: ARRIVED, lastSuccessAt: ARRIVED, expectedAt: ARRIVED + HOUR })
    expect(flip).toBeNull()
  })

  it('a fail flips the check at its arrival, and is notified', () => {
    const { state, flip, notice } = record(aState(), late('fail'))
    expect(state).toMatchObject({ status: 'down', since: ARRIVED, lastPingAt: ARRIVED })
    expect(flip).toMatchObject({ to: 'down', reason: 'failed', at: ARRIVED })
    expect(notice).toMatchObject({ type: 'check.down', at: ARRIVED })
  })

  it('the run of a late start and a late completion took what it took', () => {
    const started = record(aState(), late('start', ARRIVED, 'run')).state
    expect(started.runs).toMatchObject([{ id: 'run', startedAt: ARRIVED }])
    const { state, durationMs } = record(started, late('success', ARRIVED + 90 * SECOND, 'run'))
    expect(state.runs).toEqual([])
    expect(durationMs).toBe(90 * SECOND)
  })

  it.each(['success', 'warn', 'fail', 'start', 'log'] as const)(
    'a %s is as one that was recorded on its arrival',
    (kind) => {
      fc.assert(
        fc.property(
          fc.array(
            fc.record({
              kind: fc.constantFrom('success', 'fail', 'start', 'log', kind),
              runId: fc.constantFrom(null, 'a', 'b'),
              afterMs: fc.integer({ min: 1, max: 2 * HOUR }),
            }),
            { minLength: 1, maxLength: 12 },
          ),
          (steps) => {
            const spec = aSpec({ maxRuntimeMs: 20 * MINUTE })
            let atOnce = newState(NOON)
            let inTheEnd = newState(NOON)
            let at = NOON
            for (const step of steps) {
              at += step.afterMs
              const { arrivedAt: _, ...event } = late(step.kind, at, step.runId)
              atOnce = transition(spec, atOnce, event, at).state
              inTheEnd = transition(spec, inTheEnd, late(step.kind, at, step.runId), NOON + 100 * HOUR).state
            }
            // What is notified counts from the time at which it becomes known.
            const known = {
              changes: [],
              notified: null,
              quietAt: null,
              incidentSince: null,
              downNotifiedAt: null,
              reminders: 0,
              repeats: [],
            }
            expect({ ...inTheEnd, ...known }).toEqual({ ...atOnce, ...known })
          },
        ),
      )
    },
  )
})

describe('the last start', () => {
  const newest = ARRIVED + 4 * MINUTE
  const startAgain = (runId: string | null) =>
    record(
      transition(aSpec(), aState(), { kind: 'start', runId: 'newer' }, newest).state,
      late('start', ARRIVED, runId),
    )

  it.each(['older', 'newer', null])('is not moved back by a late start of the run %s', (runId) => {
    expect(startAgain(runId).state.lastStartAt).toBe(newest)
  })

  it('is moved on by a late start that came after it', () => {
    const { state } = record(aState({ lastStartAt: ARRIVED - 1 }), late('start'))
    expect(state.lastStartAt).toBe(ARRIVED)
  })

  it('of a run that is refused, because too many are open, is not moved back either', () => {
    const runs = Array.from({ length: LIMITS.openRuns }, (_, index) => ({
      id: `run ${index}`,
      startedAt: newest,
      deadlineAt: null,
    }))
    const { state, runRefused } = record(aState({ runs, lastStartAt: newest }), late('start', ARRIVED, 'one more'))
    expect([runRefused, state.lastStartAt]).toEqual([true, newest])
  })
})

describe('a late ping that something newer has overtaken is history', () => {
  const NEWER = ARRIVED + 5 * MINUTE

  it.each([
    ['success', 'up', { lastSuccessAt: NEWER }],
    ['fail', 'up', {}],
    ['start', 'up', { lastStartAt: ARRIVED }],
    ['success', 'down', { lastSuccessAt: ARRIVED }],
    ['warn', 'down', { lastSuccessAt: ARRIVED }],
    ['log', 'up', {}],
  ] as const)('a %s before a newer completion, while the check is %s', (kind, status, changed) => {
    const before = aState({
      status,
      since: status === 'down' ? NEWER : NOON,
      lastPingAt: NEWER,
      lastSuccessAt: status === 'up' ? NEWER : NOON,
    })
    const { state, flip, notice } = record(before, late(kind))
    expect(state).toEqual({ ...before, pingsTotal: before.pingsTotal + 1, ...changed })
    expect([flip, notice]).toEqual([null, null])
  })

  it('keeps the duration that its job measured, and has no other', () => {
    const before = aState({ lastPingAt: NEWER })
    const durations = [7, null].map((durationMs) => record(before, { ...late('success'), durationMs } as CheckEvent))
    expect(durations.map(({ durationMs }) => durationMs)).toEqual([7, null])
    expect(record(before, late('start')).durationMs).toBeNull()
  })

  it.each([-1, 0])('at a newer completion of %i ms later it is the newest', (ms) => {
    const before = aState({ lastPingAt: ARRIVED + ms })
    expect(record(before, late('fail')).flip).toMatchObject({ to: 'down' })
    expect(record(aState({ lastPingAt: ARRIVED + 1 }), late('fail')).flip).toBeNull()
  })

  it.each(['paused', 'resumed'] as const)('a completion from before the check was %s changes no status', (reason) => {
    const before = aState({ status: reason === 'paused' ? 'paused' : 'new', since: NEWER, reason, dueAt: null })
    const { state, flip } = record(before, late('fail'))
    expect(flip).toBeNull()
    expect(state).toEqual({ ...before, pingsTotal: 2 })
    expect(record(before, late('success', NEWER + 1)).state.lastPingAt).toBe(NEWER + 1)
  })

  it('a completion from before the pause does not end it, one from after it does', () => {
    const spec = aSpec({ resumesOnPing: true })
    const paused = aState({ status: 'paused', since: NEWER, reason: 'paused' })
    expect(resumesFirst(spec, paused, late('success', NEWER - 1))).toBe(false)
    expect(resumesFirst(spec, paused, late('success', NEWER))).toBe(true)
  })
})

describe('a deadline that counted as missed because the ping was not known', () => {
  const MISSED = aState({
    status: 'down',
    since: ARRIVED + MINUTE,
    reason: 'missed',
    expectedAt: null,
    dueAt: null,
    incidentSince: ARRIVED + MINUTE,
  })

  it('is taken back by a success that came before it: no flip is dated before the one before', () => {
    const { state, flip, notice } = record(MISSED, late('success'))
    expect(flip).toMatchObject({ to: 'up', reason: 'recovered', at: MISSED.since })
    expect(state).toMatchObject({ status: 'up', since: MISSED.since, lastPingAt: ARRIVED, expectedAt: ARRIVED + HOUR })
    expect(notice).toMatchObject({ type: 'check.up' })
  })

  it('is followed by the recovery of one that came after it', () => {
    const { flip } = record(MISSED, late('success', ARRIVED + 2 * MINUTE))
    expect(flip).toMatchObject({ to: 'up', at: ARRIVED + 2 * MINUTE })
  })
})

it('what the state holds of an arrival are whole milliseconds, as of everything else', () => {
  expect(record(aState(), late('success', ARRIVED + 0.75)).state).toMatchObject({
    lastPingAt: ARRIVED,
    expectedAt: ARRIVED + HOUR,
  })
})

describe('runs', () => {
  const run = (id: string | null, startedAt: number) => ({ id, startedAt, deadlineAt: startedAt + HOUR })

  it.each(['success', 'fail'] as const)(
    'a %s that is history ends its run all the same: nothing else would',
    (kind) => {
      const runs = [run('a', NOON), run('b', NOON)]
      const { state } = record(aState({ lastPingAt: ARRIVED + MINUTE, runs }), late(kind, ARRIVED, 'a'))
      expect(state.runs).toEqual([runs[1]])
    },
  )

  it('a completion that is history ends no run that began after it', () => {
    const runs = [run(null, ARRIVED + SECOND)]
    expect(record(aState({ lastPingAt: ARRIVED + MINUTE, runs }), late('success')).state.runs).toEqual(runs)
  })

  it('a late start does not move the start of a run that was started again since', () => {
    const before = aState({ lastStartAt: ARRIVED + SECOND, runs: [run(null, ARRIVED + SECOND)] })
    expect(record(before, late('start')).state).toMatchObject({ runs: before.runs, lastStartAt: ARRIVED + SECOND })
  })
})
