/** The controllers of what CronJobs and their Jobs report: what is recorded, and up to when all of it is. */

import type { LastRun } from '../../domain/last-run.ts'
import { keyOf, splitKey } from '../../kubernetes/objects.ts'
import { createLogReader } from '../reasons/read-logs.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'
import type { Controller, Term } from '../term.ts'
import type { CheckWatch } from '../watch-checks.ts'
import { countRecorded } from './count-recorded.ts'
import { AHEAD_MS, createMissedExplainer } from './explain-missed.ts'
import { explainOverran } from './explain-overran.ts'
import { createSeenKeeper } from './keep-seen.ts'
import { createRunRecorder, isEmpty, type RunRecorder } from './record-runs.ts'

export interface RunControllersOptions {
  readonly sources: SourceWatch
  readonly checks: CheckWatch
  /** The last run of the check of this HeartbeatCheck is another, or has ended. */
  readonly noteRun: (key: string, run: LastRun) => void
  /** How often a deadline is looked for that waits for the Jobs. Undefined: the default of keep-seen.ts. */
  readonly seenEveryMs: number | undefined
}

export interface RunControllers extends Pick<RunRecorder, 'follow'> {
  readonly controllers: readonly Controller[]
}

export function createRunControllers(term: Term, options: RunControllersOptions): RunControllers {
  const { client, service, cluster, clock, log, cronJobs } = term
  const { sources, checks, noteRun, seenEveryMs } = options
  const onProblem = (error: unknown) =>
    log.warn({ error }, 'logs of containers that failed cannot be read: their Jobs are recorded without them')
  const runs = createRunRecorder(term, {
    sources,
    checks,
    logs: cronJobs.logs === 'failed' ? createLogReader({ client, clock, onProblem }) : null,
    onOutcome(outcome, report) {
      const { resource, lastRun } = report
      countRecorded(term.metrics, outcome, report)
      // A run in progress may say more than when its start was recorded.
      const isNews = outcome === 'recorded' || (outcome === 'repeated' && lastRun?.outcome === 'Running')
      if (isNews && lastRun !== null) noteRun(keyOf(resource), lastRun)
    },
  })
  const missed = createMissedExplainer({
    listDue: service.listFollowedDue,
    client,
    sources,
    clock,
    log,
  })
  const seen = createSeenKeeper(term, {
    areas: sources.areas,
    everyMs: seenEveryMs,
    due: (until) => service.listDueAreas(sources.areas, until, AHEAD_MS),
    busy: () => sources.busyAreas((source) => !isEmpty(checks.followersOf(source))),
    // Without its HeartbeatChecks, what the Jobs of a namespace report is not recorded.
    async confirm(asked, signal) {
      const unlisted = new Set(checks.unlisted().map(sources.areaOf))
      return (await sources.confirm(asked, signal)).filter((area) => !unlisted.has(area))
    },
    whenRecorded: runs.whenRecorded,
    async explain(areas, until, signal) {
      const [details, overdue] = await Promise.all([
        missed.explain(areas, until, signal),
        service.listOverdueRuns(areas, until),
      ])
      return [...details, ...explainOverran(sources, overdue)]
    },
    save: ({ held, ...seen }, details) =>
      service.markSeen({ cluster, watched: sources.areas, ...seen, held: held.map(splitKey) }, details),
    saveUnseen: (areas) => service.saveUnseen(cluster, areas),
    needed: () => [...new Set(Array.from(checks.followers(), (key) => sources.areaOf(splitKey(key).namespace)))],
  })
  return { controllers: [runs, seen], follow: runs.follow }
}
