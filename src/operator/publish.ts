/**
 * Publishes the ping URL in a Secret or ConfigMap beside the CronJob (design, section 6, "Publishing"): created with an owner
 * reference, changed by server-side apply. Objects of others are never touched. The controller has the rights to create, `get` and
 * `patch` by name, and neither list nor watch: changes by others are corrected by the next full sync.
 */

import { ApiError, type KubernetesClient, type NewObject } from '../kubernetes/client.ts'
import type { FieldsOwner, KubernetesObject, ObjectName, ResourceType } from '../kubernetes/objects.ts'
import {
  ADOPT_ANNOTATION,
  API_VERSION,
  CHECK_LABEL,
  FIELD_MANAGER,
  type HeartbeatCheck,
  KIND,
  MANAGED_BY_LABEL,
  type PublishedTarget,
  type PublishTarget,
} from './heartbeat-check.ts'

interface PublishedObject extends KubernetesObject {
  readonly data?: Texts
  readonly binaryData?: Texts
}

export type PublishResult =
  | { readonly kind: 'published'; readonly isChanged: boolean; readonly isTakenOver: boolean }
  | { readonly kind: 'rejected'; readonly reason: 'TargetNotOwned' | 'PublishRefused'; readonly message: string }

const TYPES: Record<PublishTarget['kind'], ResourceType> = {
  Secret: { group: '', version: 'v1', plural: 'secrets' },
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps' },
}

/**
 * Writes the URL unless it is there already. Throws errors that a retry may resolve. `beforeSharing` is awaited before a write
 * into an object that existed before: it may hold data of others, so our part must be withdrawn when the resource goes, and only
 * the finalizer ensures that.
 */
export async function publishUrl(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  url: string,
  beforeSharing: () => Promise<unknown>,
): Promise<PublishResult> {
  const wanted = manifestOf(check, target, url)
  try {
    return await write(client, check, target, wanted, beforeSharing)
  } catch (error) {
    if (!isRejection(error)) throw error
    // An admission rule may quote the rejected object, and this message goes into a status that many may read.
    const secrets = [url, ...Object.values(wanted.data)]
    const why = secrets.reduce((text, secret) => text.replaceAll(secret, '***'), error.message)
    const message = `${target.kind} ${target.name} cannot be written: ${why}`
    return { kind: 'rejected', reason: 'PublishRefused', message }
  }
}

async function write(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  wanted: ReturnType<typeof manifestOf>,
  beforeSharing: () => Promise<unknown>,
): Promise<PublishResult> {
  if (await createNew(client, check, target, wanted)) return { kind: 'published', isChanged: true, isTakenOver: false }
  const found = await findObject(client, target.kind, locationOf(check, target))
  const ownership = found === null ? 'ours' : ownershipOf(found, check)
  if (ownership === 'foreign')
    return { kind: 'rejected', reason: 'TargetNotOwned', message: explainForeign(found!, target) }
  if (found !== null && ownership === 'ours' && isAsWanted(found, wanted))
    return { kind: 'published', isChanged: false, isTakenOver: false }
  if (found === null) {
    // Without force: a conflict means that another client was faster.
    await client.apply(TYPES[target.kind], wanted, { fieldManager: FIELD_MANAGER })
  } else {
    await beforeSharing()
    await applyTo(client, target.kind, found, wanted)
  }
  return { kind: 'published', isChanged: true, isTakenOver: ownership === 'predecessor' }
}

/** In the first reconcile of a resource, without a read before: usually there is no such object. Resolves with false if there is. */
async function createNew(
  client: KubernetesClient,
  { status }: HeartbeatCheck,
  target: PublishTarget,
  wanted: ReturnType<typeof manifestOf>,
): Promise<boolean> {
  if (status !== undefined) return false
  try {
    // Costs the API server a third less than an apply.
    await client.create(TYPES[target.kind], wanted, { fieldManager: FIELD_MANAGER })
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return false
    throw error
  }
}

/** Removes our URL from the object that it was published in; deletes the object when it holds nothing else. */
export async function withdrawUrl(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  const found = await findOurs(client, check, target)
  if (found === null) return
  const location = locationOf(check, target)
  if (isOnlyOurs(found)) {
    const { uid, resourceVersion } = found.metadata
    return client.delete(TYPES[target.kind], location, { uid, resourceVersion }).catch((error) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error
    })
  }
  // Applying an empty object removes every field that we applied, and leaves those of others.
  await applyTo(client, target.kind, found, { apiVersion: 'v1', kind: target.kind, metadata: location })
}

/** Leaves the URL where it is, without an owner: it is not garbage collected, and the next resource may adopt the object. */
export async function disownUrl(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  const found = await findOurs(client, check, target)
  if (found === null) return
  const data = Object.fromEntries(appliedIn(found, 'data').map((key) => [key, found.data?.[key] ?? '']))
  const metadata = { ...locationOf(check, target), annotations: { [ADOPT_ANNOTATION]: 'true' } }
  const left = { apiVersion: 'v1', kind: target.kind, metadata, data }
  await applyTo(client, target.kind, found, left)
}

function locationOf({ metadata }: HeartbeatCheck, { name }: PublishedTarget): ObjectName & { namespace: string } {
  return { namespace: metadata.namespace!, name }
}

/** Applies to the object that was read, never to a new one of its name. */
async function applyTo(
  client: KubernetesClient,
  kind: PublishTarget['kind'],
  { metadata: { namespace, name, uid, resourceVersion, managedFields = [] } }: PublishedObject,
  wanted: NewObject,
): Promise<void> {
  // We own a created object by Update, and an apply removes only fields that are owned by Apply: first the entry becomes Apply.
  if (managedFields.some(isOfCreation)) {
    const others = managedFields.filter((entry) => !isOfCreation(entry) && !isOfApply(entry))
    const ours = managedFields.find(isOfCreation)!
    const owners = { resourceVersion, managedFields: [...others, { ...ours, operation: 'Apply' }] }
    await client.mergePatch(TYPES[kind], { namespace: namespace!, name }, { metadata: owners })
  }
  const precondition = { ...wanted, metadata: { ...wanted.metadata, uid } }
  await client.apply(TYPES[kind], precondition, { fieldManager: FIELD_MANAGER, force: true })
}

const isOfCreation = (entry: FieldsOwner) => entry.manager === FIELD_MANAGER && entry.operation === 'Update'
const isOfApply = (entry: FieldsOwner) => entry.manager === FIELD_MANAGER && entry.operation === 'Apply'

async function findOurs(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  const found = await findObject(client, target.kind, locationOf(check, target))
  return found !== null && ownershipOf(found, check) === 'ours' ? found : null
}

async function findObject(client: KubernetesClient, kind: PublishTarget['kind'], location: ObjectName) {
  try {
    return await client.get<PublishedObject>(TYPES[kind], location)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}

function manifestOf(check: HeartbeatCheck, target: PublishTarget, url: string) {
  const { name, namespace, uid } = check.metadata
  return {
    apiVersion: 'v1',
    kind: target.kind,
    metadata: {
      name: target.name,
      namespace: namespace!,
      labels: { ...target.labels, [MANAGED_BY_LABEL]: FIELD_MANAGER, [CHECK_LABEL]: name },
      annotations: target.annotations,
      // blockOwnerDeletion would need a right on heartbeatchecks/finalizers and has no use here.
      ownerReferences: [
        { apiVersion: API_VERSION, kind: KIND, name, uid, controller: true, blockOwnerDeletion: false },
      ],
    },
    // Never stringData: with server-side apply a renamed key would leave the old one behind.
    data: { [target.key]: target.kind === 'Secret' ? Buffer.from(url).toString('base64') : url },
  }
}

/** `predecessor`: owned by a deleted resource of the same name; the garbage collector has not taken it yet. */
function ownershipOf(found: PublishedObject, check: HeartbeatCheck): 'ours' | 'predecessor' | 'adoptable' | 'foreign' {
  const controller = found.metadata.ownerReferences?.find((owner) => owner.controller === true)
  if (controller?.uid === check.metadata.uid) return 'ours'
  if (controller === undefined)
    return found.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'adoptable' : 'foreign'
  const isPredecessor =
    controller.kind === KIND &&
    controller.name === check.metadata.name &&
    controller.apiVersion.split('/')[0] === API_VERSION.split('/')[0]
  return isPredecessor ? 'predecessor' : 'foreign'
}

function explainForeign({ metadata }: PublishedObject, { kind, name }: PublishTarget): string {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true)
  const managers = [...new Set((metadata.managedFields ?? []).map((entry) => entry.manager).filter(Boolean))]
  const owner =
    controller !== undefined
      ? `belongs to ${controller.kind} ${controller.name}`
      : managers.length > 0
        ? `is managed by ${managers.join(', ')}`
        : 'was there before'
  const wayOut = controller === undefined ? `, or give it away with the annotation ${ADOPT_ANNOTATION}: "true"` : ''
  return `${kind} ${name} ${owner} and is not touched: choose another spec.publish.name${wayOut}`
}

/** Whether all wanted fields are there, and none that we applied before and do not want any more. */
function isAsWanted(found: PublishedObject, { metadata, data }: ReturnType<typeof manifestOf>): boolean {
  const holds = (there: Texts = {}, ours: Texts, applied: readonly string[]) =>
    Object.entries(ours).every(([key, value]) => there[key] === value) &&
    applied.every((key) => Object.hasOwn(ours, key))
  const { labels, annotations } = found.metadata
  return (
    holds(found.data, data, appliedIn(found, 'data')) &&
    holds(labels, metadata.labels, appliedIn(found, 'metadata', 'labels')) &&
    holds(annotations, metadata.annotations, appliedIn(found, 'metadata', 'annotations'))
  )
}

type Texts = Readonly<Record<string, string>>

/** The keys of a map of the object that we own. */
function appliedIn({ metadata }: PublishedObject, ...path: readonly string[]): string[] {
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

function isOnlyOurs(found: PublishedObject): boolean {
  const applied = new Set(appliedIn(found, 'data'))
  const { data = {}, binaryData = {} } = found
  return Object.keys({ ...data, ...binaryData }).every((key) => applied.has(key))
}

/** A rejection that a retry would repeat: an immutable Secret, a missing right, an admission rule. */
function isRejection(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 403, 422].includes(error.status) && !isNamespaceGoing(error)
}

/** The namespace is being deleted: nothing can be created in it, and each of its objects gets its own deletion. */
export function isNamespaceGoing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  return error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false
}
