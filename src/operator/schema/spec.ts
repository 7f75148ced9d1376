/**
 * What a HeartbeatCheck asks for (design, section 6): the one source of the definition that the API server enforces
 * (definition.ts), of the types and of the reading (heartbeat-check.ts). The numbers are the domain's LIMITS. Each description
 * is what `kubectl explain` shows.
 */

import { z } from 'zod'
import type { CheckTexts } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { DEFAULT_KEY, LABEL_LENGTH } from '../names.ts'
import { oneOf, type Rule, seconds, shaped, text, withRules } from './fields.ts'
import { publish } from './publish.ts'

/** Its name is the value of a label on what we publish, and that is the shorter of Kubernetes' two limits. A CronJob's is 52. */
export const NAME_RULE: Rule<never> = {
  cel: `self.metadata.name.size() <= ${LABEL_LENGTH}`,
  message: `must have at most ${LABEL_LENGTH} characters: it becomes the value of a label`,
  fieldPath: '.metadata.name',
  reason: 'FieldValueInvalid',
}

export const DELETION_POLICIES = ['Delete', 'Retain'] as const

const displayName = text({
  max: LIMITS.nameLength,
  description: `Name for people, in the dashboard and in alerts: 1 to ${LIMITS.nameLength} characters, surrounding white space is dropped. Default: metadata.name. Example: Nightly backup`,
  rules: [
    {
      cel: 'self.trim().size() > 0',
      holds: (name) => name.trim() !== '',
      message: 'must not be empty: give a name, or leave the field out to use metadata.name',
      reason: 'FieldValueInvalid',
    },
    {
      cel: String.raw`!self.trim().matches(r'\p{Cc}')`,
      holds: (name) => !/\p{Cc}/u.test(name.trim()),
      message: 'must be one line, without control characters',
      reason: 'FieldValueInvalid',
    },
  ],
})

const description = text({
  max: LIMITS.descriptionLength,
  description: `What the job does and whom to ask, for whoever is woken by it: at most ${LIMITS.descriptionLength} characters. Default: none.`,
  rules: [
    {
      cel: String.raw`!self.matches(r'[^\P{Cc}\t\n\r]')`,
      holds: (value) => !/[^\P{Cc}\t\n\r]/u.test(value),
      message: 'must have no control characters other than line breaks and tabs',
      reason: 'FieldValueInvalid',
    },
  ],
})

const periodSeconds = seconds({
  ...LIMITS.periodSeconds,
  description: `Seconds from one completion of the job to the next, ${LIMITS.periodSeconds.min} to ${LIMITS.periodSeconds.max}. Give either periodSeconds or schedule. Example: 3600 for a job that runs every hour`,
})

const MACROS = 'yearly|annually|monthly|weekly|daily|midnight|hourly'
const CRON_FIELD = '[0-9A-Za-z*?/,+-]+'
/** Of all that Go takes for white space, what people type. */
const SPACE = String.raw`[ \t\r\n]`
/** No more than the shape: what the fields mean is the operator's to judge. */
const cronShape = shaped(
  `@(${MACROS})|${SPACE}*${CRON_FIELD}(${SPACE}+${CRON_FIELD}){4}${SPACE}*`,
  'must have 5 fields (minute, hour, day of month, month, day of week) such as "30 2 * * *", or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually',
)

const schedule = text({
  max: LIMITS.scheduleLength,
  description:
    'When the job runs: the five fields of a cron expression (minute, hour, day of month, month, day of week) or a macro such as @daily, read exactly as a CronJob reads its schedule. Give either periodSeconds or schedule. Example: "0 2 * * *" for every night at 2',
  rules: [
    {
      cel: "!self.contains('TZ=')",
      holds: (value) => !value.includes('TZ='),
      message: 'must not hold a time zone: give it as spec.timeZone, beside the schedule',
      reason: 'FieldValueInvalid',
    },
    {
      cel: "!self.startsWith('@every')",
      holds: (value) => !value.startsWith('@every'),
      message: 'must not be @every, which has no fixed times of day: give spec.periodSeconds instead of a schedule',
      reason: 'FieldValueInvalid',
    },
    {
      ...cronShape,
      // One fault for one mistake.
      cel: `self.contains('TZ=') || self.startsWith('@every') || ${cronShape.cel}`,
      holds: (value) => value.includes('TZ=') || value.startsWith('@every') || cronShape.holds!(value),
    },
  ],
})

const timeZone = text({
  max: LIMITS.nameLength,
  description:
    'IANA time zone in which the schedule is read; only beside schedule. Give the same one as the CronJob. Default: UTC. Example: Europe/Berlin',
  rules: [
    shaped(
      '[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*',
      'must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC',
    ),
  ],
})

const graceSeconds = seconds({
  ...LIMITS.graceSeconds,
  description: `Seconds that a completion may be late before the check goes down: what the job normally takes, and some more. ${LIMITS.graceSeconds.min} to ${LIMITS.graceSeconds.max}. Default: ${LIMITS.graceSeconds.default} (one hour)`,
})

const maxRuntimeSeconds = seconds({
  ...LIMITS.maxRuntimeSeconds,
  description: `Seconds that one run may take after its start ping, ${LIMITS.maxRuntimeSeconds.min} to ${LIMITS.maxRuntimeSeconds.max}; a run that takes longer makes the check go down. For jobs that send a start ping ($HEARTBEAT_URL/start): it then counts as on time when it has started on time. Default: none, only completions count`,
})

const suspend = z.boolean('must be true or false').meta({
  description:
    'true: the check is paused and alerts nobody; false: it is active. While it is set, it cannot be paused or resumed elsewhere. Left out: pausing and resuming belong to the dashboard and the API. Default: left out',
})

const project = text({
  max: LIMITS.slugLength,
  description:
    "Slug of the project that the check belongs to. It cannot be changed afterwards, and must be one that the Namespace may use: its annotation heartbeat-operator.io/projects lists them. Default: the first of them, or without the annotation the Namespace's own project. Example: payments",
  rules: [
    shaped(
      '[a-z0-9]([a-z0-9_-]*[a-z0-9])?',
      'must be the slug of a project: a-z, 0-9, - and _, beginning and ending with a letter or digit',
    ),
  ],
})

const deletionPolicy = oneOf(
  DELETION_POLICIES,
  'What becomes of the check when this resource is deleted. Delete: it ends; a resource of the same name that is created within 7 days brings it back with its history and its ping URL. Retain: it lives on, and is managed in the dashboard and by the API from then on. Default: Delete',
).default('Delete')

const fields = z.object(
  {
    displayName: displayName.optional(),
    description: description.optional(),
    periodSeconds: periodSeconds.optional(),
    schedule: schedule.optional(),
    timeZone: timeZone.optional(),
    graceSeconds: graceSeconds.default(LIMITS.graceSeconds.default),
    maxRuntimeSeconds: maxRuntimeSeconds.optional(),
    suspend: suspend.optional(),
    project: project.optional(),
    deletionPolicy,
    publish: publish.prefault({}).meta({
      default: {},
      description: `Where the check's ping URL is written, for the job to read: a Secret or ConfigMap in the same namespace, which belongs to this resource and goes with it. Default: a Secret that is called like this resource with -heartbeat at its end, and holds the URL as ${DEFAULT_KEY}.`,
    }),
  },
  'must be an object',
)

export const Spec = withRules(
  fields,
  [
    {
      cel: 'has(self.periodSeconds) || has(self.schedule)',
      holds: (spec) => spec.periodSeconds !== undefined || spec.schedule !== undefined,
      message: 'or spec.schedule must be given: how often the job completes, or the cron expression by which it runs',
      fieldPath: '.periodSeconds',
      reason: 'FieldValueRequired',
    },
    {
      cel: '!has(self.periodSeconds) || !has(self.schedule)',
      holds: (spec) => spec.periodSeconds === undefined || spec.schedule === undefined,
      message: 'must be left out beside spec.periodSeconds: keep one of the two',
      fieldPath: '.schedule',
      reason: 'FieldValueForbidden',
    },
    {
      cel: '!has(self.timeZone) || has(self.schedule)',
      holds: (spec) => spec.timeZone === undefined || spec.schedule !== undefined,
      message: 'must be left out without spec.schedule: a period is the same in every time zone',
      fieldPath: '.timeZone',
      reason: 'FieldValueForbidden',
    },
    {
      // On the parent: a rule on the field itself would not run when the field is added or removed.
      cel: 'has(self.project) == has(oldSelf.project) && (!has(self.project) || self.project == oldSelf.project)',
      message:
        'cannot be changed, added or removed: delete this HeartbeatCheck and create it anew to have it in another project',
      fieldPath: '.project',
      reason: 'FieldValueForbidden',
    },
  ],
  {
    description:
      'What is expected of the job: how often it reports, and when somebody should be told that it did not. Smallest: periodSeconds alone.',
  },
)

export type SpecInput = z.input<typeof Spec>
export type SpecOutput = z.output<typeof Spec>

/** What the service keeps of it for people. `resourceName`: the name of a check that has no other. */
export function toTexts({ displayName, description }: SpecOutput, resourceName: string): CheckTexts {
  return { name: displayName?.trim() ?? resourceName, description: description ?? null }
}
