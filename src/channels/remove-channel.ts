import { type Audited, audited } from '../audit/audited.ts'
import type { Principal, Tenant } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import { AppError } from '../domain/errors.ts'
import type { Context } from '../store/context.ts'
import { type ChannelRow, deleteChannel } from '../store/outbox/channels.ts'
import { countDependents, hasChoosers, lockChoosers, unchoose } from '../store/outbox/choosers.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { ChannelContext } from './context.ts'
import { actOn, getChannel, lockForChange } from './find-channels.ts'

/**
 * Removes a channel. Its deliveries are not sent or listed any more; pruning deletes them. Its alerts end by
 * themselves. The channel first leaves the lists of the checks that chose it. With `force` the checks that chose it
 * alone notify all channels again. Throws AppError `not_found`, and `conflict` for the channel of the installation, and
 * without `force` for a channel that some checks chose alone.
 */
export async function removeChannel(
  context: Context,
  by: Principal,
  id: string,
  { force = false }: { readonly force?: boolean } = {},
): Promise<void> {
  // Before any check is locked: the channel can be another tenant's.
  await context.database.transaction((tx) => assertRemovable(tx, by, id, force))
  while (!(await audited(context, by, (tx) => removeIfUnchosen(tx, by, id, force))));
}

/**
 * The same with `force`, in a transaction of the caller's, which has locked no check and no channel yet. It may lose a
 * race against a check that chooses the channel, and then runs again.
 */
export async function dropChannel(tx: Queryable, by: Principal, id: string): Promise<readonly Act[]> {
  for (;;) {
    const { result, acts } = await removeIfUnchosen(tx, by, id, true)
    if (result) return acts
  }
}

/** How many checks notify this channel and no other one. Throws AppError `not_found`. */
export async function countDependent(context: ChannelContext, tenant: Tenant, id: string): Promise<number> {
  await getChannel(context, tenant, id)
  return countDependents(context.database, id)
}

/** Locks the channel: no check can choose the channel until the transaction ends. */
async function assertRemovable(tx: Queryable, by: Principal, id: string, force: boolean): Promise<ChannelRow> {
  const channel = await lockForChange(tx, by, id)
  const count = force ? 0 : await countDependents(tx, id)
  if (count === 0) return channel
  throw new AppError('channel_in_use', { checks: count })
}

/** False while checks are left that chose it. */
async function removeIfUnchosen(tx: Queryable, by: Principal, id: string, force: boolean): Promise<Audited<boolean>> {
  const keys = await lockChoosers(tx, [id])
  const channel = await assertRemovable(tx, by, id, force)
  await unchoose(tx, [id], keys)
  if (await hasChoosers(tx, id)) return { result: false, acts: [] }
  await deleteChannel(tx, id)
  return { result: true, acts: [actOn(channel, 'channel.removed')] }
}
