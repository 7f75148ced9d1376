/** A check that is down is notified again (design, section 4, "Reminders"). */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CheckSpec, CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { evaluationOf, transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

const DEADLINE: CheckEvent = { kind: 'deadline', gaps: [] }
const fail: CheckEvent = { kind: 'fail', runId: null, durationMs: null }
const success: CheckEvent = { kind: 'success', runId: null, durationMs: null }

/** A check that was up at NOON, and what its recipients are notified: `down`, `up`, or the number of a reminder. */
function createStory(spec: CheckSpec, begin: CheckState = aState()) {
  let state = begin
  let now = NOON
  const notified: (string | number)[] = []
  const apply = (event: CheckEvent) => {
    const outcome = transition(spec, state, event, now)
    state = outcome.state
    for (const notice of [outcome.settled, outcome.heldBy === null ? outcome.notice : null, outcome.reminder])
      if (notice !== null) notified.push(notice.reminder ?? notice.type.slice('check.'.length))
    return outcome
  }
  return {
    notified,
    apply,
    at(time: number) {
      now = time
      return this
    },
    /** Time passes, and the evaluator looks whenever it should. */
    pass(ms: number) {
      const until = now + ms
      for (let at = evaluationOf(spec, state); at !== null && at <= until; at = evaluationOf(spec, state)) {
        now = Math.max(now, at)
        apply(DEADLINE)
      }
      now = until
      return this
    },
    state: () => state,
    now: () => now,
  }
}

describe('each hour', () => {
  const hourly = aSpec({ schedule: { kind: 'period', periodMs: 2 * DAY }, remindEveryMs: HOUR })

  it('the recipients are notified again, by numbers, until the check is up', () => {
    const story = createStory(hourly)
    story.apply(fail)
    story.pass(3 * HOUR)
    expect(story.notified).toEqual(['down', 1, 2, 3])
    story.apply(success)
    story.pass(DAY)
    expect(story.notified).toEqual(['down', 1, 2, 3, 'up'])
    expect(story.state()).toMatchObject({ downNotifiedAt: null, reminders: 0 })
  })

  it('a reminder comes at the hour, not a millisecond before, and says since when', () => {
    const story = createStory(hourly)
    story.at(NOON + 1).apply(fail)
    expect(story.at(NOON + HOUR).apply(DEADLINE).reminder).toBeNull()
    expect(story.at(NOON + HOUR + 1).apply(DEADLINE).reminder).toEqual({
      type: 'check.down',
      reason: 'failed',
      at: NOON + 1,
      from: 'down',
      to: 'down',
      downSince: NOON + 1,
      flips: null,
      reminder: 1,
    })
  })

  it('after a long gap of ours one is sent, and the next one an hour later', () => {
    const story = createStory(hourly)
    story.apply(fail)
    story.at(NOON + 9.5 * HOUR).apply(DEADLINE)
    expect(story.notified).toEqual(['down', 1])
    story.pass(HOUR - 1)
    expect(story.notified).toEqual(['down', 1])
    story.pass(1)
    expect(story.notified).toEqual(['down', 1, 2])
  })

  it('a further failure is no reminder', () => {
    const story = createStory(hourly)
    story.apply(fail)
    expect(story.at(NOON + MINUTE).apply(fail).reminder).toBeNull()
  })

  it('none is sent while the check is paused, and the numbers go on in the same incident', () => {
    const story = createStory(hourly)
    story.apply(fail)
    story.pass(HOUR)
    story.apply({ kind: 'pause' })
    story.pass(9 * HOUR)
    expect(story.notified).toEqual(['down', 1])
    story.apply({ kind: 'resume' })
    story.apply(fail)
    story.pass(HOUR)
    expect(story.notified).toEqual(['down', 1, 'down', 2])
  })

  it('none is sent while the check flaps', () => {
    const story = createStory(aSpec({ schedule: { kind: 'period', periodMs: 2 * DAY }, remindEveryMs: 5 * MINUTE }))
    for (let change = 0; change < 6; change += 1) {
      story.apply(fail)
      story.apply(success)
    }
    expect(story.notified.at(-1)).toBe('flapping')
    story.apply(fail)
    const until = story.notified.length
    story.pass(10 * MINUTE - 1)
    expect(story.notified.slice(until)).toEqual([])
    story.pass(1)
    expect(story.notified.slice(until)).toEqual(['down'])
    story.pass(5 * MINUTE)
    expect(story.notified.slice(until)).toEqual(['down', 1])
  })

  it('none is sent while the check flaps in an incident that its recipients wait to end', () => {
    const down = aState({ status: 'down', incidentSince: NOON, downNotifiedAt: NOON, expectedAt: null, dueAt: null })
    const story = createStory(
      aSpec({ remindEveryMs: 5 * MINUTE, schedule: { kind: 'period', periodMs: 2 * DAY } }),
      down,
    )
    for (let change = 0; change < 6; change += 1) {
      story.apply(success)
      story.apply(fail)
    }
    expect(story.notified.at(-1)).toBe('flapping')
    expect(story.state()).toMatchObject({ status: 'down', notified: 'down', incidentSince: NOON })
    const until = story.notified.length
    story.pass(10 * MINUTE - 1)
    expect(story.notified.slice(until)).toEqual([])
  })

  it('one that is set while the check is down counts from when its recipients were notified', () => {
    const story = createStory(aSpec())
    story.apply(fail)
    const later = createStory(hourly, story.state())
    later.at(NOON + HOUR).apply({ kind: 'update', isSameTiming: true })
    later.pass(0)
    expect(later.notified).toEqual([1])
  })
})

describe('at each further run', () => {
  const each = aSpec({ remindsOnEachRun: true })

  it('that fails the recipients are notified again, with the time of that run', () => {
    const story = createStory(each)
    story.apply(fail)
    const { reminder } = story.at(NOON + 50 * MINUTE).apply(fail)
    expect(reminder).toMatchObject({ reason: 'failed', at: NOON + 50 * MINUTE, downSince: NOON, reminder: 1 })
    expect(story.notified).toEqual(['down', 1])
  })

  it('that is missed the recipients are notified again, and the next one is expected', () => {
    const story = createStory(each)
    story.apply(fail)
    story.pass(3 * HOUR + 5 * MINUTE)
    expect(story.notified).toEqual(['down', 1, 2, 3])
    expect(story.state()).toMatchObject({ status: 'down', consecutiveMisses: 3, dueAt: NOON + 4 * HOUR + 5 * MINUTE })
  })

  it.each(['completion', 'start'] as const)('after a long gap of ours is one reminder: awaits %s', (awaits) => {
    const spec = aSpec({ awaits, remindsOnEachRun: true })
    const story = createStory(spec)
    story.apply(fail)
    story.at(NOON + 7 * DAY)
    story.pass(0)
    expect(story.notified).toEqual(['down', 1])
    expect(story.state().dueAt).toBeGreaterThan(NOON + 7 * DAY)
  })

  it('that is missed is dated at its deadline', () => {
    const story = createStory(each)
    story.apply(fail)
    const outcome = story.at(NOON + HOUR + 7 * MINUTE).apply(DEADLINE)
    const missed = { reason: 'missed', at: NOON + HOUR + 5 * MINUTE }
    expect(outcome).toMatchObject({ flip: null, counted: missed, reminder: { ...missed, reminder: 1 } })
  })

  it('that begins is not one that is missed, but one that then hangs is', () => {
    const story = createStory(aSpec({ remindsOnEachRun: true, maxRuntimeMs: MINUTE }))
    story.apply(fail)
    story.at(NOON + HOUR).apply({ kind: 'start', runId: 'a' })
    story.pass(5 * MINUTE - 1)
    expect(story.notified).toEqual(['down'])
    story.pass(1)
    expect(story.notified).toEqual(['down', 1])
  })

  it('that began in time is not missed while it may run, unless another one began meanwhile', () => {
    const spec = aSpec({ remindsOnEachRun: true, maxRuntimeMs: 2 * HOUR })
    const story = createStory(spec)
    story.apply(fail)
    story.at(NOON + HOUR).apply({ kind: 'start', runId: 'a' })
    story.pass(2 * HOUR - 1)
    expect(story.notified).toEqual(['down'])
    story.pass(1)
    expect(story.notified).toEqual(['down', 1])
    const hung = createStory(spec)
    hung.apply(fail)
    for (let hour = 1; hour <= 2; hour += 1) hung.at(NOON + hour * HOUR).apply({ kind: 'start', runId: `${hour}` })
    hung.pass(HOUR)
    expect(hung.notified).toEqual(['down', 1])
  })

  it('and each hour: both are numbered through, and a run puts the hour off', () => {
    const story = createStory(
      aSpec({ schedule: { kind: 'period', periodMs: 90 * MINUTE }, remindsOnEachRun: true, remindEveryMs: HOUR }),
    )
    story.apply(fail)
    story.pass(HOUR)
    story.apply(fail)
    expect(story.notified).toEqual(['down', 1, 2])
    story.pass(HOUR - 1)
    expect(story.notified).toEqual(['down', 1, 2])
    story.pass(1)
    expect(story.notified).toEqual(['down', 1, 2, 3])
  })

  it('of a check that follows a source, a start in time satisfies its slot', () => {
    const spec = aSpec({ awaits: 'start', remindsOnEachRun: true })
    const story = createStory(spec, aState({ lastStartAt: NOON }))
    const job = (at: number) => ({ at, slotAt: at, createdAt: NOON - DAY })
    story.apply({ kind: 'fail', runId: 'a', durationMs: null, job: job(NOON) })
    story.at(NOON + HOUR).apply({ kind: 'start', runId: 'b', job: job(NOON + HOUR) })
    story.pass(6 * MINUTE)
    expect(story.notified).toEqual(['down'])
    story.apply({ kind: 'fail', runId: 'b', durationMs: null, job: job(NOON + HOUR + 6 * MINUTE) })
    expect(story.notified).toEqual(['down', 1])
    story.pass(HOUR)
    expect(story.notified).toEqual(['down', 1, 2])
  })
})

it('without a reminder that was asked for, none is sent, and nothing is awaited', () => {
  const story = createStory(aSpec())
  story.apply(fail)
  story.at(NOON + 1).apply(fail)
  story.pass(30 * DAY)
  expect(story.notified).toEqual(['down'])
  expect(evaluationOf(aSpec(), story.state())).toBeNull()
})

it('whatever happens, a reminder is sent only between a down and its up, and by numbers', () => {
  const aStep = fc.record({
    event: fc.constantFrom<CheckEvent>(fail, success, { kind: 'pause' }, { kind: 'resume' }, DEADLINE),
    afterMs: fc.nat(3 * HOUR),
  })
  const aChoice = fc.record({
    remindEveryMs: fc.option(fc.constantFrom(20 * MINUTE, HOUR)),
    remindsOnEachRun: fc.boolean(),
    failuresBeforeDown: fc.integer({ min: 1, max: 3 }),
  })
  fc.assert(
    fc.property(fc.array(aStep, { maxLength: 40 }), aChoice, (steps, choice) => {
      const story = createStory(aSpec(choice))
      for (const { event, afterMs } of steps) {
        story.pass(afterMs)
        story.apply(event)
      }
      let expected: number | null = null
      for (const one of story.notified) {
        if (one === 'down') expected ??= 1
        else if (one === 'up') expected = null
        else if (typeof one === 'number') {
          expect(one).toBe(expected)
          expected = one + 1
        }
      }
    }),
    { numRuns: 500 },
  )
})
