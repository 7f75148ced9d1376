/**
 * The common ping in one statement, a transaction by itself: a success without a run id, of a check that is up, does
 * not flap and has no run open. What the statement relies on is its condition: other rows are left as they are. It
 * repeats `complete` (domain/transition.ts) for this case; test/db/pings/plain.test.ts shows that both agree.
 */

import type { CheckState, Instant } from '../../domain/check.ts'
import type { Queryable } from '../postgres/database.ts'
import { arraysOf, type Columns, unnestOf } from './column-lists.ts'
import { pingSourceCode, pingTypeCode, SPEC_HASH, type StoredSpec, statusCode, TIMED } from './columns.ts'

/** Of a spec the fields from which the times follow. */
export interface PlainPing
  extends Pick<StoredSpec, 'periodSeconds' | 'schedule' | 'timeZone' | 'dialect' | 'graceSeconds'> {
  readonly key: number
  /** To the microsecond. */
  readonly at: Instant
  readonly expectedAt: Instant
  readonly dueAt: Instant
  readonly id: Buffer
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly body: Buffer | null
  readonly isBodyTruncated: boolean
}

const { maxRuntimeSeconds: _limit, jobArea: _area, ...TIMES_FROM } = TIMED
const ROW = {
  key: { type: 'int8' },
  at: { type: 'timestamptz' },
  expectedAt: { type: 'timestamptz' },
  dueAt: { type: 'timestamptz' },
  id: { type: 'uuid' },
  exitCode: { type: 'int2' },
  durationMs: { type: 'int4' },
  body: { type: 'bytea' },
  isBodyTruncated: { type: 'bool' },
  ...TIMES_FROM,
} as const satisfies Columns<PlainPing>

/** Over a row `s` of check_states. */
const IS_PLAIN = `s.status = ${statusCode('up')} and s.runs is null and s.changes is null and s.notified is null and s.quiet_at is null
  and s.consecutive_failures is null and s.consecutive_misses is null`

/** The same of a state in memory. */
export function isPlain(state: CheckState): boolean {
  const { status, runs, changes, notified, quietAt, consecutiveFailures, consecutiveMisses } = state
  const isCounted = consecutiveFailures > 0 || consecutiveMisses > 0
  const isDamped = changes.length > 0 || notified !== null || quietAt !== null
  return status === 'up' && runs.length === 0 && !isDamped && !isCounted
}

export type KnownId = readonly [publicId: string, key: number, plainSpecHash: number]

/**
 * The public ids and keys of up to `limit` checks with greater keys, in the order of keys. `plainSpecHash`: the hash of
 * the spec of a check whose next success is likely to be plain, else 0.
 */
export async function readKnownIds(db: Queryable, afterKey: number, limit: number): Promise<KnownId[]> {
  const rows = await db.queryColumns({
    name: 'read_known_ids',
    text: `select c.public_id, c.key, coalesce((select ${SPEC_HASH} from check_states s
        where s.check_key = c.key and s.job_area is null and ${IS_PLAIN}), 0)
      from checks c where c.key > $1 order by c.key limit $2`,
    values: [afterKey, limit],
  })
  return rows as unknown[] as KnownId[]
}

/** Not the hash of the spec: a user can make a spec with the hash of a spec of others. */
const IS_SPEC = `s.job_area is null and (s.period_seconds, s.schedule, s.time_zone, s.dialect, s.grace_seconds)
        is not distinct from (g.period_seconds, g.schedule, g.time_zone, g.dialect, g.grace_seconds)`

/**
 * The deadline of a row may come later than `wake_at` says, and never earlier: then the evaluator would miss it.
 * `is true` keeps the planner from the index of `wake_at`, which it takes where its statistics are of a time without
 * deadlines: each ping would read the whole index.
 */
const TEXT = `with given as (select ${unnestOf(ROW)}),
  saved as (
    update check_states s set last_ping_at = date_trunc('milliseconds', g.at),
      last_outcome = ${pingTypeCode('success')}, warned_at = null,
      last_success_at = date_trunc('milliseconds', g.at), last_duration_ms = g.duration_ms,
      pings_total = s.pings_total + 1, expected_at = g.expected_at, due_at = g.due_at, stamped_at = g.at
    from given g where s.check_key = g.key and ${IS_PLAIN} and ${IS_SPEC}
      and s.stamped_at < g.at and (s.wake_at <= g.due_at) is true
    returning s.check_key),
  added as (
    insert into pings (id, check_key, type, exit_code, duration_ms, source, created_at)
    select id, key, ${pingTypeCode('success')}, exit_code, duration_ms, ${pingSourceCode('http')}, at
    from given where (key in (select check_key from saved)) is true),
  added_bodies as (
    insert into ping_bodies (check_key, ping_id, body, is_truncated)
    select key, id, body, is_body_truncated from given
    where (body is not null or is_body_truncated) and (key in (select check_key from saved)) is true)
  select check_key from saved`

/**
 * Stores at most one ping of each check, and returns the keys of the checks whose pings are stored. `pings`: in the
 * order of their keys, in which the rows are locked, as by `lockStates`.
 */
export async function savePlainPings(db: Queryable, pings: readonly PlainPing[]): Promise<ReadonlySet<number>> {
  const values = arraysOf<PlainPing>(ROW, pings)
  const rows = await db.queryColumns({ name: 'plain_pings', text: TEXT, values })
  return new Set(rows.map(([key]) => key as number))
}
