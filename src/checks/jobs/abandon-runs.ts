/**
 * Closes runs whose Job is gone: it ended or was deleted while no controller watched. Their end is unknown, so nothing
 * is recorded.
 */

import { saveChanges } from '../../store/checks/change-sets.ts'
import type { Resource } from '../../store/checks/checks.ts'
import { lockStates } from '../../store/checks/states.ts'
import type { Context } from '../../store/context.ts'
import { findFollowing } from '../../store/jobs/followed-checks.ts'
import { type Around, decideChanges, inCircumstances } from '../change.ts'

/**
 * Runs that are not open are left out. Returns `held`, at once and with nothing closed, when another transaction holds
 * the check's row. Throws AppError `unavailable` when the database cannot serve it now, and another error when what is
 * stored of the check cannot be read.
 */
export function abandonRuns(
  { database, clock }: Context,
  resource: Resource,
  runIds: readonly string[],
): Promise<'closed' | 'held'> {
  return database.transaction(async (tx) => {
    const [check] = await findFollowing(tx, [resource])
    if (check === null || check === undefined) return 'closed'
    const [locked] = await lockStates(tx, [check.key], 'skip locked')
    if (locked === undefined) return 'held'
    const at = clock.now()
    const gone = locked.state.runs.flatMap(({ id }) => (id !== null && runIds.includes(id) ? [id] : []))
    if (gone.length === 0) return 'closed'
    const changes = gone.map((runId) => ({
      key: locked.key,
      at,
      event: { kind: 'abandon', runId, at: null } as const,
    }))
    const decide = (around: Around) => decideChanges([locked], changes, 'earlier', around)
    const { decisions, changeSet } = await inCircumstances(tx, [locked], at, decide)
    for (const decision of decisions) if (decision.kind === 'failed') throw decision.error
    await saveChanges(tx, changeSet)
    return 'closed'
  })
}
