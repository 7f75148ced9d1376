import { describe, expect, it } from 'vitest'
import type { CheckSpec, CheckState } from '../../../src/domain/check.ts'
import type { CheckEvent, Outcome } from '../../../src/domain/check-event.ts'
import type { Circumstances, Dependency } from '../../../src/domain/circumstances.ts'
import { eventOf } from '../../../src/domain/event.ts'
import { evaluationOf, transition } from '../../../src/domain/transition.ts'
import { aSpec, aState, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const GRACE = 5 * MINUTE
const SPEC = aSpec({ schedule: { kind: 'period', periodMs: 2 * DAY }, graceMs: GRACE })
const UP = aState({ expectedAt: NOON + 2 * DAY, dueAt: NOON + 2 * DAY + GRACE })

/** A check that is up at NOON, and what its recipients are sent of it: each type, and what is not sent with its reason. */
function createStory(spec: CheckSpec = SPEC, begin: CheckState = UP) {
  let now = NOON
  let state = begin
  let around: Circumstances = { silence: null, dependencies: [], escalations: [] }
  const sent: unknown[] = []
  let last: Outcome
  const note = (type: string, held: Outcome['heldBy']) =>
    sent.push(
      held === null ? type.slice(6) : `${type.slice(6)} not sent: ${held.reason} ${held.cause?.id ?? ''}`.trim(),
    )
  const apply = (event: CheckEvent) => {
    if (around.silence !== null && now >= around.silence.until) around = { ...around, silence: null }
    last = transition(spec, state, event, now, around)
    state = last.state
    const { flip, notice, heldBy, settled, settledHeldBy, warned, warnedHeldBy, reminder, reminderHeldBy, silencedBy } =
      last
    if (settled !== null) note(settled.type, settledHeldBy)
    const event_ = flip === null ? null : eventOf(flip, { notice, detectedAt: now, gap: null })
    if (event_ !== null) note(event_.type, heldBy ?? silencedBy)
    if (warned !== null) note(warned.type, warnedHeldBy)
    if (reminder !== null) note(`${reminder.type}#${reminder.reminder}`, reminderHeldBy)
    if (last.acknowledged !== null) note(last.acknowledged.type, null)
  }
  return {
    take: () => sent.splice(0),
    state: () => state,
    last: () => last,
    now: () => now,
    do(...kinds: ('success' | 'fail' | 'warn' | 'pause' | 'resume')[]) {
      for (const kind of kinds)
        if (kind === 'pause' || kind === 'resume') apply({ kind })
        else apply({ kind, runId: null, durationMs: null })
    },
    apply,
    evaluate: () => apply({ kind: 'deadline', gaps: [] }),
    /** Time passes, with each evaluation that is due. */
    pass(ms: number) {
      const until = now + ms
      for (let next = evaluationOf(spec, state); next !== null && next <= until; next = evaluationOf(spec, state)) {
        now = Math.max(now, next)
        apply({ kind: 'deadline', gaps: [] })
      }
      now = until
    },
    silence(forMs: number | null, id = 'night') {
      around = { ...around, silence: forMs === null ? null : { id, from: now, until: now + forMs } }
    },
    dependsOn(...dependencies: Dependency[]) {
      around = { ...around, dependencies }
    },
  }
}

const BY_ADA = { by: { kind: 'user', id: 'u', name: 'ada' }, at: NOON, until: null, comment: null } as const
const isDown = (since: number, id = 'db'): Dependency => ({ id, status: 'down', since, wakeAt: null })
const isUp = (since: number, id = 'db'): Dependency => ({ id, status: 'up', since, wakeAt: since + DAY })

describe('a silence', () => {
  it('a check that goes down in it is notified once at its end, at that moment', () => {
    const story = createStory()
    story.pass(MINUTE)
    story.silence(HOUR)
    story.pass(MINUTE)
    story.do('fail')
    expect(story.take()).toEqual(['down not sent: silenced night'])
    story.pass(HOUR - MINUTE - 1)
    expect(story.take()).toEqual([])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
    expect(story.last().settled).toMatchObject({ silencedFrom: NOON + MINUTE, at: NOON + 2 * MINUTE, reason: 'failed' })
    expect(story.state()).toMatchObject({ hold: null, notified: null, incidentSince: NOON + 2 * MINUTE })
    story.pass(DAY)
    expect(story.take()).toEqual([])
    story.do('success')
    expect(story.take()).toEqual(['up'])
  })

  it('a check that recovers in it is not notified', () => {
    const story = createStory()
    story.silence(HOUR)
    story.do('fail', 'success')
    expect(story.take()).toEqual(['down not sent: silenced night', 'up not sent: silenced night'])
    story.pass(2 * HOUR)
    expect(story.take()).toEqual([])
    expect(story.state()).toMatchObject({ hold: null, notified: null, incidentSince: null })
  })

  it('a check that is known as down is not notified again, and its recovery is at the end', () => {
    const story = createStory()
    story.do('fail')
    story.silence(HOUR)
    story.pass(HOUR)
    expect(story.take()).toEqual(['down'])
    story.silence(HOUR)
    story.pass(MINUTE)
    story.do('success')
    expect(story.take()).toEqual(['up not sent: silenced night'])
    story.pass(HOUR)
    expect(story.take()).toEqual(['up'])
    expect(story.last().settled).toMatchObject({ downSince: NOON, silencedFrom: NOON + HOUR })
    expect(story.state()).toMatchObject({ incidentSince: null, downNotifiedAt: null })
  })

  it('up and down again in it is another incident: one check.down at its end', () => {
    const story = createStory()
    story.do('fail')
    story.apply({ kind: 'acknowledge', acknowledged: BY_ADA })
    story.pass(MINUTE)
    story.silence(HOUR)
    story.pass(MINUTE)
    story.do('success', 'fail')
    expect(story.state()).toMatchObject({ acknowledged: null, downNotifiedAt: null })
    story.take()
    story.pass(HOUR)
    expect(story.take()).toEqual(['down'])
    expect(story.state()).toMatchObject({ incidentSince: NOON + 2 * MINUTE, reminders: 0, acknowledged: null })
  })

  it('known as down, up in it, and down again before its end was seen: another incident', () => {
    const story = createStory()
    story.do('fail')
    story.pass(MINUTE)
    story.silence(HOUR)
    story.do('success')
    story.silence(null)
    story.pass(SECOND)
    story.do('fail')
    expect(story.take()).toEqual(['down', 'up not sent: silenced night', 'down'])
    expect(story.state()).toMatchObject({ incidentSince: story.now(), hold: null })
  })

  it('a pause in it ends an incident that recipients know, at its end', () => {
    const story = createStory()
    story.do('fail')
    story.silence(HOUR)
    story.do('pause')
    expect(story.take()).toEqual(['down', 'paused not sent: silenced night'])
    story.pass(HOUR)
    expect(story.take()).toEqual(['paused'])
  })

  it('paused, resumed and paused again in two silences, it ends an incident that recipients know', () => {
    const story = createStory()
    story.do('fail')
    story.silence(HOUR)
    story.do('pause', 'resume')
    story.pass(HOUR)
    expect(story.take()).toEqual(['down', 'paused not sent: silenced night', 'resumed not sent: silenced night'])
    story.silence(HOUR)
    story.do('pause')
    story.pass(HOUR)
    expect(story.take()).toEqual(['paused not sent: silenced night', 'paused'])
  })

  it('one silence follows another: the last one ends it, and it is silenced since the first', () => {
    const story = createStory()
    story.silence(HOUR)
    story.do('fail')
    story.pass(HOUR - 1)
    story.silence(HOUR, 'day')
    story.pass(1)
    expect(story.state().hold).toMatchObject({ id: 'day', silencedFrom: NOON })
    story.pass(HOUR - 2)
    expect(story.take()).toEqual(['down not sent: silenced night'])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
    expect(story.last().settled).toMatchObject({ silencedFrom: NOON })
  })

  it('one that is deleted, or stops covering the check, is looked at within a minute', () => {
    const story = createStory()
    story.silence(DAY)
    story.do('fail')
    story.silence(null)
    story.pass(MINUTE - 1)
    expect(story.take()).toEqual(['down not sent: silenced night'])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
  })

  it('a warning in it is not sent later, and the next one after it is', () => {
    const story = createStory()
    story.silence(HOUR)
    story.do('warn')
    story.pass(HOUR)
    expect(story.take()).toEqual(['warned not sent: silenced night'])
    story.do('warn', 'warn')
    expect(story.take()).toEqual(['warned'])
  })

  it('reminders in it are not sent, have no number, and go on after it', () => {
    const story = createStory({ ...SPEC, remindEveryMs: HOUR })
    story.do('fail')
    story.silence(90 * MINUTE)
    story.pass(HOUR)
    expect(story.take()).toEqual(['down', 'down#1 not sent: silenced night'])
    story.pass(30 * MINUTE - 1)
    expect(story.take()).toEqual([])
    story.pass(1)
    expect(story.take()).toEqual(['down#1'])
    story.pass(HOUR)
    expect(story.take()).toEqual(['down#2'])
  })

  it('an acknowledgement in it is passed on', () => {
    const story = createStory()
    story.do('fail')
    story.silence(HOUR)
    story.apply({ kind: 'acknowledge', acknowledged: BY_ADA })
    expect(story.take()).toEqual(['down', 'acknowledged'])
  })

  it('flapping that ends in it is settled at its end; a check that changes in it does not begin to flap', () => {
    const story = createStory()
    for (let change = 0; change < 6; change += 1) story.do('fail', 'success')
    story.take()
    story.silence(HOUR)
    story.do('fail')
    expect(story.take()).toEqual(['down not sent: silenced night'])
    story.pass(HOUR - 1)
    expect(story.state()).toMatchObject({ quietAt: null, notified: 'up' })
    expect(story.take()).toEqual([])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
    story.silence(HOUR)
    for (let change = 0; change < 20; change += 1) story.do('success', 'fail')
    story.take()
    story.pass(HOUR)
    expect(story.take()).toEqual(['down'])
  })

  it('flapping goes on after a shorter silence', () => {
    const story = createStory()
    for (let change = 0; change < 6; change += 1) story.do('fail', 'success')
    story.take()
    story.silence(MINUTE)
    story.do('fail')
    story.pass(10 * MINUTE - 1)
    expect(story.take()).toEqual(['down not sent: silenced night'])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
  })
})

describe('a check that depends on another one', () => {
  it('is not notified as down while the other is down, nor as up after that', () => {
    const story = createStory()
    story.dependsOn(isDown(NOON))
    story.pass(MINUTE)
    story.do('fail')
    expect(story.take()).toEqual(['down not sent: dependency db'])
    story.pass(DAY)
    expect(story.take()).toEqual([])
    story.do('success')
    expect(story.take()).toEqual(['up not sent: dependency db'])
    expect(story.state()).toMatchObject({ hold: null, notified: null, incidentSince: null })
  })

  it('that was notified as down before is notified as up', () => {
    const story = createStory()
    story.do('fail')
    story.dependsOn(isDown(NOON))
    story.do('success')
    expect(story.take()).toEqual(['down', 'up'])
  })

  it('that was notified before is not notified again while the other is down', () => {
    const story = createStory({ ...SPEC, remindEveryMs: HOUR })
    story.do('fail')
    story.dependsOn(isDown(NOON))
    story.pass(HOUR)
    expect(story.take()).toEqual(['down', 'down#1 not sent: dependency db'])
    story.dependsOn(isUp(story.now()))
    story.pass(HOUR)
    expect(story.take()).toEqual(['down#1'])
  })

  it('is notified when it is down its own grace time after the recovery of the other', () => {
    const story = createStory()
    story.dependsOn(isDown(NOON))
    story.do('fail')
    story.pass(HOUR)
    story.dependsOn(isUp(story.now()))
    story.evaluate()
    story.pass(GRACE - 1)
    expect(story.take()).toEqual(['down not sent: dependency db'])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
    expect(story.last().settled).not.toHaveProperty('silencedFrom')
  })

  it('waits again when the other goes down within that time', () => {
    const story = createStory()
    story.dependsOn(isDown(NOON))
    story.do('fail')
    story.pass(HOUR)
    story.dependsOn(isUp(story.now()))
    story.pass(2 * MINUTE)
    story.dependsOn(isDown(story.now()))
    story.pass(HOUR)
    expect(story.take()).toEqual(['down not sent: dependency db'])
  })

  it.each([
    ['is paused', [{ ...isUp(NOON + MINUTE), status: 'paused' as const }]],
    ['is taken away', []],
  ])('is notified at once when the other %s', (_, left) => {
    const story = createStory()
    story.dependsOn(isDown(NOON))
    story.do('fail')
    story.pass(MINUTE)
    story.dependsOn(...left)
    story.evaluate()
    expect(story.take()).toEqual(['down not sent: dependency db', 'down'])
  })

  it('is notified when another one of them has recovered before it went down', () => {
    const story = createStory()
    story.dependsOn(isUp(NOON - MINUTE))
    story.do('fail')
    expect(story.take()).toEqual(['down'])
  })

  it('waits for the last of two', () => {
    const story = createStory()
    story.dependsOn(isDown(NOON), isDown(NOON, 'net'))
    story.do('fail')
    story.dependsOn(isUp(NOON), isDown(NOON, 'net'))
    story.pass(HOUR)
    expect(story.state().hold).toMatchObject({ id: 'net' })
    story.dependsOn(isUp(NOON), isUp(story.now(), 'net'))
    story.pass(GRACE)
    expect(story.take()).toEqual(['down not sent: dependency db', 'down'])
  })

  it('a missed run waits for the evaluation of the other, five seconds at most', () => {
    const story = createStory()
    story.dependsOn({ ...isUp(NOON), wakeAt: UP.dueAt })
    story.pass(2 * DAY + GRACE)
    expect(story.take()).toEqual(['down not sent: dependency db'])
    story.pass(5 * SECOND - 1)
    expect(story.take()).toEqual([])
    story.pass(1)
    expect(story.take()).toEqual(['down'])
  })

  it('a missed run is notified at once where the other is not due', () => {
    const story = createStory()
    story.dependsOn({ ...isUp(NOON), wakeAt: UP.dueAt! + 1 })
    story.pass(2 * DAY + GRACE)
    expect(story.take()).toEqual(['down'])
  })

  it('a failure is notified at once, though the other is due', () => {
    const story = createStory()
    story.dependsOn({ ...isUp(NOON), wakeAt: NOON })
    story.do('fail')
    expect(story.take()).toEqual(['down'])
  })

  it('a silence that ends while the other is down: that is said, and nothing is sent until it has recovered', () => {
    const story = createStory()
    story.do('fail')
    story.pass(MINUTE)
    story.silence(HOUR)
    story.do('success', 'fail')
    story.take()
    story.dependsOn(isDown(NOON))
    story.pass(HOUR)
    expect(story.take()).toEqual(['down not sent: dependency db'])
    expect(story.state().downNotifiedAt).toBeNull()
    story.pass(HOUR)
    story.dependsOn()
    story.pass(MINUTE)
    expect(story.take()).toEqual(['down'])
    expect(story.last().settled).toMatchObject({ silencedFrom: NOON + MINUTE })
  })
})
