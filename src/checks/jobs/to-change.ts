/** What a report changes of its check: an entry as a change of the spine, or nothing where it is stored already. Pure. */

import type { Instant, Run } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { LIMITS } from '../../domain/limits.ts'
import { toStoredText } from '../../store/jobs/cron-jobs.ts'
import type { FollowingCheck, StoredRun } from '../../store/jobs/followed-checks.ts'
import type { Change } from '../change.ts'
import type { JobEntry, JobReport } from './job-report.ts'

/** What is known when a report is read, under the lock of its check. */
export interface Known {
  readonly check: FollowingCheck
  /** The open runs of the check, before this group. */
  readonly runs: readonly Run[]
  readonly stored: StoredRun
  /** Its container sent a fail without the run's id, perhaps before the start was recorded, and no success since. */
  readonly hasFailedEarly: boolean
  /** The newest run that is stored, with the times that the Job has. */
  readonly lastRun: LastRun | null
  /** When it is recorded, by the database's clock. */
  readonly now: Instant
  /** The newest of the completions before the check was created that are reported together with this one. */
  readonly newestPast: Instant
}

/** Whether Jobs have reported an end of the run. */
export const hasEnd = ({ jobTypes }: StoredRun) => jobTypes.some((type) => type !== 'start')

/** Sorts by time; at equal times a start comes before the end of a run. */
export function inOrderOfTime<T extends { readonly entry: JobEntry }>(all: readonly T[]): T[] {
  const rank = ({ entry }: T) => (entry.type === 'start' ? 0 : 1)
  return all.toSorted((one, other) => one.entry.at - other.entry.at || rank(one) - rank(other))
}

/**
 * Returns null for an entry that is stored. `planned`: the entries that the group stores already, in the words of this function, which adds
 * to them.
 */
export function toChange(report: JobReport, entry: JobEntry, known: Known, planned: Set<string>): Change | null {
  const { runId } = report
  const run = `${known.check.key}:${runId}`
  if (entry.type === 'suspend')
    return toSuspension(runId, known, {
      isPlanned: planned.has(`${run}:start`),
      hold: () => planned.add(`${run}:held`),
    })
  const name = entry.type === 'start' ? `${run}:start` : runId === null ? `${run}:${entry.at}` : `${run}:end`
  const isOver = planned.has(`${run}:end`) || isEnded(known.stored)
  if (planned.has(name) || isStored(entry, runId, known)) {
    const isHeld = planned.delete(`${run}:held`)
    return entry.type === 'start' && !isOver && (isHeld || isToReopen(entry.at, runId, known))
      ? reopening(runId, entry, known)
      : null
  }
  planned.add(name)
  return changeOf(report, entry, known, isOver)
}

/** Whether its end is stored: Jobs have reported it, or the container itself by the run's id. */
export const isEnded = (stored: StoredRun) =>
  hasEnd(stored) || stored.httpTypes.includes('success') || stored.httpTypes.includes('fail')

export const isStarted = ({ jobTypes, httpTypes }: StoredRun) =>
  jobTypes.includes('start') || httpTypes.includes('start')

/** Whether a run that is stored as started is not open, or was started by its Job again since: its Job was suspended, or its check deleted. */
function isToReopen(at: Instant, runId: string | null, { runs, stored }: Known): boolean {
  const open = runs.find(({ id }) => id === runId)
  if (stored.isPruned || !isStarted(stored)) return false
  return open === undefined || (open.startedAt < at && stored.jobTypes.includes('start'))
}

/** A run has one start and one end, whatever its kind: a success may be stored as a log. The history holds each type of a run once, whichever process reports it. */
function isStored({ type, at }: Stored, runId: string | null, { stored, lastRun }: Known): boolean {
  if (stored.isPruned) return true
  if (runId === null) return stored.hasSuccess || hasSucceeded(lastRun, at)
  if (type === 'start') return isStarted(stored)
  return hasEnd(stored) || (type !== 'log' && stored.httpTypes.includes(type))
}

/** The history has no time of the future, and this run may have one: the clock of the cluster may be ahead of the database's. */
function hasSucceeded(run: LastRun | null, at: Instant): boolean {
  return run?.outcome === 'Succeeded' && Date.parse(run.completionTime ?? '') >= at
}

/** An entry of the history. */
type Stored = Exclude<JobEntry, { type: 'suspend' }>
type Start = Extract<JobEntry, { type: 'start' }>

/** Opens a run whose start is stored. */
function reopening(
  runId: string | null,
  { at, slotAt }: Start,
  { check: { key, createdAt }, hasFailedEarly: hasFailed, now }: Known,
): Change {
  const job = { at: Math.min(at, now), slotAt, createdAt, isStored: true, hasFailed }
  return { key, at: now, event: { kind: 'start', runId, job } }
}

/** Closes the run if it is open. */
function toSuspension(
  runId: string | null,
  { check: { key }, runs, now }: Known,
  { isPlanned, hold }: { isPlanned: boolean; hold: () => void },
): Change | null {
  if (runId === null || !(isPlanned || runs.some(({ id }) => id === runId))) return null
  hold()
  return { key, at: now, event: { kind: 'abandon', runId, at: null } }
}

function changeOf(
  { runId, job }: JobReport,
  entry: Stored,
  { check: { key, createdAt }, runs, stored, hasFailedEarly, now, newestPast }: Known,
  isOver: boolean,
): Change {
  // The clock of the cluster may be ahead of the database's. Nothing in the history is later than what follows it.
  const at = Math.min(entry.at, now)
  const change = { key, at: now, about: { job, detail: null } }
  const ping = { runId, exitCode: null, body: null, source: 'job' } as const
  switch (entry.type) {
    case 'start':
      return {
        ...change,
        event: {
          kind: 'start',
          runId,
          job: { at, slotAt: entry.slotAt, createdAt, isOver, hasFailed: hasFailedEarly },
        },
        ping: { ...ping, type: 'start' },
      }
    case 'success':
    case 'fail': {
      const isOverruled = stored.httpTypes.includes('fail') || hasFailedEarly
      const isLog = isOverruled || runs.some(({ id, hasFailed }) => id === runId && hasFailed)
      // The history has a log of this run.
      if (entry.type === 'success' && isLog && runId !== null && stored.httpTypes.includes('log'))
        return { ...change, event: { kind: 'abandon', runId, at: null } }
      const ended = {
        at,
        createdAt,
        isSuperseded: entry.at < newestPast,
        isOverruled,
      }
      const durationMs = entry.durationMs === null ? null : toDuration(entry.durationMs)
      const event = { kind: entry.type, runId, durationMs, job: ended } as const
      if (entry.type === 'success') return { ...change, event, ping: { ...ping, type: 'success', exitCode: 0 } }
      return {
        ...change,
        event,
        ping: { ...ping, type: 'fail', exitCode: toExitCode(entry.exitCode), body: toBody(entry.body) },
        about: { job, detail: toDetail(entry.body) },
      }
    }
    case 'log':
      if (runId === null)
        return { ...change, event: { kind: 'log' }, ping: { ...ping, type: 'log', body: toBody(entry.body) } }
      // The history has a log of this run, which its container sent.
      if (stored.httpTypes.includes('log')) return { ...change, event: { kind: 'abandon', runId, at: null } }
      return {
        ...change,
        // A run whose container itself has reported its end did not take too long.
        event: { kind: 'abandon', runId, at, ...(entry.overran && !isOver ? { overran: { at, createdAt } } : {}) },
        ping: { ...ping, type: 'log', body: toBody(entry.body) },
        about: { job, detail: toDetail(entry.overran ?? '') },
      }
  }
}

function toDuration(durationMs: number): number | null {
  return durationMs > LIMITS.durationMs ? null : Math.max(0, Math.round(durationMs))
}

/** One of Windows can be any number of 32 bits. */
function toExitCode(exitCode: number | null): number | null {
  return exitCode !== null && exitCode >= 0 && exitCode <= LIMITS.exitCode ? exitCode : null
}

/** The first bytes, without half a character at the end: the first line says why. */
function toBody(text: string): Buffer | null {
  const bytes = Buffer.from(text.toWellFormed())
  if (bytes.length === 0) return null
  let end = Math.min(bytes.length, LIMITS.pingBodyBytes)
  while (end < bytes.length && (bytes[end]! & 0xc0) === 0x80) end -= 1
  return bytes.subarray(0, end)
}

/** The first line of a body; null: it has none. */
function toDetail(body: string): string | null {
  const [line = ''] = body.split('\n', 1)
  return toStoredText(line.trim()) || null
}
