/**
 * The vocabulary: one word per idea, everywhere (docs/internals/glossary.md). Instants are milliseconds since the
 * epoch, UTC; lengths of time are milliseconds too and say so (`graceMs`).
 */

import type { Cron } from './cron.ts'
import type { Doer } from './doer.ts'
import type { Labels } from './labels.ts'
import { RUN_MEMORY_MS } from './limits.ts'

export type Instant = number

/** The name of a cluster that was given none. With it, names that hold a cluster's name leave it out. */
export const DEFAULT_CLUSTER = 'default'

/** Stored rows hold the place of a word in these lists: only append, since a new order changes their meaning. */
export const STATUSES = ['new', 'up', 'down', 'paused'] as const
/** What is stored. `late` is derived when a check is read (`shownStatus`); running is a separate fact. */
export type StoredStatus = (typeof STATUSES)[number]
export const SHOWN_STATUSES = ['new', 'up', 'late', 'down', 'paused'] as const
export type ShownStatus = (typeof SHOWN_STATUSES)[number]

export const PING_TYPES = ['success', 'start', 'fail', 'log', 'warn'] as const
export type PingType = (typeof PING_TYPES)[number]
/** The types that end a run. A warning: the job is done, and a person should look at it. */
export const COMPLETIONS = ['success', 'warn', 'fail'] as const satisfies PingType[]
export type Completion = (typeof COMPLETIONS)[number]

const COMPLETING: ReadonlySet<string> = new Set(COMPLETIONS)
export function isCompletion<T extends string>(type: T): type is T & Completion {
  return COMPLETING.has(type)
}

/** How a ping came in: over the ping API, or as the report of a Job. */
export const PING_SOURCES = ['http', 'job'] as const
export type PingSource = (typeof PING_SOURCES)[number]

export const FLIP_REASONS = [
  'created',
  'first_success',
  'missed',
  'failed',
  'overran',
  'recovered',
  'paused',
  'resumed',
  /** Not a change of status: the history entry for an interval that our own downtime hid. */
  'outage',
] as const
export type FlipReason = (typeof FLIP_REASONS)[number]

/** Why a check has its status: the reason of the last flip that changed it. */
export type StatusReason = Exclude<FlipReason, 'outage'>
/** The reasons of the flips that lead to each status. */
export const REASONS_OF = {
  new: ['created', 'resumed'],
  up: ['first_success', 'recovered'],
  down: ['missed', 'failed', 'overran'],
  paused: ['paused'],
} as const satisfies Record<StoredStatus, readonly StatusReason[]>
export type DownReason = (typeof REASONS_OF.down)[number]
export const STATUS_REASONS = Object.values(REASONS_OF).flat()

export const MANAGERS = ['api', 'kubernetes'] as const
export type Manager = (typeof MANAGERS)[number]

export type Schedule =
  | { readonly kind: 'period'; readonly periodMs: number }
  | { readonly kind: 'cron'; readonly cron: Cron }

/** What people write about a check for people. The state machine does not read it. */
export interface CheckTexts {
  readonly name: string
  readonly description: string | null
  /** Each once, in the order that people gave them. */
  readonly tags: string[]
  readonly labels: Labels
  /**
   * Ids of the channels that it notifies, each once; null: all of its project and of its organization. Null too of a
   * declared check.
   */
  readonly channels: string[] | null
  /**
   * Ids of the checks that it depends on, each once: while one of them is down, it does not notify that it is down too
   * (circumstances.ts).
   */
  readonly dependsOn: string[]
}

/** How many tags a check has at most, and the shape of each. */
export const TAGS = { max: 20, shape: '[A-Za-z0-9_.:/-]{1,50}' } as const

/** The texts of a check that was created with a name alone. */
export const NO_TEXTS: Omit<CheckTexts, 'name'> = {
  description: null,
  tags: [],
  labels: {},
  channels: null,
  dependsOn: [],
}

/** All of the configuration that decides when a check goes down. */
export interface CheckSpec {
  readonly schedule: Schedule
  readonly graceMs: number
  /** How long one run may take after its start ping; null: only completions count. */
  readonly maxRuntimeMs: number | null
  /**
   * What a slot of the schedule must see in time. `start`: of a check that follows a source, whose Jobs report each run
   * (followed.ts).
   */
  readonly awaits: 'completion' | 'start'
  /** Whether a completion resumes the check when it is paused. False of a check that follows a source. */
  readonly resumesOnPing: boolean
  /** So many fails in a row take the check down (thresholds.ts). */
  readonly failuresBeforeDown: number
  /** So many intervals in a row without a run that ended in time take the check down. */
  readonly missesBeforeDown: number
  /**
   * While the check is down, its recipients are notified again each time this has passed (reminders.ts); null: they are
   * not.
   */
  readonly remindEveryMs: number | null
  /** While the check is down, its recipients are notified again at each further run that fails or is missed. */
  readonly remindsOnEachRun: boolean
}

/** That a person has an incident in hand: until it ends, or until a time. */
export interface Acknowledgement {
  readonly by: Doer
  readonly at: Instant
  /** Null: until the incident ends. */
  readonly until: Instant | null
  readonly comment: string | null
}

/** What keeps a check quiet whose status its recipients do not know (circumstances.ts). */
export interface Hold {
  readonly by: 'silence' | 'dependency'
  /** Of the silence, or of the check that this one depends on. */
  readonly id: string
  /** When the silence began, or the first withheld notification. */
  readonly from: Instant
  /** When the first silence began that has kept it quiet until now, with or without others after it; null: none has. */
  readonly silencedFrom: Instant | null
  /** When the cause is read again: at its end, if that is known. */
  readonly lookAt: Instant
}

/**
 * A check, and when its incident began (`CheckState.incidentSince`, whole milliseconds): what the link of a message
 * names.
 */
export interface Incident {
  readonly checkId: string
  readonly since: Instant
}

/** How far the open incident was escalated (escalation.ts). */
export interface Escalation {
  /** The largest `after_seconds` of the channels that were notified of it, in milliseconds. */
  readonly upTo: number
  /** When it is looked at next; null: no further channel waits for that. */
  readonly dueAt: Instant | null
}

/** What a pause says of itself. */
export interface Pause {
  readonly by: Doer
  /** When the check resumes by itself; null: when a call or the resource resumes it. */
  readonly until: Instant | null
  readonly comment: string | null
}

/** A run that was started and not yet closed. `id` is null for the one run that was started without a run id. */
export interface Run {
  readonly id: string | null
  readonly startedAt: Instant
  /** The moment at which the run has taken too long; null without `maxRuntimeMs`. */
  readonly deadlineAt: Instant | null
  /** Only of a Job: the slot that it is for, or a later one that was satisfied when it started. */
  readonly slotAt?: Instant
  /** It took too long, and its interval counts as missed (thresholds.ts), whenever it ends. */
  readonly isCounted?: true
  /**
   * Only of a Job: its container sent a fail or a warning itself, and no success since. Then the Job's own success or
   * warning is a log.
   */
  readonly isOverruled?: true
}

/** All that the state machine reads and writes. */
export interface CheckState {
  readonly status: StoredStatus
  /** When the status became what it is: the time of the last flip. */
  readonly since: Instant
  /** The reason of the last flip; null where none is stored. */
  readonly reason: StatusReason | null
  /** The last completion. */
  readonly lastPingAt: Instant | null
  readonly lastOutcome: Completion | null
  /** The last completion that is no fail. */
  readonly lastSuccessAt: Instant | null
  /** How long the last completion's run took; null when unknown. */
  readonly lastDurationMs: number | null
  readonly lastStartAt: Instant | null
  /** Both null: nothing is expected (not armed, down, paused, or an open run stands for the schedule). */
  readonly expectedAt: Instant | null
  readonly dueAt: Instant | null
  readonly runs: readonly Run[]
  /** How many pings were stored since the check was created. */
  readonly pingsTotal: number
  /** Fails since the last success or warning, and intervals since the last run that ended in time (thresholds.ts). */
  readonly consecutiveFailures: number
  readonly consecutiveMisses: number
  /** Of a paused check; null: who paused it is not known, or it is not paused. */
  readonly pause: Pause | null
  /** When the check went down, as long as its recipients wait for check.up: an incident is open. */
  readonly incidentSince: Instant | null
  /**
   * When the last changes into and out of `down` were notified, oldest first (quiet.ts). None while the check flaps.
   */
  readonly changes: readonly Instant[]
  /** While the check is quiet: the status that its recipients know. Null: they know its status. */
  readonly notified: StoredStatus | null
  /** While the check flaps: when it stops, if it does not change again. Null: it does not flap. */
  readonly quietAt: Instant | null
  /** Null: neither a silence nor another check keeps it quiet. */
  readonly hold: Hold | null
  /** When the recipients were last notified that the check is down (reminders.ts); null: they were not. */
  readonly downNotifiedAt: Instant | null
  /** Of the open incident; null: no one has acknowledged it. */
  readonly acknowledged: Acknowledgement | null
  /** Null: without an open incident, and while no channel with `after_seconds` has to do with it. */
  readonly escalation: Escalation | null
  /** How many reminders of this incident were sent. */
  readonly reminders: number
  /** When the last warnings and reminders of runs were notified, oldest first (repeats.ts). */
  readonly repeats: readonly Instant[]
  /** When the last of the warnings since the last other completion was notified; null: none was (warning.ts). */
  readonly warnedAt: Instant | null
}

export interface Gap {
  readonly startedAt: Instant
  readonly endedAt: Instant
}

export interface Flip {
  readonly from: StoredStatus | null
  readonly to: StoredStatus
  readonly reason: FlipReason
  /** When it became true: a missed ping is dated at its deadline, not at its detection. */
  readonly at: Instant
}

/** False of an entry that only says what was counted, or what our own downtime hid. */
export function isChange({ from, to }: Pick<Flip, 'from' | 'to'>): boolean {
  return from !== to
}

/** The status that people see. `now` at or past due is still `late` until the evaluator has written the flip. */
export function shownStatus(state: Pick<CheckState, 'status' | 'expectedAt'>, now: Instant): ShownStatus {
  return state.status === 'up' && state.expectedAt !== null && now >= state.expectedAt ? 'late' : state.status
}

/** The acknowledgement of the incident that holds; null: none does. */
export function acknowledgementAt(
  { acknowledged }: Pick<CheckState, 'acknowledged'>,
  now: Instant,
): Acknowledgement | null {
  return acknowledged !== null && (acknowledged.until === null || now < acknowledged.until) ? acknowledged : null
}

export function isFlapping({ quietAt }: Pick<CheckState, 'quietAt'>): boolean {
  return quietAt !== null
}

/** Whether it is in progress, as far as is known: the end of a Job's run is reported, however long it takes. */
export function isRunning(run: Run, now: Instant): boolean {
  return isOpen(run, now) || (run.slotAt !== undefined && now - run.startedAt < RUN_MEMORY_MS)
}

/** A run that took too long is closed, though remembered so that its late completion still gets a duration. */
export function isOpen(run: Run, now: Instant): boolean {
  return run.deadlineAt === null ? now - run.startedAt < RUN_MEMORY_MS : now < run.deadlineAt
}
