/**
 * Has the news of checks recorded, in groups. A report that the database rejects is tried again, and later once a
 * minute, for as long as its check exists. A report whose check another transaction locks waits until the check is
 * free, as the deadlines of that check do. The later reports of the check wait too: a failure that is stored after a
 * later success alarms about nothing.
 */

import type { JobOutcome, JobReport } from '../../checks/jobs/job-report.ts'
import { MAX_REPORTS } from '../../checks/jobs/record-jobs.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Log } from '../../runtime/log.ts'
import type { Service } from '../service.ts'
import type { RunReport } from './describe-run.ts'
import type { RunNews, Waiting } from './run-news.ts'

export interface ReportSender {
  /** Sends what is known of these checks. Rejects when the database does not serve: the news wait on. */
  send(keys: Iterable<string>): Promise<void>
  /** The keys of the checks that other transactions lock: nothing waits for their reports but their own deadlines. */
  locked(): readonly string[]
}

export interface ReportSenderOptions {
  readonly service: Pick<Service, 'recordJobs'>
  readonly cluster: string
  readonly clock: Clock
  readonly log: Log
  readonly waiting: RunNews
  readonly onOutcome: (outcome: JobOutcome, report: JobReport) => void
  /** The HeartbeatCheck of this key has no check, or too many reports were rejected: it is to be looked at again. */
  readonly onUnknown: (key: string) => void
  /** What is reported to this check. */
  readonly limit: (key: string, report: RunReport) => RunReport
  /** The check is to be sent again after so long. */
  readonly retry: (key: string, ms: number) => void
  /** Then nothing that is rejected is kept. */
  readonly isStopping: () => boolean
}

export const RETRY = { firstMs: 200, maxMs: 2_000 }
/** A report that the database rejects so often is tried once a minute: a fault of ours, or of the check's row. */
const MAX_FAILURES = 5
/** The deadlines of all others wait for more. */
const MAX_LOCKED = 1_000
/** Our own transactions end within seconds: one that locks a check for so long is worth a line in the log. */
const LOCKED_MS = 60_000

interface Lock {
  readonly since: number
  attempts: number
  isLogged: boolean
}

interface Sent {
  readonly key: string
  readonly one: Waiting
  readonly report: JobReport
}

export function createReportSender(options: ReportSenderOptions): ReportSender {
  const { service, cluster, clock, log, waiting, onOutcome, onUnknown, limit, retry, isStopping } = options
  const locks = new Map<string, Lock>()
  /** When the next attempt for a check may come. */
  const pauses = new Map<string, number>()

  function readyOf(key: string): Sent[] {
    const pauseMs = (pauses.get(key) ?? 0) - clock.now()
    if (pauseMs > 0 && !isStopping()) {
      // The queue keeps one time for a key: the earliest, which may have been another one.
      retry(key, pauseMs)
      return []
    }
    pauses.delete(key)
    return waiting.ready(key).map((one) => ({
      key,
      one,
      report: { resource: { cluster, ...splitKey(key) }, ...limit(key, one.news.report!) },
    }))
  }

  /** Returns the checks whose reports are to be sent again, and after how long. */
  async function sendGroup(group: readonly Sent[]): Promise<ReadonlyMap<string, number>> {
    const errors = new Map<JobReport, unknown>()
    const outcomes = await service.recordJobs(
      group.map(({ report }) => report),
      (report, error) => errors.set(report, error),
      // Nothing else waits for a check that was locked before.
      group.some(({ key }) => locks.has(key)) ? 'skip locked' : 'wait',
    )
    const again = new Map<string, number>()
    for (const [index, sent] of group.entries()) {
      const outcome = outcomes[index]!
      const { key, one, report } = sent
      onOutcome(outcome, report)
      if (outcome === 'held') {
        noteLocked(key)
        again.set(key, backoffMs(locks.get(key)?.attempts ?? 0, RETRY))
        continue
      }
      locks.delete(key)
      if (outcome === 'unknown') onUnknown(key)
      if (outcome === 'failed' && !isStopping()) {
        one.failures += 1
        if (one.failures >= MAX_FAILURES) reject(sent, errors.get(report))
        else again.set(key, backoffMs(one.failures - 1, RETRY))
      } else waiting.remove(key, one)
    }
    for (const key of again.keys()) {
      const lock = locks.get(key)
      if (lock !== undefined) lock.attempts += 1
    }
    return again
  }

  function noteLocked(key: string): void {
    const lock = locks.get(key)
    if (lock === undefined) {
      if (locks.size < MAX_LOCKED) locks.set(key, { since: clock.now(), attempts: 0, isLogged: false })
    } else if (!lock.isLogged && clock.now() - lock.since >= LOCKED_MS) {
      lock.isLogged = true
      log.warn(
        splitKey(key),
        'another transaction has held the row of a check for a minute: what its Jobs report, and its deadlines, wait until that ends',
      )
    }
  }

  function reject({ key, one, report: { job } }: Sent, error: unknown): void {
    if (!waiting.reject(key, one)) {
      waiting.remove(key, one)
      onUnknown(key)
    }
    if (one.failures === MAX_FAILURES)
      log.error(
        { error, ...splitKey(key), job },
        'what a Job reports was rejected again and again; it is tried again once a minute',
      )
  }

  return {
    async send(keys) {
      let left: readonly Sent[] = [...keys].flatMap(readyOf)
      while (left.length > 0) {
        const again = await sendGroup(left.slice(0, MAX_REPORTS))
        for (const [key, ms] of again) {
          pauses.set(key, clock.now() + ms)
          retry(key, ms)
        }
        left = left.slice(MAX_REPORTS).filter(({ key }) => !again.has(key))
      }
    },
    locked: () => [...locks.keys()],
  }
}
