import type { Tenant } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { deleteChannel, deleteDeliveries } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { lockForChange } from './find-channels.ts'

const BATCH = 5_000
/** So that the caller gets an answer. Pruning collects what is left of a channel that is gone. */
const MOST_BATCHES = 20

/**
 * From then on the channel is told nothing, and its deliveries are no longer listed; they go after it, in batches. What its
 * Alertmanagers believe ends by itself. Throws AppError `not_found`, and `conflict` for the channel of the installation.
 */
export async function removeChannel(context: ChannelContext, tenant: Tenant, id: string): Promise<void> {
  await context.database.transaction(async (tx) => {
    await lockForChange(tx, tenant, id)
    await deleteChannel(tx, id)
  })
  try {
    await collectRemains(context, id)
  } catch (error) {
    // The channel is removed, whatever becomes of what is left; pruning does the rest.
    if (!(error instanceof AppError)) throw error
  }
}

async function collectRemains({ database }: ChannelContext, id: string): Promise<void> {
  for (let batch = 0; batch < MOST_BATCHES; batch += 1) {
    const deleted = await database.transaction((tx) => deleteDeliveries(tx, id, BATCH))
    if (deleted === 0) return
  }
}
