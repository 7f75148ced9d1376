/** For which runs that take too long something is said of their pods. */

import { expect, it } from 'vitest'
import { explainOverran } from '../../../../src/operator/runs/explain-overran.ts'
import { makeJob, makePod, NAMES, podOf, runOf, sourceOf } from '../../../support/job-objects.ts'

const source = sourceOf()
const run = runOf(makeJob({}))
const { uid } = run.metadata
const resource = { cluster: 'default', namespace: NAMES.NAMESPACE, name: 'check' }
const overdue = { resource, source: NAMES.CRONJOB, runId: uid, deadlineAt: 1_000 }
const sourcesWith = (pods: Parameters<typeof podOf>[0][]) => ({
  getSource: (key: string) => (key === `${NAMES.NAMESPACE}/${NAMES.CRONJOB}` ? source : undefined),
  getRun: (of: string, id: string) => (of === source.metadata.uid && id === uid ? run : undefined),
  podsOf: () => pods.map(podOf),
})

it('is said of a Job that is there and has a pod', () => {
  const sources = sourcesWith([makePod({ spec: { nodeName: 'worker-3' } })])
  const detail = `pod ${NAMES.POD} on node worker-3`
  expect(explainOverran(sources, [overdue])).toEqual([
    { resource, source: NAMES.CRONJOB, dueAt: 1_000, job: NAMES.JOB, detail },
  ])
  for (const unknown of [{ runId: 'gone' }, { source: 'gone' }, { resource: { ...resource, namespace: 'other' } }])
    expect(explainOverran(sources, [{ ...overdue, ...unknown }])).toEqual([])
  expect(explainOverran(sourcesWith([]), [overdue])).toEqual([])
})
