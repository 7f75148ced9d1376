/** What the operator says of a HeartbeatCheck (design, section 6). */

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
      description: 'Ready, Reconciling and Stalled tell of the service, Published of the ping URL, Up of the job.',
      maxLength: 316,
      pattern: String.raw`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
    }),
    status: z.enum(['True', 'False', 'Unknown']).meta({ description: 'True, False or Unknown.' }),
    reason: z.string().meta({
      description: 'Why, in one word for programs.',
      minLength: 1,
      maxLength: 1_024,
      pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    }),
    message: z.string().meta({ description: 'Why, in words for people.', maxLength: 32_768 }),
    lastTransitionTime: z.string().meta({ description: 'When the status last changed.', format: 'date-time' }),
    observedGeneration: z
      .int()
      .min(0)
      .optional()
      .meta({ description: 'The metadata.generation that it was said of.', format: 'int64' }),
  })
  .meta({ description: 'One thing that is true, false or not known.' })

export const Status = z
  .object({
    observedGeneration: z.int().min(0).meta({
      description:
        'The metadata.generation that this status tells of; an older one means that a change is not seen yet.',
      format: 'int64',
    }),
    checkId: text({ max: 36, description: 'Id of the check in the management API. Not the id in its ping URL.' }),
    slug: text({ max: LIMITS.slugLength, description: 'Slug of the check, in the dashboard and in metrics.' }),
    state: z.enum(SHOWN_STATUSES).meta({
      description:
        'Of the job. new: no ping yet; up: on time; late: expected, and still within its grace time; down: missed, failed or overran; paused: alerts nobody.',
    }),
    lastTransitionTime: z.string().meta({ description: 'When the state last changed.', format: 'date-time' }),
    lastPingTime: z.string().meta({
      description: 'When the job last completed, as far as a minute: it is not moved on with each ping.',
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
        'Ready: the service holds exactly this spec, and the ping URL is published; a job that fails does not change it. Reconciling and Stalled: present while it is worked on, and while somebody has to change something first. Published: the ping URL is written. Up: the job itself is fine.',
      maxItems: 16,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['type'],
    }),
  })
  .partial()
  .meta({ description: 'What the operator found. Written by the operator alone.' })

export type StatusOutput = z.output<typeof Status>
