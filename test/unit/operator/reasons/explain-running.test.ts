/** What is said of the pods of a Job that takes too long (docs/use/cronjobs.md). */

import { expect, it } from 'vitest'
import { explainRunning } from '../../../../src/operator/reasons/explain-running.ts'
import { makePod, NAMES, podOf } from '../../../support/job-objects.ts'

const on = (node: string, status: object = {}, more: object = {}) =>
  podOf(makePod({ spec: { nodeName: node }, status: { phase: 'Running', ...status }, ...more }))
const containers = (state: object, lastState: object = {}, restartCount = 0) => ({
  containerStatuses: [{ name: 'backup', restartCount, state, lastState }],
})
const terminated = { terminated: { exitCode: 8, reason: 'Error', finishedAt: '2026-11-23T02:01:00Z' } }
const created = (second: number, more: object = {}) => ({
  metadata: { creationTimestamp: `2026-11-23T02:00:0${second}Z`, ...more },
})
const POD = `pod ${NAMES.POD}`

it.each([
  ['where it runs', on('worker-3', containers({ running: {} })), `${POD} on node worker-3`],
  [
    'nothing of an attempt before the one that runs',
    on('worker-3', containers({ running: {} }, terminated, 1)),
    `${POD} on node worker-3`,
  ],
  [
    'a crash loop',
    on('worker-3', containers({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } }, terminated, 3)),
    `${POD} on node worker-3: container backup failed (exit code 8), restarted 3 times: CrashLoopBackOff: back-off 40s`,
  ],
  [
    'the last attempt, where all have failed',
    on('worker-3', { phase: 'Failed', ...containers(terminated) }),
    `${POD} on node worker-3: container backup failed (exit code 8)`,
  ],
  [
    'once that it waits for a node',
    podOf(
      makePod({
        status: {
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no nodes' }],
        },
      }),
    ),
    `${POD} could not be scheduled: no nodes`,
  ],
])('is %s', (_, pod, says) => {
  expect(explainRunning([pod])).toBe(says)
})

it('is of the newest pod that has not ended', () => {
  const old = on('old', {}, created(1))
  const failed = on('failed', { phase: 'Failed' }, created(3))
  const deleted = on('deleted', {}, created(4, { deletionTimestamp: '2026-11-23T02:05:00Z' }))
  expect(explainRunning([old, failed, on('new', {}, created(2)), deleted])).toBe(`${POD} on node new`)
  expect(explainRunning([])).toBeNull()
})

it('has a bounded length', () => {
  const waiting = { waiting: { reason: 'ErrImagePull', message: 'x'.repeat(2_000) } }
  expect(Buffer.byteLength(explainRunning([on('worker-3', containers(waiting))])!)).toBe(700)
})
