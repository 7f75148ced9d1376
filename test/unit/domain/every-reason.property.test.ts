/**
 * Random stories in which all reasons to be quiet meet: flapping, silences, dependencies, thresholds, pauses,
 * acknowledgements and reminders. What recipients know is counted on paper, from nothing but what they were sent.
 */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CheckSpec, CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import type { Circumstances } from '../../../src/domain/circumstances.ts'
import { FLAPPING } from '../../../src/domain/limits.ts'
import { evaluationOf, newState, transition } from '../../../src/domain/transition.ts'
import { aSpec, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const GRACE = MINUTE
const aSpecOf = (failuresBeforeDown: number) =>
  aSpec({
    schedule: { kind: 'period', periodMs: 20 * MINUTE },
    graceMs: GRACE,
    failuresBeforeDown,
    missesBeforeDown: 2,
    remindEveryMs: 30 * MINUTE,
    remindsOnEachRun: true,
  })
const BY = { kind: 'user', id: 'u', name: 'ada' } as const

const KINDS = ['success', 'fail', 'warn', 'start', 'pause', 'resume', 'acknowledge', 'let go', 'update'] as const
const AROUND = ['silence', 'silence ends', 'other down', 'other up', 'other paused', 'other gone'] as const
type What = (typeof KINDS)[number] | (typeof AROUND)[number] | 'burst'

const step = fc.record({
  afterMs: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 20 * SECOND }) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 25 * MINUTE }) },
  ),
  what: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom<What>('success', 'fail') },
    { weight: 3, arbitrary: fc.constantFrom<What>(...KINDS) },
    { weight: 3, arbitrary: fc.constantFrom<What>(...AROUND) },
    { weight: 1, arbitrary: fc.constant<What>('burst') },
  ),
  forMs: fc.integer({ min: MINUTE, max: 40 * MINUTE }),
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never
const story = fc.record({
  spec: fc.constantFrom(1, 2).map(aSpecOf),
  steps: fc.array(step, { minLength: 10, maxLength: 120 }),
})

/** What those who read the messages know. */
interface Reader {
  /** Null: nothing was sent. */
  word: 'down' | 'up' | 'paused' | null
  /** The number of the last reminder of the incident. */
  reminders: number
  /** When the last messages of changes came. */
  changes: number[]
}

interface Story {
  readonly spec: CheckSpec
  readonly steps: readonly Step[]
}

function walk({ spec, steps }: Story, seen: { types: Set<string>; held: Set<string> }) {
  let now = NOON
  let state: CheckState = newState(now)
  let around: Circumstances = { silence: null, dependencies: [], escalations: [] }
  const reader: Reader = { word: null, reminders: 0, changes: [] }
  /** Whether the check was anything but down since the last message of a change. */
  let wasElse = false
  let wasUp = false

  const read = (type: string, reminder?: number) => {
    seen.types.add(reminder === undefined ? type : 'reminder')
    const isAcknowledged = state.acknowledged !== null && (state.acknowledged.until ?? Infinity) > now
    if (type !== 'check.acknowledged') expect(around.silence, `${type} in a silence`).toBeNull()
    if (reminder !== undefined) {
      expect(reader.word, 'a reminder of what is known').toBe('down')
      expect(isAcknowledged).toBe(false)
      reader.reminders += 1
      expect(reminder).toBe(reader.reminders)
      return
    }
    if (type === 'check.down') {
      expect(reader.word === 'down' && !wasElse, 'down is said twice').toBe(false)
      reader.word = 'down'
      // A pause does not end an incident.
      if (wasUp) reader.reminders = 0
      reader.changes.push(now)
    } else if (type === 'check.up') {
      expect(['down', 'paused']).toContain(reader.word)
      reader.word = 'up'
      reader.changes.push(now)
    } else if (type === 'check.paused') reader.word = 'paused'
    // That it flaps takes no word back.
    if (type === 'check.down' || type === 'check.up' || type === 'check.paused') wasElse = false
    if (type === 'check.down') wasUp = false
  }

  const apply = (event: CheckEvent) => {
    if (around.silence !== null && now >= around.silence.until) around = { ...around, silence: null }
    const outcome = transition(spec, state, event, now, around)
    state = outcome.state
    if (state.status !== 'down') wasElse = true
    if (state.status === 'up') wasUp = true
    const notices = [
      [outcome.settled, outcome.settledHeldBy],
      [outcome.notice, outcome.heldBy],
      [outcome.warned, outcome.warnedHeldBy],
      [outcome.reminder, outcome.reminderHeldBy],
      [outcome.acknowledged, null],
    ] as const
    for (const [notice, held] of notices) {
      if (notice === null) continue
      if (held === null) read(notice.type, notice.reminder)
      else seen.held.add(held.reason)
    }
    const { flip } = outcome
    if (flip?.reason === 'paused' && outcome.silencedBy === null) read('check.paused')
  }
  const complete = (kind: 'success' | 'fail' | 'warn') => apply({ kind, runId: null, durationMs: null })
  const evaluate = () => apply({ kind: 'deadline', gaps: [] })
  const pass = (until: number) => {
    for (let next = evaluationOf(spec, state); next !== null && next <= until; next = evaluationOf(spec, state)) {
      now = Math.max(now, next)
      evaluate()
    }
    now = until
  }
  const other = (status: 'up' | 'down' | 'paused') => {
    const [known] = around.dependencies
    if (known?.status === status) return
    around = { ...around, dependencies: [{ id: 'other', status, since: now, wakeAt: null }] }
  }
  const act = ({ what, forMs }: Step) => {
    if (what === 'silence') around = { ...around, silence: { id: 'night', from: now, until: now + forMs } }
    else if (what === 'silence ends') around = { ...around, silence: null }
    else if (what === 'other down') other('down')
    else if (what === 'other up') other('up')
    else if (what === 'other paused') other('paused')
    else if (what === 'other gone') around = { ...around, dependencies: [] }
    else if (what === 'acknowledge') {
      if (state.status !== 'down') return
      const until = forMs % 2 === 0 ? now + forMs : null
      apply({ kind: 'acknowledge', acknowledged: { by: BY, at: now, until, comment: null } })
    } else if (what === 'let go') {
      if (state.status === 'down') apply({ kind: 'acknowledge', acknowledged: null })
    } else if (what === 'update') apply({ kind: 'update', isSameTiming: true })
    else if (what === 'start') apply({ kind: 'start', runId: null })
    else if (what === 'pause' || what === 'resume') apply({ kind: what })
    else if (what === 'burst') {
      for (let change = 0; change < 2 * FLAPPING.changes; change += 1) {
        now += SECOND
        for (let fail = 0; fail < spec.failuresBeforeDown; fail += 1) complete('fail')
        complete('success')
      }
    } else complete(what)
  }
  for (const one of steps) {
    pass(now + one.afterMs)
    act(one)
    // What wakes a check that is held.
    if (state.hold !== null) evaluate()
  }
  return {
    reader,
    /** Everything around the check ends, the job goes on, and the evaluator looks when it should. */
    rest() {
      around = { silence: null, dependencies: [], escalations: [] }
      const { status } = state
      if (status === 'up') complete('success')
      evaluate()
      const end = now + 2 * FLAPPING.windowMs - SECOND
      pass(Math.min(end, now + 20 * MINUTE + GRACE - SECOND))
      return state
    },
  }
}

it('nothing is swallowed, nothing is said twice, and no incident stays open', () => {
  const seen = { types: new Set<string>(), held: new Set<string>() }
  const ends = new Map<string, number>()
  fc.assert(
    fc.property(story, (one) => {
      const { reader, rest } = walk(one, seen)
      const { status, notified, hold, quietAt, incidentSince } = rest()
      expect({ notified, hold, quietAt }).toEqual({ notified: null, hold: null, quietAt: null })
      if (status === 'down') expect(reader.word).toBe('down')
      if (status === 'up') {
        expect(reader.word).not.toBe('down')
        expect(incidentSince).toBeNull()
      }
      if (status === 'paused') expect(reader.word).not.toBe('down')
      for (const at of reader.changes) {
        const within = reader.changes.filter((one) => one >= at && one < at + FLAPPING.windowMs)
        expect(within.length).toBeLessThanOrEqual(FLAPPING.changes)
      }
      ends.set(status, (ends.get(status) ?? 0) + 1)
    }),
    { numRuns: 3_000 },
  )
  for (const type of ['check.down', 'check.up', 'check.flapping', 'check.warned', 'check.acknowledged', 'reminder'])
    expect(seen.types).toContain(type)
  for (const reason of ['flapping', 'silenced', 'dependency', 'acknowledged']) expect(seen.held).toContain(reason)
  for (const status of ['up', 'down', 'paused']) expect(ends.get(status)).toBeGreaterThan(50)
})
