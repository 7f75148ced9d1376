/**
 * Stores what waits in the queue of reports, in groups. A report that the database rejects is tried again, and later once a minute, for as long
 * as its check exists. One whose check another transaction holds waits until the check is free, as the deadlines of that check do. The later reports of its check wait too:
 * a failure that is stored after a later success alarms about nothing.
 */

import type { JobOutcome, JobReport } from '../../checks/jobs/job-report.ts'
import { MAX_REPORTS } from '../../checks/jobs/record-jobs.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import type { Resource } from '../../store/checks/checks.ts'
import type { Context } from '../../store/context.ts'
import type { JobVerbs } from './job-verbs.ts'
import { idOf, type ReportQueue, type Waiting } from './report-queue.ts'

export interface ReportStore {
  /** Stores the oldest; returns false when none can be stored now. Rejects when the database does not serve: they wait on. */
  storeSome(): Promise<boolean>
  /** The HeartbeatChecks whose checks other transactions hold: nothing waits for their reports but their own deadlines. */
  held(): readonly Resource[]
  /** Puts into the queue what was rejected again and again, for one attempt. */
  retryRejected(): void
}

export interface ReportStoreOptions {
  readonly context: Context
  readonly clock: Clock
  readonly log: Log
  readonly queue: ReportQueue
  readonly verbs: Pick<JobVerbs, 'recordJobs'>
  readonly onOutcome: (outcome: JobOutcome, report: JobReport) => void
  /** The HeartbeatCheck of this key has no check, or too many reports were rejected: it is to be looked at again. */
  readonly onMissing: (key: string) => void
  /** Then nothing that is rejected is kept. */
  readonly isStopping: () => boolean
}

export const RETRY = { firstMs: 200, maxMs: 2_000 }
/** A report that the database rejects so often waits for retryRejected(): a fault of ours, or of the check's row. */
const MAX_FAILURES = 5
const MAX_REJECTED = 1_000
/** The deadlines of all others wait for more. */
const MAX_HELD = 1_000
/** Our own transactions end within seconds: one that holds a check for so long is worth a line in the log. */
const HELD_MS = 60_000

interface Hold {
  readonly resource: Resource
  readonly since: number
  attempts: number
  isLogged: boolean
}

export function createReportStore(options: ReportStoreOptions): ReportStore {
  const { context, clock, log, queue, verbs, onOutcome, onMissing, isStopping } = options
  /** By the key of the HeartbeatCheck. */
  const held = new Map<string, Hold>()
  /** By their ids. Null: it is tried again. */
  const rejected = new Map<string, JobReport | null>()

  /** Returns whether it is done. */
  function note(one: Waiting, outcome: JobOutcome, error: unknown): boolean {
    const { report, failures } = one
    const key = keyOf(report.resource)
    onOutcome(outcome, report)
    if (outcome === 'held') {
      noteHeld(key, report.resource)
      return false
    }
    held.delete(key)
    if (outcome === 'unknown') onMissing(key)
    if (outcome !== 'failed') {
      rejected.delete(idOf(report))
      return true
    }
    if (failures + 1 < MAX_FAILURES && !rejected.has(idOf(report)) && !isStopping()) return false
    reject(report, error)
    return true
  }

  function noteHeld(key: string, resource: Resource): void {
    const hold = held.get(key)
    if (hold === undefined) {
      if (held.size < MAX_HELD) held.set(key, { resource, since: clock.now(), attempts: 0, isLogged: false })
    } else if (!hold.isLogged && clock.now() - hold.since >= HELD_MS) {
      hold.isLogged = true
      const { namespace, name } = resource
      log.warn(
        { namespace, name },
        'another transaction has held the row of a check for a minute: what its Jobs report, and its deadlines, wait until that ends',
      )
    }
  }

  function reject(report: JobReport, error: unknown): void {
    const id = idOf(report)
    const { namespace, name } = report.resource
    if (!rejected.has(id))
      log.error(
        { error, namespace, name, job: report.job },
        'what a Job reports was rejected again and again; it is tried again once a minute',
      )
    if (rejected.has(id) || rejected.size < MAX_REJECTED) rejected.set(id, report)
    else onMissing(keyOf(report.resource))
  }

  /** Those that were held are not counted. */
  function tryAgain(one: Waiting, outcome: JobOutcome): void {
    const { resource } = one.report
    const hold = outcome === 'held' ? held.get(keyOf(resource)) : undefined
    queue.again([one], hold === undefined)
    queue.pause(resource, {
      until: clock.now() + backoffMs(hold?.attempts ?? one.failures, RETRY),
      isAwaited: hold === undefined,
    })
  }

  return {
    async storeSome() {
      const taken = queue.take(MAX_REPORTS, clock.now())
      if (taken.length === 0) return false
      const errors = new Map<JobReport, unknown>()
      let outcomes: readonly JobOutcome[]
      try {
        outcomes = await verbs.recordJobs(
          context,
          taken.map(({ report }) => report),
          (report, error) => errors.set(report, error),
          // Nothing else waits for what was held before.
          taken.some(({ report }) => held.has(keyOf(report.resource))) ? 'skip locked' : 'wait',
        )
      } catch (error) {
        queue.again(taken, false)
        throw error
      }
      const isDone = taken.map((one, index) => note(one, outcomes[index]!, errors.get(one.report)))
      for (const [index, one] of taken.entries()) if (!isDone[index]) tryAgain(one, outcomes[index]!)
      for (const key of new Set(taken.map(({ report }) => keyOf(report.resource)))) {
        const hold = held.get(key)
        if (hold !== undefined) hold.attempts += 1
      }
      queue.done(taken.filter((_, index) => isDone[index]))
      return true
    },
    held: () => Array.from(held.values(), ({ resource }) => resource),
    retryRejected() {
      for (const [id, report] of rejected) {
        if (report === null) continue
        // What came since of the same run says more.
        if (!queue.has(id) && !queue.add(report)) return
        rejected.set(id, null)
      }
    },
  }
}
