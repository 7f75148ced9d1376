/**
 * Publishes the ping URL of a check in a Secret or ConfigMap beside its job, and withdraws the URL from where it was
 * before (design, section 6, "Publishing"). The object is created with an owner reference, and changed by server-side
 * apply. Into an object that others handed over go one key and one label; other objects are never touched. The
 * controller may create, `get` and `patch` by name, and neither list nor watch: the resync finds changes by others, or
 * a request (reconcile-request.ts).
 */

import type { CheckRecord } from '../../checks/find-checks.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import { type ApiError, hasStatus, isRejected } from '../../kubernetes/errors.ts'
import {
  FIELD_MANAGER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type PublishedTarget,
  type PublishTarget,
} from '../heartbeat-check.ts'
import type { Claims } from '../ownership/ownership.ts'
import type { Service } from '../service.ts'
import type { Reporter } from '../status/report.ts'
import { Stalled } from '../status/stalled.ts'
import { describeGrant } from './missing-right.ts'
import {
  explainForeign,
  explainHeld,
  guestManifestOf,
  holdsUrl,
  isAsWanted,
  isMarked,
  isOurCreation,
  manifestOf,
  publicIdsIn,
  relationOf,
  TYPES,
  urlsIn,
} from './published-object.ts'
import { applyTo, DataInDanger, findObject, findOurs, withdrawUrl } from './withdraw.ts'

export interface PublisherOptions {
  readonly client: KubernetesClient
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly claims: Pick<Claims, 'installation'>
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  readonly service: Pick<Service, 'findUrlHolder'>
  readonly cluster: string
  readonly onPublish: (result: 'written' | 'unchanged' | 'refused') => void
}

/** What is published, and for whom. */
export interface Publication {
  readonly object: HeartbeatCheck
  /** Null: nowhere. */
  readonly target: PublishTarget | null
  readonly check: Pick<CheckRecord, 'publicId'>
  /** One Event reports a new check and its URL: with a thousand resources applied at once each Event counts. */
  readonly isNew: boolean
}

export interface Published {
  /** From a predecessor of the resource. */
  readonly isFromPredecessor: boolean
}

/** Throws Stalled for what a person has to correct. A retry resolves other errors. */
export type Publisher = (publication: Publication) => Promise<Published>

const CREATED = { reason: 'Created', note: 'the service watches over the job' }

export function createPublisher(options: PublisherOptions, recordEvent: Reporter['recordEvent']): Publisher {
  const { client, service, cluster, pingUrl, onPublish } = options

  async function write(check: HeartbeatCheck, target: PublishTarget, url: string) {
    const written = { isChanged: true, isFromPredecessor: false }
    const whole = manifestOf(check, target, url)
    const create = () => client.create(TYPES[target.kind], whole, { fieldManager: FIELD_MANAGER })
    // Usually there is no such object in the first reconcile, and a create without a read costs the API server least.
    if (check.status === undefined && (await isDone(create()))) return written
    const found = await findObject(client, check, target)
    if (found === null) {
      // Fails when another client was faster: an apply would overwrite what another installation has made.
      await create()
      return written
    }
    const relation = relationOf(found, check, url)
    if (relation === 'foreign') throw new Stalled('TargetNotOwned', explainForeign(found, check, target))
    // A retained check keeps its URL where its job finds it; its own resource has taken it back before it publishes. Of
    // two resources that publish into one object of others each apply would remove the URL of the other.
    if (relation === 'adoptable' || (relation === 'orphaned' && !holdsUrl(found, url))) {
      const own = publicIdsIn([url])
      const others = relation === 'adoptable' ? publicIdsIn(urlsIn(found)).filter((id) => !own.includes(id)) : []
      const { namespace } = check.metadata as { namespace: string }
      const holder = await service.findUrlHolder({ cluster, namespace }, target, others)
      if (holder !== null) throw new Stalled('TargetNotOwned', explainHeld(target, holder))
    }
    const isCreation = ['ours', 'predecessor'].includes(relation) || isOurCreation(found, url)
    const wanted = isCreation ? whole : guestManifestOf(check, target, url)
    const isComplete = relation === 'ours' || (relation === 'orphaned' && !isCreation)
    if (isComplete && isAsWanted(found, wanted)) return { ...written, isChanged: false }
    const isKnown = relation === 'ours' || isMarked(found, check)
    if (isKnown && !holdsUrl(found, url)) await ensureClaimable(options, check)
    await applyTo(client, target.kind, found, wanted)
    return { ...written, isFromPredecessor: relation === 'predecessor' }
  }

  /** From where the URL was before its target changed. */
  async function release(object: HeartbeatCheck, wanted: PublishTarget | null): Promise<void> {
    const former = object.status?.published
    if (former === undefined || (former.kind === wanted?.kind && former.name === wanted.name)) return
    try {
      await withdrawUrl(client, object, former)
    } catch (error) {
      const cause = error instanceof DataInDanger ? error.cause : error
      throw isRejected(cause) ? refused(cause, object, former, 'released') : cause
    }
  }

  /** The new object is written before the old one is withdrawn: a job always finds a URL. */
  return async function publish({ object, target, check, isNew }) {
    const url = `${pingUrl()}/ping/${check.publicId}`
    const reportNew = (what: string) =>
      isNew && recordEvent(object, 'Normal', { ...CREATED, note: `${CREATED.note}${what}` })
    if (target === null) {
      await release(object, null)
      reportNew(' from now on')
      return { isFromPredecessor: false }
    }
    const { isChanged, isFromPredecessor } = await write(object, target, url).catch((error) => {
      const stalled = isRejected(error) ? refused(error, object, target, 'written') : error
      if (stalled instanceof Stalled) {
        reportNew(', as soon as its ping URL is published')
        onPublish('refused')
      }
      throw stalled
    })
    onPublish(isChanged ? 'written' : 'unchanged')
    await release(object, target)
    const where = `the ping URL is in ${target.kind} ${target.name}, key ${target.key}`
    reportNew(` from now on; ${where}`)
    if (isChanged && !isNew) recordEvent(object, 'Normal', { reason: 'Published', note: where })
    return { isFromPredecessor }
  }
}

/** False: there is such an object already. */
async function isDone(creation: Promise<unknown>): Promise<boolean> {
  try {
    await creation
    return true
  } catch (error) {
    if (hasStatus(error, 409)) return false
    throw error
  }
}

/**
 * Called before another URL in an object of this resource is replaced, in the version that was read before. Another
 * installation may have written that URL: a resource that is taken over belongs to the new owner before the new owner
 * publishes, and a new one belongs to the installation whose first status arrives. Throws when another installation has
 * the resource by now, which the next reconcile finds in the cache, and while the resource has no status at all:
 * another one may be about to write it, and the retry claims the resource first.
 */
async function ensureClaimable(
  { client, cache, claims }: PublisherOptions,
  { metadata }: HeartbeatCheck,
): Promise<void> {
  const { namespace, name } = metadata as { namespace: string; name: string }
  const current = await client.get<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace, name })
  const owner = current.status?.installation
  if (owner !== undefined && owner !== claims.installation) {
    cache.put(current)
    throw new Error(`the installation ${owner} has the resource since a moment ago`)
  }
  if (current.status === undefined)
    throw new Error('its published object holds another ping URL, maybe of another installation')
}

/**
 * The ping URLs that an installation published there for this resource. Throws Stalled without the right to read: the
 * right may be missing for a moment, and a URL that is given up is lost for good.
 */
export async function findPublishedUrls(
  client: Pick<KubernetesClient, 'get'>,
  check: HeartbeatCheck,
  target: PublishedTarget,
): Promise<string[]> {
  try {
    const found = await findOurs(client, check, target)
    return found === null ? [] : urlsIn(found)
  } catch (error) {
    throw hasStatus(error, 403) ? refused(error, check, target, 'read') : error
  }
}

/** Why the API server rejects it, and who grants the right. */
function refused(
  error: ApiError,
  check: HeartbeatCheck,
  { kind, name }: PublishedTarget,
  done: 'written' | 'released' | 'read',
): Stalled {
  const grant = describeGrant(error, check.metadata.namespace!)
  // The command first: a long message is cut at its end.
  const message = grant === null ? `: ${error.message}` : ` without the right to; ${grant} (${error.message})`
  return new Stalled('PublishRefused', `${kind} ${name} cannot be ${done}${message}`)
}
