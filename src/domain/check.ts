/**
 * The vocabulary. One word per idea, everywhere: code, API, metrics, logs (design, section 2).
 *
 * check       one monitored job: its spec, its state, its history
 * spec        what people configure: schedule, grace, longest run time
 * ping        one call of a job to the ping API: success, start, fail or log
 * completion  a ping that ends a run: success or fail, an exit code included
 * run         one execution of the job, opened by a start ping, closed by a completion
 * expected    when the next completion is expected
 * due         expected + grace; with open runs the earliest moment counts: the deadline
 * flip        a change of the stored status, with its reason
 * gap         an interval in which the service could take no pings
 * outage      the history entry that says: a gap hid this interval, we cannot tell
 *
 * Instants are milliseconds since the epoch, UTC; lengths of time are milliseconds too and say so (`graceMs`).
 */

import type { Cron } from './cron.ts'
import { RUN_MEMORY_MS } from './limits.ts'

export type Instant = number

/** The name of a cluster that was given none. With it, names that hold a cluster's name leave it out. */
export const DEFAULT_CLUSTER = 'default'

/** Stored rows hold the place of a word in these three lists: only append, since a new order changes their meaning. */
export const STATUSES = ['new', 'up', 'down', 'paused'] as const
/** What is stored. `late` is derived when a check is read (`shownStatus`); running is a separate fact. */
export type StoredStatus = (typeof STATUSES)[number]
export const SHOWN_STATUSES = ['new', 'up', 'late', 'down', 'paused'] as const
export type ShownStatus = (typeof SHOWN_STATUSES)[number]

export const PING_TYPES = ['success', 'start', 'fail', 'log'] as const
export type PingType = (typeof PING_TYPES)[number]

/** How a ping came in. */
export const PING_SOURCES = ['http'] as const
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
}

/** How many tags a check has at most, and the shape of each. */
export const TAGS = { max: 20, shape: '[A-Za-z0-9_.:/-]{1,50}' } as const

/** The texts of a check that was created with a name alone. */
export const NO_TEXTS: Omit<CheckTexts, 'name'> = { description: null, tags: [] }

/** All of the configuration that decides when a check goes down. */
export interface CheckSpec {
  readonly schedule: Schedule
  readonly graceMs: number
  /** How long one run may take after its start ping; null: only completions count. */
  readonly maxRuntimeMs: number | null
}

/** A run that was started and not yet closed. `id` is null for the one run that was started without a run id. */
export interface Run {
  readonly id: string | null
  readonly startedAt: Instant
  /** The moment at which the run has taken too long; null without `maxRuntimeMs`. */
  readonly deadlineAt: Instant | null
}

/** All that the state machine reads and writes. */
export interface CheckState {
  readonly status: StoredStatus
  /** When the status became what it is: the time of the last flip. */
  readonly since: Instant
  /** The last completion. */
  readonly lastPingAt: Instant | null
  readonly lastSuccessAt: Instant | null
  /** How long the last completion's run took; null when unknown. */
  readonly lastDurationMs: number | null
  readonly lastStartAt: Instant | null
  /** Both null: nothing is expected (not armed, down, paused, or an open run stands for the schedule). */
  readonly expectedAt: Instant | null
  readonly dueAt: Instant | null
  readonly runs: readonly Run[]
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

/** The status that people see. `now` at or past due is still `late` until the evaluator has written the flip. */
export function shownStatus(state: Pick<CheckState, 'status' | 'expectedAt'>, now: Instant): ShownStatus {
  return state.status === 'up' && state.expectedAt !== null && now >= state.expectedAt ? 'late' : state.status
}

/** A run that took too long is closed, though remembered so that its late completion still gets a duration. */
export function isOpen(run: Run, now: Instant): boolean {
  return run.deadlineAt === null ? now - run.startedAt < RUN_MEMORY_MS : now < run.deadlineAt
}
