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
import type { Queryable } from '../postgres/database.ts'
import { inOrder } from '../postgres/in-order.ts'
import { type Column, columnOf, fieldsOf } from './column-lists.ts'
import { pingSourceCode, pingTypeCode, STATE } from './columns.ts'

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
  const statements: Parameters<Queryable['queryColumns']>[0][] = []
  if (states.length > 0) statements.push(saveStates(states))
  if (pings.length > 0) statements.push(insertPings(pings))
  const withBody = pings.filter(hasText)
  if (withBody.length > 0) statements.push(insertBodies(withBody))
  if (flips.length > 0) statements.push(insertFlips(flips))
  if (events.length > 0) statements.push(insertEvents(events))
  await inOrder(statements.map((statement) => tx.queryColumns(statement)))
}

/** A column of the rows of a statement, whose values travel as one array. */
type ArrayColumn<Row> = readonly [name: string, type: string, toArray: (rows: readonly Row[]) => Buffer]

type StateType = (typeof STATE)[keyof CheckState]['type']
const ARRAYS = {
  int2: int2Array,
  int4: int4Array,
  int8: int8Array,
  jsonb: jsonbArray,
  text: textArray,
  timestamptz: instantArray,
} as const satisfies Record<StateType, (values: never) => Buffer>

function toArrayColumn<Field extends keyof CheckState>(field: Field): ArrayColumn<ChangedState> {
  const { type, encode } = STATE[field] as Column<CheckState[Field]>
  const toArray = ARRAYS[type as StateType] as (values: unknown[]) => Buffer
  const toStored =
    encode === undefined ? ({ state }: ChangedState) => state[field] : ({ state }: ChangedState) => encode(state[field])
  return [columnOf(field), type, (rows) => toArray(rows.map(toStored))]
}

const STATE_COLUMNS: readonly ArrayColumn<ChangedState>[] = [
  ...fieldsOf(STATE).map(toArrayColumn),
  ['stamped_at', 'timestamptz', (rows) => instantArray(rows.map((row) => row.stampedAt))],
]
const KEY_AND_WAKE: readonly ArrayColumn<ChangedState>[] = [
  ['key', 'int8', (rows) => int8Array(rows.map((row) => row.key))],
  ['wake_at', 'timestamptz', (rows) => instantArray(rows.map((row) => row.wakeAt))],
]
const PING_COLUMNS: readonly ArrayColumn<NewPing>[] = [
  ['id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.id))],
  ['check_key', 'int8', (rows) => int8Array(rows.map((ping) => ping.key))],
  ['type', 'int2', (rows) => int2Array(rows.map((ping) => pingTypeCode(ping.type)))],
  ['exit_code', 'int2', (rows) => int2Array(rows.map((ping) => ping.exitCode))],
  ['duration_ms', 'int4', (rows) => int4Array(rows.map((ping) => ping.durationMs))],
  ['run_id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.runId))],
  ['source', 'int2', (rows) => int2Array(rows.map((ping) => pingSourceCode(ping.source ?? 'http')))],
  ['created_at', 'timestamptz', (rows) => instantArray(rows.map((ping) => ping.at))],
]
const BODY_COLUMNS: readonly ArrayColumn<NewPing>[] = [
  ['check_key', 'int8', (rows) => int8Array(rows.map((ping) => ping.key))],
  ['ping_id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.id))],
  ['body', 'bytea', (rows) => byteaArray(rows.map((ping) => ping.body))],
  ['is_truncated', 'bool', (rows) => boolArray(rows.map((ping) => ping.isBodyTruncated === true))],
]

/** A subquery of the rows. In a select list the arrays advance together. */
function rowsOf(columns: readonly ArrayColumn<never>[]): string {
  const arrays = columns.map(([name, type], index) => `unnest($${1 + index}::${type}[]) as ${name}`)
  return `(select ${arrays.join(', ')}) i`
}

const namesOf = (columns: readonly ArrayColumn<never>[]) => columns.map(([name]) => name).join(', ')

function arraysOf<Row>(columns: readonly ArrayColumn<Row>[], rows: readonly Row[]): Buffer[] {
  return columns.map(([, , toArray]) => toArray(rows))
}

const SAVED_COLUMNS = [...KEY_AND_WAKE, ...STATE_COLUMNS]
/** A wake_at that stays as it is leaves its index alone: the update is HOT all the same. */
const SAVE_STATES = `update check_states s set ${STATE_COLUMNS.map(([name]) => `${name} = i.${name}`).join(', ')},
    wake_at = i.wake_at
  from ${rowsOf(SAVED_COLUMNS)} where s.check_key = i.key`

function saveStates(states: readonly ChangedState[]) {
  return { name: 'save_states', text: SAVE_STATES, values: arraysOf(SAVED_COLUMNS, states) }
}

const insertInto = (table: string, columns: readonly ArrayColumn<never>[]) =>
  `insert into ${table} (${namesOf(columns)}) select * from ${rowsOf(columns)}`
const INSERT_PINGS = insertInto('pings', PING_COLUMNS)
const INSERT_BODIES = insertInto('ping_bodies', BODY_COLUMNS)

function insertPings(pings: readonly NewPing[]) {
  return { name: 'insert_pings', text: INSERT_PINGS, values: arraysOf(PING_COLUMNS, pings) }
}

function insertBodies(pings: readonly NewPing[]) {
  return { name: 'insert_bodies', text: INSERT_BODIES, values: arraysOf(BODY_COLUMNS, pings) }
}
