/** Statuses, reasons, events and deliveries in words; channels/kinds/event-text.ts names the same reasons. */

import type { DeliveryRecord } from '../../../channels/find-deliveries.ts'
import type { CheckRecord } from '../../../checks/find-checks.ts'
import {
  type Acknowledgement,
  type CheckState,
  type Flip,
  type FlipReason,
  type Instant,
  isFlapping,
  isOpen,
  type ShownStatus,
  shownStatus,
} from '../../../domain/check.ts'
import type { Doer } from '../../../domain/doer.ts'
import type { CheckEventType, EventType } from '../../../domain/event.ts'
import { FLAPPING } from '../../../domain/limits.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import type { RunOutcome } from '../../../domain/runs.ts'
import type { BarOutcome } from '../../../domain/survey.ts'
import { deadlineOf } from '../../../domain/transition.ts'
import { type Html, html, isolated } from '../html.ts'
import { badge } from '../icons.ts'
import { commentWords, pauseWords } from './incident-words.ts'
import { ago, type ClockWords, inWords, roughly } from './time-words.ts'

export const STATUS_WORDS: Readonly<Record<ShownStatus, string>> = {
  new: 'New',
  up: 'Up',
  late: 'Late',
  down: 'Down',
  paused: 'Paused',
}

export function statusBadge(status: ShownStatus): Html {
  return badge(status, STATUS_WORDS[status])
}

export interface StatusFacts {
  readonly state: CheckState
  /** The exit code of the ping that changed the status. Null: none, or not known. */
  readonly exitCode: number | null
  readonly isManaged: boolean
  /** Of a check that follows a CronJob: its Jobs report, and a run is expected to start. Null: the job pings. */
  readonly followed: FollowedFacts | null
  readonly now: Instant
  readonly clock: ClockWords
}

export interface FollowedFacts {
  /** Why its newest run failed, did not start or took too long, in words. Null: not known. */
  readonly detail: string | null
  /** The Job that takes too long or blocks others: it must end before the check can be up. Null: none is known. */
  readonly stuck: StuckJob | null
}

export interface StuckJob {
  readonly job: string
  readonly startedAt: Instant | null
}

/** `Down since 03:12 UTC (2 hours): the job reported exit code 1`. */
export function statusSentence(facts: StatusFacts): string {
  const { state, now, clock } = facts
  const status = shownStatus(state, now)
  const since = status === 'late' ? state.expectedAt! : state.since
  return `${STATUS_WORDS[status]} since ${clock(since)} (${roughly(now - since)}): ${reasonWords(facts, status)}`
}

/** The words of a reason, by where they stand. */
interface ReasonWords {
  /** On the page of the check, after its status: no capital at the start, no full stop. */
  readonly why: (facts: StatusFacts) => string
  /** In the list of checks, around the time. */
  readonly row: readonly [before: string, after?: string]
  /** In the history of the check. */
  readonly flip: string
}

const NO_RESULT = ', no result yet'
const NOT_KNOWN = { why: () => 'the reason is no longer in the history', row: ['since '] } as const

const REASONS: Readonly<Record<FlipReason, ReasonWords>> = {
  created: {
    why: () => 'it was created, and the job has not reported yet',
    row: ['created ', NO_RESULT],
    flip: 'created',
  },
  first_success: { why: () => 'the job reported a success', row: ['first success '], flip: 'the first success' },
  missed: {
    why: ({ state, clock }) => `no ping came in time; it was due at ${clock(state.since)}`,
    row: ['due ', ', no ping came'],
    flip: 'no ping came in time',
  },
  failed: {
    why: ({ exitCode }) =>
      exitCode === null ? 'the job reported a failure' : `the job reported exit code ${exitCode}`,
    row: ['failed '],
    flip: 'the job reported a failure',
  },
  overran: {
    why: ({ state, clock }) => `the run took longer than allowed, and should have ended by ${clock(state.since)}`,
    row: ['should have ended '],
    flip: 'the run took longer than allowed',
  },
  recovered: {
    why: () => 'the job reported a success after it was down',
    row: ['recovered '],
    flip: 'the job reported a success',
  },
  paused: {
    why: ({ state: { pause }, isManaged, clock }) =>
      pause === null
        ? `${isManaged ? 'it was paused or suspended' : 'it was paused'}, and sends no notification`
        : `it was paused ${pauseWords(pause, clock)}, and sends no notification${commentWords(pause)}`,
    row: ['paused '],
    flip: 'paused',
  },
  resumed: {
    why: () => 'it was resumed, and the job has not reported since',
    row: ['resumed ', NO_RESULT],
    flip: 'resumed',
  },
  outage: { ...NOT_KNOWN, flip: 'this service could take no pings, so it is not known whether the job ran' },
}

/** A check that follows a CronJob expects no pings. The detail is a sentence of its own, without a full stop. */
const FOLLOWED: Readonly<Record<FlipReason, ReasonWords>> = {
  created: { ...REASONS.created, why: () => 'it was created, and no run has ended yet' },
  first_success: {
    ...REASONS.first_success,
    why: () => 'a run succeeded',
    flip: 'the first run that succeeded',
  },
  missed: {
    why: ({ state, clock, followed }) =>
      `no run had started by ${clock(state.since)}${followed?.detail ? `: ${followed.detail}` : ''}`,
    row: ['due ', ', no run started'],
    flip: 'no run started in time',
  },
  failed: {
    ...REASONS.failed,
    why: ({ exitCode, followed }) =>
      followed?.detail ?? (exitCode === null ? 'its Job failed' : `its Job failed with exit code ${exitCode}`),
    flip: 'a run failed',
  },
  overran: { ...REASONS.overran, why: (facts) => facts.followed?.detail ?? REASONS.overran.why(facts) },
  recovered: { ...REASONS.recovered, why: () => 'a run succeeded after it was down', flip: 'a run succeeded' },
  paused: {
    ...REASONS.paused,
    why: (facts) =>
      facts.state.pause?.until == null
        ? `${facts.followed?.detail ?? 'its CronJob is suspended or does not exist, or it was paused'}; it sends no notification`
        : REASONS.paused.why(facts),
  },
  resumed: { ...REASONS.resumed, why: () => 'it was resumed, and no run has ended since' },
  outage: { ...NOT_KNOWN, flip: 'this service could record no runs, so it is not known whether the job ran' },
}

const reasonsOf = (isFollowed: boolean) => (isFollowed ? FOLLOWED : REASONS)

/** Why the check has its status: no capital at the start, no full stop. */
export function reasonWords(facts: StatusFacts, status: ShownStatus): string {
  const { state, followed } = facts
  if (status === 'late')
    return `${followed === null ? 'a ping was expected' : 'a run should have started'}, and the grace time is running`
  return (state.reason === null ? NOT_KNOWN : reasonsOf(followed !== null)[state.reason]).why(facts)
}

/** Since when the check has its status, and why: a few words. */
export function rowWords(
  { state, spec }: Pick<CheckRecord, 'state' | 'spec'>,
  status: ShownStatus,
  now: Instant,
): Html {
  if (status === 'late') return html`expected ${ago(state.expectedAt!, now)}`
  const { row } = state.reason === null ? NOT_KNOWN : reasonsOf(spec.jobArea !== null)[state.reason]
  const { pause } = state
  const end = pause === null || pause.until === null ? '' : html`, resumes ${ago(pause.until, now)}`
  return html`${row[0]}${ago(state.since, now)}${row[1]}${end}${pause === null ? '' : commentWords(pause)}`
}

/** Why a status changed, or what was only counted. */
export function flipWords({ reason, from, to }: Pick<Flip, 'reason' | 'from' | 'to'>, isFollowed: boolean): string {
  const words = reasonsOf(isFollowed)[reason].flip
  if (from !== to || reason === 'outage') return words
  return to === 'down'
    ? `${words}, while the check was down`
    : `${words}; it was counted, and the check is not down yet`
}

/** The change of a status, or a word for what changed none. */
export function flipBadge({ reason, from, to }: Pick<Flip, 'reason' | 'from' | 'to'>): Html {
  if (reason === 'outage') return badge('new', 'Not known')
  return from === to ? badge('late', reason === 'missed' ? 'Missed' : 'Took too long') : statusBadge(to)
}

/** How a run ended, or a deadline without one. */
export const OUTCOME_WORDS: Readonly<Record<RunOutcome | BarOutcome, string>> = {
  success: 'succeeded',
  warn: 'ended with a warning',
  fail: 'failed',
  running: 'running',
  unfinished: 'not finished',
  missed: 'missed',
  overran: 'took too long',
  outage: 'unknown, while the service was down',
}

/** `28 succeeded, 1 failed`. */
export function countOutcomes(runs: readonly { readonly outcome: keyof typeof OUTCOME_WORDS }[]): string {
  return (Object.keys(OUTCOME_WORDS) as (keyof typeof OUTCOME_WORDS)[])
    .map((outcome) => [runs.filter((run) => run.outcome === outcome).length, OUTCOME_WORDS[outcome]] as const)
    .filter(([count]) => count > 0)
    .map(([count, words]) => `${count} ${words}`)
    .join(', ')
}

/** What is expected next, in whole sentences. `scheduledAt`: of a check that is down; null: not known. */
export function nextSentence({
  state,
  followed,
  now,
  clock,
  scheduledAt,
}: Pick<StatusFacts, 'state' | 'followed' | 'now' | 'clock'> & { readonly scheduledAt: Instant | null }): string {
  const status = shownStatus(state, now)
  const deadline = deadlineOf(state)
  const by = deadline === null ? null : `${clock(deadline)} (${inWords(deadline, now)})`
  const isFollowed = followed !== null
  const end = state.pause?.until ?? null
  if (status === 'paused' && end !== null)
    return `It resumes by itself at ${clock(end)} (${inWords(end, now)}). Until then ${isFollowed ? 'its runs are recorded, and alert no one' : 'nothing is expected, and pings are kept'}.`
  if (status === 'paused')
    return isFollowed
      ? 'No run is expected until it is resumed. If a run that a person starts fails or takes too long, the check is down.'
      : 'Nothing is expected until it is resumed. Pings are kept.'
  if (status === 'down') {
    const stuck = followed?.stuck ?? null
    if (stuck !== null) return stuckSentences(stuck, { now, clock })
    const ending = followed === null ? 'The next success ends this' : 'The next run that succeeds ends this'
    if (scheduledAt === null) return `${ending}.`
    return `${ending}; by its schedule the job runs next at ${clock(scheduledAt)} (${inWords(scheduledAt, now)}).`
  }
  if (by === null) return isFollowed ? 'Nothing is expected.' : 'Nothing is expected before the first ping.'
  const isRunning = state.runs.some((run) => isOpen(run, now))
  if (status === 'late') return `Down at ${by} unless ${isFollowed ? 'a run starts' : 'the job reports a success'}.`
  if (state.expectedAt === null)
    return isRunning ? `The run should end by ${by}; then the check is down.` : `Down at ${by} unless the job reports.`
  const what = isFollowed ? 'A run should start' : 'A success is expected'
  const expected = `${what} at ${clock(state.expectedAt)} (${inWords(state.expectedAt, now)}).`
  return deadline === state.dueAt
    ? `${expected} Without one the check is down at ${clock(deadline!)}.`
    : `${expected} The run should end by ${by}; then the check is down.`
}

/** Not when its job runs next: with concurrencyPolicy Forbid, which is not known here, the schedule has no say. */
function stuckSentences({ job, startedAt }: StuckJob, { now, clock }: Pick<StatusFacts, 'now' | 'clock'>): string {
  const since = startedAt === null ? '' : `, since ${clock(startedAt)} (${roughly(now - startedAt)})`
  return `Job ${toOneLine(job)} still runs${since}. Its success ends this, or that of a later run; with concurrencyPolicy Forbid none starts before it has ended.`
}

/** Null: it does not flap. */
export function flappingSentence(state: CheckState): string | null {
  if (!isFlapping(state)) return null
  const window = `${FLAPPING.windowMs / 60_000} minutes`
  return `It is flapping: it went down and up more than ${FLAPPING.changes} times within ${window}. Changes are not notified until it stays the same for ${window}.`
}

/** Null: the last completion was none. */
export function warningSentence({ lastOutcome }: CheckState): string | null {
  return lastOutcome === 'warn' ? 'Its last run ended with a warning: a person should look at what it reported.' : null
}

/** `Acknowledged by ada@example.com since 03:12 UTC (2 hours), until it is up again.` */
export function acknowledgedSentence(
  { by, at, until }: Acknowledgement,
  { now, clock }: Pick<StatusFacts, 'now' | 'clock'>,
): Html {
  const end = until === null ? 'it is up again' : `${clock(until)} (${inWords(until, now)})`
  return html`Acknowledged by ${doerWords(by)} since ${clock(at)} (${roughly(now - at)}), until ${end}.`
}

/** A name that came with a link is what its person typed. */
export function doerWords({ kind, name }: Doer): Html {
  const shown = name === null ? null : isolated(toOneLine(name))
  if (kind === 'link') return shown === null ? html`the link of a message` : html`${shown} (by the link of a message)`
  return html`${kind === 'api_key' ? 'the API key ' : ''}${shown ?? 'Kubernetes'}`
}

/** `99.97 %`, `100 %`. Rounded down: 100 % is never said of a check that was down. */
export function shareWords(share: number): string {
  if (share === 1) return '100 %'
  // A binary fraction can be a little less than its decimal one: 0.57 * 10,000 is 5,699.999...
  const percent = Math.min(Math.floor(share * 10_000 + 1e-6), 9_999) / 100
  return `${Number.isInteger(percent) ? percent : percent.toFixed(2)} %`
}

export const EVENT_WORDS: Readonly<Record<EventType, string>> = {
  'check.down': 'Down',
  'check.up': 'Up again',
  'check.paused': 'Paused',
  'check.acknowledged': 'Acknowledged',
  'check.resumed': 'Resumed',
  'check.flapping': 'Flapping',
  'check.warned': 'Warning',
  'check.late': 'Late',
  'check.unknown': 'Outcome not known',
  'channel.test': 'Test',
}

/** When each event is sent, for the choice of a channel. */
export const EVENT_MEANINGS: Readonly<Record<CheckEventType, string>> = {
  'check.down': 'a job failed, took too long, or did not report in time',
  'check.up': 'the first success after it was down',
  'check.paused': 'a user or a manifest paused the check',
  'check.resumed': 'the check is watched again',
  'check.flapping': 'it went down and up too often; then nothing more until it stays the same',
  'check.warned': 'a job is done, and a person should look at it; once in 24 hours while it goes on',
  'check.late': 'a report is overdue, and its grace time runs',
  'check.unknown': 'this service was down when the job should have reported',
}

const STATUSES = {
  delivered: { look: 'up', word: 'Delivered' },
  failed: { look: 'down', word: 'Failed' },
  pending: { look: 'late', word: 'Pending' },
  suppressed: { look: 'paused', word: 'Not sent' },
} as const satisfies Record<DeliveryRecord['status'], { look: 'up' | 'down' | 'late' | 'paused'; word: string }>

export const deliveryWord = (status: DeliveryRecord['status']): string => STATUSES[status].word

export function deliveryBadge(status: DeliveryRecord['status']): Html {
  const { look, word } = STATUSES[status]
  return badge(look, word)
}
