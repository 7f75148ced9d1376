/** Writes the beat of the service ("pings can be stored") and records the gap when no replica could (design, section 4, "Own downtime"). */

import { isDeepStrictEqual } from 'node:util'
import type { Gap } from '../../domain/check.ts'
import type { Clock } from '../../runtime/clock.ts'
import { beat, endBeat, lockBeat, type PingBeat, rehearsePing, settleGaps } from '../../store/history/gaps.ts'
import type { Database } from '../../store/postgres/database.ts'

export interface BeatOptions {
  /** The pool that pings use: only that way does a beat say something about pings. */
  readonly database: Database
  readonly recorder: { isWell(): boolean; recovered(): void }
  /** What this process says with a beat. Its id is that of the process, not of the spool. */
  readonly self: () => PingBeat
  readonly onGap: (gap: Gap) => void
  /** It is known now whether the pings of the gap were spooled. */
  readonly onSettled: (gap: Gap, isSpooled: boolean) => void
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
    /** The process has stopped: nothing waits for it. Throws AppError `unavailable`. */
    end: () => endBeat(options.database, options.self().id),
    /** Whether this replica's last beat is too old for pings to be stored now. */
    isStale: () => clock.now() - lastBeatAt > STALE_BEAT_MS,
  }
}

/** Writes one beat. Throws when pings failed since the last beat and a dry run shows that a ping could not be stored now either. */
export async function keepBeat({ database, recorder, self, onGap, onSettled }: BeatOptions): Promise<void> {
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
  const gap = await database.transaction(async (tx) => {
    await lockBeat(tx)
    const said = self()
    const found = await beat(tx, said)
    // A database that hung in between has stored what is not true any more: pings were spooled meanwhile.
    const present = self()
    if (!isDeepStrictEqual(present, said)) await beat(tx, present)
    return found
  })
  if (gap !== null) onGap(gap)
  for (const { gap: settled, isSpooled } of await settleGaps(database)) onSettled(settled, isSpooled)
}

/** Rolls the transaction back. */
class DryRun extends Error {}
