/** What is recorded of runs already, so that a controller that starts reports only what is new. */

import type { Instant } from '../../domain/check.ts'
import type { Resource } from '../../store/checks/checks.ts'
import type { Context } from '../../store/context.ts'
import { findFollowing, readStoredRuns } from '../../store/jobs/followed-checks.ts'
import { recordedKey } from './job-report.ts'
import { isEnded, isRecorded } from './to-change.ts'

export interface KnownRun {
  readonly resource: Resource
  readonly runId: string
  /** When it ended, or else started. */
  readonly at: Instant
}

/** Runs that one statement reads. */
const PIECE_RUNS = 1_000
const ENDS = ['success', 'fail', 'log'] as const

/**
 * The entries of these runs that are recorded, as `recordedKey` names them: once an end is, all three kinds of end, and
 * all entries of a run that is older than the pruned history. Not the start of a run that is neither open nor ended.
 */
export async function findRecorded({ database }: Context, runs: readonly KnownRun[]): Promise<Set<string>> {
  const recorded = new Set<string>()
  for (let from = 0; from < runs.length; from += PIECE_RUNS) {
    const piece = runs.slice(from, from + PIECE_RUNS)
    const checks = await findFollowing(
      database,
      piece.map(({ resource }) => resource),
    )
    const known = piece.flatMap(({ runId, at }, index) => {
      const check = checks[index]!
      return check === null ? [] : [{ key: check.key, runId, at }]
    })
    const stored = known.length === 0 ? [] : await readStoredRuns(database, known)
    for (const [index, run] of stored.entries()) {
      const { runId } = known[index]!
      const isSettled = run.isPruned || run.isOpen || isEnded(run)
      if (isSettled && isRecorded('start', run)) recorded.add(recordedKey(runId, 'start'))
      if (!run.isOpen) recorded.add(recordedKey(runId, 'suspend'))
      for (const type of ENDS) if (isRecorded(type, run)) recorded.add(recordedKey(runId, type))
    }
  }
  return recorded
}
