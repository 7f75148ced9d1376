import { describe, expect, it } from 'vitest'
import { describeEvent, formatDuration } from '../../../src/channels/kinds/event-text.ts'
import type { Event } from '../../../src/domain/event.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'

const OF_CRON_JOB = {
  cluster: 'default',
  namespace: 'shop',
  name: 'backup',
  source: { kind: 'CronJob', name: 'nightly' },
}
const OF_JOB = { ...OF_CRON_JOB, run: 'nightly-29384620' }
const KILLED = 'container backup was OOMKilled (exit code 137)'

const headline = (event: Event) => describeEvent(event).headline
const locate = (event: Event) => describeEvent(event).location
const findOutput = (event: Event) => describeEvent(event).output

describe('the text of an event', () => {
  const cases: [string, Event, string, string][] = [
    [
      'a missed ping',
      aFlipEvent(),
      'Nightly backup is down',
      'No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a failure with an exit code',
      aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing() }),
      'Nightly backup is down',
      'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a failure without one',
      aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing({ exit_code: null }) }),
      'Nightly backup is down',
      'The job reported a failure at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a run that takes too long',
      aFlipEvent({ facts: { reason: 'overran' }, lastPing: aLastPing({ type: 'start', exit_code: null }) }),
      'Nightly backup is down',
      'The run took longer than allowed: it should have ended by 2026-11-21 03:00:00 UTC',
    ],
    [
      'a failure of a Job',
      aFlipEvent({ facts: { reason: 'failed', detail: KILLED }, check: { kubernetes: OF_JOB }, lastPing: aLastPing() }),
      'Nightly backup is down',
      `A run failed at 2026-11-21 03:00:00 UTC: ${KILLED}`,
    ],
    [
      'a run of a Job that took too long',
      aFlipEvent({
        facts: { reason: 'overran', detail: 'Job nightly-1 has run for longer than 60 s (the default)' },
        check: { kubernetes: OF_JOB },
      }),
      'Nightly backup is down',
      'The run should have ended by 2026-11-21 03:00:00 UTC: Job nightly-1 has run for longer than 60 s (the default)',
    ],
    [
      'a run that has not started, on one line',
      aFlipEvent({ facts: { detail: 'Job nightly-1 waits:\nexceeded quota' }, check: { kubernetes: OF_JOB } }),
      'Nightly backup is down',
      'No run started in time: it was due at 2026-11-21 03:00:00 UTC: Job nightly-1 waits: exceeded quota',
    ],
    [
      'a run that has not started for an unknown reason',
      aFlipEvent({ check: { kubernetes: OF_CRON_JOB } }),
      'Nightly backup is down',
      'No run started in time: it was due at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a run that is late',
      aFlipEvent({ type: 'check.late', facts: { reason: 'late', status: 'late' }, check: { kubernetes: OF_CRON_JOB } }),
      'Nightly backup is late',
      'A run should have started at 2026-11-21 03:00:00 UTC; its grace time is running',
    ],
    [
      'a ping that is late',
      aFlipEvent({ type: 'check.late', facts: { reason: 'late', status: 'late' } }),
      'Nightly backup is late',
      'A ping was expected at 2026-11-21 03:00:00 UTC; its grace time is running',
    ],
    [
      'a recovery',
      aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up', down_for_seconds: 7_500 } }),
      'Nightly backup is up again after 2 h 5 min',
      'The job reported a success at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a recovery by a Job',
      aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up' }, check: { kubernetes: OF_JOB } }),
      'Nightly backup is up again',
      'A run succeeded at 2026-11-21 03:00:00 UTC',
    ],
    [
      'an interval that hid runs',
      aFlipEvent({
        type: 'check.unknown',
        facts: { reason: 'outage', status: 'up' },
        check: { kubernetes: OF_CRON_JOB },
      }),
      'Nightly backup: we cannot tell whether it ran',
      'We could not record runs for a while, so we cannot tell whether the job ran',
    ],
    [
      'a recovery of unknown length',
      aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up' } }),
      'Nightly backup is up again',
      'The job reported a success at 2026-11-21 03:00:00 UTC',
    ],
    [
      'flapping',
      aFlipEvent({ type: 'check.flapping', facts: { reason: 'flapping', status: 'down', flips: 11 } }),
      'Nightly backup is flapping',
      'It went down or up 11 times within 10 min, last down at 2026-11-21 03:00:00 UTC; further changes are not notified until it stays the same for 10 min',
    ],
    [
      'a pause',
      aFlipEvent({ type: 'check.paused', facts: { reason: 'paused', status: 'paused' } }),
      'Nightly backup is paused',
      'It was paused at 2026-11-21 03:00:00 UTC, and sends no notification until it is resumed',
    ],
    [
      'a pause by a CronJob',
      aFlipEvent({
        type: 'check.paused',
        facts: { reason: 'paused', status: 'paused', detail: 'the CronJob x\nis suspended' },
        check: { kubernetes: OF_CRON_JOB },
      }),
      'Nightly backup is paused',
      'It was paused at 2026-11-21 03:00:00 UTC, and no run is expected until it is resumed: the CronJob x is suspended',
    ],
    [
      'its end',
      aFlipEvent({ type: 'check.resumed', facts: { reason: 'resumed', status: 'new' } }),
      'Nightly backup is watched again',
      'It was resumed at 2026-11-21 03:00:00 UTC',
    ],
    [
      'an interval that our downtime hid',
      aFlipEvent({
        type: 'check.unknown',
        facts: {
          reason: 'outage',
          status: 'up',
          gap: { started_at: '2026-11-21T01:00:00.000Z', ended_at: '2026-11-21T02:30:00.000Z' },
        },
      }),
      'Nightly backup: we cannot tell whether it ran',
      'We could not take pings from 2026-11-21 01:00:00 UTC to 2026-11-21 02:30:00 UTC, so we cannot tell whether the job ran',
    ],
    [
      'a hidden interval without its gap',
      aFlipEvent({ type: 'check.unknown', facts: { reason: 'outage', status: 'up' } }),
      'Nightly backup: we cannot tell whether it ran',
      'We could not take pings for a while, so we cannot tell whether the job ran',
    ],
    [
      'a test',
      aTestEvent,
      'A test of this channel',
      'A test was requested at 2026-11-21 03:00:00 UTC: the channel works',
    ],
  ]
  it.each(cases)('%s', (_name, event, title, sentence) => {
    expect(describeEvent(event)).toMatchObject({ headline: title, reason: sentence })
  })

  it('names the Kubernetes object when there is one, else the project', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop-prod', name: 'backup' }
    expect(locate(aFlipEvent({ check: { kubernetes } }))).toBe(
      'HeartbeatCheck shop-prod/backup in cluster default, project shop',
    )
    expect(locate(aFlipEvent({ check: { kubernetes: OF_CRON_JOB } }))).toBe(
      'CronJob shop/nightly in cluster default, project shop',
    )
    expect(locate(aFlipEvent({ check: { kubernetes: OF_JOB } }))).toBe(
      'Job nightly-29384620 of CronJob shop/nightly in cluster default, project shop',
    )
    expect(locate(aFlipEvent())).toBe('Project shop')
    expect(locate(aTestEvent)).toBeNull()
  })

  it('keeps a name on one line and in its direction', () => {
    expect(headline(aFlipEvent({ check: { name: 'a\u2028b\u2029\u0085c' } }))).toBe('a b c is down')
    expect(headline(aFlipEvent({ check: { name: '\u202ednuora\u202c \u2067x\u2069' } }))).toBe('dnuora x is down')
    // Marks belong to Arabic and Hebrew names, and emoji are joined by U+200D.
    expect(headline(aFlipEvent({ check: { name: 'גיבוי\u200f (לילה) 👩‍🔧' } }))).toBe('גיבוי\u200f (לילה) 👩‍🔧 is down')
    expect(headline(aFlipEvent({ check: { name: 'half \ud83d' } }))).toBe('half \ufffd is down')
  })
})

describe("the job's output", () => {
  it('has a title with its ping', () => {
    expect(findOutput(aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing() }))).toEqual({
      title: 'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC)',
      text: 'disk full',
    })
    expect(findOutput(aFlipEvent({ lastPing: aLastPing({ type: 'success', exit_code: 0, body: 'fine' }) }))).toEqual({
      title: 'Output of the last ping (success, 2026-11-21 02:59:58 UTC)',
      text: 'fine',
    })
  })

  it.each(['check.paused', 'check.resumed', 'check.unknown'] as const)('is not part of %s', (type) => {
    expect(findOutput(aFlipEvent({ type, lastPing: aLastPing() }))).toBeNull()
  })

  it.each([null, '', ' \n\t\r\n'])('is omitted when it is %j', (body) => {
    expect(findOutput(aFlipEvent({ lastPing: aLastPing({ body }) }))).toBeNull()
    expect(findOutput(aFlipEvent())).toBeNull()
    expect(findOutput(aTestEvent)).toBeNull()
  })

  const cleaned: [string, string, string][] = [
    ['colours', '\u001b[1;31mERROR\u001b[0m disk full', 'ERROR disk full'],
    ['links and titles', 'see \u001b]8;;http://x\u0007text\u001b]8;;\u001b\\ \u001b]0;job 3\u0007end', 'see text end'],
    ['control characters, but tabs and line breaks', 'a\u0007\u0000b\tc\nd\u009be', 'ab\tc\nde'],
    ['the two other line breaks', 'a\r\nb\rc\u2028d', 'a\nb\nc\nd'],
    ['changes of direction', 'x\u202ey\u2066z', 'xyz'],
    ['blank lines around it, and not its indentation', '\n \n  a\n  b\n\n', '  a\n  b'],
    ['nothing that looks like a colour', 'list\n[abc] [31m', 'list\n[abc] [31m'],
    ['half characters', 'a\udc00b', 'a\ufffdb'],
  ]
  it.each(cleaned)('is shown without %s', (_name, body, text) => {
    expect(findOutput(aFlipEvent({ lastPing: aLastPing({ body }) }))?.text).toBe(text)
  })
})

describe('a length of time', () => {
  const cases: [number, string][] = [
    [0, '0 s'],
    [0.4, '0 s'],
    [1, '1 s'],
    [59, '59 s'],
    [60, '1 min'],
    [61, '1 min 1 s'],
    [3_599, '59 min 59 s'],
    [3_600, '1 h'],
    [3_659, '1 h'],
    [3_660, '1 h 1 min'],
    [7_500, '2 h 5 min'],
    [86_399, '23 h 59 min'],
    [86_400, '1 d'],
    [86_400 + 3_599, '1 d'],
    [86_400 + 3_600, '1 d 1 h'],
    [400 * 86_400 + 7_200, '400 d 2 h'],
  ]
  it.each(cases)('of %d seconds is %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text)
  })
})
