/**
 * An event in the words of a person, for Slack, e-mail and Alertmanager. Plain text without mark-up: each channel escapes it in
 * its own way. A check's name and a job's output come from outside and are cleaned here of what has no place in a text.
 */

import type { CheckTold, Event, EventCheck, EventPing } from '../domain/event.ts'
import { toIso } from '../domain/instant.ts'

/** One line that says it all: `Nightly backup is down`. `name`: instead of the check's, for a place that is too small for it. */
export function headline(event: Event, name = findName(event)): string {
  switch (event.type) {
    case 'check.down':
      return `${name} is down`
    case 'check.up': {
      const seconds = event.facts.down_for_seconds
      return seconds === null ? `${name} is up again` : `${name} is up again after ${formatDuration(seconds)}`
    }
    case 'check.paused':
      return `${name} is paused`
    case 'check.resumed':
      return `${name} is watched again`
    case 'check.late':
      return `${name} is late`
    case 'check.unknown':
      return `${name}: we cannot tell whether it ran`
    case 'channel.test':
      return 'A test of this channel'
  }
}

/** The name of its check; empty for a test. */
export function findName(event: Event): string {
  return event.type === 'channel.test' ? '' : toOneLine(event.check.name)
}

/** One sentence, without a full stop: why, and since when. */
export function explain(event: Event): string {
  if (event.type === 'channel.test')
    return `Somebody asked for it at ${formatInstant(toIso(event.at))}: the channel works`
  const at = formatInstant(event.facts.occurred_at)
  switch (event.type) {
    case 'check.down':
      return explainDown(event, at)
    case 'check.up':
      return `The job reported a success at ${at}`
    case 'check.paused':
      return `It was paused at ${at}, and until it is resumed nobody is told when it fails`
    case 'check.resumed':
      return `It was resumed at ${at}`
    case 'check.late':
      return `A ping was expected at ${at}; its grace time is running`
    case 'check.unknown': {
      const { gap } = event.facts
      const when =
        gap === null ? 'for a while' : `from ${formatInstant(gap.started_at)} to ${formatInstant(gap.ended_at)}`
      return `We could not take pings ${when}, so we cannot tell whether the job ran`
    }
  }
}

function explainDown({ facts, lastPing }: CheckTold, at: string): string {
  switch (facts.reason) {
    case 'failed':
      return `The job reported a failure${showExitCode(lastPing)} at ${at}`
    case 'overran':
      return `The run took longer than allowed: it should have ended by ${at}`
    default:
      return `No ping came in time: it was due at ${at}`
  }
}

/** Success pings have exit code 0, which tells nobody anything. */
function showExitCode(ping: EventPing | null): string {
  return ping?.type === 'fail' && ping.exit_code !== null ? ` with exit code ${ping.exit_code}` : ''
}

/** Where its check is to be found: `HeartbeatCheck shop/nightly-backup in cluster default, project shop`. Null for a test. */
export function locate(event: Event): string | null {
  return event.type === 'channel.test' ? null : locateCheck(event.check)
}

function locateCheck({ kubernetes, project }: EventCheck): string {
  if (kubernetes === null) return `Project ${project.slug}`
  const { cluster, namespace, name } = kubernetes
  return `HeartbeatCheck ${namespace}/${name} in cluster ${cluster}, project ${project.slug}`
}

export interface JobOutput {
  /** Which ping it came with: when a ping is missing, it is from the run before. */
  readonly title: string
  readonly text: string
}

/** What the job had to say, when there is something and it belongs to the news: a pause has nothing to do with it. */
export function findOutput(event: Event): JobOutput | null {
  if (event.type !== 'check.down' && event.type !== 'check.up') return null
  const ping = event.lastPing
  const text = cleanOutput(ping?.body ?? '')
  if (ping === null || text === '') return null
  const title = `Output of the last ping (${ping.type}${showExitCode(ping)}, ${formatInstant(ping.created_at)})`
  return { title, text }
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

/** `2026-11-21 03:00:00 UTC`, of an ISO 8601 time in UTC: who reads it may be anywhere. */
function formatInstant(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}

/** They would turn round the text that follows them, our own words included. The marks U+200E and U+200F do not, and stay. */
const DIRECTION_CHANGES = /[\u202a-\u202e\u2066-\u2069]/g
/** A line break in a name would end a subject, or begin a line of its own. */
const BREAKS_AND_CONTROLS = /[\p{Zl}\p{Zp}\p{Cc}]+/gu

/** A name that people gave, as it may stand in a line of text. */
export function toOneLine(text: string): string {
  return text.toWellFormed().replace(DIRECTION_CHANGES, '').replace(BREAKS_AND_CONTROLS, ' ').trim()
}

/** ECMA-48: an escape, [, parameters, a letter. Jobs colour their output when they believe in a terminal. */
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
