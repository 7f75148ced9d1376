import type { Context } from '../../store/context.ts'
import { findClusterHolder, takeClusterName } from '../../store/leases/clusters.ts'

export type Registration =
  | { readonly kind: 'held' }
  /** The live cluster with this uid holds the name. */
  | { readonly kind: 'taken'; readonly uid: string; readonly seenSecondsAgo: number }

/** A name whose holder did not renew it for `holderSeconds` passes to the caller: the cluster was rebuilt. */
export async function registerCluster(
  { database }: Pick<Context, 'database'>,
  { cluster, uid, holderSeconds }: { cluster: string; uid: string; holderSeconds: number },
): Promise<Registration> {
  for (;;) {
    if (await takeClusterName(database, { name: cluster, uid, holderSeconds })) return { kind: 'held' }
    const holder = await findClusterHolder(database, cluster)
    // Between the statements the name may become free, or another controller of this cluster may register it.
    if (holder !== null && holder.uid !== uid && holder.seenSecondsAgo <= holderSeconds)
      return { kind: 'taken', ...holder }
  }
}
