/**
 * The finalizer retires the check before its resource is deleted, so that no alert follows a `kubectl delete`. It gives up after a time,
 * because a finalizer that waits for ever blocks the deletion of a namespace (design, section 6, "Deleting"). ensure-finalizer.ts decides when it is
 * added.
 */

import { retireCheck } from '../checks/declare/retire-check.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { Context } from '../store/context.ts'
import { FINALIZER, HEARTBEAT_CHECKS, type HeartbeatCheck } from './heartbeat-check.ts'
import { disownUrl, withdrawUrl } from './publish.ts'
import { regarding } from './report.ts'

export interface FinalizerOptions {
  readonly client: KubernetesClient
  readonly context: Context
  readonly cluster: string
  readonly recorder: Pick<Recorder, 'record'>
  readonly now: () => number
  readonly onFinalizerForced: () => void
}

/** After this time a deletion continues without us; the sweep of orphans retires the check later. */
export const MAX_CLEANUP_MS = 600_000

export function hasFinalizer({ metadata }: HeartbeatCheck): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false
}

/** Returns the resource as the API server has it then. Throws Conflict when it was changed meanwhile. */
export async function addFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  if (hasFinalizer(object)) return object
  return writeFinalizers(client, object, [...(object.metadata.finalizers ?? []), FINALIZER])
}

/** Keeps the finalizers of others. Returns the resource as the API server has it then. Throws Conflict when it was changed meanwhile. */
export async function removeFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  if (!hasFinalizer(object)) return object
  const { finalizers = [] } = object.metadata
  const left = finalizers.filter((finalizer) => finalizer !== FINALIZER)
  return writeFinalizers(client, object, left)
}

/** Returns a function that retires the check and removes the finalizer. It throws while the check cannot be retired and time is left. */
export function createFinalizer(options: FinalizerOptions): (object: HeartbeatCheck) => Promise<void> {
  const { client, recorder, now, onFinalizerForced } = options
  // By our own clock: that of the API server, which dates the deletion, may differ by minutes.
  const failingSince = new Map<string, number>()

  return async function finalize(object) {
    if (!hasFinalizer(object)) return
    const { uid } = object.metadata
    try {
      await cleanUp(options, object)
    } catch (error) {
      const since = failingSince.get(uid) ?? now()
      failingSince.set(uid, since)
      if (now() - since < MAX_CLEANUP_MS) throw error
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
  note: 'the check could not be removed for 10 minutes; the resource is deleted now, and the check is removed later',
} as const

/** A retained check keeps its published URL; otherwise the URL is removed together with the check. */
async function cleanUp({ client, context, cluster }: FinalizerOptions, object: HeartbeatCheck): Promise<void> {
  const { metadata, spec, status } = object
  const policy = spec.deletionPolicy ?? 'Delete'
  await retireCheck(context, { cluster, namespace: metadata.namespace!, name: metadata.name }, policy)
  if (status?.published === undefined) return
  try {
    if (policy === 'Retain') await disownUrl(client, object, status.published)
    else await withdrawUrl(client, object, status.published)
  } catch (error) {
    // Without the right, or against an admission rule: then the garbage collector removes it.
    if (!(error instanceof ApiError && [403, 404, 422].includes(error.status))) throw error
  }
}

/** The resource version is a precondition, because the list also holds the finalizers of others. */
function writeFinalizers(client: KubernetesClient, { metadata }: HeartbeatCheck, finalizers: readonly string[]) {
  const { namespace, name, resourceVersion } = metadata
  const patch = { metadata: { finalizers, resourceVersion } }
  return client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace: namespace!, name }, patch)
}
