/** Flips as Kubernetes Events: `kubectl describe` shows the history of the job. */

import type { FlipReason } from '../domain/check.ts'
import { toTime } from '../kubernetes/objects.ts'
import type { FlipRecord } from '../store/history/flips.ts'

export interface FlipEvent {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
  /** The id of the flip: it is reported once, whichever process does it. */
  readonly id: string
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

/** Returns null for a flip that needs no Event. */
export function toFlipEvent(flip: FlipRecord): FlipEvent | null {
  const event = EVENTS[flip.reason]
  if (event === null) return null
  return { type: event.type, reason: event.reason, action: 'Monitor', note: event.note(toTime(flip.at)), id: flip.id }
}
