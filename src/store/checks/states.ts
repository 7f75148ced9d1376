/** The hot rows, locked and read: one statement for a whole group of changes. change-sets.ts writes them. */

import {
  type CheckSpec,
  type CheckState,
  type Instant,
  PING_TYPES,
  type PingType,
  type Run,
  type Schedule,
  type ShownStatus,
  STATUSES,
  type StoredStatus,
} from '../../domain/check.ts'
import { parseCron } from '../../domain/cron.ts'
import { instantArray, int2Array, int8Array, uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import type { StoredSpec } from './columns.ts'

export type { StoredSpec } from './columns.ts'

/** A check whose row is locked by the transaction at hand. */
export interface LockedCheck {
  readonly key: number
  /** Null when the stored configuration makes no sense, or a time is no moment, as `infinity` (somebody's SQL). */
  readonly spec: CheckSpec | null
  readonly state: CheckState
  /** The time of its newest history entry, to the microsecond: the next is later. */
  readonly stampedAt: Instant
  readonly wakeAt: Instant | null
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
  const times = [since, lastPingAt, lastSuccessAt, lastStartAt, expectedAt, dueAt, stampedAt, wakeAt]
  return {
    key,
    spec: times.some(Number.isNaN)
      ? null
      : toSpec({ periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds }),
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

/** `shownStatus` (domain/check.ts) in SQL, over a row `s` of check_states. `now`: a time in SQL. */
export function shownStatusSql(now: string): string {
  const names = STATUSES.map((status) => `'${status}'`).join(', ')
  return `case when s.status = ${STATUSES.indexOf('up')} and s.expected_at <= ${now} then 'late' else (array[${names}])[s.status + 1] end`
}

export async function countByStatus(tx: Queryable): Promise<Record<ShownStatus, number>> {
  const { rows } = await tx.query<{ status: ShownStatus; count: number }>(
    `select ${shownStatusSql('now()')} as status, count(*) from check_states s group by 1`,
  )
  const counts = { new: 0, up: 0, late: 0, down: 0, paused: 0 }
  for (const { status, count } of rows) counts[status] = count
  return counts
}
