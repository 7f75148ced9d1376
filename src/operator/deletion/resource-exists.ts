import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import { HEARTBEAT_CHECKS } from '../heartbeat-check.ts'

/**
 * Asks the API server whether a HeartbeatCheck exists. `unknown`: it may not be read, or the server does not serve the
 * kind: then its 404 says nothing.
 */
export async function resourceExists(
  client: Pick<KubernetesClient, 'get'>,
  location: { readonly namespace: string; readonly name: string },
): Promise<'yes' | 'no' | 'unknown'> {
  try {
    await client.get(HEARTBEAT_CHECKS, location)
    return 'yes'
  } catch (error) {
    if (!hasStatus(error, 403, 404)) throw error
    return error.status === 404 && error.details?.name === location.name ? 'no' : 'unknown'
  }
}
