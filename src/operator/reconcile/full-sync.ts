/**
 * A full sync of one HeartbeatCheck (design, section 7): its finalizer, its check in the service, its published URL. The check is armed
 * when the URL is published.
 */

import { armCheck, disarmCheck } from '../../checks/declare/arm-check.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import type { CheckRecord, StoredCheck } from '../../store/checks/checks.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import {
  type DeclaredResource,
  type DeclareOptions,
  declare,
  type ResolvedDeclaration,
  readDeclaration,
} from '../declare/declare.ts'
import { describeDroppedLabels } from '../declare/dropped-labels.ts'
import { type FollowOptions, followSource } from '../declare/follow-source.ts'
import { addFinalizer } from '../deletion/finalize.ts'
import { type CheckDeclaration, type HeartbeatCheck, publishesNothing } from '../heartbeat-check.ts'
import { type Claims, ownershipOf } from '../ownership/ownership.ts'
import type { Takeover } from '../ownership/takeover.ts'
import { createPublisher, type PublisherOptions } from '../publish/publish.ts'
import type { Reporter, SyncFindings } from '../status/report.ts'
import { Stalled } from '../status/stalled.ts'
import { cutMessage } from '../status/status.ts'
import type { Syncs } from './syncs.ts'

export interface FullSyncOptions extends DeclareOptions, PublisherOptions, FollowOptions {
  readonly client: PublisherOptions['client']
  readonly claims: Claims
  readonly context: Context
  readonly cluster: string
  /** This process's clock; the database's is in `context`. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  /** There is a check for this resource, which follows its source from now on, or again. */
  readonly onFollowed: (key: string) => void
}

export interface FullSyncParts extends Pick<Reporter, 'recordEvent'>, Pick<Takeover, 'claim'> {
  readonly syncs: Pick<Syncs, 'begin' | 'keep'>
}

export interface Reconciled {
  /** The resource as it is in the cluster now. */
  readonly object: HeartbeatCheck
  readonly findings: SyncFindings
  readonly check: CheckRecord | null
  readonly result: ReconcileResult
  /** What a full sync has done to the check; null: nothing. */
  readonly change: DeclaredResource['change'] | null
}

/** Throws errors that a retry may resolve. What a person has to correct is in the findings. */
export type FullSync = (key: string, object: HeartbeatCheck, signal: AbortSignal) => Promise<Reconciled>

/** The garbage collector may still delete an object that we have from a predecessor of the resource. */
const PREDECESSOR_RETRY_MS = 10_000

export function againAt(at: number, now: number): ReconcileResult {
  return { kind: 'again', afterMs: Math.max(1_000, at - now) }
}

export function createFullSync(options: FullSyncOptions, { recordEvent, syncs, claim }: FullSyncParts): FullSync {
  const { context, cluster, now, random, resyncMs } = options
  const publish = createPublisher(options, recordEvent)

  /**
   * No watch reports that a Secret may be adopted now, or that a project was created, and the person who did it waits for the
   * effect. So a resource that stalled a moment ago is retried soon, and one that stalled long ago twice in a resync.
   */
  function stalledRetryMs(object: HeartbeatCheck): number {
    const since = stalledOf(object)?.lastTransitionTime
    const stalledMs = since === undefined ? 0 : context.clock.now() - Date.parse(since)
    return Math.min(resyncMs / 2, Math.max(resyncMs / 60, stalledMs / 2))
  }

  /** With what the source says. While the source is not there, or may not be read, the check keeps what the source said last; a new check begins paused. */
  async function resolve(
    key: string,
    declaration: CheckDeclaration,
  ): Promise<{ readonly declaration: ResolvedDeclaration; readonly fault?: Stalled }> {
    const { spec, follows } = declaration
    if (spec !== null) return { declaration: { ...declaration, spec } }
    const resource = { cluster, ...splitKey(key) }
    const followed = followSource(options, resource.namespace, follows!)
    const { pauseDetail } = followed
    if (followed.kind === 'read') {
      const { limitFrom, succeededAt } = followed
      const read = { spec: followed.spec, suspend: pauseDetail !== null, pauseDetail, mayRun: true }
      return { declaration: { ...declaration, ...read, limitFrom, succeededAt } }
    }
    const { fault, begin } = followed
    const known = await findDeclaredCheck(context.database, resource)
    // What a source says that cannot be read replaces what it said before.
    const held = fault.reason === 'InvalidSpec' ? begin : (known?.spec ?? begin)
    if (held === null) throw fault
    const suspend = pauseDetail !== null ? true : (known?.kubernetesSuspend ?? null)
    const mayRun = fault.reason !== 'SourceNotFound'
    return { declaration: { ...declaration, spec: held, suspend, pauseDetail, mayRun }, fault }
  }

  /** Nothing is made for a resource without its finalizer: a deletion would leave that behind. */
  async function hold(object: HeartbeatCheck): Promise<HeartbeatCheck> {
    const held = await addFinalizer(options.client, object)
    if (held !== object) options.cache.put(held)
    return held
  }

  return async function sync(key, given, signal) {
    let object = given
    let check: StoredCheck | null = null
    let change: Reconciled['change'] = null
    let published = given.status?.published ?? null
    syncs.begin(key)
    try {
      const { declaration, fault } = await resolve(key, readDeclaration(given))
      object = await hold(given)
      signal.throwIfAborted()
      const declared = await declare(options, object, declaration)
      check = declared.check
      change = declared.change
      // publish() reports a new one. A resource that was taken over has lost no check: TakenOver reports what became of it.
      const isOfTakeover =
        ownershipOf(object, options.claims).kind === 'takeover' && (change === 'restored' || change === 'replaced')
      if (change !== 'created' && change !== 'unchanged' && !isOfTakeover) {
        const { type, ...event } = CHANGES[change === 'replaced' && declaration.publish === null ? 'begun' : change]
        recordEvent(object, type, event)
      }
      const dropped = describeDroppedLabels(declaration)
      if (dropped !== null) recordEvent(object, 'Warning', dropped)
      signal.throwIfAborted()
      object = await claim(key, object, declared)
      const { publish: target } = declaration
      const { isFromPredecessor } = await publish({ object, target, check, isNew: change === 'created' })
      published = target === null ? null : { kind: target.kind, name: target.name }
      check = await armCheck(context, { cluster }, declared.check)
      if (declaration.follows !== undefined && change !== 'unchanged') options.onFollowed(key)
      const toCorrect = fault ?? declared.fault
      if (toCorrect !== undefined) throw toCorrect
      const nextAt = now() + (isFromPredecessor ? PREDECESSOR_RETRY_MS : resyncMs * (1 - 0.2 * random()))
      const findings = { sync: { kind: 'synced' }, published } as const
      syncs.keep(key, object, { nextAt, findings })
      return { object, findings, check, change, result: againAt(nextAt, now()) }
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
