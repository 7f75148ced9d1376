/**
 * Whether the recipients of a check are notified of its changes into and out of `down` (design, section 4, "Quiet").
 * They are not while it flaps, while a silence covers it, and while a check is down that it depends on. The end of each
 * is an evaluation: then its status is notified, if they know another one. Changes count by the time at which they were
 * found: a missed ping is dated earlier.
 */

import { type Held, heldBy } from './channel.ts'
import { type CheckSpec, type CheckState, type Flip, type Gap, type Instant, REASONS_OF } from './check.ts'
import { type Circumstances, holdAt } from './circumstances.ts'
import type { Notice } from './event.ts'
import { FLAPPING, HIDING_GAP_MS } from './limits.ts'

/** The part of a state that decides about notices. */
export type Quiet = Pick<CheckState, 'incidentSince' | 'changes' | 'notified' | 'quietAt' | 'hold'>

export interface Quieted {
  readonly quiet: Quiet
  readonly notice: Notice | null
  /** Why `notice` is not sent; null: it is. */
  readonly heldBy: Held | null
}

const NO_CHANGES: readonly Instant[] = []
export const NOT_QUIET: Quiet = { incidentSince: null, changes: NO_CHANGES, notified: null, quietAt: null, hold: null }
export const FLAPS: Held = { reason: 'flapping', cause: null }

/** The changes that can still make the check flap. Old ones would be read and written for ever. */
export function recentChanges({ changes }: Pick<Quiet, 'changes'>, now: Instant): readonly Instant[] {
  if (changes.length === 0) return changes
  return now - changes.at(-1)! < FLAPPING.windowMs ? changes : NO_CHANGES
}

/**
 * The check at an evaluation: it stays quiet, or its status is notified if the recipients know another one. Where one
 * reason to be quiet follows another, that is withheld once more.
 */
export function settle(
  { graceMs }: Pick<CheckSpec, 'graceMs'>,
  state: CheckState,
  gaps: readonly Gap[],
  around: Circumstances,
  now: Instant,
): Quieted {
  if (state.notified === null) return { quiet: state, notice: null, heldBy: null }
  const { incidentSince, changes, notified } = state
  const quietAt = flapsUntil(state, gaps, now)
  const hold = holdAt(graceMs, state, around, now)
  const ended = endOf(state, now)
  if (quietAt === null && hold === null) return { ...ended, heldBy: null }
  const quiet = { incidentSince, changes, notified, quietAt, hold }
  const isNext = hold !== null && (state.hold === null ? quietAt === null : state.hold.by !== hold.by)
  return isNext ? { quiet, notice: ended.notice, heldBy: heldBy(hold) } : { quiet, notice: null, heldBy: null }
}

/**
 * Until when the check flaps if it does not change again; null: it does not flap. A gap that may have hidden pings is
 * no evidence of quiet. Applying a gap a second time changes nothing.
 */
function flapsUntil({ since, quietAt }: CheckState, gaps: readonly Gap[], now: Instant): Instant | null {
  if (quietAt === null) return null
  let until = quietAt
  for (const { startedAt, endedAt } of gaps) {
    const isHiding = endedAt - startedAt >= HIDING_GAP_MS && startedAt < until
    if (isHiding) until = Math.max(until, endedAt + FLAPPING.windowMs, since + FLAPPING.windowMs)
  }
  return now < until ? until : null
}

/** The check once it is no longer quiet, and what its recipients have to know. */
function endOf(
  { status, since, reason, notified, hold, incidentSince, changes }: CheckState,
  now: Instant,
): Omit<Quieted, 'heldBy'> {
  const silencedFrom = hold?.silencedFrom ?? null
  const silenced = silencedFrom === null ? {} : { silencedFrom }
  const facts = { at: since, from: notified, to: status, flips: null, downSince: null, ...silenced }
  const loud = { ...NOT_QUIET, incidentSince, changes }
  // It went up, and down again, in the silence: another incident.
  const isAnother = silencedFrom !== null && since >= silencedFrom
  if (status === 'down' && (notified !== 'down' || isAnother)) {
    const known = REASONS_OF.down.find((one) => one === reason) ?? 'missed'
    const began = isAnother ? since : (incidentSince ?? since)
    return addChange(loud, { ...facts, type: 'check.down', reason: known }, began, now)
  }
  if (status === 'up' && incidentSince !== null)
    return addChange(loud, { ...facts, type: 'check.up', reason: 'recovered', downSince: incidentSince }, null, now)
  // Receivers that keep the incident end it.
  if (status === 'paused' && notified === 'down')
    return { quiet: loud, notice: { ...facts, type: 'check.paused', reason: 'paused' } }
  return { quiet: loud, notice: null }
}

/** A change that is notified, or one too many: then the check flaps. `incident`: when the open one began after it. */
function addChange(quiet: Quiet, notice: Notice, incident: Instant | null, now: Instant): Omit<Quieted, 'heldBy'> {
  const recent = [...quiet.changes.filter((change) => now - change < FLAPPING.windowMs), now]
  if (recent.length <= FLAPPING.changes)
    return { quiet: { ...quiet, incidentSince: incident, changes: recent }, notice }
  const { at, from, to } = notice
  const quietAt = now + FLAPPING.windowMs
  return {
    quiet: { ...quiet, changes: NO_CHANGES, notified: from ?? 'new', quietAt },
    notice: { type: 'check.flapping', reason: 'flapping', at, from, to, downSince: null, flips: recent.length },
  }
}

/** A flip, with what decides whether it is notified. */
interface Flipped {
  /** The check before the flip. */
  readonly before: CheckState
  readonly flip: Flip
  readonly around: Circumstances
}

/**
 * What a flip adds to `quiet`. A check that was quiet for long enough, but is not settled yet, flaps until the
 * evaluator has seen it. The flip does not postpone the evaluation, which notifies the status after the flip.
 */
export function countFlip(
  { graceMs }: Pick<CheckSpec, 'graceMs'>,
  { before, flip, around }: Flipped,
  quiet: Quiet,
  now: Instant,
): Quieted {
  const { from, to, at, reason } = flip
  const { incidentSince, notified } = quiet
  const hold = holdAt(graceMs, { status: to, reason, hold: quiet.hold }, around, now)
  const isFlapping = quiet.quietAt !== null
  // After a pause the check goes up from `new`, and closes its incident nevertheless.
  const isChange = to === 'down' || (to === 'up' && (from === 'down' || incidentSince !== null))
  if (!isChange) {
    // What people do to a check is notified though it flaps; in a silence only that recipients know an incident counts.
    if (hold === null)
      return { quiet: { ...quiet, notified: isFlapping ? to : null, hold }, notice: null, heldBy: null }
    const isOpen = from === 'down' || (to === 'paused' && incidentSince !== null)
    const known = notified ?? (isOpen ? 'down' : null)
    return { quiet: { ...quiet, notified: known, hold: known === null ? null : hold }, notice: null, heldBy: null }
  }
  const notice = noticeOf(before, quiet, flip)
  if (isFlapping || hold !== null) {
    const endsAt = quiet.quietAt !== null && now < quiet.quietAt ? now + FLAPPING.windowMs : quiet.quietAt
    const next = { ...quiet, notified: notified ?? from ?? 'new', quietAt: endsAt, hold }
    return { quiet: next, notice, heldBy: hold === null ? FLAPS : heldBy(hold) }
  }
  const loud = { ...quiet, notified: null, hold: null }
  // The recipients do not know that it was down.
  if (notified !== null && to === 'up' && incidentSince === null)
    return { quiet: loud, notice, heldBy: quiet.hold === null ? FLAPS : heldBy(quiet.hold) }

  // Known as down from before a silence, in which it recovered: this is another incident.
  const began = notified === null ? (incidentSince ?? at) : at
  return { ...addChange(loud, notice, to === 'down' ? began : null, now), heldBy: null }
}

/** Of a change into or out of `down`. */
function noticeOf(
  { since }: Pick<CheckState, 'since'>,
  { incidentSince }: Pick<Quiet, 'incidentSince'>,
  { from, to, reason, at }: Flip,
): Notice {
  const facts = { at, from, to, flips: null }
  if (to === 'down') return { ...facts, type: 'check.down', reason, downSince: null }
  return { ...facts, type: 'check.up', reason: 'recovered', downSince: incidentSince ?? since }
}
