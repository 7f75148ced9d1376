/**
 * Reconciles one HeartbeatCheck (design, section 7): whose it is, whether it is deleted, its check and its published URL (sync.ts), and
 * its status if that has changed. Each reconcile does all of it, whatever has called for it, and writes only what differs.
 */

import { isNamespaceGoing } from '../../kubernetes/errors.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import { createFinalizer } from '../deletion/finalize.ts'
import { type HeartbeatCheck, publishesNothing } from '../heartbeat-check.ts'
import { createOwnerWait } from '../ownership/await-owner.ts'
import type { ForeignResources } from '../ownership/foreign-resources.ts'
import { type Claims, ownershipOf } from '../ownership/ownership.ts'
import { createReporter } from '../status/report.ts'
import type { StatusTurns } from '../status/status-turns.ts'
import { createSyncer, type Reconciled, type SyncCall, type SyncOptions } from './sync.ts'

export interface ReconcilerOptions extends SyncOptions {
  readonly cache: SyncOptions['cache'] & { get(key: string): HeartbeatCheck | undefined }
  readonly claims: Claims
  readonly foreign: ForeignResources
  /** Called with the uid of a resource that another installation had. */
  readonly onTakenOver: (uid: string) => void
  readonly recorder: Pick<Recorder, 'record'>
  readonly turns: Pick<StatusTurns, 'take'>
  readonly onFinalizerForced: () => void
  /** For how many ms it is not known what the source of the resource says. */
  readonly sourceWaitMs: (object: HeartbeatCheck) => number
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult>

export function createReconcile(options: ReconcilerOptions): Reconcile {
  const { cache, claims, foreign, turns } = options
  const reporter = createReporter(options)
  const { recordEvent, report, reportRetrying } = reporter
  const finalize = createFinalizer(options)
  const ownerWait = createOwnerWait(options)
  /** By key: notes of takeovers whose status or URL is not written yet. */
  const takeovers = new Map<string, string>()
  const syncer = createSyncer(options, recordEvent)

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
    const waitMs = options.sourceWaitMs(object)
    if (waitMs > 0) return { kind: 'again', afterMs: waitMs, priority: 'background' }
    const from = owner?.kind === 'takeover' ? owner.from : null
    const takeOver = from === null ? null : takeOverFrom(key, from)
    try {
      const reconciled = await syncer.sync(key, object, { signal, takeOver })
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
    syncer.forget(key)
    ownerWait.forget(key)
    takeovers.delete(key)
  }

  function takeOverFrom(key: string, from: string): NonNullable<SyncCall['takeOver']> {
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

  return reconcile
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
