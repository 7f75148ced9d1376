/** Says once a second "we could take pings", and puts on record when nobody could say so (design, section 4, "Own downtime"). */

import type { Gap } from '../../domain/check.ts'
import { beat, rehearsePing } from '../../store/history/gaps.ts'
import type { Database } from '../../store/postgres/database.ts'

export interface BeatOptions {
  /** The pool that pings use: a beat that goes another way would prove nothing about pings. */
  readonly database: Database
  readonly recorder: { isWell(): boolean; recovered(): void }
  readonly onGap: (gap: Gap) => void
}

export async function keepBeat({ database, recorder, onGap }: BeatOptions): Promise<void> {
  // Pings failed since the last beat, though this statement might pass (a full disk): first see whether a ping would.
  if (!recorder.isWell()) {
    await database
      .transaction(async (tx) => {
        await rehearsePing(tx)
        throw new Rehearsed()
      })
      .catch((error) => {
        if (!(error instanceof Rehearsed)) throw error
      })
    recorder.recovered()
  }
  const gap = await beat(database)
  if (gap !== null) onGap(gap)
}

class Rehearsed extends Error {}
