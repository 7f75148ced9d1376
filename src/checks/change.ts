/**
 * The spine. A check changes here and nowhere else: a ping, a deadline, pause, resume and a changed spec all come as
 * changes on locked rows; the pure core decides; the new states, history, flips and events go out as one ChangeSet, which
 * the caller saves in the transaction that holds the locks.
 */

import type { FlipReason, Gap, Instant, PingType, StoredStatus } from '../domain/check.ts'
import { eventOf } from '../domain/event.ts'
import { writeTimeOrderedId } from '../domain/ids.ts'
import { type CheckEvent, deadlineOf, type Outcome, transition } from '../domain/transition.ts'
import { randomIdBytes } from '../runtime/random.ts'
import type { ChangedState, ChangeSet, LockedCheck, NewEvent, NewFlip, NewPing } from '../store/states.ts'

export interface Change {
  readonly key: number
  readonly event: CheckEvent
  /** When it happened, by the database's clock. Moved on to follow what is in the check's history already. */
  readonly at: Instant
  /** What the history keeps, when the event is a ping. */
  readonly ping?: {
    readonly type: PingType
    readonly exitCode: number | null
    readonly runId: string | null
    readonly body: Buffer | null
  }
}

export type Decision =
  | { readonly kind: 'applied'; readonly outcome: Outcome }
  /** No such check, or it was deleted meanwhile. */
  | { readonly kind: 'unknown' }
  /** The check's own configuration or state cannot be worked with. Its fault stays its own. */
  | { readonly kind: 'failed'; readonly error: unknown }

/** A microsecond, in milliseconds: two entries of one check's history are never closer. */
const TICK_MS = 0.001

/**
 * Applies changes in their order. `wakeExactly` also moves wake-up times later, which costs an index entry: the evaluator's
 * and the people's changes do that, pings never.
 */
export function decideChanges(
  locked: readonly LockedCheck[],
  changes: readonly Change[],
  { wakeExactly }: { wakeExactly: boolean },
): { decisions: Decision[]; changeSet: ChangeSet } {
  const rows = new Map<number, Row>()
  for (const check of locked) rows.set(check.key, new Row(check))
  const pings: NewPing[] = []
  const flips: NewFlip[] = []
  const events: NewEvent[] = []
  const decisions = changes.map((change): Decision => {
    const row = rows.get(change.key)
    if (row === undefined) return { kind: 'unknown' }
    try {
      return { kind: 'applied', outcome: row.apply(change, { pings, flips, events }) }
    } catch (error) {
      return { kind: 'failed', error }
    }
  })
  const states: ChangedState[] = []
  for (const row of rows.values()) {
    const changed = row.toSave(wakeExactly)
    if (changed !== null) states.push(changed)
  }
  return { decisions, changeSet: { states, pings, flips, events } }
}

interface History {
  readonly pings: NewPing[]
  readonly flips: NewFlip[]
  readonly events: NewEvent[]
}

/** One locked check while the changes of a group pass over it. */
class Row {
  readonly #check: LockedCheck
  #state: LockedCheck['state']
  #stampedAt: Instant
  #isTouched = false

  constructor(check: LockedCheck) {
    this.#check = check
    this.#state = check.state
    this.#stampedAt = check.stampedAt
  }

  apply({ key, event, at, ping }: Change, history: History): Outcome {
    const { spec } = this.#check
    if (spec === null)
      throw new Error(`the schedule stored for check ${key} cannot be read; update the check with a valid one`)
    const before = this.#state
    // Replicas agree on the clock, yet the lock decides who is first: the later one is dated after the earlier one.
    const stamp = this.#stampAfter(at)
    const now = Math.floor(stamp)
    const outcome = transition(spec, before, event, now)
    this.#isTouched = true
    this.#state = outcome.state
    this.#stampedAt = stamp

    const pingId = ping === undefined ? null : writeTimeOrderedId(randomIdBytes(), stamp)
    if (ping !== undefined) history.pings.push({ ...ping, id: pingId!, key, durationMs: outcome.durationMs, at: stamp })
    const add = (
      flip: { from: StoredStatus | null; to: StoredStatus; reason: FlipReason; at: Instant },
      gap: Gap | null,
    ) => {
      this.#stampedAt = this.#stampAfter(at)
      const flipId = writeTimeOrderedId(randomIdBytes(), this.#stampedAt)
      history.flips.push({ ...flip, id: flipId, key, detectedAt: now, pingId })
      const told = eventOf(flip, { since: before.since, detectedAt: now, gap })
      if (told !== null)
        history.events.push({ ...told, id: writeTimeOrderedId(randomIdBytes(), this.#stampedAt), key, flipId, at: now })
    }
    if (outcome.outage !== null)
      add({ from: before.status, to: before.status, reason: 'outage', at: outcome.outage.endedAt }, outcome.outage)
    if (outcome.flip !== null) add(outcome.flip, null)
    return outcome
  }

  #stampAfter(at: Instant): Instant {
    return Math.round(Math.max(at, this.#stampedAt + TICK_MS) * 1_000) / 1_000
  }

  toSave(wakeExactly: boolean): ChangedState | null {
    if (!this.#isTouched) return null
    const changed = { key: this.#check.key, state: this.#state, stampedAt: this.#stampedAt }
    const deadline = deadlineOf(this.#state)
    const { wakeAt } = this.#check
    const isEarlier = deadline !== null && (wakeAt === null || deadline < wakeAt)
    return isEarlier || (wakeExactly && deadline !== wakeAt) ? { ...changed, wakeAt: deadline } : changed
  }
}
