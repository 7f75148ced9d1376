import { describe, expect, it } from 'vitest'
import { type Change, decideChanges } from '../../../src/checks/change.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import type { LockedCheck } from '../../../src/store/checks/states.ts'
import { aCronSpec, aState, HOUR, MINUTE, NOON, SECOND, UNREAD_SPEC } from '../../support/builders.ts'

/** What Jobs report of one check, recorded at 18:00. */

const SPEC = aCronSpec('0 * * * *', { maxRuntimeMs: 2 * HOUR, awaits: 'start' })
const LATER = NOON + 6 * HOUR
const at = (hours: number, minutes = 0) => NOON + hours * HOUR + minutes * MINUTE
const UP = aState({ expectedAt: at(1), dueAt: at(1, 5) })

function aCheck(given: Partial<LockedCheck> = {}): LockedCheck {
  return { key: 1, ...UNREAD_SPEC, spec: SPEC, state: UP, stampedAt: NOON, wakeAt: at(1, 5), ...given }
}

const start = (runId: string, slotAt: number): Change => ({
  key: 1,
  event: { kind: 'start', runId, job: { at: slotAt, slotAt, createdAt: 0 } },
  at: LATER,
  ping: { type: 'start', exitCode: null, runId, body: null, source: 'job' },
})
const end = (kind: 'success' | 'fail', runId: string, time: number): Change => ({
  key: 1,
  event: { kind, runId, durationMs: null, job: { at: time, createdAt: 0 } },
  at: LATER,
  ping: { type: kind, exitCode: null, runId, body: null, source: 'job' },
})
const decide = (changes: readonly Change[], checks: readonly LockedCheck[] = [aCheck()]) =>
  decideChanges(checks, changes, 'earlier')

/** The microseconds since the epoch that an id carries. */
function timeOf(id: Buffer): number {
  const us = ((id[6]! & 0x0f) << 6) | (id[7]! >> 2)
  return id.readUIntBE(0, 6) * 1_000 + us
}

describe('what a Job reports', () => {
  it('has the time of the Job, also in its id, and its source', () => {
    const { changeSet } = decide([start('a', at(1))])
    expect(changeSet.pings).toMatchObject([{ type: 'start', runId: 'a', at: at(1), source: 'job' }])
    expect(timeOf(changeSet.pings[0]!.id)).toBe(at(1) * 1_000)
  })

  it('of one moment has its start before its end', () => {
    const { changeSet } = decide([start('a', at(1)), end('success', 'a', at(1))])
    expect(changeSet.pings.map(({ id }) => timeOf(id) - at(1) * 1_000)).toEqual([0, 2])
    expect(changeSet.pings[1]!.at).toBeCloseTo(at(1) + 0.002, 4)
  })

  it('that a Job was deleted is a log of that time; without a time it is no entry', () => {
    const abandon = (time: number | null): CheckEvent => ({ kind: 'abandon', runId: 'a', at: time })
    const ping = { type: 'log', exitCode: null, runId: 'a', body: null, source: 'job' } as const
    const logged = decide([start('a', at(1)), { key: 1, event: abandon(at(2)), at: LATER, ping }])
    expect(logged.changeSet.pings[1]).toMatchObject({ type: 'log', durationMs: null })
    expect(timeOf(logged.changeSet.pings[1]!.id)).toBe(at(2) * 1_000 + 2)
    const silent = decide([start('a', at(1)), { key: 1, event: abandon(null), at: LATER }])
    expect([silent.changeSet.pings.length, silent.changeSet.states[0]!.state.runs]).toEqual([1, []])
  })

  it('is the newest entry by the time of its record: that never goes back', () => {
    const { changeSet } = decide([start('a', at(1)), end('success', 'a', at(1, 20))])
    expect(changeSet.states[0]!.stampedAt).toBeGreaterThan(LATER)
    const ahead = decide([start('a', at(1))], [aCheck({ stampedAt: LATER + HOUR })])
    expect(ahead.changeSet.states[0]!.stampedAt).toBeGreaterThan(LATER + HOUR)
  })

  it('flips the check at the time of the Job, with ids in the order of their record', () => {
    const { changeSet } = decide([
      end('fail', 'a', at(1, 20)),
      end('success', 'b', at(2, 20)),
      end('fail', 'c', at(3, 20)),
    ])
    expect(changeSet.flips.map(({ reason, at: time }) => [reason, time])).toEqual([
      ['failed', at(1, 20)],
      ['recovered', at(2, 20)],
      ['failed', at(3, 20)],
    ])
    for (const { detectedAt } of changeSet.flips) expect(detectedAt).toBe(LATER)
    const ids = changeSet.flips.map(({ id }) => timeOf(id))
    expect(ids[0]!).toBeGreaterThanOrEqual(LATER * 1_000)
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    expect(changeSet.flips.map(({ pingId }) => pingId)).toEqual(changeSet.pings.map(({ id }) => id))
  })

  it('is a log where the container has sent a fail itself', () => {
    const failed: Change = {
      key: 1,
      event: { kind: 'fail', runId: null, durationMs: null },
      at: at(1, 10),
      ping: { type: 'fail', exitCode: null, runId: null, body: null },
    }
    const { changeSet } = decide([start('a', at(1)), failed, end('success', 'a', at(1, 11))])
    expect(changeSet.pings.map(({ type, runId }) => [type, runId])).toEqual([
      ['start', 'a'],
      ['fail', null],
      ['log', 'a'],
    ])
  })

  it('leaves the time of the next evaluation where it is, or moves it to an earlier one', () => {
    expect(decide([start('a', at(1))]).changeSet.states[0]!.wakeAt).toBe(at(1, 5))
    const overrun = decide([start('a', at(-2) - SECOND)]).changeSet.states[0]!
    expect(overrun.wakeAt).toBe(NOON - SECOND)
  })
})

describe('the evaluation of a check that follows a source', () => {
  const evaluate = (seenUntil: number, isLateWanted: boolean, check: Partial<LockedCheck> = {}) => {
    const event: CheckEvent = { kind: 'deadline', gaps: [], seenUntil }
    const { changeSet } = decideChanges([aCheck(check)], [{ key: 1, event, at: at(1, 4) }], { isLateWanted })
    return { types: changeSet.events.map(({ type }) => type), wakeAt: changeSet.states[0]!.wakeAt }
  }
  const AWAITED = { wakeAt: at(0, 59) }

  it('finds it late only once all Jobs up to its slot are recorded', () => {
    expect(evaluate(at(1) - 1, true, AWAITED)).toEqual({ types: [], wakeAt: at(1) })
    expect(evaluate(at(1), true, AWAITED)).toEqual({ types: ['check.late'], wakeAt: at(1, 5) })
  })

  it('reads it next at its deadline where no channel wants late checks', () => {
    expect(evaluate(at(1), false, AWAITED)).toEqual({ types: [], wakeAt: at(1, 5) })
  })

  it('may find it late at the next slot: a start has no tolerance before it', () => {
    const late = { state: { ...UP, dueAt: at(9) }, wakeAt: at(1) }
    const seenUntil = at(1, 59)
    const event: CheckEvent = { kind: 'deadline', gaps: [], seenUntil }
    const { changeSet } = decideChanges([aCheck(late)], [{ key: 1, event, at: seenUntil }], { isLateWanted: true })
    expect(changeSet.states[0]!.wakeAt).toBe(at(2))
  })
})
