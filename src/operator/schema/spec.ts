/**
 * The spec of a HeartbeatCheck (design, section 6): the one source of the definition that the API server enforces
 * (definition.ts), of the types, and of how the operator reads one (heartbeat-check.ts). The numbers are the domain's
 * LIMITS. `kubectl explain` shows the descriptions.
 */

import { z } from 'zod'
import { type CheckTexts, NO_TEXTS, TAGS } from '../../domain/check.ts'
import { FOLLOWED_DEFAULTS } from '../../domain/followed-defaults.ts'
import { LIMITS } from '../../domain/limits.ts'
import { isVisible } from '../../domain/plain-text.ts'
import { DEFAULT_KEY, OBJECT_NAME_LENGTH } from '../names.ts'
import { integer, NO_CONTROLS, oneOf, SUBDOMAIN, setOf, shaped, text, withRules } from './fields.ts'
import { publish } from './publish.ts'
import { scheduleText, timeZoneText } from './schedule.ts'
import { SOURCE_RULES, sourceRef } from './source-ref.ts'

export const DELETION_POLICIES = ['Delete', 'Retain'] as const

/** The property Bidi_Control of Unicode, which RE2 does not know by name. */
const BIDI_CONTROL = String.raw`[\x{61C}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2066}-\x{2069}]`

export const displayName = text({
  max: LIMITS.nameLength,
  description: `Name that people read in the dashboard and in alerts, 1 to ${LIMITS.nameLength} characters. Default: the first ${LIMITS.nameLength} characters of metadata.name. Example: Nightly backup`,
  rules: [
    {
      cel: 'self.trim().size() > 0',
      // The API server has no property for what cannot be seen: such a name is accepted there, and Stalled here.
      holds: isVisible,
      message: 'must not be empty: give a name, or leave the field out to use metadata.name',
      reason: 'FieldValueInvalid',
    },
    {
      cel: String.raw`!self.trim().matches(r'\p{Cc}')`,
      holds: (name) => !/\p{Cc}/u.test(name.trim()),
      message: 'must be one line, without control characters',
      reason: 'FieldValueInvalid',
    },
    {
      cel: `!self.matches(r'${BIDI_CONTROL}')`,
      holds: (name) => !/\p{Bidi_Control}/u.test(name),
      message: 'must not hold characters that change the direction of text: they make a name look like another',
      reason: 'FieldValueInvalid',
    },
  ],
})

const description = text({
  max: LIMITS.descriptionLength,
  description: `What the job does and whom to ask, for the people who get the alert; at most ${LIMITS.descriptionLength} characters. Default: none.`,
  rules: [NO_CONTROLS],
})

const tag = text({
  max: 50,
  description: 'A tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -. Example: team:payments',
  rules: [shaped(TAGS.shape, 'must be 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -')],
})

const tags = setOf(tag, {
  max: TAGS.max,
  of: 'a tag',
  description: `Words to group and to find checks by, at most ${TAGS.max}; events have them too. Default: none. Example: [team:payments, nightly]`,
})

const periodSeconds = integer({
  ...LIMITS.periodSeconds,
  description: `Seconds from one completion of the job to the next, ${LIMITS.periodSeconds.min} to ${LIMITS.periodSeconds.max}. Give either periodSeconds or schedule. Example: 3600`,
})

const schedule = scheduleText({
  description:
    'When the job runs: a cron expression of five fields or a macro such as @daily, read as a CronJob reads its schedule. Give either periodSeconds or schedule. Example: "0 2 * * *"',
  instead: 'give spec.periodSeconds instead of a schedule',
})

const timeZone = timeZoneText('only together with schedule')

const graceSeconds = integer({
  ...LIMITS.graceSeconds,
  description: `Seconds that a completion may be late before the check goes down, ${LIMITS.graceSeconds.min} to ${LIMITS.graceSeconds.max}; with sourceRef, seconds that a run may start late. Default: a tenth of the interval, at least 60 and at most ${LIMITS.graceSeconds.default}; with sourceRef ${FOLLOWED_DEFAULTS.graceSeconds}. status.graceSeconds is the value in use`,
})

const maxRuntimeSeconds = integer({
  ...LIMITS.maxRuntimeSeconds,
  description: `Seconds that one run may take, ${LIMITS.maxRuntimeSeconds.min} to ${LIMITS.maxRuntimeSeconds.max}; the check goes down when a run takes longer. The job reports the start of a run to $HEARTBEAT_URL/start, and is on time when it starts on time. Default: none; with sourceRef, activeDeadlineSeconds of its Jobs + ${FOLLOWED_DEFAULTS.beyondDeadlineSeconds}, else ${FOLLOWED_DEFAULTS.maxRuntimeSeconds}`,
})

const warnExitCode = integer({ min: 1, max: LIMITS.exitCode, description: `An exit code, 1 to ${LIMITS.exitCode}.` })
const warnExitCodes = setOf(warnExitCode, {
  max: LIMITS.warnExitCodes,
  of: 'an exit code',
  description: `Exit codes with which the job is done, but a person should look at it, at most ${LIMITS.warnExitCodes}; with sourceRef, exit codes of the container that failed. check.warned is sent instead of check.down. Default: none, for restic for example [3]`,
})

const failuresBeforeDown = integer({
  ...LIMITS.threshold,
  description: `So many failures in a row take the check down, ${LIMITS.threshold.min} to ${LIMITS.threshold.max}; a success or a warning ends the row. Default: 1. Example: 3`,
})

const missesBeforeDown = integer({
  ...LIMITS.threshold,
  description: `So many intervals in a row without a run that ended in time take the check down, ${LIMITS.threshold.min} to ${LIMITS.threshold.max}. Default: 1. Example: 2`,
})

const remindEverySeconds = integer({
  ...LIMITS.remindEverySeconds,
  description: `Seconds after which check.down is sent again, time after time, while the check is down, ${LIMITS.remindEverySeconds.min} to ${LIMITS.remindEverySeconds.max}. Default: it is not. Example for each day: 86400`,
})

const remindOnEachRun = z.boolean('must be true or false').meta({
  description:
    'true sends check.down again at each further run that fails or is missed while the check is down, for a job that runs rarely. Default: false',
})

const dependency = text({
  max: OBJECT_NAME_LENGTH,
  description: 'Name of a HeartbeatCheck in this namespace.',
  rules: [shaped(SUBDOMAIN, 'must be the name of a HeartbeatCheck, such as database')],
})
const dependsOn = setOf(dependency, {
  max: LIMITS.dependencies,
  of: 'a name',
  description: `Names of HeartbeatChecks in this namespace that the job depends on, at most ${LIMITS.dependencies}: while one of them is down, check.down of this one is not sent. What does not exist yet, and a ring, is left out, and the condition DependenciesResolved says so. Default: none, for a job that needs a database for example [database]`,
})

const suspend = z.boolean('must be true or false').meta({
  description:
    'true pauses the check, which then sends no alerts. While the field is set, to true or false, the dashboard and the API cannot pause or resume the check. Default: not set',
})

const project = text({
  max: LIMITS.slugLength,
  description:
    "Slug of the project that the check belongs to; it cannot be changed later. The annotation heartbeat-operator.io/projects of the Namespace must list the slug. Default: the first slug of that annotation, or without it the Namespace's own project",
  rules: [
    shaped(
      '[a-z0-9]([a-z0-9_-]*[a-z0-9])?',
      'must be the slug of a project: a-z, 0-9, - and _, beginning and ending with a letter or digit',
    ),
  ],
})

const deletionPolicy = oneOf(
  DELETION_POLICIES,
  'What happens to the check when this resource is deleted. Delete removes the check, and a resource of the same name restores its history and its ping URL within 7 days; Retain leaves the check to the dashboard and the API. Default: Delete',
).default('Delete')

const fields = z.object(
  {
    displayName: displayName.optional(),
    description: description.optional(),
    tags: tags.optional(),
    periodSeconds: periodSeconds.optional(),
    schedule: schedule.optional(),
    timeZone: timeZone.optional(),
    graceSeconds: graceSeconds.optional(),
    maxRuntimeSeconds: maxRuntimeSeconds.optional(),
    warnExitCodes: warnExitCodes.optional(),
    failuresBeforeDown: failuresBeforeDown.optional(),
    missesBeforeDown: missesBeforeDown.optional(),
    remindEverySeconds: remindEverySeconds.optional(),
    remindOnEachRun: remindOnEachRun.optional(),
    dependsOn: dependsOn.optional(),
    suspend: suspend.optional(),
    project: project.optional(),
    sourceRef: sourceRef.optional().meta({
      ...sourceRef.meta(),
      description:
        'What the check follows: a CronJob in this namespace, whose schedule, time zone and suspension apply, and whose Jobs report. It cannot be changed later. Default: none',
    }),
    deletionPolicy,
    publish: publish.optional().meta({
      ...publish.meta(),
      description: `Where the operator writes the check's ping URL, for the job to read: a Secret or ConfigMap in this namespace, deleted with this resource. Default: the key ${DEFAULT_KEY} of a Secret with the name of this resource and the suffix -heartbeat; with sourceRef, nowhere`,
    }),
  },
  'must be an object',
)

export const Spec = withRules(
  fields,
  [
    {
      cel: 'has(self.periodSeconds) || has(self.schedule) || has(self.sourceRef)',
      holds: ({ periodSeconds, schedule, sourceRef }) =>
        periodSeconds !== undefined || schedule !== undefined || sourceRef !== undefined,
      message: 'give spec.periodSeconds, spec.schedule or spec.sourceRef',
      isSentence: true,
      reason: 'FieldValueRequired',
    },
    {
      cel: '!has(self.periodSeconds) || !has(self.schedule) || has(self.sourceRef)',
      holds: ({ periodSeconds, schedule, sourceRef }) =>
        periodSeconds === undefined || schedule === undefined || sourceRef !== undefined,
      message: 'must be left out beside spec.periodSeconds: keep one of the two',
      fieldPath: '.schedule',
      reason: 'FieldValueForbidden',
    },
    {
      // A rule of sourceRef reports it there.
      cel: '!has(self.timeZone) || has(self.schedule) || has(self.sourceRef)',
      holds: ({ timeZone, schedule, sourceRef }) =>
        timeZone === undefined || schedule !== undefined || sourceRef !== undefined,
      message: 'must be left out without spec.schedule: a period is the same in every time zone',
      fieldPath: '.timeZone',
      reason: 'FieldValueForbidden',
    },
    {
      // On the parent: a rule on the field itself would not run when the field is added or removed.
      cel: 'has(self.project) == has(oldSelf.project) && (!has(self.project) || self.project == oldSelf.project)',
      message:
        'cannot be changed, added or removed: to use another project, delete this HeartbeatCheck and create it again',
      fieldPath: '.project',
      reason: 'FieldValueForbidden',
    },
    ...SOURCE_RULES,
  ],
  {
    description:
      'What is expected of the job: how often it reports, and how late a report may be before an alert is sent. Give periodSeconds, schedule or sourceRef; every other field has a default.',
  },
)

export type SpecInput = z.input<typeof Spec>
export type SpecOutput = z.output<typeof Spec>

/** The name of a check whose resource gives none. A resource's name may be longer than a check's. */
export const nameOf = (resourceName: string): string => resourceName.slice(0, LIMITS.nameLength)

/**
 * What the service keeps of it for people; the labels are those of the resource. `resourceName`: the name of a check
 * that has no other.
 */
export function toTexts({ displayName, description, tags }: SpecOutput, resourceName: string): CheckTexts {
  return {
    ...NO_TEXTS,
    name: displayName?.trim() ?? nameOf(resourceName),
    description: description ?? null,
    tags: tags ?? [],
  }
}
