/** The status of a HeartbeatCheck (design, section 6). */

import { z } from 'zod'
import { SHOWN_STATUSES } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { OBJECT_NAME_LENGTH } from '../names.ts'
import { text } from './fields.ts'
import { PUBLISH_KINDS } from './publish.ts'

/** metav1.Condition, as Kubernetes' own generator writes it. */
const Condition = z
  .object({
    type: z.string().meta({
      description:
        'Ready, Reconciling and Stalled describe the sync with the service, Published the ping URL, Up the job.',
      maxLength: 316,
      pattern: String.raw`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
    }),
    status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'True, False or Unknown.' }),
    reason: z.string().meta({
      description: 'The reason in one word, for programs.',
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
  .meta({ description: 'One aspect of the resource, which is true, false or not known.' })

export const Status = z
  .object({
    observedGeneration: z.int().min(0).meta({
      description:
        'The metadata.generation that this status describes. While it is lower than metadata.generation, the operator has not processed the last change.',
      format: 'int64',
    }),
    checkId: text({ max: 36, description: 'Id of the check in the management API. Not the id in its ping URL.' }),
    slug: text({ max: LIMITS.slugLength, description: 'Slug of the check, in the dashboard and in metrics.' }),
    state: z.enum(SHOWN_STATUSES).meta({
      description:
        'State of the job. new: no ping yet; up: on time; late: a completion is overdue, within the grace time; down: missed, failed or ran too long; paused: no alerts.',
    }),
    lastTransitionTime: z.string().meta({ description: 'When the state last changed.', format: 'date-time' }),
    lastPingTime: z.string().meta({
      description: 'When the job last completed, accurate to a minute: the operator does not write it with each ping.',
      format: 'date-time',
    }),
    published: z
      .object({
        kind: z.enum(PUBLISH_KINDS).meta({ description: 'Secret or ConfigMap.' }),
        name: text({ max: OBJECT_NAME_LENGTH, description: 'Its name, in the namespace of this resource.' }),
      })
      .meta({ description: 'Where the ping URL is published.' }),
    conditions: z.array(Condition).meta({
      description:
        'Ready: the service holds exactly this spec, and the ping URL is published; a job that fails does not change it. Reconciling: the operator retries. Stalled: a person must change something first. Published: the ping URL is written. Up: the job itself is fine.',
      maxItems: 16,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    }),
  })
  .partial()
  .meta({ description: 'What the operator observed. Only the operator writes it.' })

export type StatusOutput = z.output<typeof Status>
