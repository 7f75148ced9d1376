/** What a group of reports changes, from what is known of their checks under the locks. Pure. */

import { isDeepStrictEqual } from 'node:util'
import { type CheckState, type Instant, isCompletion } from '../../domain/check.ts'
import { type LastRun, newerRun } from '../../domain/last-run.ts'
import { toStoredText } from '../../domain/plain-text.ts'
import { isWarning } from '../../domain/warning.ts'
import type { ChangeSet } from '../../store/checks/change-sets.ts'
import type { LockedCheck } from '../../store/checks/states.ts'
import type { CronJobRow } from '../../store/jobs/cron-jobs.ts'
import type { FollowingCheck, StoredRun } from '../../store/jobs/followed-checks.ts'
import { type Around, type Decision, decideChanges } from '../change.ts'
import { isAloneAt } from './early-ends.ts'
import type { JobEntry, JobOutcome, JobReport, ReadEntry } from './job-report.ts'
import { type RunLedger, toChange } from './to-change.ts'

export interface Recorded {
  readonly outcome: JobOutcome
  /** Of a failed one. */
  readonly error?: unknown
}

export interface Gathered {
  readonly report: JobReport
  readonly check: FollowingCheck
  /** What the history has of its run. */
  readonly stored: StoredRun
}

export interface Facts {
  /** Further reports of the same checks may be recorded by other transactions. */
  readonly all: readonly JobReport[]
  /** Of a check that is missing, nothing is recorded. */
  readonly locked: readonly LockedCheck[]
  readonly cronJobs: readonly CronJobRow[]
  readonly now: Instant
  readonly around: Around
}

export interface Plan {
  /** Of each report, in their order; null: its check is not locked. */
  readonly recorded: readonly (Recorded | null)[]
  readonly changeSet: ChangeSet
  /** The rows of the CronJobs that differ. */
  readonly cronJobs: readonly CronJobRow[]
}

export function planReports(gathered: readonly Gathered[], { all, locked, cronJobs, now, around }: Facts): Plan {
  const states = new Map(locked.map(({ key, state }) => [key, state]))
  const codes = new Map(locked.map(({ key, stored }) => [key, stored.warnExitCodes]))
  const lastRuns = new Map(cronJobs.map(({ key, lastRun }) => [key, lastRun]))
  const reportsOf = Map.groupBy(all, nameOf)
  const ownOf = Map.groupBy(gathered, ({ check }) => check.key)
  const ledgers = new Map<string, RunLedger>()
  const plans = gathered.map(({ report, check, stored }) => {
    const { key, createdAt } = check
    const runs = states.get(key)?.runs ?? []
    const reports = ownOf.get(key)!.map((own) => own.report)
    const { overruledAt } = stored
    const facts = {
      check,
      runs,
      stored,
      isOverruledEarly: overruledAt !== null && isAloneAt(overruledAt, report, { reports, runs, now }),
      lastRun: lastRuns.get(key) ?? null,
      now,
      newestPast: newestEndBefore(createdAt, reportsOf.get(nameOf(report))!),
    }
    const run = `${key}:${report.runId}`
    const ledger: RunLedger = ledgers.get(run) ?? new Set()
    ledgers.set(run, ledger)
    const warnExitCodes = codes.get(key) ?? []
    return { report, warnExitCodes, key, facts, ledger, decisions: [] as Decision[] }
  })
  // Runs of one check overlap: what happened first decides first, whichever run it is of.
  const entries = plans.flatMap((plan) =>
    plan.report.entries.map((entry) => ({ plan, entry: readEntry(entry, plan.warnExitCodes) })),
  )
  const steps = inOrderOfTime(entries).flatMap(({ plan, entry }) => {
    const change = states.has(plan.key) ? toChange(plan.report, entry, plan.facts, plan.ledger) : null
    return change === null ? [] : [{ plan, change }]
  })
  const changes = steps.map(({ change }) => change)
  const { decisions, changeSet, after } = decideChanges(locked, changes, 'earlier', around)
  for (const [index, { plan }] of steps.entries()) plan.decisions.push(decisions[index]!)
  for (const { key, state } of after) states.set(key, state)
  const recorded = plans.map(({ key, decisions }): Recorded | null => {
    if (!states.has(key)) return null
    const failure = decisions.find((decision) => decision.kind === 'failed')
    if (failure !== undefined) return { outcome: 'failed', error: failure.error }
    return { outcome: decisions.length > 0 ? 'recorded' : 'repeated' }
  })
  const kept = plans.filter((_, place) => (recorded[place]?.outcome ?? 'failed') !== 'failed')
  // A success, whose exit code is 0, may be stored as a log.
  const pings = changeSet.pings.map((ping) => (ping.type === 'log' ? { ...ping, exitCode: null } : ping))
  return { recorded, changeSet: { ...changeSet, pings }, cronJobs: planCronJobs(kept, cronJobs, states) }
}

const readEntry = (entry: JobEntry, warnExitCodes: readonly number[]): ReadEntry =>
  entry.type === 'fail' && isWarning(entry.exitCode, warnExitCodes) ? { ...entry, type: 'warn' } : entry

const readRun = (run: LastRun | null, warnExitCodes: readonly number[]): LastRun | null =>
  run?.outcome === 'Failed' && isWarning(run.exitCode, warnExitCodes) ? { ...run, outcome: 'Warned' } : run

/** Of the check of a report. */
export const nameOf = ({ resource: { cluster, namespace, name } }: JobReport) => `${cluster}/${namespace}/${name}`

function newestEndBefore(createdAt: Instant, reports: readonly JobReport[]): Instant {
  const ends = reports.flatMap(({ entries }) => entries.filter(({ type }) => isCompletion(type)))
  return ends.reduce((newest, { at }) => (at < createdAt ? Math.max(newest, at) : newest), 0)
}

/** Sorts by time; at equal times a start comes before the end of a run. */
function inOrderOfTime<T extends { readonly entry: ReadEntry }>(all: readonly T[]): T[] {
  const rank = ({ entry }: T) => (entry.type === 'start' ? 0 : 1)
  return all.toSorted((one, other) => one.entry.at - other.entry.at || rank(one) - rank(other))
}

/** The rows that differ once these reports are recorded. `states`: as they are then. */
function planCronJobs(
  reported: readonly { readonly report: JobReport; readonly key: number; readonly warnExitCodes: readonly number[] }[],
  stored: readonly CronJobRow[],
  states: ReadonlyMap<number, CheckState>,
): CronJobRow[] {
  const before = new Map(stored.map((row) => [row.key, row]))
  const rows = new Map<number, CronJobRow>()
  for (const { report, key, warnExitCodes } of reported) {
    const { source: name, runId, job, lastRun } = report
    const row = rows.get(key) ?? before.get(key) ?? { key, name, lastRun: null, jobs: {} }
    const jobs = runId === null || job === null ? row.jobs : { ...row.jobs, [runId]: job }
    rows.set(key, { key, name, lastRun: newerRun(row.lastRun, toStored(readRun(lastRun, warnExitCodes), runId)), jobs })
  }
  return [...rows.values()].flatMap((row) => {
    const open = new Set(states.get(row.key)!.runs.map(({ id }) => id))
    const jobs = Object.fromEntries(Object.entries(row.jobs).filter(([runId]) => open.has(runId)))
    const next = { ...row, jobs }
    return isDeepStrictEqual(next, before.get(row.key)) ? [] : [next]
  })
}

/** With its id, and with texts that PostgreSQL stores, and of a bounded length. */
function toStored(run: LastRun | null, runId: string | null): LastRun | null {
  if (run === null) return null
  const { reason, message } = run
  return {
    ...run,
    ...(runId === null ? {} : { runId }),
    reason: reason === null ? null : toStoredText(reason),
    message: message === null ? null : toStoredText(message),
  }
}
