/**
 * What we tell the outside (design, section 5): of flips, of the interval that our own downtime hid, and that a job is late, which
 * is no flip.
 */

import type { Flip, FlipReason, Gap, Instant, PingType, ShownStatus, StoredStatus } from './check.ts'
import { toIso } from './instant.ts'

export const CHECK_EVENT_TYPES = [
  'check.down',
  'check.up',
  'check.paused',
  'check.resumed',
  'check.late',
  'check.unknown',
] as const
export type CheckEventType = (typeof CHECK_EVENT_TYPES)[number]
/** `channel.test` is what somebody sends to see whether a channel works; no flip makes it. */
export const EVENT_TYPES = [...CHECK_EVENT_TYPES, 'channel.test'] as const
export type EventType = (typeof EVENT_TYPES)[number]

/** What a channel gets unless it chooses. That a job is late, or that we cannot tell, is for those who ask for it. */
export const STANDARD_EVENT_TYPES = ['check.down', 'check.up', 'check.paused', 'check.resumed'] as const

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
} as const satisfies Record<FlipReason, CheckEventType | null>

/** The facts of the moment, kept with the event: by the time it is delivered the check may be up again, renamed, or gone. */
export interface EventFacts {
  readonly reason: FlipReason | 'late'
  readonly occurred_at: string
  readonly detected_at: string
  readonly status: ShownStatus
  readonly previous_status: StoredStatus | null
  readonly down_for_seconds: number | null
  readonly gap: { readonly started_at: string; readonly ended_at: string } | null
}

/** The check as it was called then. Never its public id, which is the capability to ping. */
export interface EventCheck {
  readonly id: string
  readonly name: string
  readonly slug: string
  readonly project: { readonly id: string; readonly slug: string }
  readonly kubernetes: { readonly cluster: string; readonly namespace: string; readonly name: string } | null
}

/** The ping that made the flip, else the last one before it. */
export interface EventPing {
  readonly type: PingType
  readonly exit_code: number | null
  readonly duration_ms: number | null
  readonly created_at: string
  /** The end of what the job sent, at most EVENT_BODY_BYTES of it. */
  readonly body: string | null
}

/** The last 4 KB: the end of a log says why. */
export const EVENT_BODY_BYTES = 4_096

/** An event on its way out: the same for every channel and every attempt. */
export type Event = CheckTold | ChannelTested

export interface CheckTold {
  /** UUIDv7: repeats of a delivery carry the same. */
  readonly id: string
  readonly type: CheckEventType
  readonly at: Instant
  readonly facts: EventFacts
  readonly check: EventCheck
  readonly lastPing: EventPing | null
}

export interface ChannelTested {
  readonly id: string
  readonly type: 'channel.test'
  readonly at: Instant
}

export function eventOf(
  flip: Flip,
  facts: { since: Instant; detectedAt: Instant; gap: Gap | null },
): { type: CheckEventType; data: EventFacts } | null {
  const type = EVENT_OF[flip.reason]
  if (type === null) return null
  const { since, detectedAt, gap } = facts
  return {
    type,
    data: {
      reason: flip.reason,
      occurred_at: toIso(flip.at),
      detected_at: toIso(detectedAt),
      status: flip.to,
      previous_status: flip.from,
      down_for_seconds: type === 'check.up' ? Math.max(0, Math.round((flip.at - since) / 1_000)) : null,
      gap: gap === null ? null : { started_at: toIso(gap.startedAt), ended_at: toIso(gap.endedAt) },
    },
  }
}

/** The job should have reported by `expectedAt`; its grace time is still running. */
export function lateEvent(expectedAt: Instant, detectedAt: Instant): { type: CheckEventType; data: EventFacts } {
  return {
    type: 'check.late',
    data: {
      reason: 'late',
      occurred_at: toIso(expectedAt),
      detected_at: toIso(detectedAt),
      status: 'late',
      previous_status: 'up',
      down_for_seconds: null,
      gap: null,
    },
  }
}
