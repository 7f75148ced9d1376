/** A pause that ends by itself (design, section 4, "Pauses"). */

import { describe, expect, it } from 'vitest'
import type { Pause } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { evaluationOf, transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, HOUR, MINUTE, NOON } from '../../support/builders.ts'

const SPEC = aSpec()
const by = { kind: 'user', id: '0197a000-0000-7000-8000-000000000001', name: 'ops@example.com' } as const
const pauseOf = (until: number | null): Pause => ({ by, until, comment: 'Disks are replaced' })
const pauseUntil = (until: number | null): CheckEvent => ({ kind: 'pause', pause: pauseOf(until) })
const paused = (until: number | null) => transition(SPEC, aState(), pauseUntil(until), NOON + MINUTE).state

describe('a pause until a time', () => {
  it('ends at that time as if by a call', () => {
    const state = paused(NOON + HOUR)
    expect(evaluationOf(SPEC, state)).toBe(NOON + HOUR)
    const ended = transition(SPEC, state, { kind: 'deadline', gaps: [] }, NOON + HOUR + 400)
    expect(ended.flip).toEqual({ from: 'paused', to: 'new', reason: 'resumed', at: NOON + HOUR })
    expect(ended.state).toMatchObject({ status: 'new', pause: null, expectedAt: NOON + 2 * HOUR })
  })

  it('does not end a millisecond earlier', () => {
    const state = paused(NOON + HOUR)
    expect(transition(SPEC, state, { kind: 'deadline', gaps: [] }, NOON + HOUR - 1)).toMatchObject({
      flip: null,
      state,
    })
  })

  it('ends earlier by a call', () => {
    const { state } = transition(SPEC, paused(NOON + HOUR), { kind: 'resume' }, NOON + 30 * MINUTE)
    expect(state).toMatchObject({ status: 'new', pause: null })
  })

  it('without an end awaits nothing', () => {
    expect(evaluationOf(SPEC, paused(null))).toBeNull()
  })
})

describe('pausing again', () => {
  it.each([NOON + 2 * HOUR, null])('replaces the end, and is no change of status: %s', (until) => {
    const { state, flip } = transition(SPEC, paused(NOON + HOUR), pauseUntil(until), NOON + 2 * MINUTE)
    expect(flip).toBeNull()
    expect(state).toMatchObject({ status: 'paused', since: NOON + MINUTE, pause: { until } })
  })
})

it('a check that leaves its pause in another way has none', () => {
  const spec = aSpec({ awaits: 'start' })
  const { state } = transition(spec, aState(), pauseUntil(null), NOON + MINUTE)
  const job = { at: NOON + 2 * MINUTE, createdAt: NOON - HOUR }
  const failed = transition(spec, state, { kind: 'fail', runId: null, durationMs: null, job }, NOON + 2 * MINUTE)
  expect(failed.state).toMatchObject({ status: 'down', pause: null })
})
