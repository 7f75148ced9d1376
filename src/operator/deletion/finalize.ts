/**
 * The finalizer retires the check before its resource is deleted, so that no alert follows a `kubectl delete`. It gives
 * up after a time, because a finalizer that waits for ever blocks the deletion of a namespace (design, section 6,
 * "Deleting"). It waits for ever only where the garbage collector would delete data of others in the published object;
 * that ends with the namespace too, which takes the object along.
 */

import { getOrNull, type KubernetesClient } from '../../kubernetes/client.ts'
import { hasStatus, isRejected } from '../../kubernetes/errors.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, KIND, type PublishedTarget, targetOf } from '../heartbeat-check.ts'
import { NAMESPACES } from '../namespaces/namespaces.ts'
import { findPublishedUrls } from '../publish/publish.ts'
import { DataInDanger, disownUrl, withdrawUrl } from '../publish/withdraw.ts'
import { createFinalization } from '../resource/finalizer.ts'
import { regarding } from '../resource/resource.ts'
import type { Service } from '../service.ts'
import { noneIfStalled } from '../status/stalled.ts'

export interface FinalizerOptions {
  readonly client: KubernetesClient
  readonly service: Pick<Service, 'retireCheck'>
  readonly cluster: string
  readonly recorder: Pick<Recorder, 'record'>
  readonly now: () => number
  readonly onFinalizerForced: () => void
}

/** Returns a function that retires the check and removes the finalizer. It throws while that fails and time is left. */
export function createFinalizer(options: FinalizerOptions): (object: HeartbeatCheck) => Promise<void> {
  const { client, recorder, now, onFinalizerForced } = options
  return createFinalization<HeartbeatCheck>({
    client,
    type: HEARTBEAT_CHECKS,
    now,
    cleanUp: (object, isLate) => cleanUp(options, object, isLate),
    mustWait(object, error) {
      if (!(error instanceof DataInDanger)) return false
      recorder.record(regarding(object, KIND), { ...IN_DANGER, note: error.message })
      return error.isCertain
    },
    onForced(object) {
      onFinalizerForced()
      recorder.record(regarding(object, KIND), FORCED)
    },
  })
}

const FORCED = {
  type: 'Warning',
  reason: 'CleanupTimeout',
  action: 'Delete',
  note: 'the check could not be removed for 10 minutes; the resource is deleted now, and the check is removed later',
} as const

/** With an id: each attempt records it, and it is written once. */
const IN_DANGER = { type: 'Warning', reason: 'CleanupRejected', action: 'Delete', id: 'CleanupRejected' } as const

/** A retained check keeps its published URL; otherwise the URL is removed together with the check. */
async function cleanUp(options: FinalizerOptions, object: HeartbeatCheck, isLate: boolean): Promise<void> {
  const { client, service, cluster } = options
  const { deletionPolicy = 'Delete' } = object.spec
  const resource = { cluster, namespace: object.metadata.namespace!, name: object.metadata.name }
  try {
    const kept = deletionPolicy === 'Retain' ? await findKept(client, object) : null
    await service.retireCheck(resource, deletionPolicy, kept)
  } catch (error) {
    // A check that is left is removed later. Data of others that the garbage collector has deleted do not come back.
    if (isLate) await releaseTargets(client, object)
    throw error
  }
  await releaseTargets(client, object)
}

/**
 * Where the URL may be: a publication that was interrupted is not in the status yet, and one whose target has changed
 * since is not in the specification.
 */
function targetsOf(object: HeartbeatCheck): PublishedTarget[] {
  const wanted = targetOf(object)
  const { published } = object.status ?? {}
  return [wanted, isSameTarget(wanted, published) ? undefined : published].filter((target) => target != null)
}

const isSameTarget = (a: PublishedTarget | null | undefined, b: PublishedTarget | undefined) =>
  a?.kind === b?.kind && a?.name === b?.name

/** Where the URL of a retained check stays; null: nowhere. */
async function findKept(client: KubernetesClient, object: HeartbeatCheck): Promise<PublishedTarget | null> {
  const { published = null } = object.status ?? {}
  for (const target of targetsOf(object)) {
    const urls = await findPublishedUrls(client, object, target).catch(noneIfStalled)
    if (urls.length > 0) return target
  }
  return published
}

/** All of them, and then it throws what matters most. */
async function releaseTargets(client: KubernetesClient, object: HeartbeatCheck): Promise<void> {
  const results = await Promise.allSettled(targetsOf(object).map((target) => releaseTarget(client, object, target)))
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
  const dangers = errors.filter((error) => error instanceof DataInDanger)
  if (errors.length > 0) throw dangers.find(({ isCertain }) => isCertain) ?? dangers[0] ?? errors[0]
}

async function releaseTarget(client: KubernetesClient, object: HeartbeatCheck, target: PublishedTarget): Promise<void> {
  const isRetained = object.spec.deletionPolicy === 'Retain'
  try {
    await (isRetained ? disownUrl : withdrawUrl)(client, object, target)
  } catch (error) {
    // What we may not take out of an object of others is a URL without a check. The garbage collector takes what is
    // only ours.
    if (hasStatus(error, 404) || (!isRetained && isRejected(error))) return
    const isUnread = error instanceof DataInDanger && !error.isCertain
    // Where the right was never granted, nothing was published.
    const isKnown = isSameTarget(object.status?.published, target)
    if (isUnread && (!isKnown || (await isNamespaceEnding(client, object.metadata.namespace!)))) return
    throw error
  }
}

/**
 * The binding that grants a right goes with the namespace, perhaps before the resource. False without the right to
 * know.
 */
async function isNamespaceEnding(client: KubernetesClient, name: string): Promise<boolean> {
  try {
    const found = await getOrNull<KubernetesObject>(client, NAMESPACES, { name })
    return found === null || found.metadata.deletionTimestamp !== undefined
  } catch (error) {
    if (hasStatus(error, 403)) return false
    throw error
  }
}
