import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isOpen, type PingType, type Run } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { findRuns, type RunFacts, type RunPing, summarizeDurations } from '../../../src/domain/runs.ts'
import { newState, transition } from '../../../src/domain/transition.ts'
import { aSpec, DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

let pings = 0
function ping(type: PingType, createdAt: number, more: Partial<RunPing> = {}): RunPing {
  pings += 1
  return { id: `ping ${pings}`, type, runId: null, exitCode: null, durationMs: null, createdAt, ...more }
}
const openRun = (startedAt: number, id: string | null = null): Run => ({ id, startedAt, deadlineAt: null })

/** Of pings in the order of time. */
function runsOf(history: RunPing[], facts: Partial<RunFacts> = {}) {
  const now = NOON + DAY
  return findRuns({ pings: [...history].reverse(), runs: [], asOf: now, pausedAt: [], now, ...facts })
}

describe('runs', () => {
  it('a completion ends the run that a start began', () => {
    const [start, end] = [ping('start', NOON), ping('fail', NOON + MINUTE + 0.123, { durationMs: MINUTE, exitCode: 3 })]
    expect(runsOf([start, end])).toEqual([
      {
        outcome: 'fail',
        startedAt: NOON,
        endedAt: NOON + MINUTE + 0.123,
        durationMs: MINUTE,
        exitCode: 3,
        pingId: end.id,
      },
    ])
  })

  it('a completion without a start is a run, which began as long ago as it says', () => {
    expect(runsOf([ping('success', NOON)])).toMatchObject([{ startedAt: null, endedAt: NOON, durationMs: null }])
    expect(runsOf([ping('success', NOON, { durationMs: MINUTE })])).toMatchObject([{ startedAt: NOON - MINUTE }])
  })

  it('run ids tell runs apart that overlap', () => {
    const history = [
      ping('start', NOON, { runId: 'a' }),
      ping('start', NOON + 1, { runId: 'b' }),
      ping('success', NOON + 2, { runId: 'a' }),
      ping('fail', NOON + 3, { runId: 'b' }),
      ping('success', NOON + 4),
    ]
    expect(runsOf(history).map(({ outcome, startedAt }) => [outcome, startedAt])).toEqual([
      ['success', null],
      ['fail', NOON + 1],
      ['success', NOON],
    ])
  })

  it('a log is no run', () => {
    expect(runsOf([ping('log', NOON)])).toEqual([])
  })

  it('a start without an end runs while the state has it open, and is unfinished otherwise', () => {
    const history = [ping('start', NOON), ping('start', NOON + HOUR + 0.5)]
    expect(runsOf(history, { runs: [openRun(NOON + HOUR)] }).map(({ outcome }) => outcome)).toEqual([
      'running',
      'unfinished',
    ])
    expect(runsOf(history).map(({ outcome }) => outcome)).toEqual(['unfinished', 'unfinished'])
    const overran = { ...openRun(NOON + HOUR), deadlineAt: NOON + 2 * HOUR }
    expect(runsOf(history, { runs: [overran] })[0]).toMatchObject({ outcome: 'unfinished' })
  })

  it('a start that came after the state was read is running', () => {
    expect(runsOf([ping('start', NOON)], { asOf: NOON - 1 })[0]).toMatchObject({ outcome: 'running' })
    expect(runsOf([ping('start', NOON)], { asOf: NOON })[0]).toMatchObject({ outcome: 'unfinished' })
  })

  it('a start that another one without an id replaced is unfinished, and the one that the state has open runs', () => {
    const history = [ping('start', NOON), ping('start', NOON + 1), ping('start', NOON + 1, { runId: 'a' })]
    const outcomes = (facts: Partial<RunFacts>) => runsOf(history, facts).map(({ outcome }) => outcome)
    expect(outcomes({ asOf: NOON - 1 })).toEqual(['running', 'running', 'unfinished'])
    expect(outcomes({ runs: [openRun(NOON + 1, 'a')] })).toEqual(['unfinished', 'running', 'unfinished'])
    expect(outcomes({ runs: [openRun(NOON + 2)] })).toEqual(['unfinished', 'unfinished', 'unfinished'])
  })

  it('each pause ends the runs before it, in whatever order they are given, before what came at the same time', () => {
    const history = [ping('start', NOON), ping('start', NOON + 2), ping('success', NOON + 4), ping('start', NOON + 6)]
    const found = runsOf(history, { pausedAt: [NOON + 4, NOON + 1] })
    expect(found.map(({ outcome, startedAt }) => [outcome, startedAt])).toEqual([
      ['unfinished', NOON + 6],
      ['success', null],
      ['unfinished', NOON + 2],
      ['unfinished', NOON],
    ])
    const ended = runsOf([ping('start', NOON), ping('success', NOON + 3)], { pausedAt: [NOON + 4, NOON + 1] })
    expect(ended.map(({ startedAt }) => startedAt)).toEqual([null, NOON])
  })

  it('a pause ends open runs', () => {
    const history = [ping('start', NOON), ping('success', NOON + HOUR)]
    const found = runsOf(history, { pausedAt: [NOON + MINUTE] })
    expect(found.map(({ outcome, startedAt }) => [outcome, startedAt])).toEqual([
      ['success', null],
      ['unfinished', NOON],
    ])
    expect(runsOf([ping('start', NOON)], { pausedAt: [NOON + 1], runs: [openRun(NOON)] })[0]!.outcome).toBe(
      'unfinished',
    )
  })
})

const SPEC = aSpec({ schedule: { kind: 'period', periodMs: 30 * DAY } })
const steps = fc.array(
  fc.record({
    afterMs: fc.integer({ min: 1, max: 4 * HOUR }),
    kind: fc.constantFrom('success', 'fail', 'start', 'log', 'pause', 'resume' as const),
    runId: fc.constantFrom(null, 'a', 'b', 'c'),
  }),
  { maxLength: 40 },
)

it('starts and completions are matched as the state machine matches them', () => {
  fc.assert(
    fc.property(steps, (story) => {
      let now = NOON
      let state = newState(now)
      const history: RunPing[] = []
      const pausedAt: number[] = []
      for (const { afterMs, kind, runId } of story) {
        now += afterMs
        const event = (
          kind === 'start' || kind === 'success' || kind === 'fail' ? { kind, runId, durationMs: null } : { kind }
        ) as CheckEvent
        const { state: next, flip, durationMs } = transition(SPEC, state, event, now)
        state = next
        if (flip?.reason === 'paused') pausedAt.push(now)
        if (kind !== 'pause' && kind !== 'resume') history.push(ping(kind, now, { runId, durationMs }))
      }
      const found = findRuns({ pings: [...history].reverse(), runs: state.runs, asOf: now, pausedAt, now })
      for (const { endedAt, startedAt, durationMs } of found.filter((run) => run.endedAt !== null))
        expect(startedAt === null ? null : endedAt! - startedAt).toBe(durationMs)
      const running = found.filter(({ outcome }) => outcome === 'running').map(({ startedAt }) => startedAt)
      const open = state.runs.filter((run) => isOpen(run, now)).map(({ startedAt }) => startedAt)
      expect(running.sort()).toEqual(open.sort())
      const counts = history.filter(({ type }) => type === 'success' || type === 'fail').length
      expect(found.filter(({ endedAt }) => endedAt !== null)).toHaveLength(counts)
    }),
  )
})

describe('a summary of durations', () => {
  it.each([
    [[5], { count: 1, medianMs: 5, p95Ms: 5, longestMs: 5 }],
    [[9, 1], { count: 2, medianMs: 5, p95Ms: 9, longestMs: 9 }],
    [[3, 1, 2], { count: 3, medianMs: 2, p95Ms: 3, longestMs: 3 }],
    [Array.from({ length: 20 }, (_, index) => 20 - index), { count: 20, medianMs: 10.5, p95Ms: 19, longestMs: 20 }],
    [Array.from({ length: 21 }, (_, index) => index + 1), { count: 21, medianMs: 11, p95Ms: 20, longestMs: 21 }],
  ])('of %j', (durations, expected) => {
    expect(summarizeDurations(durations)).toEqual(expected)
  })

  it('of none is null', () => {
    expect(summarizeDurations([])).toBeNull()
  })
})
