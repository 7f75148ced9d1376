/** The table of causes, in objects as the API server stores them (the same table: test/cluster/operator/cronjob-reasons.test.ts). */

import { describe, expect, it } from 'vitest'
import type { CoreEvent } from '../../../../src/kubernetes/objects.ts'
import { explainFailure } from '../../../../src/operator/reasons/explain-failure.ts'
import {
  explainWait,
  findSubject,
  findWaitingRun,
  newestWarning,
} from '../../../../src/operator/reasons/explain-wait.ts'
import { readText } from '../../../support/documents.ts'
import { ABSENCES, type Cause, describeCauses, FAILURES, fill, WAITS } from '../../../support/job-causes.ts'
import { makeJob, makePod, NAMES, podOf, runOf, SLOT, sourceOf } from '../../../support/job-objects.ts'

const trimmed = (cause: Cause) => {
  const { status, killedStatus, podSpec, podAnnotations, node, job, condition } = fill(cause, NAMES)
  const spec = { ...podSpec, ...(node && { nodeName: node }) }
  const metadata =
    killedStatus === undefined ? {} : { deletionTimestamp: '2026-11-23T02:05:30Z', deletionGracePeriodSeconds: 30 }
  return {
    run: runOf(makeJob({ spec: job, condition, isIndexed: podAnnotations !== undefined, hasFailed: true })),
    pod: podOf(makePod({ status: killedStatus ?? status, spec, annotations: podAnnotations, metadata })),
  }
}

describe('a Job that failed', () => {
  it.each(FAILURES)('$title', (cause) => {
    const { run, pod } = trimmed(cause)
    const failure = explainFailure(run, [pod])
    const { says, reason, exitCode = null, body } = fill(cause, NAMES)
    expect(failure).toMatchObject({ firstLine: says, reason, exitCode })
    const [first, ...rest] = failure.body.split('\n')
    expect(first).toBe(says)
    if (body !== undefined) expect(rest).toEqual(body)
  })
})

describe('a Job whose pod waits', () => {
  it.each(WAITS)('$title', (cause) => {
    const { pod } = trimmed(cause)
    const run = runOf(makeJob({}))
    const slot = { source: sourceOf({}), slotAt: SLOT, now: SLOT + 300_000, run, pods: [pod] }
    // Nothing is asked of the API server.
    expect(findSubject(slot)).toBeNull()
    expect(explainWait(slot, null)).toEqual({ job: NAMES.JOB, detail: fill(cause.says, NAMES) })
  })
})

describe('no Job, or a Job without a pod', () => {
  it.each(ABSENCES)('$title', (cause) => {
    const { has, source, event, isSuspended, says } = fill(cause, NAMES)
    const runs = has === 'CronJob' ? [] : [runOf(makeJob({ spec: { suspend: isSuspended === true } }))]
    const pods = has === 'Pod' ? [podOf(makePod({ status: { phase: 'Pending' } }))] : []
    const at = { source: sourceOf(source), slotAt: SLOT }
    const slot = { ...at, now: SLOT + 300_000, run: findWaitingRun(runs, { ...at, started: [] }), pods }
    const subject = findSubject(slot)
    if (event !== undefined) expect(subject).toMatchObject({ kind: has, namespace: NAMES.NAMESPACE })
    const warning = { type: 'Warning', ...event, lastTimestamp: '2026-11-23T02:00:05Z', metadata: {} } as CoreEvent
    const { detail } = explainWait(slot, event === undefined ? null : newestWarning([warning]))
    expect(detail).toBe(says)
  })
})

it('docs/use/cronjobs.md has the table', () => {
  const [, table] =
    /<!-- reasons: begin -->\n(.*?)\n?<!-- reasons: end -->/s.exec(readText('docs/use/cronjobs.md')) ?? []
  expect(table).toBe(describeCauses(NAMES))
})
