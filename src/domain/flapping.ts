/**
 * Damping (design, section 4, "Flapping"): which changes into and out of `down` are notified. Changes count by the time
 * at which they were found: a missed ping is dated earlier.
 */

import { type CheckState, type Flip, type Gap, type Instant, REASONS_OF } from './check.ts'
import type { Notice } from './event.ts'
import { FLAPPING, HIDING_GAP_MS } from './limits.ts'

/** The part of a state that decides about notices. */
export type Damping = Pick<CheckState, 'incidentSince' | 'changes' | 'notified' | 'quietAt'>

export interface Damped {
  readonly damping: Damping
  readonly notice: Notice | null
  /** What would be notified if the check did not flap. */
  readonly withheld?: Notice
}

const NO_CHANGES: readonly Instant[] = []
export const UNDAMPED: Damping = { incidentSince: null, changes: NO_CHANGES, notified: null, quietAt: null }

/** The changes that can still make the check flap. Old ones would be read and written for ever. */
export function recentChanges({ changes }: Damping, now: Instant): readonly Instant[] {
  if (changes.length === 0) return changes
  return now - changes.at(-1)! < FLAPPING.windowMs ? changes : NO_CHANGES
}

/**
 * Ends the flapping of a check that was quiet. Its last status is notified if the recipients know another one.
 * A gap that may have hidden pings is no evidence of quiet. Applying a gap a second time changes nothing.
 */
export function settle(state: CheckState, gaps: readonly Gap[], now: Instant): Damped {
  const { status, since, reason, notified } = state
  let { incidentSince, quietAt } = state
  if (notified === null) return { damping: state, notice: null }
  quietAt ??= now
  for (const { startedAt, endedAt } of gaps) {
    const isHiding = endedAt - startedAt >= HIDING_GAP_MS && startedAt < quietAt
    if (isHiding) quietAt = Math.max(quietAt, endedAt + FLAPPING.windowMs, since + FLAPPING.windowMs)
  }
  if (now < quietAt) return { damping: { incidentSince, changes: NO_CHANGES, notified, quietAt }, notice: null }

  const facts = { at: since, from: notified, to: status, flips: null }
  let notice: Notice | null = null
  if (status === 'down' && notified !== 'down') {
    incidentSince ??= since
    const known = REASONS_OF.down.find((one) => one === reason) ?? 'missed'
    notice = { ...facts, type: 'check.down', reason: known, downSince: null }
  } else if (status === 'up' && incidentSince !== null) {
    notice = { ...facts, type: 'check.up', reason: 'recovered', downSince: incidentSince }
    incidentSince = null
  }
  const changes = notice === null ? NO_CHANGES : [now]
  return { damping: { incidentSince, changes, notified: null, quietAt: null }, notice }
}

/**
 * What a flip adds. `before`: the check before the flip. A check that was quiet for long enough, but is not settled yet, flaps until the
 * evaluator has seen it: the flip does not postpone that, and the status after it is the one that is notified.
 */
export function countFlip(before: Pick<CheckState, 'since'>, damping: Damping, flip: Flip, now: Instant): Damped {
  const { incidentSince, changes, notified } = damping
  const quietAt = now + FLAPPING.windowMs
  const { from, to, at } = flip
  // After a pause the check goes up from `new`, and closes its incident nevertheless.
  const isChange = to === 'down' || (to === 'up' && (from === 'down' || incidentSince !== null))
  if (!isChange) return { damping: notified === null ? damping : { ...damping, notified: to }, notice: null }
  const notice = noticeOf(before, damping, flip)
  if (notified !== null) {
    const endsAt = damping.quietAt ?? now
    return { damping: { ...damping, quietAt: now < endsAt ? quietAt : endsAt }, notice: null, withheld: notice }
  }

  const recent = [...changes.filter((change) => now - change < FLAPPING.windowMs), now]
  if (recent.length > FLAPPING.changes) {
    const flips = recent.length
    const notice: Notice = { type: 'check.flapping', reason: 'flapping', at, from, to, downSince: null, flips }
    return { damping: { incidentSince, changes: NO_CHANGES, notified: from ?? 'new', quietAt }, notice }
  }
  return {
    damping: { ...damping, incidentSince: to === 'down' ? (incidentSince ?? at) : null, changes: recent },
    notice,
  }
}

/** Of a change into or out of `down`. */
function noticeOf(
  { since }: Pick<CheckState, 'since'>,
  { incidentSince }: Damping,
  { from, to, reason, at }: Flip,
): Notice {
  const facts = { at, from, to, flips: null }
  if (to === 'down') return { ...facts, type: 'check.down', reason, downSince: null }
  return { ...facts, type: 'check.up', reason: 'recovered', downSince: incidentSince ?? since }
}
