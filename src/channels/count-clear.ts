import { isInClear } from './check-reach.ts'
import type { ChannelContext } from './context.ts'
import { openAll } from './open-channel.ts'
import { UnreadableSettings } from './seal.ts'

/** A bound on the duration of a start. */
const MOST = 10_000

/** How many channels have a URL without TLS, of the first 10,000. Those that cannot be read do not count. */
export async function countClear(context: Pick<ChannelContext, 'database' | 'sealer'>): Promise<number> {
  let [seen, count] = [0, 0]
  for await (const { kind, settings } of openAll(context)) {
    if (!(settings instanceof UnreadableSettings) && isInClear(kind, settings)) count += 1
    seen += 1
    if (seen === MOST) break
  }
  return count
}
