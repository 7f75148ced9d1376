/** What the state machine decided, saved by one statement a table, in one round trip. Hot: rows are binary arrays. */

import type { CheckState, Instant, PingSource, PingType } from '../../domain/check.ts'
import { insertFlips, type NewFlip } from '../history/new-flips.ts'
import { insertEvents, type NewEvent } from '../outbox/events.ts'
import {
  boolArray,
  byteaArray,
  instantArray,
  int2Array,
  int4Array,
  int8Array,
  jsonbArray,
  textArray,
  uuidArray,
} from '../postgres/binary-arrays.ts'
import type { Queryable, Statement } from '../postgres/database.ts'
import { inOrder } from '../postgres/in-order.ts'
import { orNull, pingSourceCode, pingTypeCode, statusCode } from './columns.ts'

export type { NewFlip } from '../history/new-flips.ts'

export interface ChangedState {
  readonly key: number
  readonly state: CheckState
  readonly stampedAt: Instant
  readonly wakeAt: Instant | null
}

export interface NewPing {
  readonly id: Buffer
  readonly key: number
  readonly type: PingType
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  /** Whether the client sent more text than `body`. Absent: no. */
  readonly isBodyTruncated?: boolean | undefined
  /** Absent: http. */
  readonly source?: PingSource | undefined
  readonly at: Instant
}

/** Whether the ping has a row in `ping_bodies`. Its body may be null there. */
const hasText = (ping: NewPing) => ping.body !== null || ping.isBodyTruncated === true

export interface ChangeSet {
  readonly states: readonly ChangedState[]
  readonly pings: readonly NewPing[]
  readonly flips: readonly NewFlip[]
  readonly events: readonly NewEvent[]
}

/**
 * Issues all statements without waiting for one; on a pipelined connection that is one round trip. Their order matters: PostgreSQL runs
 * them in the order of issue, and `insertEvents` reads the pings and bodies that the statements before it inserted.
 */
export async function saveChanges(tx: Queryable, { states, pings, flips, events }: ChangeSet): Promise<void> {
  // All are built before one is issued: what cannot be encoded must not leave half of the group in the transaction.
  const statements: Statement[] = []
  if (states.length > 0) statements.push(saveStates(states))
  if (pings.length > 0) statements.push(insertPings(pings))
  const withBody = pings.filter(hasText)
  if (withBody.length > 0) statements.push(insertBodies(withBody))
  if (flips.length > 0) statements.push(insertFlips(flips))
  if (events.length > 0) statements.push(insertEvents(events))
  await inOrder(statements.map((statement) => tx.queryColumns(statement)))
}

function saveStates(changed: readonly ChangedState[]): Statement {
  const states = changed.map(({ state }) => state)
  return {
    name: 'save_states',
    // A wake_at that stays as it is leaves its index alone: the update is HOT all the same. In a select list arrays advance together.
    text: `update check_states s set stamped_at = i.stamped_at, wake_at = i.wake_at, status = i.status, since = i.since,
        reason = i.reason, last_ping_at = i.last_ping_at, last_success_at = i.last_success_at,
        last_duration_ms = i.last_duration_ms, last_start_at = i.last_start_at, pings_total = i.pings_total,
        incident_since = i.incident_since, expected_at = i.expected_at, due_at = i.due_at, runs = i.runs,
        changes = i.changes, notified = i.notified, quiet_at = i.quiet_at
      from (select unnest($1::int8[]) as key, unnest($2::timestamptz[]) as stamped_at, unnest($3::timestamptz[]) as wake_at,
        unnest($4::int2[]) as status, unnest($5::timestamptz[]) as since, unnest($6::text[]) as reason,
        unnest($7::timestamptz[]) as last_ping_at, unnest($8::timestamptz[]) as last_success_at,
        unnest($9::int4[]) as last_duration_ms, unnest($10::timestamptz[]) as last_start_at,
        unnest($11::int8[]) as pings_total, unnest($12::timestamptz[]) as incident_since,
        unnest($13::timestamptz[]) as expected_at, unnest($14::timestamptz[]) as due_at, unnest($15::jsonb[]) as runs,
        unnest($16::jsonb[]) as changes, unnest($17::int2[]) as notified, unnest($18::timestamptz[]) as quiet_at) i
      where s.check_key = i.key`,
    values: [
      int8Array(changed.map(({ key }) => key)),
      instantArray(changed.map(({ stampedAt }) => stampedAt)),
      instantArray(changed.map(({ wakeAt }) => wakeAt)),
      int2Array(states.map(({ status }) => statusCode(status))),
      instantArray(states.map(({ since }) => since)),
      textArray(states.map(({ reason }) => reason)),
      instantArray(states.map(({ lastPingAt }) => lastPingAt)),
      instantArray(states.map(({ lastSuccessAt }) => lastSuccessAt)),
      int4Array(states.map(({ lastDurationMs }) => lastDurationMs)),
      instantArray(states.map(({ lastStartAt }) => lastStartAt)),
      int8Array(states.map(({ pingsTotal }) => pingsTotal)),
      instantArray(states.map(({ incidentSince }) => incidentSince)),
      instantArray(states.map(({ expectedAt }) => expectedAt)),
      instantArray(states.map(({ dueAt }) => dueAt)),
      jsonbArray(states.map(({ runs }) => orNull(runs))),
      jsonbArray(states.map(({ changes }) => orNull(changes))),
      int2Array(states.map(({ notified }) => (notified === null ? null : statusCode(notified)))),
      instantArray(states.map(({ quietAt }) => quietAt)),
    ],
  }
}

function insertPings(pings: readonly NewPing[]): Statement {
  return {
    name: 'insert_pings',
    text: `insert into pings (id, check_key, type, exit_code, duration_ms, run_id, source, created_at)
      select unnest($1::uuid[]), unnest($2::int8[]), unnest($3::int2[]), unnest($4::int2[]), unnest($5::int4[]),
        unnest($6::uuid[]), unnest($7::int2[]), unnest($8::timestamptz[])`,
    values: [
      uuidArray(pings.map(({ id }) => id)),
      int8Array(pings.map(({ key }) => key)),
      int2Array(pings.map(({ type }) => pingTypeCode(type))),
      int2Array(pings.map(({ exitCode }) => exitCode)),
      int4Array(pings.map(({ durationMs }) => durationMs)),
      uuidArray(pings.map(({ runId }) => runId)),
      int2Array(pings.map(({ source }) => pingSourceCode(source ?? 'http'))),
      instantArray(pings.map(({ at }) => at)),
    ],
  }
}

function insertBodies(pings: readonly NewPing[]): Statement {
  return {
    name: 'insert_bodies',
    text: `insert into ping_bodies (check_key, ping_id, body, is_truncated)
      select unnest($1::int8[]), unnest($2::uuid[]), unnest($3::bytea[]), unnest($4::bool[])`,
    values: [
      int8Array(pings.map(({ key }) => key)),
      uuidArray(pings.map(({ id }) => id)),
      byteaArray(pings.map(({ body }) => body)),
      boolArray(pings.map(({ isBodyTruncated }) => isBodyTruncated === true)),
    ],
  }
}
