/** What is recorded of runs already, so that a controller that starts reports only what is new. */

import type { Instant } from '../../domain/check.ts'
import type { Resource } from '../../store/checks/checks.ts'
import type { Context } from '../../store/context.ts'
import { findFollowing, readStoredRuns } from '../../store/jobs/followed-checks.ts'
import type { JobEntry } from './job-report.ts'
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
 * The types of the entries that are recorded of each of these runs, in their order: once an end is, all three kinds of
 * end, and all types of a run that is older than the pruned history. Not the start of a run that is neither open nor
 * ended. Null: the resource has no check, or its check follows no source.
 */
export async function findRecorded(
  { database }: Context,
  runs: readonly KnownRun[],
): Promise<(ReadonlySet<JobEntry['type']> | null)[]> {
  const recorded: (Set<JobEntry['type']> | null)[] = runs.map(() => null)
  for (let from = 0; from < runs.length; from += PIECE_RUNS) {
    const piece = runs.slice(from, from + PIECE_RUNS)
    const checks = await findFollowing(
      database,
      piece.map(({ resource }) => resource),
    )
    const known = piece.flatMap(({ runId, at }, index) => {
      const check = checks[index]!
      return check === null ? [] : [{ key: check.key, runId, at, place: from + index }]
    })
    const stored = known.length === 0 ? [] : await readStoredRuns(database, known)
    for (const [index, run] of stored.entries()) {
      const types = new Set<JobEntry['type']>()
      recorded[known[index]!.place] = types
      const isSettled = run.isPruned || run.isOpen || isEnded(run)
      if (isSettled && isRecorded('start', run)) types.add('start')
      if (!run.isOpen) types.add('suspend')
      for (const type of ENDS) if (isRecorded(type, run)) types.add(type)
    }
  }
  return recorded
}
