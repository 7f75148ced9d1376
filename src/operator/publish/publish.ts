/**
 * Publishes the ping URL in a Secret or ConfigMap beside the CronJob (design, section 6, "Publishing"): created with an
 * owner reference, changed by server-side apply. Into an object that others handed over go one key and one label; other
 * objects are never touched. The controller has the rights to create, `get` and `patch` by name, and neither list nor
 * watch: the resync finds changes by others, or a request (reconcile-request.ts).
 */

import { getOrNull, type KubernetesClient, type NewObject } from '../../kubernetes/client.ts'
import { ApiError, hasStatus, isRejected } from '../../kubernetes/errors.ts'
import type { ObjectName } from '../../kubernetes/objects.ts'
import type { UrlHolder } from '../../store/checks/retained-checks.ts'
import {
  ADOPT_ANNOTATION,
  FIELD_MANAGER,
  type HeartbeatCheck,
  type PublishedTarget,
  type PublishTarget,
} from '../heartbeat-check.ts'
import { Stalled } from '../status/stalled.ts'
import { describeGrant } from './missing-right.ts'
import {
  appliedIn,
  explainForeign,
  explainHeld,
  guestManifestOf,
  holdsUrl,
  isAsWanted,
  isMarked,
  isOfApply,
  isOfCreation,
  isOnlyOurs,
  isOurCreation,
  isOwnedBy,
  locationOf,
  type Manifest,
  manifestOf,
  type PublishedObject,
  publicIdsIn,
  relationOf,
  TYPES,
  toBase64,
  urlsIn,
} from './published-object.ts'

export type PublishResult =
  | {
      readonly kind: 'published'
      readonly isChanged: boolean
      readonly isFromPredecessor: boolean
    }
  | { readonly kind: 'rejected'; readonly reason: 'TargetNotOwned' | 'PublishRefused'; readonly message: string }

/** Called with the public ids of other checks that the object holds. */
export type FindHolder = (publicIds: readonly string[]) => Promise<UrlHolder | null>

/** Called with whether the object is of this resource, and holds another URL. */
export type BeforeSharing = (holdsAnotherUrl: boolean) => Promise<unknown>

/**
 * Writes the URL unless it is there already. Throws errors that a retry may resolve. `beforeSharing` is awaited before
 * a write into an object that existed before: another installation may have written the object a moment ago.
 * `findHolder` resolves with the other check whose URL the object keeps; null when it keeps none.
 */
export async function publishUrl(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  url: string,
  beforeSharing: BeforeSharing,
  findHolder: FindHolder = async () => null,
): Promise<PublishResult> {
  try {
    return await write(client, check, target, url, { beforeSharing, findHolder })
  } catch (error) {
    if (!isRejected(error)) throw error
    return {
      kind: 'rejected',
      reason: 'PublishRefused',
      message: explainRejection(error, check, target, url, 'written'),
    }
  }
}

function explainRejection(
  error: ApiError,
  check: HeartbeatCheck,
  { kind, name }: PublishedTarget,
  url: string | null,
  done: 'written' | 'released' | 'read',
): string {
  // An admission rule may quote the rejected object, and this message goes into a status that many may read.
  const secrets = url === null ? [] : [url, toBase64(url)]
  const why = secrets.reduce((text, secret) => text.replaceAll(secret, '***'), error.message)
  const grant = describeGrant(error, check.metadata.namespace!)
  if (grant === null) return `${kind} ${name} cannot be ${done}: ${why}`
  // The command first: a long message is cut at its end.
  return `${kind} ${name} cannot be ${done} without the right to; ${grant} (${why})`
}

async function write(
  client: KubernetesClient,
  check: HeartbeatCheck,
  target: PublishTarget,
  url: string,
  { beforeSharing, findHolder }: { beforeSharing: BeforeSharing; findHolder: FindHolder },
): Promise<PublishResult> {
  const whole = manifestOf(check, target, url)
  const published = (isChanged: boolean, isFromPredecessor = false) =>
    ({ kind: 'published', isChanged, isFromPredecessor }) as const
  if (await createNew(client, check, target, whole)) return published(true)
  const found = await findObject(client, target.kind, locationOf(check, target))
  if (found === null) {
    // Fails when another client was faster: an apply would overwrite what another installation has made.
    await create(client, target, whole)
    return published(true)
  }
  const relation = relationOf(found, check, url)
  if (relation === 'foreign')
    return { kind: 'rejected', reason: 'TargetNotOwned', message: explainForeign(found, check, target) }
  // A retained check keeps its URL where its job finds it; its own resource has taken it back before it publishes. Of
  // two resources that publish into one object of others each apply would remove the URL of the other.
  const isOfAnother = relation === 'adoptable' || (relation === 'orphaned' && !holdsUrl(found, url))
  const own = publicIdsIn([url])
  const others = relation === 'adoptable' ? publicIdsIn(urlsIn(found)).filter((id) => !own.includes(id)) : []
  const holder = isOfAnother ? await findHolder(others) : null
  if (holder !== null) return { kind: 'rejected', reason: 'TargetNotOwned', message: explainHeld(target, holder) }
  const isCreation = ['ours', 'predecessor'].includes(relation) || isOurCreation(found, url)
  const wanted = isCreation ? whole : guestManifestOf(check, target, url)
  const isComplete = relation === 'ours' || (relation === 'orphaned' && !isCreation)
  if (isComplete && isAsWanted(found, wanted)) return published(false)
  const isKnown = relation === 'ours' || isMarked(found, check)
  await beforeSharing(isKnown && !holdsUrl(found, url))
  await applyTo(client, target.kind, found, wanted)
  return published(true, relation === 'predecessor')
}

/** In the first reconcile of a resource, without a read before: usually there is no such object. Resolves with null if there is. */
async function createNew(
  client: KubernetesClient,
  { status }: HeartbeatCheck,
  target: PublishTarget,
  wanted: Manifest,
): Promise<boolean> {
  if (status !== undefined) return false
  try {
    // Costs the API server a third less than an apply.
    await create(client, target, wanted)
    return true
  } catch (error) {
    if (hasStatus(error, 409)) return false
    throw error
  }
}

function create(client: KubernetesClient, { kind }: PublishTarget, wanted: Manifest): Promise<PublishedObject> {
  return client.create<PublishedObject>(TYPES[kind], wanted, { fieldManager: FIELD_MANAGER })
}

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

/** Withdraws the URL from where it was before its target changed. Resolves with why the API server rejects that; null: it is done. */
export async function releaseFormer(
  client: KubernetesClient,
  check: HeartbeatCheck,
  former: PublishedTarget,
  url: string,
): Promise<string | null> {
  try {
    await withdrawUrl(client, check, former)
    return null
  } catch (error) {
    const cause = error instanceof DataInDanger ? error.cause : error
    if (!isRejected(cause)) throw cause
    return explainRejection(cause, check, former, url, 'released')
  }
}

/** Applies to the object as it was read: another installation may have written it since. */
async function applyTo(
  client: KubernetesClient,
  kind: PublishTarget['kind'],
  { metadata: { namespace, name, uid, resourceVersion, managedFields = [] } }: PublishedObject,
  wanted: NewObject,
): Promise<PublishedObject> {
  let version = resourceVersion
  // We own a created object by Update, and an apply removes only fields that are owned by Apply: first the entry becomes Apply.
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

/**
 * The public id in the URL that we published there; null when there is none. Throws Stalled without the right to read it: the right may be
 * missing for a moment, and a URL that is given up is lost for good.
 */
export async function findPublishedId(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<string | null> {
  try {
    const [id = null] = publicIdsIn(await readUrls(client, check, target))
    return id
  } catch (error) {
    if (!hasStatus(error, 403)) throw error
    throw new Stalled('PublishRefused', explainRejection(error, check, target, null, 'read'))
  }
}

/** The ping URLs that an installation published there for this resource; none without the right to read it. */
export async function findPublishedUrls(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<string[]> {
  try {
    return await readUrls(client, check, target)
  } catch (error) {
    if (hasStatus(error, 403)) return []
    throw error
  }
}

async function readUrls(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<string[]> {
  const found = await findOurs(client, check, target)
  return found === null ? [] : urlsIn(found)
}

/** What is removed from it, or left in it, are the fields that our field manager owns. */
async function findOurs(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<PublishedObject | null> {
  const found = await findObject(client, target.kind, locationOf(check, target))
  if (found === null) return null
  const relation = relationOf(found, check, null)
  return relation === 'ours' || relation === 'orphaned' ? found : null
}

const findObject = (client: Pick<KubernetesClient, 'get'>, kind: PublishTarget['kind'], location: ObjectName) =>
  getOrNull<PublishedObject>(client, TYPES[kind], location)
