/** Random stories of a check with channels that are notified later: what each of them knows, by a count on paper. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { acknowledgementAt } from '../../../src/domain/check.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { createStory, type Did, type Got } from './escalation-story.ts'

const AFTERS = [0, 10 * MINUTE, 30 * MINUTE, HOUR]

const STEPS = ['acknowledge', 'acknowledge for a time', 'unacknowledge', 'silence', 'end', 'away'] as const
const story = fc.array(
  fc.record({
    ms: fc.oneof(fc.integer({ min: 0, max: 90 * MINUTE }), fc.constantFrom(0, 10 * MINUTE, 30 * MINUTE)),
    step: fc.oneof(
      { weight: 5, arbitrary: fc.constantFrom<Did>('success', 'fail', 'fail', 'warn', 'pause', 'resume') },
      { weight: 4, arbitrary: fc.constantFrom(...STEPS) },
    ),
  }),
  { minLength: 5, maxLength: 50 },
)
type Story = ReturnType<typeof createStory>

const isSent = ({ notSent }: Got) => notSent === null
/** Whether a channel knows the check as down. */
function knowsDown(all: readonly Got[]): boolean {
  const last = all.filter((one) => isSent(one) && ['check.down', 'check.up'].includes(one.type)).at(-1)
  return last?.type === 'check.down'
}

function walk(steps: readonly (typeof story extends fc.Arbitrary<readonly (infer Step)[]> ? Step : never)[]) {
  const walked = createStory(AFTERS)
  for (const { ms, step } of steps) {
    walked.pass(ms, step === 'away')
    const isDown = walked.state().status === 'down'
    if (step === 'acknowledge' && isDown) walked.acknowledge(null)
    else if (step === 'acknowledge for a time' && isDown) walked.acknowledge(20 * MINUTE)
    else if (step === 'unacknowledge' && isDown) walked.unacknowledge()
    else if (step === 'silence') walked.silence(HOUR)
    else if (step === 'end') {
      walked.silence(null)
      // A check that is held is woken; one that is not is looked at within a minute.
      walked.evaluate()
      walked.pass(MINUTE)
    } else if (['success', 'fail', 'warn', 'pause', 'resume'].includes(step)) walked.do(step as Did)
    walked.pass(0)
    expectNotified(walked)
  }
  return walked
}

/** Of an incident that nothing holds back each channel knows whose time has passed. */
function expectNotified(walked: Story): void {
  const { status, since, incidentSince, notified } = walked.state()
  if (status !== 'down' || incidentSince === null || notified !== null || walked.isSilenced()) return
  if (acknowledgementAt(walked.state(), walked.now()) !== null) return
  // After a pause the time counts anew.
  for (const after of AFTERS)
    if (Math.max(incidentSince, since) + after <= walked.now())
      expect([after, knowsDown(walked.got(after))]).toEqual([after, true])
}

it('each channel whose time has passed knows an incident that is in no hand and in no silence', () => {
  fc.assert(
    fc.property(story, (steps) => void walk(steps)),
    { numRuns: 1_000 },
  )
})

it('a channel is notified of a recovery only if it knows the check as down, and of none twice', () => {
  const counts = { escalated: 0, up: 0, withheld: 0 }
  fc.assert(
    fc.property(story, (steps) => {
      const walked = walk(steps)
      for (const after of AFTERS) {
        const before: Got[] = []
        for (const one of walked.got(after)) {
          if (isSent(one) && one.type === 'check.up') expect(knowsDown(before)).toBe(true)
          if (one.notSent === 'escalation') expect(knowsDown(before)).toBe(false)
          if (one.isEscalated) expect(knowsDown(before)).toBe(false)
          if (after > 0 && isSent(one) && one.type === 'check.down' && !knowsDown(before))
            expect(one.isEscalated).toBe(true)
          before.push(one)
        }
      }
      const its = walked.got(HOUR)
      counts.escalated += its.filter((one) => one.isEscalated).length
      counts.up += its.filter((one) => isSent(one) && one.type === 'check.up').length
      counts.withheld += its.filter((one) => one.notSent === 'escalation' && one.type === 'check.up').length
    }),
    { numRuns: 1_000 },
  )
  for (const count of Object.values(counts)) expect(count).toBeGreaterThan(50)
})

it('each recovery that the first channel is sent is sent to the others, or is one row that says why not', () => {
  const ends = (all: readonly Got[]) =>
    all.filter(({ type, notSent }) => type === 'check.up' && (notSent === null || notSent === 'escalation'))
  fc.assert(
    fc.property(story, (steps) => {
      const walked = walk(steps)
      const expected = ends(walked.got(0)).map(({ at }) => at)
      for (const after of AFTERS) expect(ends(walked.got(after)).map(({ at }) => at)).toEqual(expected)
    }),
    { numRuns: 1_000 },
  )
})
