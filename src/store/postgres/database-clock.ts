/** PostgreSQL's clock: each replica corrects its own by the measured offset, so that all agree (design, section 9). */

import { type Clock, toMicroseconds } from '../../runtime/clock.ts'
import type { Queryable } from './database.ts'

export type DatabaseClock = ReturnType<typeof createDatabaseClock>

/** Older samples are replaced by any newer one, since clocks drift. */
const SAMPLE_MEMORY_MS = 60_000

export function createDatabaseClock(database: Queryable, local: Pick<Clock, 'now'>) {
  let best: { offsetMs: number; roundTripMs: number; at: number } | undefined
  const offsetMs = () => best?.offsetMs ?? 0
  return {
    offsetMs,
    now: () => toMicroseconds(local.now() + offsetMs()),
    /** Takes a sample. The sample with the shortest recent round trip is used. Throws AppError `unavailable`. */
    async measure(): Promise<void> {
      const sentAt = local.now()
      const { rows } = await database.query<{ at: number }>('select clock_timestamp() as at')
      const gotAt = local.now()
      const sample = { offsetMs: rows[0]!.at - (sentAt + gotAt) / 2, roundTripMs: gotAt - sentAt, at: gotAt }
      const isBetter =
        best === undefined || sample.roundTripMs <= best.roundTripMs || gotAt - best.at > SAMPLE_MEMORY_MS
      // The database moved, or its clock was set: older samples are wrong.
      const hasJumped =
        best !== undefined && Math.abs(sample.offsetMs - best.offsetMs) > sample.roundTripMs + best.roundTripMs + 50
      if (isBetter || hasJumped) best = sample
    },
  }
}
