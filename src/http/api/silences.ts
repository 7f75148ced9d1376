/** Silences: times in which no channel is notified (design, section 4, "Silences"). */

import { z } from 'zod'
import { MANAGERS, type Manager, TAGS } from '../../domain/check.ts'
import { rule } from '../../domain/errors.ts'
import { selectorText } from '../../domain/label-selector.ts'
import { LIMITS } from '../../domain/limits.ts'
import { createSilence as create, type NewSilence as New } from '../../silences/create-silence.ts'
import { getSilence as get, listSilences as list, type SilenceRecord } from '../../silences/find-silences.ts'
import { removeSilence as remove } from '../../silences/remove-silence.ts'
import { Doer } from './checks.schema.ts'
import { parsePart } from './faults.ts'
import * as field from './fields.ts'
import { listEndpoint, showRows } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

// Requests ---------------------------------------------------------------------------------------------------------------

const TAG = new RegExp(`^${TAGS.shape}$`)
const PROJECT = 'The project whose checks it covers.'
const CHECK = 'The check that it covers. Null: each of the project, or each with the tag.'
const OF_TAG = 'It covers the checks with this tag. Beside check_id both must match. Null: each.'
const SCHEDULE = 'It begins at each slot of this cron expression. Null: it holds once.'
const SELECTOR =
  'Conditions on the labels of the HeartbeatChecks of the namespace that it covers, as `kubectl get -l` takes them. Empty: it covers all of them, whatever their projects are.'
const DURATION = 'Seconds for which it holds from each slot on.'

export const NewSilence = z
  .strictObject({
    project_id: field.uuid(`${PROJECT} Default: the project of the key.`).optional(),
    check_id: field.uuid(CHECK).nullable().optional(),
    tag: z
      .string(rule(`must be a tag: ${TAGS.shape}`))
      .regex(TAG, rule(`must be a tag: ${TAGS.shape}`))
      .nullable()
      .optional()
      .meta({ description: OF_TAG }),
    starts_at: field.moment().optional().meta({ format: 'date-time', description: 'Default: now.' }),
    ends_at: field
      .moment()
      .optional()
      .meta({ format: 'date-time', description: 'In the future, and at least a second after the beginning.' }),
    schedule: field.schedule().optional().meta({ description: SCHEDULE }),
    time_zone: field.timeZone().optional(),
    duration_seconds: field.integerWithin(LIMITS.silenceSeconds).optional().meta({ description: DURATION }),
    comment: field.comment().meta({ description: 'Why, for those who look for a message that was not sent.' }),
  })
  .meta({ id: 'NewSilence', description: 'Either ends_at, or schedule with duration_seconds.' })

export const SilenceListQuery = z.object({
  ...field.page('silences'),
  project_id: field.uuid('Only of this project.').optional(),
  check_id: field.uuid('Only those that cover this check while they hold.').optional(),
})

const SilenceParams = field.idOf('silence')

// Responses --------------------------------------------------------------------------------------------------------------

export const Silence = field.shape('Silence', {
  id: field.id(),
  project_id: field.id(PROJECT),
  check_id: field.idOrNull(CHECK),
  tag: z.string().nullable().meta({ description: OF_TAG }),
  starts_at: field.instant('When it begins.').nullable().meta({ description: 'Null: it has a schedule.' }),
  ends_at: field.instant('When it ends.').nullable().meta({ description: 'Null: it has a schedule.' }),
  schedule: z.string().nullable().meta({ description: SCHEDULE }),
  time_zone: z.string().nullable(),
  duration_seconds: z.int().nullable().meta({ description: DURATION }),
  comment: z.string(),
  by: Doer,
  managed_by: z.enum(MANAGERS).meta({
    description: '`kubernetes`: a HeartbeatSilence declares it, and the API does not change it.',
  }),
  kubernetes: z
    .object({
      cluster: z.string(),
      namespace: z.string(),
      name: z.string(),
      check_selector: z.string().meta({ description: SELECTOR }),
    })
    .optional()
    .meta({ description: 'The HeartbeatSilence that declares it. Left out where none does.' }),
  created_at: field.instant('When it was created.'),
  active: z.boolean().meta({ description: 'Whether it holds now.' }),
  active_until: field.instant('Until when.').nullable().meta({ description: 'Null: it does not hold now.' }),
  next_starts_at: field.instant('When it begins next.').nullable().meta({ description: 'Null: not again.' }),
})

export const listSilences = listEndpoint({
  list: 'silences',
  entry: Silence,
  summary: 'List the silences, also those that have ended, for as long as the history is kept',
  query: SilenceListQuery,
  read: async ({ context, caller, query }, piece) => {
    const filter = { projectId: query.project_id, checkId: query.check_id }
    return showRows(await list(context, caller, filter, piece), toShown)
  },
})

export const createSilence = endpoint({
  summary: 'Notify no channel of some checks, once or again and again. At its end each that is down is notified',
  body: NewSilence,
  status: 201,
  response: Silence,
  errors: ['not_found', 'conflict'],
  handle: async ({ context, caller, body }) => toShown(await create(context, caller, inCamelCase(body))),
})

export const getSilence = endpoint({
  summary: 'Get a silence',
  params: SilenceParams,
  response: Silence,
  handle: async ({ context, caller, params }) => toShown(await get(context, caller, params.id)),
})

export const removeSilence = endpoint({
  summary: 'End a silence: each check that it covers and that is down is notified at once',
  params: SilenceParams,
  errors: ['managed_by_kubernetes'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

/** What the verb takes of a body that is not checked yet. Throws as `parsePart` does. */
export const readNewSilence = (body: unknown): New => inCamelCase(parsePart('body', NewSilence, body))

function toShown({ createdBy, kubernetes, selector, ...silence }: SilenceRecord) {
  const managedBy: Manager = kubernetes === null ? 'api' : 'kubernetes'
  const declared = kubernetes && { kubernetes: { ...kubernetes, checkSelector: selectorText(selector ?? []) } }
  return { ...silence, by: createdBy, managedBy, ...declared, active: silence.activeUntil !== null }
}
