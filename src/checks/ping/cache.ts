/**
 * Rows of checks as this process saved them last, so that a ping can be decided without a read. Cached rows may be stale: another replica or a
 * person may have changed them. They are saved on condition that the row still has the cached version (`saveUnlocked`, store/checks/change-sets.ts).
 *
 * Each ping replaces a row. Rows are numbers in one array: an object would live just long enough to reach the garbage collector's old generation,
 * which makes a ping about a tenth more expensive (docs/design/ping-path.md).
 */

import {
  type CheckSpec,
  type CheckState,
  type Instant,
  type Run,
  STATUS_REASONS,
  STATUSES,
} from '../../domain/check.ts'
import type { ExpectedRow, RowVersion } from '../../store/checks/change-sets.ts'
import { fieldsOf } from '../../store/checks/column-lists.ts'
import { STATE, statusCode } from '../../store/checks/columns.ts'
import type { LockedCheck } from '../../store/checks/states.ts'

export type CachedCheck = LockedCheck & ExpectedRow

/** Rows that a transaction committed, and their version since. */
export interface SavedChecks {
  readonly checks: readonly LockedCheck[]
  readonly version: RowVersion
}

export interface CheckCache {
  /** Those that are cached, in the order of their keys. */
  find(keys: Iterable<number>): CachedCheck[]
  put(saved: SavedChecks): void
  /** Updates those that are cached already, and adds none. */
  refresh(saved: SavedChecks): void
  drop(keys: Iterable<number>): void
}

/** About 200 bytes each. */
const MAX_CHECKS = 20_000
/** A check may have a hundred open runs of 130 bytes; pings with run ids are locked anyway. */
const MAX_RUNS = 2
const NO_RUNS: readonly Run[] = []
const NO_CHANGES: readonly Instant[] = []

/** The columns of a row: the fields of a state that are numbers, then the others. NaN stands for null. */
const OTHER_FIELDS = ['status', 'notified', 'reason', 'runs', 'changes'] as const satisfies (keyof CheckState)[]
type NumberField = Exclude<keyof CheckState, (typeof OTHER_FIELDS)[number]>
const FIELDS = fieldsOf<CheckState>(STATE).filter(
  (field) => !(OTHER_FIELDS as readonly string[]).includes(field),
) as NumberField[]
const AT = Object.fromEntries(FIELDS.map((field, index) => [field, index])) as Record<NumberField, number>
const STATUS = FIELDS.length
const NOTIFIED = STATUS + 1
const REASON = STATUS + 2
const STAMPED_AT = STATUS + 3
const WAKE_AT = STATUS + 4
const VERSION = STATUS + 5
const COLUMNS = STATUS + 6

/** When it is full, the check that was added first goes. */
export function createCheckCache(limit = MAX_CHECKS): CheckCache {
  const numbers = new Float64Array(limit * COLUMNS)
  const specs: (CheckSpec | null)[] = []
  const runs: (readonly Run[])[] = []
  const changes: (readonly Instant[])[] = []
  /** The index of each check's row. */
  const rows = new Map<number, number>()
  /** By row. A dropped check leaves its row unused until it is the next one. */
  const keys: number[] = []
  let nextRow = 0

  function put({ key, spec, state, stampedAt, wakeAt }: LockedCheck, version: RowVersion): void {
    if (state.runs.length > MAX_RUNS) {
      rows.delete(key)
      return
    }
    const row = rows.get(key) ?? addRow(key)
    specs[row] = spec
    runs[row] = state.runs.length === 0 ? NO_RUNS : state.runs
    changes[row] = state.changes.length === 0 ? NO_CHANGES : state.changes
    const at = row * COLUMNS
    for (let index = 0; index < FIELDS.length; index += 1) numbers[at + index] = state[FIELDS[index]!] ?? Number.NaN
    numbers[at + STATUS] = statusCode(state.status)
    numbers[at + NOTIFIED] = state.notified === null ? Number.NaN : statusCode(state.notified)
    numbers[at + REASON] = state.reason === null ? Number.NaN : STATUS_REASONS.indexOf(state.reason)
    numbers[at + STAMPED_AT] = stampedAt
    numbers[at + WAKE_AT] = wakeAt ?? Number.NaN
    numbers[at + VERSION] = version
  }

  function addRow(key: number): number {
    const row = nextRow
    nextRow = (row + 1) % limit
    const before = keys[row]
    if (before !== undefined && rows.get(before) === row) rows.delete(before)
    keys[row] = key
    rows.set(key, row)
    return row
  }

  function read(key: number, row: number): CachedCheck {
    const at = row * COLUMNS
    return {
      key,
      spec: specs[row]!,
      state: {
        status: STATUSES[numbers[at + STATUS]!]!,
        since: numbers[at + AT.since]!,
        reason: STATUS_REASONS[numbers[at + REASON]!] ?? null,
        lastPingAt: toNullable(numbers[at + AT.lastPingAt]!),
        lastSuccessAt: toNullable(numbers[at + AT.lastSuccessAt]!),
        lastDurationMs: toNullable(numbers[at + AT.lastDurationMs]!),
        lastStartAt: toNullable(numbers[at + AT.lastStartAt]!),
        expectedAt: toNullable(numbers[at + AT.expectedAt]!),
        dueAt: toNullable(numbers[at + AT.dueAt]!),
        runs: runs[row]!,
        pingsTotal: numbers[at + AT.pingsTotal]!,
        incidentSince: toNullable(numbers[at + AT.incidentSince]!),
        changes: changes[row]!,
        notified: STATUSES[numbers[at + NOTIFIED]!] ?? null,
        quietAt: toNullable(numbers[at + AT.quietAt]!),
      },
      stampedAt: numbers[at + STAMPED_AT]!,
      wakeAt: toNullable(numbers[at + WAKE_AT]!),
      version: numbers[at + VERSION]!,
    }
  }

  return {
    find(wanted) {
      const found: CachedCheck[] = []
      for (const key of wanted) {
        const row = rows.get(key)
        if (row !== undefined) found.push(read(key, row))
      }
      return found.sort((a, b) => a.key - b.key)
    },
    put({ checks, version }) {
      for (const check of checks) put(check, version)
    },
    refresh({ checks, version }) {
      for (const check of checks) if (rows.has(check.key)) put(check, version)
    },
    drop(gone) {
      for (const key of gone) rows.delete(key)
    },
  }
}

const toNullable = (value: number) => (Number.isNaN(value) ? null : value)
