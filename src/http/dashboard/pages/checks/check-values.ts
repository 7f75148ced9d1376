/** What a user typed, and the body of the API that it means. Only lengths of time are read in the words of users. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import { completeSpec, NO_SPEC, readSpec } from '../../../../checks/read-spec.ts'
import type { Cron } from '../../../../domain/cron.ts'
import { LABELS as CHECK_LABELS, sortLabels } from '../../../../domain/labels.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { given } from '../../../api/present.ts'
import { type Faults, faultsOf, toLines, type WordedFault } from '../../ui/form.ts'
import { parseDuration, spellDuration } from '../../words/time-words.ts'

/** By their names in the API's body: the words beside each field. */
export const LABELS = {
  project_id: 'Project',
  name: 'Name',
  schedule: 'Schedule',
  time_zone: 'Time zone',
  period_seconds: 'Every',
  grace_seconds: 'Grace',
  description: 'Description',
  slug: 'Slug',
  tags: 'Tags',
  labels: 'Labels',
  max_runtime_seconds: 'Maximum run time',
  warn_exit_codes: 'Exit codes of a warning',
  failures_before_down: 'Failures before it is down',
  misses_before_down: 'Misses before it is down',
  remind_every_seconds: 'Remind every',
  remind_on_each_run: 'Remind of each run',
  resume_on_ping: 'A pause ends',
  depends_on: 'Depends on',
  channels: 'Channels',
  armed: 'Expect the first ping from now on',
} as const

export type FieldName = keyof typeof LABELS
export const FIELD_NAMES = Object.keys(LABELS) as FieldName[]

/** As the user typed them; a field that was not sent is empty. */
export type Values = Readonly<Record<FieldName, string>>

export const DEFAULT_ZONE = 'UTC'
/** The value of `channels` that stands for all channels. Any other value is a list of ids, with spaces between them. */
export const ALL_CHANNELS = 'all'
const NO_VALUES = Object.fromEntries(FIELD_NAMES.map((name) => [name, ''])) as Record<FieldName, string>

export const newValues = (projectId: string): Values => ({
  ...NO_VALUES,
  project_id: projectId,
  time_zone: DEFAULT_ZONE,
  channels: ALL_CHANNELS,
})

/** In an order of their own: the boxes of a form have another order than the stored channels, which is no change. */
const toText = (channels: readonly string[]): string => [...channels].sort().join(' ')

/** Of a form; a field that it lacks has the value of `rest`. */
export function readValues(form: URLSearchParams, rest: Values = NO_VALUES): Values {
  const read = (name: FieldName) => {
    if (!form.has(name)) return rest[name]
    // A box for each channel, and a hidden field: a form without a chosen channel differs from a form without the
    // field.
    return name === 'channels' ? toText(form.getAll(name).filter(Boolean)) : toLines(form.get(name)!)
  }
  return Object.fromEntries(FIELD_NAMES.map((name) => [name, read(name)])) as Record<FieldName, string>
}

export function valuesOfCheck(check: CheckRecord): Values {
  const { projectId, name, slug, description, tags, labels, channels, dependsOn, spec } = check
  const { periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds } = spec
  const length = (seconds: number | null) => (seconds === null ? '' : spellDuration(seconds))
  const ofMany = (count: number) => (count === 1 ? '' : `${count}`)
  return {
    ...NO_VALUES,
    project_id: projectId,
    name,
    slug,
    description: description ?? '',
    tags: tags.join(' '),
    labels: Object.entries(sortLabels(labels))
      .map(([name, value]) => `${name}=${value}`)
      .join('\n'),
    schedule: schedule ?? '',
    time_zone: timeZone ?? DEFAULT_ZONE,
    period_seconds: length(periodSeconds),
    grace_seconds: length(graceSeconds),
    max_runtime_seconds: length(maxRuntimeSeconds),
    warn_exit_codes: spec.warnExitCodes.join(' '),
    failures_before_down: ofMany(spec.failuresBeforeDown),
    misses_before_down: ofMany(spec.missesBeforeDown),
    remind_every_seconds: length(spec.remindEverySeconds),
    remind_on_each_run: spec.remindOnEachRun ? 'on' : '',
    resume_on_ping: spec.resumeOnPing ? 'on' : '',
    depends_on: dependsOn.join(' '),
    channels: channels === null ? ALL_CHANNELS : toText(channels),
  }
}

// Bodies of the API
// ----------------------------------------------------------------------------------------------------------------

export interface FormBody {
  readonly body: Readonly<Record<string, unknown>>
  readonly faults: Faults
}

/**
 * The body of a new check, where a field that is left empty has the API's default, or of a change: a field that the
 * user did not change keeps its value, also one that changed meanwhile. `changed`: null for a new check.
 */
export function toBody(values: Values, changed: ReadonlySet<FieldName> | null): FormBody {
  const isNew = changed === null
  const schedule = values.schedule.trim()
  const { lengths, faults: ofLengths } = readLengths(values)
  const { labels, faults: ofLabels } = readLabels(values)
  const none = isNew ? undefined : null
  const all: Record<string, unknown> = {
    project_id: isNew ? values.project_id : undefined,
    name: values.name.trim() === '' ? undefined : values.name,
    slug: values.slug.trim() || (isNew ? undefined : ''),
    description: values.description || none,
    tags: splitWords(values.tags),
    labels,
    ...lengths,
    max_runtime_seconds: lengths.max_runtime_seconds ?? none,
    warn_exit_codes: splitWords(values.warn_exit_codes).map(toNumber),
    failures_before_down: toNumber(values.failures_before_down.trim() || '1'),
    misses_before_down: toNumber(values.misses_before_down.trim() || '1'),
    remind_every_seconds: lengths.remind_every_seconds ?? none,
    remind_on_each_run: values.remind_on_each_run !== '',
    // The zone goes with a schedule; beside a period the field has its default.
    time_zone: schedule === '' ? undefined : values.time_zone.trim() || DEFAULT_ZONE,
    schedule: schedule || undefined,
    resume_on_ping: values.resume_on_ping !== '',
    depends_on: splitWords(values.depends_on),
    channels: readChannels(values),
    armed: isNew ? values.armed !== '' : undefined,
  }
  const sent = <Value>(fields: Readonly<Record<string, Value>>) =>
    Object.fromEntries(Object.entries(fields).filter(([name]) => isNew || changed.has(name as FieldName)))
  const body = given(sent(all))
  const faults: Record<string, string> = sent({ ...findScheduleFaults(values), ...ofLengths, ...ofLabels })
  if (isNew) return { body, faults }
  // The API reads an absent field as unchanged. Here it is one that the user emptied.
  if (changed.has('name') && all.name === undefined) faults.name = `${LABELS.name} is required.`
  if (changed.has('grace_seconds') && all.grace_seconds === undefined)
    faults.grace_seconds ??= NO_LENGTH('grace_seconds')
  if (schedule === '' && values.period_seconds.trim() === '')
    faults.period_seconds = `${LABELS.period_seconds} or ${LABELS.schedule} must be given.`
  return { body, faults }
}

/** What is no number stays a text: the API rejects it. */
function toNumber(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text
}

/** Twice the same is a fault of the API's body, so it stays. */
export function splitWords(text: string): string[] {
  return text.split(/[\s,]+/).filter(Boolean)
}

/** Null: the check notifies all channels. */
function readChannels({ channels }: Values): string[] | null {
  const chosen = splitWords(channels)
  return chosen.includes(ALL_CHANNELS) ? null : chosen
}

/** `name=value` on each line, or separated by commas as kubectl shows them; a name alone has an empty value. */
function readLabels({ labels: text }: Values): { labels: Record<string, string>; faults: Faults } {
  const pairs = text
    .split(/[\n,]/)
    .filter((pair) => pair.trim() !== '')
    // One more than there may be shows that there are too many.
    .slice(0, CHECK_LABELS.max + 1)
  const labels = new Map<string, string>()
  let twice: string | null = null
  for (const pair of pairs) {
    const [first = '', ...value] = pair.split('=')
    const name = first.trim()
    if (labels.has(name)) twice ??= name
    labels.set(name, value.join('=').trim())
  }
  const faults = twice === null ? {} : { labels: `${LABELS.labels} must not have ${twice} twice.` }
  return { labels: Object.fromEntries(labels), faults }
}

const LENGTHS = {
  period_seconds: LIMITS.periodSeconds,
  grace_seconds: LIMITS.graceSeconds,
  max_runtime_seconds: LIMITS.maxRuntimeSeconds,
  remind_every_seconds: LIMITS.remindEverySeconds,
} as const
type LengthName = keyof typeof LENGTHS

const NO_LENGTH = (name: LengthName) => `${LABELS[name]} must be a length of time such as 15 min or 1h30m.`

/** Lengths of time in seconds, within the limits of the API. */
function readLengths(values: Values) {
  const lengths: Partial<Record<LengthName, number>> = {}
  const faults: Record<string, string> = {}
  for (const [name, { min, max }] of Object.entries(LENGTHS) as [LengthName, { min: number; max: number }][]) {
    if (values[name].trim() === '') continue
    const seconds = parseDuration(values[name])
    if (seconds === null) faults[name] = NO_LENGTH(name)
    else if (seconds < min || seconds > max)
      faults[name] = `${LABELS[name]} must be from ${spellDuration(min)} to ${spellDuration(max)}.`
    else lengths[name] = seconds
  }
  return { lengths, faults }
}

/** A schedule and its zone as the verbs read them, or the faults of their fields. */
export function readCron(texts: {
  readonly schedule: string
  readonly timeZone: string
}): { cron: Cron } | { faults: Faults } {
  // The rule of the body comes before the rules of the verbs.
  if (texts.schedule.length > LIMITS.scheduleLength)
    return {
      faults: {
        schedule: `${LABELS.schedule} must be a cron expression of at most ${LIMITS.scheduleLength} characters.`,
      },
    }
  try {
    const { schedule } = readSpec(completeSpec({ ...NO_SPEC, ...texts }, 'api'))
    if (schedule.kind !== 'cron') throw new TypeError('a schedule has no period')
    return { cron: schedule.cron }
  } catch (error) {
    return { faults: faultsOfCheck(error) }
  }
}

function findScheduleFaults({ schedule, time_zone }: Values): Faults {
  if (schedule.trim() === '') return {}
  const read = readCron({ schedule: schedule.trim(), timeZone: time_zone.trim() || DEFAULT_ZONE })
  return 'faults' in read ? read.faults : {}
}

// Faults
// ---------------------------------------------------------------------------------------------------------------------

/** The faults of an AppError of the schema or of a verb. Rethrows an error about anything else. */
export const faultsOfCheck = (error: unknown): Faults => faultsOf(error, LABELS, { word: wordInside })

function wordInside(name: string, inside: readonly string[], message: string): WordedFault {
  if (inside.length === 0) return null
  if (name === 'dependsOn' || name === 'depends_on')
    return ['depends_on', `${LABELS.depends_on} must be slugs of checks of the project, or ids of checks`]
  if (name === 'labels') return [name, `The label ${inside.join('.')} ${message}`]
  return name === 'tags' ? [name, `Each tag ${message}`] : null
}
