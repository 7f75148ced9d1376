/**
 * The events that channels receive (design, section 5): one for each flip that is not silent, check.late, which has no flip, and what is
 * notified of a check that flapped (quiet.ts).
 */

import type {
  CheckSpec,
  CheckState,
  Flip,
  FlipReason,
  Gap,
  Instant,
  PingType,
  ShownStatus,
  StoredStatus,
} from './check.ts'
import { toIso } from './instant.ts'
import type { Labels } from './labels.ts'
import { MOST_MISSED } from './limits.ts'
import { countDue } from './schedule.ts'

/** All but those that are opt-in. */
export const STANDARD_EVENT_TYPES = [
  'check.down',
  'check.up',
  'check.paused',
  'check.resumed',
  'check.flapping',
  'check.warned',
] as const
/** check.late and check.unknown are opt-in. */
export const CHECK_EVENT_TYPES = [...STANDARD_EVENT_TYPES, 'check.late', 'check.unknown'] as const
export type CheckEventType = (typeof CHECK_EVENT_TYPES)[number]
/**
 * `check.acknowledged` goes to channels that keep incidents and can know it, and no channel chooses it. `channel.test`
 * is requested by a user to test a channel.
 */
export const EVENT_TYPES = [...CHECK_EVENT_TYPES, 'check.acknowledged', 'channel.test'] as const
export type EventType = (typeof EVENT_TYPES)[number]
/** What happens to a check. */
export type NotifiedType = Exclude<EventType, 'channel.test'>

/** What an event says beside what happened. */
export type EventContext = Pick<EventFacts, 'last_success_at' | 'missed_runs' | 'incident_at'>

/**
 * What a person also wants to know of an event. `before`: the check before it. `outcome`: of the event, with the
 * duration of the run that ended. Runs are missed since the last success, unless a failure came after that one: then
 * their number is not known.
 */
export function contextOf(
  type: NotifiedType,
  spec: CheckSpec,
  before: Pick<CheckState, 'status' | 'lastSuccessAt' | 'lastOutcome'>,
  { durationMs, state }: { readonly durationMs: number | null; readonly state: Pick<CheckState, 'incidentSince'> },
  now: Instant,
): EventContext {
  const { lastSuccessAt } = before
  const incidentSince = type === 'check.down' ? state.incidentSince : null
  const incident = incidentSince === null ? {} : { incident_at: toIso(incidentSince) }
  if (lastSuccessAt === null) return incident
  if (type !== 'check.up') return { ...incident, last_success_at: toIso(lastSuccessAt) }
  if (before.status !== 'down' || before.lastOutcome === 'fail') return {}
  const missed = countDue(spec, lastSuccessAt, now - (durationMs ?? 0), MOST_MISSED)
  return missed === 0 ? {} : { missed_runs: missed }
}

/** The event of each flip that has one and that no notice reports. */
const EVENT_OF: { readonly [Reason in FlipReason]?: CheckEventType } = {
  paused: 'check.paused',
  resumed: 'check.resumed',
  outage: 'check.unknown',
}

/** What the recipients of a check are to know of its changes into and out of `down`. */
export interface Notice {
  readonly type: 'check.down' | 'check.up' | 'check.paused' | 'check.flapping' | 'check.warned' | 'check.acknowledged'
  readonly reason: FlipReason | 'flapping' | 'warned' | 'acknowledged'
  /** When it became true. */
  readonly at: Instant
  /** What the recipients knew. */
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  /** Of check.up and of a reminder: when the incident began. */
  readonly downSince: Instant | null
  /** Only of check.flapping: how often the check changed within the window. */
  readonly flips: number | null
  /** Only of check.down that is sent again: 1 for the first reminder of an incident. */
  readonly reminder?: number
  /** Only of check.down that further channels are sent, after their time. */
  readonly escalated?: true
  /** Only of what is sent at the end of a silence: when that began. */
  readonly silencedFrom?: Instant
}

/** Facts at the time of the event. They are stored with it: when it is delivered, the check may be up again, renamed or removed. */
export interface EventFacts {
  readonly reason: FlipReason | 'late' | 'flapping' | 'warned' | 'acknowledged'
  readonly occurred_at: string
  readonly detected_at: string
  readonly status: ShownStatus
  readonly previous_status: StoredStatus | null
  /** Of a recovery, a reminder, and of what is escalated. */
  readonly down_for_seconds: number | null
  readonly flips: number | null
  /** Of a reminder: 1 for the first of its incident. Absent of everything else. */
  readonly reminder?: number
  /** Of what a channel is sent after its time. Absent of everything else. */
  readonly escalated?: true
  /** Of what is sent at the end of a silence: when that began. Absent of everything else. */
  readonly silenced_from?: string
  /** Why, in words, of a missed or failed run of a CronJob. Added where the event is stored; absent where it is not known. */
  readonly detail?: string
  /** Of what is no recovery: the success before it; absent where there was none. */
  readonly last_success_at?: string
  /** Of check.down: when its incident began, which its acknowledgement names. */
  readonly incident_at?: string
  /**
   * Of a recovery: how many runs did not come since the last report, at most MOST_MISSED; absent where none was missed.
   */
  readonly missed_runs?: number
  /** The median of the last measured runs. Added where the event is stored; absent where none was measured. */
  readonly usual_ms?: number
  readonly gap: { readonly started_at: string; readonly ended_at: string } | null
}

/** The names of the check at the time of the event. Never its public id: with that, anyone can ping. */
export interface EventCheck {
  readonly id: string
  readonly name: string
  /** Absent where it is empty. */
  readonly description?: string
  readonly slug: string
  readonly tags: readonly string[]
  readonly labels: Labels
  readonly project: { readonly id: string; readonly slug: string }
  readonly kubernetes: {
    readonly cluster: string
    readonly namespace: string
    readonly name: string
    /** What the check follows; absent where it follows nothing. */
    readonly source?: { readonly kind: string; readonly name: string }
    /** The name of the run (a Job) that the event is about; absent where there is none. */
    readonly run?: string
  } | null
}

/** The ping that caused the flip, else the last one before it. */
export interface EventPing {
  readonly type: PingType
  readonly exit_code: number | null
  readonly duration_ms: number | null
  readonly created_at: string
  /** The end of the ping's body, at most EVENT_BODY_BYTES. */
  readonly body: string | null
}

/** The end of a log says why a job failed. */
export const EVENT_BODY_BYTES = 4_096

/** The same for every channel and every attempt. */
export type Event = NotifiedCheck | ChannelTested

export interface NotifiedCheck {
  /** UUIDv7, the same in repeated deliveries. */
  readonly id: string
  readonly type: NotifiedType
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

interface NewEvent {
  readonly type: NotifiedType
  readonly data: EventFacts
}

/** The event of a flip, by its notice if it has one; null when the flip is silent. */
export function eventOf(
  flip: Flip,
  { notice, detectedAt, gap }: { notice: Notice | null; detectedAt: Instant; gap: Gap | null },
): NewEvent | null {
  if (notice !== null) return noticeEvent(notice, detectedAt)
  const type = EVENT_OF[flip.reason]
  return type === undefined ? null : { type, data: toFacts({ ...flip, gap }, detectedAt) }
}

export function noticeEvent(notice: Notice, detectedAt: Instant): NewEvent {
  return { type: notice.type, data: toFacts(notice, detectedAt) }
}

/** The event of a job that has not reported by `expectedAt` and whose grace time is running. */
export function lateEvent(expectedAt: Instant, detectedAt: Instant): NewEvent {
  return { type: 'check.late', data: toFacts({ reason: 'late', at: expectedAt, from: 'up', to: 'late' }, detectedAt) }
}

type Happened = Pick<EventFacts, 'reason'> &
  Pick<Notice, 'at' | 'from'> &
  Partial<Pick<Notice, 'downSince' | 'flips' | 'reminder' | 'escalated' | 'silencedFrom'>> & {
    readonly to: ShownStatus
    readonly gap?: Gap | null
  }

function toFacts(
  { reason, at, from, to, downSince = null, flips = null, gap = null, reminder, escalated, silencedFrom }: Happened,
  detectedAt: Instant,
): EventFacts {
  // A check that is notified again is down still.
  const downUntil = reminder === undefined && escalated === undefined ? at : detectedAt
  return {
    reason,
    occurred_at: toIso(at),
    detected_at: toIso(detectedAt),
    status: to,
    previous_status: from,
    down_for_seconds: downSince === null ? null : Math.max(0, Math.round((downUntil - downSince) / 1_000)),
    flips,
    ...(reminder === undefined ? {} : { reminder }),
    ...(escalated === undefined ? {} : { escalated }),
    ...(silencedFrom === undefined ? {} : { silenced_from: toIso(silencedFrom) }),
    gap: gap === null ? null : { started_at: toIso(gap.startedAt), ended_at: toIso(gap.endedAt) },
  }
}
