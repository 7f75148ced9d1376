/**
 * What a report changes of its check: an entry as a change of the spine, or nothing where it is stored already. Pure.
 */

import { type Instant, isCompletion, type Run } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { LIMITS } from '../../domain/limits.ts'
import { toStoredText } from '../../domain/plain-text.ts'
import type { FollowingCheck, StoredRun } from '../../store/jobs/followed-checks.ts'
import type { Change } from '../change.ts'
import type { JobReport, ReadEntry } from './job-report.ts'

/** What is known when a report is read, under the lock of its check. */
export interface Known {
  readonly check: FollowingCheck
  /** The open runs of the check, before this group. */
  readonly runs: readonly Run[]
  readonly stored: StoredRun
  /**
   * Its container sent a fail or a warning without the run's id, perhaps before the start was recorded, and no success
   * since.
   */
  readonly isOverruledEarly: boolean
  /** The newest run that is stored, with the times that the Job has. */
  readonly lastRun: LastRun | null
  /** When it is recorded, by the database's clock. */
  readonly now: Instant
  /** The newest of the completions before the check was created that are reported together with this one. */
  readonly newestPast: Instant
}

/**
 * What the group stores of one run so far; `suspended`: the run is closed until its Job starts again. Successes without
 * the id of a run are named by their times.
 */
export type RunLedger = Set<'start' | 'end' | 'suspended' | Instant>

/** Whether Jobs have reported an end of the run. */
const hasEnd = ({ jobTypes }: StoredRun) => jobTypes.some((type) => type !== 'start')

/** Whether its end is stored: Jobs have reported it, or the container itself by the run's id. */
export const isEnded = (stored: StoredRun) => hasEnd(stored) || stored.httpTypes.some(isCompletion)

const isStarted = ({ jobTypes, httpTypes }: StoredRun) => jobTypes.includes('start') || httpTypes.includes('start')

/** Returns null for an entry that is stored. Adds to the ledger what the entry stores. */
export function toChange(report: JobReport, entry: ReadEntry, known: Known, ledger: RunLedger): Change | null {
  const { runId, job } = report
  const { check, runs, stored, isOverruledEarly, now, newestPast } = known
  const { key, createdAt } = check
  const close = (id: string): Change => ({ key, at: now, event: { kind: 'abandon', runId: id, at: null } })
  if (entry.type === 'suspend') {
    if (runId === null || !(ledger.has('start') || runs.some(({ id }) => id === runId))) return null
    ledger.add('suspended')
    return close(runId)
  }

  const name = entry.type === 'start' ? 'start' : runId === null ? entry.at : 'end'
  const isStored =
    runId === null ? stored.hasSuccess || hasSucceeded(known.lastRun, entry.at) : isRecorded(entry.type, stored)
  const isKnown = ledger.has(name) || stored.isPruned || isStored
  const isOver = ledger.has('end') || isEnded(stored)
  if (isKnown) {
    const isSuspended = ledger.delete('suspended')
    if (entry.type !== 'start' || isOver || !(isSuspended || isToReopen(entry.at, runId, known))) return null
  }
  ledger.add(name)

  // The clock of the cluster may be ahead of the database's. Nothing in the history is later than what follows it.
  const at = Math.min(entry.at, now)
  const change = { key, at: now, about: { job, detail: null } }
  const ping = { runId, exitCode: null, body: null, source: 'job' } as const
  if (entry.type === 'start') {
    const started = { at, slotAt: entry.slotAt, createdAt, isOver, isStored: isKnown, isOverruled: isOverruledEarly }
    const event = { kind: 'start', runId, job: started } as const
    return isKnown ? { ...change, event } : { ...change, event, ping: { ...ping, type: 'start' } }
  }
  // The history has a log of this run, which its container sent.
  const hasLog = stored.httpTypes.includes('log')
  if (entry.type === 'log') {
    const log = { ...ping, type: 'log', body: toBody(entry.body) } as const
    if (runId === null) return { ...change, event: { kind: 'log' }, ping: log }
    if (hasLog) return close(runId)
    // A run whose container itself has reported its end did not take too long.
    const overran = entry.overran && !isOver ? { overran: { at, createdAt } } : {}
    const about = { job, detail: toDetail(entry.overran ?? '') }
    return { ...change, event: { kind: 'abandon', runId, at, ...overran }, ping: log, about }
  }
  const isOverruled = stored.httpTypes.some((type) => type === 'fail' || type === 'warn') || isOverruledEarly
  const isLog = isOverruled || runs.some((run) => run.id === runId && run.isOverruled)
  if (entry.type !== 'fail' && isLog && hasLog && runId !== null) return close(runId)
  const end = { at, createdAt, isSuperseded: entry.at < newestPast, isOverruled }
  const event = { kind: entry.type, runId, durationMs: toDuration(entry.durationMs), job: end } as const
  if (entry.type === 'success') return { ...change, event, ping: { ...ping, type: 'success', exitCode: 0 } }
  const failed = { ...ping, type: entry.type, exitCode: toExitCode(entry.exitCode), body: toBody(entry.body) } as const
  return { ...change, event, ping: failed, about: { job, detail: toDetail(entry.body) } }
}

/** Whether a run that is stored as started is not open, or was started again: after a suspension, or in a new check. */
function isToReopen(at: Instant, runId: string | null, { runs, stored }: Known): boolean {
  const open = runs.find(({ id }) => id === runId)
  if (stored.isPruned || !isStarted(stored)) return false
  return open === undefined || (open.startedAt < at && stored.jobTypes.includes('start'))
}

/**
 * Whether the history has an entry of this type of the run. A run has one start and one end, whatever its kind: a
 * success may be stored as a log. The history holds each type of a run once, whichever process reports it.
 */
export function isRecorded(type: ReadEntry['type'], stored: StoredRun): boolean {
  if (stored.isPruned) return true
  if (type === 'start') return isStarted(stored)
  return hasEnd(stored) || (type !== 'log' && stored.httpTypes.some((one) => one === type))
}

/**
 * The history has no time of the future, and this run may have one: the clock of the cluster may be ahead of the
 * database's.
 */
function hasSucceeded(run: LastRun | null, at: Instant): boolean {
  return run?.outcome === 'Succeeded' && Date.parse(run.completionTime ?? '') >= at
}

function toDuration(durationMs: number | null): number | null {
  return durationMs === null || durationMs > LIMITS.durationMs ? null : Math.max(0, Math.round(durationMs))
}

/** One of Windows can be any number of 32 bits. */
function toExitCode(exitCode: number | null): number | null {
  return exitCode !== null && exitCode >= 0 && exitCode <= LIMITS.exitCode ? exitCode : null
}

/** The first bytes, without half a character at the end: the first line says why. */
function toBody(text: string): Buffer | null {
  const bytes = Buffer.alloc(LIMITS.pingBodyBytes)
  const { written } = new TextEncoder().encodeInto(text, bytes)
  return written === 0 ? null : bytes.subarray(0, written)
}

/** The first line of a body; null: it has none. */
function toDetail(body: string): string | null {
  const [line = ''] = body.split('\n', 1)
  return toStoredText(line.trim()) || null
}
