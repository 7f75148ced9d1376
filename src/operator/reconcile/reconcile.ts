/**
 * Reconciles one HeartbeatCheck (design, section 7): its check in the service, its published URL, and its status if that has
 * changed. A full sync follows a change of the resource, and is repeated at each resync to correct changes made elsewhere. In
 * between, a flip costs only a read of the database and a status.
 */

import { isNamespaceGoing } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import { isSourceAwaited } from '../declare/follow-source.ts'
import { createFinalizer } from '../deletion/finalize.ts'
import type { HeartbeatCheck } from '../heartbeat-check.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { createTakeover, type TakeoverOptions } from '../ownership/takeover.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import type { PingTimes } from '../status/ping-times.ts'
import { createReporter } from '../status/report.ts'
import { againAt, createFullSync, type FullSyncOptions, type Reconciled } from './full-sync.ts'
import { createSyncs, type LastSync } from './syncs.ts'

export interface ReconcilerOptions extends FullSyncOptions, Pick<TakeoverOptions, 'log'> {
  readonly cache: FullSyncOptions['cache'] & { get(key: string): HeartbeatCheck | undefined }
  readonly claims: TakeoverOptions['claims']
  readonly recorder: Pick<Recorder, 'record'>
  readonly pingTimes: Pick<PingTimes, 'take' | 'end'>
  readonly onFinalizerForced: () => void
  /** Called with the key of a resource whose source is not known yet: it is to be reconciled when that is known. */
  readonly onSourceAwaited?: (key: string) => void
}

export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
  /** The next reconcile of this resource is a full sync. */
  callForSync(key: string): void
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { cache, context, cluster, claims, pingTimes, now } = options
  const { recordEvent, report, reportRetrying } = createReporter(options)
  const finalize = createFinalizer(options)
  const syncs = createSyncs(now)
  const takeover = createTakeover(options)
  const sync = createFullSync(options, { recordEvent, syncs, claim: takeover.claim })

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const hasTurn = pingTimes.take(key)
    try {
      return await reconcileOnce(key, hasTurn, signal)
    } finally {
      pingTimes.end(key)
    }
  }

  async function reconcileOnce(key: string, hasTurn: boolean, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    const ofOthers = await takeover.begin(key, object)
    if (ofOthers !== null || object === undefined || object.metadata.deletionTimestamp !== undefined) syncs.forget(key)
    if (ofOthers !== null) return ofOthers
    if (object === undefined) return { kind: 'done' }
    if (object.metadata.deletionTimestamp !== undefined) {
      await finalize(object)
      return { kind: 'done' }
    }
    if (sourceKeyOf(object) !== null && isSourceAwaited(options.sources, object.metadata.namespace!)) {
      options.onSourceAwaited?.(key)
      return { kind: 'done' }
    }
    // A check and a URL of ours may be from before the other installation had the resource.
    if (ownershipOf(object, claims).kind === 'takeover') syncs.forget(key)
    const last = syncs.find(key, object)
    try {
      const reconciled =
        (last === null ? null : await readState(key, object, last)) ?? (await sync(key, object, signal))
      signal.throwIfAborted()
      await report(reconciled.object, reconciled.findings, reconciled.check, hasTurn)
      return reconciled.result
    } catch (error) {
      if (isNamespaceGoing(error)) return { kind: 'done' }
      const current = cache.get(key)
      if (current !== undefined && ownershipOf(current, claims).kind === 'foreign')
        return { kind: 'again', afterMs: 0, priority: 'live' }
      // The API server itself may be the problem: then the status cannot be written either.
      if (current !== undefined && current.metadata.deletionTimestamp === undefined)
        await reportRetrying(current, error).catch(() => {})
      throw error
    }
  }

  /** For a synced resource: only the state of its job may have changed. Null: its check is gone, or is to be paused again. */
  async function readState(key: string, object: HeartbeatCheck, last: LastSync): Promise<Reconciled | null> {
    const check = await findDeclaredCheck(context.database, { cluster, ...splitKey(key) })
    if (check === null || (check.kubernetesSuspend === true && check.state.status === 'up')) return null
    return { object, findings: last.findings, check, change: null, result: againAt(last.nextAt, now()) }
  }

  return { reconcile, callForSync: syncs.callFor }
}
