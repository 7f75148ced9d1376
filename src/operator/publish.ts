/**
 * The ping URL on its way into a Secret or ConfigMap beside the CronJob (design, section 6, "Publishing"). By server-side
 * apply, with an owner reference; what is not ours is never touched. The controller may `get` and `patch` by name and neither
 * list nor watch: what somebody deleted or edited is set right by the next full pass.
 */

import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { KubernetesObject, ObjectName, ResourceType } from '../kubernetes/objects.ts'
import {
  ADOPT_ANNOTATION,
  API_VERSION,
  CHECK_LABEL,
  FIELD_MANAGER,
  type HeartbeatCheck,
  KIND,
  type PublishedTarget,
  type PublishTarget,
} from './heartbeat-check.ts'

interface Target extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>
}

export type PublishResult =
  | { readonly kind: 'published'; readonly isChanged: boolean; readonly isTakenOver: boolean }
  | { readonly kind: 'refused'; readonly reason: 'TargetNotOwned' | 'PublishRefused'; readonly message: string }

const TYPES: Record<PublishTarget['kind'], ResourceType> = {
  Secret: { group: '', version: 'v1', plural: 'secrets' },
  ConfigMap: { group: '', version: 'v1', plural: 'configmaps' },
}

/** Writes the URL unless it is there already. Throws what the API server did not answer, or may answer otherwise later. */
export async function publishUrl(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  url: string,
): Promise<PublishResult> {
  const place = { namespace: check.metadata.namespace!, name: target.name }
  const wanted = describeTarget(check, target, url)
  const found = await findTarget(client, target.kind, place)
  const ownership = found === null ? 'ours' : ownershipOf(found, check)
  if (ownership === 'foreign') return { kind: 'refused', reason: 'TargetNotOwned', message: explainForeign(found!, target) }
  if (found !== null && ownership === 'ours' && holdsAll(found, wanted))
    return { kind: 'published', isChanged: false, isTakenOver: false }
  try {
    await client.apply(TYPES[target.kind], wanted, { fieldManager: FIELD_MANAGER, force: true })
  } catch (error) {
    if (!isRefusal(error)) throw error
    const message = `${target.kind} ${target.name} cannot be written: ${error.message}`
    return { kind: 'refused', reason: 'PublishRefused', message }
  }
  return { kind: 'published', isChanged: true, isTakenOver: ownership === 'predecessor' }
}

/** Takes our URL out of what the check published into before: the object goes when it holds nothing else. */
export async function releaseTarget(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget): Promise<void> {
  const place = { namespace: check.metadata.namespace!, name: target.name }
  const type = TYPES[target.kind]
  const found = await findTarget(client, target.kind, place)
  if (found === null || ownershipOf(found, check) !== 'ours') return
  if (isOnlyOurs(found)) {
    const { uid, resourceVersion } = found.metadata
    return client.delete(type, place, { uid, resourceVersion }).catch((error) => {
      if (!(error instanceof ApiError && error.status === 404)) throw error
    })
  }
  // Applying nothing gives up every field that we applied, and leaves the others'.
  const nothing = { apiVersion: 'v1', kind: target.kind, metadata: place }
  await client.apply(type, nothing, { fieldManager: FIELD_MANAGER, force: true })
}

async function findTarget(client: KubernetesClient, kind: PublishTarget['kind'], place: ObjectName): Promise<Target | null> {
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
        'app.kubernetes.io/managed-by': FIELD_MANAGER,
        // A label's value is shorter than a resource's name may be.
        ...(name.length <= 63 ? { [CHECK_LABEL]: name } : {}),
      },
      ...(Object.keys(target.annotations).length === 0 ? {} : { annotations: target.annotations }),
      // blockOwnerDeletion would need a right on heartbeatchecks/finalizers and gain nothing.
      ownerReferences: [{ apiVersion: API_VERSION, kind: KIND, name, uid, controller: true, blockOwnerDeletion: false }],
    },
    // Never stringData: with server-side apply a renamed key would leave the old one behind.
    data: { [target.key]: target.kind === 'Secret' ? Buffer.from(url).toString('base64') : url },
  }
}

/** `predecessor`: of a check of this name that was deleted; the garbage collector has not come round yet. */
function ownershipOf(found: Target, check: HeartbeatCheck): 'ours' | 'predecessor' | 'adoptable' | 'foreign' {
  const controller = found.metadata.ownerReferences?.find((owner) => owner.controller === true)
  if (controller?.uid === check.metadata.uid) return 'ours'
  if (controller === undefined) return found.metadata.annotations?.[ADOPT_ANNOTATION] === 'true' ? 'adoptable' : 'foreign'
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

function holdsAll(found: Target, wanted: ReturnType<typeof describeTarget>): boolean {
  const holds = (there: Readonly<Record<string, string>> = {}, ours: Readonly<Record<string, string>> = {}) =>
    Object.entries(ours).every(([key, value]) => there[key] === value)
  const { labels, annotations } = found.metadata
  return (
    holds(found.data, wanted.data) &&
    holds(labels, wanted.metadata.labels) &&
    holds(annotations, wanted.metadata.annotations) &&
    appliedKeysOf(found).every((key) => key in wanted.data)
  )
}

/** The keys of `data` that we applied: one that is not wanted any more must go. */
function appliedKeysOf({ metadata }: Target): string[] {
  const keys: string[] = []
  for (const { manager, operation, fieldsV1 } of metadata.managedFields ?? []) {
    if (manager !== FIELD_MANAGER || operation !== 'Apply') continue
    const data = (fieldsV1 as { 'f:data'?: object } | undefined)?.['f:data'] ?? {}
    for (const field of Object.keys(data)) if (field.startsWith('f:')) keys.push(field.slice(2))
  }
  return keys
}

function isOnlyOurs(found: Target): boolean {
  const applied = new Set(appliedKeysOf(found))
  return Object.keys(found.data ?? {}).every((key) => applied.has(key))
}

/** The API server understood and will say the same again: 422 (an immutable Secret, a second controller), 403, 400. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 403, 409, 422].includes(error.status)
}
