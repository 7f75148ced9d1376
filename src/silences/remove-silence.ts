import { audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { wakeSilenced } from '../store/checks/circumstances.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { deleteSilence, findSilenceRow, type SilenceRow } from '../store/silences/silences.ts'
import { actOn } from './find-silences.ts'

/**
 * Each check that it keeps quiet is evaluated at once. Throws AppError `not_found`, and `managed_by_kubernetes` for a
 * declared silence, which only the controller removes.
 */
export async function removeSilence(context: Context, by: Principal, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('silence')
  await audited(context, by, async (tx) => {
    const silence = await findSilenceRow(tx, by, id, 'for update')
    if (silence === null) throw notFound('silence')
    if (silence.kubernetes !== null && by.kind !== 'controller')
      throw new AppError('managed_by_kubernetes', { what: 'silence', resource: silence.kubernetes })
    return { result: undefined, acts: [await endSilence(tx, context, silence)] }
  })
}

/** The same in a transaction of the caller's. */
export async function endSilence(tx: Queryable, { clock }: Pick<Context, 'clock'>, silence: SilenceRow): Promise<Act> {
  await wakeSilenced(tx, silence.id, clock.now())
  await deleteSilence(tx, silence.id)
  return actOn(silence, 'silence.removed')
}
