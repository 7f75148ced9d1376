import { replaceSealed } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { openAll } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

/**
 * After a change of SECRET_KEY: seals under it the channels that are sealed under PREVIOUS_SECRET_KEYS. Replicas may run it concurrently; a
 * concurrent change of a channel wins. `unreadable`: channels sealed under an unknown key; nothing can be sent to them.
 */
export async function resealChannels(
  context: Pick<ChannelContext, 'database' | 'sealer'>,
): Promise<{ resealed: number; unreadable: number }> {
  const { database, sealer } = context
  let [resealed, unreadable] = [0, 0]
  for await (const { id, sealed, settings } of openAll(context, sealer.keyId)) {
    if (settings instanceof UnreadableSettings) unreadable += 1
    else if (await replaceSealed(database, id, sealed, sealer.seal(id, settings))) resealed += 1
  }
  return { resealed, unreadable }
}
