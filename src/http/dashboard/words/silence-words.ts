/** Silences in words. */

import type { SilenceRecord } from '../../../silences/find-silences.ts'
import { type Html, html, isolated } from '../html.ts'
import { scheduleWords } from './schedule-words.ts'
import { doerWords, type StatusFacts } from './status-words.ts'
import { inWords, spellDuration } from './time-words.ts'

type Clock = Pick<StatusFacts, 'now' | 'clock'>

/** `Silenced until 05:00 CET (in 2 hours) by ada@example.com (Updates of the databases): no channel is notified.` */
export function silencedSentence({ activeUntil, createdBy, comment }: SilenceRecord, { now, clock }: Clock): Html {
  const why = comment === '' ? '' : html` (${isolated(comment)})`
  return html`Silenced until ${clock(activeUntil!)} (${inWords(activeUntil!, now)}) by ${doerWords(createdBy)}${why}: no channel is notified.`
}

/** `21 Nov, 03:00 UTC to 21 Nov, 05:00 UTC`; `At 03:00 on Sunday, Berlin, for 2 hours`. */
export function silenceTimes(
  { startsAt, endsAt, schedule, timeZone, dialect, durationSeconds }: SilenceRecord,
  clock: Clock['clock'],
): string {
  if (schedule === null) return `${clock(startsAt!)} to ${clock(endsAt!)}`
  const slots = scheduleWords({ periodSeconds: null, schedule, timeZone, dialect })
  return `${slots}, for ${spellDuration(durationSeconds!)}`
}
