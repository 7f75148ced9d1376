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
  xidArray,
} from '../postgres/binary-arrays.ts'
import type { Queryable } from '../postgres/database.ts'
import { inOrder } from '../postgres/in-order.ts'
import { type Column, columnOf, fieldsOf } from './column-lists.ts'
import { pingSourceCode, pingTypeCode, STATE, settersOfWake } from './columns.ts'

export type { NewFlip } from '../history/new-flips.ts'

/** The transaction that wrote a row last: PostgreSQL's `xmin`. */
export type RowVersion = number

export interface ChangedState {
  readonly key: number
  readonly state: CheckState
  /** The state that the row has, so that what is as it was need not be written. */
  readonly was: CheckState
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
 * them in the order of issue, and `insertEvents` reads the pings and bodies that the statements before it inserted. Returns the
 * version that the rows have once the transaction has committed, null without any state.
 */
export async function saveChanges(
  tx: Queryable,
  { states, pings, flips, events }: ChangeSet,
): Promise<RowVersion | null> {
  // All are built before one is issued: what cannot be encoded must not leave half of the group in the transaction.
  const statements: Parameters<Queryable['queryColumns']>[0][] = []
  const woken = states.filter((changed) => changed.wakeAt !== undefined)
  const areAllWoken = woken.length === states.length
  if (states.length > 0) statements.push(saveStates(states, pings, areAllWoken))
  if (woken.length > 0 && !areAllWoken) statements.push(saveWakeTimes(woken))
  const withBody = pings.filter(hasText)
  if (withBody.length > 0) statements.push(insertBodies(withBody))
  if (flips.length > 0) statements.push(insertFlips(flips))
  if (events.length > 0) statements.push(insertEvents(events))
  const [rows] = await inOrder(statements.map((statement) => tx.queryColumns(statement)))
  return states.length === 0 ? null : Number(rows![0]![0])
}

/** What a row must still be for `saveUnlocked` to write it. */
export interface ExpectedRow {
  readonly version: RowVersion
  /** Besides the version: a standby that takes over counts transactions on from an earlier one. */
  readonly stampedAt: Instant
}

/**
 * Saves states and pings in one statement, a transaction by itself, without a lock before it. Only rows that are as `expected`, one
 * for each state, are written. `stale`: the keys of the checks that were not saved, as their rows have changed or are gone. Flips
 * and events are not saved. Rows are locked in the order of `states`, which is that of the keys, as in `lockStates`.
 */
export async function saveUnlocked(
  db: Queryable,
  { states, pings }: Pick<ChangeSet, 'states' | 'pings'>,
  expected: readonly ExpectedRow[],
): Promise<{ version: RowVersion; stale: ReadonlySet<number> }> {
  const withBody = pings.filter(hasText)
  const [row] = await db.queryColumns(saveExpected(states, pings, withBody, expected))
  const [version, count, saved] = row as [string, number, string[] | null]
  const stale = new Set<number>()
  if (count < states.length) {
    for (const { key } of states) stale.add(key)
    for (const key of saved!) stale.delete(Number(key))
  }
  return { version: Number(version), stale }
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

/** The columns that a group of plain completions mostly leaves as they are, and how to see that it does. */
const RARE = fieldsOf(STATE).flatMap((field) => {
  const { isUnchanged }: Column<never> = STATE[field]
  return isUnchanged === undefined
    ? []
    : [{ field, isUnchanged: isUnchanged as (value: unknown, was: unknown) => boolean }]
})
const RARE_FIELDS = new Set<string>(RARE.map(({ field }) => field))

const STATE_KEY: ArrayColumn<ChangedState> = ['key', 'int8', (rows) => int8Array(rows.map((row) => row.key))]
const WAKE_COLUMN: ArrayColumn<ChangedState> = [
  'wake_at',
  'timestamptz',
  (rows) => instantArray(rows.map((row) => row.wakeAt ?? null)),
]
const RARE_STATE_COLUMNS = RARE.map(({ field }) => toArrayColumn(field))
const STATE_COLUMNS: readonly ArrayColumn<ChangedState>[] = [
  ...fieldsOf(STATE)
    .filter((field) => !RARE_FIELDS.has(field))
    .map(toArrayColumn),
  ['stamped_at', 'timestamptz', (rows) => instantArray(rows.map((row) => row.stampedAt))],
]
const EXPECTED_COLUMNS: readonly ArrayColumn<ExpectedRow>[] = [
  ['version', 'xid', (rows) => xidArray(rows.map((row) => row.version))],
  ['was_stamped_at', 'timestamptz', (rows) => instantArray(rows.map((row) => row.stampedAt))],
]
const PING_COLUMNS: readonly ArrayColumn<NewPing>[] = [
  ['id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.id))],
  ['check_key', 'int8', (rows) => int8Array(rows.map((ping) => ping.key))],
  ['type', 'int2', (rows) => int2Array(rows.map((ping) => pingTypeCode(ping.type)))],
  ['exit_code', 'int2', (rows) => int2Array(rows.map((ping) => ping.exitCode))],
  ['created_at', 'timestamptz', (rows) => instantArray(rows.map((ping) => ping.at))],
]
const RARE_PING_COLUMNS: readonly ArrayColumn<NewPing>[] = [
  ['duration_ms', 'int4', (rows) => int4Array(rows.map((ping) => ping.durationMs))],
  ['run_id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.runId))],
  ['source', 'int2', (rows) => int2Array(rows.map((ping) => pingSourceCode(ping.source ?? 'http')))],
]
const BODY_COLUMNS: readonly ArrayColumn<NewPing>[] = [
  ['check_key', 'int8', (rows) => int8Array(rows.map((ping) => ping.key))],
  ['ping_id', 'uuid', (rows) => uuidArray(rows.map((ping) => ping.id))],
  ['body', 'bytea', (rows) => byteaArray(rows.map((ping) => ping.body))],
  ['is_truncated', 'bool', (rows) => boolArray(rows.map((ping) => ping.isBodyTruncated === true))],
]

/** A subquery of the rows; the first array is parameter `first`. In a select list the arrays advance together. */
function rowsOf(columns: readonly ArrayColumn<never>[], first: number): string {
  const arrays = columns.map(([name, type], index) => `unnest($${first + index}::${type}[]) as ${name}`)
  return `(select ${arrays.join(', ')}) i`
}

const namesOf = (columns: readonly ArrayColumn<never>[]) => columns.map(([name]) => name).join(', ')
const settersOf = (columns: readonly ArrayColumn<never>[]) => columns.map(([name]) => `${name} = i.${name}`).join(', ')

function arraysOf<Row>(columns: readonly ArrayColumn<Row>[], rows: readonly Row[]): Buffer[] {
  return columns.map(([, , toArray]) => toArray(rows))
}

const HTTP = pingSourceCode('http')
const ALL_STATE_COLUMNS = [STATE_KEY, ...STATE_COLUMNS, ...RARE_STATE_COLUMNS]
const ALL_PING_COLUMNS = [...PING_COLUMNS, ...RARE_PING_COLUMNS]

/** Inserts pings. Without the column of their source they came over HTTP. */
function insertPings(columns: readonly ArrayColumn<NewPing>[], first: number, condition = ''): string {
  const hasSource = columns.includes(RARE_PING_COLUMNS.at(-1)!)
  return `insert into pings (${namesOf(columns)}${hasSource ? '' : ', source'})
    select i.*${hasSource ? '' : `, ${HTTP}`} from ${rowsOf(columns, first)}${condition}`
}

/** `isBrief`: without the columns that rarely change. `isWoken`: with the time of the next evaluation. */
function lockedStatement(name: string, { isBrief = false, isWoken = false }) {
  const stateColumns = isBrief ? [STATE_KEY, ...STATE_COLUMNS] : ALL_STATE_COLUMNS
  const pingColumns = isBrief ? PING_COLUMNS : ALL_PING_COLUMNS
  const wakeColumns = isWoken ? [WAKE_COLUMN] : []
  const setters = [settersOf(stateColumns.slice(1)), ...(isWoken ? [settersOfWake('i.wake_at', 's.job_area')] : [])]
  const text = `with saved as (
    update check_states s set ${setters.join(', ')}
    from ${rowsOf([...stateColumns, ...wakeColumns], 1)}
    where s.check_key = i.key),
  added as (
    ${insertPings(pingColumns, 1 + stateColumns.length + wakeColumns.length)})
  select pg_current_xact_id()::xid`
  return { name, text, stateColumns: [...stateColumns, ...wakeColumns], pingColumns }
}

const LOCKED_STATEMENTS = {
  brief: lockedStatement('save_states_brief', { isBrief: true }),
  full: lockedStatement('save_states', {}),
  woken: lockedStatement('save_states_woken', { isWoken: true }),
}

/** One statement also for the times of the next evaluations, where all have one: a second one would write each row and its index entries again. */
function saveStates(states: readonly ChangedState[], pings: readonly NewPing[], areAllWoken: boolean) {
  const kind = areAllWoken ? 'woken' : isBrief(states, pings) ? 'brief' : 'full'
  const { name, text, stateColumns, pingColumns } = LOCKED_STATEMENTS[kind]
  return { name, text, values: [...arraysOf(stateColumns, states), ...arraysOf(pingColumns, pings)] }
}

/** The statement of `saveUnlocked`. */
function expectedStatement(name: string, isBrief: boolean, hasBodies: boolean) {
  const stateColumns = isBrief ? STATE_COLUMNS : [...STATE_COLUMNS, ...RARE_STATE_COLUMNS]
  const pingColumns = isBrief ? PING_COLUMNS : ALL_PING_COLUMNS
  const firstPing = 1 + 1 + stateColumns.length + EXPECTED_COLUMNS.length
  // `is true` keeps the planner from a join of two lists of unknown lengths, which may be a nested loop.
  const isSaved = '(i.check_key in (select check_key from saved)) is true'
  const addedBodies = `,
  added_bodies as (
    insert into ping_bodies (${namesOf(BODY_COLUMNS)})
    select i.* from ${rowsOf(BODY_COLUMNS, firstPing + pingColumns.length)} where ${isSaved})`
  const text = `with saved as (
    update check_states s set ${settersOf(stateColumns)}
    from ${rowsOf([STATE_KEY, ...stateColumns, ...EXPECTED_COLUMNS], 1)}
    where s.check_key = i.key and s.xmin = i.version and s.stamped_at = i.was_stamped_at
    returning s.check_key),
  added as (
    ${insertPings(pingColumns, firstPing, ` where ${isSaved}`)})${hasBodies ? addedBodies : ''},
  counted as (select count(*)::int4 as count from saved)
  select pg_current_xact_id()::xid, count,
    case when count < cardinality($1::int8[]) then array(select check_key from saved) end
  from counted`
  return { name, text, stateColumns, pingColumns }
}

const EXPECTED_STATEMENTS = {
  brief: {
    alone: expectedStatement('save_expected_brief', true, false),
    withBodies: expectedStatement('save_expected_brief_with_bodies', true, true),
  },
  full: {
    alone: expectedStatement('save_expected', false, false),
    withBodies: expectedStatement('save_expected_with_bodies', false, true),
  },
}

function saveExpected(
  states: readonly ChangedState[],
  pings: readonly NewPing[],
  withBody: readonly NewPing[],
  expected: readonly ExpectedRow[],
) {
  const { name, text, stateColumns, pingColumns } =
    EXPECTED_STATEMENTS[isBrief(states, pings) ? 'brief' : 'full'][withBody.length > 0 ? 'withBodies' : 'alone']
  return {
    name,
    text,
    values: [
      ...arraysOf([STATE_KEY, ...stateColumns], states),
      ...arraysOf(EXPECTED_COLUMNS, expected),
      ...arraysOf(pingColumns, pings),
      ...(withBody.length > 0 ? arraysOf(BODY_COLUMNS, withBody) : []),
    ],
  }
}

/** Whether all pings are plain completions, so that the columns that rarely change stay as they are: each costs time here and in the database. */
function isBrief(states: readonly ChangedState[], pings: readonly NewPing[]) {
  return (
    pings.every(
      ({ durationMs, runId, source = 'http' }) => durationMs === null && runId === null && source === 'http',
    ) && states.every(({ state, was }) => isSameButForTimes(state, was))
  )
}

function isSameButForTimes(state: CheckState, was: CheckState): boolean {
  return RARE.every(({ field, isUnchanged }) => isUnchanged(state[field], was[field]))
}

/** A statement of its own, as this update changes an index (it is not HOT) and most states of a group do not need it. */
function saveWakeTimes(states: readonly ChangedState[]) {
  return {
    name: 'save_wake_times',
    text: `update check_states s set ${settersOfWake('i.wake_at', 's.job_area')} from unnest($1::int8[], $2::timestamptz[]) i (key, wake_at) where s.check_key = i.key`,
    values: [
      int8Array(states.map((changed) => changed.key)),
      instantArray(states.map((changed) => changed.wakeAt ?? null)),
    ],
  }
}

function insertBodies(pings: readonly NewPing[]) {
  return {
    name: 'insert_bodies',
    text: `insert into ping_bodies (${namesOf(BODY_COLUMNS)}) select * from ${rowsOf(BODY_COLUMNS, 1)}`,
    values: arraysOf(BODY_COLUMNS, pings),
  }
}
