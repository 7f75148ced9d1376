/**
 * The spine: the only place where a check changes, but for a common ping that one statement stores (ping/plain.ts).
 * `transition` decides on rows that are locked. The new states, history, flips and events form one ChangeSet, which the
 * caller saves in the transaction that holds the locks.
 */

import type { CheckSpec, Flip, Gap, Instant } from '../domain/check.ts'
import { type CheckEvent, type Outcome, seenBy } from '../domain/check-event.ts'
import type { Circumstances } from '../domain/circumstances.ts'
import { type Reach, reachOf } from '../domain/escalation.ts'
import { contextOf, type EventFacts, eventOf, lateEvent, type NotifiedType, noticeEvent } from '../domain/event.ts'
import { stampAfter, toMicrosecond } from '../domain/instant.ts'
import { arrivalOf } from '../domain/late-pings.ts'
import { expectAfterCompletion, expectFromNow } from '../domain/schedule.ts'
import { deadlineOf, evaluationOf, resumesFirst, transition } from '../domain/transition.ts'
import { isWarning } from '../domain/warning.ts'
import { newIdBytes } from '../runtime/ids.ts'
import type { ChangedState, ChangeSet, NewFlip, NewPing } from '../store/checks/change-sets.ts'
import { readCircumstances } from '../store/checks/circumstances.ts'
import type { LockedCheck } from '../store/checks/states.ts'
import type { DeadlineSource } from '../store/jobs/cron-jobs.ts'
import type { NewEvent } from '../store/outbox/events.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { explainDeadline } from './jobs/explain-deadline.ts'

export interface Change {
  readonly key: number
  readonly event: CheckEvent
  /**
   * When it happened, by the database's clock; of what a Job reports, and of a ping that is recorded late (`event.arrivedAt`), when that is recorded.
   * It is stored as later than the check's newest entry.
   */
  readonly at: Instant
  /**
   * What the history keeps, when the event is a ping. What a Job reports (`source: 'job'`) is stored with the Job's own
   * time, a late ping with that of its arrival. `id`: absent for a new one.
   */
  readonly ping?: Pick<NewPing, 'type' | 'exitCode' | 'runId' | 'body' | 'isBodyTruncated' | 'source'> &
    Partial<Pick<NewPing, 'id'>>
  /** What the flip says, if there is one: why, in words, and the Job that it is about. */
  readonly about?: Pick<NewFlip, 'detail' | 'job'>
  /** The same of a passed deadline: the source of the check, if it has one. */
  readonly source?: DeadlineSource | undefined
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

/** The changes as their checks read them: a fail with an exit code of a warning is one. */
export function withWarnings<Of extends Change>(changes: readonly Of[], locked: readonly LockedCheck[]): Of[] {
  const codes = new Map(locked.map(({ key, stored }) => [key, stored.warnExitCodes]))
  return changes.map((change): Of => {
    const { key, event, ping } = change
    if (ping === undefined || event.kind !== 'fail' || !isWarning(ping.exitCode, codes.get(key) ?? [])) return change
    return { ...change, event: { ...event, kind: 'warn' }, ping: { ...ping, type: 'warn' } }
  })
}

export type Around = ReadonlyMap<number, Circumstances>
const NOTHING_AROUND: Around = new Map()

export interface Decided {
  readonly decisions: Decision[]
  readonly changeSet: ChangeSet
  /** The rows of `changeSet.states` as they are once the change set is saved, in the same order. */
  readonly after: LockedCheck[]
}

/**
 * Applies changes in their order. Does not throw: a change of an invalid row has the decision `failed`. `around`: of
 * checks by their key; without an entry nothing keeps the check quiet. Callers get it by `inCircumstances`.
 */
export function decideChanges(
  locked: readonly LockedCheck[],
  changes: readonly Change[],
  waking: Waking,
  around: Around = NOTHING_AROUND,
): Decided {
  const rows = new Map<number, Row>()
  for (const check of locked) rows.set(check.key, new Row(check, waking, around.get(check.key)))
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

/**
 * Decides in what is around the checks. That is read only where it may matter, which a first decision without it shows:
 * something would be sent, or the check is held already, or its incident is open. So a common ping costs no statement.
 */
export async function inCircumstances<Made extends { readonly changeSet: ChangeSet }>(
  tx: Queryable,
  locked: readonly LockedCheck[],
  now: Instant,
  decide: (around: Around) => Made,
): Promise<Made> {
  const made = decide(NOTHING_AROUND)
  const keys = new Set(made.changeSet.events.map(({ key }) => key))
  for (const { key, state } of locked) if (state.hold !== null || state.incidentSince !== null) keys.add(key)
  const around = keys.size === 0 ? NOTHING_AROUND : await readCircumstances(tx, [...keys], now, made.changeSet.states)
  return around.size === 0 ? made : decide(around)
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
  readonly #around: Circumstances | undefined
  #state: LockedCheck['state']
  #stampedAt: Instant
  #isTouched = false
  /** Up to when what happened to the check is recorded; null: up to now. */
  #seenBy: Instant | null = null

  constructor(check: LockedCheck, waking: Waking, around: Circumstances | undefined) {
    this.#check = check
    this.#waking = waking
    this.#around = around
    this.#state = check.state
    this.#stampedAt = check.stampedAt
  }

  apply(change: Change, history: History): Outcome {
    const { key, event, at } = change
    const { spec } = this.#check
    if (spec === null)
      throw new Error(
        `what is stored of check ${key} cannot be read: update it with a valid schedule, or mend the times in check_states`,
      )
    if (resumesFirst(spec, this.#state, event)) {
      const arrivedAt = arrivalOf(event)
      const resume = { kind: 'resume', ...(arrivedAt === null ? {} : { arrivedAt }) } as const
      this.#step(spec, { key, event: resume, at }, history)
    }
    return this.#step(spec, change, history)
  }

  #step(spec: CheckSpec, { key, event, at, ping, about, source }: Change, history: History): Outcome {
    const before = this.#state
    // Replicas share a clock, but the order of the locks is the order of the history: a later entry has a later time.
    const stamp = stampAfter(this.#stampedAt, at)
    const now = Math.floor(stamp)
    const outcome = transition(spec, before, event, now, this.#around)
    this.#isTouched = true
    this.#state = outcome.state
    this.#stampedAt = stamp

    const pingAt = arrivalOf(event) ?? timeOfJob(event) ?? stamp
    const pingId = ping === undefined ? null : (ping.id ?? newIdBytes(pingAt))
    if (ping !== undefined) {
      const type = outcome.isLogged ? 'log' : ping.type
      history.pings.push({ ...ping, type, id: pingId!, key, durationMs: outcome.durationMs, at: pingAt })
    }
    /** As the recipients know the check. */
    let known: Pick<LockedCheck['state'], 'incidentSince' | 'escalation'> = before
    const complete = (
      one: { type: NotifiedType; data: EventFacts },
      suppressed: NewEvent['suppressed'],
      to?: Reach,
    ) => {
      const data = { ...one.data, ...contextOf(one.type, spec, before, outcome, now) }
      return { ...one, data, suppressed, reach: to ?? reachOf(one.type, known, suppressed) }
    }
    const addFlip = (
      flip: Flip,
      notice: Outcome['notice'],
      gap: Gap | null,
      suppressed: NewEvent['suppressed'] = null,
    ) => {
      this.#stampedAt = stampAfter(this.#stampedAt, at)
      const flipId = newIdBytes(this.#stampedAt)
      const said = source === undefined ? about : explainDeadline(source, spec, before, flip.reason)
      history.flips.push({ ...flip, ...said, id: flipId, key, detectedAt: now, pingId })
      const isSilent = event.kind === 'pause' && event.isSilent === true
      const flipEvent = isSilent ? null : eventOf(flip, { notice, detectedAt: now, gap })
      if (flipEvent !== null) {
        const id = newIdBytes(this.#stampedAt)
        history.events.push({ ...complete(flipEvent, suppressed), id, key, flipId, pingId, at: now })
      }
    }
    const addEvent = (
      one: { type: NotifiedType; data: EventFacts },
      { suppressed = null, reach, ...cause }: Pick<NewEvent, 'pingId' | 'about'> & Partial<NewEvent> = { pingId: null },
    ) => {
      this.#stampedAt = stampAfter(this.#stampedAt, at)
      const id = newIdBytes(this.#stampedAt)
      history.events.push({ ...complete(one, suppressed, reach), ...cause, id, key, flipId: null, at: now })
    }
    const { outage, flip, notice, settled, warned, counted, reminder, acknowledged, escalated, silencedBy } = outcome
    if (settled !== null) addEvent(noticeEvent(settled, now), { pingId: null, suppressed: outcome.settledHeldBy })
    if (settled?.type === 'check.up' && outcome.settledHeldBy === null)
      known = { incidentSince: null, escalation: null }
    if (outage !== null)
      addFlip(
        { from: before.status, to: before.status, reason: 'outage', at: outage.endedAt },
        null,
        outage,
        silencedBy,
      )
    if (flip !== null) addFlip(flip, notice, null, outcome.heldBy ?? silencedBy)
    if (counted !== null) addFlip({ from: before.status, to: before.status, ...counted }, null, null)
    if (warned !== null) addEvent(noticeEvent(warned, now), { pingId, about, suppressed: outcome.warnedHeldBy })
    // The flip has the words of the run that took the check down, a further run its own.
    if (reminder !== null) {
      const isOfFurther = reminder.at !== outcome.state.since
      const suppressed = outcome.reminderHeldBy
      addEvent(noticeEvent(reminder, now), { pingId, about: isOfFurther ? about : undefined, suppressed })
    }
    if (acknowledged !== null) addEvent(noticeEvent(acknowledged, now))
    if (escalated !== null) {
      const upTo = outcome.state.escalation!.upTo
      const reach = { above: known.escalation?.upTo ?? 0, upTo, listed: upTo }
      addEvent(noticeEvent(escalated, now), { pingId: null, reach })
    }
    if (event.kind === 'deadline') this.#seenBy = seenBy(event, now)
    if (this.#isNewlyLate(event, outcome, this.#seenBy ?? now))
      addEvent(lateEvent(outcome.state.expectedAt!, now), { pingId: null, suppressed: silencedBy })
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
    return { key: this.#check.key, state: this.#state, stampedAt: this.#stampedAt, wakeAt: this.#nextWake() }
  }

  asSaved(changed: ChangedState): LockedCheck {
    return { ...this.#check, ...changed }
  }

  #nextWake(): Instant | null {
    const { wakeAt } = this.#check
    const next = evaluationOf(this.#check.spec!, this.#state)
    if (this.#waking === 'earlier' && wakeAt !== null) return next !== null && next < wakeAt ? next : wakeAt
    const isForDeadline = typeof this.#waking === 'object' && !this.#waking.isLateWanted
    return isForDeadline
      ? next
      : firstWakeAt(this.#check.spec!, this.#state, next, this.#seenBy ?? Math.ceil(this.#stampedAt))
  }
}

/** At equal times a start sorts before its completion, and before what a ping stores in the same millisecond. */
const AFTER_START_MS = 0.002

/** The Job's own time of what it reports, with the microseconds that sort it; null for anything else. */
function timeOfJob(event: CheckEvent): Instant | null {
  switch (event.kind) {
    case 'start':
      return event.job?.at ?? null
    case 'success':
    case 'warn':
    case 'fail':
      return event.job === undefined ? null : toMicrosecond(event.job.at + AFTER_START_MS)
    case 'abandon':
      return event.at === null ? null : toMicrosecond(event.at + AFTER_START_MS)
    default:
      return null
  }
}

/**
 * The earliest time at which this check may be late or down: its expected time or, if that is past or unknown, the expected time after a
 * completion now. Never later than `next`, its next evaluation. Pings do not move `wakeAt` for the expected time alone.
 */
function firstWakeAt(spec: CheckSpec, state: LockedCheck['state'], next: Instant | null, now: Instant): Instant | null {
  const { status, expectedAt } = state
  if (next === null || deadlineOf(state) === null) return next
  const isAhead = status === 'up' && expectedAt !== null && expectedAt > now
  const expectAfter = spec.awaits === 'start' ? expectFromNow : expectAfterCompletion
  const mayBeLateAt = isAhead ? expectedAt : expectAfter(spec, now).expectedAt
  return mayBeLateAt === null ? next : Math.min(mayBeLateAt, next)
}
