/** How many fails and missed intervals take a check down (design, section 4, "Thresholds"). */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CheckSpec, CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent, Outcome } from '../../../src/domain/check-event.ts'
import { evaluationOf, newState, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aSpec, aState, DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

const GRACE = 5 * MINUTE
const DUE = NOON + HOUR + GRACE
const ping = (kind: 'success' | 'warn' | 'fail', runId: string | null = null): CheckEvent => ({
  kind,
  runId,
  durationMs: null,
})
const start = (runId: string | null = null): CheckEvent => ({ kind: 'start', runId })
const DEADLINE: CheckEvent = { kind: 'deadline', gaps: [] }

/** Applies events at their times. */
function run(spec: CheckSpec, state: CheckState, steps: readonly (readonly [CheckEvent, number])[]): Outcome[] {
  const outcomes: Outcome[] = []
  let now = state
  for (const [event, at] of steps) {
    const outcome = transition(spec, now, event, at)
    outcomes.push(outcome)
    now = outcome.state
  }
  return outcomes
}
const last = (outcomes: readonly Outcome[]) => outcomes.at(-1)!

describe('three failures before down', () => {
  const spec = aSpec({ failuresBeforeDown: 3 })

  it('take the check down, and fewer do not', () => {
    const outcomes = run(spec, aState(), [
      [ping('fail'), NOON + 1],
      [ping('fail'), NOON + 2],
      [ping('fail'), NOON + 3],
    ])
    expect(outcomes.map(({ state }) => [state.status, state.consecutiveFailures])).toEqual([
      ['up', 1],
      ['up', 2],
      ['down', 3],
    ])
    expect(outcomes.map(({ flip, notice }) => [flip?.reason, notice?.type])).toEqual([
      [undefined, undefined],
      [undefined, undefined],
      ['failed', 'check.down'],
    ])
  })

  it('leave a new check new, and expect the next run', () => {
    const [first] = run(spec, newState(NOON), [[ping('fail'), NOON]])
    expect(first).toMatchObject({ flip: null, state: { status: 'new', expectedAt: NOON + HOUR, lastOutcome: 'fail' } })
  })

  it.each(['success', 'warn'] as const)('begin anew after a %s', (kind) => {
    const outcomes = run(spec, aState(), [
      [ping('fail'), NOON + 1],
      [ping('fail'), NOON + 2],
      [ping(kind), NOON + 3],
      [ping('fail'), NOON + 4],
      [ping('fail'), NOON + 5],
    ])
    expect(last(outcomes).state).toMatchObject({ status: 'up', consecutiveFailures: 2 })
  })

  it('are not ended by a miss', () => {
    const two = run(aSpec({ failuresBeforeDown: 3, missesBeforeDown: 2 }), aState(), [
      [ping('fail'), NOON],
      [ping('fail'), NOON],
      [DEADLINE, DUE],
      [ping('fail'), DUE + 1],
    ])
    expect(last(two)).toMatchObject({ flip: { to: 'down', reason: 'failed' }, state: { consecutiveMisses: 0 } })
  })

  it('count on while the check is down, and not while it is paused', () => {
    const down = run(spec, aState({ status: 'down', consecutiveFailures: 3 }), [[ping('fail'), NOON]])
    expect(last(down).state.consecutiveFailures).toBe(4)
    const paused = run(spec, aState({ status: 'paused', consecutiveFailures: 2 }), [[ping('fail'), NOON]])
    expect(last(paused).state.consecutiveFailures).toBe(2)
  })

  it('are kept by a pause, and forgotten by a resume', () => {
    const state = aState({ consecutiveFailures: 2, consecutiveMisses: 1 })
    const [paused, resumed] = run(spec, state, [
      [{ kind: 'pause' }, NOON],
      [{ kind: 'resume' }, NOON + 1],
    ])
    expect(paused!.state).toMatchObject({ consecutiveFailures: 2, consecutiveMisses: 1 })
    expect(resumed!.state).toMatchObject({ consecutiveFailures: 0, consecutiveMisses: 0 })
  })
})

describe('two misses before down', () => {
  const spec = aSpec({ missesBeforeDown: 2 })

  it('take the check down; the first is counted, and re-arms one interval', () => {
    const [first, second] = run(spec, aState(), [
      [DEADLINE, DUE],
      [DEADLINE, DUE + HOUR],
    ])
    expect(first).toMatchObject({ flip: null, notice: null, counted: { reason: 'missed', at: DUE } })
    expect(first!.state).toMatchObject({
      status: 'up',
      expectedAt: NOON + 2 * HOUR,
      dueAt: DUE + HOUR,
      consecutiveMisses: 1,
    })
    expect(second).toMatchObject({ counted: null, flip: { to: 'down', reason: 'missed', at: DUE + HOUR } })
    expect(second!.state).toMatchObject({ consecutiveMisses: 2, dueAt: null })
  })

  it('do not, a millisecond before the second deadline', () => {
    const outcomes = run(spec, aState(), [
      [DEADLINE, DUE],
      [DEADLINE, DUE + HOUR - 1],
    ])
    expect(last(outcomes)).toMatchObject({ flip: null, counted: null, state: { consecutiveMisses: 1 } })
  })

  it.each(['success', 'warn', 'fail'] as const)('begin anew after a %s: a run that ended', (kind) => {
    const outcomes = run(aSpec({ missesBeforeDown: 2, failuresBeforeDown: 2 }), aState(), [
      [DEADLINE, DUE],
      [ping(kind), DUE + 1],
    ])
    expect(last(outcomes).state).toMatchObject({ status: 'up', consecutiveMisses: 0 })
  })

  it('follow the slots of a cron expression', () => {
    const cron = aCronSpec('0 3 * * *', { missesBeforeDown: 2, graceMs: HOUR })
    const at = Date.UTC(2026, 10, 22, 3)
    const state = aState({ expectedAt: at, dueAt: at + HOUR })
    const [first] = run(cron, state, [[DEADLINE, at + HOUR]])
    expect(first!.state).toMatchObject({ expectedAt: at + DAY, dueAt: at + DAY + HOUR })
  })

  it('count a run that takes too long, and expect the next one', () => {
    const limited = aSpec({ missesBeforeDown: 2, maxRuntimeMs: 10 * MINUTE })
    const [, over, , again] = run(limited, aState(), [
      [start('a'), NOON + HOUR],
      [DEADLINE, NOON + HOUR + 10 * MINUTE],
      [start('b'), NOON + 2 * HOUR],
      [DEADLINE, NOON + 2 * HOUR + 10 * MINUTE],
    ])
    expect(over).toMatchObject({ flip: null, counted: { reason: 'overran', at: NOON + HOUR + 10 * MINUTE } })
    expect(over!.state).toMatchObject({
      runs: [{ id: 'a', isCounted: true }],
      expectedAt: NOON + 2 * HOUR + 10 * MINUTE,
    })
    expect(again).toMatchObject({ flip: { to: 'down', reason: 'overran' } })
  })

  it('count a run that takes too long once', () => {
    const limited = aSpec({ missesBeforeDown: 3, maxRuntimeMs: 10 * MINUTE })
    const [, over, again] = run(limited, aState(), [
      [start('a'), NOON + HOUR],
      [DEADLINE, NOON + HOUR + 10 * MINUTE],
      [DEADLINE, NOON + HOUR + 11 * MINUTE],
    ])
    expect(again).toMatchObject({ counted: null, state: over!.state })
    expect(evaluationOf(limited, over!.state)).toBe(over!.state.dueAt)
  })

  it('are not ended by a run that took too long, whenever it succeeds, but by one that ended in time', () => {
    const limited = aSpec({ missesBeforeDown: 2, maxRuntimeMs: 30 * MINUTE })
    const at = (hours: number, minutes = 0) => NOON + hours * HOUR + minutes * MINUTE
    const late = [
      [start('a'), at(1)],
      [DEADLINE, at(1, 30)],
      [ping('success', 'a'), at(1, 50)],
    ] as const
    const [, , ended] = run(limited, aState(), late)
    expect(ended!.state).toMatchObject({ status: 'up', consecutiveMisses: 1, runs: [] })
    const [again, over] = run(limited, ended!.state, [
      [start('b'), at(2)],
      [DEADLINE, at(2, 30)],
    ])
    expect(again!.state.consecutiveMisses).toBe(1)
    expect(over).toMatchObject({ flip: { to: 'down', reason: 'overran' } })
    const inTime = run(limited, ended!.state, [
      [start('b'), at(2)],
      [ping('success', 'b'), at(2, 20)],
    ])
    expect(last(inTime).state.consecutiveMisses).toBe(0)
    const hung = {
      ...ended!.state,
      runs: [{ id: 'c', startedAt: at(2), deadlineAt: at(2, 30), isCounted: true as const }],
    }
    const missed = run(limited, hung, [[DEADLINE, at(4)]])
    expect(last(missed)).toMatchObject({ flip: { to: 'down', reason: 'missed' } })
    const lateEnd = run(limited, last(missed).state, [[ping('success', 'c'), at(4, 10)]])
    expect(last(lateEnd).state).toMatchObject({ status: 'up', consecutiveMisses: 0 })
    const recovered = run(limited, over!.state, [[ping('success', 'b'), at(2, 50)]])
    expect(last(recovered).state).toMatchObject({ status: 'up', consecutiveMisses: 0 })
  })

  it('count no interval that our own downtime hid', () => {
    const gap = { startedAt: NOON + HOUR, endedAt: DUE }
    const outcome = transition(spec, aState(), { kind: 'deadline', gaps: [gap] }, DUE)
    expect(outcome).toMatchObject({ counted: null, state: { consecutiveMisses: 0 } })
  })
})

describe('of a check that follows a source', () => {
  const spec = aCronSpec('0 * * * *', {
    awaits: 'start',
    missesBeforeDown: 2,
    failuresBeforeDown: 2,
    maxRuntimeMs: HOUR,
  })
  const jobAt = (at: number) => ({ at, slotAt: at, createdAt: NOON - DAY })
  const state = aState({ expectedAt: NOON + HOUR, dueAt: NOON + HOUR + GRACE, lastPingAt: NOON, lastStartAt: NOON })

  it('a first failed run changes no status, a second one does', () => {
    const fail = (id: string, at: number): CheckEvent => ({
      kind: 'fail',
      runId: id,
      durationMs: null,
      job: { at, createdAt: NOON - DAY },
    })
    const outcomes = run(spec, state, [
      [{ kind: 'start', runId: 'a', job: jobAt(NOON + HOUR) }, NOON + HOUR],
      [fail('a', NOON + HOUR + MINUTE), NOON + HOUR + MINUTE],
      [{ kind: 'start', runId: 'b', job: jobAt(NOON + 2 * HOUR) }, NOON + 2 * HOUR],
      [fail('b', NOON + 2 * HOUR + MINUTE), NOON + 2 * HOUR + MINUTE],
    ])
    expect(outcomes[1]).toMatchObject({ flip: null, state: { status: 'up', consecutiveFailures: 1 } })
    expect(outcomes[1]!.state.dueAt).toBe(NOON + 2 * HOUR + GRACE)
    expect(outcomes[3]).toMatchObject({ flip: { to: 'down', reason: 'failed' } })
  })

  it('a first slot without a start is counted, a second one takes it down', () => {
    const [first, second] = run(spec, state, [
      [DEADLINE, NOON + HOUR + GRACE],
      [DEADLINE, NOON + 2 * HOUR + GRACE],
    ])
    expect(first).toMatchObject({
      flip: null,
      counted: { reason: 'missed' },
      state: { dueAt: NOON + 2 * HOUR + GRACE },
    })
    expect(second).toMatchObject({ flip: { to: 'down', reason: 'missed' } })
  })

  it('a run that took too long is counted once, and its end is awaited', () => {
    const outcomes = run(
      spec,
      { ...state, runs: [{ id: 'a', startedAt: NOON, deadlineAt: NOON + HOUR, slotAt: NOON }] },
      [[DEADLINE, NOON + HOUR]],
    )
    expect(last(outcomes)).toMatchObject({ flip: null, counted: { reason: 'overran', at: NOON + HOUR } })
    expect(last(outcomes).state).toMatchObject({ runs: [{ id: 'a', deadlineAt: null }], dueAt: NOON + HOUR + GRACE })
    const end: CheckEvent = {
      kind: 'success',
      runId: 'a',
      durationMs: null,
      job: { at: NOON + HOUR + MINUTE, createdAt: NOON - DAY },
    }
    const ended = transition(spec, last(outcomes).state, end, NOON + HOUR + MINUTE)
    expect(ended.state).toMatchObject({ status: 'up', runs: [], consecutiveMisses: 1 })
  })

  it('a run that its source replaced is counted', () => {
    const job = { at: NOON + HOUR, createdAt: NOON - DAY }
    const running = { ...state, runs: [{ id: 'a', startedAt: NOON, deadlineAt: null, slotAt: NOON }] }
    const abandon: CheckEvent = { kind: 'abandon', runId: 'a', at: NOON + HOUR, overran: job }
    expect(transition(spec, running, abandon, NOON + HOUR)).toMatchObject({
      flip: null,
      counted: { reason: 'overran', at: NOON + HOUR },
      state: { consecutiveMisses: 1 },
    })
    const once = { ...running, consecutiveMisses: 1 }
    expect(transition(spec, once, abandon, NOON + HOUR)).toMatchObject({ flip: { to: 'down', reason: 'overran' } })
  })
})

describe('a changed threshold', () => {
  const update = (isSameTiming: boolean): CheckEvent => ({ kind: 'update', isSameTiming })

  it.each([
    [{ failuresBeforeDown: 2 }, { consecutiveFailures: 2 }, 'failed'],
    [{ failuresBeforeDown: 1 }, { consecutiveFailures: 2 }, 'failed'],
    [{ missesBeforeDown: 2 }, { consecutiveMisses: 2 }, 'missed'],
    [{ failuresBeforeDown: 3 }, { consecutiveFailures: 2 }, null],
    [{ missesBeforeDown: 3 }, { consecutiveMisses: 2 }, null],
    [{}, {}, null],
  ] as const)('to %j with %j takes the check down for: %s', (spec, counts, reason) => {
    const { flip } = transition(aSpec(spec), aState(counts), update(true), NOON + 1)
    expect(flip?.reason ?? null).toBe(reason)
    if (reason !== null) expect(flip).toMatchObject({ to: 'down', at: NOON + 1 })
  })

  it.each(['paused', 'down'] as const)('changes no check that is %s', (status) => {
    const { flip } = transition(aSpec(), aState({ status, consecutiveFailures: 5 }), update(true), NOON + 1)
    expect(flip).toBeNull()
  })

  it('alone moves no deadline', () => {
    const state = aState()
    expect(transition(aSpec(), state, update(true), DUE - 1).state).toEqual(state)
    expect(transition(aSpec(), state, update(false), DUE - 1).state.dueAt).toBeGreaterThan(DUE)
  })
})

describe('in any order of pings and time', () => {
  const aStep = fc.oneof(
    fc.record({
      kind: fc.constantFrom('success' as const, 'warn' as const, 'fail' as const),
      afterMs: fc.nat(HOUR * 2),
    }),
    fc.record({ kind: fc.constant('wait' as const), afterMs: fc.nat(3 * HOUR) }),
  )
  /** What a person would count on paper: a period of an hour, and five minutes of grace. */
  function model(steps: readonly { kind: string; afterMs: number }[], failures: number, misses: number) {
    let [now, dueAt, fails, missed] = [NOON, DUE as number | null, 0, 0]
    let isDown = false
    const story: string[] = []
    for (const { kind, afterMs } of steps) {
      now += afterMs
      while (dueAt !== null && dueAt <= now) {
        missed += 1
        isDown = missed >= misses
        story.push(isDown ? 'down' : 'counted')
        dueAt = isDown ? null : dueAt + HOUR
      }
      if (kind === 'wait') continue
      missed = 0
      fails = kind === 'fail' ? fails + 1 : 0
      if (kind !== 'fail' && isDown) story.push('up')
      if (kind !== 'fail') isDown = false
      if (kind === 'fail' && !isDown && fails >= failures) {
        isDown = true
        story.push('down')
      }
      dueAt = isDown ? null : now + HOUR + GRACE
    }
    return { story, fails, missed }
  }

  it('the check goes down when a person who counts says so', () => {
    const amount = fc.integer({ min: 1, max: 4 })
    fc.assert(
      fc.property(fc.array(aStep, { maxLength: 40 }), amount, amount, (steps, failures, misses) => {
        const spec = aSpec({ failuresBeforeDown: failures, missesBeforeDown: misses })
        const story: string[] = []
        let [state, now] = [aState(), NOON]
        const apply = (event: CheckEvent, at: number) => {
          const { state: next, flip, counted } = transition(spec, state, event, at)
          state = next
          if (counted !== null) story.push('counted')
          if (flip !== null) story.push(flip.to)
        }
        for (const { kind, afterMs } of steps) {
          now += afterMs
          // The end of flapping is an evaluation too: a check looks whenever it should.
          for (let at = evaluationOf(spec, state); at !== null && at <= now; at = evaluationOf(spec, state))
            apply(DEADLINE, Math.max(at, NOON))
          if (kind !== 'wait') apply(ping(kind), now)
        }
        const expected = model(steps, failures, misses)
        expect(story).toEqual(expected.story)
        expect(state).toMatchObject({ consecutiveFailures: expected.fails, consecutiveMisses: expected.missed })
      }),
      { numRuns: 500 },
    )
  })
})
