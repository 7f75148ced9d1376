/** A ping, and what became of it. */

import type { PingType } from '../../domain/check.ts'
import type { CheckEvent } from '../../domain/check-event.ts'
import { CommitUnknown } from '../../store/postgres/sqlstate.ts'
import type { Change, Decision } from '../change.ts'

export interface Ping {
  /** Lower case. */
  readonly publicId: string
  readonly type: PingType
  readonly exitCode: number | null
  /** The job's own measurement. */
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  /** Whether the client sent more text than `body`. Absent: no. */
  readonly isBodyTruncated?: boolean | undefined
  /** Arrival, by the database's clock. */
  readonly at: number
}

export type PingResult =
  | 'stored'
  /** Stored, but no run was opened: too many are open. */
  | 'run_refused'
  /** This run's ping of this type was stored before. */
  | 'duplicate'
  /** No check has this id. */
  | 'unknown'
  /** On disk here, and recorded when the database is available again. */
  | 'spooled'
  /** Not stored: while the database is unavailable nothing says whether a check has this id. The client should try again. */
  | 'unconfirmed'
  /** Not stored, as far as is known. The client should try again. */
  | 'unavailable'

/** Why a ping is not stored: it is spooled, or `unavailable`. */
export interface PingFailure {
  readonly kind: /** Another session has locked the check's row. */
    | 'locked elsewhere'
    /** This ping cannot be stored: its check is broken, or PostgreSQL rejects the row. */
    | 'rejected'
    /** PostgreSQL stores no pings now: its disk is full, it is read-only ... */
    | 'outage'
    /** The connection broke before this ping was sent to be stored: it may be sent again. */
    | 'unsent'
    /** The connection broke after that: the ping may be stored or not. */
    | 'lost'
  readonly error: unknown
  /** Of a `lost` one: the id that it has if it is stored. */
  readonly pingId?: Buffer | null
}

export type PingOutcome = Exclude<PingResult, 'spooled' | 'unconfirmed' | 'unavailable'> | PingFailure

/** A CommitUnknown that knows the ids of its pings. */
export class GroupUnknown extends CommitUnknown {
  /** In the order of the group. Null for a ping that is not written, undefined for a ping that was not sent. */
  readonly pingIds: readonly (Buffer | null | undefined)[]

  constructor(cause: unknown, pingIds: GroupUnknown['pingIds']) {
    super(cause)
    this.pingIds = pingIds
  }
}

/** The ids that the pings of a group have if they are stored, in its order. `decisions` and `written` are those of `decideChanges`. */
export function pingIdsOf(
  isDecided: readonly boolean[],
  decisions: readonly Decision[],
  written: readonly { readonly id: Buffer }[],
): (Buffer | null)[] {
  const remaining = decisions.values()
  const ids = written.values()
  return isDecided.map((isOne) => (isOne && remaining.next().value!.kind === 'applied' ? ids.next().value!.id : null))
}

/** A ping as a change of the check with this key. */
export type PingChange = Change & { readonly ping: NonNullable<Change['ping']> }

export function toChange(ping: Ping, key: number): PingChange {
  const { type, exitCode, runId, body, isBodyTruncated, at } = ping
  return { key, event: toEvent(ping), at, ping: { type, exitCode, runId, body, isBodyTruncated } }
}

function toEvent({ type, runId, durationMs }: Ping): CheckEvent {
  switch (type) {
    case 'success':
    case 'warn':
    case 'fail':
      return { kind: type, runId, durationMs }
    case 'start':
      return { kind: 'start', runId }
    case 'log':
      return { kind: 'log' }
  }
}

/** The outcome of a ping whose decision is saved. */
export function toOutcome(decision: Decision): PingOutcome {
  switch (decision.kind) {
    case 'applied':
      return decision.outcome.runRefused ? 'run_refused' : 'stored'
    case 'failed':
      return { kind: 'rejected', error: decision.error }
    case 'unknown':
      return 'unknown'
  }
}
