/** What is kept of CronJobs and their Jobs, and what a Job reports. */

import { describe, expect, it } from 'vitest'
import { cronJob } from '../../../../src/operator/sources/kinds/cron-job.ts'
import type { Source } from '../../../../src/operator/sources/source-kind.ts'
import { startCpuTimer } from '../../../support/cpu-time.ts'

const META = { namespace: 'shop', name: 'backup', uid: 'c1', resourceVersion: '7' }
const at = (time: string) => Date.parse(`2026-11-23T${time}Z`)

describe('a CronJob', () => {
  it('is kept as what is read of it', () => {
    const object = {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: {
        ...META,
        generation: 3,
        creationTimestamp: '2026-11-22T02:00:00Z',
        labels: { 'heartbeat-operator.io/watch': 'true', team: 'shop' },
        annotations: { 'heartbeat-operator.io/grace-seconds': '60', 'kubectl.kubernetes.io/last-applied': '{}' },
        managedFields: [{}],
      },
      spec: {
        schedule: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        suspend: true,
        concurrencyPolicy: 'Forbid',
        startingDeadlineSeconds: 100,
        jobTemplate: { spec: { activeDeadlineSeconds: 600, template: { spec: { containers: [] } } } },
      },
      status: {
        lastScheduleTime: '2026-11-23T01:00:00Z',
        lastSuccessfulTime: '2026-11-23T01:05:00Z',
        active: [{ name: 'backup-1' }, { name: 'backup-2' }],
      },
    }
    expect(cronJob.trimSource(object as never)).toEqual({
      metadata: {
        ...META,
        generation: 3,
        labels: { 'heartbeat-operator.io/watch': 'true' },
        annotations: { 'heartbeat-operator.io/grace-seconds': '60' },
      },
      createdAt: Date.parse('2026-11-22T02:00:00Z'),
      schedule: '0 2 * * *',
      timeZone: 'Europe/Berlin',
      suspended: true,
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 100,
      activeDeadlineSeconds: 600,
      lastScheduleTime: '2026-11-23T01:00:00Z',
      lastSuccessfulTime: '2026-11-23T01:05:00Z',
      active: ['backup-1', 'backup-2'],
    })
  })

  it('without a specification and a status is kept too', () => {
    expect(cronJob.trimSource({ metadata: META })).toMatchObject({
      metadata: META,
      schedule: '',
      suspended: false,
      active: [],
    })
  })

  it.each([
    ['0 2 * * *', null, { schedule: '0 2 * * *', timeZone: 'Etc/UTC' }],
    ['0 2 * * *', 'Europe/Berlin', { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' }],
    ['@daily', null, { schedule: '@daily', timeZone: 'Etc/UTC' }],
    // Kubernetes takes the prefix, where there is one.
    ['TZ=Asia/Tokyo 0 2 * * *', 'Europe/Berlin', { schedule: '0 2 * * *', timeZone: 'Asia/Tokyo' }],
    ['CRON_TZ=Asia/Tokyo  0 2 * * *', null, { schedule: '0 2 * * *', timeZone: 'Asia/Tokyo' }],
  ])('with the schedule %j and the zone %s', (schedule, timeZone, expected) => {
    const source = { ...cronJob.trimSource({ metadata: META }), schedule, timeZone } as Source
    expect(cronJob.scheduleOf(source, 'Etc/UTC')).toEqual({ ...expected, periodSeconds: null })
  })

  it.each([
    ['@every 1h30m', 5_400],
    ['@every 90s', 90],
    ['@every 1.5m', 90],
    ['@every 10s', 10],
    ['TZ=Asia/Tokyo @every 8760h', 31_536_000],
  ])('with the schedule %j has a period', (schedule, periodSeconds) => {
    const source = { ...cronJob.trimSource({ metadata: META }), schedule } as Source
    expect(cronJob.scheduleOf(source, 'Etc/UTC')).toEqual({ schedule: null, periodSeconds, timeZone: null })
  })

  it.each([
    '@every 9s',
    '@every 8760h1s',
    '@every',
    '@every soon',
    '@every -1h',
    '@every 1h30',
    '@every 1..5h',
    '@every .h',
  ])('with the schedule %j has a fault that says what is right', (schedule) => {
    const source = { ...cronJob.trimSource({ metadata: META }), schedule } as Source
    const read = cronJob.scheduleOf(source, 'Etc/UTC')
    // What is no length at all is for the parser of schedules.
    if (schedule === '@every') expect(read).toMatchObject({ schedule })
    else expect(read).toEqual({ fault: `has the schedule "${schedule}": @every must have a length from 10s to 8760h` })
  })
})

it('a length of many digits in a schedule takes no time', () => {
  const cpuMs = startCpuTimer()
  for (const length of ['0'.repeat(2_000), '0.0'.repeat(700)]) {
    const source = { ...cronJob.trimSource({ metadata: META }), schedule: `@every ${length}` } as Source
    expect(cronJob.scheduleOf(source, 'Etc/UTC')).toHaveProperty('fault')
  }
  expect(cpuMs()).toBeLessThan(100)
})

const JOB_META = {
  namespace: 'shop',
  name: 'backup-1',
  uid: 'j1',
  resourceVersion: '9',
  creationTimestamp: '2026-11-23T02:00:01Z',
  annotations: { 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2026-11-23T03:00:00+01:00' },
  ownerReferences: [
    { apiVersion: 'v1', kind: 'Other', name: 'x', uid: 'other' },
    { apiVersion: 'batch/v1', kind: 'CronJob', name: 'backup', uid: 'c1', controller: true },
  ],
}
const condition = (type: string, status = 'True', more = {}) => ({
  type,
  status,
  lastTransitionTime: '2026-11-23T02:04:00Z',
  ...more,
})
const job = (status: object, metadata: object = {}, spec: object = {}) =>
  cronJob.trimRun({ metadata: { ...JOB_META, ...metadata }, spec, status } as never)

describe('a Job', () => {
  it('belongs to the CronJob that controls it, and to the slot that it was created for', () => {
    expect(job({})).toMatchObject({ sourceUid: 'c1', slotAt: at('02:00:00'), createdAt: at('02:00:01'), outcome: null })
  })

  describe('belongs by its owners', () => {
    const OWNER = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'backup', uid: 'c1' }
    const OTHER = { apiVersion: 'v1', kind: 'Workflow', name: 'x', uid: 'w1' }
    const manual = { 'cronjob.kubernetes.io/instantiate': 'manual' }
    const of = (ownerReferences: object[] | undefined, annotations = {}) => {
      const { sourceUid, isOwnerless, isManual } = job({}, { ownerReferences, annotations })
      return [sourceUid, isOwnerless, isManual]
    }

    it.each([
      ['the CronJob that controls it', [{ ...OWNER, controller: true }], 'c1', false],
      ['a CronJob that does not: k9s made it', [OWNER], 'c1', true],
      ['the same, beside another owner', [OTHER, { ...OWNER, controller: false }], 'c1', true],
      ['none, if another kind controls it', [OWNER, { ...OTHER, controller: true }], null, false],
      [
        'the CronJob that controls it, beside another',
        [
          { ...OWNER, uid: 'c2' },
          { ...OWNER, controller: true },
        ],
        'c1',
        false,
      ],
      ['none', [OTHER], null, false],
    ])('to %s', (_, owners, sourceUid, isManual) => {
      expect(of(owners)).toEqual([sourceUid, false, isManual])
    })

    it('to one of its name, if it has none, and a person created it', () => {
      expect(of(undefined, manual)).toEqual([null, true, true])
      expect(of([], manual)).toEqual([null, true, true])
      expect(of([], { 'cronjob.kubernetes.io/instantiate': 'auto' })).toEqual([null, false, false])
      expect(of([], {})).toEqual([null, false, false])
    })

    it('to none by its name, if it has an owner: a former CronJob, or another kind', () => {
      expect(of([{ ...OWNER, uid: 'former' }], manual)).toEqual(['former', false, true])
      expect(of([{ ...OTHER, controller: true }], manual)).toEqual([null, false, true])
    })
  })

  it('without a slot is for that of its creation', () => {
    expect(job({}, { annotations: {} }).slotAt).toBe(at('02:00:01'))
  })

  it.each([
    ['a day after its creation, as far as clocks may differ', '2026-11-24T02:00:01Z', '2026-11-24T02:00:01Z'],
    ['later than that, which would silence its check', '2026-11-24T02:00:02Z', '2026-11-23T02:00:01Z'],
    ['in another age', '2999-01-01T00:00:00Z', '2026-11-23T02:00:01Z'],
    ['before its creation', '2026-11-20T02:00:00Z', '2026-11-20T02:00:00Z'],
    ['that is no time', 'soon', '2026-11-23T02:00:01Z'],
  ])('with a slot %s', (_what, slot, expected) => {
    const annotations = { 'batch.kubernetes.io/cronjob-scheduled-timestamp': slot }
    expect(job({}, { annotations }).slotAt).toBe(Date.parse(expected))
  })

  it.each([
    ['has no status', {}, null],
    ['has pods that wait', { startTime: '2026-11-23T02:00:02Z', active: 1, ready: 0 }, null],
    ['has a pod that runs', { active: 1, ready: 1 }, 'Running'],
    ['has a pod that succeeded, and needs more', { succeeded: 1 }, 'Running'],
    ['has a pod that failed, and tries again', { failed: 1, active: 1 }, 'Running'],
    ['is about to be complete', { succeeded: 1, conditions: [condition('SuccessCriteriaMet')] }, 'Running'],
    ['is about to fail', { failed: 1, conditions: [condition('FailureTarget')] }, 'Running'],
    ['was suspended once', { conditions: [condition('Suspended', 'False')] }, null],
    ['is complete', { conditions: [condition('SuccessCriteriaMet'), condition('Complete')] }, 'Succeeded'],
    ['succeeded with the third pod', { succeeded: 1, failed: 2, conditions: [condition('Complete')] }, 'Succeeded'],
    ['failed', { failed: 4, conditions: [condition('FailureTarget'), condition('Failed')] }, 'Failed'],
    ['failed before others', { conditions: [condition('Failed'), condition('Suspended', 'False')] }, 'Failed'],
    [
      'has conditions that are not true',
      { ready: 1, conditions: [condition('Failed', 'False'), condition('Complete', 'Unknown')] },
      'Running',
    ],
  ])('that %s', (_what, status, outcome) => {
    expect(job(status).outcome).toBe(outcome)
  })

  it('reports its start when a pod runs, not before', () => {
    const startTime = '2026-11-23T02:00:02Z'
    expect(cronJob.entriesOf(job({ startTime, active: 1 }), null)).toEqual([])
    const start = { type: 'start', at: at('02:00:02'), slotAt: at('02:00:00') }
    expect(cronJob.entriesOf(job({ startTime, ready: 1 }), null)).toEqual([start])
    expect(cronJob.entriesOf(job({ ready: 1 }), null)).toEqual([{ ...start, at: at('02:00:01') }])
  })

  it.each([
    ['by its spec', { ready: 1, failed: 1 }, { suspend: true }],
    ['and does not start yet', { failed: 1, conditions: [condition('Suspended')] }, { suspend: false }],
  ])('that is suspended %s has no run in progress', (_what, status, spec) => {
    const run = job({ startTime: '2026-11-23T02:00:02Z', ...status }, {}, spec)
    expect(run).toMatchObject({ suspended: true, hasPod: false, outcome: null })
    expect(cronJob.entriesOf(run, null)).toEqual([])
  })

  it('that has ended is no longer suspended', () => {
    const status = { succeeded: 1, conditions: [condition('Suspended', 'False'), condition('Complete')] }
    expect(job(status, {}, { suspend: true })).toMatchObject({ suspended: false, outcome: 'Succeeded' })
  })

  it('reports a success at its completion, with its duration', () => {
    const status = {
      startTime: '2026-11-23T02:00:02Z',
      completionTime: '2026-11-23T02:03:32Z',
      succeeded: 1,
      failed: 2,
      conditions: [condition('SuccessCriteriaMet'), condition('Complete')],
    }
    expect(cronJob.entriesOf(job(status), null)).toEqual([
      { type: 'start', at: at('02:00:02'), slotAt: at('02:00:00') },
      { type: 'success', at: at('02:03:32'), durationMs: 210_000 },
    ])
  })

  it('reports a failure at the time of its condition, with the reason that is known', () => {
    const failed = condition('Failed', 'True', { reason: 'BackoffLimitExceeded', message: 'too many' })
    const status = { startTime: '2026-11-23T02:00:02Z', failed: 1, conditions: [condition('FailureTarget'), failed] }
    const failure = { body: 'container backup failed (exit code 3)', exitCode: 3 } as never
    const start = { type: 'start', at: at('02:00:02'), slotAt: at('02:00:00') }
    const fail = { type: 'fail', at: at('02:04:00'), durationMs: 238_000 }
    expect(cronJob.entriesOf(job(status), failure)).toEqual([
      start,
      { ...fail, exitCode: 3, body: 'container backup failed (exit code 3)' },
    ])
    expect(cronJob.entriesOf(job(status), null)).toEqual([
      start,
      { ...fail, exitCode: null, body: 'Job backup-1 failed: BackoffLimitExceeded: too many' },
    ])
  })

  it('that failed without a pod reports no start', () => {
    const conditions = [condition('Failed', 'True', { reason: 'DeadlineExceeded', message: 'was too long' })]
    const entries = cronJob.entriesOf(job({ startTime: '2026-11-23T02:00:02Z', conditions }), null)
    expect(entries.map(({ type }) => type)).toEqual(['fail'])
  })

  it('is kept as numbers and names alone', () => {
    const status = {
      startTime: '2026-11-23T02:00:02Z',
      completionTime: '2026-11-23T02:03:32Z',
      succeeded: 1,
      conditions: [condition('Complete')],
    }
    const run = job(status, { labels: { a: 'b' }, managedFields: [{}] }, { backoffLimit: 6, template: { spec: {} } })
    expect(JSON.stringify(run).length).toBeLessThan(500)
    expect(run).toMatchObject({ backoffLimit: 6, failedPods: 0, suspended: false, condition: null })
  })
})
