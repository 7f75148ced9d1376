/**
 * Fields of HeartbeatChecks that the operator wrote as `node`, the name that its client had up to version 0.1. They are handed over to
 * its present field managers before the first status that it writes: an upgrade changes each status. That is a write of its own,
 * because the endpoint of the status ignores managedFields.
 *
 * The finalizer is the only field outside the status that it ever wrote; other programs on Node are called `node` too. Published
 * objects always had the present manager.
 */

import { handOver } from '../../kubernetes/field-owners.ts'
import type { FieldsOwner } from '../../kubernetes/objects.ts'
import {
  API_VERSION,
  FIELD_MANAGER,
  FINALIZER,
  FORMER_FIELD_MANAGER,
  type HeartbeatCheck,
  STATUS_FIELD_MANAGER,
} from '../heartbeat-check.ts'

/** On an object of the cache, which has no managedFields. Copies keep a symbol, and JSON leaves it out. */
const HAD_FORMER_OWNER = Symbol('had a former owner')

interface Marked {
  readonly [HAD_FORMER_OWNER]?: true
}

/** Returns a mark for a copy of the object without its managedFields. */
export function markFormerManager({ metadata: { managedFields = [] } }: HeartbeatCheck): Marked {
  return toPresent(managedFields) === managedFields ? {} : { [HAD_FORMER_OWNER]: true }
}

/** Whether fields have to be handed over, which needs the whole object. */
export function isMarked(object: HeartbeatCheck & Marked): boolean {
  return object[HAD_FORMER_OWNER] === true
}

/** Returns a merge patch of the object that hands its fields over; null when there is nothing to hand over. Needs its managedFields. */
export function describeHandover({ metadata: { managedFields = [], resourceVersion } }: HeartbeatCheck): object | null {
  const present = toPresent(managedFields)
  return present === managedFields ? null : { metadata: { resourceVersion, managedFields: present } }
}

function toPresent(owners: readonly FieldsOwner[]): readonly FieldsOwner[] {
  const common = { from: FORMER_FIELD_MANAGER, apiVersion: API_VERSION }
  const path = ['f:metadata', 'f:finalizers', `v:${JSON.stringify(FINALIZER)}`]
  const withStatus = handOver(owners, { ...common, to: STATUS_FIELD_MANAGER, subresource: 'status' })
  return handOver(withStatus, { ...common, to: FIELD_MANAGER, path })
}
