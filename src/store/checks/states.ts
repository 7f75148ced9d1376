/** The hot rows, read under lock: one statement for a whole group of changes. change-sets.ts writes them. */

import {
  type CheckSpec,
  type CheckState,
  type Instant,
  PING_TYPES,
  type PingType,
  type Schedule,
  type ShownStatus,
} from '../../domain/check.ts'
import { parseCron } from '../../domain/cron.ts'
import { NEVER } from '../../domain/schedule.ts'
import { LOCKED_CHECKS, NOTHING_SPOOLED } from '../history/gaps.ts'
import { int8Array, uuidArray } from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { timestamp } from '../postgres/instants.ts'
import { fieldsOf, namesOf } from './column-lists.ts'
import {
  type CheckTiming,
  SPEC,
  SPEC_HASH,
  STATE,
  type StoredSpec,
  shownStatusSql,
  TIMING,
  toState,
  toStoredSpec,
  withSchedule,
} from './columns.ts'

/** A check whose row is locked by the transaction at hand. */
export interface LockedCheck extends CheckTiming {
  readonly key: number
  readonly specHash: number
  readonly stored: StoredSpec
  /** Null when the stored schedule cannot be parsed, or a stored time is not a moment (`infinity`, written by hand). */
  readonly spec: CheckSpec | null
  readonly state: CheckState
}

const COLUMNS = `check_key, ${namesOf(SPEC)}, ${namesOf(STATE)}, ${namesOf(TIMING)}, ${SPEC_HASH} as spec_hash`
/** Where the columns of each table begin in a row. */
const SPEC_AT = 1
const STATE_AT = SPEC_AT + fieldsOf(SPEC).length
const TIMING_AT = STATE_AT + fieldsOf(STATE).length
const HASH_AT = TIMING_AT + fieldsOf(TIMING).length
const NOW_AT = HASH_AT + 1
const SEEN_AT = NOW_AT + 1

/** The keys of checks by the public ids that pings carry. Unknown ids are left out. */
export async function findKeys(tx: Queryable, publicIds: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx.queryColumns({
    name: 'find_keys',
    text: 'select public_id, key from checks where public_id = any($1::uuid[])',
    values: [uuidArray(publicIds)],
  })
  return new Map(rows.map(([publicId, key]) => [publicId as string, key as number]))
}

/** In the order of keys, so that groups never deadlock. Without rows that are gone, or with `skip locked` locked. */
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

export interface KnownSpec {
  /** SPEC_HASH (columns.ts): checks with the same hash share one spec in memory. */
  readonly hash: number
  readonly stored: StoredSpec
  readonly spec: CheckSpec
}

/** The specs of these checks; without those that cannot be read. */
export async function readSpecs(db: Queryable, keys: readonly number[]): Promise<KnownSpec[]> {
  const rows = await db.queryColumns({
    name: 'read_specs',
    text: `select ${SPEC_HASH}, ${namesOf(SPEC)} from check_states where check_key = any($1::int8[])`,
    values: [int8Array(keys)],
  })
  return rows.flatMap((row) => {
    const stored = toStoredSpec(row, 1)
    const spec = toSpec(stored)
    return spec === null ? [] : [{ hash: row[0] as number, stored, spec }]
  })
}

/** A check to evaluate. */
export interface DueCheck extends LockedCheck {
  /** All Jobs that changed before are recorded. Null: pings report its runs. */
  readonly seenUntil: Instant | null
}

/** SQL: the keys of checks whose pings wait for their rows, on a disk or in this process. */
const AWAITED = `array(select unnest(${LOCKED_CHECKS}) union all select key from checks where public_id = any($3::uuid[]))`

/**
 * Locks and reads checks whose time of the next evaluation has come, oldest first, without those that another replica
 * has locked: up to `limit` that pings report, and up to `limit` that Jobs report. None while the service beat is older
 * than `freshMs` (design, section 4, "Own downtime"), or while pings wait in a spool; where a ping waits for its row
 * alone, only its check waits. A check that follows a source waits until its area's Jobs are seen up to that time.
 * `awaited`: the public ids of checks whose pings wait in this process for their rows. `now`: 0 without any check.
 */
export async function lockDueStates(
  tx: Queryable,
  limit: number,
  freshMs: number,
  awaited: readonly string[] = [],
): Promise<{ now: Instant; checks: DueCheck[] }> {
  const rows = await tx.queryColumns({
    name: 'lock_due_states',
    // Each part reads an index of its own. The limits stand inside, so that neither part keeps the other waiting.
    text: `with beating as (select from service_beat where beat_at > now() - $2 * interval '1 millisecond' and ${NOTHING_SPOOLED}),
      pinged as (select ${COLUMNS}, now() as read_at, null::timestamptz as seen_at from check_states
        where job_area is null and wake_at <= now() and exists (select from beating) and check_key <> all(${AWAITED})
        order by wake_at limit $1 for no key update skip locked),
      followed as (select due.*, now() as read_at, a.seen_at from seen_areas a cross join lateral (
          select ${COLUMNS} from check_states
          where job_area = a.area and wake_at <= least(now(), a.seen_at) and check_key <> all(a.held)
            and exists (select from beating) and check_key <> all(${AWAITED})
          order by wake_at limit $1 for no key update skip locked) due
        order by due.wake_at limit $1)
      select * from pinged union all select * from followed`,
    values: [limit, freshMs, uuidArray(awaited)],
  })
  const checks = rows.map((row) => {
    const seenAt = row[SEEN_AT] as Instant | null
    return { ...toLockedCheck(row), seenUntil: seenAt === null ? null : Math.floor(seenAt) }
  })
  return { now: Math.floor((rows[0]?.[NOW_AT] as Instant | undefined) ?? 0), checks }
}

const isInstant = (column: { type: string }) => column.type === 'timestamptz'
/** Where the row has instants. */
const INSTANTS_AT = [...Object.values(SPEC), ...Object.values(STATE), ...Object.values(TIMING)].flatMap(
  (column, index) => (isInstant(column) ? [SPEC_AT + index] : []),
)

function toLockedCheck(row: unknown[]): LockedCheck {
  const stored = toStoredSpec(row, SPEC_AT)
  return {
    key: row[0] as number,
    specHash: row[HASH_AT] as number,
    stored,
    spec: INSTANTS_AT.some((at) => Number.isNaN(row[at])) ? null : toSpec(stored),
    state: toState(row, STATE_AT),
    stampedAt: row[TIMING_AT] as Instant,
    wakeAt: row[TIMING_AT + 1] as Instant | null,
  }
}

function toSpec(stored: StoredSpec): CheckSpec | null {
  const { periodSeconds, schedule } = stored
  const ofCron = () => (schedule === null ? NEVER : toCronSchedule(stored))
  const when = periodSeconds === null ? ofCron() : ({ kind: 'period', periodMs: periodSeconds * 1_000 } as const)
  return when === null ? null : withSchedule(stored, when)
}

/** Parsed expressions by "dialect zone expression": many checks share a few, and otherwise each ping would parse its own again. */
const parsed = new Map<string, Schedule | null>()
const PARSED_LIMIT = 10_000

function toCronSchedule(stored: StoredSpec): Schedule | null {
  const { schedule: expression, timeZone, dialect } = stored
  const cacheKey = `${dialect} ${timeZone} ${expression}`
  let schedule = parsed.get(cacheKey)
  if (schedule === undefined) {
    try {
      schedule = { kind: 'cron', cron: parseCron(expression!, timeZone!, dialect ?? 'kubernetes') }
    } catch {
      schedule = null
    }
    if (parsed.size >= PARSED_LIMIT) parsed.clear()
    parsed.set(cacheKey, schedule)
  }
  return schedule
}

/**
 * The pings of these runs that are stored already, as `runPingKey` writes them. Read under the lock, so that none is
 * added meanwhile.
 */
export async function findRunPings(
  tx: Queryable,
  runs: readonly { key: number; runId: string }[],
): Promise<Set<string>> {
  const rows = await tx.queryColumns({
    name: 'find_run_pings',
    text: `select p.check_key, p.run_id, p.type from unnest($1::int8[], $2::uuid[]) i (key, run_id)
      join pings p on p.check_key = i.key and p.run_id = i.run_id`,
    values: [int8Array(runs.map(({ key }) => key)), uuidArray(runs.map(({ runId }) => runId))],
  })
  return new Set(
    rows.map(([key, runId, type]) => runPingKey(key as number, runId as string, PING_TYPES[type as number]!)),
  )
}

export function runPingKey(key: number, runId: string, type: PingType): string {
  return `${key}:${runId}:${type}`
}

/** Moves the next evaluation of checks that cannot be evaluated, so that they do not stop the others. */
export async function postponeWake(tx: Queryable, keys: readonly number[], until: Instant): Promise<void> {
  const values = [keys, timestamp(until)]
  await tx.query(`update check_states set wake_at = $2::timestamptz where check_key = any($1::int8[])`, values)
}

/** How far behind the evaluator is, in seconds; 0 when nothing is overdue. A check that follows a source is not overdue while its Jobs are not seen. */
export async function oldestOverdueSeconds(tx: Queryable): Promise<number> {
  const { rows } = await tx.query<{ seconds: number }>(
    `select greatest(0, extract(epoch from max(late)))::float8 as seconds from (
        select now() - min(wake_at) as late from check_states where job_area is null and wake_at is not null
        union all
        select least(now(), a.seen_at) - (select min(s.wake_at) from check_states s where s.job_area = a.area and s.wake_at is not null and s.check_key <> all(a.held))
        from seen_areas a) due`,
  )
  return rows[0]?.seconds ?? 0
}

/** How many checks have each status, at the database's time. */
export async function countByStatus(tx: Queryable): Promise<Record<ShownStatus, number>> {
  const { rows } = await tx.query<{ status: ShownStatus; count: number }>(
    `select ${shownStatusSql('now()')} as status, count(*) from check_states s group by 1`,
  )
  const counts = { new: 0, up: 0, late: 0, down: 0, paused: 0 }
  for (const { status, count } of rows) counts[status] = count
  return counts
}
