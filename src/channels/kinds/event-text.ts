/**
 * The words of an event, for Slack, e-mail and Alertmanager. Plain text without mark-up: each kind of channel escapes it for its
 * own format. Names of checks and output of jobs are untrusted; characters that would damage a text are removed here.
 */

import type { Event, EventCheck, EventPing, NotifiedCheck } from '../../domain/event.ts'
import { toIso } from '../../domain/instant.ts'

export interface EventText {
  /** The name of the check, on one line; empty for a test. */
  readonly name: string
  /** What follows the name in the headline: ` is down`. */
  readonly change: string
  /** `name` and `change`: `Nightly backup is down`. */
  readonly headline: string
  /** Why, and since when: one sentence without a full stop. */
  readonly reason: string
  /** Where its check is: `HeartbeatCheck shop/nightly-backup in cluster default, project shop`. Null for a test. */
  readonly location: string | null
  /** Null unless the job wrote something, and it belongs to the event: the output does not explain a pause. */
  readonly output: JobOutput | null
}

export interface JobOutput {
  /** Which ping it arrived with. When a ping is missing, it is the output of the previous run. */
  readonly title: string
  readonly text: string
}

export function describeEvent(event: Event): EventText {
  if (event.type === 'channel.test') {
    const headline = 'A test of this channel'
    const at = formatInstant(toIso(event.at))
    const reason = `A test was requested at ${at}: the channel works`
    return { name: '', change: headline, headline, reason, location: null, output: null }
  }
  const name = toOneLine(event.check.name)
  const { change, reason } = describeChange(event)
  const headline = `${name}${change}`
  return { name, change, headline, reason, location: locate(event.check), output: findOutput(event) }
}

function describeChange(event: NotifiedCheck): Pick<EventText, 'change' | 'reason'> {
  const { down_for_seconds: downFor, gap } = event.facts
  const at = formatInstant(event.facts.occurred_at)
  switch (event.type) {
    case 'check.down':
      return { change: ' is down', reason: explainDown(event, at) }
    case 'check.up':
      return {
        change: ` is up again${downFor === null ? '' : ` after ${formatDuration(downFor)}`}`,
        reason: `The job reported a success at ${at}`,
      }
    case 'check.paused':
      return {
        change: ' is paused',
        reason: `It was paused at ${at}, and sends no notification until it is resumed`,
      }
    case 'check.resumed':
      return { change: ' is watched again', reason: `It was resumed at ${at}` }
    case 'check.late':
      return { change: ' is late', reason: `A ping was expected at ${at}; its grace time is running` }
    case 'check.unknown': {
      const when =
        gap === null ? 'for a while' : `from ${formatInstant(gap.started_at)} to ${formatInstant(gap.ended_at)}`
      return {
        change: ': we cannot tell whether it ran',
        reason: `We could not take pings ${when}, so we cannot tell whether the job ran`,
      }
    }
  }
}

function explainDown({ facts, lastPing }: NotifiedCheck, at: string): string {
  switch (facts.reason) {
    case 'failed':
      return `The job reported a failure${showExitCode(lastPing)} at ${at}`
    case 'overran':
      return `The run took longer than allowed: it should have ended by ${at}`
    default:
      return `No ping came in time: it was due at ${at}`
  }
}

/** Only of a failure: the exit code of a success is always 0. */
function showExitCode(ping: EventPing | null): string {
  return ping?.type === 'fail' && ping.exit_code !== null ? ` with exit code ${ping.exit_code}` : ''
}

function locate({ kubernetes, project }: EventCheck): string {
  if (kubernetes === null) return `Project ${project.slug}`
  const { cluster, namespace, name } = kubernetes
  return `HeartbeatCheck ${namespace}/${name} in cluster ${cluster}, project ${project.slug}`
}

function findOutput({ type, lastPing }: NotifiedCheck): JobOutput | null {
  if (lastPing === null || (type !== 'check.down' && type !== 'check.up')) return null
  const text = cleanOutput(lastPing.body ?? '')
  if (text === '') return null
  const about = `${lastPing.type}${showExitCode(lastPing)}, ${formatInstant(lastPing.created_at)}`
  return { title: `Output of the last ping (${about})`, text }
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

/** They would reverse the text after them, ours too. The marks U+200E and U+200F do not, and stay. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g
/** A line break in a name would end a subject, or begin a line of its own. */
const BREAKS_AND_CONTROLS = /[\p{Zl}\p{Zp}\p{Cc}]+/gu

/** An untrusted name, made safe for a line of text. */
export function toOneLine(text: string): string {
  return text.toWellFormed().replace(DIRECTION_CHANGES, '').replace(BREAKS_AND_CONTROLS, ' ').trim()
}

/** ECMA-48: an escape, [, parameters, a letter. Jobs colour their output when they assume a terminal. */
const ESCAPE_SEQUENCES = /[^\P{Cc}\n\t\r]\[[0-?]*[ -/]*[@-~]/gu
const CONTROLS = /[^\P{Cc}\n\t]/gu

function cleanOutput(text: string): string {
  return text
    .toWellFormed()
    .replace(ESCAPE_SEQUENCES, '')
    .replace(/\r\n?|[\p{Zl}\p{Zp}]/gu, '\n')
    .replace(CONTROLS, '')
    .replace(DIRECTION_CHANGES, '')
    .replace(/^\s*\n/, '')
    .trimEnd()
}
