import { z } from 'zod'
import { MANAGERS, SHOWN_STATUSES, TAGS } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { PAGE_LIMIT } from '../../domain/page.ts'
import * as field from './fields.ts'

const period = () => field.seconds(LIMITS.periodSeconds)
const grace = () => field.seconds(LIMITS.graceSeconds)
const maxRuntime = () => field.seconds(LIMITS.maxRuntimeSeconds)

const PERIOD = 'Seconds from one completion to the next.'
const GRACE = 'Seconds that a completion may be late before the check goes down.'
const MAX_RUNTIME = 'Seconds that one run may take after its start ping. Null: no limit.'

const WhenFields = {
  schedule: field.schedule().optional(),
  time_zone: field.timeZone().optional(),
  max_runtime_seconds: maxRuntime().nullable().optional().meta({ description: MAX_RUNTIME }),
}

const TAG = `must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -`
const MANY_TAGS = `must be a list of at most ${TAGS.max} different tags`
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

/** Exactly one of the two forms (design, section 3.1). For the document only: checks/read-spec.ts validates a request together with what is stored. */
const ONE_FORM = { not: { required: ['period_seconds', 'schedule'] } }

/** `description` and `max_runtime_seconds` may be null as in a response, so that a check can be created from another's response. */
export const NewCheck = z
  .strictObject({
    project_id: field.uuid('Project that the check belongs to.'),
    name: field.name('check'),
    slug: field.slug('check').optional(),
    description: field.description().nullable().optional(),
    tags: tags().optional(),
    period_seconds: period()
      .optional()
      .meta({ description: `${PERIOD} Without it and without \`schedule\`: ${LIMITS.periodSeconds.default}.` }),
    grace_seconds: grace().default(LIMITS.graceSeconds.default).meta({ description: GRACE }),
    ...WhenFields,
  })
  .meta({ id: 'NewCheck', ...ONE_FORM, dependentRequired: { time_zone: ['schedule'] } })

export const CheckUpdate = z
  .strictObject({
    name: field.name('check').optional(),
    slug: field.slug('check').optional(),
    description: field.description().nullable().optional(),
    tags: tags().optional(),
    period_seconds: period()
      .optional()
      .meta({ description: `${PERIOD} Ends \`schedule\`.` }),
    grace_seconds: grace().optional().meta({ description: GRACE }),
    ...WhenFields,
  })
  .meta({
    id: 'CheckUpdate',
    description: 'Omitted fields keep their values. Null clears a field that allows it.',
    ...ONE_FORM,
  })

const Status = z.enum(SHOWN_STATUSES).meta({
  id: 'CheckStatus',
  description:
    'new: no ping yet; late: expected, and still within its grace time; down: missed, failed or overran; paused: sends no alerts.',
})

const shared = {
  id: z.string().meta({ format: 'uuid', description: 'Identifier for the management API.' }),
  name: z.string(),
  slug: z.string(),
  status: Status,
  period_seconds: z
    .int()
    .nullable()
    .meta({ description: `${PERIOD} Null with a schedule.` }),
  grace_seconds: z.int().meta({ description: GRACE }),
  schedule: z.string().nullable().meta({ description: 'Cron expression. Null with a period.' }),
  time_zone: z.string().nullable().meta({ description: 'IANA time zone of the schedule.' }),
  last_ping_at: field.instant('Last completion.').nullable(),
  running: z.int().meta({ description: 'How many runs are open: started, not completed.' }),
}

export const Check = z
  .object({
    ...shared,
    public_id: z.string().nullable().meta({
      format: 'uuid',
      description: 'Identifier for the ping API, and the right to ping. Null for callers with the scope read.',
    }),
    project_id: z.string().meta({ format: 'uuid' }),
    description: z.string().nullable(),
    tags: z.array(z.string()).meta({ description: 'Words to group and to find checks by.' }),
    max_runtime_seconds: z.int().nullable().meta({ description: MAX_RUNTIME }),
    last_start_at: field.instant('Last start ping.').nullable(),
    created_at: field.instant('When the check was made.'),
    expected_at: field.instant('When the next completion is expected.').nullable(),
    due_at: field.instant('The earliest moment at which the check goes down if nothing happens.').nullable(),
    managed_by: z.enum(MANAGERS).meta({ description: 'Who may change and delete it.' }),
    kubernetes: z
      .object({ cluster: z.string(), namespace: z.string(), name: z.string() })
      .nullable()
      .meta({ description: 'The HeartbeatCheck that declares it.' }),
  })
  .meta({ id: 'Check' })

export const CheckSummary = z.object(shared).meta({ id: 'CheckSummary' })

export const CheckList = z
  .object({ checks: z.array(CheckSummary), next_cursor: field.nextCursor() })
  .meta({ id: 'CheckList' })

export const CheckListQuery = z.object({
  project_id: field.uuid('Project whose checks are listed.'),
  status: field.oneOf(SHOWN_STATUSES).optional().meta({ description: 'Only checks of this status.' }),
  slug: field.words('Only the check of this slug.'),
  q: field.words('Only checks whose name or slug contains this, whatever its capitals.'),
  tag: z.array(tag()).optional().meta({ description: 'Only checks with this tag; repeated: with all of them.' }),
  limit: field.limit(PAGE_LIMIT),
  cursor: field.cursor(),
})

export const CheckParams = field.idOf('check')
