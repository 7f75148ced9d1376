/** Counts below a threshold, reminders and pauses in words. */

import { describe, expect, it } from 'vitest'
import { NO_SPEC } from '../../../../src/checks/read-spec.ts'
import type { CheckState, Pause } from '../../../../src/domain/check.ts'
import {
  countSentence,
  countWords,
  reminderSentence,
  reminderWords,
  thresholdWords,
} from '../../../../src/http/dashboard/words/incident-words.ts'
import {
  flipBadge,
  flipWords,
  nextSentence,
  rowWords,
  statusSentence,
} from '../../../../src/http/dashboard/words/status-words.ts'
import { clockOf } from '../../../../src/http/dashboard/words/time-words.ts'
import { aState, DAY, HOUR, MINUTE, NOON } from '../../../support/builders.ts'
import { readText } from '../../../support/form.ts'

const clock = clockOf('UTC', NOON)
const aSpec = (given: object = {}) => ({ ...NO_SPEC, dialect: null, ...given })

describe('what is counted', () => {
  const spec = aSpec({ failuresBeforeDown: 3, missesBeforeDown: 2 })
  const words = (given: Partial<CheckState>) => countWords({ spec, state: aState(given) })

  it('is said as long as the check is not down', () => {
    expect(words({})).toBeNull()
    expect(words({ consecutiveFailures: 2 })).toBe('2 of 3 failures')
    expect(words({ consecutiveMisses: 1 })).toBe('1 of 2 misses')
    expect(words({ status: 'new', consecutiveFailures: 1, consecutiveMisses: 1 })).toBe(
      '1 of 3 failures and 1 of 2 misses',
    )
    for (const status of ['down', 'paused'] as const) expect(words({ status, consecutiveFailures: 2 })).toBeNull()
    const state = aState({ consecutiveFailures: 2 })
    expect(countSentence({ spec, state })).toBe('2 of 3 failures in a row: the check is not down yet.')
    expect(countSentence({ spec, state: aState() })).toBeNull()
  })

  it.each([
    [1, 1, null],
    [3, 1, '3 failures or one miss in a row'],
    [1, 2, 'one failure or 2 misses in a row'],
  ])('takes the check down: %i, %i', (failuresBeforeDown, missesBeforeDown, expected) => {
    expect(thresholdWords(aSpec({ failuresBeforeDown, missesBeforeDown }))).toBe(expected)
  })

  it('is in the history as no change of status', () => {
    const missed = { reason: 'missed', from: 'up', to: 'up' } as const
    expect(flipWords(missed, false)).toBe('no ping came in time; it was counted, and the check is not down yet')
    expect(flipWords({ ...missed, from: 'down', to: 'down' }, true)).toBe(
      'no run started in time, while the check was down',
    )
    expect(flipWords({ ...missed, to: 'down' }, false)).toBe('no ping came in time')
    expect(flipWords({ reason: 'outage', from: 'up', to: 'up' }, false)).toMatch(/could take no pings/)
    const badgeOf = (flip: Parameters<typeof flipBadge>[0]) => readText(`${flipBadge(flip)}`).trim()
    expect(badgeOf(missed)).toBe('Missed')
    expect(badgeOf({ ...missed, reason: 'overran' })).toBe('Took too long')
    expect(badgeOf({ ...missed, to: 'down' })).toBe('Down')
    expect(badgeOf({ ...missed, reason: 'outage' })).toBe('Not known')
  })
})

describe('reminders', () => {
  it.each([
    [null, false, null],
    [86_400, false, 'every day'],
    [null, true, 'at each further run'],
    [5_400, true, 'every 1 hour 30 minutes and at each further run'],
  ])('every %s seconds, at each run: %s', (remindEverySeconds, remindOnEachRun, words) => {
    expect(reminderWords(aSpec({ remindEverySeconds, remindOnEachRun }))).toBe(words)
  })

  const down = {
    status: 'down',
    reason: 'failed',
    since: NOON - DAY,
    incidentSince: NOON - DAY,
    downNotifiedAt: NOON - HOUR,
  } as const
  const say = (given: Partial<CheckState>, remindEverySeconds: number | null = 7_200) =>
    reminderSentence({ spec: aSpec({ remindEverySeconds }), state: aState(given) }, { now: NOON, clock })

  it('say how many were sent, and when the next one is due', () => {
    expect(say(down)).toBe('The next reminder is due at 13:00 UTC (in 1 hour).')
    expect(say({ ...down, reminders: 1 })).toBe(
      'One reminder was sent. The next reminder is due at 13:00 UTC (in 1 hour).',
    )
    expect(say({ ...down, reminders: 2 }, null)).toBe('2 reminders were sent.')
    expect(say(down, null)).toBeNull()
    expect(say({})).toBeNull()
  })

  it('are not due while the incident is acknowledged', () => {
    const by = { kind: 'user', id: null, name: 'ada@example.com' } as const
    const acknowledged = { by, at: NOON - MINUTE, until: null, comment: null }
    expect(say({ ...down, acknowledged })).toBeNull()
  })
})

describe('a pause', () => {
  const user = { kind: 'user', id: 'u', name: 'ada@example.com' } as const
  const aPause = (given: Partial<Pause> = {}): Pause => ({ by: user, until: null, comment: null, ...given })
  const paused = (pause: Pause | null) =>
    aState({ status: 'paused', reason: 'paused', since: NOON - HOUR, expectedAt: null, dueAt: null, pause })
  const facts = { exitCode: null, isManaged: false, followed: null, now: NOON, clock }
  const why = (pause: Pause | null) => statusSentence({ ...facts, state: paused(pause) })

  it.each([
    [null, 'it was paused, and sends no notification'],
    [aPause(), 'it was paused by ada@example.com, and sends no notification'],
    [
      aPause({ until: NOON + HOUR, comment: 'New disks' }),
      'it was paused by ada@example.com until 13:00 UTC, and sends no notification: New disks',
    ],
    [
      aPause({ by: { kind: 'api_key', id: 'k', name: 'deploy' } }),
      'it was paused by the API key deploy, and sends no notification',
    ],
    [
      aPause({ by: { kind: 'kubernetes', id: null, name: 'c' } }),
      'it was paused by its HeartbeatCheck, and sends no notification',
    ],
    [aPause({ by: { kind: 'link', id: null, name: null } }), 'it was paused by a person, and sends no notification'],
  ])('says by whom, until when and why: %j', (pause, words) => {
    expect(why(pause)).toBe(`Paused since 11:00 UTC (1 hour): ${words}`)
  })

  it('of a check that follows a CronJob is its suspension, unless it has an end', () => {
    const followed = { ...facts, followed: { detail: null, stuck: null } }
    const until = aPause({ by: { kind: 'kubernetes', id: null, name: 'c' }, until: NOON + HOUR })
    expect(statusSentence({ ...followed, state: paused(until) })).toContain(
      'paused by its HeartbeatCheck until 13:00 UTC',
    )
    expect(statusSentence({ ...followed, state: paused(aPause()) })).toContain(
      'its CronJob is suspended or does not exist',
    )
    expect(nextSentence({ ...followed, state: paused(until), scheduledAt: null })).toBe(
      'It resumes by itself at 13:00 UTC (in 1 hour). Until then its runs are recorded, and alert no one.',
    )
  })

  it('says when it ends, in a sentence and in a row', () => {
    const state = paused(aPause({ until: NOON + HOUR, comment: 'a\nb' }))
    expect(nextSentence({ ...facts, state, scheduledAt: null })).toBe(
      'It resumes by itself at 13:00 UTC (in 1 hour). Until then nothing is expected, and pings are kept.',
    )
    const row = (pause: Pause | null) =>
      readText(`${rowWords({ state: paused(pause), spec: aSpec() }, 'paused', NOON)}`)
    expect(row(state.pause)).toMatch(/^paused 1 hour ago , resumes in 1 hour : a b$/)
    expect(row(aPause())).toMatch(/^paused 1 hour ago ?$/)
    expect(row(null)).toMatch(/^paused 1 hour ago ?$/)
  })
})
