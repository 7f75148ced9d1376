/**
 * Two installations that publish the URL of one resource (design, section 6). A new one belongs to the one whose first status arrives, and
 * each publishes its URL before that; one that is taken over belongs to the new owner before that one publishes. So the URL of another
 * installation in the published object is replaced only by the owner, in the version that was read before the owner was.
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck } from '../heartbeat-check.ts'
import type { Claims } from './ownership.ts'

export interface ClaimOptions {
  readonly client: Pick<KubernetesClient, 'get'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly claims: Pick<Claims, 'installation'>
}

/**
 * Throws when another installation has the resource by now, which the next reconcile finds in the cache, and while it has no status at
 * all: then another installation may be about to write it. The retry claims the resource first.
 */
export async function ensureClaimable(
  { client, cache, claims }: ClaimOptions,
  { metadata: { namespace, name } }: HeartbeatCheck,
): Promise<void> {
  const current = await client.get<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace: namespace!, name })
  const owner = current.status?.installation
  if (owner !== undefined && owner !== claims.installation) {
    cache.put(current)
    throw new Error(`the installation ${owner} has the resource since a moment ago`)
  }
  if (current.status === undefined)
    throw new Error('its published object holds another ping URL, maybe of another installation')
}
