/**
 * The finalizer of a resource: what the service has of it goes before the resource goes. It gives up after a time,
 * because a finalizer that waits for ever blocks the deletion of a namespace (design, section 6, "Deleting").
 */

import type { KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus } from '../../kubernetes/errors.ts'
import type { KubernetesObject, ResourceType } from '../../kubernetes/objects.ts'
import { FIELD_MANAGER, FINALIZER } from '../names.ts'
import { placeOf } from './resource.ts'

export interface FinalizationOptions<T extends KubernetesObject> {
  readonly client: Pick<KubernetesClient, 'mergePatch'>
  readonly type: ResourceType
  readonly now: () => number
  /** `isLate`: it is not called again, unless it must be. */
  readonly cleanUp: (object: T, isLate: boolean) => Promise<unknown>
  /** Called with each failure of it. Returns whether the deletion must wait however late it is. */
  readonly mustWait?: (object: T, error: unknown) => boolean
  /** The finalizer is off although the clean-up has failed. */
  readonly onForced: (object: T) => void
}

/** After this time a deletion continues without us, unless it must wait; the sweep of orphans does the rest later. */
export const MAX_CLEANUP_MS = 600_000

export function hasFinalizer({ metadata }: KubernetesObject): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false
}

type Patcher = Pick<KubernetesClient, 'mergePatch'>

/** Both return the resource as the API server has it then, and throw Conflict when it was changed meanwhile. */
export async function addFinalizer<T extends KubernetesObject>(client: Patcher, type: ResourceType, object: T) {
  if (hasFinalizer(object)) return object
  return writeFinalizers(client, type, object, [...(object.metadata.finalizers ?? []), FINALIZER])
}

/** Keeps the finalizers of others. */
export async function removeFinalizer<T extends KubernetesObject>(client: Patcher, type: ResourceType, object: T) {
  if (!hasFinalizer(object)) return object
  const left = object.metadata.finalizers!.filter((finalizer) => finalizer !== FINALIZER)
  return writeFinalizers(client, type, object, left)
}

/** Returns a function that cleans up and removes the finalizer. It throws while that fails and time is left. */
export function createFinalization<T extends KubernetesObject>(
  options: FinalizationOptions<T>,
): (object: T) => Promise<void> {
  const { client, type, now, cleanUp, mustWait = () => false, onForced } = options

  return async function finalize(object) {
    if (!hasFinalizer(object)) return
    // Each leader knows the time of the deletion.
    const isLate = now() - Date.parse(object.metadata.deletionTimestamp!) >= MAX_CLEANUP_MS
    let isForced = false
    try {
      await cleanUp(object, isLate)
    } catch (error) {
      if (mustWait(object, error) || !isLate) throw error
      isForced = true
    }
    try {
      await removeFinalizer(client, type, object)
    } catch (error) {
      if (!hasStatus(error, 404)) throw error
    }
    // Not before: where another writer was faster, all of this is repeated.
    if (isForced) onForced(object)
  }
}

/** The resource version is a precondition, because the list also holds the finalizers of others. */
function writeFinalizers<T extends KubernetesObject>(
  client: Patcher,
  type: ResourceType,
  object: T,
  finalizers: readonly string[],
): Promise<T> {
  const patch = { metadata: { finalizers, resourceVersion: object.metadata.resourceVersion } }
  return client.mergePatch<T>(type, placeOf(object), patch, { fieldManager: FIELD_MANAGER })
}
