/** The third outcome (design, section 4, "Warnings"): what a warning moves, and which warnings are notified. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COMPLETIONS, type Completion, STATUSES } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { WARN_AGAIN_MS } from '../../../src/domain/limits.ts'
import { newState, transition } from '../../../src/domain/transition.ts'
import { isWarning } from '../../../src/domain/warning.ts'
import { aSpec, aState, HOUR, NOON, SECOND } from '../../support/builders.ts'

const ended = (kind: Completion): CheckEvent => ({ kind, runId: null, durationMs: null })
const LATER = NOON + 2 * HOUR

it('a failure is a warning with one of the exit codes that the check takes for one', () => {
  expect([3, 24].map((code) => isWarning(code, [3, 24]))).toEqual([true, true])
  expect([isWarning(1, [3, 24]), isWarning(null, [3]), isWarning(3, [])]).toEqual([false, false, false])
})

it.each(STATUSES)('of a check that is %s a warning moves what a success moves', (status) => {
  const before = aState({ status, expectedAt: null, dueAt: null, lastOutcome: null })
  const after = (kind: Completion) => {
    const { state, flip } = transition(aSpec(), before, ended(kind), LATER)
    return { ...state, lastOutcome: null, warnedAt: null, repeats: [], flip }
  }
  expect(after('warn')).toEqual(after('success'))
})

it('the outcome of the last completion is kept, and nothing else changes it', () => {
  let state = newState(NOON)
  for (const kind of COMPLETIONS) {
    state = transition(aSpec(), state, ended(kind), LATER).state
    expect(state.lastOutcome).toBe(kind)
  }
  const others: CheckEvent[] = [{ kind: 'start', runId: null }, { kind: 'log' }, { kind: 'pause' }, { kind: 'resume' }]
  for (const event of others) expect(transition(aSpec(), state, event, LATER).state.lastOutcome).toBe('fail')
})

describe('a notified warning', () => {
  it('says what the recipients saw, and is of the time of the completion', () => {
    const { warned, notice } = transition(aSpec(), aState(), ended('warn'), LATER)
    const facts = { at: LATER, from: 'up', to: 'up', downSince: null, flips: null }
    expect({ warned, notice }).toEqual({ warned: { ...facts, type: 'check.warned', reason: 'warned' }, notice: null })
  })

  it('comes beside check.up when it ends down', () => {
    const down = transition(aSpec(), aState(), ended('fail'), LATER).state
    const { warned, notice } = transition(aSpec(), down, ended('warn'), LATER + SECOND)
    expect([notice?.type, warned?.type, warned?.from]).toEqual(['check.up', 'check.warned', 'down'])
  })

  it('comes once in 24 hours while warnings continue: on both sides of the limit', () => {
    const first = transition(aSpec(), aState(), ended('warn'), LATER)
    const soon = transition(aSpec(), first.state, ended('warn'), LATER + WARN_AGAIN_MS - 1)
    const again = transition(aSpec(), soon.state, ended('warn'), LATER + WARN_AGAIN_MS)
    expect([first, soon, again].map(({ warned }) => warned !== null)).toEqual([true, false, true])
  })

  it.each(['success', 'fail'] as const)('comes again after a %s', (kind) => {
    let state = aState()
    const kinds = ['warn', kind, 'warn', 'warn'] as const
    const found = kinds.map((one, place) => {
      const outcome = transition(aSpec(), state, ended(one), LATER + place)
      state = outcome.state
      return outcome.warned?.at ?? null
    })
    expect(found).toEqual([LATER, null, LATER + 2, null])
  })

  it('does not come while the check is paused, and does with the first warning after that', () => {
    const paused = transition(aSpec(), aState(), { kind: 'pause' }, NOON).state
    const silent = transition(aSpec(), paused, ended('warn'), NOON + SECOND)
    const resumed = transition(aSpec(), silent.state, { kind: 'resume' }, LATER).state
    const first = transition(aSpec(), resumed, ended('warn'), LATER + SECOND)
    expect([silent.warned, first.warned?.type]).toEqual([null, 'check.warned'])
  })

  it('of a late ping has the time of its arrival, and a ping that something newer overtook has none', () => {
    const late = (arrivedAt: number) => ({ kind: 'warn', runId: null, durationMs: null, arrivedAt }) as const
    expect(transition(aSpec(), aState(), late(NOON + 5), LATER).warned?.at).toBe(NOON + 5)
    const { state, warned } = transition(aSpec(), aState(), late(NOON - 5), LATER)
    expect([state.lastOutcome, warned]).toEqual(['success', null])
  })
})

it('whatever comes in whatever order, the warnings are notified that the rule says', () => {
  const step = fc.record({
    kind: fc.constantFrom<Completion | 'pause' | 'resume'>(...COMPLETIONS, 'warn', 'warn', 'pause', 'resume'),
    afterMs: fc.constantFrom(1, HOUR, WARN_AGAIN_MS - 1, WARN_AGAIN_MS),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let state = newState(NOON)
      let now = NOON
      const notified: number[] = []
      /** What the rule says: the warnings since the last other completion, of which one was notified at `lastNotified`. */
      const due: number[] = []
      let lastNotified: number | null = null
      let isPaused = false
      for (const { kind, afterMs } of steps) {
        now += afterMs
        const isCompletion = kind !== 'pause' && kind !== 'resume'
        const { state: next, warned } = transition(aSpec(), state, isCompletion ? ended(kind) : { kind }, now)
        if (warned !== null) notified.push(warned.at)
        state = next
        if (kind === 'pause') isPaused = true
        else if (kind === 'resume') isPaused = false
        else if (kind !== 'warn') lastNotified = null
        else if (!isPaused && (lastNotified === null || now - lastNotified >= WARN_AGAIN_MS)) {
          due.push(now)
          lastNotified = now
        }
      }
      expect(notified).toEqual(due)
    }),
  )
})
