/** A pause with an end of a check that follows a source: its Jobs go on as always, and alert no one. */

import { describe, expect, it } from 'vitest'
import type { CheckState, Pause } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { deadlineOf, evaluationOf, transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, HOUR, MINUTE, NOON } from '../../support/builders.ts'

const spec = aSpec({ awaits: 'start', maxRuntimeMs: 10 * MINUTE })
const by = { kind: 'kubernetes', id: null, name: 'default' } as const
const UNTIL = NOON + HOUR
const pausedUntil = (until: number | null): Pause => ({ by, until, comment: null })

const RUN = { id: 'run', startedAt: NOON - MINUTE, deadlineAt: NOON + 9 * MINUTE, slotAt: NOON - MINUTE }
const up = aState({ status: 'up', reason: 'recovered', since: NOON - HOUR, lastPingAt: NOON - HOUR, runs: [RUN] })

const apply = (state: CheckState, event: CheckEvent, at: number) => transition(spec, state, event, at)
const paused = (until: number | null) => apply(up, { kind: 'pause', pause: pausedUntil(until) }, NOON).state
const end = (kind: 'success' | 'fail', at: number) =>
  ({ kind, runId: 'run', durationMs: null, job: { at, createdAt: NOON - 2 * HOUR } }) as const
const EVALUATE = { kind: 'deadline', gaps: [] } as const

describe('while it lasts', () => {
  it('no run of it fails the check; in a pause without an end one does', () => {
    const at = NOON + 5 * MINUTE
    const { state, flip } = apply(paused(UNTIL), end('fail', at), at)
    expect(flip).toBeNull()
    expect(state).toMatchObject({ status: 'paused', lastOutcome: 'fail', consecutiveFailures: 0, runs: [] })
    expect(apply(paused(null), end('fail', at), at).flip).toMatchObject({ to: 'down', reason: 'failed' })
  })

  it('no run of it is late: the end is awaited alone', () => {
    const at = NOON + 10 * MINUTE
    expect([deadlineOf(paused(UNTIL)), evaluationOf(spec, paused(UNTIL))]).toEqual([null, UNTIL])
    expect(apply(paused(UNTIL), EVALUATE, at).flip).toBeNull()
    expect(deadlineOf(paused(null))).toBe(RUN.deadlineAt)
    expect(apply(paused(null), EVALUATE, at).flip).toMatchObject({ to: 'down', reason: 'overran' })
  })

  it('a run that its source replaces counts as no miss', () => {
    const at = NOON + 5 * MINUTE
    const replaced = { kind: 'abandon', runId: 'run', at, overran: { at, createdAt: NOON - 2 * HOUR } } as const
    expect(apply(paused(UNTIL), replaced, at)).toMatchObject({ flip: null, counted: null, state: { runs: [] } })
    expect(apply(paused(null), replaced, at).flip).toMatchObject({ to: 'down', reason: 'overran' })
  })
})

describe('at its end', () => {
  it('the check is new, and awaits the next run', () => {
    const { state, flip } = apply(paused(UNTIL), EVALUATE, UNTIL + 7)
    expect(flip).toEqual({ from: 'paused', to: 'new', reason: 'resumed', at: UNTIL })
    expect(state).toMatchObject({ pause: null, expectedAt: UNTIL + HOUR })
  })

  it('a run that took too long in the pause takes nothing down, and one that does not yet still can', () => {
    const late = apply(paused(UNTIL), EVALUATE, UNTIL).state
    expect(late.runs).toEqual([{ ...RUN, deadlineAt: null }])
    const soon = apply(paused(NOON + 5 * MINUTE), EVALUATE, NOON + 5 * MINUTE).state
    expect(soon.runs).toEqual([RUN])
    expect(apply(soon, EVALUATE, RUN.deadlineAt).flip).toMatchObject({ to: 'down', reason: 'overran' })
  })

  it('a run that fails after it takes the check down', () => {
    const resumed = apply(paused(UNTIL), EVALUATE, UNTIL).state
    const at = UNTIL + MINUTE
    expect(apply(resumed, end('fail', at), at).flip).toMatchObject({ to: 'down', reason: 'failed' })
  })
})
