/** The facts of events (design, section 5). Which flips are notified is tested in flapping.test.ts. */

import { expect, it } from 'vitest'
import type { Flip } from '../../../src/domain/check.ts'
import { eventOf, lateEvent, type Notice } from '../../../src/domain/event.ts'
import { toIso } from '../../../src/domain/instant.ts'
import { MINUTE, NOON, SECOND } from '../../support/builders.ts'

const detectedAt = NOON + MINUTE
const facts = {
  occurred_at: toIso(NOON),
  detected_at: toIso(detectedAt),
  down_for_seconds: null,
  flips: null,
  gap: null,
}

it('an overdue job is late, and was up', () => {
  expect(lateEvent(NOON, detectedAt)).toEqual({
    type: 'check.late',
    data: { ...facts, reason: 'late', status: 'late', previous_status: 'up' },
  })
})

it('an interval that our own downtime hid has the gap', () => {
  const flip: Flip = { from: 'up', to: 'up', reason: 'outage', at: NOON }
  const gap = { startedAt: NOON - MINUTE, endedAt: NOON }
  expect(eventOf(flip, { notice: null, detectedAt, gap })).toEqual({
    type: 'check.unknown',
    data: {
      ...facts,
      reason: 'outage',
      status: 'up',
      previous_status: 'up',
      gap: { started_at: toIso(gap.startedAt), ended_at: toIso(NOON) },
    },
  })
})

it.each([
  [90 * SECOND + 499, 90],
  [90 * SECOND + 500, 91],
  [-MINUTE, 0],
])('a recovery says for how long the check was down: %i ms are %i s', (downMs, seconds) => {
  const flip: Flip = { from: 'down', to: 'up', reason: 'recovered', at: NOON }
  const notice: Notice = { ...flip, type: 'check.up', downSince: NOON - downMs, flips: null }
  const event = eventOf(flip, { notice, detectedAt, gap: null })
  expect(event).toMatchObject({ type: 'check.up', data: { ...facts, status: 'up', down_for_seconds: seconds } })
})

it('a first success has no event', () => {
  expect(
    eventOf({ from: 'new', to: 'up', reason: 'first_success', at: NOON }, { notice: null, detectedAt, gap: null }),
  ).toBeNull()
})
