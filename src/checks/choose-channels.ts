import { invalidField } from '../domain/errors.ts'
import { keepChoosable } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'

/**
 * The ids as they are stored; the channels stay until the transaction ends. Throws AppError `invalid`, with the field, for one that is no channel
 * of the project or of its organization: whether it exists elsewhere is not said.
 */
export async function chooseChannels(
  tx: Queryable,
  projectId: string,
  channels: string[] | null,
): Promise<string[] | null> {
  if (channels === null || channels.length === 0) return channels
  const ids = channels.map((id) => id.toLowerCase())
  const choosable = await keepChoosable(tx, projectId, ids)
  const unknown = ids.find((id) => !choosable.has(id))
  if (unknown !== undefined)
    throw invalidField('channels', `must be channels of the project or of its organization: ${unknown} is none`)
  return ids
}
