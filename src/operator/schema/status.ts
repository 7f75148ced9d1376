/** The status of a HeartbeatCheck (design, section 6). */

import { z } from 'zod'
import { LIMITS } from '../../domain/limits.ts'
import { OBJECT_NAME_LENGTH, RECONCILE_ANNOTATION, REQUEST_LENGTH } from '../names.ts'
import { text } from './fields.ts'
import { DESCRIPTION as REASONS_DESCRIPTION } from './reasons.ts'

/** Words that more may join: an older definition must take what a newer operator writes. */
const WORD_LENGTH = 63

interface ConditionTexts {
  readonly types: string
  readonly reasons: string
  /** What a statement is about. */
  readonly about: string
  /** What each type says. */
  readonly meanings: string
}

/** A list of metav1.Condition, as Kubernetes' own generator writes it. */
const conditions = ({ types, reasons, about, meanings }: ConditionTexts) =>
  z.array(conditionOf({ types, reasons, about })).meta({
    description: meanings,
    maxItems: 16,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['type'],
  })

const conditionOf = ({ types, reasons, about }: Omit<ConditionTexts, 'meanings'>) =>
  z
    .object({
      type: z.string().meta({
        description: `${types}; further values may be added.`,
        maxLength: 316,
        pattern: String.raw`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
      }),
      status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'True, False or Unknown.' }),
      reason: z.string().meta({
        description: reasons,
        minLength: 1,
        maxLength: 1_024,
        pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
      }),
      message: z.string().meta({ description: 'The reason in words, for people.', maxLength: 32_768 }),
      lastTransitionTime: z.string().meta({ description: 'When the status last changed.', format: 'date-time' }),
      observedGeneration: z
        .int()
        .min(0)
        .optional()
        .meta({ description: 'The metadata.generation that the condition describes.', format: 'int64' }),
    })
    .meta({ description: `One statement about ${about}.` })

/** The fields that the status of each kind begins with. */
export const begin = (texts: ConditionTexts) => ({
  conditions: conditions(texts),
  observedGeneration: z.int().min(0).meta({
    description:
      'The metadata.generation that this status describes. While it is lower, the operator has not handled the last change.',
    format: 'int64',
  }),
  installation: text({
    max: 36,
    description:
      'Id of the installation that reconciles this resource. Other installations leave this resource alone, but for a takeover.',
  }),
})

/** How requests to reconcile were handled. */
export const HANDLED = {
  lastHandledReconcileTime: z.string().meta({
    description: 'When the operator handled lastHandledReconcileRequest.',
    format: 'date-time',
  }),
  lastHandledReconcileRequest: text({
    max: REQUEST_LENGTH,
    description: `Value of the annotation ${RECONCILE_ANNOTATION} that the operator handled last. A value of more than ${REQUEST_LENGTH} characters is here as its SHA-256.`,
  }),
}

/** A CronJob with `Allow` may have many Jobs at once; the status names some. */
export const MAX_ACTIVE = 20

const source = z
  .object({
    apiGroup: text({ max: OBJECT_NAME_LENGTH, description: 'API group of the source.' }),
    kind: text({ max: WORD_LENGTH, description: 'Kind of the source.' }),
    name: text({ max: OBJECT_NAME_LENGTH, description: 'Name of the source.' }),
    uid: text({ max: 64, description: 'The metadata.uid of the source.' }),
    suspended: z.boolean().meta({ description: 'Whether the source is suspended.' }),
    lastScheduleTime: z.string().optional().meta({
      description: 'When the source last created a run by its schedule.',
      format: 'date-time',
    }),
    active: z
      .array(text({ max: OBJECT_NAME_LENGTH, description: 'Name of a run.' }))
      .max(MAX_ACTIVE)
      .optional()
      .meta({
        description: `Names of the runs that have not ended, at most ${MAX_ACTIVE}.`,
        'x-kubernetes-list-type': 'atomic',
      }),
  })
  .meta({ description: 'What the check follows, as the operator read it last.' })

const lastRun = z
  .object({
    name: text({ max: OBJECT_NAME_LENGTH, description: 'Name of the run: of the Job of a CronJob.' }),
    startTime: z.string().optional().meta({ description: 'When the run started.', format: 'date-time' }),
    completionTime: z.string().optional().meta({ description: 'When the run ended.', format: 'date-time' }),
    outcome: text({
      max: WORD_LENGTH,
      description: 'Running, Succeeded, Warned, Failed or Deleted; further values may be added.',
    }),
    exitCode: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'Exit code of the container that failed.', format: 'int32' }),
    reason: text({ max: 1_024, description: 'Why the run failed, in one word, such as OOMKilled.' }).optional(),
    message: text({ max: 1_024, description: 'Why the run failed, in words for people.' }).optional(),
  })
  .meta({ description: 'The newest run of the source.' })

export const Status = z
  .object({
    ...begin({
      types: 'Ready, Reconciling, Stalled, Published, DependenciesResolved or Up',
      reasons: REASONS_DESCRIPTION,
      about: 'the resource or its job',
      meanings:
        'Ready: the service holds this spec, and the ping URL is published, whatever the job does. Reconciling: the operator tries again; Stalled: a person must change something first; Published: the ping URL is written; DependenciesResolved: all names of spec.dependsOn are in effect. Up: the job itself is fine.',
    }),
    checkId: text({
      max: 36,
      description:
        'Id of the check in the management API, for people and programs. The operator finds the check by the name of this resource.',
    }),
    slug: text({ max: LIMITS.slugLength, description: 'Slug of the check, in the dashboard and in metrics.' }),
    state: text({
      max: WORD_LENGTH,
      description:
        'State of the job: new (nothing reported yet), up, late (overdue, within the grace time), down (missed, failed or too long) or paused. Further values may be added.',
    }),
    reason: text({
      max: WORD_LENGTH,
      description: 'Why the job is not up, in one word: the reason of the condition Up. Left out while the job is up.',
    }),
    stateTime: z.string().meta({ description: 'When the state last changed.', format: 'date-time' }),
    schedule: text({
      max: LIMITS.scheduleLength,
      description: 'When the job runs, as a cron expression. Left out for a job that runs once in a period.',
    }),
    periodSeconds: z.int().min(0).meta({
      description: 'Seconds from one completion of the job to the next. Left out for a job with a schedule.',
      format: 'int32',
    }),
    cadence: text({
      max: LIMITS.scheduleLength,
      description: 'When the job runs, for people: the cron expression, or every 1h, every 90s and the like.',
    }),
    timeZone: text({ max: LIMITS.nameLength, description: 'Time zone of the cron expression.' }),
    graceSeconds: z.int().min(0).meta({
      description: 'Seconds that a completion may be late: the value of the spec, or the default.',
      format: 'int32',
    }),
    lastPingTime: z.string().meta({
      description:
        'When the job last completed. The operator writes a new time with another change, or else after half the interval of the job, at most once a minute.',
      format: 'date-time',
    }),
    ...HANDLED,
    published: z
      .object({
        kind: text({ max: WORD_LENGTH, description: 'Secret or ConfigMap; further values may be added.' }),
        name: text({ max: OBJECT_NAME_LENGTH, description: 'Name of the Secret or ConfigMap, in this namespace.' }),
      })
      .meta({ description: 'Where the ping URL is published.' }),
    source,
    lastRun,
  })
  .partial()
  .meta({ description: 'What the operator observed. Only the operator writes it.' })

export type StatusOutput = z.output<typeof Status>
