import { describe, expect, it } from 'vitest'
import { type CheckState, type FlipReason, NO_TEXTS } from '../../../src/domain/check.ts'
import type { HeartbeatCheck, HeartbeatCheckStatus } from '../../../src/operator/heartbeat-check.ts'
import {
  computeStatus,
  type Findings,
  isSameStatus,
  LAST_PING_STEP_MS,
  type Sync,
} from '../../../src/operator/status.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'

const NOW = Date.UTC(2026, 10, 21, 12, 0, 0)
const SECRET = { kind: 'Secret', name: 'nightly-heartbeat' } as const

function resource(status?: HeartbeatCheckStatus, generation = 3): HeartbeatCheck {
  return {
    metadata: { name: 'nightly', namespace: 'shop', uid: 'u1', resourceVersion: '7', generation },
    spec: { periodSeconds: 3_600 },
    ...(status === undefined ? {} : { status }),
  }
}

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
    spec: { periodSeconds: 3_600, schedule: null, timeZone: null, graceSeconds: 600, maxRuntimeSeconds: null },
    state: {
      status: 'up',
      since: NOW - 5_000,
      lastPingAt: NOW - 5_000,
      lastSuccessAt: NOW - 5_000,
      lastDurationMs: null,
      lastStartAt: null,
      expectedAt: NOW + 3_595_000,
      dueAt: NOW + 4_195_000,
      runs: [],
      ...state,
    },
  }
}

function statusOf(findings: Partial<Findings> = {}, before?: HeartbeatCheckStatus, now = NOW) {
  const given = { sync: { kind: 'synced' }, check: record(), published: SECRET, downReason: null, ...findings } as const
  return computeStatus(resource(before), given, now)
}

const condition = (status: HeartbeatCheckStatus, type: string) =>
  status.conditions?.find((candidate) => candidate.type === type)
const stalled: Sync = { kind: 'stalled', reason: 'TargetNotOwned', message: 'Secret x belongs to somebody' }

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
  ])('of %j, down for %s, is %s', (state, downReason, expected) => {
    const up = condition(statusOf({ check: record(state), downReason }), 'Up')!
    expect(`${up.status} ${up.reason}`).toBe(expected)
  })
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

  it('moves the last ping on at most once a minute', () => {
    const before = statusOf()
    const ping = (ms: number) => statusOf({ check: record({ lastPingAt: NOW - 5_000 + ms }) }, before).lastPingTime
    expect(ping(LAST_PING_STEP_MS - 1)).toBe(before.lastPingTime)
    expect(ping(LAST_PING_STEP_MS)).toBe(new Date(NOW - 5_000 + LAST_PING_STEP_MS).toISOString())
  })

  it('takes away what is no more', () => {
    const before = statusOf()
    const after = statusOf({ check: null, published: null, sync: stalled }, before)
    expect(Object.keys(after)).toEqual(['observedGeneration', 'conditions'])
    expect(isSameStatus(before, after)).toBe(false)
  })

  it('holds neither the ping URL nor the public id', () => {
    expect(JSON.stringify(statusOf())).not.toContain(record().publicId)
  })
})
