import { describe, expect, it } from 'vitest'
import { describeEvent, formatDuration } from '../../../src/channels/kinds/event-text.ts'
import type { Event } from '../../../src/domain/event.ts'
import { MOST_MISSED } from '../../../src/domain/limits.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'

const AT = '2026-11-21 03:00:00 UTC'
const KILLED = 'container backup was OOMKilled (exit code 137)'
const CRON_JOB = {
  cluster: 'default',
  namespace: 'shop',
  name: 'backup',
  source: { kind: 'CronJob', name: 'nightly' },
}
const BY_CRON_JOB = { kubernetes: CRON_JOB }
const BY_JOB = { kubernetes: { ...CRON_JOB, run: 'nightly-29384620' } }
const FAILED = { reason: 'failed' } as const
const LATE = { type: 'check.late', facts: { reason: 'late', status: 'late' } } as const
const UP = { type: 'check.up', facts: { reason: 'recovered', status: 'up' } } as const
const WARNED = { type: 'check.warned', facts: { reason: 'warned', status: 'up' } } as const
const PAUSED = { type: 'check.paused', facts: { reason: 'paused', status: 'paused' } } as const
const OUTAGE = { type: 'check.unknown', facts: { reason: 'outage', status: 'up' } } as const

const headline = (event: Event) => describeEvent(event).headline
const locate = (event: Event) => describeEvent(event).location
const findOutput = (event: Event) => describeEvent(event).output

describe('the text of an event', () => {
  const cases: [string, Event][] = [
    [`is down. No ping came in time: it was due at ${AT}`, aFlipEvent()],
    [
      `is down. The job reported a failure with exit code 3 at ${AT}`,
      aFlipEvent({ facts: FAILED, lastPing: aLastPing() }),
    ],
    [
      `is down. The job reported a failure at ${AT}`,
      aFlipEvent({ facts: FAILED, lastPing: aLastPing({ exit_code: null }) }),
    ],
    [
      `is down. The run took longer than allowed: it should have ended by ${AT}`,
      aFlipEvent({ facts: { reason: 'overran' }, lastPing: aLastPing({ type: 'start', exit_code: null }) }),
    ],
    [
      `is down. A run failed at ${AT}: ${KILLED}`,
      aFlipEvent({ facts: { ...FAILED, detail: KILLED }, check: BY_JOB, lastPing: aLastPing() }),
    ],
    [
      `is down. The run should have ended by ${AT}: Job nightly-1 has run for longer than 60 s (the default)`,
      aFlipEvent({
        facts: { reason: 'overran', detail: 'Job nightly-1 has run for longer than 60 s (the default)' },
        check: BY_JOB,
      }),
    ],
    [
      `is down. No run started in time: it was due at ${AT}: Job nightly-1 waits: exceeded quota`,
      aFlipEvent({ facts: { detail: 'Job nightly-1 waits:\nexceeded quota' }, check: BY_JOB }),
    ],
    [`is down. No run started in time: it was due at ${AT}`, aFlipEvent({ check: BY_CRON_JOB })],
    [
      `is still down after 3 d. No ping came in time: it was due at ${AT}`,
      aFlipEvent({ facts: { reminder: 1, down_for_seconds: 259_200 } }),
    ],
    [
      `is still down after 30 min, not acknowledged. No ping came in time: it was due at ${AT}`,
      aFlipEvent({ facts: { escalated: true, down_for_seconds: 1_800 } }),
    ],
    [`is still down. The job reported a failure at ${AT}`, aFlipEvent({ facts: { ...FAILED, reminder: 12 } })],
    [
      `is late. A run should have started at ${AT}; its grace time is running`,
      aFlipEvent({ ...LATE, check: BY_CRON_JOB }),
    ],
    [`is late. A ping was expected at ${AT}; its grace time is running`, aFlipEvent(LATE)],
    [
      `is up again after 2 h 5 min. The job reported a success at ${AT}`,
      aFlipEvent({ ...UP, facts: { ...UP.facts, down_for_seconds: 7_500 } }),
    ],
    [`is up again. A run succeeded at ${AT}`, aFlipEvent({ ...UP, check: BY_JOB })],
    [`is up again. The job reported a success at ${AT}`, aFlipEvent(UP)],
    [
      `is up again. The job reported a warning with exit code 3 at ${AT}`,
      aFlipEvent({ ...UP, lastPing: aLastPing({ type: 'warn' }) }),
    ],
    [
      `is up again. A run ended with a warning at ${AT}`,
      aFlipEvent({ ...UP, check: BY_JOB, lastPing: aLastPing({ type: 'warn', exit_code: null }) }),
    ],
    [
      `ended with a warning. The job is done, and a person should look at it: it reported a warning with exit code 3 at ${AT}`,
      aFlipEvent({ ...WARNED, lastPing: aLastPing({ type: 'warn' }) }),
    ],
    [
      `ended with a warning. The job is done, and a person should look at it: it reported a warning at ${AT}`,
      aFlipEvent({ ...WARNED, lastPing: aLastPing({ type: 'warn', exit_code: null }) }),
    ],
    [
      `ended with a warning. A run is done, and a person should look at it: it reported a warning at ${AT}: ${KILLED}`,
      aFlipEvent({
        ...WARNED,
        facts: { ...WARNED.facts, detail: KILLED },
        check: BY_JOB,
        lastPing: aLastPing({ type: 'warn' }),
      }),
    ],
    [
      `is flapping. It went down or up 11 times within 10 min, last down at ${AT}; further changes are not notified until it stays the same for 10 min`,
      aFlipEvent({ type: 'check.flapping', facts: { reason: 'flapping', status: 'down', flips: 11 } }),
    ],
    [`is paused. It was paused at ${AT}, and sends no notification until it is resumed`, aFlipEvent(PAUSED)],
    [
      `is paused. It was paused at ${AT}, and no run is expected until it is resumed: the CronJob x is suspended`,
      aFlipEvent({
        ...PAUSED,
        facts: { ...PAUSED.facts, detail: 'the CronJob x\nis suspended' },
        check: BY_CRON_JOB,
      }),
    ],
    [
      `is watched again. It was resumed at ${AT}`,
      aFlipEvent({ type: 'check.resumed', facts: { reason: 'resumed', status: 'new' } }),
    ],
  ]
  it.each(cases)('Nightly backup %s', (text, event) => {
    const { headline, reason } = describeEvent(event)
    expect(`${headline}. ${reason}`).toBe(`Nightly backup ${text}`)
  })

  const hidden: [string, Event][] = [
    ['record runs for a while', aFlipEvent({ ...OUTAGE, check: BY_CRON_JOB })],
    [
      'take pings from 2026-11-21 01:00:00 UTC to 2026-11-21 02:30:00 UTC',
      aFlipEvent({
        ...OUTAGE,
        facts: {
          ...OUTAGE.facts,
          gap: { started_at: '2026-11-21T01:00:00.000Z', ended_at: '2026-11-21T02:30:00.000Z' },
        },
      }),
    ],
    ['take pings for a while', aFlipEvent(OUTAGE)],
  ]
  it.each(hidden)('says that we could not %s', (missed, event) => {
    expect(describeEvent(event)).toMatchObject({
      headline: 'Nightly backup: we cannot tell whether it ran',
      reason: `We could not ${missed}, so we cannot tell whether the job ran`,
    })
  })

  it('tells of a test', () => {
    expect(describeEvent(aTestEvent)).toMatchObject({
      headline: 'A test of this channel',
      reason: `A test was requested at ${AT}: the channel works`,
    })
  })

  it('names the Kubernetes object when there is one, else the project', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop-prod', name: 'backup' }
    expect(locate(aFlipEvent({ check: { kubernetes } }))).toBe(
      'HeartbeatCheck shop-prod/backup in cluster default, project shop',
    )
    expect(locate(aFlipEvent({ check: BY_CRON_JOB }))).toBe('CronJob shop/nightly in cluster default, project shop')
    expect(locate(aFlipEvent({ check: BY_JOB }))).toBe(
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
  it('has a title with its ping, unless the reason says which', () => {
    expect(findOutput(aFlipEvent({ facts: { reason: 'failed' }, lastPing: aLastPing() }))).toEqual({
      title: 'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC)',
      text: 'disk full',
    })
    expect(findOutput(aFlipEvent({ ...WARNED, lastPing: aLastPing({ type: 'warn' }) }))).toEqual({
      title: 'Output of the last ping (warn with exit code 3, 2026-11-21 02:59:58 UTC)',
      text: 'disk full',
    })
    const own = aLastPing({ created_at: aFlipEvent().facts.occurred_at })
    expect(findOutput(aFlipEvent({ facts: { reason: 'failed' }, lastPing: own }))).toEqual({
      title: 'Output',
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

describe('what else a text says', () => {
  const FACTS = { last_success_at: '2026-11-20T03:00:05.123Z', usual_ms: 754_000 }

  it('is the last success and the usual duration', () => {
    expect(describeEvent(aFlipEvent({ facts: FACTS })).facts).toEqual([
      'Last success: 2026-11-20 03:00:05 UTC',
      'Usual duration: 12 min 34 s',
    ])
    expect(describeEvent(aFlipEvent()).facts).toEqual([])
  })

  it('is since when it was not sent', () => {
    const facts = { ...FACTS, silenced_from: '2026-11-21T01:00:00.000Z' }
    expect(describeEvent(aFlipEvent({ facts })).facts[0]).toBe(
      'Held back by a silence that began at 2026-11-21 01:00:00 UTC',
    )
  })

  it.each([
    [1, 'One run was missed'],
    [2, '2 runs were missed'],
    [MOST_MISSED, `At least ${MOST_MISSED} runs were missed`],
  ])('is the number of missed runs: %i', (missed_runs, text) => {
    expect(describeEvent(aFlipEvent({ ...UP, facts: { ...UP.facts, missed_runs } })).facts).toEqual([text])
  })

  it.each([
    ['Runbook:\r\nhttps://wiki/x\u202e ', 'Runbook:\nhttps://wiki/x'],
    ['  ', null],
    [undefined, null],
  ])('is the description, made safe: %j', (description, text) => {
    const check = description === undefined ? {} : { description }
    expect(describeEvent(aFlipEvent({ check })).description).toBe(text)
  })
})
