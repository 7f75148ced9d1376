import { z } from 'zod'
import { COMPLETIONS, MANAGERS, SHOWN_STATUSES, STATUS_REASONS, TAGS } from '../../domain/check.ts'
import { CHECK_SORTS } from '../../domain/check-order.ts'
import { DOER_KINDS } from '../../domain/doer.ts'
import { rule } from '../../domain/errors.ts'
import {
  isLabelName,
  isLabelValue,
  LABEL_NAME,
  LABEL_NAME_RULE,
  LABEL_VALUE,
  LABEL_VALUE_RULE,
  LABELS,
  type Labels,
  sortLabels,
} from '../../domain/labels.ts'
import { RUN_OUTCOMES, type RunOutcome } from '../../domain/last-run.ts'
import { FLAPPING, LIMITS } from '../../domain/limits.ts'
import { PAGE_LIMIT } from '../../domain/page.ts'
import { explainUnknown } from './faults.ts'
import * as field from './fields.ts'

const period = () => field.integerWithin(LIMITS.periodSeconds)
const grace = () => field.integerWithin(LIMITS.graceSeconds)

const PERIOD = 'Seconds from one completion to the next.'
const GRACE = 'Seconds that a completion may be late before the check goes down.'
const MAX_RUNTIME = 'Seconds that one run may take after its start ping. Null: no limit.'

const TAG = rule('must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -')
const MANY_TAGS = rule(`must be a list of at most ${TAGS.max} different tags`)
const tag = () =>
  z
    .string(TAG)
    .regex(new RegExp(`^${TAGS.shape}$`), TAG)
    .meta({ pattern: `^${TAGS.shape}$` })
const tags = () =>
  z
    .array(tag(), MANY_TAGS)
    .max(TAGS.max, MANY_TAGS)
    .refine((given) => new Set(given).size === given.length, MANY_TAGS)
    .meta({ description: 'Words to group and to find checks by, in this order.', uniqueItems: true })

const MANY_CHANNELS = rule(`must be null or a list of at most ${LIMITS.chosenChannels} different ids of channels`)
const CHANNELS =
  'Ids of the channels that it notifies, of its project or of the whole organization; an empty list: none. Null: all of both.'
const channels = () =>
  z
    .array(field.uuid('A channel.'), MANY_CHANNELS)
    .max(LIMITS.chosenChannels, MANY_CHANNELS)
    .refine((given) => new Set(given.map((id) => id.toLowerCase())).size === given.length, MANY_CHANNELS)
    .nullable()
    .meta({ description: CHANNELS })

const MANY_DEPENDENCIES = rule(`must be a list of at most ${LIMITS.dependencies} different ids of checks`)
const DEPENDS_ON =
  'Ids of checks of the organization, in no ring: while one of them is down, check.down of this one is not sent.'
const dependsOn = () =>
  z
    .array(field.uuid('A check.'), MANY_DEPENDENCIES)
    .max(LIMITS.dependencies, MANY_DEPENDENCIES)
    .refine((given) => new Set(given.map((id) => id.toLowerCase())).size === given.length, MANY_DEPENDENCIES)
    .meta({ description: DEPENDS_ON, uniqueItems: true })

const RESUME_ON_PING =
  'True: the next completion of a paused check resumes it, and counts. False: only an explicit resume ends a pause.'

const WARN_CODES = rule(
  `must be a list of at most ${LIMITS.warnExitCodes} different numbers from 1 to ${LIMITS.exitCode}`,
)
const WARN_EXIT_CODES =
  'Exit codes with which the job is done, but a person should look at it: a warning instead of a failure.'
const warnExitCodes = () =>
  z
    .array(z.int(WARN_CODES).min(1, WARN_CODES).max(LIMITS.exitCode, WARN_CODES), WARN_CODES)
    .max(LIMITS.warnExitCodes, WARN_CODES)
    .refine((given) => new Set(given).size === given.length, WARN_CODES)
    .transform((given) => given.toSorted((a, b) => a - b))
    .meta({ description: WARN_EXIT_CODES, uniqueItems: true })

const FAILURES_BEFORE_DOWN = 'So many failures in a row take the check down. A success or a warning ends the row.'
const MISSES_BEFORE_DOWN = 'So many intervals in a row without a run that ended in time take the check down.'
const threshold = () => field.integerWithin(LIMITS.threshold)
const REMIND_EVERY =
  'Seconds after which check.down is sent again, time after time, while the check is down; not to channels whose service repeats by itself. Null: never.'
const REMIND_ON_EACH_RUN =
  'True: while the check is down, check.down is sent again at each further run that fails or is missed.'

const LABELS_RULE = `must be an object of at most ${LABELS.max} labels`
const labels = () =>
  z
    .unknown()
    .superRefine((value, context) => {
      // By hand: zod's record drops a label named `__proto__` in silence.
      if (value === null) return context.addIssue('cannot be null')
      if (typeof value !== 'object' || Array.isArray(value)) return context.addIssue(LABELS_RULE)
      const entries = Object.entries(value)
      if (entries.length > LABELS.max) return context.addIssue(LABELS_RULE)
      for (const [name, text] of entries) {
        const message = isLabelName(name) ? (isLabelValue(text) ? null : LABEL_VALUE_RULE) : LABEL_NAME_RULE
        if (message !== null) context.addIssue({ code: 'custom', path: [name], message })
      }
    })
    .transform((value) => sortLabels(value as Labels))
    .meta({
      type: 'object',
      maxProperties: LABELS.max,
      propertyNames: { pattern: LABEL_NAME, maxLength: LABELS.nameLength },
      additionalProperties: { type: 'string', maxLength: LABELS.valueLength, pattern: LABEL_VALUE },
      description: `Names and values by the rules of Kubernetes' labels, for routes, events and metrics. They replace all labels that the check has.`,
    })

/** What a new check and a change of one have in common. */
const common = {
  slug: field.slug('check').optional(),
  description: field.description().nullable().optional(),
  tags: tags().optional(),
  labels: labels().optional(),
  schedule: field.schedule().optional(),
  time_zone: field.timeZone().optional(),
  max_runtime_seconds: field
    .integerWithin(LIMITS.maxRuntimeSeconds)
    .nullable()
    .optional()
    .meta({ description: MAX_RUNTIME }),
  warn_exit_codes: warnExitCodes().optional(),
  failures_before_down: threshold().optional().meta({ description: FAILURES_BEFORE_DOWN }),
  misses_before_down: threshold().optional().meta({ description: MISSES_BEFORE_DOWN }),
  remind_every_seconds: field
    .integerWithin(LIMITS.remindEverySeconds)
    .nullable()
    .optional()
    .meta({ description: REMIND_EVERY }),
  remind_on_each_run: z.boolean(rule('must be true or false')).optional().meta({ description: REMIND_ON_EACH_RUN }),
  resume_on_ping: z.boolean(rule('must be true or false')).meta({ description: RESUME_ON_PING }).optional(),
  channels: channels().optional(),
  depends_on: dependsOn().optional(),
}

/** Exactly one of the two forms (design, section 3.1). For the document only: checks/read-spec.ts validates a request together with what is stored. */
const ONE_FORM = {
  not: { type: 'object', required: ['period_seconds', 'schedule'], properties: { period_seconds: {}, schedule: {} } },
} as const

const STATUS = 'is not a known field; POST /checks/{id}/pause and POST /checks/{id}/resume change the status'

/** `description` and `max_runtime_seconds` may be null as in a response, so that a check can be created from another's response. */
export const NewCheck = z
  .strictObject({
    project_id: field.uuid('Project that the check belongs to.'),
    name: field.name('check'),
    period_seconds: period()
      .optional()
      .meta({ description: `${PERIOD} Without it and without \`schedule\`: ${LIMITS.periodSeconds.default}.` }),
    grace_seconds: grace().default(LIMITS.graceSeconds.default).meta({ description: GRACE }),
    ...common,
    armed: z.boolean(rule('must be true or false')).default(false).meta({
      description:
        'True: the first completion is expected from now on, so that a job that never runs is detected. False: from the first ping on.',
    }),
  })
  .meta({ id: 'NewCheck', ...ONE_FORM, dependentRequired: { time_zone: ['schedule'] } })
explainUnknown(NewCheck, { status: STATUS })

export const CheckUpdate = z
  .strictObject({
    name: field.name('check').optional(),
    period_seconds: period()
      .optional()
      .meta({ description: `${PERIOD} Ends \`schedule\`.` }),
    grace_seconds: grace().optional().meta({ description: GRACE }),
    ...common,
  })
  .meta({
    id: 'CheckUpdate',
    description: 'Omitted fields keep their values. Null clears a field that allows it.',
    ...ONE_FORM,
  })
explainUnknown(CheckUpdate, {
  status: STATUS,
  project_id: 'cannot be changed: create a check in the other project instead',
})

export const PauseBody = z
  .strictObject({
    until: field.moment().optional().meta({ format: 'date-time', description: 'When the check resumes by itself.' }),
    for_seconds: field
      .integerWithin(LIMITS.pauseSeconds)
      .optional()
      .meta({ description: 'Seconds after which the check resumes by itself.' }),
    comment: field.comment().nullable().optional(),
  })
  .meta({ id: 'PauseBody', description: 'Without an end the pause lasts until the check is resumed.' })

export const AcknowledgeBody = z
  .strictObject({
    for_seconds: field
      .integerWithin(LIMITS.acknowledgeSeconds)
      .optional()
      .meta({ description: 'Seconds for which it holds. Left out: until the incident ends.' }),
    comment: field.comment().nullable().optional(),
  })
  .meta({ id: 'AcknowledgeBody' })

const Status = z.enum(SHOWN_STATUSES).meta({
  id: 'CheckStatus',
  description:
    'new: nothing to judge yet: no completion since it was made or resumed; late: expected, and still within its grace time; down: missed, failed or overran; paused: sends no alerts.',
})

export const Doer = z
  .object({
    kind: z.enum(DOER_KINDS).meta({ description: 'kubernetes: the resource of the check, or its CronJob.' }),
    id: field.idOrNull('Of the user or of the API key.'),
    name: z.string().nullable(),
  })
  .meta({ id: 'Doer', description: 'Who did it.' })

const Pause = z
  .object({
    by: Doer,
    at: field.instant('When the check was paused.'),
    until: field.instant('When the check resumes by itself.').nullable().meta({ description: 'Null: it does not.' }),
    comment: z.string().nullable(),
  })
  .meta({ id: 'Pause' })

const Acknowledged = z
  .object({
    by: Doer,
    at: field.instant('Since when.'),
    until: field.instant('Until when.').nullable().meta({ description: 'Null: until the incident ends.' }),
    comment: z.string().nullable(),
  })
  .meta({ id: 'Acknowledged' })

const fields = {
  id: field.id('Identifier for the management API.'),
  name: z.string(),
  slug: z.string(),
  status: Status,
  status_since: field.instant(
    'When the status began: the time of the last flip. A missed ping has the time of its deadline; late is a part of up.',
  ),
  status_reason: z.enum(STATUS_REASONS).nullable().meta({
    description: 'Reason of the last flip.',
  }),
  status_detail: field.stringOrNull(
    'Why the check is down or paused, in words, of one that follows a CronJob: what a run that failed reported, what one that did not start waits for. Also of a run in progress: that a container has failed, or its main container has ended, while others keep its pod running. At most 1,024 characters. Null elsewhere, and where it is not known.',
  ),
  period_seconds: field.integerOrNull(
    `${PERIOD} Null with a schedule, and of a CronJob whose schedule cannot be read.`,
  ),
  grace_seconds: field.integer(GRACE),
  schedule: field.stringOrNull(
    'Cron expression. Null with a period, and of a CronJob whose schedule cannot be read or never comes.',
  ),
  time_zone: field.stringOrNull('IANA time zone of the schedule.'),
  last_ping_at: field.instant('Last completion.').nullable(),
  last_outcome: z
    .enum(COMPLETIONS)
    .nullable()
    .meta({ description: 'How it ended: warn, if the job is done, and a person should look at it.' }),
  last_success_at: field.instant('Last completion that was no fail.').nullable(),
  expected_at: field.instant('When the next completion is expected.').nullable(),
  due_at: field.instant('The earliest moment at which the check goes down if nothing happens.').nullable(),
  running: field.integer(
    'How many runs are in progress: started, not completed, and not closed by the maximum run time. The run of a CronJob is in progress until its Job ends.',
  ),
  managed_by: z.enum(MANAGERS).meta({ description: 'Who may change and delete it.' }),
  public_id: field.idOrNull(
    'Identifier for the ping API, and the right to ping. Null for callers with the scope read.',
  ),
  ping_url: z.string().nullable().meta({
    format: 'uri',
    description: 'Where the job sends its pings. Null for callers with the scope read.',
  }),
  project_id: field.id(),
  description: z.string().nullable(),
  tags: z.array(z.string()).meta({ description: 'Words to group and to find checks by.' }),
  labels: z.record(z.string(), z.string()).meta({
    description: 'Part of events and of alerts. Of a declared check: the labels of its HeartbeatCheck.',
  }),
  max_runtime_seconds: field.integerOrNull(MAX_RUNTIME),
  warn_exit_codes: z.array(z.int()).meta({ description: WARN_EXIT_CODES }),
  failures_before_down: field.integer(FAILURES_BEFORE_DOWN),
  misses_before_down: field.integer(MISSES_BEFORE_DOWN),
  remind_every_seconds: field.integerOrNull(REMIND_EVERY),
  remind_on_each_run: z.boolean().meta({ description: REMIND_ON_EACH_RUN }),
  resume_on_ping: z.boolean().meta({ description: RESUME_ON_PING }),
  channels: z.array(field.id()).nullable().meta({ description: CHANNELS }),
  depends_on: z.array(field.id()).meta({ description: DEPENDS_ON }),
  flapping: z.boolean().meta({
    description: `True: the check went down or up more than ${FLAPPING.changes} times within ${FLAPPING.windowMs / 60_000} minutes. Its changes are not notified until it stays the same for as long.`,
  }),
  last_start_at: field.instant('Last start ping.').nullable(),
  last_duration_ms: field.integerOrNull("Milliseconds that the last completion's run took. Null when unknown."),
  consecutive_failures: field.integer('Failures since the last success or warning.'),
  consecutive_misses: field.integer('Intervals since the last run that ended in time.'),
  pause: Pause.nullable().meta({
    description: 'Null unless the check is paused, and where nothing is known of the pause.',
  }),
  acknowledged: Acknowledged.nullable().meta({
    description: 'Who has the incident in hand: no reminder and no second channel follows. Null: no one.',
  }),
  pings_total: field.integer('Pings stored since the check was made, also those that are no longer in the history.'),
  created_at: field.instant('When the check was made.'),
  updated_at: field.instant(
    'When its configuration was changed last, at first when it was made. Pings, pauses and resumes do not move it.',
  ),
}

const OUTCOMES = RUN_OUTCOMES.map((outcome) => outcome.toLowerCase() as Lowercase<RunOutcome>)

const LastRun = z
  .object({
    name: field.string('Name of the Job.'),
    start_time: z.string().nullable().meta({ format: 'date-time', description: 'When the Job started.' }),
    completion_time: z.string().nullable().meta({ format: 'date-time', description: 'When it ended.' }),
    outcome: z.enum(OUTCOMES).meta({ description: 'deleted: the Job was deleted before it ended.' }),
    exit_code: field.integerOrNull('Of the container that failed.'),
    reason: field.stringOrNull('Why it failed, in one word: of the container, else of the pod, else of the Job.'),
    message: field.stringOrNull('Why it failed, in one sentence.'),
  })
  .meta({ id: 'LastRun', description: 'A run of a CronJob, as its Job and its pods showed it.' })

type Shape = z.ZodRawShape

const kubernetes = <OfSource extends Shape>(ofSource: OfSource) =>
  z
    .object({
      cluster: z.string(),
      namespace: z.string(),
      name: z.string(),
      source: z
        .object({ kind: field.string('`CronJob`.'), name: z.string(), ...ofSource })
        .nullable()
        .meta({
          description: 'What the check follows: its Jobs report, instead of pings. Null if it follows nothing.',
        }),
    })
    .nullable()
    .meta({ description: 'The HeartbeatCheck that declares it.' })

const NEWEST = 'Its newest run. Null: none was reported yet.'

export const Check = z
  .object({ ...fields, kubernetes: kubernetes({ last_run: LastRun.nullable().meta({ description: NEWEST }) }) })
  .meta({ id: 'Check' })

export const ListedCheck = z
  .object({ ...fields, kubernetes: kubernetes({}) })
  .meta({ id: 'ListedCheck', description: 'A check as lists have it: without the last run of its source.' })

export const CheckList = field.listOf('checks', ListedCheck)

export const oneStatus = field.oneOf(SHOWN_STATUSES)
export const oneOutcome = field.oneOf(COMPLETIONS)

const MANY_LABELS = `must be given at most ${LABELS.max} times`
/** A name has no `=`. */
const LABEL_FILTER = /^([^=]+)=(.*)$/s
const labelFilter = z
  .string()
  .transform((text, context): Labels => {
    const [, name, value] = LABEL_FILTER.exec(text) ?? []
    if (name === undefined) context.addIssue('must be name=value')
    else if (!isLabelName(name)) context.addIssue(LABEL_NAME_RULE)
    else if (!isLabelValue(value)) context.addIssue(LABEL_VALUE_RULE)
    else return { [name]: value! }
    return z.NEVER
  })
  .meta({ pattern: `${LABEL_NAME.slice(0, -1)}=${LABEL_VALUE.slice(1)}` })

const SORT =
  'The order; `-` turns it round. `status`: what needs attention first: down, late, new, up, paused. `last_ping`: what was never pinged first. `due`: what is due next first, without a deadline last. A cursor is valid for its own order.'

export const CheckListQuery = z.object({
  project_id: field.uuid('Project whose checks are listed.'),
  status: z.array(oneStatus).optional().meta({ description: 'Only checks of this status; repeated: of one of them.' }),
  outcome: z
    .array(oneOutcome)
    .optional()
    .meta({ description: 'Only checks whose last completion was this; repeated: one of them.' }),
  slug: field.words('Only the check of this slug.'),
  q: field.words('Only checks whose name or slug contains this, whatever its capitals.'),
  tag: z.array(tag()).optional().meta({ description: 'Only checks with this tag; repeated: with all of them.' }),
  label: z.array(labelFilter).max(LABELS.max, rule(MANY_LABELS)).optional().meta({
    description: 'Only checks with this label, as `name=value`; repeated: with all of them.',
  }),
  managed_by: field.oneOf(MANAGERS).optional().meta({ description: 'Only checks that these may change.' }),
  sort: field.oneOf(CHECK_SORTS).default('created').meta({ description: SORT }),
  limit: field.limit(PAGE_LIMIT),
  cursor: field.cursorText('checks'),
})

export const CheckParams = field.idOf('check')
