/**
 * One clock: PostgreSQL's. A replica measures how far its own is off and stamps what happens to it with the corrected time,
 * so replicas with wrong clocks agree (design, section 9).
 */

import type { Clock } from '../../runtime/clock.ts'
import type { Queryable } from './database.ts'

export interface DatabaseClock extends Pick<Clock, 'now'> {
  /** One round trip. The best of the recent samples counts: the shorter the round trip, the surer its middle. */
  measure(): Promise<void>
  offsetMs(): number
}

/** A better sample is forgotten after this, since clocks drift. */
const SAMPLE_MEMORY_MS = 60_000

export function createDatabaseClock(database: Queryable, local: Pick<Clock, 'now'>): DatabaseClock {
  let best: { offsetMs: number; roundTripMs: number; at: number } | undefined
  const offsetMs = () => best?.offsetMs ?? 0
  return {
    offsetMs,
    now: () => local.now() + offsetMs(),
    async measure() {
      const sentAt = local.now()
      const { rows } = await database.query<{ at: number }>('select clock_timestamp() as at')
      const gotAt = local.now()
      const sample = { offsetMs: rows[0]!.at - (sentAt + gotAt) / 2, roundTripMs: gotAt - sentAt, at: gotAt }
      const isBetter =
        best === undefined || sample.roundTripMs <= best.roundTripMs || gotAt - best.at > SAMPLE_MEMORY_MS
      // The local clock was set, or the database moved: an old sample is then worth nothing, however good it was.
      const isElsewhere =
        best !== undefined && Math.abs(sample.offsetMs - best.offsetMs) > sample.roundTripMs + best.roundTripMs + 50
      if (isBetter || isElsewhere) best = sample
    },
  }
}
