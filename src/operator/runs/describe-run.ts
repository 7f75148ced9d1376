/** What is reported of a run, for one check that follows its source. Pure. */

import type { JobEntry, JobReport } from '../../checks/jobs/job-report.ts'
import type { Instant } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { toTime } from '../../kubernetes/objects.ts'
import type { Failure } from '../reasons/explain-failure.ts'
import { hasEnded, type SourceKind, type SourceRun } from '../sources/source-kind.ts'

/** A report, but for the check that it is for. */
export type RunReport = Omit<JobReport, 'resource'>

/** Returns null while none of its pods has run and it has not ended. */
export function describeRun(
  kind: SourceKind,
  source: string,
  run: SourceRun,
  failure: Failure | null = null,
): RunReport | null {
  if (run.outcome === null) return null
  const { startedAt, endedAt, outcome, metadata } = run
  const lastRun: LastRun = {
    job: metadata.name,
    startTime: timeOf(startedAt),
    completionTime: timeOf(endedAt),
    outcome,
    exitCode: failure?.exitCode ?? null,
    reason: failure?.reason ?? run.condition?.reason ?? null,
    message: failure?.firstLine ?? null,
  }
  return reportOf(source, run, kind.entriesOf(run, failure), lastRun)
}

/** Of a run whose Job is suspended. `run`: as it was seen last before, or as it is. */
export function describeSuspension(kind: SourceKind, source: string, run: SourceRun, at: Instant): RunReport {
  const entries: readonly JobEntry[] = kind.entriesOf(run, null)
  const { startedAt, metadata } = run
  // A Job that was created suspended, as a queue does it, has no run yet.
  if (startedAt === null) return reportOf(source, run, entriesOfSuspension(entries, at), null)
  const lastRun: LastRun = {
    job: metadata.name,
    startTime: timeOf(startedAt),
    completionTime: null,
    // It has neither ended nor gone, and goes on when it is no longer suspended.
    outcome: 'Running',
    exitCode: null,
    reason: 'JobSuspended',
    message: `Job ${metadata.name} is suspended: its queue starts it, or set spec.suspend to false`,
  }
  return reportOf(source, run, entriesOfSuspension(entries, at), lastRun)
}

function entriesOfSuspension(entries: readonly JobEntry[], at: Instant): JobEntry[] {
  return [...entries, { type: 'suspend', at: Math.max(at, entries.at(-1)?.at ?? at) }]
}

export interface Deletion {
  readonly at: Instant
  /** The run that its source started in its place; null: none is known (find-replacement.ts). */
  readonly replacement: SourceRun | null
}

/** Of a run that was deleted, and had not ended as it was seen last. */
export function describeDeletion(
  kind: SourceKind,
  source: string,
  run: SourceRun,
  { at, replacement }: Deletion,
): RunReport {
  const { startedAt, metadata } = run
  const overran =
    replacement === null ? null : `Job ${metadata.name} had not ended when Job ${replacement.metadata.name} replaced it`
  const body = `Job ${metadata.name} was deleted before it ended`
  const entries: readonly JobEntry[] = kind.entriesOf(run, null)
  const last = entries.at(-1)?.at ?? at
  const lastRun: LastRun = {
    job: metadata.name,
    startTime: timeOf(startedAt),
    completionTime: null,
    outcome: 'Deleted',
    exitCode: null,
    reason: null,
    message: overran ?? body,
  }
  const log: JobEntry = { type: 'log', at: Math.max(at, last), body, ...(overran === null ? {} : { overran }) }
  return reportOf(source, run, [...entries, log], lastRun)
}

/**
 * For a check whose HeartbeatCheck says itself how long a run may take: within that time, one that its source replaced
 * took no longer than it may.
 *
 * @param maxRuntimeSeconds as the HeartbeatCheck says; undefined: it does not
 */
export function limitDeletion(found: RunReport, maxRuntimeSeconds: number | undefined): RunReport {
  if (maxRuntimeSeconds === undefined) return found
  const startedAt = found.entries.find(({ type }) => type === 'start')?.at
  const entries = found.entries.map((entry): JobEntry => {
    if (entry.type !== 'log' || entry.overran === undefined) return entry
    const { overran: _, ...log } = entry
    return startedAt !== undefined && entry.at - startedAt < maxRuntimeSeconds * 1_000 ? log : entry
  })
  return { ...found, entries }
}

/** A success of which only the source knows: its run was deleted while nothing was watched. */
export function describeSuccess(source: string, at: Instant): RunReport {
  return { source, runId: null, job: null, entries: [{ type: 'success', at, durationMs: null }], lastRun: null }
}

/** Whether there is news for the checks: most changes of a run are none. */
export function hasNews(before: SourceRun | undefined, after: SourceRun): boolean {
  return after.outcome !== null && (before?.outcome !== after.outcome || before.hasPod !== after.hasPod)
}

/** When the newest that it reports happened. */
export function timeOfRun(run: SourceRun): Instant {
  return (hasEnded(run) ? run.endedAt : run.startedAt) ?? run.createdAt
}

function reportOf(
  source: string,
  { metadata }: SourceRun,
  entries: readonly JobEntry[],
  lastRun: LastRun | null,
): RunReport {
  return { source, runId: metadata.uid, job: metadata.name, entries, lastRun }
}

const timeOf = (at: Instant | null) => (at === null ? null : toTime(at))
