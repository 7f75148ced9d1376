/**
 * What Jobs do that take too long, in time for the alert: saved together with "all Jobs seen until t" (keep-seen.ts).
 * The caches alone say it.
 */

import type { DeadlineDetail, OverdueRun } from '../../checks/find-checks.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import { explainRunning } from '../reasons/explain-running.ts'
import type { SourceWatch } from '../sources/watch-sources.ts'

/** Leaves out those of which nothing is known: their flips name the Job and its limit all the same. */
export function explainOverran(
  sources: Pick<SourceWatch, 'getSource' | 'getRun' | 'podsOf'>,
  overdue: readonly OverdueRun[],
): DeadlineDetail[] {
  return overdue.flatMap(({ resource, source, runId, deadlineAt: dueAt }) => {
    const { namespace } = resource
    const owner = sources.getSource(keyOf({ namespace, name: source }))
    const run = owner === undefined ? undefined : sources.getRun(owner.metadata.uid, runId)
    const detail = run === undefined ? null : explainRunning(sources.podsOf(run.metadata))
    return detail === null ? [] : [{ resource, source, dueAt, job: run!.metadata.name, detail }]
  })
}
