/** Up to when all Jobs of an area are recorded: deadlines after that wait (../deadlines/). */

import type { Context } from '../../store/context.ts'
import { type DeadlineDetail, saveDeadlineDetails } from '../../store/jobs/cron-jobs.ts'
import { type Seen, saveSeen } from '../../store/jobs/seen-areas.ts'

/** An earlier time than the stored one changes nothing. In one transaction: a passed deadline finds its detail. */
export async function markSeen({ database }: Context, seen: Seen, details: readonly DeadlineDetail[]): Promise<void> {
  if (details.length === 0) return saveSeen(database, seen)
  await database.transaction(async (tx) => {
    await saveDeadlineDetails(tx, details)
    await saveSeen(tx, seen)
  })
}
