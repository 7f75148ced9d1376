import { describe, expect, it } from 'vitest'
import { DAY, HOUR, MINUTE, NOON } from '../../support/builders.ts'
import { createStory } from './escalation-story.ts'

const SECOND_CHANNEL = 30 * MINUTE

/** A check that has gone down at NOON, with one channel that is notified at once, and others. */
function down(...afters: number[]) {
  const story = createStory([0, ...afters])
  story.do('fail')
  expect(story.take(0)).toEqual(['down'])
  return story
}

describe('a channel with after_seconds', () => {
  it('is notified at its time, not a millisecond earlier, and once', () => {
    const story = down(SECOND_CHANNEL)
    expect(story.wakeAt()).toBe(NOON + SECOND_CHANNEL)
    story.pass(SECOND_CHANNEL - 1)
    story.evaluate()
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.pass(1)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
    expect(story.state().escalation).toEqual({ upTo: SECOND_CHANNEL, dueAt: null })
    story.pass(DAY)
    story.evaluate()
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    expect(story.take(0)).toEqual([])
  })

  it('gets the end of what it was notified of', () => {
    const story = down(SECOND_CHANNEL)
    story.pass(HOUR)
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'up'])
    expect(story.take(0)).toEqual(['up'])
    expect(story.state().escalation).toBeNull()
  })

  it('of an incident that has ended before has one row that says why not', () => {
    const story = down(SECOND_CHANNEL)
    story.pass(SECOND_CHANNEL - 1)
    story.do('success')
    story.pass(DAY)
    expect(story.take(SECOND_CHANNEL)).toEqual(['up not sent: escalation'])
    expect(story.state().escalation).toBeNull()
  })

  it('begins anew with the next incident', () => {
    const story = down(SECOND_CHANNEL)
    story.pass(HOUR)
    story.do('success')
    story.pass(HOUR)
    story.do('fail')
    story.take(SECOND_CHANNEL)
    story.pass(SECOND_CHANNEL - 1)
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.pass(1)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
  })

  it('gets the reminders that come after it was notified', () => {
    const story = createStory([0, SECOND_CHANNEL], { remindEveryMs: 20 * MINUTE })
    story.do('fail')
    story.pass(HOUR)
    expect(story.take(0)).toEqual(['down', 'down #1', 'down #2', 'down #3'])
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'down #2', 'down #3'])
  })

  it('gets nothing else: no warning, no resume, nothing of a check that flaps', () => {
    const story = createStory([0, SECOND_CHANNEL])
    story.do('warn', 'success', 'pause', 'resume', 'success')
    for (let count = 0; count < 8; count += 1) story.do('fail', 'success')
    const types = new Set(story.got(0).map(({ type }) => type))
    for (const type of ['warned', 'resumed', 'flapping']) expect(types).toContain(`check.${type}`)
    const its = new Set(story.got(SECOND_CHANNEL).map(({ type, notSent }) => `${type} ${notSent}`))
    // An incident that is known to no one has no end.
    expect([...its]).toEqual(['check.up escalation'])
    expect(story.got(SECOND_CHANNEL)).toHaveLength(5)
  })

  it('two with different times are notified each at its own', () => {
    const story = down(SECOND_CHANNEL, HOUR)
    story.pass(SECOND_CHANNEL)
    expect([story.take(SECOND_CHANNEL), story.take(HOUR)]).toEqual([['down escalated'], []])
    expect(story.state().escalation).toEqual({ upTo: SECOND_CHANNEL, dueAt: NOON + HOUR })
    story.pass(SECOND_CHANNEL)
    expect([story.take(SECOND_CHANNEL), story.take(HOUR)]).toEqual([[], ['down escalated']])
    story.do('success')
    expect([story.take(SECOND_CHANNEL), story.take(HOUR)]).toEqual([['up'], ['up']])
  })

  it('between two times the first knows the incident, the second has a row', () => {
    const story = down(SECOND_CHANNEL, HOUR)
    story.pass(HOUR - 1)
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'up'])
    expect(story.take(HOUR)).toEqual(['up not sent: escalation'])
  })

  it('is notified once after a gap of ours, whatever has passed in it', () => {
    const story = down(SECOND_CHANNEL, HOUR, 2 * HOUR)
    story.pass(HOUR, true)
    for (const after of [SECOND_CHANNEL, HOUR]) expect(story.take(after)).toEqual(['down escalated'])
    expect(story.take(2 * HOUR)).toEqual([])
    story.pass(HOUR - 1)
    for (const after of [SECOND_CHANNEL, HOUR, 2 * HOUR]) expect(story.take(after)).toEqual([])
  })
})

describe('an incident in a hand', () => {
  it('is not escalated, and leaves nothing of that', () => {
    const story = down(SECOND_CHANNEL)
    story.acknowledge(null)
    expect(story.state().escalation).toBeNull()
    story.pass(DAY)
    story.evaluate()
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual(['up not sent: escalation'])
  })

  it('is escalated when the acknowledgement is ended: at once, or at its time', () => {
    const late = down(SECOND_CHANNEL)
    late.acknowledge(null)
    late.pass(HOUR)
    late.unacknowledge()
    expect(late.take(SECOND_CHANNEL)).toEqual([])
    expect(late.wakeAt()).toBeLessThanOrEqual(late.now())
    late.pass(0)
    expect(late.take(SECOND_CHANNEL)).toEqual(['down escalated'])
    const early = down(SECOND_CHANNEL)
    early.acknowledge(null)
    early.pass(MINUTE)
    early.unacknowledge()
    early.pass(SECOND_CHANNEL - MINUTE - 1)
    expect(early.take(SECOND_CHANNEL)).toEqual([])
    early.pass(1)
    expect(early.take(SECOND_CHANNEL)).toEqual(['down escalated'])
  })

  it('is escalated when the acknowledgement ends by itself', () => {
    const story = down(SECOND_CHANNEL)
    story.acknowledge(HOUR)
    story.pass(HOUR - 1)
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.pass(1)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
  })

  it('of which a channel was notified stays so', () => {
    const story = down(SECOND_CHANNEL, HOUR)
    story.pass(SECOND_CHANNEL)
    story.acknowledge(null)
    story.pass(DAY)
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'acknowledged', 'up'])
    expect(story.take(HOUR)).toEqual(['up not sent: escalation'])
  })
})

describe('a silence', () => {
  it('holds an escalation back, until its end', () => {
    const story = down(SECOND_CHANNEL)
    story.pass(MINUTE)
    story.silence(HOUR)
    story.pass(HOUR - 1)
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.pass(1)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
  })

  it('that is removed holds it back for a minute at most', () => {
    const story = down(SECOND_CHANNEL)
    story.silence(DAY)
    story.pass(HOUR)
    story.silence(null)
    story.pass(MINUTE)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
  })

  it('a check that goes down in it is escalated after its end', () => {
    const story = createStory([0, SECOND_CHANNEL])
    story.silence(HOUR)
    story.do('fail')
    story.pass(HOUR - 1)
    expect([story.take(0), story.take(SECOND_CHANNEL)]).toEqual([['down not sent: silenced'], []])
    story.pass(1)
    expect([story.take(0), story.take(SECOND_CHANNEL)]).toEqual([['down'], ['down escalated']])
  })

  it('a recovery in it leaves its row at the end', () => {
    const story = down(SECOND_CHANNEL)
    story.silence(HOUR)
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual([])
    story.pass(HOUR)
    expect([story.take(0), story.take(SECOND_CHANNEL)]).toEqual([
      ['up not sent: silenced', 'up'],
      ['up not sent: escalation'],
    ])
  })
})

it('a recovery and the next failure that one evaluation finds are two incidents', () => {
  const story = createStory([0, SECOND_CHANNEL], { schedule: { kind: 'period', periodMs: HOUR }, graceMs: MINUTE })
  story.do('fail')
  story.pass(HOUR)
  story.silence(SECOND_CHANNEL)
  story.do('success')
  story.pass(HOUR + 2 * MINUTE, true)
  expect(story.take(0)).toEqual(['down', 'up not sent: silenced', 'up', 'down'])
  expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'up not sent: silenced', 'up'])
  story.pass(SECOND_CHANNEL - MINUTE)
  expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
})

describe('a check that is paused', () => {
  it('is not escalated; who was notified gets the end, and who was not has a row', () => {
    const story = down(SECOND_CHANNEL, HOUR)
    story.pass(SECOND_CHANNEL)
    story.do('pause')
    story.pass(DAY)
    // Of the kinds that keep incidents; SQL leaves out the others.
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'paused'])
    expect(story.take(HOUR)).toEqual(['paused not sent: escalation'])
    expect(story.state().escalation).toEqual({ upTo: SECOND_CHANNEL, dueAt: null })
  })

  it('is known as down again by all who were notified of the incident', () => {
    const story = down(SECOND_CHANNEL)
    story.pass(SECOND_CHANNEL)
    story.do('pause', 'resume', 'fail')
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated', 'paused', 'down'])
    story.do('success')
    expect(story.take(SECOND_CHANNEL)).toEqual(['up'])
  })

  it('without an incident is no news', () => {
    const story = createStory([0, SECOND_CHANNEL])
    story.do('pause')
    expect([story.take(0), story.take(SECOND_CHANNEL)]).toEqual([['paused'], []])
  })
})

describe('a channel that changes while the incident is open', () => {
  it('is notified at once if its time has passed, else at its time', () => {
    const story = down()
    expect(story.state().escalation).toBeNull()
    story.pass(HOUR)
    story.addChannel(SECOND_CHANNEL)
    expect(story.take(SECOND_CHANNEL)).toEqual(['down escalated'])
    story.addChannel(2 * HOUR)
    story.pass(HOUR - 1)
    expect(story.take(2 * HOUR)).toEqual([])
    story.pass(1)
    expect(story.take(2 * HOUR)).toEqual(['down escalated'])
  })

  it('and that is gone by its time leaves an evaluation, and nothing more', () => {
    const story = down(SECOND_CHANNEL)
    story.removeChannel(SECOND_CHANNEL)
    story.pass(DAY)
    expect(story.state().escalation).toBeNull()
    expect(story.take(0)).toEqual([])
  })
})
