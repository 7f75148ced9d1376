/**
 * The words of an event, for every kind whose messages people read. Plain text without mark-up: each kind escapes it
 * for its own format. Names of checks and output of jobs are untrusted; characters that would damage a text are removed
 * here.
 */

import type { Event, EventCheck, EventPing, EventType, NotifiedCheck } from '../../domain/event.ts'
import { toIso } from '../../domain/instant.ts'
import { FLAPPING, MOST_MISSED } from '../../domain/limits.ts'
import { cleanOutput, toOneLine } from '../../domain/plain-text.ts'

/** How good or bad an event is, for what a service colours by it. */
export type Tone = 'failure' | 'warning' | 'success' | 'info'

/** Of an event, and of a digest by the worst of its events. */
export const TONES: Readonly<Record<EventType, Tone>> = {
  'check.down': 'failure',
  'check.flapping': 'failure',
  'check.warned': 'warning',
  'check.late': 'warning',
  'check.unknown': 'info',
  'check.paused': 'info',
  'check.resumed': 'info',
  'check.acknowledged': 'info',
  'check.up': 'success',
  'channel.test': 'info',
}

export interface EventText {
  readonly tone: Tone
  /** The name of the check, on one line; empty for a test. */
  readonly name: string
  /** What follows the name in the headline: ` is down`. */
  readonly change: string
  /** `name` and `change`: `Nightly backup is down`. */
  readonly headline: string
  /** Why, and since when: one sentence, which ends without a full stop of ours. */
  readonly reason: string
  /** What a person also wants to know, a line each, such as the last success. Without a full stop of ours. */
  readonly facts: readonly string[]
  /** What people wrote about the check, as they wrote it: the place for a runbook. Null without one, and for a test. */
  readonly description: string | null
  /**
   * Where its check is: `HeartbeatCheck shop/nightly-backup in cluster default, project shop`; of one that follows a CronJob
   * `Job nightly-backup-29384620 of CronJob shop/nightly-backup in cluster default, project shop`. Null for a test.
   */
  readonly location: string | null
  /** Null unless the job wrote something, and it belongs to the event: the output does not explain a pause. */
  readonly output: JobOutput | null
}

export interface JobOutput {
  /** With its ping, unless the event is about that: when a ping is missing, it is the output of the run before. */
  readonly title: string
  readonly text: string
}

/** The title of the output that the event's own ping brought. */
export const OUTPUT = 'Output'
/** The title of the description. */
export const ABOUT = 'About this check'

export function describeEvent(event: Event): EventText {
  if (event.type === 'channel.test') {
    const headline = 'A test of this channel'
    const at = formatInstant(toIso(event.at))
    const reason = `A test was requested at ${at}: the channel works`
    const of = { name: '', change: headline, headline, reason }
    return { tone: TONES[event.type], ...of, facts: [], description: null, location: null, output: null }
  }
  const name = toOneLine(event.check.name)
  const { change, reason } = describeChange(event)
  const headline = `${name}${change}`
  return {
    tone: TONES[event.type],
    name,
    change,
    headline,
    reason,
    facts: listFacts(event),
    description: findDescription(event.check),
    location: locate(event.check),
    output: findOutput(event),
  }
}

function describeChange(event: NotifiedCheck): Pick<EventText, 'change' | 'reason'> {
  const { down_for_seconds: downFor, gap } = event.facts
  const at = formatInstant(event.facts.occurred_at)
  const detail = toOneLine(event.facts.detail ?? '')
  switch (event.type) {
    case 'check.down': {
      const { reminder, escalated } = event.facts
      const still = reminder === undefined && escalated === undefined ? '' : ' still'
      const since = still === '' || downFor === null ? '' : ` after ${formatDuration(downFor)}`
      const inHand = escalated === undefined ? '' : ', not acknowledged'
      return { change: ` is${still} down${since}${inHand}`, reason: explainDown(event, at) }
    }
    case 'check.up':
      return {
        change: ` is up again${downFor === null ? '' : ` after ${formatDuration(downFor)}`}`,
        reason: explainUp(event, at),
      }
    case 'check.paused': {
      // Of a CronJob, a run that a person starts is judged all the same.
      const means = hasRuns(event.check) ? 'no run is expected' : 'sends no notification'
      return {
        change: ' is paused',
        reason: `It was paused at ${at}, and ${means} until it is resumed${detail === '' ? '' : `: ${detail}`}`,
      }
    }
    case 'check.acknowledged':
      return { change: ' is acknowledged', reason: `A person has it since ${at}` }
    case 'check.resumed':
      return { change: ' is watched again', reason: `It was resumed at ${at}` }
    case 'check.flapping':
      return { change: ' is flapping', reason: explainFlapping(event, at) }
    case 'check.warned':
      return {
        change: event.facts.previous_status === 'down' ? ' is up again, with a warning' : ' ended with a warning',
        reason: explainWarning(event, at),
      }
    case 'check.late':
      return { change: ' is late', reason: `${explainLate(event, at)}; its grace time is running` }
    case 'check.unknown': {
      const when =
        gap === null ? 'for a while' : `from ${formatInstant(gap.started_at)} to ${formatInstant(gap.ended_at)}`
      return {
        change: ': we cannot tell whether it ran',
        reason: `We could not ${hasRuns(event.check) ? 'record runs' : 'take pings'} ${when}, so we cannot tell whether the job ran`,
      }
    }
  }
}

function explainUp({ check, lastPing }: NotifiedCheck, at: string): string {
  if (lastPing?.type !== 'warn')
    return hasRuns(check) ? `A run succeeded at ${at}` : `The job reported a success at ${at}`
  return `${hasRuns(check) ? 'A run ended with' : 'The job reported'} a warning${showExitCode(lastPing)} at ${at}`
}

function explainWarning({ check, lastPing, facts }: NotifiedCheck, at: string): string {
  const detail = toOneLine(facts.detail ?? '')
  const [code, because] = detail === '' ? [showExitCode(lastPing), ''] : ['', `: ${detail}`]
  return `${hasRuns(check) ? 'A run' : 'The job'} is done, and a person should look at it: it reported a warning${code} at ${at}${because}`
}

function explainLate({ check }: NotifiedCheck, at: string): string {
  return hasRuns(check) ? `A run should have started at ${at}` : `A ping was expected at ${at}`
}

/** Whether Jobs report its runs, so that no ping is expected. */
const hasRuns = ({ kubernetes }: EventCheck) => kubernetes?.source !== undefined

function explainFlapping({ facts: { flips = null, status } }: NotifiedCheck, at: string): string {
  const window = formatDuration(FLAPPING.windowMs / 1_000)
  const often = flips === null ? 'too often' : `${flips} times within ${window}`
  return `It went down or up ${often}, last ${status} at ${at}; further changes are not notified until it stays the same for ${window}`
}

function explainDown({ facts, check, lastPing }: NotifiedCheck, at: string): string {
  const detail = toOneLine(facts.detail ?? '')
  const because = detail === '' ? '' : `: ${detail}`
  switch (facts.reason) {
    case 'failed':
      // The detail has the exit code, and the container that it is of.
      return `${hasRuns(check) ? 'A run failed' : 'The job reported a failure'}${because === '' ? showExitCode(lastPing) : ''} at ${at}${because}`
    case 'overran':
      return because === ''
        ? `The run took longer than allowed: it should have ended by ${at}`
        : `The run should have ended by ${at}${because}`
    default:
      return hasRuns(check)
        ? `No run started in time: it was due at ${at}${because}`
        : `No ping came in time: it was due at ${at}`
  }
}

/** Not of a success: its exit code is always 0. */
function showExitCode(ping: EventPing | null): string {
  return ping !== null && ping.type !== 'success' && ping.exit_code !== null ? ` with exit code ${ping.exit_code}` : ''
}

function locate({ kubernetes, project }: EventCheck): string {
  if (kubernetes === null) return `Project ${project.slug}`
  const { cluster, namespace, name, source, run } = kubernetes
  if (source !== undefined) {
    const of = run === undefined ? '' : `Job ${run} of `
    return `${of}${source.kind} ${namespace}/${source.name} in cluster ${cluster}, project ${project.slug}`
  }
  return `HeartbeatCheck ${namespace}/${name} in cluster ${cluster}, project ${project.slug}`
}

const HAS_OUTPUT: ReadonlySet<NotifiedCheck['type']> = new Set(['check.down', 'check.up', 'check.warned'])

function findOutput({ type, check, facts, lastPing }: NotifiedCheck): JobOutput | null {
  if (lastPing === null || !HAS_OUTPUT.has(type)) return null
  const text = cleanOutput(lastPing.body ?? '')
  if (text === '') return null
  if (lastPing.created_at === facts.occurred_at) return { title: OUTPUT, text }
  const about = `${lastPing.type}${showExitCode(lastPing)}, ${formatInstant(lastPing.created_at)}`
  return { title: hasRuns(check) ? `Last report (${about})` : `Output of the last ping (${about})`, text }
}

function listFacts({ facts: { silenced_from: silencedFrom, ...known } }: NotifiedCheck) {
  const { last_success_at: lastSuccess, usual_ms: usual, missed_runs: missed } = known
  const facts: string[] = []
  if (silencedFrom !== undefined) facts.push(`Held back by a silence that began at ${formatInstant(silencedFrom)}`)
  if (missed !== undefined)
    facts.push(
      missed === 1 ? 'One run was missed' : `${missed === MOST_MISSED ? 'At least ' : ''}${missed} runs were missed`,
    )
  if (lastSuccess !== undefined) facts.push(`Last success: ${formatInstant(lastSuccess)}`)
  if (usual !== undefined) facts.push(`Usual duration: ${formatDuration(usual / 1_000)}`)
  return facts
}

function findDescription({ description }: EventCheck): string | null {
  const text = cleanOutput(description ?? '').trim()
  return text === '' ? null : text
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const

/** The two largest units, the rest dropped: `2 h 5 min`, `3 d`, `45 s`. */
export function formatDuration(seconds: number): string {
  const first = UNITS.findIndex(([, size]) => seconds >= size)
  if (first < 0) return '0 s'
  const parts: string[] = []
  let rest = seconds
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / size)
    if (count > 0) parts.push(`${count} ${unit}`)
    rest -= count * size
  }
  return parts.join(' ')
}

/** `2026-11-21 03:00:00 UTC`, from an ISO 8601 time in UTC. */
function formatInstant(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}
