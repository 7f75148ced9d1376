/**
 * Reconciles one HeartbeatCheck (design, section 7): whose it is, whether it is deleted, its finalizer, its check, its
 * published URL, and its status. The check is armed when the URL is published. Each reconcile does all of it, whatever
 * has called for it, and writes only what differs. Only the published object is not read each time: no watch shows it,
 * as it may be a Secret.
 */

import type { StoredCheck } from '../../checks/find-checks.ts'
import { isNamespaceGoing } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { Recorder } from '../../kubernetes/recorder.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import { readNames } from '../declare/dependencies.ts'
import {
  describeDroppedLabels,
  readDeclaration,
  type SyncCheckOptions,
  type SyncedCheck,
  syncCheck,
} from '../declare/sync-check.ts'
import { createFinalizer } from '../deletion/finalize.ts'
import { HEARTBEAT_CHECKS, type HeartbeatCheck, type PublishTarget, publishesNothing } from '../heartbeat-check.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { createTakeover, type TakeoverOptions } from '../ownership/takeover.ts'
import { createPublisher, type PublisherOptions } from '../publish/publish.ts'
import { conditionOf, cutMessage } from '../resource/conditions.ts'
import { addFinalizer } from '../resource/finalizer.ts'
import { hasRequest } from '../resource/reconcile-request.ts'
import { stalledRetryMs } from '../resource/stalled.ts'
import { readPausedUntil } from '../schema/paused-until.ts'
import type { Service } from '../service.ts'
import { createReporter, type SyncFindings } from '../status/report.ts'
import { Stalled } from '../status/stalled.ts'
import type { StatusTurns } from '../status/status-turns.ts'

export interface ReconcilerOptions extends SyncCheckOptions, PublisherOptions, Pick<TakeoverOptions, 'log'> {
  readonly client: PublisherOptions['client']
  readonly service: Service
  readonly cache: PublisherOptions['cache'] & { get(key: string): HeartbeatCheck | undefined }
  readonly claims: TakeoverOptions['claims']
  readonly recorder: Pick<Recorder, 'record'>
  readonly turns: Pick<StatusTurns, 'take'>
  /** This process's clock; that of the database is the service's. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  /** For how many ms it is not known what the source of the resource says. */
  readonly sourceWaitMs: (object: HeartbeatCheck) => number
  /** There is a check for this resource, which follows its source from now on, or again. */
  readonly onFollowed: (key: string) => void
  readonly onFinalizerForced: () => void
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult>

interface Synced {
  /** The resource as it is in the cluster now. */
  readonly object: HeartbeatCheck
  readonly findings: SyncFindings
  readonly check: StoredCheck | null
  readonly result: ReconcileResult
}

/** A published object as it was wanted at its last read, and when it is read again. */
interface Read {
  readonly wanted: string
  readonly nextAt: number
}

/** The garbage collector may still delete an object that we have from a predecessor of the resource. */
const PREDECESSOR_RETRY_MS = 10_000
/** Another resource has yet to give up what it depended on. */
const RINGED_RETRY_MS = 10_000

export function createReconcile(options: ReconcilerOptions): Reconcile {
  const { client, cache, service, cluster, claims, turns, now, random, resyncMs } = options
  const { recordEvent, report, reportRetrying } = createReporter(options)
  const takeover = createTakeover(options)
  const publish = createPublisher(options, recordEvent)
  const finalize = createFinalizer(options)
  const reads = new Map<string, Read>()
  const isForeign = (object: HeartbeatCheck) => ownershipOf(object, claims).kind === 'foreign'

  const retryMsOf = (object: HeartbeatCheck) =>
    stalledRetryMs(stalledOf(object)?.lastTransitionTime, service.now(), resyncMs)

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const hasTurn = turns.take(key)
    const object = cache.get(key)
    const ofOthers = await takeover.begin(key, object)
    if (ofOthers !== null || object === undefined || object.metadata.deletionTimestamp !== undefined) reads.delete(key)
    if (ofOthers !== null) return ofOthers
    if (object === undefined) return { kind: 'done' }
    if (object.metadata.deletionTimestamp !== undefined) {
      await finalize(object)
      return { kind: 'done' }
    }
    const waitMs = options.sourceWaitMs(object)
    if (waitMs > 0) return { kind: 'again', afterMs: waitMs, priority: 'background' }
    try {
      const synced = await sync(key, object, signal)
      signal.throwIfAborted()
      await report(synced.object, synced.findings, synced.check, hasTurn)
      return synced.result
    } catch (error) {
      if (isNamespaceGoing(error)) return { kind: 'done' }
      const current = cache.get(key)
      if (current !== undefined && isForeign(current)) return { kind: 'again', afterMs: 0, priority: 'live' }
      // The API server itself may be the problem: then the status cannot be written either.
      if (current !== undefined && current.metadata.deletionTimestamp === undefined)
        await reportRetrying(current, error).catch(() => {})
      throw error
    }
  }

  /** Throws errors that a retry may resolve. What a person has to correct is in the findings. */
  async function sync(key: string, given: HeartbeatCheck, signal: AbortSignal): Promise<Synced> {
    let object = given
    let check: StoredCheck | null = null
    let published = given.status?.published ?? null
    let found: Pick<SyncFindings, 'dependencies'> = {}
    const read = reads.get(key)
    reads.delete(key)
    try {
      const declaration = await readDeclaration(options, given)
      const { ring, names } = readNames(given, cache.get)
      object = await hold(given)
      signal.throwIfAborted()
      const declared = await syncCheck(options, object, { ...declaration, dependencies: names })
      const { missing = [], ringed = [] } = declared.dependencies ?? {}
      if (declaration.dependencies.length > 0) found = { dependencies: { ring, missing, ringed } }
      const { change } = declared
      const { publish: target } = declaration
      check = declared.check
      const isTakeover = ownershipOf(object, claims).kind === 'takeover'
      reportChange(object, change, isTakeover, target)
      const dropped = describeDroppedLabels(declaration)
      const { warning } = readPausedUntil(object)
      for (const one of [dropped, warning]) if (one !== null) recordEvent(object, 'Warning', one)
      signal.throwIfAborted()
      object = await takeover.claim(key, object, declared)
      const { uid, generation } = object.metadata
      const wanted = JSON.stringify([uid, generation, target, check.publicId])
      const isRead = !isTakeover && read?.wanted === wanted && now() < read.nextAt && isShown(given, target)
      let nextAt = isRead ? read.nextAt : now() + resyncMs * (1 - 0.2 * random())
      if (!isRead) {
        const { isFromPredecessor } = await publish({ object, target, check, isNew: change === 'created' })
        if (isFromPredecessor) nextAt = now() + PREDECESSOR_RETRY_MS
      }
      published = target === null ? null : { kind: target.kind, name: target.name }
      check = await service.armCheck(cluster, check)
      if (declaration.follows !== undefined && change !== 'unchanged') options.onFollowed(key)
      if (declared.fault !== null) throw declared.fault
      reads.set(key, { wanted, nextAt })
      const findings = { sync: { kind: 'synced' }, published, ...found } as const
      const dueMs = Math.max(1_000, nextAt - now())
      const afterMs = ringed.length > 0 ? Math.min(dueMs, RINGED_RETRY_MS) : dueMs
      return { object, findings, check, result: { kind: 'again', afterMs, priority: 'background' } }
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      const { reason, message } = error
      // Compared as the status holds it, cut: a long message would be news each time.
      if (stalledOf(object)?.message !== cutMessage(message))
        recordEvent(object, 'Warning', { reason, note: message, isOfSource: error.isOfSource })
      check ??= await service.findCheck({ cluster, ...splitKey(key) })
      // The job of an adopted check has its URL from the API.
      const isUnknown =
        published === null && !publishesNothing(object.spec) && check?.origin?.kubernetesAdopted !== true
      if (check !== null && isUnknown) check = await service.disarmCheck(cluster, check)
      const findings = { sync: { kind: 'stalled', reason, message }, published, ...found } as const
      return { object, findings, check, result: { kind: 'stalled', retryMs: retryMsOf(object) } }
    }
  }

  /** Nothing is made for a resource without its finalizer: a deletion would leave that behind. */
  async function hold(object: HeartbeatCheck): Promise<HeartbeatCheck> {
    const held = await addFinalizer(client, HEARTBEAT_CHECKS, object)
    if (held !== object) cache.put(held)
    return held
  }

  /**
   * A new check is reported when it is published. For a takeover, the Event TakenOver says what became of the check.
   */
  function reportChange(
    object: HeartbeatCheck,
    change: SyncedCheck['change'],
    isTakeover: boolean,
    target: PublishTarget | null,
  ): void {
    if (change === 'created' || change === 'unchanged') return
    if (isTakeover && (change === 'restored' || change === 'replaced')) return
    const { type, ...event } = CHANGES[change === 'replaced' && target === null ? 'begun' : change]
    recordEvent(object, type, event)
  }

  return reconcile
}

/**
 * Whether no person requests a read, and the status names no other object: the URL would be withdrawn from that object.
 */
function isShown(object: HeartbeatCheck, target: PublishTarget | null): boolean {
  const { published } = object.status ?? {}
  const isOther = published !== undefined && (published.kind !== target?.kind || published.name !== target.name)
  return !isOther && !hasRequest(object)
}

const CHANGES = {
  revived: {
    type: 'Normal',
    reason: 'Revived',
    note: 'the check is back, with the ping URL and the history that it had',
  },
  readopted: {
    type: 'Normal',
    reason: 'Readopted',
    note: 'the check that this resource retained belongs to it again, with its ping URL and its history',
  },
  adopted: { type: 'Normal', reason: 'Adopted', note: 'the check of the annotation belongs to this resource now' },
  updated: { type: 'Normal', reason: 'Updated', note: 'the service holds the new specification' },
  restored: {
    type: 'Warning',
    reason: 'CheckLost',
    note: 'the database had lost the check: there is a new one with the same ping URL, and without the history',
  },
  replaced: {
    type: 'Warning',
    reason: 'CheckLost',
    note: 'the database had lost the check: there is a new one with a new ping URL, so the job must read it again',
  },
  /** The same of a check whose URL is published nowhere. */
  begun: {
    type: 'Warning',
    reason: 'CheckLost',
    note: 'the database had lost the check: there is a new one, without the history',
  },
} as const

const stalledOf = ({ status }: HeartbeatCheck) => conditionOf(status, 'Stalled')
