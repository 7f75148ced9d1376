/**
 * The finalizer: a deleted resource takes its check along before it goes, so that `kubectl delete` means silence. It is bounded,
 * since a finalizer that waits for ever keeps a namespace from going (design, section 6, "Deleting").
 */

import type { Parts } from '../checks/parts.ts'
import { retireCheck } from '../checks/retire-check.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import { API_VERSION, FINALIZER, HEARTBEAT_CHECKS, type HeartbeatCheck, KIND } from './heartbeat-check.ts'

export interface FinalizeOptions {
  readonly client: KubernetesClient
  readonly parts: Parts
  readonly cluster: string
  readonly recorder: Pick<Recorder, 'record'>
  readonly now: () => number
  readonly onFinalizerForced: () => void
}

/** After this long a deletion goes on without us; the sweep of orphans collects the check later. */
export const LONGEST_CLEANUP_MS = 600_000

/** Returns the resource as it is then. */
export async function addFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  const { finalizers = [] } = object.metadata
  if (finalizers.includes(FINALIZER)) return object
  return writeFinalizers(client, object, [...finalizers, FINALIZER])
}

/** Throws while the check cannot be retired and there is time to try again. */
export async function finalizeCheck(options: FinalizeOptions, object: HeartbeatCheck): Promise<void> {
  const { client, parts, cluster, recorder, now, onFinalizerForced } = options
  const { namespace, name, uid, finalizers = [], deletionTimestamp } = object.metadata
  if (!finalizers.includes(FINALIZER)) return
  try {
    await retireCheck(parts, { cluster, namespace: namespace!, name }, object.spec.deletionPolicy ?? 'Delete')
  } catch (error) {
    if (now() - Date.parse(deletionTimestamp!) < LONGEST_CLEANUP_MS) throw error
    onFinalizerForced()
    recorder.record(
      { apiVersion: API_VERSION, kind: KIND, namespace: namespace!, name, uid },
      {
        type: 'Warning',
        reason: 'CleanupTimeout',
        action: 'Delete',
        note: 'the check could not be removed for 10 minutes; the resource goes without it, and the check is collected later',
      },
    )
  }
  const left = finalizers.filter((finalizer) => finalizer !== FINALIZER)
  try {
    await writeFinalizers(client, object, left)
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 404)) throw error
  }
}

/** With the resource version as precondition: others have finalizers in the list too. */
function writeFinalizers(
  client: KubernetesClient,
  { metadata }: HeartbeatCheck,
  finalizers: readonly string[],
): Promise<HeartbeatCheck> {
  const { namespace, name, resourceVersion } = metadata
  return client.mergePatch<HeartbeatCheck>(
    HEARTBEAT_CHECKS,
    { namespace: namespace!, name },
    { metadata: { finalizers, resourceVersion } },
  )
}
