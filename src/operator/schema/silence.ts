/**
 * The spec and the status of a HeartbeatSilence: the source of the definition that the API server enforces
 * (definition.ts), and of how the operator reads one.
 */

import { z } from 'zod'
import { isStorable } from '../../domain/instant.ts'
import { type Requirement, SELECTOR_OPERATORS } from '../../domain/label-selector.ts'
import { LABELS } from '../../domain/labels.ts'
import { LIMITS } from '../../domain/limits.ts'
import { SHORTEST_MS } from '../../domain/silence.ts'
import type { Condition, KubernetesObject } from '../../kubernetes/objects.ts'
import type { GivenTimes } from '../../silences/create-silence.ts'
import { LABEL_LENGTH } from '../names.ts'
import {
  describeIssue,
  entries,
  integer,
  LABEL_KEYS,
  LABEL_VALUE,
  labelKey,
  NO_CONTROLS,
  oneOf,
  text,
  withRules,
} from './fields.ts'
import { scheduleText, timeZoneText } from './schedule.ts'
import { begin, HANDLED } from './status.ts'

/** What a person has to correct first: `Ready` is False, `Stalled` True, both with the reason. */
export const SILENCE_STALLED = [
  'InvalidSpec',
  'ProjectNotAllowed',
  'ProjectNotFound',
  'SilenceRefused',
  'ManagedElsewhere',
] as const
export type SilenceStalledReason = (typeof SILENCE_STALLED)[number]

export const ACTIVE_REASONS = ['Active', 'Planned', 'Ended'] as const

/** Of a selector: within CEL's cost budget. */
const REQUIREMENTS = 16

const TIME = z.iso.datetime({ offset: true })
/** The API server checks the format. */
const time = (description: string) =>
  z
    .string('must be text')
    .refine((value) => TIME.safeParse(value).success, {
      error: 'must be an ISO 8601 time with its offset, such as 2030-01-31T12:00:00Z',
      abort: true,
    })
    .refine((value) => isStorable(Date.parse(value)), 'must lie in the years 1 to 9999 in UTC')
    .meta({ description, format: 'date-time' })

const labelValue = text({ max: LABEL_LENGTH, description: 'The value of a label.', rules: [LABEL_VALUE] })

const requirement = withRules(
  z.object(
    {
      key: text({
        max: LABELS.nameLength,
        description: 'Name of the label.',
        rules: [labelKey('must be a key such as')],
      }),
      operator: oneOf(
        SELECTOR_OPERATORS,
        'In and NotIn compare the value; a missing label fulfils NotIn and DoesNotExist.',
      ),
      values: z
        .array(labelValue, 'must be a list')
        .max(REQUIREMENTS, `must have at most ${REQUIREMENTS} items`)
        .optional()
        .meta({ description: 'For In and NotIn.', 'x-kubernetes-list-type': 'atomic' }),
    },
    'must be an object',
  ),
  [
    {
      cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
      holds: ({ operator, values = [] }) => (operator === 'In' || operator === 'NotIn') === values.length > 0,
      message: 'must have values with In and NotIn, and none with Exists and DoesNotExist',
      reason: 'FieldValueInvalid',
    },
  ],
  { description: 'A condition on a label.' },
)

const checkSelector = z
  .object(
    {
      matchLabels: entries({
        max: REQUIREMENTS,
        value: labelValue,
        description: 'Labels that a HeartbeatCheck must have, each with this value.',
        rules: [LABEL_KEYS],
      }).optional(),
      matchExpressions: z
        .array(requirement, 'must be a list')
        .max(REQUIREMENTS, `must have at most ${REQUIREMENTS} items`)
        .optional()
        .meta({ description: 'Conditions that must all hold.', 'x-kubernetes-list-type': 'atomic' }),
    },
    'must be an object',
  )
  .meta({ 'x-kubernetes-map-type': 'atomic' })

export const SilenceSpec = withRules(
  z.object(
    {
      startsAt: time(
        'When the silence begins, if it holds once. Default: at once. Example: 2030-01-31T22:00:00Z',
      ).optional(),
      endsAt: time(
        'When the silence ends, if it holds once, at least a second after its beginning. Give either endsAt or schedule. Example: 2030-02-01T02:00:00Z',
      ).optional(),
      schedule: scheduleText({
        description:
          'When the silence begins, again and again: a cron expression of five fields or a macro such as @weekly, read as a CronJob reads its schedule. Give either endsAt or schedule. Example for 2 o\'clock on Sundays: "0 2 * * 0"',
        instead: 'give the times at which the silence begins',
      }).optional(),
      timeZone: timeZoneText('only together with schedule').optional(),
      durationSeconds: integer({
        ...LIMITS.silenceSeconds,
        description: `Seconds for which the silence holds from each time of the schedule on, ${LIMITS.silenceSeconds.min} to ${LIMITS.silenceSeconds.max}; required with schedule. Example for two hours: 7200`,
      }).optional(),
      comment: text({
        max: LIMITS.commentLength,
        description: `Why, for the people who look for a message that was not sent; at most ${LIMITS.commentLength} characters.`,
        rules: [NO_CONTROLS],
      }),
      checkSelector: checkSelector.optional().meta({
        ...checkSelector.meta(),
        description:
          'The silence covers the HeartbeatChecks of this namespace whose labels fulfil all conditions. Default: all of the namespace',
      }),
    },
    'must be an object',
  ),
  [
    {
      cel: 'has(self.endsAt) != has(self.schedule)',
      holds: ({ endsAt, schedule }) => (endsAt === undefined) !== (schedule === undefined),
      message: 'give either spec.endsAt or spec.schedule',
      isSentence: true,
      reason: 'FieldValueInvalid',
    },
    {
      cel: 'has(self.durationSeconds) == has(self.schedule)',
      holds: ({ durationSeconds, schedule }) => (durationSeconds === undefined) === (schedule === undefined),
      message: 'spec.schedule and spec.durationSeconds go together',
      isSentence: true,
      reason: 'FieldValueInvalid',
    },
    {
      cel: '!has(self.timeZone) || has(self.schedule)',
      holds: ({ timeZone, schedule }) => timeZone === undefined || schedule !== undefined,
      message: 'must be left out without spec.schedule: a time has its offset',
      fieldPath: '.timeZone',
      reason: 'FieldValueForbidden',
    },
    {
      cel: '!has(self.startsAt) || has(self.endsAt)',
      holds: ({ startsAt, endsAt }) => startsAt === undefined || endsAt !== undefined,
      message: 'must be left out without spec.endsAt: a schedule says when the silence begins',
      fieldPath: '.startsAt',
      reason: 'FieldValueForbidden',
    },
    {
      cel: "!has(self.startsAt) || !has(self.endsAt) || self.startsAt + duration('1s') <= self.endsAt",
      holds: ({ startsAt, endsAt }) =>
        startsAt === undefined || endsAt === undefined || Date.parse(endsAt) - Date.parse(startsAt) >= SHORTEST_MS,
      message: 'must be at least a second after spec.startsAt',
      fieldPath: '.endsAt',
      reason: 'FieldValueInvalid',
    },
  ],
  { description: 'A time in which no channel is notified of HeartbeatChecks of this namespace, and why.' },
)

export const SilenceStatus = z
  .object({
    ...begin({
      types: 'Ready, Reconciling, Stalled or Active',
      reasons: `The reason in one word, for programs; further values may be added. Ready: Synced, ProgressingWithRetry, Uninstalled, or as Stalled; Reconciling: ProgressingWithRetry; Stalled: ${SILENCE_STALLED.join(', ')}; Active: ${ACTIVE_REASONS.join(', ')}.`,
      about: 'the resource or its silence',
      meanings:
        'Ready: the service holds this spec. Reconciling: the operator tries again; Stalled: a person must change something first. Active: the silence holds now.',
    }),
    silenceId: text({ max: 36, description: 'Id of the silence in the management API, for people and programs.' }),
    activeUntil: z
      .string()
      .meta({ description: 'Until when the silence holds, if it holds now.', format: 'date-time' }),
    nextStartTime: z.string().meta({ description: 'When the silence begins next.', format: 'date-time' }),
    ...HANDLED,
  })
  .partial()
  .meta({ description: 'What the operator observed. Only the operator writes it.' })

export interface HeartbeatSilence extends KubernetesObject {
  readonly spec: z.input<typeof SilenceSpec>
  readonly status?: HeartbeatSilenceStatus
}

export type HeartbeatSilenceStatus = Readonly<
  Omit<z.output<typeof SilenceStatus>, 'conditions'> & { conditions?: readonly Condition[] }
>

/** What a HeartbeatSilence declares. */
export interface ReadSilence {
  readonly times: GivenTimes
  readonly selector: readonly Requirement[]
  readonly comment: string
}

/** Validates again what the API server validated: a resource may have been stored under an older definition. */
export function readSilence({
  spec,
}: Pick<HeartbeatSilence, 'spec'>): ReadSilence | { readonly faults: readonly string[] } {
  const parsed = SilenceSpec.safeParse(spec)
  if (!parsed.success) return { faults: parsed.error.issues.map((issue) => describeIssue('spec', issue)) }
  const { startsAt, endsAt, schedule, timeZone, durationSeconds, comment, checkSelector: given } = parsed.data
  const at = (value: string | undefined) => (value === undefined ? undefined : Date.parse(value))
  const labels = Object.entries(given?.matchLabels ?? {})
  const expressions = given?.matchExpressions ?? []
  return {
    times: { startsAt: at(startsAt), endsAt: at(endsAt), schedule, timeZone, durationSeconds },
    selector: [
      ...labels.map(([key, value]) => ({ key, operator: 'In' as const, values: [value] })),
      ...expressions.map(({ values = [], ...one }) => ({ ...one, values })),
    ],
    comment,
  }
}
