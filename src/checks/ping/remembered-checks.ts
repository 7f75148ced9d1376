/**
 * Rows of checks as this process last saved them, so that a ping may be decided without a look at the database: saved under the condition
 * that the row is still of that version (`saveUnlocked`, store/checks/change-sets.ts). Nothing here needs to be true. What somebody else has
 * changed meanwhile (another replica, a person) is found out by the condition, and costs a round trip.
 *
 * Each ping renews its row, so rows are kept as numbers in one array and not as objects: an object of a ping that lives until the next one
 * is copied twice by the garbage collector and then collected by its slowest kind (docs/benchmarks.md).
 */

import { type CheckSpec, type Run, STATUSES } from '../../domain/check.ts'
import type { ExpectedRow, RowVersion } from '../../store/checks/change-sets.ts'
import type { LockedCheck } from '../../store/checks/states.ts'

export type RememberedCheck = LockedCheck & ExpectedRow

export interface RememberedChecks {
  /** In the order of their keys; null unless all are remembered. */
  find(keys: Iterable<number>): RememberedCheck[] | null
  /** As the transaction that made this version has committed them. */
  remember(checks: Iterable<LockedCheck>, version: RowVersion): void
  /** The same, of those only that are remembered already. */
  renew(checks: Iterable<LockedCheck>, version: RowVersion): void
  forget(keys: Iterable<number>): void
}

/** About 150 bytes each. */
const REMEMBERED_LIMIT = 20_000
/** A hundred may be open, with 130 bytes each; and whoever tells runs apart is locked anyway. */
const MOST_RUNS = 2

/** Columns of a row, by their place in it. */
const STATUS = 0
const SINCE = 1
const LAST_PING_AT = 2
const LAST_SUCCESS_AT = 3
const LAST_DURATION_MS = 4
const LAST_START_AT = 5
const EXPECTED_AT = 6
const DUE_AT = 7
const STAMPED_AT = 8
const WAKE_AT = 9
const VERSION = 10
/** 1 after a ping; see `makeRoom`. */
const IS_RECENT = 11
const COLUMNS = 12

export function createRememberedChecks(limit = REMEMBERED_LIMIT): RememberedChecks {
  /** Where the row of a key begins, in rows. */
  const places = new Map<number, number>()
  const free: number[] = []
  const keys: number[] = []
  const specs: (CheckSpec | null)[] = []
  const runs: (readonly Run[])[] = []
  let numbers = new Float64Array(COLUMNS)
  /** The place at which the search for room goes on. */
  let hand = 0

  function put(check: LockedCheck, version: RowVersion, isRecent: 0 | 1): void {
    const { key, spec, state, stampedAt, wakeAt } = check
    if (state.runs.length > MOST_RUNS) {
      drop(key)
      return
    }
    const known = places.get(key)
    const place = known ?? add(key)
    if (specs[place] !== spec) specs[place] = spec
    if (runs[place] !== state.runs) runs[place] = state.runs.length === 0 ? NO_RUNS : state.runs
    const at = place * COLUMNS
    numbers[at + STATUS] = STATUSES.indexOf(state.status)
    numbers[at + SINCE] = state.since
    numbers[at + LAST_PING_AT] = toNumber(state.lastPingAt)
    numbers[at + LAST_SUCCESS_AT] = toNumber(state.lastSuccessAt)
    numbers[at + LAST_DURATION_MS] = toNumber(state.lastDurationMs)
    numbers[at + LAST_START_AT] = toNumber(state.lastStartAt)
    numbers[at + EXPECTED_AT] = toNumber(state.expectedAt)
    numbers[at + DUE_AT] = toNumber(state.dueAt)
    numbers[at + STAMPED_AT] = stampedAt
    numbers[at + WAKE_AT] = toNumber(wakeAt)
    numbers[at + VERSION] = version
    if (known !== undefined && isRecent === 1) numbers[at + IS_RECENT] = 1
  }

  function add(key: number): number {
    if (places.size === limit) makeRoom()
    const place = free.pop() ?? places.size
    places.set(key, place)
    keys[place] = key
    numbers[place * COLUMNS + IS_RECENT] = 0
    if ((place + 1) * COLUMNS > numbers.length) {
      const larger = new Float64Array(numbers.length * 2)
      larger.set(numbers)
      numbers = larger
    }
    return place
  }

  /** What was not pinged again since the hand came by last goes: nearly the oldest, and no ping has to keep them in order (CLOCK). */
  function makeRoom(): void {
    while (places.size === limit) {
      const at = hand * COLUMNS + IS_RECENT
      if (numbers[at] === 0) drop(keys[hand]!)
      numbers[at] = 0
      hand = (hand + 1) % limit
    }
  }

  function drop(key: number): void {
    const place = places.get(key)
    if (place === undefined) return
    places.delete(key)
    free.push(place)
    specs[place] = null
    runs[place] = NO_RUNS
  }

  function read(place: number): RememberedCheck {
    const at = place * COLUMNS
    return {
      key: keys[place]!,
      spec: specs[place]!,
      state: {
        status: STATUSES[numbers[at + STATUS]!]!,
        since: numbers[at + SINCE]!,
        lastPingAt: toNullable(numbers[at + LAST_PING_AT]!),
        lastSuccessAt: toNullable(numbers[at + LAST_SUCCESS_AT]!),
        lastDurationMs: toNullable(numbers[at + LAST_DURATION_MS]!),
        lastStartAt: toNullable(numbers[at + LAST_START_AT]!),
        expectedAt: toNullable(numbers[at + EXPECTED_AT]!),
        dueAt: toNullable(numbers[at + DUE_AT]!),
        runs: runs[place]!,
      },
      stampedAt: numbers[at + STAMPED_AT]!,
      wakeAt: toNullable(numbers[at + WAKE_AT]!),
      version: numbers[at + VERSION]!,
    }
  }

  return {
    find(wanted) {
      const found: RememberedCheck[] = []
      for (const key of wanted) {
        const place = places.get(key)
        if (place === undefined) return null
        found.push(read(place))
      }
      return found.sort((a, b) => a.key - b.key)
    },
    remember(checks, version) {
      for (const check of checks) put(check, version, 1)
    },
    renew(checks, version) {
      for (const check of checks) if (places.has(check.key)) put(check, version, 0)
    },
    forget(gone) {
      for (const key of gone) drop(key)
    },
  }
}

const NO_RUNS: readonly Run[] = []

const toNumber = (value: number | null) => value ?? Number.NaN
const toNullable = (value: number) => (Number.isNaN(value) ? null : value)
