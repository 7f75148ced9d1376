/**
 * Brings the service and the cluster in line with one HeartbeatCheck (design, section 7): its finalizer, its check, its published URL. The
 * check is armed when the URL is published. What is as it should be is read and left alone.
 */

import { armCheck, disarmCheck } from '../../checks/declare/arm-check.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import type { CheckRecord, StoredCheck } from '../../store/checks/checks.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import {
  describeDroppedLabels,
  readDeclaration,
  type SyncCheckOptions,
  type SyncedCheck,
  syncCheck,
} from '../declare/sync-check.ts'
import { addFinalizer } from '../deletion/finalize.ts'
import { type HeartbeatCheck, type PublishTarget, publishesNothing } from '../heartbeat-check.ts'
import { type ClaimOptions, ensureClaimable } from '../ownership/claim-first.ts'
import { createPublisher, type PublisherOptions } from '../publish/publish-check.ts'
import type { Reporter, SyncFindings } from '../status/report.ts'
import { Stalled } from '../status/stalled.ts'
import { cutMessage } from '../status/status.ts'
import { hasRequest } from './reconcile-request.ts'

export interface SyncOptions extends SyncCheckOptions, PublisherOptions, ClaimOptions {
  readonly client: PublisherOptions['client']
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Context
  readonly cluster: string
  /** This process's clock; the database's is in `context`. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  /** There is a check for this resource, which follows its source from now on, or again. */
  readonly onFollowed: (key: string) => void
}

export interface Reconciled {
  /** The resource as it is in the cluster now. */
  readonly object: HeartbeatCheck
  readonly findings: SyncFindings
  readonly check: CheckRecord | null
  readonly result: ReconcileResult
  /** What was done to the check; null: there is none. */
  readonly change: SyncedCheck['change'] | null
}

export interface SyncCall {
  readonly signal: AbortSignal
  /** Makes a resource of another installation ours, when its check is there. Null: it is ours. */
  readonly takeOver: ((object: HeartbeatCheck, declared: SyncedCheck) => Promise<HeartbeatCheck>) | null
}

export interface Syncer {
  /** Throws errors that a retry may resolve. What a person has to correct is in the findings. */
  sync(key: string, object: HeartbeatCheck, call: SyncCall): Promise<Reconciled>
  /** The resource is gone, or another installation's. */
  forget(key: string): void
}

/** A published object as it was wanted at its last read, and when it is read again. */
interface Read {
  readonly wanted: string
  readonly nextAt: number
}

/** The garbage collector may still delete an object that we have from a predecessor of the resource. */
const PREDECESSOR_RETRY_MS = 10_000

export function createSyncer(options: SyncOptions, recordEvent: Reporter['recordEvent']): Syncer {
  const { context, cluster, now, random, resyncMs } = options
  const publish = createPublisher(options, recordEvent)
  /** No watch shows the published objects, which may be Secrets: each is read once in a resync, however often its job reports. */
  const reads = new Map<string, Read>()

  /**
   * No watch reports that a Secret may be adopted now, or that a project was created, and the person who did it waits for the
   * effect. So a resource that stalled a moment ago is retried soon, and one that stalled long ago twice in a resync.
   */
  function stalledRetryMs(object: HeartbeatCheck): number {
    const since = stalledOf(object)?.lastTransitionTime
    const stalledMs = since === undefined ? 0 : context.clock.now() - Date.parse(since)
    return Math.min(resyncMs / 2, Math.max(resyncMs / 60, stalledMs / 2))
  }

  /** Nothing is made for a resource without its finalizer: a deletion would leave that behind. */
  async function hold(object: HeartbeatCheck): Promise<HeartbeatCheck> {
    const held = await addFinalizer(options.client, object)
    if (held !== object) options.cache.put(held)
    return held
  }

  async function sync(key: string, given: HeartbeatCheck, { signal, takeOver }: SyncCall): Promise<Reconciled> {
    let object = given
    let check: StoredCheck | null = null
    let change: Reconciled['change'] = null
    let published = given.status?.published ?? null
    const read = reads.get(key)
    reads.delete(key)
    try {
      const declaration = await readDeclaration(options, given)
      object = await hold(given)
      signal.throwIfAborted()
      const declared = await syncCheck(options, object, declaration)
      check = declared.check
      change = declared.change
      // publish() reports a new one. A resource that was taken over has lost no check: TakenOver reports what became of it.
      const isOfTakeover = takeOver !== null && (change === 'restored' || change === 'replaced')
      if (change !== 'created' && change !== 'unchanged' && !isOfTakeover) {
        const { type, ...event } = CHANGES[change === 'replaced' && declaration.publish === null ? 'begun' : change]
        recordEvent(object, type, event)
      }
      const dropped = describeDroppedLabels(declaration)
      if (dropped !== null) recordEvent(object, 'Warning', dropped)
      signal.throwIfAborted()
      // Before a URL of ours replaces the one of the owner, which would put its own back.
      if (takeOver !== null) object = await takeOver(object, declared)
      const { publish: target } = declaration
      const wanted = JSON.stringify([object.metadata.uid, target, check.publicId])
      const isRead = takeOver === null && read?.wanted === wanted && now() < read.nextAt && isShown(given, target)
      let nextAt = isRead ? read.nextAt : now() + resyncMs * (1 - 0.2 * random())
      if (!isRead) {
        const beforeSharing = async (holdsAnotherUrl: boolean) => {
          if (holdsAnotherUrl) await ensureClaimable(options, object)
        }
        const isNew = change === 'created'
        const { isFromPredecessor } = await publish({ object, target, check, isNew, beforeSharing })
        if (isFromPredecessor) nextAt = now() + PREDECESSOR_RETRY_MS
      }
      published = target === null ? null : { kind: target.kind, name: target.name }
      check = await armCheck(context, { cluster }, declared.check)
      if (declaration.follows !== undefined && change !== 'unchanged') options.onFollowed(key)
      if (declared.fault !== null) throw declared.fault
      reads.set(key, { wanted, nextAt })
      const findings = { sync: { kind: 'synced' }, published } as const
      return { object, findings, check, change, result: { kind: 'again', afterMs: Math.max(1_000, nextAt - now()) } }
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      const { reason, message } = error
      // Compared as the status holds it, cut: a long message would be news each time.
      if (stalledOf(object)?.message !== cutMessage(message))
        recordEvent(object, 'Warning', { reason, note: message, isOfSource: error.isOfSource })
      check ??= await findDeclaredCheck(context.database, { cluster, ...splitKey(key) })
      // The job of an adopted check has its URL from the API.
      const isUnknown =
        published === null && !publishesNothing(object.spec) && check?.origin?.kubernetesAdopted !== true
      if (check !== null && isUnknown) check = await disarmCheck(context, { cluster }, check)
      const findings = { sync: { kind: 'stalled', reason, message }, published } as const
      return { object, findings, check, change, result: { kind: 'stalled', retryMs: stalledRetryMs(object) } }
    }
  }

  return { sync, forget: (key) => void reads.delete(key) }
}

/** Whether nobody asks for another read, and the status names no other object, from which the URL is to be withdrawn. */
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

function stalledOf({ status }: HeartbeatCheck) {
  return status?.conditions?.find(({ type }) => type === 'Stalled')
}
