/**
 * A published Secret or ConfigMap as it is wanted and as it was found: whose it is, and whether it is as wanted
 * (design, section 6, "Publishing"). Pure; publish.ts writes.
 */

import type { UrlHolder } from '../../checks/find-checks.ts'
import type { NewObject } from '../../kubernetes/client.ts'
import type {
  FieldsOwner,
  KubernetesObject,
  ObjectName,
  OwnerReference,
  ResourceType,
} from '../../kubernetes/objects.ts'
import {
  ADOPT_ANNOTATION,
  API_VERSION,
  CHECK_LABEL,
  CHECK_NAME_ANNOTATION,
  FIELD_MANAGER,
  type HeartbeatCheck,
  KIND,
  MANAGED_BY_LABEL,
  type PublishedTarget,
  type PublishTarget,
} from '../heartbeat-check.ts'
import { isLongName, labelValueOf } from './long-names.ts'

export interface PublishedObject extends KubernetesObject {
  readonly data?: Texts
  readonly binaryData?: Texts
}

export const TYPES: Record<PublishTarget['kind'], ResourceType> = {
  Secret: { group: '', version: 'v1', plural: 'secrets' },
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps' },
}

export function locationOf(
  { metadata }: HeartbeatCheck,
  { name }: PublishedTarget,
): ObjectName & { namespace: string } {
  return { namespace: metadata.namespace!, name }
}

export const isOfCreation = (entry: FieldsOwner) => entry.manager === FIELD_MANAGER && entry.operation === 'Update'
export const isOfApply = (entry: FieldsOwner) => entry.manager === FIELD_MANAGER && entry.operation === 'Apply'

/** What an apply writes: all fields that we own. Into an object of others goes only what is needed there. */
export interface Manifest extends NewObject {
  readonly metadata: NewObject['metadata'] & {
    readonly labels: Texts
    readonly annotations?: Texts
    readonly ownerReferences?: readonly OwnerReference[]
  }
  readonly data: Texts
}

/** Of an object that the operator creates. It goes with its resource. */
export function manifestOf(check: HeartbeatCheck, target: PublishTarget, url: string): Manifest {
  const { name, uid } = check.metadata
  const guest = guestManifestOf(check, target, url)
  return {
    ...guest,
    metadata: {
      ...guest.metadata,
      labels: { ...target.labels, [MANAGED_BY_LABEL]: FIELD_MANAGER, ...guest.metadata.labels },
      annotations: { ...target.annotations, ...(isLongName(name) ? { [CHECK_NAME_ANNOTATION]: name } : {}) },
      // blockOwnerDeletion would need a right on heartbeatchecks/finalizers and has no use here.
      ownerReferences: [
        { apiVersion: API_VERSION, kind: KIND, name, uid, controller: true, blockOwnerDeletion: false },
      ],
    },
  }
}

/**
 * In an object of others: the key and the label by which we know the object again. With an owner reference the garbage
 * collector would delete the data of others, and other labels belong to those who manage the object.
 */
export function guestManifestOf(check: HeartbeatCheck, target: PublishTarget, url: string): Manifest {
  return {
    apiVersion: 'v1',
    kind: target.kind,
    metadata: { ...locationOf(check, target), labels: { [CHECK_LABEL]: labelValueOf(check.metadata.name) } },
    // Never stringData: with server-side apply a renamed key would leave the old one behind.
    data: { [target.key]: target.kind === 'Secret' ? toBase64(url) : url },
  }
}

export type Relation = 'ours' | 'orphaned' | 'predecessor' | 'adoptable' | 'foreign'

/**
 * `orphaned`: ours by its label and URL, without our owner reference: an object of others that we write into, or one of
 * ours that lost the reference, as after a restored backup. `predecessor`: owned by a deleted resource of the same
 * name; the garbage collector has not taken it yet. `url`: null for an object that is only cleaned up.
 */
export function relationOf(found: PublishedObject, check: HeartbeatCheck, url: string | null): Relation {
  const controller = controllerOf(found)
  if (controller?.uid === check.metadata.uid) return 'ours'
  if (controller === undefined) {
    const isPublished = urlsIn(found).length > 0 || (url !== null && holdsUrl(found, url))
    if (isMarked(found, check) && isPublished) return 'orphaned'
    return found.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'adoptable' : 'foreign'
  }
  const isPredecessor =
    controller.kind === KIND &&
    controller.name === check.metadata.name &&
    controller.apiVersion.split('/')[0] === API_VERSION.split('/')[0]
  return isPredecessor ? 'predecessor' : 'foreign'
}

const controllerOf = ({ metadata }: PublishedObject) =>
  metadata.ownerReferences?.find((owner) => owner.controller === true)

/** Whether the garbage collector deletes it with this resource. */
export const isOwnedBy = ({ metadata }: PublishedObject, check: HeartbeatCheck): boolean =>
  metadata.ownerReferences?.some(({ uid }) => uid === check.metadata.uid) ?? false

/**
 * Whether an object without our owner reference was created by the operator, and may have the reference. We write the
 * label only into such objects, and the annotation only when one of them is left to others (publish.ts, `disownUrl`). A
 * restored backup knows no field owners: then the object must hold nothing but the URL.
 */
export function isOurCreation(found: PublishedObject, url: string | null): boolean {
  const { labels = {} } = found.metadata
  if (appliedIn(found, 'metadata', 'labels').includes(MANAGED_BY_LABEL)) return true
  if (appliedIn(found, 'metadata', 'annotations').includes(ADOPT_ANNOTATION)) return isOnlyOurs(found)
  if (url === null || labels[MANAGED_BY_LABEL] !== FIELD_MANAGER) return false
  const { data = {}, binaryData = {} } = found
  return Object.values({ ...data, ...binaryData }).every((value) => value === url || value === toBase64(url))
}

/** Whether it has our label with the name of this check. Others may set it too. */
export function isMarked({ metadata }: PublishedObject, check: HeartbeatCheck): boolean {
  return metadata.labels?.[CHECK_LABEL] === labelValueOf(check.metadata.name)
}

/** Under any key: the key may have changed since. Only the service and readers of this object know the URL. */
export function holdsUrl({ data = {} }: PublishedObject, url: string): boolean {
  const values = Object.values(data)
  return values.includes(url) || values.includes(toBase64(url))
}

/** The ping URLs among the values that we wrote. */
export function urlsIn(found: PublishedObject): string[] {
  const texts = appliedIn(found, 'data').map((key) => found.data?.[key] ?? '')
  return texts.flatMap((text) => [text, Buffer.from(text, 'base64').toString()]).filter((text) => PING_URL.test(text))
}

const PING_URL = /\/ping\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i

/** The public ids in ping URLs. */
export const publicIdsIn = (urls: readonly string[]): string[] =>
  urls.flatMap((url) => PING_URL.exec(url)?.[1]?.toLowerCase() ?? [])

export const toBase64 = (text: string) => Buffer.from(text).toString('base64')

/** Why an object is not ours, and what a person can do. */
export function explainForeign(found: PublishedObject, check: HeartbeatCheck, { kind, name }: PublishTarget): string {
  const controller = controllerOf(found)
  const wayOut =
    controller === undefined ? `, or give it away with the annotation ${ADOPT_ANNOTATION}: "true" on the ${kind}` : ''
  return `${kind} ${name} ${describeOwner(found, check)} and is not touched: choose another spec.publish.name${wayOut}`
}

function describeOwner(found: PublishedObject, check: HeartbeatCheck): string {
  const controller = controllerOf(found)
  if (controller !== undefined) return `belongs to ${controller.kind} ${controller.name}`
  if (isMarked(found, check))
    return 'has the label of this HeartbeatCheck, but neither its owner reference nor its ping URL,'
  const { managedFields = [], labels = {} } = found.metadata
  if (labels[CHECK_LABEL] !== undefined) return `has the label of HeartbeatCheck ${labels[CHECK_LABEL]}`
  const managers = new Set(managedFields.map(({ manager }) => manager).filter(Boolean))
  managers.delete(FIELD_MANAGER)
  return managers.size > 0 ? `is managed by ${[...managers].join(', ')}` : 'was there before'
}

export function explainHeld({ kind, name }: PublishTarget, { id, resource }: UrlHolder): string {
  if (resource !== null)
    return `${kind} ${name} holds the ping URL of HeartbeatCheck ${resource}, and holds one at a time: choose another spec.publish.name`
  return `${kind} ${name} keeps the ping URL of the retained check ${id}: choose another spec.publish.name, or remove that check through the API: DELETE /api/v1/checks/${id}`
}

/** Whether all wanted fields are there, and none that we applied before and do not want any more. */
export function isAsWanted(found: PublishedObject, { metadata, data }: Manifest): boolean {
  const holds = (there: Texts = {}, ours: Texts, applied: readonly string[]) =>
    Object.entries(ours).every(([key, value]) => there[key] === value) &&
    applied.every((key) => Object.hasOwn(ours, key))
  const { labels, annotations } = found.metadata
  return (
    holds(found.data, data, appliedIn(found, 'data')) &&
    holds(labels, metadata.labels, appliedIn(found, 'metadata', 'labels')) &&
    holds(annotations, metadata.annotations ?? {}, appliedIn(found, 'metadata', 'annotations'))
  )
}

type Texts = Readonly<Record<string, string>>

/** The keys of a map of the object that we own. */
export function appliedIn({ metadata }: PublishedObject, ...path: readonly string[]): string[] {
  const keys: string[] = []
  for (const { manager, fieldsV1 } of metadata.managedFields ?? []) {
    if (manager !== FIELD_MANAGER) continue
    let fields: Fields | undefined = fieldsV1 as Fields | undefined
    for (const part of path) fields = fields?.[`f:${part}`]
    for (const field of Object.keys(fields ?? {})) if (field.startsWith('f:')) keys.push(field.slice(2))
  }
  return keys
}

interface Fields {
  readonly [field: `f:${string}`]: Fields
}

/** Whether it holds no data of others. */
export function isOnlyOurs(found: PublishedObject): boolean {
  const applied = new Set(appliedIn(found, 'data'))
  const { data = {}, binaryData = {} } = found
  return Object.keys({ ...data, ...binaryData }).every((key) => applied.has(key))
}
