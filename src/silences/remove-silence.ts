import { audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { AppError, notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { wakeSilenced } from '../store/checks/circumstances.ts'
import type { Context } from '../store/context.ts'
import { deleteSilence, findSilenceRow } from '../store/silences/silences.ts'
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
    await wakeSilenced(tx, id, context.clock.now())
    await deleteSilence(tx, id)
    return { result: undefined, acts: [actOn(silence, 'silence.removed')] }
  })
}
