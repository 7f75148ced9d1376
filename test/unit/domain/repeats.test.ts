/** Warnings and reminders of runs are bounded, as changes are (design, section 4, "Flapping"). */

import { describe, expect, it } from 'vitest'
import type { CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent, Outcome } from '../../../src/domain/check-event.ts'
import { FLAPPING } from '../../../src/domain/limits.ts'
import { transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, NOON, SECOND } from '../../support/builders.ts'

const ping = (kind: 'success' | 'warn' | 'fail'): CheckEvent => ({ kind, runId: null, durationMs: null })

/** These pings, one a second, and what comes of each. */
function send(spec: ReturnType<typeof aSpec>, begin: CheckState, kinds: readonly ('success' | 'warn' | 'fail')[]) {
  let state = begin
  return kinds.map((kind, index): Outcome => {
    const outcome = transition(spec, state, ping(kind), NOON + (index + 1) * SECOND)
    state = outcome.state
    return outcome
  })
}

describe('a check that warns and succeeds by turns', () => {
  const turns = Array.from({ length: 40 }, (_, index) => (index % 2 === 0 ? ('warn' as const) : ('success' as const)))
  const outcomes = send(aSpec(), aState(), turns).filter(({ warned }) => warned !== null)

  it('notifies ten warnings within the window, and withholds the others', () => {
    expect(outcomes).toHaveLength(20)
    expect(outcomes.filter(({ warnedHeldBy }) => warnedHeldBy === null)).toHaveLength(FLAPPING.changes)
    expect(outcomes.at(-1)).toMatchObject({ warnedHeldBy: { reason: 'flapping' } })
  })

  it('notifies again when the window has passed, and not a millisecond before', () => {
    const { state } = outcomes.at(-1)!
    const succeeded = { ...state, warnedAt: null, lastOutcome: 'success' as const }
    const firstAt = NOON + SECOND
    const warnAt = (at: number) => transition(aSpec(), succeeded, ping('warn'), at)
    expect(warnAt(firstAt + FLAPPING.windowMs - 1)).toMatchObject({ warnedHeldBy: { reason: 'flapping' } })
    const sent = warnAt(firstAt + FLAPPING.windowMs)
    expect(sent).toMatchObject({ warnedHeldBy: null })
    expect(sent.state.repeats).toHaveLength(FLAPPING.changes)
  })
})

it('reminders of runs are bounded, and those that are withheld have no number', () => {
  const down = aState({ status: 'down', reason: 'failed', incidentSince: NOON, downNotifiedAt: NOON })
  const outcomes = send(aSpec({ remindsOnEachRun: true }), down, Array(15).fill('fail'))
  expect(outcomes.map(({ reminderHeldBy }) => reminderHeldBy?.reason ?? null)).toEqual([
    ...Array(FLAPPING.changes).fill(null),
    ...Array(5).fill('flapping'),
  ])
  expect(outcomes.at(-1)!.state.reminders).toBe(FLAPPING.changes)
})

it('a reminder that a person has in hand takes no place', () => {
  const acknowledged = { by: { kind: 'link', id: null, name: null }, at: NOON, until: null, comment: null } as const
  const down = { status: 'down', reason: 'failed', incidentSince: NOON, downNotifiedAt: NOON } as const
  const [outcome] = send(aSpec({ remindsOnEachRun: true }), aState({ ...down, acknowledged }), ['fail'])
  expect(outcome).toMatchObject({ reminderHeldBy: { reason: 'acknowledged' }, state: { repeats: [], reminders: 0 } })
})

it('reminders by time are not counted, and are sent all the same', () => {
  const full = Array.from({ length: FLAPPING.changes }, () => NOON)
  const down = { status: 'down', reason: 'failed', incidentSince: NOON - SECOND, since: NOON - SECOND } as const
  const state = aState({ ...down, downNotifiedAt: NOON - 300 * SECOND, repeats: full, expectedAt: null, dueAt: null })
  const outcome = transition(aSpec({ remindEveryMs: 300 * SECOND }), state, { kind: 'deadline', gaps: [] }, NOON)
  expect(outcome).toMatchObject({ reminder: { reminder: 1 }, reminderHeldBy: null })
  expect(outcome.state.repeats).toEqual(full)
})
