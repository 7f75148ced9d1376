/**
 * Records what the Jobs of CronJobs report, each entry once, through the one spine (../change.ts). An entry is stored in the transaction that looks
 * whether it is, under the lock of its check: so two controllers at once, or one that was killed after its commit, store it once.
 */

import { isDeepStrictEqual } from 'node:util'
import type { Instant } from '../../domain/check.ts'
import { AppError } from '../../domain/errors.ts'
import { type LastRun, newerRun } from '../../domain/last-run.ts'
import { saveChanges } from '../../store/checks/change-sets.ts'
import { type LockedCheck, lockStates } from '../../store/checks/states.ts'
import type { Context } from '../../store/context.ts'
import { type CronJobRow, readCronJobs, saveCronJobs, toStoredText } from '../../store/jobs/cron-jobs.ts'
import { findFollowing, readStoredRuns } from '../../store/jobs/followed-checks.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { LOCK_NOT_AVAILABLE, sqlStateOf } from '../../store/postgres/sqlstate.ts'
import { type Decision, decideChanges } from '../change.ts'
import { isAloneAt, spanOf } from './early-fails.ts'
import type { JobOutcome, JobReport } from './job-report.ts'
import { inOrderOfTime, toChange } from './to-change.ts'

/** Reports in one transaction; more are recorded in several. */
export const MAX_REPORTS = 200

/** Called with each report whose outcome is `failed`. */
export type OnFailed = (report: JobReport, error: unknown) => void

/**
 * Records reports; those that are recorded together in the order of what happened. Returns the outcome of each, in their order. Recorded again, also by two controllers at once, an
 * entry has the outcome `repeated`. `wait`: for rows that another transaction holds. Throws AppError `unavailable` when the database cannot serve it now: all can be reported again.
 */
export async function recordJobs(
  context: Context,
  reports: readonly JobReport[],
  onFailed: OnFailed = () => {},
  wait: 'wait' | 'skip locked' = 'wait',
): Promise<JobOutcome[]> {
  const ends = gatherEnds(reports)
  const outcomes: JobOutcome[] = []
  for (let at = 0; at < reports.length; at += MAX_REPORTS) {
    const group = reports.slice(at, at + MAX_REPORTS)
    const recorded = await recordParts(context, { group, ends, wait })
    for (const [index, { outcome, error }] of recorded.entries()) {
      outcomes.push(outcome)
      if (outcome === 'failed') onFailed(group[index]!, error)
    }
  }
  return outcomes
}

interface Recorded {
  readonly outcome: JobOutcome
  /** Of a failed one. */
  readonly error?: unknown
}

interface Group {
  readonly group: readonly JobReport[]
  /** Of each check the times of all completions that are reported. */
  readonly ends: ReadonlyMap<string, readonly Instant[]>
  /** `skip locked`: reports of checks that another transaction holds are `held`, and the others are recorded. */
  readonly wait: 'wait' | 'skip locked'
}

/** A group that PostgreSQL rejects is halved until each rejected report stands alone. */
async function recordParts(context: Context, { group, ends, wait }: Group): Promise<Recorded[]> {
  try {
    return await recordGroup(context, { group, ends, wait })
  } catch (error) {
    if (error instanceof AppError) {
      const isHeld = sqlStateOf(error.cause) === LOCK_NOT_AVAILABLE
      if (isHeld && wait === 'wait') return recordParts(context, { group, ends, wait: 'skip locked' })
      throw error
    }
    if (group.length === 1) return [{ outcome: 'failed', error }]
    const middle = group.length >> 1
    const head = await recordParts(context, { group: group.slice(0, middle), ends, wait })
    return [...head, ...(await recordParts(context, { group: group.slice(middle), ends, wait }))]
  }
}

function recordGroup({ database, clock }: Context, { group, ends, wait }: Group): Promise<Recorded[]> {
  return database.transaction(async (tx) => {
    const found = await findFollowing(
      tx,
      group.map(({ resource }) => resource),
    )
    const known = group.flatMap((report, index) => {
      const check = found[index]!
      return check === null ? [] : [{ report, check, index }]
    })
    const recorded: Recorded[] = group.map(() => ({ outcome: 'unknown' }))
    if (known.length === 0) return recorded
    const keys = [...new Set(known.map(({ check }) => check.key))]
    const runs = known.map(({ report, check }) => ({
      key: check.key,
      runId: report.runId,
      at: report.entries.at(-1)?.at ?? 0,
      span: spanOf(report),
    }))
    // In one round trip; PostgreSQL reads the rest when it has the locks.
    const [locked, stored, cronJobs] = await inOrder([
      lockStates(tx, keys, wait),
      readStoredRuns(tx, runs),
      readCronJobs(tx, keys),
    ])
    const states = new Map(locked.map((check) => [check.key, check]))
    const lastRuns = new Map(cronJobs.map(({ key, lastRun }) => [key, lastRun]))
    const now = clock.now()
    const planned = new Set<string>()
    const newestPasts = new Map<number, Instant>()
    for (const { report, check } of known) {
      if (newestPasts.has(check.key)) continue
      const isPast = (at: Instant) => at < check.createdAt
      newestPasts.set(
        check.key,
        ends
          .get(nameOf(report))!
          .filter(isPast)
          .sort((one, other) => other - one)[0] ?? 0,
      )
    }
    const plans = known.map(({ report, check, index }, place) => {
      const openRuns = states.get(check.key)?.state.runs ?? []
      const { failedAt } = stored[place]!
      const own = () => known.filter((other) => other.check.key === check.key).map((other) => other.report)
      const facts = {
        check,
        runs: openRuns,
        stored: stored[place]!,
        hasFailedEarly: failedAt !== null && isAloneAt(failedAt, report, { reports: own(), runs: openRuns, now }),
        lastRun: lastRuns.get(check.key) ?? null,
        now,
        newestPast: newestPasts.get(check.key)!,
      }
      return { report, key: check.key, index, facts, decisions: [] as Decision[] }
    })
    // Runs of one check overlap: what happened first decides first, whichever run it is of.
    const entries = plans.flatMap((plan) => plan.report.entries.map((entry) => ({ plan, entry })))
    const changes = inOrderOfTime(entries).flatMap(({ plan, entry }) => {
      const change = states.has(plan.key) ? toChange(plan.report, entry, plan.facts, planned) : null
      return change === null ? [] : [{ plan, change }]
    })
    const { decisions, changeSet, after } = decideChanges(
      locked,
      changes.map(({ change }) => change),
      'earlier',
    )
    for (const [index, { plan }] of changes.entries()) plan.decisions.push(decisions[index]!)
    const kept: typeof plans = []
    for (const plan of plans) {
      const own = plan.decisions
      const failure = own.find((decision) => decision.kind === 'failed')
      if (!states.has(plan.key)) recorded[plan.index] = wait === 'wait' ? { outcome: 'unknown' } : { outcome: 'held' }
      else if (failure !== undefined) recorded[plan.index] = { outcome: 'failed', error: failure.error }
      else {
        recorded[plan.index] = { outcome: own.length > 0 ? 'recorded' : 'repeated' }
        kept.push(plan)
      }
    }
    const pings = changeSet.pings.map((ping) => (ping.type === 'log' ? { ...ping, exitCode: null } : ping))
    const changed = findChanged(
      kept.map(({ report, key }) => ({ report, key })),
      cronJobs,
      after,
    )
    await inOrder([
      // Sent first: events have the name of the CronJob.
      changed.length === 0 ? undefined : saveCronJobs(tx, changed),
      saveChanges(tx, { ...changeSet, pings }),
    ])
    return recorded
  })
}

const nameOf = ({ resource: { cluster, namespace, name } }: JobReport) => `${cluster}/${namespace}/${name}`

function gatherEnds(reports: readonly JobReport[]): ReadonlyMap<string, readonly Instant[]> {
  const ends = new Map<string, Instant[]>()
  for (const report of reports) {
    const own = ends.get(nameOf(report)) ?? []
    for (const { type, at } of report.entries) if (type === 'success' || type === 'fail') own.push(at)
    ends.set(nameOf(report), own)
  }
  return ends
}

/** The rows of the CronJobs that differ once the reports are recorded. */
function findChanged(
  reported: readonly { readonly report: JobReport; readonly key: number }[],
  stored: readonly CronJobRow[],
  after: readonly LockedCheck[],
): CronJobRow[] {
  const before = new Map(stored.map((row) => [row.key, row]))
  const rows = new Map<number, CronJobRow>()
  for (const { report, key } of reported) {
    const { source: name, runId, job } = report
    const row = rows.get(key) ?? before.get(key) ?? { key, name, lastRun: null, jobs: {} }
    const lastRun = newerRun(row.lastRun, report.lastRun === null ? null : toStored(report.lastRun, runId))
    const jobs = runId === null || job === null ? row.jobs : { ...row.jobs, [runId]: job }
    rows.set(key, { key, name, lastRun, jobs })
  }
  const open = new Map(after.map(({ key, state }) => [key, new Set(state.runs.map(({ id }) => id))]))
  return [...rows.values()].flatMap((row) => {
    const isOpen = ([runId]: [string, string]) => open.get(row.key)?.has(runId) === true
    const jobs = open.has(row.key)
      ? Object.fromEntries(Object.entries(row.jobs).filter(isOpen))
      : (before.get(row.key)?.jobs ?? {})
    const next = { ...row, jobs }
    return isDeepStrictEqual(next, before.get(row.key)) ? [] : [next]
  })
}

/** With its id, and with texts that PostgreSQL stores, and of a bounded length. */
function toStored(run: LastRun, runId: string | null): LastRun {
  return {
    ...run,
    ...(runId === null ? {} : { runId }),
    reason: run.reason === null ? null : toStoredText(run.reason),
    message: run.message === null ? null : toStoredText(run.message),
  }
}
