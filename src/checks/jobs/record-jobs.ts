/**
 * Records what the Jobs of CronJobs report. The transaction that stores an entry looks, under the lock of its check,
 * whether the entry is stored: so two controllers, or one that was killed after its commit, store it once.
 */

import { AppError } from '../../domain/errors.ts'
import { saveChanges } from '../../store/checks/change-sets.ts'
import { lockStates } from '../../store/checks/states.ts'
import type { Context } from '../../store/context.ts'
import { readCronJobs, saveCronJobs } from '../../store/jobs/cron-jobs.ts'
import { findFollowing, readStoredRuns } from '../../store/jobs/followed-checks.ts'
import { inOrder } from '../../store/postgres/in-order.ts'
import { LOCK_NOT_AVAILABLE, sqlStateOf } from '../../store/postgres/sqlstate.ts'
import { inCircumstances } from '../change.ts'
import { spanOf } from './early-ends.ts'
import type { JobOutcome, JobReport } from './job-report.ts'
import { nameOf, planReports, type Recorded } from './plan-reports.ts'

/** Callers give at most so many reports, which one transaction records. */
export const MAX_REPORTS = 200

/** Called with each report whose outcome is `failed`. */
export type OnFailed = (report: JobReport, error: unknown) => void

/**
 * Records reports, in the order of what happened. Returns the outcome of each, in their order. Recorded again, also by
 * two controllers at once, an entry has the outcome `repeated`. `wait`: for rows that another transaction holds; with
 * `skip locked` the reports of their checks are `held`, and the others are recorded. Throws AppError `unavailable` when
 * the database cannot serve it now: all can be reported again.
 */
export async function recordJobs(
  context: Context,
  reports: readonly JobReport[],
  onFailed: OnFailed = () => {},
  wait: Wait = 'wait',
): Promise<JobOutcome[]> {
  const recorded = await recordParts(context, { group: reports, all: reports, wait })
  for (const [index, { outcome, error }] of recorded.entries())
    if (outcome === 'failed') onFailed(reports[index]!, error)
  return recorded.map(({ outcome }) => outcome)
}

export type Wait = 'wait' | 'skip locked'

interface Group {
  readonly group: readonly JobReport[]
  /** The reports of all parts of the group. */
  readonly all: readonly JobReport[]
  readonly wait: Wait
}

const HELD: Recorded = { outcome: 'held' }

/** A group that PostgreSQL rejects is halved until each rejected report stands alone. */
async function recordParts(context: Context, { group, all, wait }: Group): Promise<Recorded[]> {
  try {
    return await recordGroup(context, { group, all, wait })
  } catch (error) {
    if (error instanceof AppError) {
      const isHeld = sqlStateOf(error.cause) === LOCK_NOT_AVAILABLE
      if (isHeld && wait === 'wait') return recordParts(context, { group, all, wait: 'skip locked' })
      throw error
    }
    if (group.length <= 1) return group.map(() => ({ outcome: 'failed', error }))
    const middle = group.length >> 1
    const head = await recordParts(context, { group: group.slice(0, middle), all, wait })
    // The later reports of a check that is held wait too, though the check is free by now.
    const held = new Set(head.flatMap(({ outcome }, index) => (outcome === 'held' ? [nameOf(group[index]!)] : [])))
    const free = group.slice(middle).filter((report) => !held.has(nameOf(report)))
    const tail = (await recordParts(context, { group: free, all, wait })).values()
    const rest = group.slice(middle).map((report) => (held.has(nameOf(report)) ? HELD : tail.next().value!))
    return [...head, ...rest]
  }
}

function recordGroup({ database, clock }: Context, { group, all, wait }: Group): Promise<Recorded[]> {
  return database.transaction(async (tx) => {
    const recorded: Recorded[] = group.map(() => ({ outcome: 'unknown' }))
    const resources = group.map(({ resource }) => resource)
    const checks = await findFollowing(tx, resources)
    const known = group.flatMap((report, index) => {
      const check = checks[index]!
      return check === null ? [] : [{ report, check, index }]
    })
    if (known.length === 0) return recorded
    const keys = [...new Set(known.map(({ check }) => check.key))]
    const runs = known.map(({ report, check: { key } }) => {
      const { runId, entries } = report
      return { key, runId, at: entries.at(-1)?.at ?? 0, span: spanOf(report) }
    })
    // In one round trip; PostgreSQL reads the rest when it has the locks.
    const [locked, stored, cronJobs] = await inOrder([
      lockStates(tx, keys, wait),
      readStoredRuns(tx, runs),
      readCronJobs(tx, keys),
    ])
    const gathered = known.map((one, place) => ({ ...one, stored: stored[place]! }))
    const now = clock.now()
    const plan = await inCircumstances(tx, locked, now, (around) =>
      planReports(gathered, { all, locked, cronJobs, now, around }),
    )
    for (const [place, { index }] of known.entries())
      recorded[index] = plan.recorded[place] ?? { outcome: wait === 'wait' ? 'unknown' : 'held' }
    await inOrder([
      // Sent first: events have the name of the CronJob.
      plan.cronJobs.length === 0 ? undefined : saveCronJobs(tx, plan.cronJobs),
      saveChanges(tx, plan.changeSet),
    ])
    return recorded
  })
}
