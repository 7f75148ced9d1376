import { expect, it } from 'vitest'
import type { JobReport } from '../../../../src/checks/jobs/job-report.ts'
import { createReportQueue } from '../../../../src/operator/runs/report-queue.ts'

const report = (runId: string, body = ''): JobReport => ({
  resource: { cluster: 'default', namespace: 'shop', name: 'backup' },
  source: 'backup',
  runId,
  job: runId,
  entries: [{ type: 'log', at: 0, body }],
  lastRun: null,
})
const idsOf = (taken: readonly { readonly report: JobReport }[]) => taken.map(({ report }) => report.runId)

async function isDone(promise: Promise<void>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<false>((resolve) => setImmediate(() => resolve(false)))])
}

it('is drained when what waited is recorded, also by a newer report of the same run, and whatever comes later', async () => {
  const queue = createReportQueue()
  queue.add(report('a'))
  const drained = queue.whenDrained()
  queue.add(report('a', 'newer'))
  queue.add(report('b'))
  expect(await isDone(drained)).toBe(false)
  const taken = queue.take(1, 0)
  expect(taken[0]!.report.entries[0]).toMatchObject({ body: 'newer' })
  queue.again(taken, true)
  expect(await isDone(drained)).toBe(false)
  const retaken = queue.take(1, 0)
  expect(idsOf(retaken)).toEqual(['a'])
  queue.done(retaken)
  expect([await isDone(drained), queue.hasWork(0)]).toEqual([true, true])
})

it('has a newer report of a run behind what other runs reported before it, also after a failed attempt', async () => {
  const queue = createReportQueue()
  for (const id of ['a', 'b', 'a']) queue.add(report(id))
  const drained = queue.whenDrained()
  const taken = queue.take(1, 0)
  expect(idsOf(taken)).toEqual(['b'])
  queue.add(report('c'))
  queue.add(report('b'))
  queue.again(taken, false)
  const [a, ...others] = queue.take(10, 0)
  expect(idsOf([a!, ...others])).toEqual(['a', 'c', 'b'])
  queue.done([a!])
  expect(await isDone(drained)).toBe(false)
  queue.done(others)
  expect(await isDone(drained)).toBe(true)
})

it('takes nothing above its limit, and takes again when something is done', () => {
  const queue = createReportQueue(3)
  expect(['a', 'b', 'c', 'd'].map((id) => queue.add(report(id)))).toEqual([true, true, true, false])
  expect(queue.add(report('a', 'x'.repeat(1_000)))).toBe(false)
  queue.done(queue.take(2, 0))
  expect(queue.add(report('d'))).toBe(true)
  expect(idsOf(queue.take(10, 0))).toEqual(['c', 'd'])
})

it('takes nothing of a check that is paused, waits for it or not, and keeps the order of its reports', async () => {
  const queue = createReportQueue()
  for (const id of ['a', 'b']) queue.add(report(id))
  queue.add({ ...report('c'), resource: { cluster: 'default', namespace: 'shop', name: 'other' } })
  const { resource } = report('a')
  queue.again(queue.take(1, 0), true)
  queue.pause(resource, { until: 200, isAwaited: true })
  expect([queue.hasWork(199), queue.resumesAt()]).toEqual([true, 200])
  const others = queue.take(10, 199)
  expect(idsOf(others)).toEqual(['c'])
  queue.done(others)
  const drained = queue.whenDrained()
  expect([queue.hasWork(199), queue.isEmpty(), await isDone(drained)]).toEqual([false, false, false])
  queue.pause(resource, { until: 300, isAwaited: false })
  expect(await isDone(drained)).toBe(true)
  const taken = queue.take(10, 300)
  expect(taken.map(({ report: { runId }, failures }) => [runId, failures])).toEqual([
    ['a', 1],
    ['b', 0],
  ])
  expect([queue.isEmpty(), queue.resumesAt()]).toEqual([false, null])
  queue.done(taken)
  expect(queue.isEmpty()).toBe(true)
})
