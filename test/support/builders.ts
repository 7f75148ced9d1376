/** What tests build checks from; each takes overrides. */

import fc from 'fast-check'
import type { CheckSpec, CheckState } from '../../src/domain/check.ts'
import { parseCron } from '../../src/domain/cron.ts'
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
  stored: {
    periodSeconds: null,
    schedule: null,
    timeZone: null,
    dialect: null,
    graceSeconds: 0,
    maxRuntimeSeconds: null,
    jobArea: null,
    resumeOnPing: false,
  },
}

/** Every hour, five minutes of grace. */
export function aSpec(overrides: Partial<CheckSpec> = {}): CheckSpec {
  return {
    schedule: { kind: 'period', periodMs: HOUR },
    graceMs: 5 * MINUTE,
    maxRuntimeMs: null,
    awaits: 'completion',
    resumesOnPing: false,
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
    ...overrides,
  }
}
