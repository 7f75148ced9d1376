/**
 * Whether this cluster may reconcile under its name (design, section 6): two live clusters under one name would take each
 * other's checks for their own. The uid of the namespace kube-system tells them apart.
 */

import { registerCluster } from '../checks/declare/register-cluster.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { KubernetesObject } from '../kubernetes/objects.ts'
import type { Log } from '../runtime/log.ts'
import type { Context } from '../store/context.ts'
import { limitClient } from './limit-client.ts'

export interface NameClaimOptions {
  readonly client: KubernetesClient
  readonly context: Context
  readonly cluster: string
  /** Another cluster of our name counts as alive for this long after it was last seen. */
  readonly holderSeconds: number
  readonly log: Log
  readonly onTaken: (isTaken: boolean) => void
}

/** `unknown`: the API server or the database could not be asked. */
export type ClaimResult = 'held' | 'taken' | 'unknown'

export interface NameClaim {
  /** Takes the name, or keeps it: to be called again at least three times in `holderSeconds`. Never rejects. */
  renew(signal: AbortSignal): Promise<ClaimResult>
}

const NAMESPACES = { group: '', version: 'v1', plural: 'namespaces' }

export function createNameClaim(options: NameClaimOptions): NameClaim {
  const { client, context, cluster, holderSeconds, log, onTaken } = options
  let heldUid: string | undefined

  async function claim(signal: AbortSignal): Promise<ClaimResult> {
    const uid = await readClusterUid(signal)
    if (uid === null) return 'held'
    const registered = await registerCluster(context, { cluster, uid, holderSeconds })
    if (registered.kind === 'held') {
      heldUid = uid
      onTaken(false)
      return 'held'
    }
    const { uid: otherUid, seenSecondsAgo } = registered
    if (otherUid === heldUid) {
      // It was us, and the address is the same: no second cluster is seen, only that the first may live on elsewhere.
      log.warn(
        { cluster, otherUid, holderSeconds },
        'the cluster behind this address is another one now: if nothing is heard of the former, as after a rebuild, it takes the name over',
      )
    } else {
      onTaken(true)
      log.error(
        { cluster, otherUid, seenSecondsAgo },
        'another live cluster reconciles under this name: give one of them another CLUSTER_NAME; nothing is reconciled here until then',
      )
    }
    return 'taken'
  }

  /** Null without the right to read it, which a controller of single namespaces need not have. */
  async function readClusterUid(signal: AbortSignal): Promise<string | null> {
    try {
      return (await limitClient(client, signal).get<KubernetesObject>(NAMESPACES, { name: 'kube-system' })).metadata.uid
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return null
      throw error
    }
  }

  return {
    async renew(signal) {
      try {
        return await claim(signal)
      } catch (error) {
        if (!signal.aborted) log.warn({ error }, 'the cluster could not be identified; it is tried again')
        return 'unknown'
      }
    },
  }
}
