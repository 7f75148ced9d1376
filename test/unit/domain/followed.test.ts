import { describe, expect, it } from 'vitest'
import { type CheckState, isRunning, type StoredStatus } from '../../../src/domain/check.ts'
import type { CheckEvent, JobEnd, JobStart } from '../../../src/domain/check-event.ts'
import { LIMITS } from '../../../src/domain/limits.ts'
import { newState, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aState, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

/** Every hour, five minutes to start, two hours to run. */
const SPEC = aCronSpec('0 * * * *', { maxRuntimeMs: 2 * HOUR, awaits: 'start' })
const LATER = NOON + DAY

const start = (runId: string, slotAt: number, job: Partial<JobStart> = {}): CheckEvent => ({
  kind: 'start',
  runId,
  job: { at: slotAt + SECOND, slotAt, createdAt: NOON - DAY, ...job },
})
const end = (kind: 'success' | 'fail', runId: string | null, at: number, job: Partial<JobEnd> = {}): CheckEvent => ({
  kind,
  runId,
  durationMs: null,
  job: { at, createdAt: NOON - DAY, ...job },
})
const success = (runId: string | null, at: number, job?: Partial<JobEnd>) => end('success', runId, at, job)
const fail = (runId: string | null, at: number, job?: Partial<JobEnd>) => end('fail', runId, at, job)
const deadline = (seenUntil: number): CheckEvent => ({ kind: 'deadline', gaps: [], seenUntil })
const ping = (kind: 'success' | 'fail', runId: string | null = null): CheckEvent => ({ kind, runId, durationMs: null })

/** Applies the events, each of them recorded at LATER unless a time is given. */
function apply(state: CheckState, events: readonly CheckEvent[], now = LATER) {
  let last = transition(SPEC, state, events[0]!, now)
  for (const event of events.slice(1)) last = transition(SPEC, last.state, event, now)
  return last
}

const at = (hours: number, minutes = 0) => NOON + hours * HOUR + minutes * MINUTE
/** Up, and the run of the slot at 13:00 is awaited. */
const UP = aState({ expectedAt: at(1), dueAt: at(1, 5) })
const NEW = { ...newState(NOON), expectedAt: at(1), dueAt: at(1, 5) }
const DOWN = aState({ status: 'down', reason: 'missed', since: at(1, 5), expectedAt: null, dueAt: null })
const PAUSED = aState({ status: 'paused', reason: 'paused', since: at(1), expectedAt: null, dueAt: null })

describe('a run that its CronJob replaced', () => {
  const replaced = (runId: string, time: number, createdAt = NOON - DAY): CheckEvent => ({
    kind: 'abandon',
    runId,
    at: time,
    overran: { at: time, createdAt },
  })
  const running = apply(UP, [start('a', at(1))]).state

  it.each([
    ['up', running],
    ['new', { ...running, status: 'new', reason: 'created' } as const],
  ])('takes a check down that is %s', (_, before) => {
    const { state, flip } = apply(before, [replaced('a', at(2))])
    expect(flip).toEqual({ from: before.status, to: 'down', reason: 'overran', at: at(2) })
    expect(state).toMatchObject({ status: 'down', since: at(2), runs: [], expectedAt: null, dueAt: null })
    expect(state.pingsTotal).toBe(before.pingsTotal + 1)
    expect(apply(state, [start('b', at(2)), replaced('b', at(3))]).flip).toBeNull()
    const end = apply(state, [start('b', at(2)), success('b', at(2, 10))])
    expect(end.flip).toMatchObject({ to: 'up', reason: 'recovered' })
    expect(end.state.expectedAt).toBeGreaterThan(at(2))
  })

  it('is recorded no later than now', () => {
    expect(apply(running, [replaced('a', at(2))], at(2) - 1).flip?.at).toBe(at(2) - 1)
  })

  it.each([
    ['the check is down', DOWN, at(2), undefined],
    ['the check is paused since', PAUSED, at(1) - 1, undefined],
    ['a later completion is known', { ...running, lastPingAt: at(2) + SECOND }, at(2), undefined],
    ['it was replaced before the check was created', running, at(2), at(2) + 1],
  ])('changes no status if %s', (_, before, time, createdAt) => {
    const { state, flip } = apply(before, [replaced('a', time, createdAt)])
    expect(flip).toBeNull()
    expect(state.status).toBe(before.status)
    expect(state.runs).toEqual([])
  })

  it('changes the status if a completion of the same second is known, or the check was created then', () => {
    expect(apply({ ...running, lastPingAt: at(2) + 999 }, [replaced('a', at(2), at(2))]).flip?.to).toBe('down')
  })
})

it('a run of a Job is in progress after its deadline too, until its end is reported; one of pings is not', () => {
  const { state } = apply(UP, [start('a', at(1))])
  const [run] = apply(state, [deadline(at(4))]).state.runs
  expect(run!.deadlineAt).toBe(at(3) + SECOND)
  expect(isRunning(run!, at(4))).toBe(true)
  expect(isRunning(run!, run!.startedAt + LIMITS.durationMs - 1)).toBe(true)
  expect(isRunning(run!, run!.startedAt + LIMITS.durationMs)).toBe(false)
  expect(
    isRunning({ ...run!, deadlineAt: run!.startedAt + LIMITS.durationMs + 1 }, run!.startedAt + LIMITS.durationMs),
  ).toBe(true)
  const { slotAt: _, ...ofPings } = run!
  expect([at(3), at(4)].map((now) => isRunning(ofPings, now))).toEqual([true, false])
})

describe('a start', () => {
  it.each([
    ['for the awaited slot', at(1), at(2)],
    ['for a later slot', at(3), at(4)],
    ['of a manual run after the slot', at(1, 20), at(2)],
  ])('%s satisfies it', (_, slotAt, expectedAt) => {
    const { state, flip } = apply(UP, [start('a', slotAt)])
    expect(state).toMatchObject({ expectedAt, dueAt: expectedAt + 5 * MINUTE })
    expect(flip).toBeNull()
  })

  it.each([
    ['for an earlier slot', at(0)],
    ['of a manual run before the slot, however short', at(1) - 1],
  ])('%s leaves the slot awaited', (_, slotAt) => {
    expect(apply(UP, [start('a', slotAt)]).state).toMatchObject({ expectedAt: at(1), dueAt: at(1, 5) })
  })

  it('for an earlier slot leaves the time that a changed spec gave', () => {
    expect(apply({ ...UP, dueAt: at(1, 9) }, [start('a', at(0, 30))]).state.dueAt).toBe(at(1, 9))
  })

  it('that comes after that of a later run leaves what that one satisfied', () => {
    const { state } = apply(UP, [start('b', at(3)), start('a', at(1))])
    expect(state).toMatchObject({ expectedAt: at(4), lastStartAt: at(3) + SECOND })
  })

  it('has the deadline of its own time, however late it is recorded', () => {
    const { state } = apply(UP, [start('a', at(1))])
    expect(state.runs).toEqual([{ id: 'a', startedAt: at(1) + SECOND, deadlineAt: at(3) + SECOND, slotAt: at(1) }])
  })

  it('does not replace the slot after it by the deadline of its run', () => {
    const { flip } = apply(UP, [start('a', at(1)), deadline(LATER)])
    expect(flip).toMatchObject({ reason: 'missed', at: at(2, 5) })
  })

  it('opens the run again in place of the earlier one, and counts once', () => {
    const running = apply(UP, [start('a', at(1))]).state
    const { state } = apply(running, [start('a', at(2), { isStored: true })])
    expect(state.runs).toMatchObject([{ id: 'a', startedAt: at(2) + SECOND }])
    expect(state.pingsTotal).toBe(running.pingsTotal)
  })

  it('forgets runs of a week ago', () => {
    const old = { id: 'old', startedAt: LATER - 8 * DAY, deadlineAt: null, slotAt: LATER - 8 * DAY }
    expect(apply(aState({ runs: [old] }), [start('a', at(1))]).state.runs.map(({ id }) => id)).toEqual(['a'])
  })

  it('gives the run no deadline without a maximum run time', () => {
    const spec = aCronSpec('0 * * * *', { awaits: 'start' })
    expect(transition(spec, UP, start('a', at(1)), LATER).state.runs).toMatchObject([{ id: 'a', deadlineAt: null }])
  })

  it('whose container has reported its end before it was recorded makes the end of its Job a log', () => {
    const running = apply(UP, [start('a', at(1), { isOverruled: true })]).state
    expect(running.runs).toMatchObject([{ isOverruled: true }])
    expect(apply(running, [success('a', at(1, 10))]).isLogged).toBe(true)
  })

  it('opens no run that is over, and counts', () => {
    const { state } = apply(UP, [start('a', at(1), { isOver: true })])
    expect(state).toMatchObject({ runs: [], expectedAt: at(2), pingsTotal: UP.pingsTotal + 1 })
  })

  it('opens no run beside a hundred, and satisfies its slot', () => {
    const runs = Array.from({ length: LIMITS.openRuns }, (_, index) => ({
      id: `${index}`,
      startedAt: at(0),
      deadlineAt: at(30),
    }))
    const { state, runRefused } = apply({ ...UP, runs }, [start('a', at(1))])
    expect([state.runs.length, runRefused, state.expectedAt]).toEqual([100, true, at(2)])
  })

  it.each<[StoredStatus, CheckState]>([
    ['down', DOWN],
    ['paused', PAUSED],
  ])('awaits nothing of a check that is %s', (status, state) => {
    expect(apply(state, [start('a', at(1))]).state).toMatchObject({ status, expectedAt: null, dueAt: null })
  })

  it('is watched of a check that is down, and during a pause', () => {
    const deadlineOf = (state: CheckState) => apply(state, [start('a', at(1))]).state.runs[0]!.deadlineAt
    expect([deadlineOf(DOWN), deadlineOf(PAUSED)]).toEqual([at(3) + SECOND, at(3) + SECOND])
  })

  it('of a new check that awaits nothing makes it await the first slot of its own time', () => {
    expect(apply(newState(NOON), [start('old', at(-2))]).state).toMatchObject({ expectedAt: at(1), dueAt: at(1, 5) })
    expect(apply(newState(NOON), [start('a', at(1))]).state).toMatchObject({ expectedAt: at(2), dueAt: at(2, 5) })
  })

  it('has a maximum run time below the grace time, from the first millisecond of the check', () => {
    const spec = { ...SPEC, maxRuntimeMs: MINUTE }
    const deadlineOf = (startedAt: number) => {
      const event = start('a', NOON, { at: startedAt, createdAt: NOON })
      return transition(spec, NEW, event, LATER).state.runs[0]!.deadlineAt
    }
    expect([NOON, NOON - 1].map(deadlineOf)).toEqual([at(0, 1), at(0, 5)])
  })

  it('of the container counts for the slots up to its time', () => {
    const { state } = apply(UP, [{ kind: 'start', runId: null }], at(1, 3))
    expect(state).toMatchObject({ expectedAt: at(2), runs: [{ id: null, startedAt: at(1, 3), deadlineAt: at(3, 3) }] })
    expect(apply(UP, [{ kind: 'start', runId: null }], at(1) - 1).state.expectedAt).toBe(at(1))
  })
})

describe('a completion', () => {
  it('of a run that has started leaves the slot after it awaited: it may be blocked', () => {
    const { state } = apply(UP, [start('a', at(1)), success('a', at(2, 20))])
    expect(state).toMatchObject({ status: 'up', expectedAt: at(2), lastPingAt: at(2, 20) })
  })

  it.each<[string, CheckEvent]>([
    ['of a run whose start is not known', success('a', at(2, 20))],
    ['that is known from the CronJob alone', success(null, at(2, 20))],
  ])('%s satisfies all slots up to its time', (_, event) => {
    expect(apply(UP, [event]).state.expectedAt).toBe(at(3))
  })

  it('that is known from the CronJob alone leaves the run of the container open', () => {
    const { state } = apply(UP, [{ kind: 'start', runId: null }, success(null, at(2, 20))], at(1, 1))
    expect(state.runs).toMatchObject([{ id: null }])
  })

  it('is dated by the Job, and lasts from its start to its end', () => {
    const { state, durationMs } = apply(UP, [start('a', at(1)), success('a', at(1, 20))])
    expect([state.lastPingAt, state.lastSuccessAt, durationMs]).toEqual([at(1, 20), at(1, 20), 20 * MINUTE - SECOND])
  })

  it.each([
    ['new', NEW, 'first_success'],
    ['down', DOWN, 'recovered'],
  ] as const)('turns a check that is %s up at the time of the Job', (_, state, reason) => {
    const outcome = apply(state, [success('a', at(1, 20))])
    expect(outcome.flip).toMatchObject({ to: 'up', reason, at: at(1, 20) })
    expect(outcome.state).toMatchObject({ since: at(1, 20), expectedAt: at(2) })
  })

  it('fails a check at the time of the Job, and nothing is awaited until it recovers', () => {
    const { state, flip } = apply(UP, [fail('a', at(1, 20))])
    expect(flip).toMatchObject({ from: 'up', to: 'down', reason: 'failed', at: at(1, 20) })
    expect(state).toMatchObject({ expectedAt: null, dueAt: null })
    expect(apply(state, [deadline(LATER)]).flip).toBeNull()
  })

  it('whose time is before the last flip is dated at that flip: clocks differ by some seconds', () => {
    expect(apply(DOWN, [success('a', at(1, 4))]).flip).toMatchObject({ reason: 'recovered', at: at(1, 5) })
  })

  it('whose time is ahead of ours is dated at our time', () => {
    expect(apply(UP, [fail('a', at(1, 20))], at(1, 19)).flip).toMatchObject({ at: at(1, 19) })
  })

  describe('of a check that is down', () => {
    const failed = apply(UP, [start('a', at(1)), fail('a', at(1, 1))]).state
    const expectedAfter = (...events: CheckEvent[]) => apply(failed, events).state.expectedAt

    it('awaits the slot that has passed and is not yet due: whether its run starts is not known', () => {
      expect(expectedAfter(start('b', at(1, 40)), success('b', at(2, 2)))).toBe(at(2))
      expect(expectedAfter(start('b', at(1, 40)), success('b', at(2, 5) - 1))).toBe(at(2))
    })

    it('awaits no slot that was due by then: no run can satisfy it any more', () => {
      expect(expectedAfter(start('b', at(1, 40)), success('b', at(2, 5)))).toBe(at(3))
      expect(expectedAfter(start('b', at(1, 40)), success('b', at(7, 20)))).toBe(at(8))
    })

    it.each<[string, CheckEvent[]]>([
      ['of the run itself', []],
      ['of a run that ends later', [start('c', at(2))]],
      ['of a run that has failed as well', [start('c', at(2)), fail('c', at(2, 1))]],
      ['of a run that was deleted', [start('c', at(2)), { kind: 'abandon', runId: 'c', at: null }]],
    ])('awaits no slot that has seen the start %s', (_, events) => {
      const slotAt = events.length === 0 ? at(2) : at(1, 40)
      expect(expectedAfter(start('b', slotAt), ...events, success('b', at(2, 2)))).toBe(at(3))
    })

    it('awaits no slot of before the last start where no run was open after that', () => {
      expect(expectedAfter(start('c', at(2)), fail('c', at(2, 1)), start('b', at(1, 58)), success('b', at(2, 2)))).toBe(
        at(3),
      )
    })

    it('without a start before it satisfies all slots up to its time', () => {
      expect(expectedAfter(success('b', at(2, 2)))).toBe(at(3))
      expect(expectedAfter(start('c', at(2)), success('b', at(1, 59)))).toBe(at(3))
    })

    it('that the container reports has seen its own start', () => {
      const pinged = apply(failed, [{ kind: 'start', runId: null }], at(1, 40)).state
      expect(apply(pinged, [ping('success')], at(2, 2)).state.expectedAt).toBe(at(2))
    })

    it('awaits a period after the last start, or after itself where that was due', () => {
      const spec = aCronSpec('0 * * * *', { schedule: { kind: 'period', periodMs: HOUR }, awaits: 'start' })
      const expected = (endedAt: number) => {
        const started = transition(spec, DOWN, start('b', at(1, 10)), LATER).state
        return transition(spec, started, success('b', endedAt), LATER).state.expectedAt
      }
      expect(expected(at(2, 15) - 1)).toBe(at(2, 10))
      expect(expected(at(2, 15))).toBe(at(3, 15))
    })
  })

  it('ends the watch of runs whose overrun was reported, when the check recovers; their ends still belong to them', () => {
    const hung = { id: 'hung', startedAt: at(-1), deadlineAt: at(1) }
    const open = { id: 'open', startedAt: at(1), deadlineAt: at(3) }
    const { state } = apply({ ...DOWN, runs: [hung, open] }, [success('a', at(1, 20))])
    expect(state.runs).toEqual([{ ...hung, deadlineAt: null }, open])
    expect(apply(state, [success('hung', at(2, 20))])).toMatchObject({ state: { expectedAt: at(2), runs: [open] } })
  })
})

describe('a late completion', () => {
  const RECENT = { ...UP, lastPingAt: at(1, 30), lastSuccessAt: at(1, 30) }

  it.each<[string, CheckState]>([
    ['up', RECENT],
    ['down', { ...DOWN, reason: 'failed', since: at(1, 30), lastPingAt: at(1, 30) }],
  ])('changes no status of a check that is %s, closes its run and counts', (status, before) => {
    const open = { ...before, runs: [{ id: 'a', startedAt: at(1), deadlineAt: at(3) }] }
    for (const event of [success('a', at(1, 29)), fail('a', at(1, 29))]) {
      const { state, flip } = apply(open, [event])
      expect(flip).toBeNull()
      expect(state).toMatchObject({ status, lastPingAt: at(1, 30), runs: [], pingsTotal: before.pingsTotal + 1 })
    }
  })

  it('is known as the last success if it is', () => {
    const state = { ...RECENT, lastSuccessAt: at(0) }
    expect(apply(state, [success('a', at(1, 29))]).state.lastSuccessAt).toBe(at(1, 29))
    expect(apply(state, [success('a', at(-1))]).state.lastSuccessAt).toBe(at(0))
  })

  it('is one that is earlier by a second: a Job has whole seconds, and a ping of the container milliseconds', () => {
    const pinged = { ...UP, lastPingAt: at(1, 30) + 999 }
    expect(apply(pinged, [fail('a', at(1, 30))]).flip).toMatchObject({ reason: 'failed' })
    expect(apply(pinged, [fail('a', at(1, 30) - SECOND)]).flip).toBeNull()
  })

  it.each<[string, CheckState]>([
    ['paused', PAUSED],
    ['resumed', { ...NEW, reason: 'resumed', since: at(1) }],
  ])('of before the check was %s changes no status', (_, before) => {
    for (const event of [success('a', at(0, 59)), fail('a', at(0, 59))]) {
      const { state, flip } = apply({ ...before, lastPingAt: null }, [event])
      expect([flip, state.status, state.lastPingAt]).toEqual([null, before.status, at(0, 59)])
    }
  })

  it('of the moment at which the check was resumed is none', () => {
    const resumed: CheckState = { ...NEW, reason: 'resumed', since: at(1), lastPingAt: null }
    expect(apply(resumed, [fail('a', at(1))]).flip).toMatchObject({ reason: 'failed' })
  })
})

describe('what ended before the check was created', () => {
  const createdAt = NOON
  const past = (minutes: number) => NOON - minutes * MINUTE

  it.each<[string, CheckEvent[], StoredStatus]>([
    ['a success turns it up', [success('a', past(9), { createdAt })], 'up'],
    ['a failure leaves it new', [fail('a', past(9), { createdAt })], 'new'],
    ['a failure leaves it up', [success('a', past(9), { createdAt }), fail('b', past(5), { createdAt })], 'up'],
    [
      'a success that is recorded after a newer failure leaves it new',
      [fail('b', past(5), { createdAt }), success('a', past(9), { createdAt })],
      'new',
    ],
    ['a success before a failure leaves it new', [success('a', past(9), { createdAt, isSuperseded: true })], 'new'],
    [
      'a success after a failure turns it up',
      [fail('a', past(9), { createdAt }), success('b', past(5), { createdAt })],
      'up',
    ],
    [
      'a failure that is recorded late leaves it up',
      [success('b', past(5), { createdAt }), fail('a', past(9), { createdAt })],
      'up',
    ],
  ])('%s', (_, events, status) => {
    const { state } = apply(NEW, events)
    expect(state).toMatchObject({ status, expectedAt: at(1), dueAt: at(1, 5), pingsTotal: events.length })
    expect(state.incidentSince).toBeNull()
  })

  it('is known as its last run', () => {
    expect(apply(NEW, [fail('a', past(9), { createdAt })]).state).toMatchObject({ lastPingAt: past(9) })
    expect(apply(NEW, [success('a', past(9), { createdAt })]).state).toMatchObject({ lastPingAt: past(9), since: NOON })
  })

  it('keeps the last completion of a check that is up a success', () => {
    const { state } = apply(NEW, [success('a', past(9), { createdAt }), fail('b', past(5), { createdAt })])
    expect([state.lastPingAt, state.lastSuccessAt]).toEqual([past(9), past(9)])
  })

  it('never alarms of a check that was revived, however old that is', () => {
    expect(apply(NEW, [fail('a', past(1), { createdAt: past(90) })]).state.status).toBe('new')
    const up = apply(NEW, [success('a', past(9), { createdAt: past(90) })]).state
    expect(apply(up, [fail('b', past(1), { createdAt: past(90) })]).state.status).toBe('up')
  })

  it('is the last completion of a check that is up if it is a success', () => {
    const { state } = apply(NEW, [success('a', past(9), { createdAt }), success('b', past(5), { createdAt })])
    expect([state.lastPingAt, state.lastSuccessAt]).toEqual([past(5), past(5)])
  })

  it('does not end the outage of a check that is down', () => {
    expect(apply(DOWN, [success('a', past(9), { createdAt })])).toMatchObject({ state: { status: 'down' }, flip: null })
  })

  it('has the first millisecond of the check as its limit', () => {
    const fresh = { ...NEW, since: NOON - HOUR }
    expect(apply(fresh, [fail('a', NOON - 1, { createdAt })]).state.status).toBe('new')
    expect(apply(fresh, [fail('a', NOON, { createdAt })]).state.status).toBe('down')
  })
})

describe('a fail that the container sent', () => {
  const running = apply(UP, [start('a', at(1))]).state

  it('is not overridden by the success of its Job, which is stored as a log', () => {
    const failed = apply(running, [ping('fail')], at(1, 10)).state
    const { state, flip, isLogged } = apply(failed, [success('a', at(1, 11))])
    expect([flip, isLogged, state.status, state.runs]).toEqual([null, true, 'down', []])
    expect(state).toMatchObject({ lastPingAt: at(1, 10), pingsTotal: failed.pingsTotal + 1 })
  })

  it('is overridden by a success that the container sent after it', () => {
    const failed = apply(running, [ping('fail')], at(1, 10)).state
    const recovered = apply(failed, [ping('success')], at(1, 11)).state
    expect(apply(recovered, [success('a', at(1, 12))])).toMatchObject({ isLogged: false, state: { status: 'up' } })
  })

  it('does not concern the next run', () => {
    const failed = apply(running, [ping('fail')], at(1, 10)).state
    const next = apply(failed, [fail('a', at(1, 11)), start('b', at(2)), success('b', at(2, 10))])
    expect(next.flip).toMatchObject({ reason: 'recovered' })
  })

  it('is followed by the fail of its Job without a second flip', () => {
    const failed = apply(running, [ping('fail')], at(1, 10)).state
    expect(apply(failed, [fail('a', at(1, 11))])).toMatchObject({ flip: null, isLogged: false })
  })

  describe('while two Jobs run', () => {
    const both = apply(running, [start('b', at(1, 5))]).state

    it('without a run id marks none: its Job is not known', () => {
      const failed = apply(both, [ping('fail')], at(1, 10)).state
      expect(apply(failed, [success('a', at(1, 11))])).toMatchObject({ isLogged: false, state: { status: 'up' } })
      expect(apply(failed, [success('b', at(1, 11))])).toMatchObject({ isLogged: false, state: { status: 'up' } })
    })

    it('with the id of one Job marks no other one', () => {
      const failed = apply(both, [ping('fail', 'a')], at(1, 10)).state
      expect(apply(failed, [success('b', at(1, 11))])).toMatchObject({ isLogged: false, state: { status: 'up' } })
    })
  })

  it('with a run id of its own marks the one Job that runs', () => {
    const own = apply(running, [{ kind: 'start', runId: 'own' }], at(1, 1)).state
    const failed = apply(own, [ping('fail', 'own')], at(1, 10)).state
    expect(apply(failed, [success('a', at(1, 11))])).toMatchObject({ isLogged: true, state: { status: 'down' } })
  })

  it('with the id of the run is known from the history', () => {
    const { state, isLogged } = apply(DOWN, [success('a', at(1, 20), { isOverruled: true })])
    expect([isLogged, state.status]).toEqual([true, 'down'])
  })
})

describe('a run that the container started without an id', () => {
  const running = apply(UP, [start('a', at(1))]).state
  const pinged = apply(running, [{ kind: 'start', runId: null }], at(1, 1)).state
  const idsAfter = (state: CheckState, event: CheckEvent) => apply(state, [event]).state.runs.map(({ id }) => id)

  it.each<[string, CheckEvent]>([
    ['succeeds', success('a', at(1, 20))],
    ['fails', fail('a', at(1, 20))],
    ['was deleted', { kind: 'abandon', runId: 'a', at: at(1, 20) }],
    ['is gone', { kind: 'abandon', runId: 'a', at: null }],
  ])('ends with its Job, which %s', (_, event) => {
    expect(idsAfter(pinged, event)).toEqual([])
  })

  it('is perhaps that of another Job that runs', () => {
    const both = apply(pinged, [start('b', at(1, 5))]).state
    expect(idsAfter(both, success('a', at(1, 20)))).toEqual([null, 'b'])
    expect(idsAfter(both, { kind: 'abandon', runId: 'a', at: null })).toEqual([null, 'b'])
  })

  it('stays when another run of its own ends, or one that is not open', () => {
    expect(idsAfter(pinged, success('other', at(1, 20)))).toEqual(['a', null])
    const alone = apply(UP, [{ kind: 'start', runId: null }], at(1, 1)).state
    expect(idsAfter(alone, { kind: 'abandon', runId: 'a', at: null })).toEqual([null])
  })

  it('is another one than those with an id of their own, whose ends it reports', () => {
    const own = apply(pinged, [{ kind: 'start', runId: 'own' }], at(1, 2)).state
    expect(idsAfter(own, success('a', at(1, 20)))).toEqual(['own'])
  })

  it('is that of the next Job if it began after the end of this one', () => {
    const next = apply(running, [{ kind: 'start', runId: null }], at(1, 20) + SECOND).state
    expect(idsAfter(next, success('a', at(1, 20)))).toEqual([null])
    expect(idsAfter(next, success('a', at(1, 20) + SECOND))).toEqual([])
  })
})

describe('a run that has no completion', () => {
  const running = apply(UP, [start('a', at(1)), start('b', at(1))]).state

  it.each([
    ['is closed', null, 0],
    ['is closed by a log, which counts', at(1, 3), 1],
  ])('%s', (_, time, counted) => {
    const { state, flip } = apply(running, [{ kind: 'abandon', runId: 'a', at: time }])
    expect([flip, state.runs.map(({ id }) => id)]).toEqual([null, ['b']])
    expect(state.pingsTotal - running.pingsTotal).toBe(counted)
    expect(state).toMatchObject({ expectedAt: running.expectedAt, lastPingAt: running.lastPingAt })
  })
})

describe('a deadline', () => {
  it.each([
    [at(1, 5) - 1, null],
    [at(1, 5), at(1, 5)],
  ])('is passed once all Jobs up to it are recorded (%s)', (seenUntil, flippedAt) => {
    expect(apply(UP, [deadline(seenUntil)]).flip?.at ?? null).toBe(flippedAt)
  })

  it('is not passed before its time, however far Jobs are seen', () => {
    expect(apply(UP, [deadline(LATER)], at(1, 5) - 1).flip).toBeNull()
  })

  it('is not postponed by our own downtime: Jobs tell of it later', () => {
    const gaps = [{ startedAt: at(1) - MINUTE, endedAt: at(1, 4) }]
    const { flip, outage } = apply(UP, [{ kind: 'deadline', gaps, seenUntil: LATER }])
    expect([flip?.at, outage]).toEqual([at(1, 5), null])
  })

  it('of a run is passed beside the slots, and leaves none awaited', () => {
    const { flip, state } = apply({ ...UP, expectedAt: at(9), dueAt: at(9, 5) }, [start('a', at(1)), deadline(LATER)])
    expect(flip).toMatchObject({ reason: 'overran', at: at(3) + SECOND })
    expect(state.expectedAt).toBeNull()
  })

  it.each([
    ['over time by then has none', at(-2), null],
    ['not yet over time by then has it no earlier than the grace time after that', at(-2) + 1, at(0, 5)],
    ['over time later has its own', at(-1), at(1)],
  ])('of a run that started before the check was watched, and was %s', (_, startedAt, deadlineAt) => {
    const started = start('a', startedAt, { at: startedAt, createdAt: NOON })
    expect(apply({ ...NEW, since: at(-9) }, [started]).state.runs).toMatchObject([{ deadlineAt }])
    // A revived check is older than that, and a resumed one as well.
    const old = start('a', startedAt, { at: startedAt })
    expect(apply(NEW, [old]).state.runs).toMatchObject([{ deadlineAt }])
    expect(apply({ ...NEW, reason: 'resumed' }, [old]).state.runs).toMatchObject([{ deadlineAt }])
    const revived = apply(NEW, [success('b', at(-1)), old]).state
    expect(revived).toMatchObject({ status: 'up', runs: [{ deadlineAt }] })
  })

  it('of a run that hung before the check was created does not alarm about the past', () => {
    const started = start('a', at(-5), { createdAt: NOON })
    expect(apply(NEW, [started, deadline(at(0, 59))]).flip).toBeNull()
  })

  it('does not end flapping before all Jobs up to its end are recorded', () => {
    const flapping: CheckState = { ...DOWN, notified: 'up', quietAt: at(2) }
    expect(apply(flapping, [deadline(at(2) - 1)]).settled).toBeNull()
    expect(apply(flapping, [deadline(at(2))]).settled).toMatchObject({ type: 'check.down' })
  })
})

describe('a changed spec', () => {
  const update = (state: CheckState, spec = SPEC, now = at(0, 30)) =>
    transition(spec, state, { kind: 'update' }, now).state
  const half = aCronSpec('30 * * * *', { awaits: 'start' })

  it('keeps the awaited slot if it is one still, also one that is late', () => {
    expect(update(UP)).toMatchObject({ expectedAt: at(1), dueAt: at(1, 5) })
    expect(update(UP, SPEC, at(1, 3))).toMatchObject({ expectedAt: at(1), dueAt: at(1, 8) })
  })

  it('awaits the next slot from now on if it is none', () => {
    expect(update(UP, half)).toMatchObject({ expectedAt: at(1, 30), dueAt: at(1, 35) })
  })

  it('makes nothing due before now + grace', () => {
    expect(update(UP, { ...SPEC, graceMs: 0 }, at(1, 3))).toMatchObject({ expectedAt: at(1), dueAt: at(1, 3) })
    expect(update(UP, { ...SPEC, graceMs: MINUTE }, at(1, 3))).toMatchObject({ dueAt: at(1, 4) })
  })

  it('changes the deadlines of open runs', () => {
    const running = { ...UP, runs: [{ id: 'a', startedAt: at(0), deadlineAt: at(2) }] }
    expect(update(running, { ...SPEC, maxRuntimeMs: 3 * HOUR }).runs).toMatchObject([{ deadlineAt: at(3) }])
    expect(update(running, { ...SPEC, maxRuntimeMs: MINUTE }).runs).toMatchObject([{ deadlineAt: at(0, 35) }])
  })

  it('changes no run whose overrun is known, and those of a paused check', () => {
    const longer = { ...SPEC, maxRuntimeMs: 9 * HOUR }
    const over = { ...DOWN, runs: [{ id: 'a', startedAt: at(-4), deadlineAt: at(-2) }] }
    expect(update(over, longer).runs).toEqual(over.runs)
    const paused = { ...PAUSED, runs: [{ id: 'a', startedAt: at(0), deadlineAt: at(2) }] }
    expect(update(paused, longer).runs).toMatchObject([{ deadlineAt: at(9) }])
    // It follows nothing any more.
    expect(update(paused, aCronSpec('0 * * * *')).runs).toMatchObject([{ deadlineAt: null }])
  })

  it('awaits nothing more if its schedule has no time any more', () => {
    expect(update(UP, aCronSpec('0 0 30 2 *', { awaits: 'start' }))).toMatchObject({ expectedAt: null, dueAt: null })
  })

  it('awaits the next slot of a check that awaited none, but for one that is not armed', () => {
    const none = { ...UP, expectedAt: null, dueAt: null }
    const period = aCronSpec('0 * * * *', { schedule: { kind: 'period', periodMs: HOUR }, awaits: 'start' })
    expect(update(none)).toMatchObject({ expectedAt: at(1), dueAt: at(1, 5) })
    expect(update(none, period)).toMatchObject({ expectedAt: at(1, 30) })
    expect(update(NEW, half)).toMatchObject({ expectedAt: at(1, 30), dueAt: at(1, 35) })
    const unarmed = { ...newState(NOON), runs: [{ id: 'a', startedAt: at(0), deadlineAt: null }] }
    expect(update(unarmed, { ...SPEC, maxRuntimeMs: null })).toMatchObject({ expectedAt: null, dueAt: null })
  })

  it.each([
    ['down', DOWN],
    ['paused', PAUSED],
    ['not armed', newState(NOON)],
  ])('awaits nothing of a check that is %s', (_, state) => {
    expect(update(state)).toMatchObject({ expectedAt: null, dueAt: null })
  })

  it('awaits the next slot of a check that awaited the end of a run until now', () => {
    const open = { ...UP, expectedAt: null, dueAt: null, runs: [{ id: null, startedAt: at(0), deadlineAt: at(2) }] }
    expect(update(open)).toMatchObject({ expectedAt: at(1) })
    expect(update({ ...open, status: 'new' })).toMatchObject({ expectedAt: at(1) })
  })

  it('of a period keeps what is at most a period ahead', () => {
    const period = aCronSpec('0 * * * *', { schedule: { kind: 'period', periodMs: HOUR }, awaits: 'start' })
    expect(update(UP, period).expectedAt).toBe(at(1))
    expect(update({ ...UP, expectedAt: at(4) }, period).expectedAt).toBe(at(1, 30))
  })
})

it('a Job of a check that follows nothing any more does not fail it while it is paused', () => {
  const { state, flip } = transition(aCronSpec('0 * * * *'), PAUSED, fail('a', at(2)), LATER)
  expect([state.status, flip]).toEqual(['paused', null])
})

describe('a run during a pause', () => {
  const running = apply(UP, [start('a', at(1))]).state
  const paused = transition(SPEC, running, { kind: 'pause' }, at(1, 10)).state
  const LATE = at(3) + SECOND

  it('that began before it goes on, and a success of it changes no status', () => {
    expect(paused.runs).toEqual([{ id: 'a', startedAt: at(1) + SECOND, deadlineAt: LATE, slotAt: at(1) }])
    expect(apply(paused, [success('a', at(1, 20))])).toMatchObject({
      flip: null,
      durationMs: 20 * MINUTE - SECOND,
      state: { status: 'paused', runs: [] },
    })
    expect(apply(paused, [fail('a', at(1, 20))]).flip).toMatchObject({ from: 'paused', to: 'down', at: at(1, 20) })
  })

  it.each<[string, readonly CheckEvent[]]>([
    ['a Job', [start('m', at(5), { at: at(5) }), fail('m', at(5, 1))]],
    ['a Job whose start is not known', [fail('m', at(5, 1))]],
    ['a Job, in the second of the pause', [fail('m', at(1))]],
  ])('fails the check, if %s fails: a person started it', (_, events) => {
    const since = at(1) + SECOND - 1
    const { state, flip, notice } = apply({ ...PAUSED, since }, events)
    expect(flip).toMatchObject({ from: 'paused', to: 'down', reason: 'failed' })
    expect(notice).toMatchObject({ type: 'check.down', from: 'paused' })
    expect(state).toMatchObject({ status: 'down', expectedAt: null, dueAt: null, runs: [] })
  })

  it('fails the check, if its container says so', () => {
    expect(apply(PAUSED, [ping('fail')]).flip).toMatchObject({ from: 'paused', to: 'down', reason: 'failed' })
    const pinged = { ...SPEC, awaits: 'completion' } as const
    expect(transition(pinged, PAUSED, ping('fail'), LATER).flip).toBeNull()
  })

  it('changes nothing, if it failed before the pause, before the check existed, or before a later completion', () => {
    expect(apply(PAUSED, [fail('m', at(1) - SECOND)]).flip).toBeNull()
    expect(apply(PAUSED, [fail('m', at(5), { createdAt: at(6) })]).flip).toBeNull()
    expect(apply({ ...PAUSED, lastPingAt: at(6) }, [fail('m', at(5))]).flip).toBeNull()
  })

  it('fails the check, if it takes too long', () => {
    const before = apply(PAUSED, [start('m', at(5), { at: at(5) })]).state
    const expire = (seenUntil: number) => transition(SPEC, before, deadline(seenUntil), LATER)
    expect(expire(at(7) - 1).flip).toBeNull()
    expect(expire(at(7)).flip).toMatchObject({ from: 'paused', to: 'down', reason: 'overran', at: at(7) })
    expect(apply(paused, [deadline(LATE)]).flip).toMatchObject({ reason: 'overran', at: LATE })
  })

  it('of which it is known that it takes too long does not fail the check again', () => {
    const down = apply(running, [deadline(LATE)]).state
    expect(down).toMatchObject({ status: 'down', runs: [{ deadlineAt: LATE }] })
    const { state } = transition(SPEC, down, { kind: 'pause' }, LATE)
    expect(state).toMatchObject({ status: 'paused', runs: [{ deadlineAt: null }] })
    expect(apply(state, [deadline(LATER)]).flip).toBeNull()
  })

  it('ends the failure of one before it with a success', () => {
    const down = apply(PAUSED, [fail('m', at(5))]).state
    const { flip, notice } = apply(down, [start('n', at(6), { at: at(6) }), success('n', at(6, 1))])
    expect(flip).toMatchObject({ from: 'down', to: 'up', reason: 'recovered' })
    expect(notice).toMatchObject({ type: 'check.up', downSince: at(5) })
  })

  it('is watched after it as before', () => {
    expect(transition(SPEC, paused, { kind: 'resume' }, at(2, 10)).state.runs).toEqual(paused.runs)
  })
})

describe('a check that is armed or resumed', () => {
  it('awaits the next slot, without a tolerance', () => {
    const armed = transition(SPEC, newState(NOON), { kind: 'arm' }, at(1) - 1).state
    expect(armed).toMatchObject({ expectedAt: at(1), dueAt: at(1, 5) })
    expect(transition(SPEC, PAUSED, { kind: 'resume' }, at(1)).state.expectedAt).toBe(at(2))
  })

  it('awaits a period after the last start', () => {
    const spec = aCronSpec('0 * * * *', { schedule: { kind: 'period', periodMs: HOUR }, awaits: 'start' })
    const { state } = transition(spec, UP, start('a', at(0, 30)), LATER)
    expect(state.expectedAt).toBe(at(1, 30))
  })
})
