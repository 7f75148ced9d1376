/** The metric heartbeat_jobs_recorded_total: ends of Jobs, by outcome. */

import type { JobEntry, JobOutcome, JobReport } from '../../checks/jobs/job-report.ts'
import type { OperatorMetrics } from '../metrics.ts'

const OUTCOMES = {
  start: null,
  suspend: null,
  success: 'succeeded',
  fail: 'failed',
  log: 'deleted',
} as const satisfies Record<JobEntry['type'], string | null>

/** A Job that several checks follow counts for each of them; one that is reported again does not count again. */
export function countRecorded(
  { jobsRecorded }: Pick<OperatorMetrics, 'jobsRecorded'>,
  outcome: JobOutcome,
  { entries }: Pick<JobReport, 'entries'>,
): void {
  if (outcome !== 'recorded') return
  for (const { type } of entries) if (OUTCOMES[type] !== null) jobsRecorded.inc({ outcome: OUTCOMES[type] })
}
