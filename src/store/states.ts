/**
 * The hot rows: lock them, and save what the state machine made of them, three statements for a whole group of changes. Or save
 * without a lock what was decided on rows that are still as they were, in one.
 */

import {
  type CheckSpec,
  type CheckState,
  type FlipReason,
  type Instant,
  PING_TYPES,
  type PingType,
  type Run,
  type Schedule,
  STATUSES,
  type StoredStatus,
} from '../domain/check.ts'
import { parseCron } from '../domain/cron.ts'
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

/** A check whose row is locked by the transaction at hand. */
export interface LockedCheck {
  readonly key: number
  /** Null with a reason when the stored configuration makes no sense (somebody's SQL). */
  readonly spec: CheckSpec | null
  readonly state: CheckState
  /** The time of its newest history entry, to the microsecond: the next is later. */
  readonly stampedAt: Instant
  readonly wakeAt: Instant | null
}

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

const COLUMNS = `check_key, period_seconds, schedule, time_zone, grace_seconds, max_runtime_seconds,
  status, since, last_ping_at, last_success_at, last_duration_ms, last_start_at, expected_at, due_at, runs, stamped_at, wake_at`

/** Locks in the order of the keys, so that two groups never wait for each other in a circle. Checks that are gone are left out. */
export async function lockStates(
  tx: Queryable,
  keys: readonly number[],
  wait: 'wait' | 'skip locked' = 'wait',
): Promise<LockedCheck[]> {
  const rows = await tx.queryColumns({
    name: `lock_states ${wait}`,
    text: `select ${COLUMNS} from check_states where check_key = any($1::int8[]) order by check_key for no key update ${wait === 'wait' ? '' : wait}`,
    values: [int8Array(keys)],
  })
  return rows.map(toLockedCheck)
}

/**
 * Locks the checks whose wake-up time has come, oldest first, leaving out those that another replica is at. Nothing while the service beat is
 * stale: right after an outage the gap must be on record before anybody is found missing (design, section 4, "Own downtime").
 */
export async function lockDueStates(
  tx: Queryable,
  limit: number,
  freshMs: number,
): Promise<{ now: Instant; checks: LockedCheck[] }> {
  const rows = await tx.queryColumns({
    name: 'lock_due_states',
    text: `select ${COLUMNS}, now() from check_states
      where wake_at <= now() and exists (select from service_beat where beat_at > now() - $2 * interval '1 millisecond')
      order by wake_at limit $1 for no key update skip locked`,
    values: [limit, freshMs],
  })
  return { now: Math.floor((rows[0]?.[17] as Instant | undefined) ?? 0), checks: rows.map(toLockedCheck) }
}

/** Of one that is up the last completion was a success, also where a replica wrote it that does not know the column yet. */
export function lastSuccessOf(
  status: StoredStatus,
  lastPingAt: Instant | null,
  column: Instant | null,
): Instant | null {
  return status === 'up' ? lastPingAt : column
}

function toLockedCheck(row: unknown[]): LockedCheck {
  const [
    key,
    periodSeconds,
    schedule,
    timeZone,
    graceSeconds,
    maxRuntimeSeconds,
    status,
    since,
    lastPingAt,
    lastSuccessAt,
    lastDurationMs,
    lastStartAt,
    expectedAt,
    dueAt,
    runs,
    stampedAt,
    wakeAt,
  ] = row as [
    number,
    number | null,
    string | null,
    string | null,
    number,
    number | null,
    number,
    Instant,
    Instant | null,
    Instant | null,
    number | null,
    Instant | null,
    Instant | null,
    Instant | null,
    Run[] | null,
    Instant,
    Instant | null,
  ]
  return {
    key,
    spec: toSpec({ periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds }),
    state: {
      status: STATUSES[status]!,
      since,
      lastPingAt,
      lastSuccessAt: lastSuccessOf(STATUSES[status]!, lastPingAt, lastSuccessAt),
      lastDurationMs,
      lastStartAt,
      expectedAt,
      dueAt,
      runs: runs ?? [],
    },
    stampedAt,
    wakeAt,
  }
}

export interface StoredSpec {
  readonly periodSeconds: number | null
  readonly schedule: string | null
  readonly timeZone: string | null
  readonly graceSeconds: number
  readonly maxRuntimeSeconds: number | null
}

function toSpec({ periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds }: StoredSpec): CheckSpec | null {
  const when =
    periodSeconds === null
      ? toCronSchedule(schedule!, timeZone!)
      : ({ kind: 'period', periodMs: periodSeconds * 1_000 } as const)
  if (when === null) return null
  return {
    schedule: when,
    graceMs: graceSeconds * 1_000,
    maxRuntimeMs: maxRuntimeSeconds === null ? null : maxRuntimeSeconds * 1_000,
  }
}

/** Parsed expressions by "zone expression": many checks share a few of them, and each ping would parse its own again. */
const parsed = new Map<string, Schedule | null>()
const PARSED_LIMIT = 10_000

function toCronSchedule(expression: string, timeZone: string): Schedule | null {
  const cacheKey = `${timeZone} ${expression}`
  let schedule = parsed.get(cacheKey)
  if (schedule === undefined) {
    try {
      schedule = { kind: 'cron', cron: parseCron(expression, timeZone) }
    } catch {
      schedule = null
    }
    if (parsed.size >= PARSED_LIMIT) parsed.clear()
    parsed.set(cacheKey, schedule)
  }
  return schedule
}

/** Which of these runs' pings are stored already, as `key:run:type`. Read under the lock, so nobody adds one meanwhile. */
export async function findRunPings(
  tx: Queryable,
  pings: readonly { key: number; runId: string; type: PingType }[],
): Promise<Set<string>> {
  const rows = await tx.queryColumns({
    name: 'find_run_pings',
    text: `select p.check_key, p.run_id, p.type from unnest($1::int8[], $2::uuid[], $3::int2[]) i (key, run_id, type)
      join pings p on p.check_key = i.key and p.run_id = i.run_id and p.type = i.type`,
    values: [
      int8Array(pings.map((ping) => ping.key)),
      uuidArray(pings.map((ping) => ping.runId)),
      int2Array(pings.map((ping) => PING_TYPES.indexOf(ping.type))),
    ],
  })
  return new Set(
    rows.map(([key, runId, type]) => runPingKey(key as number, runId as string, PING_TYPES[type as number]!)),
  )
}

export function runPingKey(key: number, runId: string, type: PingType): string {
  return `${key}:${runId}:${type}`
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

/** Puts checks that cannot be evaluated out of the way, so that they do not stop the others. */
export async function postponeWake(tx: Queryable, keys: readonly number[], until: Instant): Promise<void> {
  await tx.query('update check_states set wake_at = ($2::timestamptz[])[1] where check_key = any($1::int8[])', [
    int8Array(keys),
    instantArray([until]),
  ])
}

/** How far behind the evaluator is, in seconds; 0 when nothing is overdue. */
export async function oldestOverdueSeconds(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ seconds: number }>(
    'select greatest(0, extract(epoch from now() - min(wake_at)))::float8 as seconds from check_states where wake_at is not null',
  )
  return rows[0]?.seconds ?? 0
}

export async function countByStatus(tx: Queryable): Promise<Record<StoredStatus | 'late', number>> {
  const { rows } = await tx.query<{ status: number; late: boolean; count: number }>(
    `select status, status = 1 and coalesce(expected_at <= now(), false) as late, count(*) from check_states group by 1, 2`,
  )
  const counts = { new: 0, up: 0, late: 0, down: 0, paused: 0 }
  for (const { status, late, count } of rows) counts[late ? 'late' : STATUSES[status]!] += count
  return counts
}
