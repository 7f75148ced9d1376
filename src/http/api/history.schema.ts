import { z } from 'zod'
import { FLIP_REASONS, PING_SOURCES, PING_TYPES, STATUSES } from '../../domain/check.ts'
import * as field from './fields.ts'

/** Interface, section 4.1 leaves it open; design, section 3.2 says 100. */
const STANDARD_LIMIT = 100

export const HistoryQuery = z.object({ limit: field.limit(STANDARD_LIMIT), cursor: field.cursor() })

const Ping = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    type: z.enum(PING_TYPES).meta({ description: 'An exit-code ping is success (0) or fail (anything else).' }),
    exit_code: z
      .int()
      .nullable()
      .meta({ description: '0 for success; null for start, log, and a fail without an exit code.' }),
    created_at: field.instant('When the ping arrived.'),
    duration_ms: z.int().nullable().meta({
      description: "Milliseconds: the job's own measurement, else completion minus start. Null when neither is known.",
    }),
    run_id: z.string().nullable().meta({ format: 'uuid', description: 'The `rid` that the ping carried.' }),
    body: z
      .string()
      .nullable()
      .meta({ description: 'What a POST carried, as text; bytes that are not UTF-8 are shown as U+FFFD.' }),
    source: z.enum(PING_SOURCES).meta({ description: 'How the ping came in.' }),
  })
  .meta({ id: 'Ping' })

export const PingList = z.object({ pings: z.array(Ping), next_cursor: field.nextCursor() }).meta({ id: 'PingList' })

const Flip = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    at: field.instant('When it became true: a missed ping is dated at its deadline.'),
    from: z.enum(STATUSES).nullable().meta({ description: 'Null for the first.' }),
    to: z.enum(STATUSES),
    reason: z.enum(FLIP_REASONS),
    ping_id: z.string().nullable().meta({ format: 'uuid', description: 'The ping that caused it.' }),
  })
  .meta({ id: 'Flip' })

export const FlipList = z.object({ flips: z.array(Flip), next_cursor: field.nextCursor() }).meta({ id: 'FlipList' })
