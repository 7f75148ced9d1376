/** Flips as Kubernetes Events, so that `kubectl describe` tells the story. */

import type { FlipReason } from '../domain/check.ts'
import { toTime } from '../kubernetes/objects.ts'
import type { FlipRecord } from '../store/history/flips.ts'

export interface Story {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly action: string
  readonly note: string
  /** Of the flip: whoever tells it, it is told once. */
  readonly id: string
}

/** Null for what nobody needs to be told. */
const STORIES: Record<FlipReason, { type: Story['type']; reason: string; note: (at: string) => string } | null> = {
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

export function storyOf(flip: FlipRecord): Story | null {
  const story = STORIES[flip.reason]
  if (story === null) return null
  return { type: story.type, reason: story.reason, action: 'Monitor', note: story.note(toTime(flip.at)), id: flip.id }
}
