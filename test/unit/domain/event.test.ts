/** The facts of events (design, section 5). Which flips are notified is tested in flapping.test.ts. */

import { expect, it } from 'vitest'
import type { Flip } from '../../../src/domain/check.ts'
import {
  type CheckEventType,
  contextOf,
  eventOf,
  lateEvent,
  type Notice,
  noticeEvent,
} from '../../../src/domain/event.ts'
import { toIso } from '../../../src/domain/instant.ts'
import { aSpec, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

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

it('a reminder says how long the check is down until it is sent, whatever it is about', () => {
  const notice: Notice = {
    type: 'check.down',
    reason: 'failed',
    at: NOON,
    from: 'down',
    to: 'down',
    downSince: NOON - HOUR,
    flips: null,
    reminder: 2,
  }
  expect(noticeEvent(notice, detectedAt).data).toMatchObject({
    reason: 'failed',
    occurred_at: toIso(NOON),
    down_for_seconds: 3_660,
    reminder: 2,
  })
})

it('a first success has no event', () => {
  expect(
    eventOf({ from: 'new', to: 'up', reason: 'first_success', at: NOON }, { notice: null, detectedAt, gap: null }),
  ).toBeNull()
})

const daily = aSpec({ schedule: { kind: 'period', periodMs: DAY }, graceMs: HOUR })
const DOWN = { status: 'down', lastSuccessAt: NOON - 4 * DAY, lastOutcome: 'success' } as const
const context = (type: CheckEventType, before: Partial<Parameters<typeof contextOf>[2]> = {}, durationMs = 0) =>
  contextOf(type, daily, { ...DOWN, ...before }, { durationMs, state: { incidentSince: null } }, NOON)

it('what is no recovery has the last success', () => {
  expect(context('check.down')).toEqual({ last_success_at: toIso(NOON - 4 * DAY) })
  expect(context('check.late')).toEqual({ last_success_at: toIso(NOON - 4 * DAY) })
  expect(context('check.down', { lastSuccessAt: null })).toEqual({})
})

it('a recovery has the number of runs that did not come', () => {
  expect(context('check.up')).toEqual({ missed_runs: 3 })
  expect(context('check.up', { lastOutcome: 'warn' })).toEqual({ missed_runs: 3 })
  // The run itself began before what it took: a long one has missed nothing.
  expect(context('check.up', {}, 3 * DAY)).toEqual({})
})

it.each<[string, Partial<Parameters<typeof contextOf>[2]>]>([
  ['after a failure, when the count is not known', { lastOutcome: 'fail' }],
  ['after a pause, in which none was expected', { status: 'new' }],
  ['without a success before', { lastSuccessAt: null, lastOutcome: null }],
])('a recovery has no number %s', (_, before) => {
  expect(context('check.up', before)).toEqual({})
})
