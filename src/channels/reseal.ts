import { listSealedOtherwise, replaceSealed } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { UnreadableSettings } from './seal.ts'

const BATCH = 100

/**
 * After a change of SECRET_KEY: seals under it the channels that are sealed under PREVIOUS_SECRET_KEYS. Replicas may run it concurrently; a
 * concurrent change of a channel wins. `unreadable`: channels sealed under an unknown key; nothing can be sent to them.
 */
export async function resealChannels({
  database,
  sealer,
}: Pick<ChannelContext, 'database' | 'sealer'>): Promise<{ resealed: number; unreadable: number }> {
  let resealed = 0
  let unreadable = 0
  let afterId: string | null = null
  for (;;) {
    const rows = await listSealedOtherwise(database, sealer.keyId, afterId, BATCH)
    for (const { id, ...before } of rows) {
      try {
        const after = sealer.seal(id, sealer.open(id, before))
        if (await replaceSealed(database, id, before.sealed, after)) resealed += 1
      } catch (error) {
        if (!(error instanceof UnreadableSettings)) throw error
        unreadable += 1
      }
    }
    if (rows.length < BATCH) return { resealed, unreadable }
    afterId = rows.at(-1)!.id
  }
}
