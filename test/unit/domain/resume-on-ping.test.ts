/** A completion that ends a pause (design, section 4). */

import { describe, expect, it } from 'vitest'
import { decideChanges } from '../../../src/checks/change.ts'
import type { CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { deadlineOf } from '../../../src/domain/transition.ts'
import { aSpec, aState, HOUR, MINUTE, NOON, UNREAD_SPEC } from '../../support/builders.ts'

const PAUSED = { status: 'paused', reason: 'paused', expectedAt: null, dueAt: null } as const
const AT = NOON + 2 * HOUR

const success: CheckEvent = { kind: 'success', runId: null, durationMs: null }
const fail: CheckEvent = { ...success, kind: 'fail' }
const start: CheckEvent = { kind: 'start', runId: null }
const pause: CheckEvent = { kind: 'pause' }

/** The events one after the other, a minute between them. */
function apply(events: readonly CheckEvent[], spec = aSpec({ resumesOnPing: true }), state: Partial<CheckState> = {}) {
  const check = { key: 1, ...UNREAD_SPEC, spec, state: aState({ ...PAUSED, ...state }), stampedAt: NOON, wakeAt: null }
  const changes = events.map((event, place) => ({ key: 1, event, at: AT + place * MINUTE }))
  const { changeSet, after } = decideChanges([check], changes, 'first')
  return {
    flips: changeSet.flips.map(({ from, to, reason }) => [from, to, reason]),
    events: changeSet.events.map(({ type }) => type),
    state: after[0]!.state,
  }
}

describe('a paused check that a ping resumes', () => {
  it('goes up with a success, and expects the next one', () => {
    const { flips, events, state } = apply([success])
    expect(flips).toEqual([
      ['paused', 'new', 'resumed'],
      ['new', 'up', 'first_success'],
    ])
    expect(events).toEqual(['check.resumed'])
    expect(state).toMatchObject({ status: 'up', lastPingAt: AT, pingsTotal: aState().pingsTotal + 1 })
    expect(deadlineOf(state)).toBe(AT + HOUR + 5 * MINUTE)
  })

  it('goes up with a warning, which is notified', () => {
    const { flips, events, state } = apply([{ ...success, kind: 'warn' }])
    expect(flips.map(([, , reason]) => reason)).toEqual(['resumed', 'first_success'])
    expect(events).toEqual(['check.resumed', 'check.warned'])
    expect(state).toMatchObject({ status: 'up', lastOutcome: 'warn', warnedAt: AT })
  })

  it('goes down with a fail, which is notified', () => {
    const { flips, events, state } = apply([fail])
    expect(flips).toEqual([
      ['paused', 'new', 'resumed'],
      ['new', 'down', 'failed'],
    ])
    expect(events).toEqual(['check.resumed', 'check.down'])
    expect(state.incidentSince).toBe(AT)
  })

  it('closes its incident with a success', () => {
    const { events, state } = apply([success], undefined, { incidentSince: NOON })
    expect(events).toEqual(['check.resumed', 'check.up'])
    expect(state.incidentSince).toBeNull()
  })

  it.each<[string, CheckEvent]>([
    ['a start', start],
    ['a log', { kind: 'log' }],
    ['a deadline', { kind: 'deadline', gaps: [] }],
    ['a changed spec', { kind: 'update' }],
  ])('stays paused with %s', (_, event) => {
    expect(apply([event])).toMatchObject({ flips: [], events: [], state: { status: 'paused' } })
  })

  it('is resumed by the end of the run whose start left it paused, with its duration', () => {
    const { flips, state } = apply([start, success])
    expect(flips.map(([, to]) => to)).toEqual(['new', 'up'])
    expect(state).toMatchObject({ status: 'up', lastDurationMs: MINUTE, runs: [] })
  })

  it('is paused again by the next pause, and resumed again by the next completion', () => {
    const { flips } = apply([success, pause, fail])
    expect(flips.map(([, to]) => to)).toEqual(['new', 'up', 'paused', 'new', 'down'])
  })
})

it('a check whose pause ends when it is ended explicitly stays paused', () => {
  expect(apply([success, fail], aSpec())).toMatchObject({ flips: [], events: [], state: { status: 'paused' } })
})

it('a check that follows a source is not resumed by pings: its CronJob decides', () => {
  const spec = aSpec({ resumesOnPing: true, awaits: 'start' })
  expect(apply([success], spec)).toMatchObject({ flips: [], state: { status: 'paused' } })
})
