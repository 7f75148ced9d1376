import { describe, expect, it } from 'vitest'
import { type CheckState, isOpen, STATUSES, type StoredStatus, shownStatus } from '../../../src/domain/check.ts'
import { type CheckEvent, NEXT } from '../../../src/domain/check-event.ts'
import { LIMITS, RUN_MEMORY_MS } from '../../../src/domain/limits.ts'
import { deadlineOf, newState, transition } from '../../../src/domain/transition.ts'
import { aCronSpec, aSpec, aState, DAY, HOUR, MINUTE, NOON, SECOND } from '../../support/builders.ts'

const success = (runId: string | null = null, durationMs: number | null = null): CheckEvent => ({
  kind: 'success',
  runId,
  durationMs,
})
const warn = (runId: string | null = null): CheckEvent => ({ kind: 'warn', runId, durationMs: null })
const fail = (runId: string | null = null): CheckEvent => ({ kind: 'fail', runId, durationMs: null })
const start = (runId: string | null = null): CheckEvent => ({ kind: 'start', runId })
const deadline = (...gaps: { startedAt: number; endedAt: number }[]): CheckEvent => ({ kind: 'deadline', gaps })

const IN: Record<StoredStatus, CheckState> = {
  new: aState({ status: 'new', lastPingAt: null, lastSuccessAt: null }),
  up: aState(),
  down: aState({ status: 'down', expectedAt: null, dueAt: null }),
  paused: aState({ status: 'paused', expectedAt: null, dueAt: null }),
}
const LATER = NOON + 2 * HOUR

/** The table of the design, in words: status, event, next status, reason of the flip or none. */
const TABLE: [StoredStatus, CheckEvent, StoredStatus, string | null][] = [
  ['new', success(), 'up', 'first_success'],
  ['new', warn(), 'up', 'first_success'],
  ['new', fail(), 'down', 'failed'],
  ['new', deadline(), 'down', 'missed'],
  ['new', { kind: 'pause' }, 'paused', 'paused'],
  ['new', { kind: 'resume' }, 'new', null],
  ['up', success(), 'up', null],
  ['up', warn(), 'up', null],
  ['up', fail(), 'down', 'failed'],
  ['up', deadline(), 'down', 'missed'],
  ['up', { kind: 'pause' }, 'paused', 'paused'],
  ['up', { kind: 'resume' }, 'up', null],
  ['down', success(), 'up', 'recovered'],
  ['down', warn(), 'up', 'recovered'],
  ['down', fail(), 'down', null],
  ['down', deadline(), 'down', null],
  ['down', { kind: 'pause' }, 'paused', 'paused'],
  ['down', { kind: 'resume' }, 'down', null],
  ['paused', success(), 'paused', null],
  ['paused', warn(), 'paused', null],
  ['paused', fail(), 'paused', null],
  ['paused', deadline(), 'paused', null],
  ['paused', { kind: 'pause' }, 'paused', null],
  ['paused', { kind: 'resume' }, 'new', 'resumed'],
]

const QUIET: CheckEvent[] = [
  start(),
  { kind: 'log' },
  { kind: 'update' },
  { kind: 'arm' },
  { kind: 'disarm' },
  { kind: 'revive', kept: newState(NOON) },
]

describe('the transition table', () => {
  it('has a row here for every cell', () => {
    const cells = STATUSES.flatMap((status) => Object.keys(NEXT[status]).map((kind) => `${status} ${kind}`))
    expect(TABLE.map(([status, event]) => `${status} ${event.kind}`).sort()).toEqual(cells.sort())
  })

  it.each(TABLE.map(([from, event, to, reason]) => ({ from, event, to, reason, kind: event.kind })))(
    '$from on $kind: $to, flip $reason',
    ({ from, event, to, reason }) => {
      const { state, flip } = transition(aSpec(), IN[from], event, LATER)
      expect(state.status).toBe(to)
      expect(flip?.reason ?? null).toBe(reason)
      if (flip !== null)
        expect({ from: flip.from, to: flip.to, since: state.since }).toEqual({ from, to, since: flip.at })
      else expect(state.since).toBe(IN[from].since)
    },
  )

  it('a status that a deadline does not change has no deadline', () => {
    const runs = [{ id: null, startedAt: NOON, deadlineAt: NOON + MINUTE }]
    const deadlines = STATUSES.map((status) => [status, deadlineOf({ ...IN.up, status, runs })])
    expect(deadlines).toEqual([
      ['new', NOON + MINUTE],
      ['up', NOON + MINUTE],
      ['down', null],
      // Of a run whose source is suspended.
      ['paused', NOON + MINUTE],
    ])
  })

  it.each(QUIET)('no status is changed by the event $kind', (event) => {
    for (const before of Object.values(IN)) {
      const { state, flip } = transition(aSpec(), before, event, LATER)
      expect([state.status, state.since, flip]).toEqual([before.status, before.since, null])
    }
  })
})

describe('completions', () => {
  it('a completion expects the next one a period later, due after the grace time', () => {
    const { state } = transition(aSpec(), IN.up, success(), LATER)
    expect(state).toMatchObject({ lastPingAt: LATER, expectedAt: LATER + HOUR, dueAt: LATER + HOUR + 5 * MINUTE })
  })

  it('a completion a little before a cron slot covers that slot', () => {
    // Slots an hour apart, so a completion up to min(grace, 6 min) early counts for the slot.
    const spec = aCronSpec('0 * * * *', { graceMs: HOUR })
    const at = (minutes: number) => transition(spec, IN.up, success(), NOON + minutes * MINUTE).state.expectedAt
    expect(at(54)).toBe(NOON + 2 * HOUR)
    expect(at(53)).toBe(NOON + HOUR)
    expect(at(60)).toBe(NOON + 2 * HOUR)
  })

  it('a completion never covers a slot that is further ahead than the grace time', () => {
    const spec = aCronSpec('0 * * * *', { graceMs: MINUTE })
    expect(transition(spec, IN.up, success(), NOON + 58 * MINUTE).state.expectedAt).toBe(NOON + HOUR)
    expect(transition(spec, IN.up, success(), NOON + 59 * MINUTE).state.expectedAt).toBe(NOON + 2 * HOUR)
  })

  it('a failed completion takes the check down at once, and a second one makes no flip', () => {
    const down = transition(aSpec(), IN.up, fail(), LATER)
    expect(down.flip).toMatchObject({ reason: 'failed', at: LATER })
    expect(down.state).toMatchObject({ expectedAt: null, dueAt: null, lastPingAt: LATER })
    expect(transition(aSpec(), down.state, fail(), LATER + 1).flip).toBeNull()
  })

  it('a completion on time before a long pause of the schedule does not cover the next slot', () => {
    // Slots at 9, 10, ... 17: after 17:00 come 16 hours without one.
    const spec = aCronSpec('0 9-17 * * *', { graceMs: HOUR })
    const at = (hour: number, minute: number) => Date.UTC(2026, 10, 21, hour, minute)
    const expectedAfter = (completion: number) => transition(spec, IN.up, success(), completion).state.expectedAt
    expect(expectedAfter(at(16, 0) + 10 * SECOND)).toBe(at(17, 0))
    expect(expectedAfter(at(16, 53))).toBe(at(17, 0))
    expect(expectedAfter(at(16, 54))).toBe(at(9, 0) + DAY)
    // The first slot after the pause is covered by no more than a tenth of the gap that follows it.
    expect(expectedAfter(at(8, 53))).toBe(at(9, 0))
    expect(expectedAfter(at(8, 54))).toBe(at(10, 0))
  })

  it('a completion while paused moves only the last ping with its outcome, and is counted', () => {
    expect(transition(aSpec(), IN.paused, fail(), LATER).state).toEqual({
      ...IN.paused,
      lastPingAt: LATER,
      lastOutcome: 'fail',
      pingsTotal: 2,
    })
  })

  it('a success or a warning is the last success in every status, and a failure leaves that as it is', () => {
    for (const state of Object.values(IN)) {
      expect(transition(aSpec(), state, success(), LATER).state.lastSuccessAt).toBe(LATER)
      expect(transition(aSpec(), state, warn(), LATER).state.lastSuccessAt).toBe(LATER)
      expect(transition(aSpec(), state, fail(), LATER).state.lastSuccessAt).toBe(state.lastSuccessAt)
      expect(transition(aSpec(), state, start('a'), LATER).state.lastSuccessAt).toBe(state.lastSuccessAt)
    }
  })

  it('the duration of a completion stays until one comes whose duration is unknown', () => {
    const started = transition(aSpec(), IN.up, start('a'), LATER).state
    const failed = transition(aSpec(), started, fail('a'), LATER + 5 * SECOND).state
    expect(failed.lastDurationMs).toBe(5 * SECOND)
    expect(transition(aSpec(), failed, start('b'), LATER + MINUTE).state.lastDurationMs).toBe(5 * SECOND)
    expect(transition(aSpec(), failed, success(), LATER + MINUTE).state.lastDurationMs).toBeNull()
  })
})

it('each ping is counted', () => {
  const events = [success(), fail(), start('a'), { kind: 'log' } as const]
  for (const event of events) expect(transition(aSpec(), IN.up, event, LATER).state.pingsTotal).toBe(2)
})

describe('durations', () => {
  it('a given duration counts, whatever the start says', () => {
    const started = transition(aSpec(), IN.up, start('a'), LATER).state
    expect(transition(aSpec(), started, success('a', 7), LATER + 100).durationMs).toBe(7)
  })

  it('a duration is completion minus the matching start', () => {
    const one = transition(aSpec(), IN.up, start('a'), LATER).state
    const two = transition(aSpec(), one, start('b'), LATER + 50).state
    expect(transition(aSpec(), two, success('a'), LATER + 100).durationMs).toBe(100)
    expect(transition(aSpec(), two, fail('b'), LATER + 100).durationMs).toBe(50)
  })

  it('a completion with a run id never matches a start without one, nor the other way round', () => {
    expect(
      transition(aSpec(), transition(aSpec(), IN.up, start(), LATER).state, success('a'), LATER + 1).durationMs,
    ).toBeNull()
    expect(
      transition(aSpec(), transition(aSpec(), IN.up, start('a'), LATER).state, success(), LATER + 1).durationMs,
    ).toBeNull()
  })

  it('a duration is at most seven days', () => {
    const started = transition(aSpec({ maxRuntimeMs: 30 * DAY }), IN.up, start('a'), NOON).state
    expect(transition(aSpec(), started, success('a'), NOON + LIMITS.durationMs).durationMs).toBe(LIMITS.durationMs)
    expect(transition(aSpec(), started, success('a'), NOON + LIMITS.durationMs + 1).durationMs).toBeNull()
  })

  it('durations are measured while paused and down too', () => {
    for (const status of ['paused', 'down'] as const) {
      const started = transition(aSpec(), IN[status], start(), LATER).state
      expect(transition(aSpec(), started, success(), LATER + 9).durationMs).toBe(9)
    }
  })
})

describe('runs', () => {
  const spec = aSpec({ maxRuntimeMs: 10 * MINUTE })

  it('a run that starts in time replaces the schedule, with a deadline of its own', () => {
    const { state } = transition(spec, IN.up, start('a'), NOON + HOUR)
    expect(state).toMatchObject({ expectedAt: null, dueAt: null })
    expect(deadlineOf(state)).toBe(NOON + HOUR + 10 * MINUTE)
  })

  it('a run without a longest run time leaves the schedule as it is', () => {
    const { state } = transition(aSpec(), IN.up, start('a'), NOON + HOUR)
    expect(deadlineOf(state)).toBe(IN.up.dueAt)
    expect(state.lastStartAt).toBe(NOON + HOUR)
  })

  it('a run that starts at the deadline of the schedule, or after it, does not stand for the schedule', () => {
    const due = IN.up.dueAt!
    const startedAt = (at: number) => transition(spec, IN.up, start('a'), at).state
    expect(startedAt(due - 1)).toMatchObject({ expectedAt: null, dueAt: null })
    for (const at of [due, due + 1]) expect(startedAt(at)).toMatchObject({ expectedAt: NOON + HOUR, dueAt: due })
  })

  it('a run that starts while the check is down or paused moves no expectation', () => {
    for (const before of [IN.down, IN.paused])
      for (const one of [spec, aSpec()])
        expect(transition(one, before, start('a'), LATER).state).toMatchObject({ expectedAt: null, dueAt: null })
  })

  it('a run that is over time, and not evaluated yet, still takes the check down after a completion of another', () => {
    const started = transition(spec, IN.up, start('hung'), NOON).state
    const { state } = transition(spec, started, success('other'), NOON + 20 * MINUTE)
    expect(transition(spec, state, deadline(), NOON + 20 * MINUTE + 1).flip).toMatchObject({ reason: 'overran' })
  })

  it('a run that is started again by its id has its whole time, also an interval later', () => {
    const one = transition(aSpec({ maxRuntimeMs: 2 * HOUR }), IN.up, start('a'), NOON).state
    const again = transition(aSpec({ maxRuntimeMs: 2 * HOUR }), one, start('a'), NOON + HOUR).state
    expect(again.runs).toEqual([{ id: 'a', startedAt: NOON + HOUR, deadlineAt: NOON + 3 * HOUR }])
  })

  it('runs that overlap each have their deadline, and the earliest counts', () => {
    const one = transition(spec, IN.up, start('a'), NOON).state
    const two = transition(spec, one, start('b'), NOON + MINUTE).state
    expect(deadlineOf(two)).toBe(NOON + 10 * MINUTE)
    const left = transition(spec, two, success('a'), NOON + 2 * MINUTE).state
    expect(left.runs.map((run) => run.id)).toEqual(['b'])
    expect(deadlineOf(left)).toBe(NOON + 11 * MINUTE)
  })

  it('a run that takes too long takes the check down, dated at its deadline', () => {
    const started = transition(spec, IN.up, start('a'), NOON).state
    const { state, flip } = transition(spec, started, deadline(), NOON + HOUR)
    expect(flip).toEqual({ from: 'up', to: 'down', reason: 'overran', at: NOON + 10 * MINUTE })
    expect(state.runs.filter((run) => isOpen(run, NOON + HOUR))).toEqual([])
    // Its late completion still gets its duration, and recovers the check.
    const late = transition(spec, state, success('a'), NOON + 2 * HOUR)
    expect(late).toMatchObject({ durationMs: 2 * HOUR, flip: { reason: 'recovered' } })
  })

  it('a run that hangs does not take the check down again once another run recovered it', () => {
    const started = transition(spec, IN.up, start('hung'), NOON).state
    const down = transition(spec, started, deadline(), NOON + HOUR).state
    const { state } = transition(spec, down, success('other'), NOON + 2 * HOUR)
    expect(state.runs).toEqual([])
    expect(transition(spec, state, deadline(), NOON + 2 * HOUR + MINUTE).flip).toBeNull()
  })

  it('runs without an id replace each other', () => {
    const one = transition(spec, IN.up, start(), NOON).state
    const two = transition(spec, one, start(), NOON + MINUTE).state
    expect(two.runs).toEqual([{ id: null, startedAt: NOON + MINUTE, deadlineAt: NOON + 11 * MINUTE }])
    expect(transition(spec, two, success(), NOON + 3 * MINUTE).durationMs).toBe(2 * MINUTE)
  })

  it('a run without an id that starts an interval later keeps the deadline of the one that never ended', () => {
    const spec = aSpec({ maxRuntimeMs: 2 * HOUR })
    let state = IN.up
    for (let hour = 0; hour < 2; hour += 1) state = transition(spec, state, start(), NOON + hour * HOUR).state
    expect(deadlineOf(state)).toBe(NOON + 2 * HOUR)
    // Beside a run with an id, too, and from the tolerance before the next interval on.
    const both = transition(spec, transition(spec, IN.up, start('a'), NOON).state, start(), NOON + 1).state
    const next = (at: number) =>
      transition(spec, both, start(), at).state.runs.find(({ id }) => id === null)!.deadlineAt
    expect(next(NOON + 1 + 55 * MINUTE)).toBe(NOON + 1 + 2 * HOUR)
    expect(next(NOON + 55 * MINUTE)).toBe(NOON + 55 * MINUTE + 2 * HOUR)
    // Begun again within the interval it is the same run: a job retried after a crash has its whole time.
    const retried = transition(spec, transition(spec, IN.up, start(), NOON).state, start(), NOON + 30 * MINUTE).state
    expect(deadlineOf(retried)).toBe(NOON + 2.5 * HOUR)
  })

  it('a changed spec does not report runs that had no deadline and are over time already', () => {
    const stale = aState({ runs: [{ id: 'crashed', startedAt: NOON - DAY, deadlineAt: null }], lastPingAt: NOON })
    const { state } = transition(aSpec({ maxRuntimeMs: HOUR }), stale, { kind: 'update' }, NOON + MINUTE)
    expect(state).toMatchObject({ expectedAt: NOON + HOUR, runs: [{ deadlineAt: null }] })
  })

  it('a pause drops the runs', () => {
    const started = transition(spec, IN.up, start('a'), NOON).state
    expect(transition(spec, started, { kind: 'pause' }, NOON + 1).state.runs).toEqual([])
  })

  it('runs are dropped after seven days, unless their deadline is still to come', () => {
    const old = { id: 'old', startedAt: NOON, deadlineAt: null }
    const watched = { id: 'watched', startedAt: NOON, deadlineAt: NOON + 30 * DAY }
    const state = aState({ runs: [old, watched] })
    expect(transition(spec, state, start('new'), NOON + RUN_MEMORY_MS - 1).state.runs.map((run) => run.id)).toEqual([
      'old',
      'watched',
      'new',
    ])
    expect(transition(spec, state, start('new'), NOON + RUN_MEMORY_MS).state.runs.map((run) => run.id)).toEqual([
      'watched',
      'new',
    ])
  })

  it('runs above the limit are not opened, and the schedule goes on', () => {
    let state = IN.up
    for (let i = 0; i < LIMITS.openRuns; i += 1) state = transition(aSpec(), state, start(`run-${i}`), NOON + i).state
    const refused = transition(
      spec,
      { ...state, expectedAt: NOON + HOUR, dueAt: NOON + HOUR },
      start('one-more'),
      NOON + MINUTE,
    )
    expect(refused.runRefused).toBe(true)
    expect(refused.state.runs).toHaveLength(LIMITS.openRuns)
    expect(refused.state).toMatchObject({ lastStartAt: NOON + MINUTE, dueAt: NOON + HOUR })
  })
})

describe('arming', () => {
  const arm = (state: CheckState, spec = aSpec()) => transition(spec, state, { kind: 'arm' }, LATER).state

  it('a check that was just created waits for nothing', () => {
    expect(deadlineOf(newState(NOON))).toBeNull()
  })

  it('a resumed check waits for its first completion at once', () => {
    expect(deadlineOf(transition(aSpec(), IN.paused, { kind: 'resume' }, LATER).state)).toBe(LATER + HOUR + 5 * MINUTE)
  })

  it('arms a new check that waits for nothing', () => {
    expect(deadlineOf(arm(newState(NOON)))).toBe(LATER + HOUR + 5 * MINUTE)
    expect(deadlineOf(arm(newState(NOON), aCronSpec('30 * * * *')))).toBe(LATER + 35 * MINUTE)
  })

  it('changes nothing of a check that waits already, and of one that is not new', () => {
    const armed = transition(aSpec(), newState(NOON), { kind: 'arm' }, NOON).state
    for (const state of [armed, IN.up, IN.down, IN.paused]) expect(arm(state)).toEqual(state)
  })

  it('disarms a new check whose job has reported nothing, and no other', () => {
    const disarm = (state: CheckState) => transition(aSpec(), state, { kind: 'disarm' }, LATER).state
    expect(disarm(arm(newState(NOON)))).toEqual(newState(NOON))
    const revived = { ...newState(NOON), lastPingAt: NOON - 1, lastStartAt: NOON - 2 }
    expect(disarm(arm(revived))).toEqual(revived)
    const started = transition(aSpec(), newState(NOON), start(), NOON).state
    const upAgain = { ...IN.up, since: LATER - 1 }
    for (const state of [started, upAgain, IN.up, IN.down, IN.paused]) expect(disarm(state)).toEqual(state)
  })

  it('a revived check knows its last pings and its open incident again, and waits for nothing', () => {
    const last = {
      lastPingAt: NOON,
      lastOutcome: 'fail',
      lastSuccessAt: NOON - 2,
      lastDurationMs: 7,
      lastStartAt: NOON - 1,
    } as const
    const kept = { ...last, pingsTotal: 9, incidentSince: NOON - 3 }
    const { state, flip } = transition(aSpec(), newState(LATER), { kind: 'revive', kept: { ...IN.up, ...kept } }, LATER)
    expect(state).toEqual({ ...newState(LATER), ...kept })
    expect(flip).toBeNull()
  })

  it('a revived check that was up is up again from now on, and awaits its next completion', () => {
    const kept = { ...IN.up, pingsTotal: 9 }
    const { state, flip } = transition(aSpec(), newState(LATER), { kind: 'revive', kept, isUp: true }, LATER)
    expect(state).toMatchObject({ status: 'up', since: LATER, reason: 'first_success', pingsTotal: 9 })
    expect([state.dueAt, flip]).toEqual([LATER + HOUR + 5 * MINUTE, null])
  })

  it('a check is restored to down only while it is new, in the incident that is open', () => {
    const revived = { ...arm(newState(LATER)), incidentSince: NOON }
    const { state, flip, notice } = transition(aSpec(), revived, { kind: 'restore', reason: 'overran' }, LATER)
    expect(state).toMatchObject({ status: 'down', since: LATER, reason: 'overran', dueAt: null, incidentSince: NOON })
    expect([flip, notice]).toMatchObject([{ from: 'new', to: 'down', at: LATER }, { type: 'check.down' }])
    for (const other of [IN.up, IN.down, IN.paused])
      expect(transition(aSpec(), other, { kind: 'restore', reason: 'missed' }, LATER)).toMatchObject({
        state: other,
        flip: null,
      })
  })

  it('the first start arms a check, and more of them do not postpone its deadline', () => {
    const first = transition(aSpec(), newState(NOON), start(), NOON).state
    expect(deadlineOf(first)).toBe(NOON + HOUR + 5 * MINUTE)
    const second = transition(aSpec(), first, start(), NOON + 30 * MINUTE).state
    expect(deadlineOf(second)).toBe(NOON + HOUR + 5 * MINUTE)
  })
})

describe('deadlines', () => {
  it('a deadline counts from its own millisecond on, and dates the flip', () => {
    const due = IN.up.dueAt!
    expect(transition(aSpec(), IN.up, deadline(), due - 1)).toMatchObject({ flip: null, state: IN.up })
    expect(transition(aSpec(), IN.up, deadline(), due + 900).flip).toEqual({
      from: 'up',
      to: 'down',
      reason: 'missed',
      at: due,
    })
  })

  it('a deadline that a ping moved does not count any more', () => {
    const pinged = transition(aSpec(), IN.up, success(), IN.up.dueAt! - 1).state
    expect(transition(aSpec(), pinged, deadline(), IN.up.dueAt!).flip).toBeNull()
  })
})

describe('late', () => {
  it('a check is shown as late from the expected time on, until the flip is written', () => {
    expect(shownStatus(IN.up, NOON + HOUR - 1)).toBe('up')
    expect(shownStatus(IN.up, NOON + HOUR)).toBe('late')
    expect(shownStatus(IN.up, IN.up.dueAt! + 1)).toBe('late')
    expect(shownStatus(IN.new, LATER)).toBe('new')
  })
})

describe('a changed spec', () => {
  it('a changed spec counts from the last completion, but is never due before now + grace', () => {
    const longer = aSpec({ schedule: { kind: 'period', periodMs: 3 * HOUR } })
    expect(deadlineOf(transition(longer, IN.up, { kind: 'update' }, NOON + MINUTE).state)).toBe(
      NOON + 3 * HOUR + 5 * MINUTE,
    )
    const shorter = aSpec({ schedule: { kind: 'period', periodMs: MINUTE } })
    expect(deadlineOf(transition(shorter, IN.up, { kind: 'update' }, NOON + 30 * MINUTE).state)).toBe(
      NOON + 35 * MINUTE,
    )
  })

  it('a changed spec gives open runs a deadline, or removes it', () => {
    const started = transition(aSpec(), IN.up, start('a'), NOON).state
    const watched = transition(aSpec({ maxRuntimeMs: HOUR }), started, { kind: 'update' }, NOON + MINUTE).state
    expect(deadlineOf(watched)).toBe(NOON + HOUR)
    expect(watched.expectedAt).toBeNull()
    const again = transition(aSpec(), watched, { kind: 'update' }, NOON + 2 * MINUTE).state
    expect(again).toMatchObject({ expectedAt: NOON + HOUR, runs: [{ id: 'a', deadlineAt: null }] })
  })

  it('a changed spec keeps the expectation beside a run that did not replace it', () => {
    const spec = aSpec({ maxRuntimeMs: DAY })
    const one = transition(spec, IN.up, start('a'), NOON).state
    const two = transition(spec, one, start('b'), NOON + 1).state
    const left = transition(spec, two, success('b'), NOON + MINUTE).state
    const longer = aSpec({ maxRuntimeMs: DAY, graceMs: 6 * MINUTE })
    expect(deadlineOf(transition(longer, left, { kind: 'update' }, NOON + 2 * MINUTE).state)).toBe(
      NOON + HOUR + 7 * MINUTE,
    )
    // While the first run still stands for the schedule, it goes on doing so.
    expect(transition(longer, two, { kind: 'update' }, NOON + 2 * MINUTE).state).toMatchObject({
      expectedAt: null,
      dueAt: null,
    })
  })

  it('a changed spec arms no check', () => {
    const made = newState(NOON)
    expect(transition(aSpec({ graceMs: 0 }), made, { kind: 'update' }, LATER).state).toEqual(made)
  })
})
