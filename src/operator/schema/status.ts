/** The status of a HeartbeatCheck (design, section 6). */

import { z } from 'zod'
import { LIMITS } from '../../domain/limits.ts'
import { OBJECT_NAME_LENGTH, RECONCILE_ANNOTATION, REQUEST_LENGTH } from '../names.ts'
import { text } from './fields.ts'
import { DESCRIPTION as REASONS_DESCRIPTION } from './reasons.ts'

/** Words that more may join: an older definition must take what a newer operator writes. */
const WORD_LENGTH = 63

/** metav1.Condition, as Kubernetes' own generator writes it. */
const Condition = z
  .object({
    type: z.string().meta({
      description: 'One of those that conditions describes.',
      maxLength: 316,
      pattern: String.raw`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
    }),
    status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'True, False or Unknown.' }),
    reason: z.string().meta({
      description: REASONS_DESCRIPTION,
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
  .meta({ description: 'True, false or not known.' })

/** A CronJob with `Allow` may have many Jobs at once; we show some. */
export const MAX_ACTIVE = 20

const cronJob = z
  .object({
    name: text({ max: OBJECT_NAME_LENGTH, description: 'Name of the CronJob.' }),
    uid: text({ max: 64, description: 'Its metadata.uid.' }),
    suspended: z.boolean().meta({ description: 'Its spec.suspend.' }),
    lastScheduleTime: z.string().optional().meta({
      description: 'Its status.lastScheduleTime.',
      format: 'date-time',
    }),
    active: z
      .array(text({ max: OBJECT_NAME_LENGTH, description: 'Name of a Job.' }))
      .max(MAX_ACTIVE)
      .optional()
      .meta({ description: `Its active Jobs, at most ${MAX_ACTIVE}.` }),
  })
  .meta({ description: 'The CronJob it follows.' })

const lastRun = z
  .object({
    job: text({ max: OBJECT_NAME_LENGTH, description: 'Name of its Job.' }),
    startTime: z.string().optional().meta({ description: 'When it started.', format: 'date-time' }),
    completionTime: z.string().optional().meta({ description: 'When it ended.', format: 'date-time' }),
    outcome: text({
      max: WORD_LENGTH,
      description: 'Running, Succeeded, Failed or Deleted; further values may be added.',
    }),
    exitCode: z.int().min(0).optional().meta({ description: 'Of the container.', format: 'int32' }),
    reason: text({
      max: 1_024,
      description: 'Such as OOMKilled.',
    }).optional(),
    message: text({ max: 1_024, description: 'Why it failed.' }).optional(),
  })
  .meta({
    description: 'The newest run.',
  })

export const Status = z
  .object({
    observedGeneration: z.int().min(0).meta({
      description:
        'The metadata.generation that this status describes. While it is lower, the last change is not processed.',
      format: 'int64',
    }),
    installation: text({
      max: 36,
      description:
        'Id of the installation (of its database) that reconciles this resource. Others leave the resource alone, unless it is taken over.',
    }),
    checkId: text({ max: 36, description: 'Id of the check in the management API. Not the id in its ping URL.' }),
    slug: text({ max: LIMITS.slugLength, description: 'Slug of the check, in the dashboard and in metrics.' }),
    state: text({
      max: WORD_LENGTH,
      description:
        'State of the job; further values may be added. new: no completion since it was made or resumed; up: on time; late: a completion is overdue, within the grace time; down: missed, failed or ran too long; paused: no alerts.',
    }),
    stateTime: z.string().meta({ description: 'When the state last changed.', format: 'date-time' }),
    schedule: text({
      max: LIMITS.scheduleLength,
      description: 'When the job runs: the cron expression, or for a period every 1h, every 90s and the like.',
    }),
    timeZone: text({ max: LIMITS.nameLength, description: 'Time zone of the cron expression.' }),
    graceSeconds: z.int().min(0).meta({
      description: 'Seconds that a completion may be late: those of the spec, or the default for its interval.',
      format: 'int32',
    }),
    lastPingTime: z.string().meta({
      description:
        'When the job last completed. Written with another change, or after half the interval of the job, and at least a minute.',
      format: 'date-time',
    }),
    lastHandledReconcileTime: z.string().meta({
      description: 'When the operator handled lastHandledReconcileRequest.',
      format: 'date-time',
    }),
    lastHandledReconcileRequest: text({
      max: REQUEST_LENGTH,
      description: `The value of the annotation ${RECONCILE_ANNOTATION} that was handled last; the SHA-256 of one that is longer than ${REQUEST_LENGTH} characters.`,
    }),
    published: z
      .object({
        kind: text({ max: WORD_LENGTH, description: 'Secret or ConfigMap; further values may be added.' }),
        name: text({ max: OBJECT_NAME_LENGTH, description: 'Its name, in the namespace of this resource.' }),
      })
      .meta({ description: 'Where the ping URL is published.' }),
    cronJob,
    lastRun,
    conditions: z.array(Condition).meta({
      description:
        'Ready: the service holds this spec, and the ping URL is published, whatever the job does. Reconciling: the operator retries. Stalled: a person must change something first. Published: the ping URL is written. Up: the job itself is fine.',
      maxItems: 16,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    }),
  })
  .partial()
  .meta({ description: 'What the operator observed. Only the operator writes it.' })

export type StatusOutput = z.output<typeof Status>
