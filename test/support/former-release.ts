/**
 * A replica of the release before on the schema of this one, as during a rolling update or after a rollback: its statements as they were, and what
 * it takes for the row of a check that follows a source. It does not know that there are such checks.
 */

import { type Change, decideChanges, type Waking } from '../../src/checks/change.ts'
import type { Instant } from '../../src/domain/check.ts'
import { saveChanges } from '../../src/store/checks/change-sets.ts'
import { lockStates } from '../../src/store/checks/states.ts'
import type { Database, Queryable } from '../../src/store/postgres/database.ts'
import { timestamp } from '../../src/store/postgres/instants.ts'

/** The keys of the checks whose deadlines it would evaluate now. */
export async function findDueFormerly(db: Queryable): Promise<number[]> {
  const { rows } = await db.query<{ key: number }>(
    `select check_key as key from check_states
      where wake_at <= now() and exists (select from service_beat where beat_at > now() - $2 * interval '1 millisecond')
      order by wake_at limit $1 for no key update skip locked`,
    [100, 5_000],
  )
  return rows.map(({ key }) => key)
}

/** Carries out a change as it would: with the rules of a check that is pinged, `earlier` for pings and `first` for people. */
export async function changeFormerly(database: Database, change: Change, waking: Waking): Promise<void> {
  await database.transaction(async (tx) => {
    const [locked] = await lockStates(tx, [change.key])
    const { rows } = await tx.query<{ wakeAt: Instant | null }>(
      'select wake_at as "wakeAt" from check_states where check_key = $1',
      [change.key],
    )
    const row = { ...locked!, spec: { ...locked!.spec!, awaits: 'completion' as const }, wakeAt: rows[0]!.wakeAt }
    const { decisions, changeSet } = decideChanges([row], [change], waking)
    for (const decision of decisions) if (decision.kind === 'failed') throw decision.error
    const states = changeSet.states.map((state) => ({ ...state, wakeAt: locked!.wakeAt }))
    await saveChanges(tx, { ...changeSet, states })
    const [changed] = changeSet.states
    if (changed === undefined || changed.wakeAt === row.wakeAt) return
    await tx.query(
      'update check_states s set wake_at = i.wake_at from unnest($1::int8[], $2::timestamptz[]) i (key, wake_at) where s.check_key = i.key',
      [[change.key], [timestamp(changed.wakeAt)]],
    )
  })
}
