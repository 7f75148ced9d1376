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
import { createFinalizer } from '../deletion/finalize.ts'
import { type HeartbeatCheck, publishesNothing } from '../heartbeat-check.ts'
import { createOwnerWait } from '../ownership/await-owner.ts'
import type { ForeignResources } from '../ownership/foreign-resources.ts'
import { type Claims, ownershipOf } from '../ownership/ownership.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { isSourceAwaited } from '../sources/read-source.ts'
import { createReporter } from '../status/report.ts'
import type { StatusTurns } from '../status/status-turns.ts'
import { againAt, createFullSync, type FullSyncCall, type FullSyncOptions, type Reconciled } from './full-sync.ts'
import { createSyncs, type LastSync } from './syncs.ts'

export interface ReconcilerOptions extends FullSyncOptions {
  readonly cache: FullSyncOptions['cache'] & { get(key: string): HeartbeatCheck | undefined }
  readonly claims: Claims
  readonly foreign: ForeignResources
  /** Called with the uid of a resource that another installation had. */
  readonly onTakenOver: (uid: string) => void
  readonly recorder: Pick<Recorder, 'record'>
  readonly turns: Pick<StatusTurns, 'take'>
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
  const { cache, context, cluster, claims, foreign, turns, now } = options
  const reporter = createReporter(options)
  const { recordEvent, report, reportRetrying } = reporter
  const finalize = createFinalizer(options)
  const syncs = createSyncs(now)
  const ownerWait = createOwnerWait(options)
  /** By key: notes of takeovers whose status or URL is not written yet. */
  const takeovers = new Map<string, string>()
  const sync = createFullSync(options, { recordEvent, syncs })

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const hasTurn = turns.take(key)
    const object = cache.get(key)
    const owner = object === undefined ? null : ownershipOf(object, claims)
    if (owner?.kind === 'foreign') {
      forget(key)
      return foreign.leave(key, object!, owner.installation)
    }
    foreign.forget(key, object === undefined)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
      forget(key)
      if (object !== undefined) await finalize(object)
      return { kind: 'done' }
    }
    const leftMs = await ownerWait.leftMs(key, object)
    if (leftMs > 0) return { kind: 'again', afterMs: leftMs, priority: 'background' }
    if (sourceKeyOf(object) !== null && isSourceAwaited(options.sources, object.metadata.namespace!)) {
      options.onSourceAwaited?.(key)
      return { kind: 'done' }
    }
    const from = owner?.kind === 'takeover' ? owner.from : null
    // A check and a URL of ours may be from before the other installation had the resource.
    if (from !== null) syncs.forget(key)
    const takeOver = from === null ? null : takeOverFrom(key, from)
    const last = syncs.find(key, object)
    try {
      const reconciled =
        (last === null ? null : await readState(key, object, last)) ?? (await sync(key, object, { signal, takeOver }))
      signal.throwIfAborted()
      // Without a check it is ours by the status that reports why.
      const isOursByReport = from !== null && reconciled.change === null
      if (!isOursByReport) recordTakeover(key, reconciled.object)
      await report(reconciled.object, reconciled.findings, reconciled.check, hasTurn)
      if (isOursByReport) {
        noteTakeover(key, reconciled.object, null, from)
        options.onTakenOver(reconciled.object.metadata.uid)
        recordTakeover(key, reconciled.object)
      }
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

  function forget(key: string): void {
    syncs.forget(key)
    ownerWait.forget(key)
    takeovers.delete(key)
  }

  function takeOverFrom(key: string, from: string): NonNullable<FullSyncCall['takeOver']> {
    return async (object, { check, change }) => {
      // The note comes before the status: when the status fails, a retry finds a check that is not new.
      noteTakeover(key, object, change, from)
      const ours = await reporter.takeOver(object, check, from)
      options.onTakenOver(object.metadata.uid)
      return ours
    }
  }

  function noteTakeover(key: string, object: HeartbeatCheck, change: Reconciled['change'], from: string): void {
    const what = describeNewCheck(change, publishesNothing(object.spec))
    // An attempt before this one may have created the check.
    if (what === '' && takeovers.has(key)) return
    takeovers.set(key, `taken over from the installation ${from}: this one reconciles it from now on${what}`)
  }

  /** When its URL is published: who sees the Event may use it. */
  function recordTakeover(key: string, object: HeartbeatCheck): void {
    const note = takeovers.get(key)
    if (note === undefined) return
    takeovers.delete(key)
    recordEvent(object, 'Normal', { reason: 'TakenOver', note })
  }

  /** For a synced resource: only the state of its job may have changed. Null: its check is gone, or is to be paused again. */
  async function readState(key: string, object: HeartbeatCheck, last: LastSync): Promise<Reconciled | null> {
    const check = await findDeclaredCheck(context.database, { cluster, ...splitKey(key) })
    if (check === null || (check.kubernetesSuspend === true && check.state.status === 'up')) return null
    return { object, findings: last.findings, check, change: null, result: againAt(last.nextAt, now()) }
  }

  return { reconcile, callForSync: syncs.callFor }
}

/** A database that knows the check, such as a restored one, has its history. */
function describeNewCheck(change: Reconciled['change'], isUnpublished: boolean): string {
  const withUrl = isUnpublished ? '' : ' with a new ping URL'
  switch (change) {
    case 'restored':
      return '; the check is a new one with the same public id, and its history stays with the previous installation'
    case 'created':
    case 'replaced':
      return `; the check is a new one${withUrl}, and its history stays with the previous installation`
    default:
      return ''
  }
}
