/** Random stories of a check under silences and dependencies: what its recipients know in the end, by a count on paper. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import type { Circumstances, Dependency } from '../../../src/domain/circumstances.ts'
import { evaluationOf, newState, transition } from '../../../src/domain/transition.ts'
import { aSpec, HOUR, MINUTE, NOON } from '../../support/builders.ts'

/** Nothing is missed, so that the steps alone decide; and at most two changes in ten minutes, so that it never flaps. */
const GRACE = 5 * MINUTE
const SPEC = aSpec({ schedule: { kind: 'period', periodMs: 1_000 * HOUR }, graceMs: GRACE })
const STEP = 6 * MINUTE

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('success', 'fail', 'warn', 'pause', 'resume') },
    {
      weight: 4,
      arbitrary: fc.constantFrom('silence', 'end', 'shorten', 'other down', 'other up', 'other gone', 'tag'),
    },
    { weight: 2, arbitrary: fc.constant('wait') },
  ),
  { minLength: 5, maxLength: 60 },
)

interface Sent {
  readonly type: string
  readonly at: number
}

/** Walks a story, with an evaluation whenever one is due, and after each change of what is around the check. */
function walk(story: readonly string[]) {
  let now = NOON
  let state: CheckState = newState(now)
  let silence = null as Circumstances['silence']
  let other = null as Dependency | null
  const sent: Sent[] = []
  const withheld: string[] = []
  const apply = (event: CheckEvent) => {
    if (silence !== null && now >= silence.until) silence = null
    const around = { silence, dependencies: other === null ? [] : [other], escalations: [] }
    const outcome = transition(SPEC, state, event, now, around)
    state = outcome.state
    const notices = [
      [outcome.settled, outcome.settledHeldBy],
      [outcome.notice, outcome.heldBy],
      [outcome.warned, outcome.warnedHeldBy],
    ] as const
    for (const [notice, held] of notices) {
      if (notice !== null && held === null) {
        expect(silence).toBeNull()
        sent.push({ type: notice.type, at: now })
      }
      if (notice !== null && held !== null) withheld.push(`${notice.type} ${held.reason}`)
    }
    if (outcome.flip?.reason === 'paused' && outcome.silencedBy === null) sent.push({ type: 'check.paused', at: now })
  }
  const evaluate = () => apply({ kind: 'deadline', gaps: [] })
  const pass = (until: number) => {
    for (let next = evaluationOf(SPEC, state); next !== null && next <= until; next = evaluationOf(SPEC, state)) {
      now = Math.max(now, next)
      evaluate()
    }
    now = until
  }
  for (const step of story) {
    pass(now + STEP)
    if (step === 'silence') silence = { id: 's', from: now, until: now + 4 * STEP + 1 }
    else if (step === 'end') silence = null
    else if (step === 'shorten' && silence !== null) silence = { ...silence, until: now + 1 }
    else if (step === 'other down') other = { id: 'o', status: 'down', since: now, wakeAt: null }
    else if (step === 'other up' && other !== null) other = { ...other, status: 'up', since: now }
    else if (step === 'other gone') other = null
    else if (step === 'tag') apply({ kind: 'update', isSameTiming: true })
    else if (step === 'success' || step === 'fail' || step === 'warn')
      apply({ kind: step, runId: null, durationMs: null })
    else if (step === 'pause' || step === 'resume') apply({ kind: step })
    if (state.hold !== null) evaluate()
    const isFree = silence === null && (other === null || (other.status === 'up' && now >= other.since + GRACE))
    if (isFree) expectKnown(state, sent)
  }
  const end = () => {
    silence = null
    if (other !== null) other = null
    evaluate()
    pass(now + 3 * STEP)
    return state
  }
  return { sent, withheld, end }
}

const INCIDENT = ['check.down', 'check.up', 'check.paused']
const last = (sent: readonly Sent[]) => sent.filter(({ type }) => INCIDENT.includes(type)).at(-1)?.type ?? null

/** The recipients know the status of a check that nothing keeps quiet. */
function expectKnown({ status, hold, notified, incidentSince }: CheckState, sent: readonly Sent[]): void {
  expect({ hold, notified }).toEqual({ hold: null, notified: null })
  if (status === 'down') expect(last(sent)).toBe('check.down')
  else if (status !== 'new') expect(last(sent)).not.toBe('check.down')
  if (status === 'up') expect(incidentSince).toBeNull()
}

it('when no reason holds, the last word of the recipients is the status', () => {
  const counts = { down: 0, up: 0, withheld: 0 }
  fc.assert(
    fc.property(steps, (story) => {
      const { sent, withheld, end } = walk(story)
      const state = end()
      const { status } = state
      expectKnown(state, sent)
      if (status === 'down') counts.down += 1
      if (status === 'up') counts.up += 1
      counts.withheld += withheld.length
    }),
    { numRuns: 2_000 },
  )
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(100)
})

it('a recovery is sent only after a failure was, and never twice', () => {
  fc.assert(
    fc.property(steps, (story) => {
      const { sent, end } = walk(story)
      end()
      let isOpen = false
      for (const { type } of sent) {
        if (type === 'check.up') expect(isOpen).toBe(true)
        if (type === 'check.down') isOpen = true
        if (type === 'check.up') isOpen = false
      }
    }),
    { numRuns: 2_000 },
  )
})

it('no failure is sent twice without a recovery, a pause or a silence between', () => {
  fc.assert(
    fc.property(
      steps.filter((story) => !story.includes('silence')),
      (story) => {
        const { sent, end } = walk(story)
        end()
        const types = sent.filter(({ type }) => INCIDENT.includes(type)).map(({ type }) => type)
        for (const [index, type] of types.entries())
          if (type === 'check.down' && index > 0) expect(types[index - 1]).not.toBe('check.down')
      },
    ),
  )
})
