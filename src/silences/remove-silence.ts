import { audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { notFound } from '../domain/errors.ts'
import { isUuid } from '../domain/ids.ts'
import { wakeSilenced } from '../store/checks/circumstances.ts'
import type { Context } from '../store/context.ts'
import { deleteSilence } from '../store/silences/silences.ts'
import { actOn } from './find-silences.ts'

/** Each check that it keeps quiet is evaluated at once. Throws AppError `not_found`. */
export async function removeSilence(context: Context, by: Principal, id: string): Promise<void> {
  if (!isUuid(id)) throw notFound('silence')
  await audited(context, by, async (tx) => {
    const silence = await deleteSilence(tx, by, id)
    if (silence === null) throw notFound('silence')
    await wakeSilenced(tx, silence.projectId, context.clock.now())
    return { result: undefined, acts: [actOn(silence, 'silence.removed')] }
  })
}
