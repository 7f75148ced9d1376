import { audited } from '../audit/audited.ts'
import type { Principal } from '../domain/access.ts'
import { AppError } from '../domain/errors.ts'
import { deleteChannel, deleteDeliveries } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { actOn, lockForChange } from './find-channels.ts'

const BATCH = 5_000
/** A limit on the duration of the request. Pruning deletes the other deliveries. */
const MAX_BATCHES = 20

/**
 * Removes a channel, then its deliveries in batches; they are not listed any more. Alerts at its Alertmanagers end by themselves.
 * Throws AppError `not_found`, and `conflict` for the channel of the installation.
 */
export async function removeChannel(context: ChannelContext, by: Principal, id: string): Promise<void> {
  await audited(context, by, async (tx) => {
    const channel = await lockForChange(tx, by, id)
    await deleteChannel(tx, id)
    return { result: undefined, acts: [actOn(channel, 'channel.removed')] }
  })
  try {
    await deleteRemaining(context, id)
  } catch (error) {
    // The channel is removed. Pruning deletes the remaining deliveries.
    if (!(error instanceof AppError)) throw error
  }
}

async function deleteRemaining({ database }: ChannelContext, id: string): Promise<void> {
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const deleted = await database.transaction((tx) => deleteDeliveries(tx, id, BATCH))
    if (deleted === 0) return
  }
}
