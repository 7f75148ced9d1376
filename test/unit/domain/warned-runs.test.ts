/** Warnings of Jobs, and of their containers (design, section 4, "Warnings"). */

import { describe, expect, it } from 'vitest'
import type { CheckState, Completion } from '../../../src/domain/check.ts'
import type { CheckEvent, JobEnd } from '../../../src/domain/check-event.ts'
import { WARN_AGAIN_MS } from '../../../src/domain/limits.ts'
import { newState, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aState, DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'

/** Each hour, five minutes to start, two hours to run. */
const SPEC = aCronSpec('0 * * * *', { maxRuntimeMs: 2 * HOUR, awaits: 'start' })
const LATER = NOON + DAY
const at = (hours: number, minutes = 0) => NOON + hours * HOUR + minutes * MINUTE
const CREATED = NOON - DAY

const start = (runId: string, slotAt: number): CheckEvent => ({
  kind: 'start',
  runId,
  job: { at: slotAt, slotAt, createdAt: CREATED },
})
const end = (kind: Completion, runId: string, time: number, job: Partial<JobEnd> = {}): CheckEvent => ({
  kind,
  runId,
  durationMs: null,
  job: { at: time, createdAt: CREATED, ...job },
})
/** Of the container, without the id of its Job. */
const ping = (kind: Completion): CheckEvent => ({ kind, runId: null, durationMs: null })

function apply(state: CheckState, events: readonly CheckEvent[], now = LATER) {
  const [first, ...others] = events
  return others.reduce((last, event) => transition(SPEC, last.state, event, now), transition(SPEC, state, first!, now))
}

const UP = aState({ expectedAt: at(1), dueAt: at(1, 5) })
const NEW = { ...newState(NOON), expectedAt: at(1), dueAt: at(1, 5) }
const DOWN = aState({ status: 'down', reason: 'missed', since: at(1, 5), expectedAt: null, dueAt: null })
const PAUSED = aState({ status: 'paused', reason: 'paused', since: at(1), expectedAt: null, dueAt: null })

describe('a Job that ends with a warning', () => {
  it.each([
    ['up', UP],
    ['new', NEW],
    ['down', DOWN],
    ['paused', PAUSED],
  ])('moves what a success moves, of a check that is %s', (_, before) => {
    const ended = (kind: Completion) => {
      const { state, flip, durationMs } = apply(before, [start('a', at(2)), end(kind, 'a', at(2, 10))])
      return { ...state, lastOutcome: null, warnedAt: null, repeats: [], flip, durationMs }
    }
    expect(ended('warn')).toEqual(ended('success'))
  })

  it('is notified with the time of the Job, and again 24 hours later by these times', () => {
    const first = apply(UP, [start('a', at(1)), end('warn', 'a', at(1, 10))])
    expect(first.warned).toMatchObject({ type: 'check.warned', at: at(1, 10), from: 'up', to: 'up' })
    const ago = (ms: number) => apply(first.state, [end('warn', 'b', at(1, 10) + ms)], LATER + DAY).warned
    expect([ago(WARN_AGAIN_MS - 1), ago(WARN_AGAIN_MS)?.at]).toEqual([null, at(1, 10) + WARN_AGAIN_MS])
  })

  it('that was recorded ahead of the clock has the time at which it was recorded', () => {
    expect(apply(UP, [end('warn', 'a', LATER + HOUR)]).warned?.at).toBe(LATER)
  })

  it('and is earlier than the last completion changes neither its outcome nor what is notified', () => {
    const { state, warned } = apply({ ...UP, lastPingAt: at(3) }, [end('warn', 'a', at(2))])
    expect([state.lastOutcome, state.warnedAt, warned]).toEqual(['success', null, null])
  })

  it('before the check turns it up without a notification, and the next warning is notified', () => {
    const past = apply(NEW, [end('warn', 'a', NOON - MINUTE, { createdAt: NOON })])
    expect(past.state).toMatchObject({ status: 'up', lastOutcome: 'warn', warnedAt: null })
    expect(past.warned).toBeNull()
    const next = apply(past.state, [end('warn', 'b', at(1), { createdAt: NOON })])
    expect(next.warned).toMatchObject({ at: at(1) })
  })
})

describe('a container that has reported', () => {
  const running = apply(UP, [start('a', at(1))], at(1)).state
  /** What the Job's own end then is. */
  const endsAs = (kind: Completion, own: Completion) => {
    const reported = transition(SPEC, running, ping(kind), at(1, 5)).state
    const { state, isLogged, warned } = apply(reported, [end(own, 'a', at(1, 10))])
    return [state.status, state.lastOutcome, isLogged, warned?.type ?? null]
  }

  it('a warning is not overridden by a success or a warning of its Job, and is by its failure', () => {
    expect(endsAs('warn', 'success')).toEqual(['up', 'warn', true, null])
    expect(endsAs('warn', 'warn')).toEqual(['up', 'warn', true, null])
    expect(endsAs('warn', 'fail')).toEqual(['down', 'fail', false, null])
  })

  it('a fail is not overridden by a warning of its Job', () => {
    expect(endsAs('fail', 'warn')).toEqual(['down', 'fail', true, null])
  })

  it('a success is overridden by a warning of its Job', () => {
    expect(endsAs('success', 'warn')).toEqual(['up', 'warn', false, 'check.warned'])
  })

  it('a warning, then a success, leaves the end to its Job', () => {
    const both = [ping('warn'), ping('success')]
    const { state } = apply(running, both, at(1, 5))
    expect(apply(state, [end('success', 'a', at(1, 10))]).isLogged).toBe(false)
  })
})
