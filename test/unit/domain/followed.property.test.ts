/** A check that follows a CronJob, over any Jobs: recorded in time, after a downtime, and in any order. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Change, decideChanges } from '../../../src/checks/change.ts'
import type { CheckEvent } from '../../../src/domain/check-event.ts'
import { deadlineOf, newState, transition } from '../../../src/domain/transition.ts'
import type { NewFlip, NewPing } from '../../../src/store/checks/change-sets.ts'
import type { LockedCheck } from '../../../src/store/checks/states.ts'
import { aCronSpec, HOUR, MINUTE, NOON, SECOND, UNREAD_SPEC } from '../../support/builders.ts'
import {
  anyJobs,
  entriesOf,
  historyOf,
  type ModelCheck,
  type ModelEntry,
  type ModelJob,
} from '../../support/job-model.ts'

const CHECK: ModelCheck = {
  createdAt: NOON + 17 * MINUTE + 500,
  everyMs: 10 * MINUTE,
  graceMs: 3 * MINUTE,
  maxRuntimeMs: 14 * MINUTE,
}
const SPEC = aCronSpec('*/10 * * * *', { graceMs: CHECK.graceMs, maxRuntimeMs: CHECK.maxRuntimeMs, awaits: 'start' })
const END = NOON + 3 * HOUR

function toEvent({ job, type, at }: ModelEntry, isOver: boolean, newestPast: number): CheckEvent {
  const runId = job.uid
  const { createdAt } = CHECK
  if (type === 'start') return { kind: type, runId, job: { at, slotAt: job.slotAt, createdAt, isOver } }
  if (type === 'log') return { kind: 'abandon', runId, at }
  return { kind: type, runId, durationMs: durationOf(job), job: { at, createdAt, isSuperseded: at < newestPast } }
}
const durationOf = ({ startedAt, end }: ModelJob) => (startedAt === null ? null : end!.at - startedAt)

/** The check as it is declared, and what is done to it as the verb and the evaluator do it. */
function createCheck() {
  const state = transition(SPEC, newState(CHECK.createdAt), { kind: 'arm' }, CHECK.createdAt).state
  let row: LockedCheck = {
    key: 1,
    ...UNREAD_SPEC,
    spec: SPEC,
    state,
    stampedAt: CHECK.createdAt,
    wakeAt: deadlineOf(state),
  }
  const pings: NewPing[] = []
  const flips: NewFlip[] = []
  const over = new Set<string>()
  const decide = (changes: readonly Change[], waking: 'earlier' | { isLateWanted: boolean }) => {
    const { decisions, changeSet, after } = decideChanges([row], changes, waking)
    for (const decision of decisions) if (decision.kind !== 'applied') throw new Error(decision.kind)
    pings.push(...changeSet.pings)
    flips.push(...changeSet.flips)
    row = after[0] ?? row
  }
  return {
    pings,
    flips,
    state: () => row.state,
    record(entries: readonly ModelEntry[], at: number) {
      const isPastEnd = ({ type, at: time }: ModelEntry) => type !== 'start' && type !== 'log' && time < CHECK.createdAt
      const newestPast = Math.max(0, ...entries.filter(isPastEnd).map((entry) => entry.at))
      const changes = entries.map((entry): Change => {
        const event = toEvent(entry, over.has(entry.job.uid), newestPast)
        if (entry.type !== 'start') over.add(entry.job.uid)
        const ping = { type: entry.type, exitCode: null, runId: entry.job.uid, body: null, source: 'job' } as const
        return { key: 1, event, at, ping }
      })
      if (changes.length > 0) decide(changes, 'earlier')
    },
    /** As long as its row would be read. */
    evaluate(seenUntil: number, isLateWanted: boolean) {
      for (let round = 0; row.wakeAt !== null && row.wakeAt <= seenUntil; round += 1) {
        if (round > 3) throw new Error(`it is evaluated again and again at ${row.wakeAt}`)
        decide([{ key: 1, event: { kind: 'deadline', gaps: [], seenUntil }, at: seenUntil }], { isLateWanted })
      }
    },
  }
}

const toPing = ({ job, type, at }: ModelEntry) => ({
  type,
  runId: job.uid,
  at,
  durationMs: type === 'success' || type === 'fail' ? durationOf(job) : null,
})
const inOneOrder = <T>(list: readonly T[]): T[] =>
  [...list].sort((one, other) => JSON.stringify(one).localeCompare(JSON.stringify(other)))
const storedPings = (pings: readonly NewPing[]) =>
  inOneOrder(pings.map(({ type, runId, at, durationMs }) => ({ type, runId, at: Math.floor(at), durationMs })))
const expectedPings = (jobs: readonly ModelJob[]) => inOneOrder(entriesOf(jobs).map(toPing))

/** Every second at which something may be due, and each end of an interval in which nothing is seen. */
function seenTimes(jobs: readonly ModelJob[], blind: readonly { from: number; until: number }[]): number[] {
  const slots = Array.from({ length: 20 }, (_, index) => NOON + index * CHECK.everyMs + CHECK.graceMs)
  const overruns = jobs.flatMap(({ startedAt }) => (startedAt === null ? [] : [startedAt + CHECK.maxRuntimeMs]))
  const times = [...entriesOf(jobs).map(({ at }) => at), ...slots, ...overruns, ...blind.map(({ until }) => until), END]
  return [...new Set([CHECK.createdAt, ...times])]
    .filter((at) => at >= CHECK.createdAt && at <= END && !blind.some(({ from, until }) => from <= at && at < until))
    .sort((a, b) => a - b)
}

describe('a check that follows a CronJob', () => {
  const blind = fc.array(
    fc
      .tuple(fc.integer({ min: 0, max: 90 }), fc.integer({ min: 1, max: 60 }))
      .map(([from, minutes]) => ({ from: NOON + from * MINUTE, until: NOON + (from + minutes) * MINUTE })),
    { maxLength: 2 },
  )

  it('has the history that follows from its Jobs, also where they were not seen for a while', () => {
    fc.assert(
      fc.property(anyJobs(CHECK, NOON), blind, fc.boolean(), (jobs, gaps, isLateWanted) => {
        const check = createCheck()
        const seen = seenTimes(jobs, gaps)
        const entries = entriesOf(jobs)
        let recorded = 0
        for (const at of seen) {
          const first = recorded
          while (recorded < entries.length && entries[recorded]!.at <= at) recorded += 1
          check.record(entries.slice(first, recorded), at)
          check.evaluate(at, isLateWanted)
        }
        const expected = historyOf(CHECK, jobs, seen)
        const { status, lastPingAt, lastSuccessAt, lastStartAt, pingsTotal } = check.state()
        expect(check.flips.map(({ to, reason, at }) => ({ to, reason, at }))).toEqual(expected.flips)
        expect({ status, lastPingAt, lastSuccessAt, lastStartAt }).toEqual({ ...expected, flips: undefined })
        expect(storedPings(check.pings)).toEqual(expectedPings(jobs))
        expect(pingsTotal).toBe(entries.length)
      }),
      { numRuns: 400 },
    )
  })

  it('has the same entries, times and last run in whatever order they are recorded', () => {
    const shuffled = anyJobs(CHECK, NOON).chain((jobs) => {
      const entries = entriesOf(jobs)
      return fc.tuple(fc.constant(jobs), fc.shuffledSubarray(entries, { minLength: entries.length }))
    })
    fc.assert(
      fc.property(shuffled, fc.integer({ min: 1, max: 5 }), ([jobs, entries], size) => {
        const check = createCheck()
        for (let first = 0; first < entries.length; first += size) check.record(entries.slice(first, first + size), END)
        const times = (...types: string[]) => entries.filter(({ type }) => types.includes(type)).map(({ at }) => at)
        const newest = (list: readonly number[]) => (list.length === 0 ? null : Math.max(...list))
        const state = check.state()
        expect(storedPings(check.pings)).toEqual(expectedPings(jobs))
        expect(state.lastStartAt).toBe(newest(times('start')))
        expect(state.lastSuccessAt).toBe(newest(times('success')))
        // A failure of before the check is not the last completion of a check that is up.
        if (!(state.status === 'up' && state.lastPingAt! < CHECK.createdAt))
          expect(state.lastPingAt).toBe(newest(times('success', 'fail')))
        const last = entriesOf(jobs).findLast(({ type }) => type === 'success' || type === 'fail')
        if (last !== undefined && last.at >= CHECK.createdAt)
          expect(state.status).toBe(last.type === 'success' ? 'up' : 'down')
        // Runs that have ended are closed, and those that have not are watched, whichever came first.
        const open = jobs.filter(({ startedAt, end }) => startedAt !== null && end === null).map(({ uid }) => uid)
        for (const { id } of state.runs) expect(open).toContain(id)
        // No alarm about what ended before the check was created, and each about a failure.
        const failures = new Set(entries.filter(({ type, at }) => type === 'fail' && at >= CHECK.createdAt))
        for (const { to, reason } of check.flips) if (to === 'down') expect(reason).toBe('failed')
        expect(check.flips.filter(({ to }) => to === 'down').length).toBeLessThanOrEqual(failures.size)
        const flipTimes = check.flips.map(({ at }) => at)
        expect(flipTimes).toEqual([...flipTimes].sort((a, b) => a - b))
      }),
      { numRuns: 400 },
    )
  })

  it('never misses a run that started in its slot, in whatever order starts are recorded', () => {
    const starts = fc.shuffledSubarray(
      Array.from({ length: 12 }, (_, index): ModelJob => {
        const slotAt = NOON + (index + 2) * CHECK.everyMs
        const kind = index % 4 === 1 ? 'fail' : 'success'
        const end = { kind, at: slotAt + 2 * MINUTE + index * SECOND } as const
        return { uid: String(index), slotAt, startedAt: slotAt + SECOND, end }
      }),
      { minLength: 12 },
    )
    fc.assert(
      fc.property(starts, (jobs) => {
        const check = createCheck()
        for (const job of jobs) check.record(entriesOf([job]), END)
        const seenUntil = NOON + 13 * CHECK.everyMs + 9 * MINUTE
        check.evaluate(seenUntil, true)
        expect(check.flips.filter(({ reason }) => reason === 'missed' || reason === 'overran')).toEqual([])
      }),
    )
  })
})
