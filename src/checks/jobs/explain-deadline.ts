/** What the flip says that the passed deadline of a check with a source caused: the Job of the run, and why. */

import type { CheckSpec, CheckState, FlipReason } from '../../domain/check.ts'
import { deadlineOf } from '../../domain/transition.ts'
import type { NewFlip } from '../../store/history/new-flips.ts'
import type { DeadlineSource } from '../../store/jobs/cron-jobs.ts'

/** `state`: before the flip. Nothing where the source is not known to have a Job for the run. */
export function explainDeadline(
  { jobs, limitFrom, waitingFor, waitingJob, waitingDetail }: DeadlineSource,
  { maxRuntimeMs }: Pick<CheckSpec, 'maxRuntimeMs'>,
  state: CheckState,
  reason: FlipReason,
): Pick<NewFlip, 'detail' | 'job'> {
  const deadline = deadlineOf(state)
  const isAbout = waitingFor === deadline
  if (reason === 'missed' && isAbout) return { detail: waitingDetail, job: waitingJob }
  const run = reason === 'overran' ? state.runs.find(({ deadlineAt }) => deadlineAt === deadline) : undefined
  const job = jobs[run?.id ?? '']
  if (job === undefined || maxRuntimeMs === null) return {}
  const limit = `${maxRuntimeMs / 1_000} s${limitFrom === null ? '' : ` (${limitFrom})`}`
  const what = isAbout && waitingJob === job && waitingDetail !== null ? `: ${waitingDetail}` : ''
  return { detail: `Job ${job} has run for longer than ${limit}${what}`, job }
}
