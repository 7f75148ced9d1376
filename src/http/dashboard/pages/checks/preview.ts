/** What a schedule means, while the user types it: in words, and its next times. */

import type { Instant } from '../../../../domain/check.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { type Html, html } from '../../html.ts'
import { nextSlots, scheduleWords } from '../../words/schedule-words.ts'
import { ago, everyWords, parseDuration, spellDuration, timeInZone } from '../../words/time-words.ts'
import { DEFAULT_ZONE, LABELS, readCron, type Values } from './check-values.ts'

type Typed = Pick<Values, 'schedule' | 'time_zone' | 'period_seconds' | 'grace_seconds'>

const TIMES = 5

/** The content of `#preview`. */
export function renderPreview(typed: Typed, now: Instant): Html {
  return typed.schedule.trim() === '' ? previewPeriod(typed) : previewSchedule(typed, now)
}

function previewSchedule({ schedule, time_zone }: Typed, now: Instant): Html {
  const texts = {
    periodSeconds: null,
    schedule: schedule.trim(),
    timeZone: time_zone.trim() || DEFAULT_ZONE,
    dialect: 'cron',
  } as const
  const read = readCron(texts)
  if ('faults' in read) return html`${Object.values(read.faults).map((fault) => html`<p class="fault">${fault}</p>`)}`
  const times = nextSlots(read.cron, now, TIMES)
  const words = html`<p><strong>${scheduleWords(texts)}</strong></p>`
  // A date whose hour the clocks of the zone always skip.
  if (times[0] === undefined) return html`${words}<p class="fault">It has no further time.</p>`
  return html`${words}
<p class="muted">Its next times, the first one ${ago(times[0], now)}:</p>
<ol class="times">${times.map((at) => html`<li>${timeInZone(at, texts.timeZone)}</li>`)}</ol>`
}

function previewPeriod({ period_seconds, grace_seconds }: Typed): Html {
  const read = (text: string, standard: number) => (text.trim() === '' ? standard : parseDuration(text))
  const period = read(period_seconds, LIMITS.periodSeconds.default)
  const grace = read(grace_seconds, LIMITS.graceSeconds.default)
  if (period === null)
    return html`<p class="fault">${LABELS.period_seconds} must be a length of time such as 15 min or 1h30m.</p>`
  const down =
    grace === null
      ? ''
      : html`<p class="muted">The check goes down when no success arrives for ${spellDuration(period + grace)}.</p>`
  return html`<p><strong>${everyWords(period)}</strong></p>${down}`
}
