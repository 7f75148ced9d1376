import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CheckSpec, CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { LIMITS } from '../../../src/domain/limits.ts'
import { deadlineOf, newState, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aSpec, DAY, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const SPECS: CheckSpec[] = [
  aSpec(),
  aSpec({ graceMs: 0, schedule: { kind: 'period', periodMs: 10 * SECOND } }),
  aSpec({ maxRuntimeMs: 5 * MINUTE }),
  aCronSpec('*/5 * * * *', { maxRuntimeMs: MINUTE }),
  aCronSpec('30 2 * * *', {}, 'Europe/Berlin'),
]

const runId = fc.constantFrom(null, 'a', 'b', 'c')
const gap = fc.record({ before: fc.integer({ min: 0, max: DAY }), lengthMs: fc.integer({ min: 5 * SECOND, max: DAY }) })
/** Of each kind of event one: `satisfies` misses a new kind. */
const KINDS = Object.keys({
  ...{ success: 1, warn: 1, fail: 1, start: 1, log: 1, abandon: 1, deadline: 1, pause: 1, resume: 1 },
  ...{ update: 1, arm: 1, disarm: 1, revive: 1, restore: 1, acknowledge: 1 },
} satisfies Record<CheckEvent['kind'], 1>) as CheckEvent['kind'][]
type Step = {
  afterMs: number
  kind: CheckEvent['kind']
  runId: string | null
  spec: number
  gaps: { before: number; lengthMs: number }[]
}
const step: fc.Arbitrary<Step> = fc.record({
  afterMs: fc.oneof(fc.integer({ min: 0, max: 2 * MINUTE }), fc.integer({ min: 0, max: 2 * DAY })),
  kind: fc.constantFrom(...KINDS),
  runId,
  spec: fc.nat(SPECS.length - 1),
  gaps: fc.array(gap, { maxLength: 2 }),
})

function toEvent(kind: CheckEvent['kind'], { runId, gaps }: Step, now: number): CheckEvent {
  if (kind === 'success' || kind === 'warn' || kind === 'fail') return { kind, runId, durationMs: null }
  if (kind === 'start') return { kind, runId }
  if (kind === 'abandon') return { kind, runId: runId ?? '', at: null }
  if (kind === 'acknowledge') return { kind, acknowledged: null }
  if (kind === 'restore') return { kind, reason: 'failed' }
  if (kind === 'revive') return { kind, kept: newState(now) }
  if (kind !== 'deadline') return { kind }
  return {
    kind,
    gaps: gaps.map(({ before, lengthMs }) => ({ startedAt: now - before - lengthMs, endedAt: now - before })),
  }
}

/** Walks a story; `look` sees every step. */
function walk(
  isArmed: boolean,
  first: number,
  steps: readonly Step[],
  look: (before: CheckState, event: CheckEvent, now: number, outcome: ReturnType<typeof transition>) => void,
): CheckState {
  let now = NOON
  let spec = SPECS[first]!
  let state = newState(now)
  if (isArmed) state = transition(spec, state, { kind: 'arm' }, now).state
  for (const one of steps) {
    now += one.afterMs
    if (one.kind === 'update') spec = SPECS[one.spec]!
    const event = toEvent(one.kind, one, now)
    const outcome = transition(spec, state, event, now)
    look(state, event, now, outcome)
    state = outcome.state
  }
  return state
}

const story = [fc.boolean(), fc.nat(SPECS.length - 1), fc.array(step, { maxLength: 40 })] as const

it('a flip always changes the status, and only a flip does', () => {
  fc.assert(
    fc.property(...story, (armed, first, steps) => {
      walk(armed, first, steps, (before, _event, _now, { state, flip }) => {
        expect(flip === null).toBe(state.status === before.status)
        if (flip !== null) expect([flip.from, flip.to]).toEqual([before.status, state.status])
      })
    }),
  )
})

it('nothing is expected of a check that is down or paused, and expected and due come together', () => {
  fc.assert(
    fc.property(...story, (armed, first, steps) => {
      walk(armed, first, steps, (_before, _event, _now, { state }) => {
        expect(state.expectedAt === null).toBe(state.dueAt === null)
        if (state.expectedAt !== null) expect(state.dueAt!).toBeGreaterThanOrEqual(state.expectedAt)
        if (state.status === 'down' || state.status === 'paused')
          expect([state.expectedAt, deadlineOf(state)]).toEqual([null, null])
      })
    }),
  )
})

it('an up check always waits for something, so that a dead job is found', () => {
  fc.assert(
    fc.property(...story, (armed, first, steps) => {
      walk(armed, first, steps, (_before, _event, _now, { state }) => {
        if (state.status === 'up') expect(deadlineOf(state)).not.toBeNull()
      })
    }),
  )
})

it('only a deadline at or before now takes a silent check down', () => {
  fc.assert(
    fc.property(...story, (armed, first, steps) => {
      walk(armed, first, steps, (before, event, now, { flip }) => {
        if (event.kind === 'deadline' && flip !== null) {
          expect(flip.at).toBeLessThanOrEqual(now)
          expect(flip.at).toBeGreaterThanOrEqual(deadlineOf(before)!)
        }
      })
    }),
  )
})

it('the same event at the same moment again flips nothing', () => {
  fc.assert(
    fc.property(...story, fc.nat(SPECS.length - 1), (armed, first, steps, again) => {
      const spec = SPECS[again]!
      const end = NOON + 1_000 * DAY
      const state = walk(armed, first, steps, () => {})
      for (const kind of KINDS) {
        const event = toEvent(kind, { afterMs: 0, kind, runId: null, spec: 0, gaps: [] }, end)
        const once = transition(spec, state, event, end).state
        const twice = transition(spec, once, event, end)
        expect(twice.flip).toBeNull()
        expect(twice.state.status).toBe(once.status)
      }
    }),
  )
})

it('runs never outgrow their limit', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_000 }), { minLength: 150, maxLength: 300 }), (ids) => {
      let state = newState(NOON)
      ids.forEach((id, index) => {
        state = transition(SPECS[0]!, state, { kind: 'start', runId: String(id) }, NOON + index).state
      })
      expect(state.runs.length).toBeLessThanOrEqual(LIMITS.openRuns)
    }),
    { numRuns: 20 },
  )
})
