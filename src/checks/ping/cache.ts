/**
 * Rows of checks as this process saved them last, so that a ping can be decided without a read. Cached rows may be stale: another replica or a
 * person may have changed them. They are saved on condition that the row still has the cached version (`saveUnlocked`, store/checks/change-sets.ts).
 *
 * Each ping replaces a row. Rows are numbers in one array: an object would live just long enough to reach the garbage collector's old generation,
 * which makes a ping about a tenth more expensive (docs/design/ping-path.md).
 */

import { type CheckSpec, type CheckState, type Run, STATUSES } from '../../domain/check.ts'
import type { ExpectedRow, RowVersion } from '../../store/checks/change-sets.ts'
import type { LockedCheck } from '../../store/checks/states.ts'

export type CachedCheck = LockedCheck & ExpectedRow

/** Rows that a transaction committed, and their version since. */
export interface SavedChecks {
  readonly checks: readonly LockedCheck[]
  readonly version: RowVersion
}

export interface CheckCache {
  /** In the order of their keys; null unless all are cached. */
  find(keys: Iterable<number>): CachedCheck[] | null
  put(saved: SavedChecks): void
  /** Updates those that are cached already, and adds none. */
  refresh(saved: SavedChecks): void
  drop(keys: Iterable<number>): void
}

/** About 150 bytes each. */
const MAX_CHECKS = 20_000
/** A check may have a hundred open runs of 130 bytes; pings with run ids are locked anyway. */
const MAX_RUNS = 2
const NO_RUNS: readonly Run[] = []

type NumberColumn = Exclude<keyof CheckState, 'runs'> | 'stampedAt' | 'wakeAt' | 'version'

/** The column of each number in a row. NaN stands for null. */
const AT = {
  status: 0,
  since: 1,
  lastPingAt: 2,
  lastSuccessAt: 3,
  lastDurationMs: 4,
  lastStartAt: 5,
  expectedAt: 6,
  dueAt: 7,
  stampedAt: 8,
  wakeAt: 9,
  version: 10,
} as const satisfies Record<NumberColumn, number>
const COLUMNS = Object.keys(AT).length

/** When it is full, the check that was added first goes. */
export function createCheckCache(limit = MAX_CHECKS): CheckCache {
  const numbers = new Float64Array(limit * COLUMNS)
  const specs: (CheckSpec | null)[] = []
  const runs: (readonly Run[])[] = []
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
    const at = row * COLUMNS
    numbers[at + AT.status] = STATUSES.indexOf(state.status)
    numbers[at + AT.since] = state.since
    numbers[at + AT.lastPingAt] = state.lastPingAt ?? Number.NaN
    numbers[at + AT.lastSuccessAt] = state.lastSuccessAt ?? Number.NaN
    numbers[at + AT.lastDurationMs] = state.lastDurationMs ?? Number.NaN
    numbers[at + AT.lastStartAt] = state.lastStartAt ?? Number.NaN
    numbers[at + AT.expectedAt] = state.expectedAt ?? Number.NaN
    numbers[at + AT.dueAt] = state.dueAt ?? Number.NaN
    numbers[at + AT.stampedAt] = stampedAt
    numbers[at + AT.wakeAt] = wakeAt ?? Number.NaN
    numbers[at + AT.version] = version
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
        status: STATUSES[numbers[at + AT.status]!]!,
        since: numbers[at + AT.since]!,
        lastPingAt: toNullable(numbers[at + AT.lastPingAt]!),
        lastSuccessAt: toNullable(numbers[at + AT.lastSuccessAt]!),
        lastDurationMs: toNullable(numbers[at + AT.lastDurationMs]!),
        lastStartAt: toNullable(numbers[at + AT.lastStartAt]!),
        expectedAt: toNullable(numbers[at + AT.expectedAt]!),
        dueAt: toNullable(numbers[at + AT.dueAt]!),
        runs: runs[row]!,
      },
      stampedAt: numbers[at + AT.stampedAt]!,
      wakeAt: toNullable(numbers[at + AT.wakeAt]!),
      version: numbers[at + AT.version]!,
    }
  }

  return {
    find(wanted) {
      const found: CachedCheck[] = []
      for (const key of wanted) {
        const row = rows.get(key)
        if (row === undefined) return null
        found.push(read(key, row))
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
