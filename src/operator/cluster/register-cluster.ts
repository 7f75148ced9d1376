/**
 * Registers the name of this cluster (design, section 6): two live clusters with one name would take each other's
 * checks for their own. The uid of the namespace kube-system distinguishes them.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import type { Log } from '../../runtime/log.ts'
import { NAMESPACES, SYSTEM_NAMESPACE } from '../namespaces/namespaces.ts'
import type { Service } from '../service.ts'

export interface ClusterRegistrationOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly service: Pick<Service, 'registerCluster'>
  readonly cluster: string
  /** Another cluster of our name counts as alive for this long after it was last seen. */
  readonly holderSeconds: number
  readonly log: Log
  readonly onTaken: (isTaken: boolean) => void
}

/** `unknown`: the API server or the database did not respond. */
export type RegistrationResult = 'held' | 'taken' | 'unknown'

export interface ClusterRegistration {
  /** Registers the name, or renews it: call it at least three times in `holderSeconds`. Never rejects. */
  renew(signal: AbortSignal): Promise<RegistrationResult>
  /** The uid of this cluster, as it was read last; null without the right to read it. */
  uid(): string | null
}

export function createClusterRegistration(options: ClusterRegistrationOptions): ClusterRegistration {
  const { client, service, cluster, holderSeconds, log, onTaken } = options
  let heldUid: string | undefined
  let readUid: string | null = null

  async function register(signal: AbortSignal): Promise<RegistrationResult> {
    const uid = await readClusterUid(signal)
    readUid = uid
    if (uid === null) return 'held'
    const registered = await service.registerCluster({ cluster, uid, holderSeconds })
    if (registered.kind === 'held') {
      heldUid = uid
      onTaken(false)
      return 'held'
    }
    const { uid: otherUid, seenSecondsAgo } = registered
    if (otherUid === heldUid) {
      // It was ours, and the address is the same: there is no sign of a second cluster, but the first may still run
      // elsewhere.
      log.warn(
        { cluster, otherUid, holderSeconds },
        'the cluster behind this address is another one now: if the first one no longer registers, as after a rebuild, this one takes the name over',
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

  /** Null without the right to read it: a controller of single namespaces need not have it. */
  async function readClusterUid(signal: AbortSignal): Promise<string | null> {
    try {
      const { metadata } = await client.get<KubernetesObject>(NAMESPACES, { name: SYSTEM_NAMESPACE }, { signal })
      return metadata.uid
    } catch (error) {
      if (hasStatus(error, 403)) return null
      throw error
    }
  }

  return {
    uid: () => readUid,
    async renew(signal) {
      try {
        return await register(signal)
      } catch (error) {
        if (!signal.aborted) log.warn({ error }, 'the cluster could not be identified; it is tried again')
        return 'unknown'
      }
    },
  }
}
