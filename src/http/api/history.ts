/** The endpoints of a check's history: its pings and its flips, newest first. */

import { z } from 'zod'
import * as verbs from '../../checks/find-history.ts'
import { FLIP_REASONS, PING_SOURCES, PING_TYPES, STATUSES } from '../../domain/check.ts'
import { CheckParams } from './checks.schema.ts'
import * as field from './fields.ts'
import { listEndpoint, showRows } from './list-page.ts'
import { given } from './present.ts'
import { endpoint, PlainText } from './route.ts'

/** Interface, section 4.1 leaves it open; design, section 3.2 says 100. */
const STANDARD_LIMIT = 100

const since = () =>
  field.moment().optional().meta({ format: 'date-time', description: 'Only entries of this time or later.' })
const until = () =>
  field.moment().optional().meta({ format: 'date-time', description: 'Only entries before this time.' })

export const PingListQuery = z.object({
  type: field.oneOf(PING_TYPES).optional().meta({ description: 'Only pings of this type.' }),
  since: since(),
  until: until(),
  body: field
    .oneOf(verbs.BODY_FORMS)
    .default('full')
    .meta({
      description: `How much of each body is returned: null, its first ${verbs.BODY_CUT} characters, or all of it.`,
    }),
  ...field.page('pings', STANDARD_LIMIT),
})

export const FlipListQuery = z.object({
  since: since(),
  until: until(),
  ...field.page('flips', STANDARD_LIMIT),
})

/** Whether there is such a ping is asked after the check was found. */
export const PingParams = field.idOf('check').extend({
  ping_id: z.string().toLowerCase().meta({ format: 'uuid', description: 'Id of the ping.' }),
})

export const Ping = field.shape('Ping', {
  id: field.id(),
  type: z.enum(PING_TYPES).meta({
    description:
      'An exit-code ping is success (0), warn (one of `warn_exit_codes` of the check), or fail (anything else).',
  }),
  exit_code: field.integerOrNull('0 for success; null for start, log, and a fail or warn without an exit code.'),
  created_at: field.instant('When the ping arrived.'),
  duration_ms: field.integerOrNull(
    "Milliseconds: the job's own measurement, else completion minus start. Null when neither is known.",
  ),
  run_id: field.idOrNull('The `rid` that the ping carried, or the uid of the Job.'),
  body: field.stringOrNull('What a POST carried, as text; bytes that are not UTF-8 are shown as U+FFFD.'),
  body_truncated: z.boolean().meta({
    description:
      'Whether the job sent more than `body`: the last 10,240 bytes are kept, and nothing of a body that is compressed or above 1 MB.',
  }),
  source: z.enum(PING_SOURCES).meta({
    description:
      'http: the ping API. job: the Job of a CronJob that the check follows; its times are those of the Job.',
  }),
})

export const Flip = field.shape('Flip', {
  id: field.id(),
  at: field.instant('When it became true: a missed ping is dated at its deadline.'),
  from: z.enum(STATUSES).nullable().meta({ description: 'Null for the first.' }),
  to: z.enum(STATUSES).meta({
    description:
      'The same as `from` of an entry that changes no status: an interval without a run that ended in time and that does not take the check down, or one that the service could not judge.',
  }),
  reason: z.enum(FLIP_REASONS),
  ping_id: field.idOrNull('The ping that caused it.'),
  detail: field.stringOrNull(
    'Why a run of a CronJob failed, did not start or took too long, or why nothing is expected of it, in words. Null where it is not known, and of checks that follow no CronJob.',
  ),
})

export const listPings = listEndpoint({
  list: 'pings',
  entry: Ping,
  summary: 'List the pings of a check, newest first',
  params: CheckParams,
  query: PingListQuery,
  async read({ context, caller, params, query: { type, since, until, body } }, piece) {
    const filter = { body, ...given({ type, since, until }) }
    return showRows(await verbs.listPings(context, caller, params.id, filter, piece), (ping) => toShown(ping, body))
  },
})

export const getPing = endpoint({
  summary: 'Get a ping of a check',
  params: PingParams,
  response: Ping,
  handle: async ({ context, caller, params }) =>
    toShown(await verbs.getPing(context, caller, params.id, params.ping_id), 'full'),
})

export const getPingBody = endpoint({
  summary: 'Get the text of a ping, with the bytes as they were sent',
  params: PingParams,
  response: PlainText,
  handle: async ({ context, caller, params }) => (await verbs.getPing(context, caller, params.id, params.ping_id)).body,
})

export const listFlips = listEndpoint({
  list: 'flips',
  entry: Flip,
  summary: 'List the changes of status of a check, newest first, with what was counted and changed none',
  params: CheckParams,
  query: FlipListQuery,
  async read({ context, caller, params, query: { since, until } }, piece) {
    const flips = await verbs.listFlips(context, caller, params.id, piece, given({ since, until }))
    return showRows(flips, (flip) => ({ detail: null, ...flip }))
  },
})

function toShown({ isBodyTruncated: bodyTruncated, ...ping }: verbs.PingRecord, form: verbs.BodyForm) {
  return { ...ping, bodyTruncated, body: ping.body === null ? null : presentBody(ping.body, form) }
}

/** What was cut in the middle of a character lies behind the characters that are shown. */
function presentBody(body: Buffer, form: verbs.BodyForm): string {
  const text = body.toString('utf8')
  return form === 'cut' ? Array.from(text).slice(0, verbs.BODY_CUT).join('') : text
}
