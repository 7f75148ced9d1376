import { isClear } from '../runtime/clear-urls.ts'
import { listSealed } from '../store/outbox/channels.ts'
import type { ChannelContext } from './context.ts'
import { KINDS } from './kinds/index.ts'
import { UnreadableSettings } from './seal.ts'

const BATCH = 500
/** A bound on the duration of a start. */
const MAX_BATCHES = 20

/** How many channels have a URL without TLS, of the first 10,000. Those that cannot be read do not count. */
export async function countClear({ database, sealer }: Pick<ChannelContext, 'database' | 'sealer'>): Promise<number> {
  let count = 0
  let afterId: string | null = null
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const rows = await listSealed(database, afterId, BATCH)
    for (const { id, kind, ...sealed } of rows) {
      try {
        const urls = KINDS[kind].config.urlsOf?.(sealer.open(id, sealed)) ?? []
        if (urls.some(({ url }) => isClear(url))) count += 1
      } catch (error) {
        if (!(error instanceof UnreadableSettings)) throw error
      }
    }
    if (rows.length < BATCH) break
    afterId = rows.at(-1)!.id
  }
  return count
}
