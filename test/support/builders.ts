/** What tests build checks from; each takes overrides. */

import fc from 'fast-check'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import type { CheckSpec, CheckState } from '../../src/domain/check.ts'
import { parseCron } from '../../src/domain/cron.ts'
import { ApiError } from '../../src/kubernetes/errors.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import type { Source } from '../../src/operator/sources/source-kind.ts'
import type { LockedCheck } from '../../src/store/checks/states.ts'

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR

/** A Saturday noon, away from any change of clocks. */
export const NOON = Date.UTC(2026, 10, 21, 12)

/** A text of any UTF-16 units. fast-check's unit `binary` is so slow at first that a busy machine exceeds a test's time. */
export const anyText = (maxLength: number) =>
  fc.string({ unit: fc.nat(0xff_ff).map((unit) => String.fromCharCode(unit)), maxLength })

/** Of a row whose stored spec nothing reads. */
export const UNREAD_SPEC: Pick<LockedCheck, 'specHash' | 'stored'> = {
  specHash: 0,
  stored: { ...NO_SPEC, dialect: null },
}

/** Every hour, five minutes of grace. */
export function aSpec(overrides: Partial<CheckSpec> = {}): CheckSpec {
  return {
    schedule: { kind: 'period', periodMs: HOUR },
    graceMs: 5 * MINUTE,
    maxRuntimeMs: null,
    awaits: 'completion',
    resumesOnPing: false,
    failuresBeforeDown: 1,
    missesBeforeDown: 1,
    remindEveryMs: null,
    remindsOnEachRun: false,
    ...overrides,
  }
}

export function aCronSpec(expression: string, overrides: Partial<CheckSpec> = {}, timeZone = 'UTC'): CheckSpec {
  return aSpec({ schedule: { kind: 'cron', cron: parseCron(expression, timeZone, 'kubernetes') }, ...overrides })
}

/** Up, last completed at NOON, under `aSpec()`. */
export function aState(overrides: Partial<CheckState> = {}): CheckState {
  return {
    status: 'up',
    since: NOON,
    reason: 'recovered',
    lastPingAt: NOON,
    lastOutcome: 'success',
    lastSuccessAt: NOON,
    lastDurationMs: null,
    lastStartAt: null,
    expectedAt: NOON + HOUR,
    dueAt: NOON + HOUR + 5 * MINUTE,
    runs: [],
    pingsTotal: 1,
    incidentSince: null,
    changes: [],
    notified: null,
    quietAt: null,
    hold: null,
    consecutiveFailures: 0,
    consecutiveMisses: 0,
    pause: null,
    acknowledged: null,
    repeats: [],
    downNotifiedAt: null,
    escalation: null,
    reminders: 0,
    warnedAt: null,
    ...overrides,
  }
}

type Given<T extends { readonly metadata: object }> = Partial<Omit<T, 'metadata'>> & {
  metadata?: Partial<T['metadata']>
}

/** Of `shop/nightly`, every hour. */
export function aHeartbeatCheck({ metadata, ...given }: Given<HeartbeatCheck> = {}): HeartbeatCheck {
  return {
    metadata: { namespace: 'shop', name: 'nightly', uid: 'u1', resourceVersion: '7', generation: 1, ...metadata },
    spec: { periodSeconds: 3_600 },
    ...given,
  }
}

/** The CronJob `shop/backup`, every night. */
export function aSource({ metadata, ...given }: Given<Source> = {}): Source {
  return {
    metadata: { namespace: 'shop', name: 'backup', uid: 'c1', resourceVersion: '1', ...metadata },
    createdAt: 0,
    schedule: '0 2 * * *',
    timeZone: null,
    suspended: false,
    concurrencyPolicy: 'Allow',
    startingDeadlineSeconds: null,
    activeDeadlineSeconds: null,
    lastScheduleTime: null,
    lastSuccessfulTime: null,
    active: [],
    ...given,
  }
}

/** What an API server answers that does not do what it is asked for. */
export function anApiError(status: number, fields: Partial<ConstructorParameters<typeof ApiError>[0]> = {}): ApiError {
  const nothing = { request: 'a request', reason: 'Rejected', message: 'no', details: null, retryAfterSeconds: null }
  return new ApiError({ ...nothing, status, ...fields })
}
