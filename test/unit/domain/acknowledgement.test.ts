/** A person has an incident in hand (design, section 4, "Acknowledgement"). */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Acknowledgement, acknowledgementAt, type CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

const by = { kind: 'link', id: null, name: 'Ada' } as const
const ack = (until: number | null = null, at = NOON): Acknowledgement => ({ by, at, until, comment: null })
const acknowledge = (acknowledged: Acknowledgement | null): CheckEvent => ({ kind: 'acknowledge', acknowledged })
const fail: CheckEvent = { kind: 'fail', runId: null, durationMs: null }
const success: CheckEvent = { kind: 'success', runId: null, durationMs: null }
const DEADLINE: CheckEvent = { kind: 'deadline', gaps: [] }
const HOURLY = aSpec({ schedule: { kind: 'period', periodMs: 2 * DAY }, remindEveryMs: HOUR })
const DOWN = aState({
  status: 'down',
  reason: 'failed',
  incidentSince: NOON,
  downNotifiedAt: NOON,
  expectedAt: null,
  dueAt: null,
})

const replay = (state: CheckState, steps: readonly (readonly [CheckEvent, number])[], spec = HOURLY) => {
  let outcome = transition(spec, state, steps[0]![0], steps[0]![1])
  for (const [event, at] of steps.slice(1)) outcome = transition(spec, outcome.state, event, at)
  return outcome
}

describe('an acknowledgement', () => {
  it('changes no status, and is notified once to those that keep incidents', () => {
    const first = transition(HOURLY, DOWN, acknowledge(ack()), NOON + MINUTE)
    expect(first).toMatchObject({
      flip: null,
      notice: null,
      reminder: null,
      acknowledged: { type: 'check.acknowledged', reason: 'acknowledged', at: NOON + MINUTE, downSince: NOON },
      state: { status: 'down', acknowledged: ack() },
    })
    const again = transition(HOURLY, first.state, acknowledge(ack(NOON + HOUR)), NOON + 2 * MINUTE)
    expect(again).toMatchObject({ acknowledged: null, state: { acknowledged: ack(NOON + HOUR) } })
    expect(transition(HOURLY, again.state, acknowledge(null), NOON + 3 * MINUTE)).toMatchObject({
      acknowledged: null,
      state: { acknowledged: null },
    })
  })

  it('of what no one was notified of is notified to no one', () => {
    const quiet = { ...DOWN, incidentSince: null, downNotifiedAt: null }
    const outcome = transition(HOURLY, quiet, acknowledge(ack()), NOON)
    expect(outcome).toMatchObject({ acknowledged: null, state: { acknowledged: ack() } })
  })

  it('of a check that flaps is notified when its recipients are notified of the failure', () => {
    const state = { ...DOWN, incidentSince: null, downNotifiedAt: null, notified: 'up', quietAt: NOON + HOUR } as const
    const held = transition(HOURLY, { ...state, acknowledged: ack() }, DEADLINE, NOON + HOUR)
    expect(held).toMatchObject({ settled: { type: 'check.down' }, acknowledged: { type: 'check.acknowledged' } })
    expect(held.state).toMatchObject({ acknowledged: ack(), downNotifiedAt: NOON + HOUR })
    const free = transition(HOURLY, state, DEADLINE, NOON + HOUR)
    expect(free).toMatchObject({ settled: { type: 'check.down' }, acknowledged: null })
  })

  it('holds until its time, not a millisecond longer', () => {
    const state = { acknowledged: ack(NOON + HOUR) }
    expect(acknowledgementAt(state, NOON + HOUR - 1)).toEqual(state.acknowledged)
    expect(acknowledgementAt(state, NOON + HOUR)).toBeNull()
    expect(acknowledgementAt({ acknowledged: ack() }, NOON + 1_000 * DAY)).toEqual(ack())
    expect(acknowledgementAt({ acknowledged: null }, NOON)).toBeNull()
  })

  it('ends with its incident', () => {
    const up = replay(DOWN, [
      [acknowledge(ack()), NOON],
      [success, NOON + MINUTE],
    ])
    expect(up.state).toMatchObject({ status: 'up', acknowledged: null })
    expect(transition(HOURLY, up.state, fail, NOON + 2 * MINUTE).state.acknowledged).toBeNull()
  })

  it('ends with a pause: those that keep incidents end theirs', () => {
    const again = replay(DOWN, [
      [acknowledge(ack()), NOON],
      [{ kind: 'pause' }, NOON + 1],
      [{ kind: 'resume' }, NOON + 2],
      [fail, NOON + 3],
    ])
    expect(again.state).toMatchObject({ status: 'down', incidentSince: NOON, acknowledged: null })
  })
})

describe('a reminder', () => {
  it('of an acknowledged incident is withheld, and has no number of its own', () => {
    const first = replay(DOWN, [
      [acknowledge(ack(NOON + 90 * MINUTE)), NOON],
      [DEADLINE, NOON + HOUR],
    ])
    expect(first).toMatchObject({
      reminderHeldBy: { reason: 'acknowledged' },
      reminder: { type: 'check.down', reminder: 1 },
    })
    expect(first.state).toMatchObject({ reminders: 0, downNotifiedAt: NOON + HOUR })
    const sent = transition(HOURLY, first.state, DEADLINE, NOON + 2 * HOUR)
    expect(sent).toMatchObject({ reminderHeldBy: null, reminder: { reminder: 1 }, state: { reminders: 1 } })
  })

  it('of each run is withheld, too', () => {
    const spec = aSpec({ remindsOnEachRun: true })
    const outcome = replay(
      DOWN,
      [
        [acknowledge(ack()), NOON],
        [fail, NOON + MINUTE],
      ],
      spec,
    )
    expect(outcome).toMatchObject({
      reminderHeldBy: { reason: 'acknowledged' },
      reminder: { reminder: 1 },
      state: { reminders: 0 },
    })
  })
})

it('whatever happens, no reminder is sent while a person has the incident, and none is lost after it', () => {
  const aStep = fc.record({
    kind: fc.constantFrom('fail', 'success', 'acknowledge', 'for an hour', 'unacknowledge', 'look' as const),
    afterMs: fc.integer({ min: 1, max: 2 * HOUR }),
  })
  fc.assert(
    fc.property(fc.array(aStep, { maxLength: 40 }), (steps) => {
      let state: CheckState = aState()
      let now = NOON
      let heldUntil = 0
      for (const { kind, afterMs } of steps) {
        now += afterMs
        const isDown = state.status === 'down'
        if (kind === 'acknowledge' && isDown) heldUntil = Number.POSITIVE_INFINITY
        if (kind === 'for an hour' && isDown) heldUntil = now + HOUR
        if (kind === 'unacknowledge') heldUntil = 0
        if ((kind === 'acknowledge' || kind === 'for an hour') && !isDown) continue
        const event: CheckEvent =
          kind === 'fail'
            ? fail
            : kind === 'success'
              ? success
              : kind === 'acknowledge'
                ? acknowledge(ack(null, now))
                : kind === 'for an hour'
                  ? acknowledge(ack(now + HOUR, now))
                  : kind === 'unacknowledge'
                    ? acknowledge(null)
                    : DEADLINE
        const isDue = isDown && state.downNotifiedAt !== null && now >= state.downNotifiedAt + HOUR
        const outcome = transition(HOURLY, state, event, now)
        state = outcome.state
        if (state.status !== 'down') heldUntil = 0
        const isReminded = outcome.reminder !== null
        if (isReminded) expect(outcome.reminderHeldBy?.reason === 'acknowledged').toBe(now < heldUntil)
        if (isDue && state.status === 'down' && state.notified === null && state.incidentSince !== null)
          expect(isReminded).toBe(true)
      }
    }),
    { numRuns: 500 },
  )
})
