import type { Tenant } from '../domain/access.ts'
import { invalidField, notFound } from '../domain/errors.ts'
import type { Context } from '../store/context.ts'
import { type ChoosableChannel, keepChoosable, listChoosable } from '../store/outbox/channels.ts'
import type { Queryable } from '../store/postgres/database.ts'
import { hasProject } from '../store/tenancy/projects.ts'

/**
 * The ids as they are stored; the channels stay until the transaction ends. Throws AppError `invalid_request`, with the
 * field, for one that is no channel of the project or of its organization: whether it exists elsewhere is not said.
 */
export async function chooseChannels(
  tx: Queryable,
  projectId: string,
  channels: string[] | null,
): Promise<string[] | null> {
  if (channels === null || channels.length === 0) return channels
  const ids = channels.map((id) => id.toLowerCase())
  const unknown = await findUnknown(tx, projectId, ids)
  if (unknown !== null)
    throw invalidField('channels', `must be channels of the project or of its organization: ${unknown} is none`)
  return ids
}

/** What the checks of a project can choose, in order of creation. Throws AppError `not_found` for a project of another tenant. */
export async function listChoosableChannels(
  { database }: Context,
  tenant: Tenant,
  projectId: string,
): Promise<ChoosableChannel[]> {
  if (!(await hasProject(database, tenant, projectId, 'read'))) throw notFound('project')
  return listChoosable(database, projectId)
}

async function findUnknown(db: Queryable, projectId: string, ids: readonly string[]): Promise<string | null> {
  const choosable = await keepChoosable(db, projectId, ids)
  return ids.find((id) => !choosable.has(id)) ?? null
}
