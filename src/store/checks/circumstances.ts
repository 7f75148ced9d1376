/** What is around a check that may be notified (domain/circumstances.ts), and waking the checks that it keeps quiet. */

import type { Instant } from '../../domain/check.ts'
import type { Circumstances } from '../../domain/circumstances.ts'
import { spanAt } from '../../domain/silence.ts'
import type { Queryable } from '../postgres/database.ts'
import { findCovering, timesOf } from '../silences/silences.ts'

/** Of these checks, by their keys, as it is at `now`. A check without an entry has nothing around it. */
export async function readCircumstances(
  tx: Queryable,
  keys: readonly number[],
  now: Instant,
): Promise<Map<number, Circumstances>> {
  const around = new Map<number, Circumstances>()
  for (const { key, id, ...stored } of await findCovering(tx, keys, now)) {
    const times = timesOf(stored)
    const span = times === null ? null : spanAt(times, now)
    if (span === null) continue
    const last = around.get(key)?.silence
    if (last == null || last.until < span.until) around.set(key, { silence: { id, ...span }, dependencies: [] })
  }
  return around
}

/**
 * The checks that a silence keeps quiet are evaluated at once. One whose row another transaction holds is looked at
 * within a minute (`Hold.lookAt`): waiting for rows here could deadlock with the pings that hold them.
 */
export async function wakeSilenced(tx: Queryable, silenceId: string, now: Instant): Promise<void> {
  await tx.query(
    `update check_states set wake_at = to_timestamp($2::float8 / 1000) where check_key in (
        select check_key from check_states where hold ->> 'id' = $1 for no key update skip locked)`,
    [silenceId, now],
  )
}
