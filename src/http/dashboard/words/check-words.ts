/** What the page of a check says about its status, with the reasons that notifications name (channels/kinds/event-text.ts). Plain text. */

import {
  type CheckState,
  type Instant,
  isFlapping,
  isOpen,
  type ShownStatus,
  shownStatus,
} from '../../../domain/check.ts'
import { FLAPPING } from '../../../domain/limits.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import { isTimeZone } from '../../../domain/time-zone.ts'
import { deadlineOf } from '../../../domain/transition.ts'
import { STATUS_WORDS } from './words.ts'

/** What is said of a time: its clock time, and its exact form. */
export type ClockWords = (at: Instant) => string

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
  /** The Job that must end before the check can be up again: it takes too long, or blocks others. Null: none is known. */
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

/** Why the check has its status: no capital at the start, no full stop. */
export function reasonWords(facts: StatusFacts, status: ShownStatus): string {
  const { state, exitCode, isManaged, followed, clock } = facts
  if (followed !== null) return followedReasonWords(facts, followed, status)
  if (status === 'late') return 'a ping was expected, and the grace time is running'
  switch (state.reason) {
    case 'failed':
      return exitCode === null ? 'the job reported a failure' : `the job reported exit code ${exitCode}`
    case 'overran':
      return `the run took longer than allowed, and should have ended by ${clock(state.since)}`
    case 'missed':
      return `no ping came in time; it was due at ${clock(state.since)}`
    case 'recovered':
      return 'the job reported a success after it was down'
    case 'first_success':
      return 'the job reported a success'
    case 'paused':
      return `${isManaged ? 'it was paused or suspended' : 'it was paused'}, and sends no notification`
    case 'resumed':
      return 'it was resumed, and the job has not reported since'
    case 'created':
      return 'it was created, and the job has not reported yet'
    case null:
      return 'the reason is no longer in the history'
  }
}

/** The same of a check that follows a CronJob. The detail is a sentence of its own, without a full stop. */
function followedReasonWords(facts: StatusFacts, { detail }: FollowedFacts, status: ShownStatus): string {
  const { state, exitCode, clock } = facts
  if (status === 'late') return 'a run should have started, and the grace time is running'
  switch (state.reason) {
    case 'failed':
      return detail ?? (exitCode === null ? 'its Job failed' : `its Job failed with exit code ${exitCode}`)
    case 'overran':
      return detail ?? reasonWords({ ...facts, followed: null }, status)
    case 'missed':
      return `no run had started by ${clock(state.since)}${detail === null ? '' : `: ${detail}`}`
    case 'recovered':
      return 'a run succeeded after it was down'
    case 'first_success':
      return 'a run succeeded'
    case 'paused':
      return `${detail ?? 'its CronJob is suspended or does not exist, or it was paused'}; it sends no notification`
    case 'resumed':
      return 'it was resumed, and no run has ended since'
    case 'created':
      return 'it was created, and no run has ended yet'
    default:
      return reasonWords({ ...facts, followed: null }, status)
  }
}

/** What is expected next, and until when: whole sentences. `scheduledAt`: the next time of the schedule, for a check that is down; null: not known. */
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

/** When its job runs next is not said: with concurrencyPolicy Forbid, which is not known here, the schedule has no say. */
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

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const

/** `2 hours`, `1 day`, `less than a minute`: the largest unit, the rest dropped. */
export function roughly(ms: number): string {
  const found = UNITS.find(([, size]) => ms >= size)
  if (found === undefined) return 'less than a minute'
  const [unit, size] = found
  const count = Math.floor(ms / size)
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

/** `in 2 hours`, `now` at and after its time. */
function inWords(at: Instant, now: Instant): string {
  return at <= now ? 'now' : `in ${roughly(at - now)}`
}

/**
 * Times as the clocks of a zone show them: `03:12 CET` of today, `21 Nov, 03:12 CET` of this year, else with the year. In UTC where this
 * machine does not know the zone.
 */
export function clockOf(zone: string, now: Instant): ClockWords {
  const { time, date, year } = formatsOf(isTimeZone(zone) ? zone : 'UTC')
  const [today, thisYear] = [year.format(now) + date.format(now), year.format(now)]
  return (at) => {
    const [inYear, onDay] = [year.format(at), date.format(at)]
    if (inYear + onDay === today) return time.format(at)
    return `${onDay}${inYear === thisYear ? '' : ` ${inYear}`}, ${time.format(at)}`
  }
}

interface Formats {
  readonly time: Intl.DateTimeFormat
  readonly date: Intl.DateTimeFormat
  readonly year: Intl.DateTimeFormat
}

/** Making one takes 50 times as long as using it. Bounded by the number of zones. */
const formats = new Map<string, Formats>()

function formatsOf(zone: string): Formats {
  let found = formats.get(zone)
  if (found === undefined) {
    const format = (options: Intl.DateTimeFormatOptions) =>
      new Intl.DateTimeFormat('en-GB', { ...options, timeZone: zone })
    found = {
      time: format({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZoneName: 'short' }),
      date: format({ day: 'numeric', month: 'short' }),
      year: format({ year: 'numeric' }),
    }
    formats.set(zone, found)
  }
  return found
}

/** `99.97 %`, `100 %`. Rounded down: 100 % is never said of a check that was down. */
export function shareWords(share: number): string {
  if (share === 1) return '100 %'
  // A binary fraction can be a little less than its decimal one: 0.57 * 10,000 is 5,699.999...
  const percent = Math.min(Math.floor(share * 10_000 + 1e-6), 9_999) / 100
  return `${Number.isInteger(percent) ? percent : percent.toFixed(2)} %`
}
