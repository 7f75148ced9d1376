/**
 * Fails and warnings that a container sent before the start of its Job was recorded: a short container ends within the
 * second in which its start is reported, and a controller that was away records both afterwards. The state machine
 * could not mark the run then (Run.isOverruled), so the history is asked. Pure.
 */

import type { Instant, Run } from '../../domain/check.ts'
import { JOB_TIME_MS } from '../../domain/followed.ts'
import { isKept } from '../../domain/open-runs.ts'
import type { JobReport } from './job-report.ts'

interface Span {
  readonly from: Instant
  /** Null: it runs, as far as it is known. */
  readonly until: Instant | null
}

/** When the run took place, as its report says; null: the report has no start. */
export function spanOf({ entries }: JobReport): Span | null {
  const start = entries.find(({ type }) => type === 'start')
  return start === undefined ? null : { from: start.at, until: endOf(entries) }
}

/** What is known of the runs of one check: those of the reports, and those that are open. */
export interface Beside {
  readonly reports: readonly JobReport[]
  readonly runs: readonly Run[]
  readonly now: Instant
}

/** Whether no other Job ran at `at`: which run a ping without its id is about is known only where one ran. */
export function isAloneAt(at: Instant, { runId }: JobReport, { reports, runs, now }: Beside): boolean {
  const reported = new Map(reports.map((report) => [report.runId, report]))
  const open = runs.filter((run) => run.slotAt !== undefined && !reported.has(run.id) && isKept(run, now))
  const spans = [
    ...open.map(({ startedAt }): Span => ({ from: startedAt, until: null })),
    ...reports.filter((other) => other.runId !== runId).flatMap((other) => spanOf(other) ?? spanOfOpen(other, runs)),
  ]
  return !spans.some(({ from, until }) => from <= at && (until === null || at < until + JOB_TIME_MS))
}

/** Of a run whose start was reported before. */
function spanOfOpen({ runId, entries }: JobReport, runs: readonly Run[]): Span[] {
  const run = runs.find(({ id }) => id === runId)
  return run === undefined || runId === null ? [] : [{ from: run.startedAt, until: endOf(entries) }]
}

function endOf(entries: JobReport['entries']): Instant | null {
  return entries.find(({ type }) => type !== 'start')?.at ?? null
}
