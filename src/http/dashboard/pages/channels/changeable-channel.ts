import { type ChannelRecord, getChannel } from '../../../../channels/find-channels.ts'
import { AppError } from '../../../../domain/errors.ts'
import type { Request } from '../../page.ts'

/** Throws AppError `not_found`, and `conflict` for the channel of the installation. */
export async function findChangeable({
  context,
  caller,
  params,
}: Pick<Request, 'context' | 'caller' | 'params'>): Promise<ChannelRecord> {
  const channel = await getChannel(context, caller, params.id!)
  if (channel.managedBy !== 'configuration') return channel
  throw new AppError('conflict', 'the channel belongs to the configuration: change ALERTMANAGER_URL instead')
}
