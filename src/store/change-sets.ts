/** What the state machine made of locked rows, or of remembered ones, on its way into the database: one statement for each table, in one round trip. */

import {
  type CheckState,
  type FlipReason,
  type Instant,
  PING_TYPES,
  type PingType,
  STATUSES,
  type StoredStatus,
} from '../domain/check.ts'
import {
  byteaArray,
  instantArray,
  int2Array,
  int4Array,
  int8Array,
  jsonbArray,
  textArray,
  uuidArray,
  xidArray,
} from './binary-arrays.ts'
import type { Queryable } from './database.ts'
import { insertEvents, type NewEvent } from './events.ts'

/** The transaction that wrote a row last: PostgreSQL's `xmin`. */
export type RowVersion = number

export interface ChangedState {
  readonly key: number
  readonly state: CheckState
  readonly stampedAt: Instant
  /** Undefined: stays where it is. */
  readonly wakeAt?: Instant | null
}

export interface NewPing {
  readonly id: Buffer
  readonly key: number
  readonly type: PingType
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  readonly at: Instant
}

export interface NewFlip {
  readonly id: Buffer
  readonly key: number
  readonly at: Instant
  readonly detectedAt: Instant
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  readonly pingId: Buffer | null
}

/** Where the flips of declared checks are told of (LISTEN, NOTIFY). */
export const FLIP_CHANNEL = 'heartbeat_flips'
/** PostgreSQL refuses a longer payload, and the transaction with it. */
const NOTICE_BYTES = 8_000

export interface ChangeSet {
  readonly states: readonly ChangedState[]
  readonly pings: readonly NewPing[]
  readonly flips: readonly NewFlip[]
  readonly events: readonly NewEvent[]
}

/**
 * Issues everything at once; on a pipelined connection that is one round trip. Returns the version that the rows have once the
 * transaction has committed, null if there are none.
 */
export async function saveChanges(
  tx: Queryable,
  { states, pings, flips, events }: ChangeSet,
): Promise<RowVersion | null> {
  const issued: Promise<unknown[][]>[] = []
  if (states.length > 0) issued.push(tx.queryColumns(saveStates(states, pings)))
  const woken = states.filter((changed) => changed.wakeAt !== undefined)
  if (woken.length > 0) issued.push(tx.queryColumns(saveWakeTimes(woken)))
  const withBody = pings.filter((ping) => ping.body !== null)
  if (withBody.length > 0) issued.push(tx.queryColumns(insertBodies(withBody)))
  if (flips.length > 0) issued.push(tx.queryColumns(insertFlips(flips)))
  if (events.length > 0) issued.push(tx.queryColumns(insertEvents(events)))
  const settled = await Promise.allSettled(issued)
  for (const outcome of settled) if (outcome.status === 'rejected') throw outcome.reason
  if (states.length === 0) return null
  const [rows] = settled as PromiseFulfilledResult<unknown[][]>[]
  return Number(rows!.value[0]![0])
}

/** What a row must still be for `saveUnlocked` to write it. */
export interface ExpectedRow {
  readonly version: RowVersion
  /** Besides the version: a standby that takes over counts transactions on from an earlier one. */
  readonly stampedAt: Instant
}

/**
 * Saves states and pings without a lock before it: of checks whose row is as `expected` (one for each state) says. One statement, and a
 * transaction by itself. What was not saved, since its row has changed or is gone, is told by its check's key. Nothing
 * else of the change set is looked at. In the order of the keys, as `lockStates`.
 */
export async function saveUnlocked(
  session: Queryable,
  { states, pings }: Pick<ChangeSet, 'states' | 'pings'>,
  expected: readonly ExpectedRow[],
): Promise<{ version: RowVersion; stale: ReadonlySet<number> }> {
  const withBody = pings.filter((ping) => ping.body !== null)
  const [row] = await session.queryColumns(saveExpected(states, pings, withBody, expected))
  const [version, count, saved] = row as [string, number, string[] | null]
  const stale = new Set<number>()
  if (count < states.length) {
    for (const { key } of states) stale.add(key)
    for (const key of saved!) stale.delete(Number(key))
  }
  return { version: Number(version), stale }
}

const SET_STATE = `set status = i.status, since = i.since, last_ping_at = i.last_ping_at, last_success_at = i.last_success_at,
          last_duration_ms = i.last_duration_ms, last_start_at = i.last_start_at, expected_at = i.expected_at, due_at = i.due_at,
          runs = i.runs, stamped_at = i.stamped_at`
const STATE_ARRAYS =
  '$1::int8[], $2::int2[], $3::timestamptz[], $4::timestamptz[], $5::timestamptz[], $6::int4[], $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::jsonb[], $11::timestamptz[]'
const STATE_COLUMNS =
  'key, status, since, last_ping_at, last_success_at, last_duration_ms, last_start_at, expected_at, due_at, runs, stamped_at'
const PING_COLUMNS = 'id, check_key, type, exit_code, duration_ms, run_id, created_at'
const PING_ARRAYS = '$12::uuid[], $13::int8[], $14::int2[], $15::int2[], $16::int4[], $17::uuid[], $18::timestamptz[]'

function saveStates(states: readonly ChangedState[], pings: readonly NewPing[]) {
  return {
    name: 'save_states',
    text: `with saved as (
        update check_states s ${SET_STATE}
        from unnest(${STATE_ARRAYS}) i (${STATE_COLUMNS})
        where s.check_key = i.key),
      added as (
        insert into pings (${PING_COLUMNS}, source)
        select i.*, 0 from unnest(${PING_ARRAYS}) i)
      select pg_current_xact_id()::xid`,
    values: [...stateArrays(states), ...pingArrays(pings)],
  }
}

/** `is true` keeps the planner from a join of two lists whose lengths it does not know, which may be a loop in a loop. */
function saveExpected(
  states: readonly ChangedState[],
  pings: readonly NewPing[],
  withBody: readonly NewPing[],
  expected: readonly ExpectedRow[],
) {
  const isSaved = '(i.check_key in (select check_key from saved)) is true'
  const addBodies = `, added_bodies as (
        insert into ping_bodies (check_key, ping_id, body)
        select i.* from unnest($21::int8[], $22::uuid[], $23::bytea[]) i (check_key, ping_id, body) where ${isSaved})`
  return {
    name: withBody.length > 0 ? 'save_expected_with_bodies' : 'save_expected',
    text: `with saved as (
        update check_states s ${SET_STATE}
        from unnest(${STATE_ARRAYS}, $19::xid[], $20::timestamptz[]) i (${STATE_COLUMNS}, version, was_stamped_at)
        where s.check_key = i.key and s.xmin = i.version and s.stamped_at = i.was_stamped_at
        returning s.check_key),
      added as (
        insert into pings (${PING_COLUMNS}, source)
        select i.*, 0 from unnest(${PING_ARRAYS}) i (${PING_COLUMNS}) where ${isSaved})${withBody.length > 0 ? addBodies : ''},
      counted as (select count(*)::int4 as count from saved)
      select pg_current_xact_id()::xid, count,
        case when count < cardinality($1::int8[]) then array(select check_key from saved) end
      from counted`,
    values: [
      ...stateArrays(states),
      ...pingArrays(pings),
      xidArray(expected.map((row) => row.version)),
      instantArray(expected.map((row) => row.stampedAt)),
      ...(withBody.length > 0 ? bodyArrays(withBody) : []),
    ],
  }
}

function stateArrays(states: readonly ChangedState[]): Buffer[] {
  return [
    int8Array(states.map((changed) => changed.key)),
    int2Array(states.map(({ state }) => STATUSES.indexOf(state.status))),
    instantArray(states.map(({ state }) => state.since)),
    instantArray(states.map(({ state }) => state.lastPingAt)),
    instantArray(states.map(({ state }) => state.lastSuccessAt)),
    int4Array(states.map(({ state }) => state.lastDurationMs)),
    instantArray(states.map(({ state }) => state.lastStartAt)),
    instantArray(states.map(({ state }) => state.expectedAt)),
    instantArray(states.map(({ state }) => state.dueAt)),
    jsonbArray(states.map(({ state }) => (state.runs.length === 0 ? null : state.runs))),
    instantArray(states.map((changed) => changed.stampedAt)),
  ]
}

function pingArrays(pings: readonly NewPing[]): Buffer[] {
  return [
    uuidArray(pings.map((ping) => ping.id)),
    int8Array(pings.map((ping) => ping.key)),
    int2Array(pings.map((ping) => PING_TYPES.indexOf(ping.type))),
    int2Array(pings.map((ping) => ping.exitCode)),
    int4Array(pings.map((ping) => ping.durationMs)),
    uuidArray(pings.map((ping) => ping.runId)),
    instantArray(pings.map((ping) => ping.at)),
  ]
}

function bodyArrays(pings: readonly NewPing[]): Buffer[] {
  return [
    int8Array(pings.map((ping) => ping.key)),
    uuidArray(pings.map((ping) => ping.id)),
    byteaArray(pings.map((ping) => ping.body)),
  ]
}

/** Apart from the rest since it is not HOT: most groups move no wake-up time. */
function saveWakeTimes(states: readonly ChangedState[]) {
  return {
    name: 'save_wake_times',
    text: `update check_states s set wake_at = i.wake_at from unnest($1::int8[], $2::timestamptz[]) i (key, wake_at) where s.check_key = i.key`,
    values: [
      int8Array(states.map((changed) => changed.key)),
      instantArray(states.map((changed) => changed.wakeAt ?? null)),
    ],
  }
}

function insertBodies(pings: readonly NewPing[]) {
  return {
    name: 'insert_bodies',
    text: `insert into ping_bodies (check_key, ping_id, body) select * from unnest($1::int8[], $2::uuid[], $3::bytea[])`,
    values: bodyArrays(pings),
  }
}

/**
 * Whoever listens on FLIP_CHANNEL (flip-notices.ts) hears of each when the transaction commits: the resource as JSON, so that
 * nobody has to look it up. Not of a check's first one, which its declarer makes. A name that is too long for a notice
 * (somebody's SQL) must not stop a check: its flip is found by polling. The inner limit is a fence: a join would scan all
 * checks as long as there are few, and a plan lives long.
 */
function insertFlips(flips: readonly NewFlip[]) {
  return {
    name: 'insert_flips',
    text: `with added as (
        insert into flips (id, check_key, at, detected_at, from_status, to_status, reason, ping_id)
        select * from unnest($1::uuid[], $2::int8[], $3::timestamptz[], $4::timestamptz[], $5::int2[], $6::int2[], $7::text[], $8::uuid[])
        returning check_key, from_status)
      select pg_notify('${FLIP_CHANNEL}', notice) from added cross join lateral (
          select json_build_array(c.kubernetes_cluster, c.kubernetes_namespace, c.kubernetes_name)::text as notice
          from checks c where c.key = added.check_key and c.managed_by = 'kubernetes' limit 1) n
        where added.from_status is not null and octet_length(notice) < ${NOTICE_BYTES}`,
    values: [
      uuidArray(flips.map((flip) => flip.id)),
      int8Array(flips.map((flip) => flip.key)),
      instantArray(flips.map((flip) => flip.at)),
      instantArray(flips.map((flip) => flip.detectedAt)),
      int2Array(flips.map((flip) => (flip.from === null ? null : STATUSES.indexOf(flip.from)))),
      int2Array(flips.map((flip) => STATUSES.indexOf(flip.to))),
      textArray(flips.map((flip) => flip.reason)),
      uuidArray(flips.map((flip) => flip.pingId)),
    ],
  }
}
