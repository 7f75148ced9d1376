import { expect, it } from 'vitest'
import type { JobEntry, JobOutcome } from '../../../../src/checks/jobs/job-report.ts'
import { countRecorded } from '../../../../src/operator/runs/count-recorded.ts'
import { createMetrics } from '../../../../src/roles/metrics.ts'

it('counts the ends of Jobs that are recorded, once', async () => {
  const { operator, registry } = createMetrics()
  const report = (outcome: JobOutcome, ...types: JobEntry['type'][]) =>
    countRecorded(operator, outcome, { entries: types.map((type) => ({ type }) as JobEntry) })
  report('recorded', 'start')
  report('recorded', 'start', 'success')
  report('recorded', 'fail')
  report('recorded', 'fail')
  report('recorded', 'log')
  report('recorded')
  report('repeated', 'success')
  report('unknown', 'fail')
  report('failed', 'fail')
  const { values } = await registry.getSingleMetric('heartbeat_jobs_recorded_total')!.get()
  expect(Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]))).toEqual({
    succeeded: 1,
    failed: 2,
    deleted: 1,
  })
})
