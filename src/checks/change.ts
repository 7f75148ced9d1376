/**
 * The spine: the only place where a check changes. Pings, deadlines, pause, resume and changed specs are changes to rows that are locked, or
 * cached (ping/cache.ts). `transition` decides. The new states, history, flips and events form one ChangeSet, which the caller saves in the
 * transaction that holds the locks, or on condition that the cached rows are still current.
 */

import type { CheckSpec, Flip, Gap, Instant } from '../domain/check.ts'
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
  /** When it happened, by the database's clock. It is stored as later than the check's newest entry. */
  readonly at: Instant
  /** What the history keeps, when the event is a ping. */
  readonly ping?: Pick<NewPing, 'type' | 'exitCode' | 'runId' | 'body'>
}

export type Decision =
  | { readonly kind: 'applied'; readonly outcome: Outcome }
  /** The check does not exist, or no longer. */
  | { readonly kind: 'unknown' }
  /** The stored row of this check is invalid. Other checks are not affected. */
  | { readonly kind: 'failed'; readonly error: unknown }

/**
 * How `wakeAt` moves. `earlier`: never to a later time, which would cost an index entry; for pings. `first`: to the first time at which the check
 * may be late; for changes by people. The evaluator passes whether a channel wants events of late checks.
 */
export type Waking = 'earlier' | 'first' | { readonly isLateWanted: boolean }

/** Applies changes in their order. Does not throw: a change of an invalid row has the decision `failed`. */
export function decideChanges(
  locked: readonly LockedCheck[],
  changes: readonly Change[],
  waking: Waking,
): {
  decisions: Decision[]
  changeSet: ChangeSet
  /** The rows of `changeSet.states` as they are once the change set is saved, in the same order. */
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

/** One check while the changes of a group are applied to it. */
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
    // Replicas share a clock, but the order of the locks is the order of the history: a later entry has a later time.
    const stamp = stampAfter(this.#stampedAt, at)
    const now = Math.floor(stamp)
    const outcome = transition(spec, before, event, now)
    this.#isTouched = true
    this.#state = outcome.state
    this.#stampedAt = stamp

    const pingId = ping === undefined ? null : newIdBytes(stamp)
    if (ping !== undefined) history.pings.push({ ...ping, id: pingId!, key, durationMs: outcome.durationMs, at: stamp })
    const add = (flip: Flip, gap: Gap | null) => {
      this.#stampedAt = stampAfter(this.#stampedAt, at)
      const flipId = newIdBytes(this.#stampedAt)
      history.flips.push({ ...flip, id: flipId, key, detectedAt: now, pingId })
      const flipEvent = eventOf(flip, { since: before.since, detectedAt: now, gap })
      if (flipEvent !== null) {
        const id = newIdBytes(this.#stampedAt)
        history.events.push({ ...flipEvent, id, key, flipId, pingId, at: now })
      }
    }
    if (outcome.outage !== null)
      add({ from: before.status, to: before.status, reason: 'outage', at: outcome.outage.endedAt }, outcome.outage)
    if (outcome.flip !== null) add(outcome.flip, null)
    if (this.#isNewlyLate(event, outcome, now)) {
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

  /** True for the first evaluation since the completion was expected; the next one is at the deadline. */
  #isNewlyLate(event: CheckEvent, { state, flip, outage }: Outcome, now: Instant): boolean {
    const { expectedAt } = state
    const { wakeAt } = this.#check
    if (typeof this.#waking === 'string' || !this.#waking.isLateWanted || event.kind !== 'deadline') return false
    if (flip !== null || outage !== null || state.status !== 'up' || expectedAt === null || wakeAt === null)
      return false
    // A gap may have hidden the ping.
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
    return isForDeadline ? deadline : firstWakeAt(this.#check.spec!, this.#state, deadline, Math.ceil(this.#stampedAt))
  }
}

/**
 * The earliest time at which this check may be late or down: its expected time or, if that is past or unknown, the expected time after a
 * completion now. Never later than the deadline. Pings do not move `wakeAt` for the expected time alone.
 */
function firstWakeAt(
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
