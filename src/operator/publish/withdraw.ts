/** Takes a published URL back out of its object, or leaves the URL there for good (design, section 6, "Deleting"). */

import { getOrNull, type KubernetesClient, type NewObject } from '../../kubernetes/client.ts'
import { ApiError, hasStatus } from '../../kubernetes/errors.ts'
import { ADOPT_ANNOTATION, FIELD_MANAGER, type HeartbeatCheck, type PublishedTarget } from '../heartbeat-check.ts'
import { describeGrant } from './missing-right.ts'
import {
  appliedIn,
  isOfApply,
  isOfCreation,
  isOnlyOurs,
  isOurCreation,
  isOwnedBy,
  locationOf,
  type PublishedObject,
  relationOf,
  TYPES,
} from './published-object.ts'

/**
 * Removes our URL from the object that it was published in; deletes the object when the operator created it and it
 * holds nothing else. Throws DataInDanger as leave() and findToRelease().
 */
export async function withdrawUrl(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  const found = await findToRelease(client, check, target)
  if (found === null) return
  const location = locationOf(check, target)
  // Applying an empty object removes every field that we applied, and leaves those of others.
  if (!isOnlyOurs(found) || !(isOwnedBy(found, check) || isOurCreation(found, null)))
    return leave(client, check, found, { apiVersion: 'v1', kind: target.kind, metadata: location })
  const { uid, resourceVersion } = found.metadata
  await client.delete(TYPES[target.kind], location, { uid, resourceVersion }).catch((error) => {
    if (!hasStatus(error, 404)) throw error
  })
}

/**
 * Leaves the URL where it is, without an owner: it is not garbage collected, and the next resource may adopt the
 * object. An object of others needs no write. Throws DataInDanger as leave() and findToRelease().
 */
export async function disownUrl(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  const found = await findToRelease(client, check, target)
  if (found === null || !(isOwnedBy(found, check) || isOurCreation(found, null))) return
  const data = Object.fromEntries(appliedIn(found, 'data').map((key) => [key, found.data?.[key] ?? '']))
  const metadata = { ...locationOf(check, target), annotations: { [ADOPT_ANNOTATION]: 'true' } }
  await leave(client, check, found, { apiVersion: 'v1', kind: target.kind, metadata, data } as NewObject)
}

/**
 * An object cannot be released, and the garbage collector would delete data of others in it with the resource.
 * `isCertain`: it may have no such data, where it cannot be read.
 */
export class DataInDanger extends Error {
  override readonly name = 'DataInDanger'
  readonly isCertain: boolean

  /** The answer of the API server is not quoted: an admission rule may quote the object, and so the URL. */
  constructor(cause: unknown, check: HeartbeatCheck, { kind, name }: PublishedTarget, isCertain: boolean) {
    const grant = describeGrant(cause, check.metadata.namespace!)
    const why = cause instanceof ApiError ? `the API server rejects it (${cause.status} ${cause.reason})` : 'no answer'
    const reason = grant === null ? `: ${why}` : ' without the right to'
    const wayOut = grant ?? 'allow it'
    const effect = isCertain
      ? `It holds data of others, and has the owner reference of this resource: the garbage collector would delete the ${kind} with all its data. ` +
        `So this resource stays until the ${kind} is released, or until you remove that owner reference`
      : `It may hold data of others, and have the owner reference of this resource: then the garbage collector deletes the ${kind} with all its ` +
        'data when this resource goes, 10 minutes after its deletion'
    super(`${kind} ${name} cannot be ${isCertain ? 'released' : 'read'}${reason}; ${wayOut}. ${effect}`, { cause })
    this.isCertain = isCertain
  }
}

/** Throws DataInDanger where the object may not be read. */
async function findToRelease(client: KubernetesClient, check: HeartbeatCheck, target: PublishedTarget) {
  try {
    return await findOurs(client, check, target)
  } catch (error) {
    if (!hasStatus(error, 403)) throw error
    throw new DataInDanger(error, check, target, false)
  }
}

/**
 * Applies what is to stay of us, without our owner reference, which any manager may own. Throws DataInDanger where
 * that fails and costs others data.
 */
async function leave(
  client: KubernetesClient,
  check: HeartbeatCheck,
  found: PublishedObject,
  left: NewObject,
): Promise<void> {
  const kind = left.kind as PublishedTarget['kind']
  try {
    const applied = await applyTo(client, kind, found, left)
    if (!isOwnedBy(applied, check)) return
    const { resourceVersion, ownerReferences = [] } = applied.metadata
    const others = ownerReferences.filter(({ uid }) => uid !== check.metadata.uid)
    const place = { namespace: check.metadata.namespace!, name: found.metadata.name }
    await client.mergePatch(TYPES[kind], place, { metadata: { resourceVersion, ownerReferences: others } })
  } catch (error) {
    if (isOwnedBy(found, check) && !isOnlyOurs(found))
      throw new DataInDanger(error, check, { kind, name: found.metadata.name }, true)
    throw error
  }
}

/** Applies to the object as it was read: another installation may have written it since. */
export async function applyTo(
  client: KubernetesClient,
  kind: PublishedTarget['kind'],
  { metadata: { namespace, name, uid, resourceVersion, managedFields = [] } }: PublishedObject,
  wanted: NewObject,
): Promise<PublishedObject> {
  let version = resourceVersion
  // We own a created object by Update, and an apply removes only fields that are owned by Apply: first the entry
  // becomes Apply.
  if (managedFields.some(isOfCreation)) {
    const others = managedFields.filter((entry) => !isOfCreation(entry) && !isOfApply(entry))
    const ours = managedFields.find(isOfCreation)!
    const owners = { resourceVersion, managedFields: [...others, { ...ours, operation: 'Apply' }] }
    const { metadata } = await client.mergePatch(TYPES[kind], { namespace: namespace!, name }, { metadata: owners })
    version = metadata.resourceVersion
  }
  const precondition = { ...wanted, metadata: { ...wanted.metadata, uid, resourceVersion: version } }
  return client.apply<PublishedObject>(TYPES[kind], precondition, { fieldManager: FIELD_MANAGER, force: true })
}

/** What is removed from it, or left in it, are the fields that our field manager owns. */
export async function findOurs(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<PublishedObject | null> {
  const found = await findObject(client, check, target)
  if (found === null) return null
  const relation = relationOf(found, check, null)
  return relation === 'ours' || relation === 'orphaned' ? found : null
}

export const findObject = (client: Pick<KubernetesClient, 'get'>, check: HeartbeatCheck, target: PublishedTarget) =>
  getOrNull<PublishedObject>(client, TYPES[target.kind], locationOf(check, target))
