/** A request to reconcile now: an annotation of the resource, with any new value (docs/use/checks.md). */

import { createHash } from 'node:crypto'
import { type KubernetesObject, toTime } from '../../kubernetes/objects.ts'
import { RECONCILE_ANNOTATION, REQUEST_LENGTH } from '../names.ts'
import type { CommonStatus, Resource } from './resource.ts'

/** What the resource requests; null: nothing. At most REQUEST_LENGTH characters. */
export function requestOf({ metadata: { annotations } }: KubernetesObject): string | null {
  const value = annotations?.[RECONCILE_ANNOTATION]
  if (value === undefined || value.length <= REQUEST_LENGTH) return value ?? null
  return createHash('sha256').update(value).digest('hex')
}

/** Whether the resource requests a reconcile that its status does not show as handled. */
export function hasRequest(object: Resource): boolean {
  const request = requestOf(object)
  return request !== null && request !== object.status?.lastHandledReconcileRequest
}

type Handled = Pick<CommonStatus, 'lastHandledReconcileTime' | 'lastHandledReconcileRequest'>

/** The part of the status about requests after a reconcile at `now`. It stays when the annotation is removed. */
export function handledRequest(object: Resource, now: number): Handled {
  const { lastHandledReconcileTime, lastHandledReconcileRequest } = object.status ?? {}
  if (hasRequest(object))
    return { lastHandledReconcileTime: toTime(now), lastHandledReconcileRequest: requestOf(object)! }
  return lastHandledReconcileTime === undefined ? {} : { lastHandledReconcileTime, lastHandledReconcileRequest }
}
