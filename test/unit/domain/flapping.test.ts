import { describe, expect, it } from 'vitest'
import type { CheckState, Gap } from '../../../src/domain/check.ts'
import type { CheckEvent, Outcome } from '../../../src/domain/check-event.ts'
import { eventOf } from '../../../src/domain/event.ts'
import { evaluationOf, newState, transition } from '../../../src/domain/transition.ts'
import { aSpec, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const SPEC = aSpec({ schedule: { kind: 'period', periodMs: 2 * DAY } })

type Kind = 'success' | 'fail' | 'pause' | 'resume' | 'evaluate' | 'update' | 'revive'

/** A check that is created at NOON, and what its recipients receive. */
function createStory() {
  let now = NOON
  let state: CheckState = newState(now)
  const sent: string[] = []
  let last: Outcome | null = null
  const apply = (event: CheckEvent) => {
    last = transition(SPEC, state, event, now)
    state = last.state
    const { flip, notice, heldBy, settled } = last
    if (settled !== null) sent.push(settled.type)
    const event_ = flip === null || heldBy !== null ? null : eventOf(flip, { notice, detectedAt: now, gap: null })
    if (event_ !== null) sent.push(event_.type)
  }
  return {
    get state() {
      return state
    },
    get last() {
      return last!
    },
    get now() {
      return now
    },
    /** What was sent since the last call, without `check.`. */
    take: () => sent.splice(0).map((type) => type.replace('check.', '')),
    pass(ms: number) {
      now += ms
    },
    evaluate: (...gaps: Gap[]) => apply({ kind: 'deadline', gaps }),
    do(...kinds: Kind[]) {
      for (const kind of kinds) {
        if (kind === 'success' || kind === 'fail') apply({ kind, runId: null, durationMs: null })
        else if (kind === 'evaluate') apply({ kind: 'deadline', gaps: [] })
        else if (kind === 'revive') {
          const kept = state
          state = newState(now)
          apply({ kind, kept })
        } else apply({ kind })
      }
    },
    /** Goes down and up, `everyMs` apart, `count` changes in all. */
    change(count: number, everyMs = SECOND) {
      for (let index = 0; index < count; index += 1) {
        this.pass(everyMs)
        this.do(state.status === 'down' ? 'success' : 'fail')
      }
    },
  }
}

const times = (count: number, ...types: string[]) =>
  Array.from({ length: count }, (_, index) => types[index % types.length])

describe('flapping', () => {
  it('ten changes are notified, the eleventh makes the check flap, and no later one is notified', () => {
    const story = createStory()
    story.change(10)
    expect(story.take()).toEqual(times(10, 'down', 'up'))
    expect(story.state.notified).toBeNull()
    story.change(1)
    expect(story.take()).toEqual(['flapping'])
    expect(story.last.notice).toMatchObject({ reason: 'flapping', flips: 11, from: 'up', to: 'down', at: story.now })
    expect(story.state.notified).toBe('up')
    story.change(200)
    expect(story.take()).toEqual([])
  })

  it.each([
    ['less than ten minutes', 10 * MINUTE - 1, 'flapping'],
    ['ten minutes', 10 * MINUTE, 'down'],
  ])('eleven changes in %s', (_, lengthMs, sent) => {
    const story = createStory()
    story.change(1)
    story.change(9)
    story.take()
    story.pass(lengthMs - 9 * SECOND - SECOND)
    story.change(1)
    expect(story.take()).toEqual([sent])
  })

  it('a check that changes each minute never flaps, one that changes each 59 seconds does', () => {
    const slow = createStory()
    slow.change(100, MINUTE)
    expect(slow.take()).toEqual(times(100, 'down', 'up'))
    const fast = createStory()
    fast.change(100, 59 * SECOND)
    expect(fast.take()).toEqual([...times(10, 'down', 'up'), 'flapping'])
  })

  it('ten minutes after the last change the status is notified, if it is not the one that was notified last', () => {
    const story = createStory()
    story.change(11)
    const failedAt = story.now
    story.take()
    expect(evaluationOf(SPEC, story.state)).toBe(failedAt + 10 * MINUTE)
    story.pass(10 * MINUTE - 1)
    story.do('evaluate')
    expect(story.take()).toEqual([])
    story.pass(1)
    story.do('evaluate', 'evaluate')
    expect(story.take()).toEqual(['down'])
    expect(story.state).toMatchObject({ status: 'down', notified: null, incidentSince: failedAt })
    expect(evaluationOf(SPEC, story.state)).toBeNull()
    story.do('success')
    expect(story.take()).toEqual(['up'])
    expect(story.last.notice).toMatchObject({ reason: 'recovered', downSince: failedAt })
  })

  it('nothing is notified at its end if the recipients know the status', () => {
    const story = createStory()
    story.change(12)
    story.take()
    story.pass(10 * MINUTE)
    story.do('evaluate')
    expect(story.take()).toEqual([])
    expect(story.state).toMatchObject({ status: 'up', notified: null, incidentSince: null, changes: [] })
  })

  /** Flapping since a change into up, so that the recipients know it as down. */
  function knownAsDown() {
    const story = createStory()
    story.change(9)
    // After a pause the tenth change, too, is one into down.
    story.do('pause', 'resume', 'fail')
    story.change(1)
    expect(story.state).toMatchObject({ status: 'up', notified: 'down' })
    story.take()
    return story
  }

  it('a gap of a minute is no evidence of quiet, a shorter one is none against it', () => {
    const endsAfter = (lengthMs: number) => {
      const story = createStory()
      story.change(11)
      const startedAt = story.now
      story.pass(10 * MINUTE)
      story.evaluate({ startedAt, endedAt: startedAt + lengthMs })
      return story.state.notified === null
    }
    expect([endsAfter(MINUTE - 1), endsAfter(MINUTE)]).toEqual([true, false])
  })

  it('nothing is notified at its end of a check that is down as the recipients know it', () => {
    const story = knownAsDown()
    story.change(1)
    story.pass(10 * MINUTE)
    story.do('evaluate')
    expect(story.take()).toEqual([])
    expect(story.state).toMatchObject({ status: 'down', notified: null })
    story.do('success')
    expect(story.take()).toEqual(['up'])
  })

  it('a check that recipients know as down is notified as down again after a pause', () => {
    const story = knownAsDown()
    story.do('pause', 'resume', 'fail')
    story.pass(10 * MINUTE)
    story.do('evaluate')
    expect(story.take()).toEqual(['paused', 'resumed', 'down'])
  })

  it('the notice at its end has the reason, the time and the length of what it reports', () => {
    const down = createStory()
    down.change(11)
    const failedAt = down.now
    down.pass(DAY)
    down.do('evaluate')
    const settledDown = { type: 'check.down', reason: 'failed', at: failedAt, from: 'up', to: 'down', downSince: null }
    expect(down.last.settled).toEqual({ ...settledDown, flips: null })

    const up = knownAsDown()
    const { incidentSince: downSince } = up.state
    expect(downSince).toBe(NOON + 9 * SECOND)
    up.change(2)
    const recoveredAt = up.now
    up.pass(10 * MINUTE)
    up.do('evaluate')
    expect(up.last.settled).toMatchObject({
      type: 'check.up',
      reason: 'recovered',
      at: recoveredAt,
      from: 'down',
      downSince,
    })
  })

  it('each change begins the ten minutes again, and pings that change nothing do not', () => {
    const story = createStory()
    story.change(11)
    for (let minute = 0; minute < 60; minute += 9) story.change(1, 9 * MINUTE)
    const changedAt = story.now
    const { status } = story.state
    for (let minute = 0; minute < 9; minute += 1) {
      story.pass(MINUTE)
      story.do(status === 'up' ? 'success' : 'fail')
    }
    expect(evaluationOf(SPEC, { ...story.state, dueAt: null })).toBe(changedAt + 10 * MINUTE)
  })

  it.each([
    ['to what recipients know', 11, 'success', []],
    ['to what they do not know', 12, 'fail', ['down']],
  ] as const)('a change %s, before the evaluator has looked, does not postpone the end', (_, count, kind, sent) => {
    const story = createStory()
    story.change(count)
    story.take()
    story.pass(10 * MINUTE)
    story.do(kind)
    expect(evaluationOf(SPEC, story.state)).toBe(story.now)
    expect(story.take()).toEqual([])
    story.pass(SECOND)
    story.do('evaluate')
    expect(story.take()).toEqual(sent)
    expect(story.state).toMatchObject({ notified: null, quietAt: null })
  })

  it('the first ping after a downtime does not end it, before the evaluator knows of the downtime', () => {
    const story = createStory()
    story.change(11)
    story.take()
    story.pass(9 * MINUTE)
    const startedAt = story.now
    story.pass(2 * MINUTE)
    const endedAt = story.now
    story.pass(SECOND)
    story.do('success')
    expect(story.take()).toEqual([])
    const changedAt = story.now
    story.pass(SECOND)
    story.evaluate({ startedAt, endedAt })
    expect(story.take()).toEqual([])
    expect(story.state).toMatchObject({ notified: 'up', quietAt: changedAt + 10 * MINUTE })
    story.evaluate({ startedAt, endedAt })
    expect(story.state).toMatchObject({ notified: 'up', quietAt: changedAt + 10 * MINUTE })
  })

  it('the status that is notified at its end counts: never more than ten in ten minutes', () => {
    const story = createStory()
    story.change(11)
    story.pass(10 * MINUTE)
    story.do('evaluate')
    story.take()
    story.change(9)
    expect(story.take()).toHaveLength(9)
    story.change(1)
    expect(story.take()).toEqual(['flapping'])
  })

  it('pauses are notified as usual, and after one the recipients are to hear of down again', () => {
    const story = createStory()
    story.do('success')
    story.change(10)
    story.do('pause', 'resume', 'fail')
    expect(story.take().slice(10)).toEqual(['paused', 'resumed', 'flapping'])
    story.do('pause', 'resume', 'fail')
    expect(story.take()).toEqual(['paused', 'resumed'])
    story.pass(10 * MINUTE)
    story.do('evaluate')
    expect(story.take()).toEqual(['down'])
  })

  it('a check that is paused when its flapping ends has nothing to notify, until it goes down or up', () => {
    const story = createStory()
    story.change(11)
    story.do('pause')
    story.take()
    story.pass(10 * MINUTE)
    story.do('evaluate')
    expect(story.state.notified).toBeNull()
    story.do('resume', 'success', 'fail')
    expect(story.take()).toEqual(['resumed', 'down'])
  })

  it('a missed ping counts when it is found, however long ago its deadline was', () => {
    const story = createStory()
    story.change(10)
    story.take()
    story.pass(2 * DAY + HOUR)
    story.do('evaluate')
    expect(story.last.flip).toMatchObject({ reason: 'missed', at: NOON + 10 * SECOND + 2 * DAY + 5 * MINUTE })
    expect(story.take()).toEqual(['down'])
    expect(story.state.changes).toEqual([story.now])
  })

  it('downtime of the service is no quiet: the ten minutes begin again at its end', () => {
    const story = createStory()
    story.change(11)
    story.take()
    const gap = { startedAt: story.now + MINUTE, endedAt: story.now + 30 * MINUTE }
    const before = { startedAt: NOON - HOUR, endedAt: NOON - HOUR + 2 * MINUTE }
    const short = { startedAt: story.now + 31 * MINUTE, endedAt: story.now + 31 * MINUTE + 59 * SECOND }
    story.pass(32 * MINUTE)
    story.evaluate(before, gap, short)
    story.evaluate(before, gap, short)
    expect(story.take()).toEqual([])
    expect(evaluationOf(SPEC, story.state)).toBe(gap.endedAt + 10 * MINUTE)
    story.pass(8 * MINUTE)
    story.evaluate(before, gap, short)
    expect(story.take()).toEqual(['down'])
  })

  it('downtime that began when the check was quiet already does not count', () => {
    const story = createStory()
    story.change(11)
    story.take()
    story.pass(10 * MINUTE)
    const gap = { startedAt: story.now, endedAt: story.now + 2 * MINUTE }
    story.pass(2 * MINUTE)
    story.evaluate(gap)
    expect(story.take()).toEqual(['down'])
  })

  it('changes of long ago are dropped from the state by the next completion', () => {
    const story = createStory()
    story.change(2)
    story.pass(10 * MINUTE - 1)
    story.do('success')
    expect(story.state.changes).toHaveLength(2)
    story.pass(1)
    story.do('success')
    expect(story.state.changes).toEqual([])
  })
})

describe('an incident', () => {
  /** What may happen between a check.down and the next success. */
  const BETWEEN: Kind[] = ['pause', 'resume', 'revive', 'update', 'fail', 'evaluate']

  function* orders(length: number): Generator<Kind[]> {
    if (length === 0) return yield []
    for (const rest of orders(length - 1)) for (const kind of BETWEEN) yield [kind, ...rest]
  }

  it('down, paused, resumed, success: check.up is sent, with the time since the check went down', () => {
    const story = createStory()
    story.do('success', 'fail')
    story.pass(HOUR)
    story.do('pause')
    story.pass(HOUR)
    story.do('resume', 'success')
    expect(story.take()).toEqual(['down', 'paused', 'resumed', 'up'])
    expect(story.last.flip).toMatchObject({ from: 'new', to: 'up', reason: 'first_success' })
    expect(story.last.notice).toMatchObject({ reason: 'recovered', downSince: NOON, from: 'new', to: 'up' })
    story.do('pause', 'resume', 'success')
    expect(story.take()).toEqual(['paused', 'resumed'])
  })

  it('began with its first check.down, though the check went down once more', () => {
    const story = createStory()
    story.do('success', 'fail', 'pause')
    story.pass(HOUR)
    story.do('resume', 'fail')
    story.pass(HOUR)
    story.do('success')
    expect(story.take()).toEqual(['down', 'paused', 'resumed', 'down', 'up'])
    expect(story.last.notice).toMatchObject({ downSince: NOON })
  })

  it('is closed once by the first change to up, in whatever order four things happen before it', () => {
    for (const between of orders(4)) {
      const story = createStory()
      story.do('success', 'fail', ...between, 'resume', 'success')
      const sent = story.take()
      expect(sent[0], between.join()).toBe('down')
      expect(
        sent.filter((type) => type === 'up'),
        between.join(),
      ).toHaveLength(1)
      expect(sent.at(-1), between.join()).toBe('up')
      expect(story.state).toMatchObject({ status: 'up', incidentSince: null })
    }
  })

  it('none is closed that was never opened', () => {
    const story = createStory()
    story.do('success', 'pause', 'resume', 'revive', 'success')
    expect(story.take()).toEqual(['paused', 'resumed'])
  })
})
