import { describe, expect, it } from 'vitest'
import { describeEvent, formatDuration } from '../../../src/channels/kinds/event-text.ts'
import type { Event } from '../../../src/domain/event.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'

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
      'a recovery',
      aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up', down_for_seconds: 7_500 } }),
      'Nightly backup is up again after 2 h 5 min',
      'The job reported a success at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a recovery of unknown length',
      aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up' } }),
      'Nightly backup is up again',
      'The job reported a success at 2026-11-21 03:00:00 UTC',
    ],
    [
      'a pause',
      aFlipEvent({ type: 'check.paused', facts: { reason: 'paused', status: 'paused' } }),
      'Nightly backup is paused',
      'It was paused at 2026-11-21 03:00:00 UTC, and sends no notification until it is resumed',
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
