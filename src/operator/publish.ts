/**
 * The ping URL on its way into a Secret or ConfigMap beside the CronJob (design, section 6, "Publishing"). By server-side
 * apply once it is there, with an owner reference; what is not ours is never touched. The controller may create, `get` and `patch` by name and neither
 * list nor watch: what somebody deleted or edited is set right by the next full pass.
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

interface Target extends KubernetesObject {
  readonly data?: Texts
  readonly binaryData?: Texts
}

export type PublishResult =
  | { readonly kind: 'published'; readonly isChanged: boolean; readonly isTakenOver: boolean }
  | { readonly kind: 'refused'; readonly reason: 'TargetNotOwned' | 'PublishRefused'; readonly message: string }

const TYPES: Record<PublishTarget['kind'], ResourceType> = {
  Secret: { group: '', version: 'v1', plural: 'secrets' },
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps' },
}

/**
 * Writes the URL unless it is there already. Throws what the API server did not answer, or may answer otherwise later.
 * `beforeSharing` ends before anything is written into what was there before: it may hold what is others', and only a
 * resource that cannot go without us is sure to be released from it.
 */
export async function publishUrl(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  url: string,
  beforeSharing: () => Promise<unknown>,
): Promise<PublishResult> {
  const wanted = describeTarget(check, target, url)
  try {
    return await write(client, check, target, wanted, beforeSharing)
  } catch (error) {
    if (!isRefusal(error)) throw error
    // An admission rule may quote what it refuses, and this goes into a status that many may read.
    const why = [url, ...Object.values(wanted.data)].reduce(
      (said, secret) => said.replaceAll(secret, '***'),
      error.message,
    )
    const message = `${target.kind} ${target.name} cannot be written: ${why}`
    return { kind: 'refused', reason: 'PublishRefused', message }
  }
}

async function write(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  wanted: ReturnType<typeof describeTarget>,
  beforeSharing: () => Promise<unknown>,
): Promise<PublishResult> {
  if (await makeNew(client, check, target, wanted)) return { kind: 'published', isChanged: true, isTakenOver: false }
  const found = await findTarget(client, target.kind, placeOf(check, target))
  const ownership = found === null ? 'ours' : ownershipOf(found, check)
  if (ownership === 'foreign')
    return { kind: 'refused', reason: 'TargetNotOwned', message: explainForeign(found!, target) }
  if (found !== null && ownership === 'ours' && isAsWanted(found, wanted))
    return { kind: 'published', isChanged: false, isTakenOver: false }
  if (found === null) {
    // A conflict says that somebody was faster.
    await client.apply(TYPES[target.kind], wanted, { fieldManager: FIELD_MANAGER })
  } else {
    await beforeSharing()
    await applyTo(client, target.kind, found, wanted)
  }
  return { kind: 'published', isChanged: true, isTakenOver: ownership === 'predecessor' }
}

/** Without a look at the place, the first time that a resource is worked on: most often there is nothing there. */
async function makeNew(
  client: KubernetesClient,
  { status }: HeartbeatCheck,
  target: PublishTarget,
  wanted: ReturnType<typeof describeTarget>,
): Promise<boolean> {
  if (status !== undefined) return false
  try {
    // A third less work for the API server than an apply.
    await client.create(TYPES[target.kind], wanted, { fieldManager: FIELD_MANAGER })
    return true
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return false
    throw error
  }
}

/** Takes our URL out of what the check published into before: the object goes when it holds nothing else. */
export async function releaseTarget(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<void> {
  const found = await findOurs(client, check, target)
  if (found === null) return
  const place = placeOf(check, target)
  if (isOnlyOurs(found)) {
    const { uid, resourceVersion } = found.metadata
    return client.delete(TYPES[target.kind], place, { uid, resourceVersion }).catch((error) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error
    })
  }
  // Applying nothing gives up every field that we applied, and leaves the others'.
  const nothing = { apiVersion: 'v1', kind: target.kind, metadata: place }
  await applyTo(client, target.kind, found, nothing)
}

/** Leaves the URL where it is, without an owner: no collector takes it, and the next check may have it. */
export async function leaveTarget(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<void> {
  const found = await findOurs(client, check, target)
  if (found === null) return
  const data = Object.fromEntries(appliedIn(found, 'data').map((key) => [key, found.data?.[key] ?? '']))
  const metadata = { ...placeOf(check, target), annotations: { [ADOPT_ANNOTATION]: 'true' } }
  const left = { apiVersion: 'v1', kind: target.kind, metadata, data }
  await applyTo(client, target.kind, found, left)
}

function placeOf({ metadata }: HeartbeatCheck, { name }: PublishedTarget): ObjectName & { namespace: string } {
  return { namespace: metadata.namespace!, name }
}

/** To the object that was looked at, and none that came in its place, nor a new one. */
async function applyTo(
  client: KubernetesClient,
  kind: PublishTarget['kind'],
  { metadata: { namespace, name, uid, resourceVersion, managedFields = [] } }: Target,
  wanted: NewObject,
): Promise<void> {
  // What we created we own as somebody who updates. An apply gives up only what is owned as somebody who applies, so it becomes that.
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

async function findOurs(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<Target | null> {
  const found = await findTarget(client, target.kind, placeOf(check, target))
  return found !== null && ownershipOf(found, check) === 'ours' ? found : null
}

async function findTarget(
  client: KubernetesClient,
  kind: PublishTarget['kind'],
  place: ObjectName,
): Promise<Target | null> {
  try {
    return await client.get<Target>(TYPES[kind], place)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}

function describeTarget(check: HeartbeatCheck, target: PublishTarget, url: string) {
  const { name, namespace, uid } = check.metadata
  return {
    apiVersion: 'v1',
    kind: target.kind,
    metadata: {
      name: target.name,
      namespace: namespace!,
      labels: {
        ...target.labels,
        [MANAGED_BY_LABEL]: FIELD_MANAGER,
        [CHECK_LABEL]: name,
      },
      annotations: target.annotations,
      // blockOwnerDeletion would need a right on heartbeatchecks/finalizers and gain nothing.
      ownerReferences: [
        { apiVersion: API_VERSION, kind: KIND, name, uid, controller: true, blockOwnerDeletion: false },
      ],
    },
    // Never stringData: with server-side apply a renamed key would leave the old one behind.
    data: { [target.key]: target.kind === 'Secret' ? Buffer.from(url).toString('base64') : url },
  }
}

/** `predecessor`: of a check of this name that was deleted; the garbage collector has not come round yet. */
function ownershipOf(found: Target, check: HeartbeatCheck): 'ours' | 'predecessor' | 'adoptable' | 'foreign' {
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

function explainForeign({ metadata }: Target, { kind, name }: PublishTarget): string {
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

/** Everything that is wanted is there, and nothing that we applied and that is not wanted any more. */
function isAsWanted(found: Target, { metadata, data }: ReturnType<typeof describeTarget>): boolean {
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

/** The keys that we wrote in a map of the object. */
function appliedIn({ metadata }: Target, ...path: readonly string[]): string[] {
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

function isOnlyOurs(found: Target): boolean {
  const applied = new Set(appliedIn(found, 'data'))
  const { data = {}, binaryData = {} } = found
  return Object.keys({ ...data, ...binaryData }).every((key) => applied.has(key))
}

/** The API server understood and will say the same again: an immutable Secret, a right that is missing, somebody's rule. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 403, 422].includes(error.status) && !isNamespaceGoing(error)
}

/** Nothing can be made in it any more; its deletion comes to each of its objects by itself. */
export function isNamespaceGoing(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false
  return error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') ?? false
}
