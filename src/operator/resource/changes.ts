/** What of a resource counts as a change by others, and what a cache keeps of it. */

import type { KubernetesObject } from '../../kubernetes/objects.ts'

/** Whether a field has changed that we never write. */
export function isEdited({ metadata: before }: KubernetesObject, { metadata: after }: KubernetesObject): boolean {
  return (
    before.uid !== after.uid ||
    before.generation !== after.generation ||
    before.deletionTimestamp !== after.deletionTimestamp ||
    JSON.stringify(before.annotations) !== JSON.stringify(after.annotations) ||
    // They change no generation.
    JSON.stringify(before.labels) !== JSON.stringify(after.labels)
  )
}

export const haveFinalizersChanged = ({ metadata: before }: KubernetesObject, { metadata: after }: KubernetesObject) =>
  JSON.stringify(before.finalizers) !== JSON.stringify(after.finalizers)

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Half of an object are its managedFields. */
export function trim<T extends KubernetesObject>(raw: KubernetesObject): T {
  const object = raw as T
  const { managedFields: _, annotations, ...metadata } = object.metadata
  if (annotations === undefined) return { ...object, metadata }
  const { [LAST_APPLIED]: _applied, ...kept } = annotations
  return { ...object, metadata: { ...metadata, annotations: kept } }
}
