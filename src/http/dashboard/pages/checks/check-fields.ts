/** The fields of a check's form as HTML. */

import type { Instant } from '../../../../domain/check.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { listTimeZones } from '../../../../domain/time-zone.ts'
import type { ProjectRecord } from '../../../../tenancy/projects.ts'
import { type Html, html, type Part } from '../../html.ts'
import { spellDuration } from '../../words/duration-text.ts'
import { ALL_CHANNELS, type Faults, FIELD_NAMES, type FieldName, LABELS, type Values } from './check-values.ts'
import { renderPreview } from './preview.ts'

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
  /** Those that the check can notify. Left out: they are not chosen here. */
  readonly channels?: readonly OfferedChannel[]
}

export interface OfferedChannel {
  readonly id: string
  readonly name: string
  /** Of a new check: the project that the check must belong to; null: any. */
  readonly projectId?: string | null
}

const ADVANCED: readonly FieldName[] = ['tags', 'labels', 'max_runtime_seconds', 'resume_on_ping', 'armed']

export function renderFields(options: FieldsOptions): Html {
  const { values, faults, now, isNew, projects = [] } = options
  const standard = (seconds: number) => (isNew ? ` Empty: ${spellDuration(seconds)}.` : '')
  const isChosen = ![ALL_CHANNELS, ''].includes(values.channels) || faults.channels !== undefined
  const isOpen = isChosen || ADVANCED.some((name) => values[name] !== '' || faults[name] !== undefined)
  // Otherwise the fault stands beside its field already.
  const isReadable = [faults.schedule, faults.time_zone, faults.period_seconds].every((fault) => fault === undefined)
  return html`${renderSummary(faults)}
${renderInput(options, 'name', 'Name of the job in lists and alerts.', isNew ? html` autofocus` : '')}
${projects.length > 1 ? renderProjects(projects, options) : ''}
<fieldset class="schedule-fields">
<legend>When does the job run?</legend>
<p class="muted">Give a schedule, or how often it runs.</p>
<div class="columns">
${renderInput(options, 'schedule', 'A cron expression as in a crontab: minute, hour, day of month, month, day of week. Or @hourly, @daily.', html` placeholder="0 2 * * *"${previewed} spellcheck="false"`)}
${renderInput(options, 'time_zone', 'Time zone of the schedule.', html` list="time-zones"${previewed}${options.isFresh ? html` data-time-zone` : ''} spellcheck="false"`)}
${renderInput(options, 'period_seconds', `From one success to the next, such as 15 min or 1h30m.${standard(LIMITS.periodSeconds.default)}`, html` placeholder="${isNew ? '1 day' : ''}"${previewed}`)}
${renderInput(options, 'grace_seconds', `How late it may be before the check goes down: its usual run time and a margin.${standard(LIMITS.graceSeconds.default)}`, html` placeholder="${isNew ? '1 hour' : ''}"${previewed}`)}
</div>
<div id="preview" class="preview" aria-live="polite">${isReadable ? renderPreview(values, now) : ''}</div>
</fieldset>
<datalist id="time-zones">${options.isReadOnly ? '' : zoneOptions}</datalist>
${renderField(options, 'description', 'For those who get the alert: what the job does, what to do, whom to ask.', renderDescription)}
${renderInput(options, 'slug', `Short name in addresses and labels, unique in its project: a-z, 0-9, - and _.${isNew ? ' Empty: from the name.' : ''}`, html` spellcheck="false" autocapitalize="none"`)}
<details id="advanced"${isOpen ? html` open` : ''}>
<summary>More fields</summary>
${renderInput(options, 'tags', 'Words to group checks by, with spaces between them.', html` spellcheck="false" autocapitalize="none"`)}
${renderField(options, 'labels', 'For the routes of an Alertmanager, and in events: name=value on each line.', renderLabels)}
${renderInput(options, 'max_runtime_seconds', 'How long one run may take after its start ping. The check goes down when a run takes longer. Empty: any time.')}
${options.isReadOnly ? '' : renderField(options, 'resume_on_ping', 'With its next ping: a success or a fail resumes a paused check, and counts.', renderResume)}
${options.channels === undefined ? '' : renderChannels(options.channels, options)}
${isNew ? renderArmed(values) : ''}
</details>`
}

/** The script asks for the words of these fields while the user types. */
const previewed = html` data-preview="/checks/preview"`

/** Made once: there are some 600. */
const zoneOptions = html`${listTimeZones().map((zone) => html`<option value="${zone}">`)}`

type Render = (name: FieldName, options: FieldsOptions, attributes: Html) => Html

/** Label, field, meaning and fault. The last two describe the field to screen readers. */
function renderField(options: FieldsOptions, name: FieldName, meaning: string, render: Render): Html {
  const fault = options.faults[name]
  const describedBy = fault === undefined ? `${name}-meaning` : `${name}-fault ${name}-meaning`
  const attributes = html`id="${name}" name="${name}" aria-describedby="${describedBy}"${
    fault === undefined ? '' : html` aria-invalid="true"`
  }${options.isReadOnly === true ? html` readonly` : ''}`
  return html`<div class="field">
<label for="${name}">${LABELS[name]}</label>
${render(name, options, attributes)}
${fault === undefined ? '' : html`<small id="${name}-fault" class="fault">${fault}</small>`}
<small id="${name}-meaning">${meaning}</small>
</div>`
}

function renderInput(options: FieldsOptions, name: FieldName, meaning: string, more: Part = ''): Html {
  return renderField(
    options,
    name,
    meaning,
    (_, { values }, attributes) =>
      html`<input type="text" ${attributes} value="${values[name]}" autocomplete="off"${more}>`,
  )
}

/** Browsers drop a line break at the beginning: the first one is ours. */
const renderDescription: Render = (name, { values }, attributes) => html`<textarea ${attributes} rows="4">
${values[name]}</textarea>`

const renderLabels: Render = (
  name,
  { values },
  attributes,
) => html`<textarea ${attributes} rows="3" spellcheck="false" autocapitalize="none" placeholder="team=payments">
${values[name]}</textarea>`

function renderProjects(projects: readonly ProjectRecord[], options: FieldsOptions): Html {
  return renderField(
    options,
    'project_id',
    'The project that the check belongs to. It cannot be changed later.',
    (name, { values }, attributes) =>
      html`<select ${attributes}>${projects.map(
        (project) =>
          html`<option value="${project.id}"${project.id === values[name] ? html` selected` : ''}>${toOneLine(project.name)}</option>`,
      )}</select>`,
  )
}

const renderResume: Render = (name, { values }, attributes) =>
  html`<select ${attributes}><option value="">when it is resumed</option><option value="on"${
    values[name] === '' ? '' : html` selected`
  }>with its next ping</option></select>`

/** A chosen channel that the user may not see stays chosen, unless its box is cleared. */
function renderChannels(channels: readonly OfferedChannel[], { values, faults, projects = [] }: FieldsOptions): Html {
  const chosen = new Set(values.channels.split(' ').filter(Boolean))
  const offered = new Set([ALL_CHANNELS, ...channels.map(({ id }) => id)])
  // One more than a check can choose shows that there are too many.
  const hidden = [...chosen].filter((id) => !offered.has(id)).slice(0, LIMITS.chosenChannels + 1)
  const box = (value: string, text: string, more: Part = '') =>
    html`<label><input type="checkbox" name="channels" value="${value}"${chosen.has(value) ? html` checked` : ''}> ${text}${more}</label>`
  const ofProject = (projectId: string | null | undefined) => {
    const name = projects.find(({ id }) => id === projectId)?.name
    return projects.length < 2 || name === undefined
      ? ''
      : html` <small class="muted">only for checks of ${toOneLine(name)}</small>`
  }
  return html`<fieldset id="channels" aria-describedby="${faults.channels === undefined ? '' : 'channels-fault '}channels-meaning">
<legend>${LABELS.channels}</legend>
<input type="hidden" name="channels" value="">
${box(ALL_CHANNELS, 'All of the project and of the organization, also those of later')}
${channels.map(({ id, name, projectId }) => box(id, toOneLine(name), ofProject(projectId)))}
${hidden.map((id) => box(id, `Another one (${id})`))}
${faults.channels === undefined ? '' : html`<small id="channels-fault" class="fault">${faults.channels}</small>`}
<small id="channels-meaning">Whom the check notifies.</small>
</fieldset>`
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
