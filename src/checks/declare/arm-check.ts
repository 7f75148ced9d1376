import { audited } from '../../audit/audited.ts'
import { controllerOf } from '../../domain/access.ts'
import type { CheckState } from '../../domain/check.ts'
import type { CheckEvent } from '../../domain/check-event.ts'
import type { Resource, StoredCheck } from '../../store/checks/checks.ts'
import { lockStates } from '../../store/checks/states.ts'
import type { Context } from '../../store/context.ts'
import { applyEvents } from '../with-locked-check.ts'
import { actsOfEvents } from './act.ts'
import { planArming, planDisarming } from './plan.ts'

/**
 * From now on the first completion of a declared check is expected: its ping URL is published. Resumes it too, if its
 * resource says that it is not suspended. Returns the check as it is then. Writes nothing if it expects one already.
 */
export function armCheck(context: Context, by: Declarer, check: StoredCheck): Promise<StoredCheck> {
  return carryOut(context, by, check, (state) => planArming(state, check.kubernetesSuspend))
}

/**
 * Nothing is expected of the job any more: its ping URL never was published, although a call of the API armed the
 * check. Returns the check as it is then. Writes nothing if its job has reported, or nothing is expected.
 */
export function disarmCheck(context: Context, by: Declarer, check: StoredCheck): Promise<StoredCheck> {
  return carryOut(context, by, check, planDisarming)
}

type Declarer = Pick<Resource, 'cluster'>

async function carryOut(
  context: Context,
  { cluster }: Declarer,
  check: StoredCheck,
  plan: (state: CheckState) => CheckEvent[],
): Promise<StoredCheck> {
  if (plan(check.state).length === 0) return check
  return audited(context, controllerOf(cluster), async (tx) => {
    const [locked] = await lockStates(tx, [check.key])
    const events = locked === undefined ? [] : plan(locked.state)
    if (locked === undefined || events.length === 0) return { result: check, acts: [] }
    const state = await applyEvents(tx, locked, events, context)
    return { result: { ...check, state }, acts: actsOfEvents(check, events) }
  })
}
