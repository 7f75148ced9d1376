/** Why no run has started, beyond the table of causes: which run, which Event. */

import { describe, expect, it } from 'vitest'
import type { CoreEvent } from '../../../../src/kubernetes/objects.ts'
import {
  explainWait,
  findSubject,
  findWaitingRun,
  newestWarning,
} from '../../../../src/operator/reasons/explain-wait.ts'
import { makeJob, makePod, NAMES, podOf, runOf, SLOT, sourceOf } from '../../../support/job-objects.ts'

const run = runOf(makeJob({}))
const slotWith = (changes: object) => ({
  source: sourceOf({}),
  slotAt: SLOT,
  now: SLOT + 300_000,
  run: null,
  pods: [],
  ...changes,
})
const warningAt = (time: string, message = 'no room', more: object = {}) =>
  ({ type: 'Warning', reason: 'FailedCreate', message, lastTimestamp: time, metadata: {}, ...more }) as CoreEvent

describe('the run that waits', () => {
  it('is the newest that has neither started nor ended', () => {
    const at = (createdAt: number, outcome: typeof run.outcome = null) => ({ ...run, createdAt, outcome })
    const slot = { source: sourceOf({}), slotAt: SLOT, started: [] }
    expect(findWaitingRun([at(1), at(3), at(2), at(5, 'Running'), at(6, 'Failed')], slot)?.createdAt).toBe(3)
    expect(findWaitingRun([at(5, 'Running')], slot)).toBeNull()
  })

  it('is not one that is recorded as started, nor, with Forbid, one of a slot before', () => {
    const before = { ...run, slotAt: SLOT - 1 }
    const slot = { source: sourceOf({}), slotAt: SLOT, started: [] }
    const forbid = { ...slot, source: sourceOf({ concurrencyPolicy: 'Forbid' }) }
    expect(findWaitingRun([before], slot)).toBe(before)
    expect(findWaitingRun([before], forbid)).toBeNull()
    expect(findWaitingRun([run], forbid)).toBe(run)
    expect(findWaitingRun([run], { ...slot, started: [run.metadata.uid] })).toBeNull()
  })

  it('has pods: the newest one that gives a reason', () => {
    const waiting = (name: string, created: string, message?: string) =>
      podOf(
        makePod({
          name,
          metadata: { creationTimestamp: created },
          status: { containerStatuses: [{ name: 'backup', state: { waiting: { reason: 'ErrImagePull', message } } }] },
        }),
      )
    const silent = podOf(makePod({ name: 'silent', metadata: { creationTimestamp: '2026-11-23T02:00:09Z' } }))
    const pods = [waiting('old', '2026-11-23T02:00:01Z', 'old'), silent, waiting('new', '2026-11-23T02:00:05Z', 'new')]
    expect(explainWait(slotWith({ run, pods }), null)).toEqual({
      job: NAMES.JOB,
      detail: 'container backup could not start: ErrImagePull: new',
    })
  })

  it('has a pod that only begins: its Events say more, then its phase', () => {
    const creating = { containerStatuses: [{ name: 'backup', state: { waiting: { reason: 'ContainerCreating' } } }] }
    const slot = slotWith({ run, pods: [podOf(makePod({ status: creating }))] })
    expect(findSubject(slot)).toEqual({
      kind: 'Pod',
      namespace: NAMES.NAMESPACE,
      name: NAMES.POD,
      uid: `uid-of-${NAMES.POD}`,
    })
    expect(explainWait(slot, null).detail).toBe(`pod ${NAMES.POD} has not started: ContainerCreating`)
  })

  it('has no pod: its Events say why, otherwise where to look', () => {
    const slot = slotWith({ run })
    expect(findSubject(slot)).toMatchObject({ kind: 'Job', name: NAMES.JOB })
    expect(explainWait(slot, null)).toEqual({
      job: NAMES.JOB,
      detail: `Job ${NAMES.JOB} has no pod: see kubectl describe job ${NAMES.JOB}`,
    })
  })
})

describe('the Warning', () => {
  it('is the newest, by whichever time it has', () => {
    const events = [
      warningAt('2026-11-23T02:01:00Z', 'second'),
      warningAt('', 'newest', { series: { lastObservedTime: '2026-11-23T02:02:00.000000Z' } }),
      warningAt('', 'first', { eventTime: '2026-11-23T02:00:00.000000Z' }),
      { ...warningAt('2026-11-23T02:03:00Z', 'not a Warning'), type: 'Normal' },
    ]
    expect(newestWarning(events)?.message).toBe('newest')
    expect(newestWarning([])).toBeNull()
  })

  it('is not one of ours, nor of a Job that a person made', () => {
    const ours = [
      warningAt('2026-11-23T02:01:00Z', 'missed', { reportingComponent: 'heartbeat-operator' }),
      warningAt('2026-11-23T02:01:00Z', 'missed', { source: { component: 'heartbeat-operator' } }),
      warningAt('2026-11-23T02:01:00Z', 'Saw a job that the controller did not create', { reason: 'UnexpectedJob' }),
    ]
    expect(newestWarning(ours)).toBeNull()
  })

  it('is the message itself, where one Event stands for many', () => {
    const many = warningAt('2026-11-23T02:01:00Z', '(combined from similar events): Error creating: exceeded quota')
    expect(newestWarning([many])?.message).toBe('Error creating: exceeded quota')
  })

  it('of a CronJob is about this slot', () => {
    const detailAt = (time: string) => explainWait(slotWith({}), newestWarning([warningAt(time)])).detail
    expect(detailAt('2026-11-23T01:59:00Z')).toBe('no room')
    expect(detailAt('2026-11-23T01:58:59Z')).toContain('created no Job for the slot')
    // A Job is of this slot.
    expect(explainWait(slotWith({ run }), newestWarning([warningAt('2026-11-23T01:00:00Z')])).detail).toBe('no room')
  })

  it('is plain text of one line, and bounded', () => {
    const { detail } = explainWait(slotWith({ run }), newestWarning([warningAt('', `a\n\u202eb${'é'.repeat(9_000)}`)]))
    expect(detail).toMatch(/^a bé+…$/)
    expect(Buffer.byteLength(detail)).toBeLessThanOrEqual(1_000)
  })
})

describe('the CronJob itself', () => {
  const detailOf = (source: object, now = SLOT + 300_000) =>
    explainWait(slotWith({ source: sourceOf(source), now }), null).detail

  it('blocks only with Forbid, and with an active Job', () => {
    expect(detailOf({ concurrencyPolicy: 'Forbid', active: [] })).toContain('created no Job')
    expect(detailOf({ concurrencyPolicy: 'Allow', active: ['x'] })).toContain('created no Job')
    expect(
      explainWait(slotWith({ source: sourceOf({ concurrencyPolicy: 'Forbid', active: ['x', 'y'] }) }), null).job,
    ).toBe('x')
  })

  it('blocks, and its newest pod says whether the blocking Job itself cannot start', () => {
    const source = sourceOf({ concurrencyPolicy: 'Forbid', active: ['x'] })
    const state = { waiting: { reason: 'ErrImagePull', message: 'no such image' } }
    const stuck = { containerStatuses: [{ name: 'backup', state }] }
    const podAt = (creationTimestamp: string, status: object) =>
      podOf(makePod({ metadata: { creationTimestamp }, status }))
    const detailWith = (first: object, second: object) => {
      const pods = [podAt('2026-11-23T01:00:05Z', second), podAt('2026-11-23T01:00:00Z', first)]
      return explainWait(slotWith({ source, pods }), null).detail
    }
    const blocks = 'Job x is still active, and concurrencyPolicy Forbid lets no other Job start beside it'
    expect(detailWith(stuck, {})).toBe(blocks)
    expect(detailWith({}, stuck)).toBe(`${blocks}: container backup could not start: ErrImagePull: no such image`)
  })

  it('may still create one within startingDeadlineSeconds', () => {
    const source = { startingDeadlineSeconds: 300 }
    expect(detailOf(source, SLOT + 300_001)).toContain('within startingDeadlineSeconds (300)')
    expect(detailOf(source, SLOT + 300_000)).toContain('check that kube-controller-manager runs')
  })

  it('says when it was scheduled last', () => {
    expect(detailOf({ lastScheduleTime: '2026-11-22T02:00:00Z' })).toBe(
      'CronJob nightly-backup created no Job for the slot at 2026-11-23T02:00:00Z, and its last schedule time is 2026-11-22T02:00:00Z: check that kube-controller-manager runs',
    )
  })
})
