/**
 * Reconciles one HeartbeatCheck (design, section 7): its check in the service, its published URL, and its status if that has
 * changed. A full sync follows a change of the resource, and is repeated at each resync to correct changes made elsewhere. In
 * between, a flip costs only a read of the database and a status.
 */

import { findDeclared } from '../checks/declare/find-declared.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { splitKey } from '../kubernetes/objects.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { ReconcileResult } from '../kubernetes/workers.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { declare, readDeclaration } from './declare.ts'
import { createFinalizers } from './ensure-finalizer.ts'
import { createFinalizer } from './finalize.ts'
import {
  ADOPT_CHECK_ANNOTATION,
  type CheckDeclaration,
  type HeartbeatCheck,
  type PublishedTarget,
} from './heartbeat-check.ts'
import type { Namespaces } from './namespaces.ts'
import { isNamespaceGoing, publishUrl, withdrawUrl } from './publish.ts'
import { createReporter, type SyncFindings } from './report.ts'
import { Stalled } from './stalled.ts'
import { cutMessage } from './status.ts'

/** The part of the reflector that the reconciler uses. */
export interface CheckCache {
  get(key: string): HeartbeatCheck | undefined
  put(object: HeartbeatCheck): void
}

export interface ReconcilerOptions {
  readonly client: KubernetesClient
  readonly cache: CheckCache
  readonly context: Context
  readonly cluster: string
  readonly namespaces: Namespaces
  readonly recorder: Pick<Recorder, 'record'>
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  /** This process's clock; the database's is in `context`. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  /** Whether other resources wait to be reconciled. */
  readonly isBusy: () => boolean
  readonly onPublish: (result: 'written' | 'unchanged' | 'refused') => void
  readonly onFinalizerForced: () => void
}

export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
}

/** The garbage collector may still delete an object that we took over from a predecessor of the resource. */
const TAKEN_OVER_RETRY_MS = 10_000

/** The last full sync of a resource. */
interface LastSync {
  readonly uid: string
  readonly generation: number
  readonly adoptId: string | undefined
  readonly nextAt: number
  readonly findings: SyncFindings
}

interface Reconciled {
  /** The resource as it is in the cluster now. */
  readonly object: HeartbeatCheck
  readonly findings: SyncFindings
  readonly check: CheckRecord | null
  readonly result: ReconcileResult
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { client, cache, context, cluster, now, random, resyncMs } = options
  const { recordEvent, report, reportRetrying } = createReporter(options)
  const finalize = createFinalizer(options)
  const finalizers = createFinalizers(options)
  const synced = new Map<string, LastSync>()

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
      synced.delete(key)
      if (object !== undefined) await finalize(object)
      // follow-changes.ts handles the other resources that are gone: they were lost without their finalizer.
      else await finalizers.retireIfGone(key)
      return { kind: 'done' }
    }
    const last = synced.get(key)
    const isSynced = last !== undefined && isSame(last, object) && now() < last.nextAt
    try {
      const held = isSynced ? await finalizers.ensure(key, object) : object
      const reconciled = (isSynced ? await readState(key, held, last) : null) ?? (await sync(key, held, signal))
      signal.throwIfAborted()
      await report(reconciled.object, reconciled.findings, reconciled.check)
      return finalizers.isPostponed(key) ? { kind: 'again', afterMs: 0, priority: 'background' } : reconciled.result
    } catch (error) {
      if (isNamespaceGoing(error)) return { kind: 'done' }
      if (error instanceof ApiError && error.status === 404 && (await finalizers.retireIfGone(key)))
        return { kind: 'done' }
      const current = cache.get(key)
      // The API server itself may be the problem: then the status cannot be written either.
      if (current !== undefined && current.metadata.deletionTimestamp === undefined)
        await reportRetrying(current, error).catch(() => {})
      throw error
    }
  }

  /** For a synced resource: only the state of its job may have changed. Null: its check is gone. */
  async function readState(key: string, object: HeartbeatCheck, last: LastSync): Promise<Reconciled | null> {
    const check = await findDeclared(context, { cluster, ...splitKey(key) })
    return check === null ? null : { object, findings: last.findings, check, result: againAt(last.nextAt) }
  }

  /** A full sync: the check and the published URL. */
  async function sync(key: string, given: HeartbeatCheck, signal: AbortSignal): Promise<Reconciled> {
    let object = given
    let check: CheckRecord | null = null
    let published = given.status?.published ?? null
    synced.delete(key)
    try {
      const declaration = readDeclaration(given)
      object = await finalizers.ensureOrPostpone(key, given)
      signal.throwIfAborted()
      const declared = await declare(options, object, declaration)
      check = declared.check
      // One Event reports a new check and its URL: with a thousand resources applied at once each Event counts.
      const isNew = declared.change === 'created'
      if (!isNew && declared.change !== 'unchanged') recordEvent(object, 'Normal', CHANGES[declared.change])
      signal.throwIfAborted()
      const isTakenOver = await publish(key, object, declaration, check, isNew)
      published = { kind: declaration.publish.kind, name: declaration.publish.name }
      const nextAt = now() + (isTakenOver ? TAKEN_OVER_RETRY_MS : resyncMs * (1 - 0.2 * random()))
      const findings = { sync: { kind: 'synced' }, published } as const
      synced.set(key, { ...identityOf(object), nextAt, findings })
      return { object, findings, check, result: againAt(nextAt) }
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      const { reason, message } = error
      // Compared as the status holds it, cut: a long message would be news each time.
      if (stalledOf(object)?.message !== cutMessage(message)) recordEvent(object, 'Warning', { reason, note: message })
      check ??= await findDeclared(context, { cluster, ...splitKey(key) })
      const findings = { sync: { kind: 'stalled', reason, message }, published } as const
      return { object, findings, check, result: { kind: 'stalled', retryMs: stalledRetryMs(object) } }
    }
  }

  /** The new object is written before the old one is withdrawn: a job always finds a URL. Resolves with whether it was taken over. */
  async function publish(
    key: string,
    object: HeartbeatCheck,
    { publish: target }: CheckDeclaration,
    { publicId }: CheckRecord,
    isNew: boolean,
  ): Promise<boolean> {
    const url = `${options.pingUrl()}/ping/${publicId}`
    const result = await publishUrl(client, object, target, url, () => finalizers.ensure(key, object))
    if (result.kind === 'rejected') {
      if (isNew) recordEvent(object, 'Normal', CHANGES.created)
      options.onPublish('refused')
      throw new Stalled(result.reason, result.message)
    }
    options.onPublish(result.isChanged ? 'written' : 'unchanged')
    const before = object.status?.published
    if (before !== undefined && !isSameObject(before, target)) await withdrawUrl(client, object, before)
    const where = `the ping URL is in ${target.kind} ${target.name}, key ${target.key}`
    if (isNew) recordEvent(object, 'Normal', { ...CHANGES.created, note: `${CHANGES.created.note}; ${where}` })
    else if (result.isChanged) recordEvent(object, 'Normal', { reason: 'Published', note: where })
    return result.isTakenOver
  }

  /**
   * No watch reports that a Secret may be adopted now, or that a project was created, and the person who did it waits for the
   * effect. So a resource that stalled a moment ago is retried soon, and one that stalled long ago twice in a resync.
   */
  function stalledRetryMs(object: HeartbeatCheck): number {
    const since = stalledOf(object)?.lastTransitionTime
    const stalledMs = since === undefined ? 0 : context.clock.now() - Date.parse(since)
    return Math.min(resyncMs / 2, Math.max(resyncMs / 60, stalledMs / 2))
  }

  const againAt = (at: number): ReconcileResult => ({ kind: 'again', afterMs: Math.max(1_000, at - now()) })

  return { reconcile }
}

const CHANGES = {
  created: { reason: 'Created', note: 'the service watches over the job from now on' },
  revived: { reason: 'Revived', note: 'the check is back, with the ping URL and the history that it had' },
  adopted: { reason: 'Adopted', note: 'the check of the annotation belongs to this resource now' },
  updated: { reason: 'Updated', note: 'the service holds the new specification' },
} as const

function stalledOf({ status }: HeartbeatCheck) {
  return status?.conditions?.find(({ type }) => type === 'Stalled')
}

function isSameObject(a: PublishedTarget, b: PublishedTarget): boolean {
  return a.kind === b.kind && a.name === b.name
}

function identityOf({ metadata }: HeartbeatCheck): Pick<LastSync, 'uid' | 'generation' | 'adoptId'> {
  const { uid, generation = 0, annotations } = metadata
  return { uid, generation, adoptId: annotations?.[ADOPT_CHECK_ANNOTATION] }
}

function isSame(last: LastSync, object: HeartbeatCheck): boolean {
  const { uid, generation, adoptId } = identityOf(object)
  return last.uid === uid && last.generation === generation && last.adoptId === adoptId
}
