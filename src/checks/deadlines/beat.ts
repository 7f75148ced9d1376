/** Writes the beat of the service ("pings can be stored") and records the gap when no replica could (design, section 4, "Own downtime"). */

import type { Gap } from '../../domain/check.ts'
import type { Clock } from '../../runtime/clock.ts'
import { beat, rehearsePing } from '../../store/history/gaps.ts'
import type { Database } from '../../store/postgres/database.ts'

export interface BeatOptions {
  /** The pool that pings use: only that way does a beat say something about pings. */
  readonly database: Database
  readonly recorder: { isWell(): boolean; recovered(): void }
  readonly onGap: (gap: Gap) => void
}

/** After two missed beats and a margin, the database counts as not writable. */
const STALE_BEAT_MS = 2_500

/** `run` is the run of a loop. */
export function createBeat({ clock, ...options }: BeatOptions & { readonly clock: Pick<Clock, 'now'> }) {
  let lastBeatAt = Number.NEGATIVE_INFINITY
  return {
    async run(): Promise<'done'> {
      await keepBeat(options)
      lastBeatAt = clock.now()
      return 'done'
    },
    /** Whether this replica's last beat is too old for pings to be stored now. */
    isStale: () => clock.now() - lastBeatAt > STALE_BEAT_MS,
  }
}

/** Writes one beat. Throws when pings failed since the last beat and a dry run shows that a ping could not be stored now either. */
export async function keepBeat({ database, recorder, onGap }: BeatOptions): Promise<void> {
  // The beat's own statement may pass where a ping fails (a full disk).
  if (!recorder.isWell()) {
    await database
      .transaction(async (tx) => {
        await rehearsePing(tx)
        throw new DryRun()
      })
      .catch((error) => {
        if (!(error instanceof DryRun)) throw error
      })
    recorder.recovered()
  }
  const gap = await beat(database)
  if (gap !== null) onGap(gap)
}

/** Rolls the transaction back. */
class DryRun extends Error {}
