/** Flips as Kubernetes Events: `kubectl describe` shows the history of the job. */

import type { FlipRecord } from '../../checks/find-history.ts'
import { type FlipReason, REASONS_OF } from '../../domain/check.ts'
import { FLAPPING as LIMIT } from '../../domain/limits.ts'
import { toTime } from '../../kubernetes/objects.ts'

export interface FlipEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
  /** The id of the flip: it is reported once, whichever process does it. Absent: repeats are counted in one Event. */
  readonly id?: string
}

/** Null: the flip has no Event. */
const EVENTS: Record<FlipReason, { type: FlipEvent['type']; reason: string; note: (at: string) => string } | null> = {
  created: null,
  first_success: { type: 'Normal', reason: 'FirstSuccess', note: () => 'the job reported its first success' },
  missed: { type: 'Warning', reason: 'Missed', note: (at) => `the job reported no completion by ${at}` },
  failed: { type: 'Warning', reason: 'Failed', note: (at) => `the job reported a failure at ${at}` },
  overran: {
    type: 'Warning',
    reason: 'Overran',
    note: (at) => `a run of the job had taken longer than maxRuntimeSeconds at ${at}`,
  },
  recovered: { type: 'Normal', reason: 'Recovered', note: (at) => `the job reported a success again at ${at}` },
  paused: { type: 'Normal', reason: 'Suspended', note: () => 'the check is paused: nothing is expected of the job' },
  resumed: { type: 'Normal', reason: 'Resumed', note: () => 'the check was resumed' },
  outage: {
    type: 'Normal',
    reason: 'Outage',
    note: (at) =>
      `the service could take no pings for a while before ${at}, so one completion that was due then is excused`,
  },
}

/** Of checks whose runs are reported by Jobs. What the detail says is not said twice. */
const NOTES_OF_JOBS: Partial<Record<FlipReason, (at: string, detail: string | null) => string | undefined>> = {
  missed: (at) => `no run of the job had started by ${at}`,
  overran: (at, detail) => (detail === null ? undefined : `a run of the job had not ended by ${at}`),
}

const CHANGES: readonly FlipReason[] = [...REASONS_OF.down, 'recovered']

/** Instead of an Event for each change: an object gets few Events, and later ones would be dropped. */
const FLAPPING: FlipEvent = {
  type: 'Warning',
  reason: 'Flapping',
  action: 'Monitor',
  note: `the job goes down and up more than ${LIMIT.changes} times within ${LIMIT.windowMs / 60_000} minutes: its changes are not notified until it stays the same for as long`,
}

/**
 * Returns null for a flip that needs no Event. `isFlapping`: the check flaps now. `isFollowed`: it awaits the start of
 * a run of its CronJob, not a completion. The note ends with why, where that is known.
 */
export function toFlipEvent(flip: FlipRecord, isFlapping: boolean, isFollowed = false): FlipEvent | null {
  if (isFlapping && CHANGES.includes(flip.reason)) return FLAPPING
  const event = EVENTS[flip.reason]
  if (event === null) return null
  const at = toTime(flip.at)
  const { reason, detail = null } = flip
  const what = (isFollowed ? NOTES_OF_JOBS[reason]?.(at, detail) : undefined) ?? event.note(at)
  const note = detail === null ? what : `${what}: ${detail}`
  return { type: event.type, reason: event.reason, action: 'Monitor', note, id: flip.id }
}
