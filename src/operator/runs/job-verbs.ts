/** The verbs of Jobs that the controller of runs uses; tests give others. */

import { abandonRuns } from '../../checks/jobs/abandon-runs.ts'
import { findRecorded } from '../../checks/jobs/find-recorded.ts'
import { recordJobs } from '../../checks/jobs/record-jobs.ts'
import { listFollowed } from '../../store/jobs/followed-checks.ts'

export const JOB_VERBS = { recordJobs, findRecorded, listFollowed, abandonRuns } as const
export type JobVerbs = typeof JOB_VERBS
