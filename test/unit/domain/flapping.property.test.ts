/** The damping rule over any story of a check, and what its recipients know in the end. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { FLAPPING } from '../../../src/domain/limits.ts'
import { evaluationOf, newState, transition } from '../../../src/domain/transition.ts'
import { aSpec, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const SPEC = aSpec({ schedule: { kind: 'period', periodMs: 10 * SECOND }, graceMs: 0, maxRuntimeMs: MINUTE })

interface Step {
  readonly afterMs: number
  readonly kind: 'success' | 'fail' | 'start' | 'deadline' | 'pause' | 'resume'
  /** Before now, of a gap that the evaluator knows. */
  readonly gapMs: number
}

/** Mostly pings in short succession: such a story flaps. */
const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.oneof(
    { arbitrary: fc.integer({ min: 0, max: 20 * SECOND }), weight: 8 },
    { arbitrary: fc.integer({ min: 0, max: 11 * MINUTE }), weight: 1 },
  ),
  kind: fc.oneof(
    { arbitrary: fc.constantFrom('success' as const, 'fail' as const), weight: 8 },
    {
      arbitrary: fc.constantFrom('start' as const, 'deadline' as const, 'pause' as const, 'resume' as const),
      weight: 2,
    },
  ),
  gapMs: fc.integer({ min: 0, max: 5 * MINUTE }),
})

function toEvent({ kind, gapMs }: Step, now: number): CheckEvent {
  if (kind === 'success' || kind === 'fail') return { kind, runId: null, durationMs: null }
  if (kind === 'start') return { kind, runId: null }
  return kind === 'deadline' ? { kind, gaps: [{ startedAt: now - gapMs, endedAt: now }] } : { kind }
}

interface Sent {
  readonly type: string
  readonly at: number
}

/** `look` sees the check after each step. */
function walk(steps: readonly Step[], look: (state: CheckState, sent: readonly Sent[]) => void) {
  let now = NOON
  let state = newState(now)
  const sent: Sent[] = []
  const apply = (event: CheckEvent) => {
    const { state: next, notice, heldBy, settled } = transition(SPEC, state, event, now)
    for (const one of [settled, heldBy === null ? notice : null])
      if (one !== null) sent.push({ type: one.type, at: now })
    state = next
    look(state, sent)
  }
  for (const one of steps) {
    now += one.afterMs
    apply(toEvent(one, now))
  }
  return {
    sent,
    /** The evaluator looks when it should, and nothing else happens. */
    rest() {
      for (let next = evaluationOf(SPEC, state); next !== null; next = evaluationOf(SPEC, state)) {
        now = Math.max(now, next)
        apply({ kind: 'deadline', gaps: [] })
      }
      return state
    },
  }
}

const isChange = ({ type }: Sent) => type !== 'check.flapping'
const lastChange = (sent: readonly Sent[]) => sent.findLast(isChange)?.type ?? null

function expectLimited(sent: readonly Sent[]): void {
  for (const { at } of sent) {
    const within = sent.filter((one) => one.at >= at && one.at < at + FLAPPING.windowMs)
    expect(within.filter(isChange).length).toBeLessThanOrEqual(FLAPPING.changes)
    expect(within.filter((one) => !isChange(one)).length).toBeLessThanOrEqual(1)
  }
}

const story = fc.array(step, { minLength: 20, maxLength: 120 })

it('never more than ten check.down and check.up, and one check.flapping, are sent within ten minutes', () => {
  let flapped = 0
  fc.assert(
    fc.property(story, (steps) => {
      const { sent, rest } = walk(steps, () => {})
      rest()
      expectLimited(sent)
      if (sent.some((one) => !isChange(one))) flapped += 1
    }),
  )
  expect(flapped).toBeGreaterThan(0)
})

it('recipients know a check that does not flap as it is: down, or up', () => {
  fc.assert(
    fc.property(story, (steps) => {
      walk(steps, ({ status, notified, incidentSince }, sent) => {
        if (notified !== null) return
        if (status === 'down') expect(lastChange(sent)).toBe('check.down')
        if (status === 'up') expect(lastChange(sent)).not.toBe('check.down')
        expect(incidentSince !== null).toBe(lastChange(sent) === 'check.down')
      })
    }),
  )
})

it('a check.up always follows a check.down, and none follows another', () => {
  fc.assert(
    fc.property(story, (steps) => {
      const { sent, rest } = walk(steps, () => {})
      rest()
      let isOpen = false
      for (const { type } of sent.filter(isChange)) {
        if (type === 'check.up') expect(isOpen).toBe(true)
        isOpen = type === 'check.down'
      }
    }),
  )
})

it('after silence the last word of the recipients is the status, and the check flaps no more', () => {
  fc.assert(
    fc.property(story, (steps) => {
      const { sent, rest } = walk(steps, () => {})
      const { status, notified, changes } = rest()
      expect(notified).toBeNull()
      expect(changes.length).toBeLessThanOrEqual(FLAPPING.changes)
      if (status === 'down') expect(lastChange(sent)).toBe('check.down')
      if (status === 'up') expect(lastChange(sent)).not.toBe('check.down')
    }),
  )
})
