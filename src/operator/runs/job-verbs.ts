/** The verbs of checks/jobs that the controller of runs uses; tests give others. */

import { abandonRuns } from '../../checks/jobs/abandon-runs.ts'
import { findRecorded } from '../../checks/jobs/find-recorded.ts'
import { listFollowed } from '../../checks/jobs/followed-checks.ts'
import { recordJobs } from '../../checks/jobs/record-jobs.ts'

export const JOB_VERBS = { recordJobs, findRecorded, listFollowed, abandonRuns } as const
export type JobVerbs = typeof JOB_VERBS
