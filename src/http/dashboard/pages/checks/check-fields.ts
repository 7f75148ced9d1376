/** The fields of a check's form as HTML. */

import type { Instant } from '../../../../domain/check.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { listTimeZones } from '../../../../domain/time-zone.ts'
import type { ProjectRecord } from '../../../../tenancy/projects.ts'
import { type Html, html } from '../../html.ts'
import { area, type Box, boxes, type Control, choice, type Faults, type FormState, field, text } from '../../ui/form.ts'
import { nextSlots, scheduleWords } from '../../words/schedule-words.ts'
import { ago, everyWords, parseDuration, spellDuration, timeInZone } from '../../words/time-words.ts'
import {
  ALL_CHANNELS,
  DEFAULT_ZONE,
  FIELD_NAMES,
  type FieldName,
  LABELS,
  readCron,
  type Values,
} from './check-values.ts'

export interface FieldsOptions {
  readonly values: Values
  readonly faults: Faults
  readonly now: Instant
  readonly isNew: boolean
  /** Nothing was typed yet: the script puts the zone of the browser in. */
  readonly isFresh?: boolean
  /** Of a check that Kubernetes manages. */
  readonly isReadOnly?: boolean
  /** Of a new check: where it can belong. */
  readonly projects?: readonly ProjectRecord[]
  /** The channels that the check can notify. Left out: channels are not chosen in this form. */
  readonly channels?: readonly OfferedChannel[]
}

export interface OfferedChannel {
  readonly id: string
  readonly name: string
  /** Of a new check: the project that the check must belong to; null: any. */
  readonly projectId?: string | null
}

const ADVANCED: readonly FieldName[] = [
  'tags',
  'labels',
  'max_runtime_seconds',
  'warn_exit_codes',
  'failures_before_down',
  'misses_before_down',
  'remind_every_seconds',
  'remind_on_each_run',
  'resume_on_ping',
  'depends_on',
  'armed',
]

export function renderFields(options: FieldsOptions): Html {
  const { values, faults, now, isNew, projects = [] } = options
  const standard = (seconds: number) => (isNew ? ` Empty: ${spellDuration(seconds)}.` : '')
  const isChosen = ![ALL_CHANNELS, ''].includes(values.channels) || faults.channels !== undefined
  const isOpen = isChosen || ADVANCED.some((name) => values[name] !== '' || faults[name] !== undefined)
  // Otherwise the fault stands beside its field already.
  const isReadable = [faults.schedule, faults.time_zone, faults.period_seconds].every((fault) => fault === undefined)
  const form: FormState = {
    labels: LABELS,
    values,
    faults,
    isReadOnly: options.isReadOnly,
    focus: isNew ? 'name' : undefined,
  }
  const at = (name: FieldName, meaning: string, control: Control = text()) => field(form, name, control, meaning)
  return html`${renderSummary(faults)}
${at('name', 'Name of the job in lists and alerts.')}
${projects.length > 1 ? at('project_id', 'The project that the check belongs to. It cannot be changed later.', choice(projects.map(({ id, name }) => [id, name]))) : ''}
<fieldset class="schedule-fields">
<legend>When does the job run?</legend>
<p class="muted">Give a schedule, or how often it runs.</p>
<div class="columns">
${at('schedule', 'A cron expression as in a crontab: minute, hour, day of month, month, day of week. Or @hourly, @daily.', text(html` placeholder="0 2 * * *"${previewed} spellcheck="false"`))}
${at('time_zone', 'Time zone of the schedule.', text(html` list="time-zones"${previewed}${options.isFresh ? html` data-time-zone` : ''} spellcheck="false"`))}
${at('period_seconds', `From one success to the next, such as 15 min or 1h30m.${standard(LIMITS.periodSeconds.default)}`, text(html` placeholder="${isNew ? '1 day' : ''}"${previewed}`))}
${at('grace_seconds', `How late it may be before the check goes down: its usual run time and a margin.${standard(LIMITS.graceSeconds.default)}`, text(html` placeholder="${isNew ? '1 hour' : ''}"${previewed}`))}
</div>
<div id="preview" class="preview" aria-live="polite">${isReadable ? renderPreview(values, now) : ''}</div>
</fieldset>
<datalist id="time-zones">${options.isReadOnly ? '' : zoneOptions}</datalist>
${at('description', 'For those who get the alert: what the job does, what to do, whom to ask.', area(4))}
${at('slug', `Short name in addresses and labels, unique in its project: a-z, 0-9, - and _.${isNew ? ' Empty: from the name.' : ''}`, text(noWords))}
<details id="advanced"${isOpen ? html` open` : ''}>
<summary>More fields</summary>
${at('tags', 'Words to group checks by, with spaces between them.', text(noWords))}
${at('labels', 'For the routes of an Alertmanager, and in events: name=value on each line.', area(3, html`${noWords} placeholder="team=payments"`))}
${at('max_runtime_seconds', 'How long one run may take after its start ping. The check goes down when a run takes longer. Empty: any time.')}
${at('warn_exit_codes', 'With one of these the job is done, and a person should look at it: a warning instead of a failure. With spaces between them, such as 3 24.', text(noWords))}
${at('failures_before_down', 'So many failures in a row take the check down, such as 3. Empty: the first one does.')}
${at('misses_before_down', 'So many intervals in a row without a run that ended in time take the check down. Empty: the first one does.')}
${at('remind_every_seconds', 'While the check is down, its channels are notified again each time this has passed, such as 1 day. Empty: they are not.')}
${options.isReadOnly ? '' : at('remind_on_each_run', 'For a job that runs rarely: while the check is down, its channels are notified again at each further run that fails or is missed.', choice(REMIND))}
${options.isReadOnly ? '' : at('resume_on_ping', 'With its next ping: a success or a fail resumes a paused check, and counts.', choice(PAUSE_ENDS))}
${at('depends_on', 'Slugs of checks of the project, or ids, with spaces between them: while one of them is down, the channels are not notified that this one is down too.', text(noWords))}
${options.channels === undefined ? '' : renderChannels(options.channels, options)}
${isNew ? renderArmed(values) : ''}
</details>`
}

const REMIND = [
  ['', 'no'],
  ['on', 'yes'],
] as const

const PAUSE_ENDS = [
  ['', 'when it is resumed'],
  ['on', 'with its next ping'],
] as const

/** For words of machines. */
const noWords = html` spellcheck="false" autocapitalize="none"`

/** The script asks for the words of these fields while the user types. */
const previewed = html` data-preview="/checks/preview"`

/** Made once: there are some 600. */
const zoneOptions = html`${listTimeZones().map((zone) => html`<option value="${zone}">`)}`

/** A chosen channel that the user may not see stays chosen, unless its box is cleared. */
function renderChannels(channels: readonly OfferedChannel[], { values, faults, projects = [] }: FieldsOptions): Html {
  const chosen = new Set(values.channels.split(' ').filter(Boolean))
  const offered = new Set([ALL_CHANNELS, ...channels.map(({ id }) => id)])
  // One more than a check can choose shows that there are too many.
  const hidden = [...chosen].filter((id) => !offered.has(id)).slice(0, LIMITS.chosenChannels + 1)
  const ofProject = (projectId: string | null | undefined) => {
    const name = projects.find(({ id }) => id === projectId)?.name
    return projects.length < 2 || name === undefined ? null : `only for checks of ${toOneLine(name)}`
  }
  const choices = [
    [ALL_CHANNELS, 'All of the project and of the organization, also those of later'],
    ...channels.map(({ id, name, projectId }): Box => [id, name, ofProject(projectId)]),
    ...hidden.map((id): Box => [id, `Another one (${id})`]),
  ] as const
  return html`<input type="hidden" name="channels" value="">
${boxes({ labels: LABELS, faults }, 'channels', choices, [...chosen], 'Whom the check notifies.')}`
}

function renderArmed({ armed }: Values): Html {
  return html`<div class="field">
<label for="armed"><input type="checkbox" id="armed" name="armed" value="on" aria-describedby="armed-meaning"${
    armed === '' ? '' : html` checked`
  }> ${LABELS.armed}</label>
<small id="armed-meaning">Then a job that never runs is noticed. Otherwise the check waits for its first ping.</small>
</div>`
}

/** Leads to each field at fault. */
function renderSummary(faults: Faults): Html | string {
  const names = FIELD_NAMES.filter((name) => faults[name] !== undefined)
  if (names.length === 0) return ''
  return html`<div class="faults" role="alert" id="faults">
<p>Nothing is saved yet. Please correct:</p>
<ul>${names.map((name) => html`<li><a href="#${name}">${LABELS[name]}</a></li>`)}</ul>
</div>`
}

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
