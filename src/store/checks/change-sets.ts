/** What the state machine decided, saved by one statement a table, in one round trip. Hot: rows are binary arrays. */

import type { CheckState, Instant, PingSource, PingType } from '../../domain/check.ts'
import { insertFlips, type NewFlip } from '../history/new-flips.ts'
import { insertEvents, type NewEvent } from '../outbox/events.ts'
import type { Queryable, Statement } from '../postgres/database.ts'
import { inOrder } from '../postgres/in-order.ts'
import { wakeDependents } from './circumstances.ts'
import { arraysOf, type Columns, namesOf, unnestOf } from './column-lists.ts'
import { type CheckTiming, pingSourceCode, pingTypeCode, STATE, TIMING } from './columns.ts'

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

export interface ChangeSet {
  readonly states: readonly ChangedState[]
  readonly pings: readonly NewPing[]
  readonly flips: readonly NewFlip[]
  readonly events: readonly NewEvent[]
}

type SavedState = CheckState & CheckTiming & Pick<ChangedState, 'key'>
type SavedPing = Omit<NewPing, 'body' | 'isBodyTruncated'>
type SavedBody = Pick<NewPing, 'key' | 'id' | 'body' | 'isBodyTruncated'>

const CHANGED = { ...TIMING, ...STATE }
const STATE_ROW = { key: { type: 'int8' }, ...CHANGED } as const satisfies Columns<SavedState>
const PING_ROW = {
  id: { type: 'uuid' },
  key: { type: 'int8' },
  type: { type: 'int2', encode: pingTypeCode },
  exitCode: { type: 'int2' },
  durationMs: { type: 'int4' },
  runId: { type: 'uuid' },
  source: { type: 'int2', encode: (source) => pingSourceCode(source ?? 'http') },
  at: { type: 'timestamptz' },
} as const satisfies Columns<SavedPing>
const BODY_ROW = {
  key: { type: 'int8' },
  id: { type: 'uuid' },
  body: { type: 'bytea' },
  isBodyTruncated: { type: 'bool', encode: (isTruncated) => isTruncated === true },
} as const satisfies Columns<SavedBody>

// A wake_at that stays as it is leaves its index alone: the update is HOT all the same.
const SAVE_STATES = `update check_states s set (${namesOf(CHANGED)}) = (${namesOf(CHANGED, 'i')})
  from (select ${unnestOf(STATE_ROW)}) i where s.check_key = i.key`
const INSERT_PINGS = `insert into pings (id, check_key, type, exit_code, duration_ms, run_id, source, created_at)
  select ${unnestOf(PING_ROW)}`
const INSERT_BODIES = `insert into ping_bodies (check_key, ping_id, body, is_truncated) select ${unnestOf(BODY_ROW)}`

/**
 * Issues all statements without waiting for one; on a pipelined connection that is one round trip. Their order matters: PostgreSQL runs
 * them in the order of issue, and `insertEvents` reads the pings and bodies that the statements before it inserted.
 */
export async function saveChanges(tx: Queryable, { states, pings, flips, events }: ChangeSet): Promise<void> {
  // All are built before one is issued: what cannot be encoded must not leave half of the group in the transaction.
  const statements: Statement[] = []
  if (states.length > 0) {
    const rows = states.map(({ state, ...row }) => ({ ...row, ...state }))
    statements.push({ name: 'save_states', text: SAVE_STATES, values: arraysOf<SavedState>(STATE_ROW, rows) })
  }
  if (pings.length > 0)
    statements.push({ name: 'insert_pings', text: INSERT_PINGS, values: arraysOf<SavedPing>(PING_ROW, pings) })
  const bodies = pings.filter(({ body, isBodyTruncated }) => body !== null || isBodyTruncated === true)
  if (bodies.length > 0)
    statements.push({ name: 'insert_bodies', text: INSERT_BODIES, values: arraysOf<SavedBody>(BODY_ROW, bodies) })
  if (flips.length > 0) statements.push(insertFlips(flips))
  if (events.length > 0) statements.push(insertEvents(events))
  const recovered = flips.filter(({ from, to }) => from === 'down' && to !== 'down')
  if (recovered.length > 0)
    statements.push(
      wakeDependents(
        recovered.map(({ key }) => key),
        recovered[0]!.detectedAt,
      ),
    )
  await inOrder(statements.map((statement) => tx.queryColumns(statement)))
}
