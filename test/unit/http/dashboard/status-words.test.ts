import { describe, expect, it } from 'vitest'
import { FLIP_REASONS, REASONS_OF, type StatusReason, type StoredStatus } from '../../../../src/domain/check.ts'
import { readJobText } from '../../../../src/http/dashboard/pages/checks/check-pings.ts'
import {
  flappingSentence,
  nextSentence,
  reasonWords,
  type StuckJob,
  shareWords,
  statusSentence,
} from '../../../../src/http/dashboard/words/status-words.ts'
import { clockOf, roughly } from '../../../../src/http/dashboard/words/time-words.ts'
import { aState, DAY, HOUR, MINUTE, NOON, SECOND } from '../../../support/builders.ts'

const clock = clockOf('UTC', NOON)
const facts = { exitCode: null, isManaged: false, followed: null, now: NOON, clock }

describe('the sentence of a status', () => {
  it('says since when, for how long, and why', () => {
    const state = aState({ status: 'down', reason: 'failed', since: NOON - 2 * HOUR, expectedAt: null, dueAt: null })
    expect(statusSentence({ ...facts, state, exitCode: 1 })).toBe(
      'Down since 10:00 UTC (2 hours): the job reported exit code 1',
    )
    expect(statusSentence({ ...facts, state })).toBe('Down since 10:00 UTC (2 hours): the job reported a failure')
  })

  it('counts late from the time when the ping was expected', () => {
    const state = aState({ expectedAt: NOON - 10 * MINUTE, dueAt: NOON + MINUTE })
    expect(statusSentence({ ...facts, state })).toBe(
      'Late since 11:50 UTC (10 minutes): a ping was expected, and the grace time is running',
    )
    expect(nextSentence({ ...facts, state, scheduledAt: null })).toBe(
      'Down at 12:01 UTC (in 1 minute) unless the job reports a success.',
    )
  })

  it('has words for each reason of each status, and for one that is not known', () => {
    const all = Object.entries(REASONS_OF) as [StoredStatus, readonly StatusReason[]][]
    const words = all.flatMap(([status, reasons]) =>
      reasons.map((reason) => reasonWords({ ...facts, state: aState({ status, reason, expectedAt: null }) }, status)),
    )
    expect(new Set(words).size).toBe(FLIP_REASONS.length - 1)
    for (const one of words) expect(one).toMatch(/^[a-z].*[^.]$/)
    expect(reasonWords({ ...facts, state: aState({ reason: null }) }, 'up')).toBe(
      'the reason is no longer in the history',
    )
  })
})

describe('of a check that follows a CronJob', () => {
  const followed = { ...facts, followed: { detail: null, stuck: null } }

  it('the sentence names what keeps its run from starting, or why it failed', () => {
    const state = aState({ status: 'down', reason: 'missed', since: NOON - MINUTE, expectedAt: null, dueAt: null })
    const detail = 'container backup could not start: ImagePullBackOff: no such image'
    expect(statusSentence({ ...facts, state, followed: { detail, stuck: null } })).toBe(
      `Down since 11:59 UTC (1 minute): no run had started by 11:59 UTC: ${detail}`,
    )
    const explain = (status: 'down' | 'paused', reason: StatusReason, text: string) =>
      reasonWords({ ...facts, state: { ...state, status, reason }, followed: { detail: text, stuck: null } }, status)
    const long = 'Job backup-1 has run for longer than 60 s (the default)'
    expect(explain('down', 'overran', long)).toBe(long)
    expect(explain('down', 'failed', 'container backup was OOMKilled')).toBe('container backup was OOMKilled')
    expect(explain('paused', 'paused', 'the CronJob x is suspended')).toBe(
      'the CronJob x is suspended; it sends no notification',
    )
    expect(reasonWords({ ...followed, state: { ...state, reason: 'failed' }, exitCode: 3 }, 'down')).toBe(
      'its Job failed with exit code 3',
    )
  })

  it('no sentence speaks of pings', () => {
    const all = Object.entries(REASONS_OF) as [StoredStatus, readonly StatusReason[]][]
    const words = all.flatMap(([status, reasons]) =>
      reasons.map((reason) =>
        reasonWords({ ...followed, state: aState({ status, reason, expectedAt: null }) }, status),
      ),
    )
    expect(new Set(words).size).toBe(FLIP_REASONS.length - 1)
    for (const one of words) expect(one).toMatch(/^(?!.*ping)[a-z].*[^.]$/)
    expect(reasonWords({ ...followed, state: aState({}) }, 'late')).toBe(
      'a run should have started, and the grace time is running',
    )
  })

  it.each([
    [{}, 'A run should start at 13:00 UTC (in 1 hour). Without one the check is down at 13:05 UTC.'],
    [
      { status: 'paused', expectedAt: null, dueAt: null },
      'No run is expected until it is resumed. If a run that a person starts fails or takes too long, the check is down.',
    ],
    [{ status: 'new', expectedAt: null, dueAt: null }, 'Nothing is expected.'],
    [{ expectedAt: NOON - HOUR, dueAt: NOON - SECOND }, 'Down at 11:59 UTC (now) unless a run starts.'],
  ] as const)('what is expected next: %j', (overrides, words) => {
    expect(nextSentence({ ...followed, state: aState(overrides), scheduledAt: null })).toBe(words)
  })

  it('does not name the next time of the schedule while a Job keeps others from starting', () => {
    const state = aState({ status: 'down', reason: 'overran', expectedAt: null, dueAt: null })
    const say = (stuck: StuckJob | null) =>
      nextSentence({ ...facts, followed: { detail: null, stuck }, state, scheduledAt: NOON + HOUR })
    expect(say(null)).toBe(
      'The next run that succeeds ends this; by its schedule the job runs next at 13:00 UTC (in 1 hour).',
    )
    const rest =
      'Its success ends this, or that of a later run; with concurrencyPolicy Forbid none starts before it has ended.'
    expect(say({ job: 'hang-1', startedAt: NOON - 4 * MINUTE })).toBe(
      `Job hang-1 still runs, since 11:56 UTC (4 minutes). ${rest}`,
    )
    expect(say({ job: 'hang-1', startedAt: null })).toBe(`Job hang-1 still runs. ${rest}`)
  })
})

describe('what is expected next', () => {
  const say = (overrides: Parameters<typeof aState>[0]) =>
    nextSentence({ ...facts, state: aState(overrides), scheduledAt: null })
  const nothing = { expectedAt: null, dueAt: null }

  it.each([
    [{}, 'A success is expected at 13:00 UTC (in 1 hour). Without one the check is down at 13:05 UTC.'],
    [{ status: 'down', ...nothing }, 'The next success ends this.'],
    [{ status: 'paused', ...nothing }, 'Nothing is expected until it is resumed. Pings are kept.'],
    [{ status: 'new', ...nothing }, 'Nothing is expected before the first ping.'],
    [
      { ...nothing, runs: [{ id: null, startedAt: NOON, deadlineAt: NOON + 2 * MINUTE }] },
      'The run should end by 12:02 UTC (in 2 minutes); then the check is down.',
    ],
    [
      { runs: [{ id: null, startedAt: NOON, deadlineAt: NOON + 2 * MINUTE }] },
      'A success is expected at 13:00 UTC (in 1 hour). The run should end by 12:02 UTC (in 2 minutes); then the check is down.',
    ],
    [
      { ...nothing, runs: [{ id: null, startedAt: NOON - HOUR, deadlineAt: NOON - SECOND }] },
      'Down at 11:59 UTC (now) unless the job reports.',
    ],
    [{ expectedAt: NOON - HOUR, dueAt: NOON - SECOND }, 'Down at 11:59 UTC (now) unless the job reports a success.'],
  ] as const)('of %j', (overrides, words) => {
    expect(say(overrides)).toBe(words)
  })

  it('of a check that is down, and when its job runs by its schedule', () => {
    const state = aState({ status: 'down', reason: 'failed', ...nothing })
    expect(nextSentence({ ...facts, state, scheduledAt: NOON + 14 * HOUR })).toBe(
      'The next success ends this; by its schedule the job runs next at 22 Nov, 02:00 UTC (in 14 hours).',
    )
  })

  it('flapping is said only of a check that flaps', () => {
    expect(flappingSentence(aState())).toBeNull()
    expect(flappingSentence(aState({ notified: 'up', quietAt: NOON }))).toContain(
      'more than 10 times within 10 minutes',
    )
  })
})

describe('times and numbers', () => {
  it('a time is as short as it can be, in the zone of the schedule', () => {
    const berlin = clockOf('Europe/Berlin', Date.UTC(2026, 10, 21, 23, 30))
    expect(berlin(Date.UTC(2026, 10, 21, 23, 10))).toBe('00:10 CET')
    expect(berlin(Date.UTC(2026, 10, 21, 22, 50))).toBe('21 Nov, 23:50 CET')
    expect(berlin(Date.UTC(2025, 6, 1))).toBe('1 Jul 2025, 02:00 CEST')
    expect(clockOf('America/New_York', NOON)(NOON)).toMatch(/^07:00 (GMT-5|EST)$/)
  })

  it.each([
    [0, 'less than a minute'],
    [MINUTE - 1, 'less than a minute'],
    [MINUTE, '1 minute'],
    [HOUR - 1, '59 minutes'],
    [HOUR, '1 hour'],
    [DAY - 1, '23 hours'],
    [400 * DAY, '400 days'],
  ])('%i ms is roughly %s', (ms, words) => {
    expect(roughly(ms)).toBe(words)
  })

  it.each([
    [1, '100 %'],
    [0.999_999, '99.99 %'],
    [1 - 1e-12, '99.99 %'],
    [0.57, '57 %'],
    [0.29, '29 %'],
    [0.5, '50 %'],
    [0.123_456, '12.34 %'],
    [0, '0 %'],
  ])('a share of %d is %s', (share, words) => {
    expect(shareWords(share)).toBe(words)
  })
})

describe('the text of a job', () => {
  it('loses the bytes of a character that was cut, and no others', () => {
    const bytes = Buffer.from('ä漢😀 text')
    for (let from = 0; from < bytes.length; from += 1)
      expect(readJobText(bytes.subarray(from), from > 0)).not.toContain('\uFFFD')
    expect(readJobText(bytes, false)).toBe('ä漢😀 text')
  })

  it.each([
    [Buffer.from('nine ASCII\xff', 'latin1'), 'nine ASCII\uFFFD'],
    [Buffer.from('nine ch\xff\xff', 'latin1'), null],
    [Buffer.from('a\0b'), null],
    [Buffer.alloc(0), ''],
    [Buffer.from('\x1b[31mE\x1b[0m'), 'E'],
  ])('%j is %j', (bytes, text) => {
    expect(readJobText(bytes, false)).toBe(text)
  })
})
