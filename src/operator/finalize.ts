/**
 * The finalizer: a deleted resource takes its check along before it goes, so that `kubectl delete` means silence. It is bounded,
 * since a finalizer that waits for ever keeps a namespace from going (design, section 6, "Deleting"). When it is written: hold.ts.
 */

import { retireCheck } from '../checks/declare/retire-check.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { Context } from '../store/context.ts'
import { API_VERSION, FINALIZER, HEARTBEAT_CHECKS, type HeartbeatCheck, KIND } from './heartbeat-check.ts'
import { leaveTarget, releaseTarget } from './publish.ts'

export interface FinalizerOptions {
  readonly client: KubernetesClient
  readonly context: Context
  readonly cluster: string
  readonly recorder: Pick<Recorder, 'record'>
  readonly now: () => number
  readonly onFinalizerForced: () => void
}

/** After this long a deletion goes on without us; the sweep of orphans collects the check later. */
export const LONGEST_CLEANUP_MS = 600_000

export function hasFinalizer({ metadata }: HeartbeatCheck): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false
}

/** Returns the resource as it is then. Throws Conflict when it has changed meanwhile. */
export async function addFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  if (hasFinalizer(object)) return object
  return writeFinalizers(client, object, [...(object.metadata.finalizers ?? []), FINALIZER])
}

/** Returns the resource as it is then, others' finalizers with it. Throws Conflict when it has changed meanwhile. */
export async function removeFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  if (!hasFinalizer(object)) return object
  const { finalizers = [] } = object.metadata
  const left = finalizers.filter((finalizer) => finalizer !== FINALIZER)
  return writeFinalizers(client, object, left)
}

/** The function it makes throws while the check cannot be retired and there is time to try again. */
export function createFinalizer(options: FinalizerOptions): (object: HeartbeatCheck) => Promise<void> {
  const { client, recorder, now, onFinalizerForced } = options
  // By our own clock, since the API server's, which dates the deletion, may be minutes away from it.
  const failingSince = new Map<string, number>()

  return async function finalize(object) {
    if (!hasFinalizer(object)) return
    const { uid } = object.metadata
    try {
      await cleanUp(options, object)
    } catch (error) {
      const since = failingSince.get(uid) ?? now()
      failingSince.set(uid, since)
      if (now() - since < LONGEST_CLEANUP_MS) throw error
      onFinalizerForced()
      recorder.record(regarding(object), FORCED)
    }
    try {
      await removeFinalizer(client, object)
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error
    }
    failingSince.delete(uid)
  }
}

const FORCED = {
  type: 'Warning',
  reason: 'CleanupTimeout',
  action: 'Delete',
  note: 'the check could not be removed for 10 minutes; the resource goes without it, and the check is collected later',
} as const

/** A retained check lives on, and so does what its job finds its URL in; else the URL goes with the check that it names. */
async function cleanUp({ client, context, cluster }: FinalizerOptions, object: HeartbeatCheck): Promise<void> {
  const { metadata, spec, status } = object
  const policy = spec.deletionPolicy ?? 'Delete'
  await retireCheck(context, { cluster, namespace: metadata.namespace!, name: metadata.name }, policy)
  if (status?.published === undefined) return
  try {
    if (policy === 'Retain') await leaveTarget(client, object, status.published)
    else await releaseTarget(client, object, status.published)
  } catch (error) {
    // No right to it, or somebody's rule: then it is the garbage collector's.
    if (!(error instanceof ApiError && [403, 404, 422].includes(error.status))) throw error
  }
}

function regarding({ metadata: { namespace, name, uid } }: HeartbeatCheck) {
  return { apiVersion: API_VERSION, kind: KIND, namespace: namespace!, name, uid }
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
