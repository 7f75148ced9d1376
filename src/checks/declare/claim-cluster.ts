import type { Context } from '../../store/context.ts'
import { findClusterHolder, takeClusterName } from '../../store/leases/clusters.ts'

export type Claim =
  | { readonly kind: 'held' }
  /** By the live cluster with this uid. */
  | { readonly kind: 'taken'; readonly uid: string; readonly seenSecondsAgo: number }

/**
 * Says "the cluster with this uid reconciles under this name", and keeps saying it while it is called again (design,
 * section 6). A name whose holder was not heard of for `holderSeconds` goes over: the cluster was rebuilt.
 */
export async function claimCluster(
  { database }: Pick<Context, 'database'>,
  { cluster, uid, holderSeconds }: { cluster: string; uid: string; holderSeconds: number },
): Promise<Claim> {
  for (;;) {
    if (await takeClusterName(database, { name: cluster, uid, holderSeconds })) return { kind: 'held' }
    const holder = await findClusterHolder(database, cluster)
    // Between the two statements the name may have become free, or ours through another controller of this cluster.
    if (holder !== null && holder.uid !== uid && holder.seenSecondsAgo <= holderSeconds)
      return { kind: 'taken', ...holder }
  }
}
