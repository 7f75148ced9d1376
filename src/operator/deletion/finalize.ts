/**
 * The finalizer retires the check before its resource is deleted, so that no alert follows a `kubectl delete`. It gives up after a time,
 * because a finalizer that waits for ever blocks the deletion of a namespace (design, section 6, "Deleting"). ensure-finalizer.ts decides when it is
 * added.
 */

import { retireCheck } from '../../checks/declare/retire-check.ts'
import { ApiError, isNamespaceGoing, type KubernetesClient } from '../../kubernetes/client.ts'
import type { KubernetesObject } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { Context } from '../../store/context.ts'
import {
  FIELD_MANAGER,
  FINALIZER,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type PublishedTarget,
} from '../heartbeat-check.ts'
import { NAMESPACES } from '../namespaces/namespaces.ts'
import { grantCommand } from '../publish/missing-right.ts'
import { disownUrl, holdsOnlyUrl, isRejection, withdrawUrl } from '../publish/publish.ts'
import { regarding } from '../status/report.ts'

export interface FinalizerOptions {
  readonly client: KubernetesClient
  readonly context: Context
  readonly cluster: string
  readonly recorder: Pick<Recorder, 'record'>
  readonly now: () => number
  readonly onFinalizerForced: () => void
}

/** After this time a deletion continues without us; the sweep of orphans retires the check later. */
export const MAX_CLEANUP_MS = 600_000

export function hasFinalizer({ metadata }: HeartbeatCheck): boolean {
  return metadata.finalizers?.includes(FINALIZER) ?? false
}

/** Returns the resource as the API server has it then. Throws Conflict when it was changed meanwhile. */
export async function addFinalizer(client: KubernetesClient, object: HeartbeatCheck): Promise<HeartbeatCheck> {
  if (hasFinalizer(object)) return object
  return writeFinalizers(client, object, [...(object.metadata.finalizers ?? []), FINALIZER])
}

/** Keeps the finalizers of others. Returns the resource as the API server has it then. Throws Conflict when it was changed meanwhile. */
export async function removeFinalizer(
  client: KubernetesClient,
  object: HeartbeatCheck,
  type = HEARTBEAT_CHECKS,
): Promise<HeartbeatCheck> {
  if (!hasFinalizer(object)) return object
  const { finalizers = [] } = object.metadata
  const left = finalizers.filter((finalizer) => finalizer !== FINALIZER)
  return writeFinalizers(client, object, left, type)
}

/** Returns a function that retires the check and removes the finalizer. It throws while the check cannot be retired and time is left. */
export function createFinalizer(options: FinalizerOptions): (object: HeartbeatCheck) => Promise<void> {
  const { client, recorder, now, onFinalizerForced } = options
  // By our own clock: that of the API server, which dates the deletion, may differ by minutes.
  const failingSince = new Map<string, number>()
  /** Whose rejected withdrawal has its Event. */
  const warned = new Set<string>()

  return async function finalize(object) {
    if (!hasFinalizer(object)) return
    const { uid } = object.metadata
    try {
      await cleanUp(options, object)
    } catch (error) {
      const rejected = error instanceof WithdrawalRejected ? error : null
      const since = failingSince.get(uid) ?? now()
      failingSince.set(uid, since)
      if (now() - since < MAX_CLEANUP_MS) {
        if (rejected !== null && !warned.has(uid)) {
          warned.add(uid)
          recorder.record(regarding(object), { ...WAITING, note: rejected.message })
        }
        throw error
      }
      onFinalizerForced()
      recorder.record(regarding(object), rejected === null ? FORCED : { ...FORCED, note: rejected.noteAtEnd })
    }
    try {
      await removeFinalizer(client, object)
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error
    }
    failingSince.delete(uid)
    warned.delete(uid)
  }
}

const FORCED = {
  type: 'Warning',
  reason: 'CleanupTimeout',
  action: 'Delete',
  note: 'the check could not be removed for 10 minutes; the resource is deleted now, and the check is removed later',
} as const

const WAITING = { type: 'Warning', reason: 'CleanupRejected', action: 'Delete' } as const

/**
 * The API server does not let us take our part out of a published object that may hold data of others. It has our owner reference, so
 * the garbage collector would delete it with its resource.
 */
class WithdrawalRejected extends Error {
  override readonly name = 'WithdrawalRejected'
  readonly noteAtEnd: string

  /** The answer of the API server is not quoted: an admission rule may quote the object, and so the URL. */
  constructor(cause: ApiError, { metadata }: HeartbeatCheck, { kind, name }: PublishedTarget) {
    const command = grantCommand(cause, metadata.namespace!)
    const why =
      command === null ? `: the API server rejects it (${cause.status} ${cause.reason})` : ' without the right to'
    const wayOut = command === null ? 'allow it' : `an administrator of the namespace grants it with: ${command}`
    super(
      `${kind} ${name} cannot be released${why}; ${wayOut}. In 10 minutes this resource is deleted all the same, and then the garbage collector ` +
        `deletes the ${kind} with all its data, unless you remove its owner reference before`,
    )
    this.noteAtEnd = `${kind} ${name} could not be released for 10 minutes; this resource is deleted now, and the garbage collector deletes the ${kind} with all its data`
  }
}

/** A retained check keeps its published URL; otherwise the URL is removed together with the check. */
async function cleanUp({ client, context, cluster }: FinalizerOptions, object: HeartbeatCheck): Promise<void> {
  const { metadata, spec, status } = object
  const policy = spec.deletionPolicy ?? 'Delete'
  const resource = { cluster, namespace: metadata.namespace!, name: metadata.name }
  await retireCheck(context, resource, policy, status?.published ?? null)
  if (status?.published === undefined) return
  const { published } = status
  try {
    if (policy === 'Retain') await disownUrl(client, object, published)
    else await withdrawUrl(client, object, published)
  } catch (error) {
    if ((error instanceof ApiError && error.status === 404) || isNamespaceGoing(error)) return
    if (!isRejection(error)) throw error
    // Then the garbage collector does what we would have done, or what happens anyway.
    if (policy === 'Delete' && (await holdsOnlyUrl(client, object, published))) return
    if (await isNamespaceEnding(client, metadata.namespace!)) return
    throw new WithdrawalRejected(error, object, published)
  }
}

/** The binding that grants the right goes with the namespace, perhaps before the resource. False without the right to read it. */
async function isNamespaceEnding(client: KubernetesClient, name: string): Promise<boolean> {
  try {
    const { metadata } = await client.get<KubernetesObject>(NAMESPACES, { name })
    return metadata.deletionTimestamp !== undefined
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return true
    if (error instanceof ApiError && error.status === 403) return false
    throw error
  }
}

/** The resource version is a precondition, because the list also holds the finalizers of others. */
function writeFinalizers(
  client: KubernetesClient,
  { metadata }: HeartbeatCheck,
  finalizers: readonly string[],
  type = HEARTBEAT_CHECKS,
) {
  const { namespace, name, resourceVersion } = metadata
  const patch = { metadata: { finalizers, resourceVersion } }
  return client.mergePatch<HeartbeatCheck>(type, { namespace: namespace!, name }, patch, {
    fieldManager: FIELD_MANAGER,
  })
}
