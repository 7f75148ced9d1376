import { describe, expect, it } from 'vitest'
import { NO_SPEC } from '../../../../src/checks/read-spec.ts'
import { type CheckState, type FlipReason, NO_TEXTS } from '../../../../src/domain/check.ts'
import type { LastRun } from '../../../../src/domain/last-run.ts'
import { NO_SCHEDULE } from '../../../../src/operator/declare/spec-of-source.ts'
import type { HeartbeatCheckSpec, HeartbeatCheckStatus } from '../../../../src/operator/heartbeat-check.ts'
import { isSameStatus } from '../../../../src/operator/resource/conditions.ts'
import { computeStatus, type Findings, type Sync } from '../../../../src/operator/status/status.ts'
import { isMinor } from '../../../../src/operator/status/status-turns.ts'
import type { CheckRecord } from '../../../../src/store/checks/checks.ts'
import type { StoredSpec } from '../../../../src/store/checks/columns.ts'
import { aHeartbeatCheck, aSource, aState } from '../../../support/builders.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)
const SECRET = { kind: 'Secret', name: 'nightly-heartbeat' } as const

const resource = (status?: HeartbeatCheckStatus, generation = 3) =>
  aHeartbeatCheck({ metadata: { generation }, ...(status && { status }) })

function record(state: Partial<CheckState> = {}): CheckRecord {
  return {
    key: 1,
    id: '0198a000-0000-7000-8000-000000000001',
    publicId: '11111111-1111-4111-8111-111111111111',
    projectId: '22222222-2222-4222-8222-222222222222',
    name: 'Nightly',
    slug: 'nightly',
    ...NO_TEXTS,
    managedBy: 'kubernetes',
    kubernetes: { cluster: 'default', namespace: 'shop', name: 'nightly' },
    createdAt: NOW,
    updatedAt: NOW,
    spec: { ...NO_SPEC, periodSeconds: 3_600, dialect: null, graceSeconds: 600 },
    state: aState({
      since: NOW - 5_000,
      lastPingAt: NOW - 5_000,
      lastSuccessAt: NOW - 5_000,
      expectedAt: NOW + 3_595_000,
      dueAt: NOW + 4_195_000,
      ...state,
    }),
  }
}

const REF = { kind: 'CronJob', name: 'backup' } as const
const SOURCE = aSource()
const RUN: LastRun = {
  job: 'backup-1',
  startTime: '2026-11-21T10:00:00Z',
  completionTime: '2026-11-21T10:05:00Z',
  outcome: 'Succeeded',
  exitCode: null,
  reason: null,
  message: null,
}

function statusOf(findings: Partial<Findings> = {}, before?: HeartbeatCheckStatus, now = NOW) {
  const given = {
    installation: 'i1',
    sync: { kind: 'synced' },
    check: record(),
    published: SECRET,
    downReason: null,
    ...findings,
  } as const
  const object = resource(before)
  const spec = findings.followed === undefined ? object.spec : { sourceRef: REF }
  return computeStatus({ ...object, spec }, given, now)
}

const condition = (status: HeartbeatCheckStatus, type: string) =>
  status.conditions?.find((candidate) => candidate.type === type)
const stalled: Sync = { kind: 'stalled', reason: 'TargetNotOwned', message: 'Secret x belongs to others' }

describe('the conditions of the sync', () => {
  it('are Ready and Published, and no abnormal one, when all is in line', () => {
    const status = statusOf()
    expect(status.conditions?.map(({ type, status: value }) => `${type}=${value}`)).toEqual([
      'Ready=True',
      'Published=True',
      'Up=True',
    ])
    expect(status).toMatchObject({ observedGeneration: 3, slug: 'nightly', state: 'up', published: SECRET })
    for (const { observedGeneration } of status.conditions!) expect(observedGeneration).toBe(3)
  })

  it('a problem for a person is Ready=False and Stalled with the reason', () => {
    const status = statusOf({ sync: stalled, published: null })
    expect(condition(status, 'Ready')).toMatchObject({ status: 'False', reason: 'TargetNotOwned' })
    expect(condition(status, 'Stalled')).toMatchObject({ status: 'True', message: stalled.message })
    expect(condition(status, 'Published')).toMatchObject({ status: 'False', reason: 'TargetNotOwned' })
  })

  it('keep Published while another reason stalls a check whose URL is out', () => {
    const sync = { kind: 'stalled', reason: 'InvalidSpec', message: 'spec.schedule names no date' } as const
    expect(condition(statusOf({ sync }), 'Published')).toMatchObject({ status: 'True' })
  })

  it('are Reconciling while it is tried again', () => {
    const status = statusOf({ sync: { kind: 'retrying', message: 'the database is away' } })
    expect(condition(status, 'Reconciling')).toMatchObject({ status: 'True', reason: 'ProgressingWithRetry' })
    expect(condition(status, 'Stalled')).toBeUndefined()
  })

  it('never turn Ready to False for a job that is down', () => {
    const status = statusOf({ check: record({ status: 'down' }), downReason: 'missed' })
    expect(condition(status, 'Ready')?.status).toBe('True')
    expect(condition(status, 'Up')).toMatchObject({ status: 'False', reason: 'Missed' })
  })

  it('cut a message at 1,024 characters', () => {
    const at = (length: number) =>
      condition(statusOf({ sync: { ...stalled, message: 'x'.repeat(length) } }), 'Ready')!.message.length
    expect([at(1_024), at(1_025)]).toEqual([1_024, 1_024])
    const halved = { ...stalled, message: `${'x'.repeat(1_022)}${'😀'.repeat(2)}` }
    expect(condition(statusOf({ sync: halved }), 'Ready')!.message.isWellFormed()).toBe(true)
  })
})

describe('a check that follows a CronJob', () => {
  it('shows the CronJob and the run, without what is not known', () => {
    const { source, lastRun } = statusOf({ followed: { source: SOURCE, lastRun: RUN } })
    expect(source).toEqual({
      apiGroup: 'batch',
      kind: 'CronJob',
      name: 'backup',
      uid: 'c1',
      suspended: false,
      active: [],
    })
    expect(lastRun).toEqual({
      name: 'backup-1',
      outcome: 'Succeeded',
      startTime: RUN.startTime,
      completionTime: RUN.completionTime,
    })
    const failed = { ...RUN, outcome: 'Failed', exitCode: 0, reason: 'Error', message: 'm'.repeat(2_000) } as const
    const shown = statusOf({ followed: { source: SOURCE, lastRun: failed } }).lastRun
    expect(shown).toMatchObject({ exitCode: 0, reason: 'Error', message: `${'m'.repeat(1_023)}…` })
  })

  it.each<[string, Partial<CheckState>, FlipReason | null, string]>([
    ['down', { status: 'down', since: NOW }, 'missed', 'no run had started by 2026-11-21T12:00:00Z'],
    [
      'late',
      { expectedAt: NOW - 1_000, dueAt: NOW },
      null,
      'a run was expected to start at 2026-11-21T11:59:59Z, it counts as missed at 2026-11-21T12:00:00Z',
    ],
  ])('awaits the start of a run: %s', (_, state, downReason, message) => {
    const { spec, ...rest } = record(state)
    const check = { ...rest, spec: { ...spec, jobArea: 'default' } }
    expect(condition(statusOf({ check, downReason }), 'Up')?.message).toBe(message)
  })

  it('shows 20 active Jobs at most', () => {
    const active = Array.from({ length: 21 }, (_, index) => `backup-${index}`)
    const { source } = statusOf({ followed: { source: { ...SOURCE, active }, lastRun: null } })
    expect(source?.active).toEqual(active.slice(0, 20))
  })

  it('shows no CronJob that is gone, and the last one seen while it may not be read', () => {
    const before = statusOf({ followed: { source: SOURCE, lastRun: RUN } })
    const gone = statusOf({ followed: { source: null, lastRun: RUN } }, before)
    expect(gone).not.toHaveProperty('source')
    expect(gone.lastRun).toEqual(before.lastRun)
    expect(statusOf({ followed: { source: undefined, lastRun: RUN } }, before).source).toEqual(before.source)
  })

  it.each<[string, HeartbeatCheckSpec, boolean]>([
    ['sourceRef', { sourceRef: REF }, false],
    ['sourceRef with publish', { sourceRef: REF, publish: { kind: 'Secret' } }, true],
    ['None', { periodSeconds: 60, publish: { kind: 'None' } }, false],
    ['a schedule of its own', { periodSeconds: 60 }, true],
  ])('has the condition Published only where something is to be published: %s', (_, spec, expected) => {
    const findings = { installation: 'i1', sync: stalled, check: record(), published: null, downReason: null }
    const { conditions } = computeStatus({ ...resource(), spec }, findings, NOW)
    expect(conditions?.some(({ type }) => type === 'Published')).toBe(expected)
  })
})

describe('the condition Up', () => {
  it.each<[Partial<CheckState>, FlipReason | null, string]>([
    [{ status: 'new', lastPingAt: null }, null, 'Unknown New'],
    [{ status: 'up' }, null, 'True OnTime'],
    [{ status: 'up', expectedAt: NOW }, null, 'True Late'],
    [{ status: 'up', expectedAt: NOW + 1 }, null, 'True OnTime'],
    [{ status: 'down', expectedAt: null, dueAt: null }, 'missed', 'False Missed'],
    [{ status: 'down', expectedAt: null, dueAt: null }, 'failed', 'False JobFailed'],
    [{ status: 'down', expectedAt: null, dueAt: null }, 'overran', 'False Overran'],
    [{ status: 'down', expectedAt: null, dueAt: null }, null, 'False Missed'],
    [{ status: 'paused', expectedAt: null, dueAt: null }, null, 'Unknown Suspended'],
  ])(
    'of %j, down for %s, is %s, and its reason is that of the status but for a job that is up',
    (state, downReason, expected) => {
      const status = statusOf({ check: record(state), downReason })
      const up = condition(status, 'Up')!
      expect(`${up.status} ${up.reason}`).toBe(expected)
      expect(status.reason).toBe(up.status === 'True' ? undefined : up.reason)
    },
  )
})

describe('what is written', () => {
  it('nothing when nothing changed, however much time passed', () => {
    const before = statusOf()
    const after = statusOf({}, before, NOW + 1_000_000)
    expect(after).toEqual(before)
    expect(isSameStatus(before, after)).toBe(true)
    expect(isSameStatus(undefined, after)).toBe(false)
  })

  it('keeps the time of a condition whose status stays, and moves it when it changes', () => {
    const before = statusOf()
    const later = NOW + 60_000
    const down = statusOf({ check: record({ status: 'down' }), downReason: 'failed' }, before, later)
    expect(condition(down, 'Ready')?.lastTransitionTime).toBe('2026-11-21T12:00:00Z')
    expect(condition(down, 'Up')?.lastTransitionTime).toBe('2026-11-21T12:01:00Z')
  })

  it('has times in whole seconds', () => {
    const state = { since: NOW - 5_000 + 999.999, lastPingAt: NOW - 5_000 + 0.001 }
    expect(statusOf({ check: record(state) })).toMatchObject({
      stateTime: '2026-11-21T11:59:55Z',
      lastPingTime: '2026-11-21T11:59:55Z',
    })
  })

  it.each([
    [10, 'every 10s'],
    [60, 'every 1m'],
    [90, 'every 90s'],
    [3_600, 'every 1h'],
    [5_400, 'every 90m'],
    [86_400, 'every 1d'],
    [604_800, 'every 7d'],
    [31_536_000, 'every 365d'],
  ])('says of a period of %i seconds: %s', (periodSeconds, cadence) => {
    const { spec, ...rest } = record()
    const status = statusOf({ check: { ...rest, spec: { ...spec, periodSeconds } } })
    expect(status).toMatchObject({ periodSeconds, cadence, graceSeconds: 600 })
    for (const field of ['schedule', 'timeZone']) expect(status).not.toHaveProperty(field)
  })

  it('has the schedule as it is written, and its zone, of what the service holds', () => {
    const { spec, ...rest } = record()
    const given = { periodSeconds: null, schedule: ' 0  2 * * MON', timeZone: 'Europe/Berlin', graceSeconds: 0 }
    const sync = { kind: 'stalled', reason: 'InvalidSpec', message: 'x' } as const
    const status = statusOf({ check: { ...rest, spec: { ...spec, ...given } }, sync })
    expect(status).not.toHaveProperty('periodSeconds')
    expect(status).toMatchObject({
      schedule: ' 0  2 * * MON',
      cadence: ' 0  2 * * MON',
      timeZone: 'Europe/Berlin',
      graceSeconds: 0,
    })
  })

  it.each<[string, boolean, Partial<StoredSpec>, Findings['sync']['kind']]>([
    ['no schedule for a source that cannot be read', false, NO_SCHEDULE, 'stalled'],
    ['none while that is retried', false, NO_SCHEDULE, 'retrying'],
    ['one that comes once a year', true, { schedule: '@yearly', timeZone: 'Etc/UTC' }, 'stalled'],
  ])('has %s', (_, expected, spec, kind) => {
    const check = record({ status: 'paused', expectedAt: null, dueAt: null })
    const held = { ...check.spec, periodSeconds: null, jobArea: 'default', ...spec }
    const sync = { kind, reason: 'InvalidSpec', message: 'x' } as Findings['sync']
    const status = statusOf({ check: { ...check, spec: held }, sync })
    expect('schedule' in status).toBe(expected)
    expect('timeZone' in status).toBe(expected)
    expect('cadence' in status).toBe(expected)
    expect(status.graceSeconds).toBe(600)
  })

  it('F7: the time of a ping alone after half the interval, and with any other change', () => {
    const before = statusOf()
    const at = (ms: number) => ({ lastPingAt: NOW - 5_000 + ms })
    const ping = (ms: number) => statusOf({ check: record(at(ms)) }, before)
    const halfMs = 1_800_000
    expect(ping(halfMs - 1)).toEqual(before)
    expect(ping(halfMs)).toEqual({ ...before, lastPingTime: '2026-11-21T12:29:55Z' })
    const down = statusOf({ check: record({ status: 'down', ...at(1_000) }), downReason: 'failed' }, before)
    expect(down.lastPingTime).toBe('2026-11-21T11:59:56Z')
    const { lastPingTime: _, ...unpinged } = before
    expect(statusOf({ check: record(at(1_000)) }, unpinged).lastPingTime).toBe('2026-11-21T11:59:56Z')
  })

  it('a job that became late or is on time again is a minor change, as is the time of a ping', () => {
    const before = statusOf()
    const late = statusOf({ check: record({ expectedAt: NOW - 1 }) }, before)
    expect(late.state).toBe('late')
    expect([isMinor(before, late), isMinor(late, before)]).toEqual([true, true])
    expect(isMinor(before, { ...late, lastPingTime: '2026-11-21T13:00:00Z' })).toBe(true)
    expect(isMinor(undefined, late)).toBe(false)
    const { lastPingTime: _, ...unpinged } = late
    expect([isMinor(unpinged, late), isMinor(late, unpinged)]).toEqual([true, false])
  })

  it('what a run in progress says is said of the run, while it is open, and is no minor change', () => {
    const runId = '0198f0a0-0000-7000-8000-000000000001'
    const message = 'container main failed (exit code 7), and container proxy keeps the pod running'
    const runs = [{ id: runId, startedAt: NOW, deadlineAt: null }]
    const upOf = (lastRun: object, state: Partial<CheckState> = {}) => {
      const followed = {
        source: SOURCE,
        lastRun: { ...RUN, outcome: 'Running', message, runId, ...lastRun } as LastRun,
      }
      return statusOf({ check: record({ runs, ...state }), followed })
    }
    const textOf = ({ conditions }: ReturnType<typeof upOf>) =>
      conditions?.find(({ type }) => type === 'Up')?.message ?? ''
    expect(textOf(upOf({}))).toBe(`the job reports on time; a run in progress: ${message}`)
    expect(textOf(upOf({}, { status: 'paused', expectedAt: null, dueAt: null }))).toContain(`: ${message}`)
    for (const status of [
      upOf({ message: null }),
      upOf({ outcome: 'Succeeded' }),
      upOf({}, { runs: [] }),
      upOf({}, { status: 'down' }),
    ])
      expect(textOf(status)).not.toContain('a run in progress')
    expect(isMinor(upOf({ message: null }), upOf({}))).toBe(false)
    expect(isMinor(upOf({}), upOf({ message: null }))).toBe(true)
  })

  it.each<[string, Partial<Findings>]>([
    ['a flip', { check: record({ status: 'down' }), downReason: 'failed' }],
    ['a pause', { check: record({ status: 'paused' }) }],
    ['a problem', { sync: stalled }],
    ['another target', { published: { kind: 'ConfigMap', name: 'x' } }],
  ])('%s is no minor change', (_, findings) => {
    expect(isMinor(statusOf(), statusOf(findings))).toBe(false)
  })

  it.each([
    ['started', { outcome: 'Running', completionTime: null }, true],
    ['succeeded', { outcome: 'Succeeded' }, true],
    ['ended with a warning', { outcome: 'Warned', exitCode: 3 }, false],
    ['failed', { outcome: 'Failed', exitCode: 3 }, false],
    ['was deleted', { outcome: 'Deleted' }, false],
  ] as const)('a run that %s is a minor change or not, whatever the one before it was', (_, run, expected) => {
    for (const outcome of ['Running', 'Succeeded', 'Failed'] as const) {
      const before = statusOf({ followed: { source: SOURCE, lastRun: { ...RUN, outcome } } })
      const after = statusOf({ followed: { source: SOURCE, lastRun: { ...RUN, job: 'backup-2', ...run } } })
      expect(isMinor(before, after)).toBe(expected)
    }
    expect(isMinor(statusOf({ followed: { source: SOURCE, lastRun: null } }), statusOf())).toBe(false)
  })

  it.each([
    ['its last time', { lastScheduleTime: '2026-11-21T11:00:00Z' }, true],
    ['its active Jobs', { active: ['backup-2'] }, true],
    ['its suspension', { suspended: true }, false],
    ['its uid', { metadata: { ...SOURCE.metadata, uid: 'other' } }, false],
  ])('of a CronJob %s is a minor change or not', (_, change, expected) => {
    const before = statusOf({ followed: { source: SOURCE, lastRun: RUN } })
    const after = statusOf({ followed: { source: { ...SOURCE, ...change }, lastRun: RUN } })
    expect(isSameStatus(before, after)).toBe(false)
    expect(isMinor(before, after)).toBe(expected)
  })

  it('takes away what is no more', () => {
    const before = statusOf()
    const after = statusOf({ check: null, published: null, sync: stalled }, before)
    expect(Object.keys(after)).toEqual(['observedGeneration', 'installation', 'conditions'])
    expect(isSameStatus(before, after)).toBe(false)
  })

  it('holds neither the ping URL nor the public id', () => {
    expect(JSON.stringify(statusOf())).not.toContain(record().publicId)
  })
})

it('a right that only reasons need is in the message of Ready, which stays True', () => {
  const missingRights = [
    { right: 'list events', effect: 'why a run does not start is not always known' },
    { right: 'get pods/log', effect: 'failures are recorded without their log' },
  ]
  const { conditions = [] } = statusOf({ followed: { source: SOURCE, lastRun: null, missingRights } })
  const ready = conditions.find(({ type }) => type === 'Ready')
  expect(ready).toMatchObject({ status: 'True', reason: 'Synced' })
  expect(ready!.message).toMatch(
    /; the operator may not list events, so why a run does not start is not always known; the operator may not get pods\/log, so failures are recorded without their log: repeat helm upgrade of the operator's release, or without Helm apply its manifests again: that restores the roles of its account$/,
  )
  expect(conditions.some(({ type }) => type === 'Stalled')).toBe(false)
})
