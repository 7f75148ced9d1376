/** What we tell the outside about a flip (design, section 5). Kinds of events, and which flip makes which. */

import type { Flip, FlipReason, Gap, Instant, StoredStatus } from './check.ts'

export const EVENT_TYPES = ['check.down', 'check.up', 'check.paused', 'check.resumed', 'check.unknown'] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** Null: silent. Nobody is told that a check was made, or that its first success arrived. */
const EVENT_OF = {
  created: null,
  first_success: null,
  missed: 'check.down',
  failed: 'check.down',
  overran: 'check.down',
  recovered: 'check.up',
  paused: 'check.paused',
  resumed: 'check.resumed',
  outage: 'check.unknown',
} as const satisfies Record<FlipReason, EventType | null>

/** The facts of the moment, kept with the event: by the time it is delivered the check may be up again, renamed, or gone. */
export interface EventFacts {
  readonly reason: FlipReason
  readonly occurred_at: string
  readonly detected_at: string
  readonly status: StoredStatus
  readonly previous_status: StoredStatus | null
  readonly down_for_seconds: number | null
  readonly gap: { readonly started_at: string; readonly ended_at: string } | null
}

export function eventOf(
  flip: Flip,
  facts: { since: Instant; detectedAt: Instant; gap: Gap | null },
): { type: EventType; data: EventFacts } | null {
  const type = EVENT_OF[flip.reason]
  if (type === null) return null
  const { since, detectedAt, gap } = facts
  return {
    type,
    data: {
      reason: flip.reason,
      occurred_at: iso(flip.at),
      detected_at: iso(detectedAt),
      status: flip.to,
      previous_status: flip.from,
      down_for_seconds: type === 'check.up' ? Math.max(0, Math.round((flip.at - since) / 1_000)) : null,
      gap: gap === null ? null : { started_at: iso(gap.startedAt), ended_at: iso(gap.endedAt) },
    },
  }
}

function iso(at: Instant): string {
  return new Date(at).toISOString()
}
