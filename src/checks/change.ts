/**
 * The spine. A check changes here and nowhere else: a ping, a deadline, pause, resume and a changed spec all come as
 * changes on rows that are locked, or remembered (remembered-checks.ts); the pure core decides; the new states, history, flips
 * and events go out as one ChangeSet. The caller saves it in the transaction that holds the locks, or on condition that what was
 * remembered is still so.
 */

import type { CheckSpec, FlipReason, Gap, Instant, PingType, StoredStatus } from '../domain/check.ts'
import { eventOf, lateEvent } from '../domain/event.ts'
import { stampAfter } from '../domain/instant.ts'
import { expectAfterCompletion } from '../domain/schedule.ts'
import { type CheckEvent, deadlineOf, type Outcome, transition } from '../domain/transition.ts'
import { newIdBytes } from '../runtime/ids.ts'
import type { ChangedState, ChangeSet, NewFlip, NewPing } from '../store/checks/change-sets.ts'
import type { LockedCheck } from '../store/checks/states.ts'
import type { NewEvent } from '../store/outbox/events.ts'

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

/**
 * How wake-up times move. `earlier`: never later, which costs an index entry; for pings. `first`: to the first moment that may be
 * worth an event; for people's changes. The evaluator knows whether somebody wants to hear of late jobs, and says.
 */
export type Waking = 'earlier' | 'first' | { readonly isLateWanted: boolean }

/** Applies changes in their order. */
export function decideChanges(
  locked: readonly LockedCheck[],
  changes: readonly Change[],
  waking: Waking,
): {
  decisions: Decision[]
  changeSet: ChangeSet
  /** The rows of the change set's states as they are once it is saved, in their order. */
  after: LockedCheck[]
} {
  const rows = new Map<number, Row>()
  for (const check of locked) rows.set(check.key, new Row(check, waking))
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
  const after: LockedCheck[] = []
  for (const row of rows.values()) {
    const changed = row.toSave()
    if (changed === null) continue
    states.push(changed)
    after.push(row.asSaved(changed))
  }
  return { decisions, changeSet: { states, pings, flips, events }, after }
}

interface History {
  readonly pings: NewPing[]
  readonly flips: NewFlip[]
  readonly events: NewEvent[]
}

/** One locked check while the changes of a group pass over it. */
class Row {
  readonly #check: LockedCheck
  readonly #waking: Waking
  #state: LockedCheck['state']
  #stampedAt: Instant
  #isTouched = false

  constructor(check: LockedCheck, waking: Waking) {
    this.#check = check
    this.#waking = waking
    this.#state = check.state
    this.#stampedAt = check.stampedAt
  }

  apply({ key, event, at, ping }: Change, history: History): Outcome {
    const { spec } = this.#check
    if (spec === null)
      throw new Error(
        `what is stored of check ${key} cannot be read: update it with a valid schedule, or mend the times in check_states`,
      )
    const before = this.#state
    // Replicas agree on the clock, yet the lock decides who is first: the later one is dated after the earlier one.
    const stamp = stampAfter(this.#stampedAt, at)
    const now = Math.floor(stamp)
    const outcome = transition(spec, before, event, now)
    this.#isTouched = true
    this.#state = outcome.state
    this.#stampedAt = stamp

    const pingId = ping === undefined ? null : newIdBytes(stamp)
    if (ping !== undefined) history.pings.push({ ...ping, id: pingId!, key, durationMs: outcome.durationMs, at: stamp })
    const add = (
      flip: { from: StoredStatus | null; to: StoredStatus; reason: FlipReason; at: Instant },
      gap: Gap | null,
    ) => {
      this.#stampedAt = stampAfter(this.#stampedAt, at)
      const flipId = newIdBytes(this.#stampedAt)
      history.flips.push({ ...flip, id: flipId, key, detectedAt: now, pingId })
      const told = eventOf(flip, { since: before.since, detectedAt: now, gap })
      if (told !== null) {
        const id = newIdBytes(this.#stampedAt)
        history.events.push({ ...told, id, key, flipId, pingId, at: now })
      }
    }
    if (outcome.outage !== null)
      add({ from: before.status, to: before.status, reason: 'outage', at: outcome.outage.endedAt }, outcome.outage)
    if (outcome.flip !== null) add(outcome.flip, null)
    if (this.#isToBeToldLate(event, outcome, now)) {
      this.#stampedAt = stampAfter(this.#stampedAt, at)
      const id = newIdBytes(this.#stampedAt)
      history.events.push({
        ...lateEvent(outcome.state.expectedAt!, now),
        id,
        key,
        flipId: null,
        pingId: null,
        at: now,
      })
    }
    return outcome
  }

  /** The first look at the check since its completion was expected: the next wake-up is at the deadline. */
  #isToBeToldLate(event: CheckEvent, { state, flip, outage }: Outcome, now: Instant): boolean {
    const { expectedAt } = state
    const { wakeAt } = this.#check
    if (typeof this.#waking === 'string' || !this.#waking.isLateWanted || event.kind !== 'deadline') return false
    if (flip !== null || outage !== null || state.status !== 'up' || expectedAt === null || wakeAt === null)
      return false
    // What our own downtime may have hidden is not the job's delay.
    return wakeAt <= expectedAt && expectedAt <= now && event.gaps.every((gap) => gap.endedAt < expectedAt)
  }

  toSave(): ChangedState | null {
    if (!this.#isTouched) return null
    const changed = { key: this.#check.key, state: this.#state, stampedAt: this.#stampedAt }
    const wakeAt = this.#nextWake()
    return wakeAt === this.#check.wakeAt ? changed : { ...changed, wakeAt }
  }

  asSaved({ key, state, stampedAt, wakeAt = this.#check.wakeAt }: ChangedState): LockedCheck {
    return { key, spec: this.#check.spec, state, stampedAt, wakeAt }
  }

  #nextWake(): Instant | null {
    const { wakeAt } = this.#check
    const deadline = deadlineOf(this.#state)
    if (this.#waking === 'earlier' && wakeAt !== null) return deadline !== null && deadline < wakeAt ? deadline : wakeAt
    const isForDeadline = typeof this.#waking === 'object' && !this.#waking.isLateWanted
    return isForDeadline ? deadline : firstMoment(this.#check.spec!, this.#state, deadline, Math.ceil(this.#stampedAt))
  }
}

/**
 * The deadline, or the moment before it at which the check may be late: when its completion is expected, and where that is past or
 * not yet known, when one that came right now would let the next be expected. No ping moves a wake-up time for that alone.
 */
function firstMoment(
  spec: CheckSpec,
  { status, expectedAt }: LockedCheck['state'],
  deadline: Instant | null,
  now: Instant,
): Instant | null {
  if (deadline === null || (status !== 'up' && status !== 'new')) return deadline
  const isAhead = status === 'up' && expectedAt !== null && expectedAt > now
  const mayBeLateAt = isAhead ? expectedAt : expectAfterCompletion(spec, now).expectedAt
  return mayBeLateAt === null ? deadline : Math.min(mayBeLateAt, deadline)
}
