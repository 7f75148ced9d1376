import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { HEARTBEAT_CHECKS } from './heartbeat-check.ts'

/** Whether a HeartbeatCheck is there, by the API server's own word. `unknown`: it does not know the kind, and so nothing of any. */
export async function lookFor(
  client: Pick<KubernetesClient, 'get'>,
  place: { readonly namespace: string; readonly name: string },
): Promise<'found' | 'gone' | 'unknown'> {
  try {
    await client.get(HEARTBEAT_CHECKS, place)
    return 'found'
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    return error.details?.name === place.name ? 'gone' : 'unknown'
  }
}
