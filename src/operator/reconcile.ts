/**
 * One pass over one HeartbeatCheck (design, section 7): look it up, bring the service and the published URL in line with it,
 * write its status if that changed. A full pass follows a change of the resource, and comes again once in a resync to set
 * right what somebody changed elsewhere; in between, a flip only costs a look at the database and a status.
 */

import { findDeclared } from '../checks/declare/find-declared.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { splitKey } from '../kubernetes/objects.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { ReconcileResult } from '../kubernetes/workers.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { declare, readDeclaration } from './declare.ts'
import { createFinalizer } from './finalize.ts'
import {
  ADOPT_CHECK_ANNOTATION,
  type CheckDeclaration,
  type HeartbeatCheck,
  type PublishedTarget,
} from './heartbeat-check.ts'
import { createHold } from './hold.ts'
import type { Namespaces } from './namespaces.ts'
import { isNamespaceGoing, publishUrl, releaseTarget } from './publish.ts'
import { createReporter, type SyncFindings } from './report.ts'
import { Stalled } from './stalled.ts'
import { cutMessage } from './status.ts'

/** What the reconciler sees of the reflector. */
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
  /** Others wait to be reconciled. */
  readonly isBusy: () => boolean
  readonly onPublish: (result: 'written' | 'unchanged' | 'refused') => void
  readonly onFinalizerForced: () => void
}

export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
}

/** The collector may still delete what we took over from a check's predecessor. */
const TAKEN_OVER_RETRY_MS = 10_000

/** What the last full pass brought in line. */
interface Done {
  readonly uid: string
  readonly generation: number
  readonly adoptId: string | undefined
  readonly nextAt: number
  readonly findings: SyncFindings
}

/** What a pass made of the resource. */
interface Pass {
  /** As it is in the cluster by now. */
  readonly object: HeartbeatCheck
  readonly findings: SyncFindings
  readonly check: CheckRecord | null
  readonly result: ReconcileResult
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { client, cache, context, cluster, now, random, resyncMs } = options
  const { tell, report, admitTrouble } = createReporter(options)
  const finalize = createFinalizer(options)
  const hold = createHold(options)
  const done = new Map<string, Done>()

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
      done.delete(key)
      if (object !== undefined) await finalize(object)
      // Any other that is gone was lost with the cluster's memory: follow-changes.ts decides about what is left behind.
      else await hold.letGo(key)
      return { kind: 'done' }
    }
    const last = done.get(key)
    const isInLine = last !== undefined && isSame(last, object) && now() < last.nextAt
    try {
      const held = isInLine ? await hold.now(key, object) : object
      const pass = (isInLine ? await lookAgain(key, held, last) : null) ?? (await bringInLine(key, held, signal))
      signal.throwIfAborted()
      await report(pass.object, pass.findings, pass.check)
      return hold.isPostponed(key) ? { kind: 'again', afterMs: 0, priority: 'background' } : pass.result
    } catch (error) {
      if (isNamespaceGoing(error)) return { kind: 'done' }
      if (error instanceof ApiError && error.status === 404 && (await hold.letGo(key))) return { kind: 'done' }
      const current = cache.get(key)
      // The trouble may be with the API server itself: then there is nobody to tell.
      if (current !== undefined && current.metadata.deletionTimestamp === undefined)
        await admitTrouble(current, error).catch(() => {})
      throw error
    }
  }

  /** The resource is in line: only the job's own state may have moved. Null: its check is gone. */
  async function lookAgain(key: string, object: HeartbeatCheck, { findings, nextAt }: Done): Promise<Pass | null> {
    const check = await findDeclared(context, { cluster, ...splitKey(key) })
    return check === null ? null : { object, findings, check, result: againAt(nextAt) }
  }

  /** Everything: the check, the published URL, and what became of it. */
  async function bringInLine(key: string, given: HeartbeatCheck, signal: AbortSignal): Promise<Pass> {
    let object = given
    let check: CheckRecord | null = null
    let published = given.status?.published ?? null
    done.delete(key)
    try {
      const declaration = readDeclaration(given)
      object = await hold.nowOrLater(key, given)
      signal.throwIfAborted()
      const declared = await declare(options, object, declaration)
      check = declared.check
      // One Event tells of a new check and of its URL: with a thousand resources applied at once each Event counts.
      const isNew = declared.change === 'created'
      if (!isNew && declared.change !== 'unchanged') tell(object, 'Normal', CHANGES[declared.change])
      signal.throwIfAborted()
      const isTakenOver = await publish(key, object, declaration, check, isNew)
      published = { kind: declaration.publish.kind, name: declaration.publish.name }
      const nextAt = now() + (isTakenOver ? TAKEN_OVER_RETRY_MS : resyncMs * (1 - 0.2 * random()))
      const findings = { sync: { kind: 'synced' }, published } as const
      done.set(key, { ...identityOf(object), nextAt, findings })
      return { object, findings, check, result: againAt(nextAt) }
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      const { reason, message } = error
      // As the status has it, which cuts what is too long: else a long one would be news each time.
      const isNews = stalledOf(object)?.message !== cutMessage(message)
      if (isNews) tell(object, 'Warning', { reason, note: message })
      check ??= await findDeclared(context, { cluster, ...splitKey(key) })
      const findings = { sync: { kind: 'stalled', reason, message }, published } as const
      return { object, findings, check, result: { kind: 'stalled', retryMs: stalledRetryMs(object) } }
    }
  }

  /** The new place is written before the old one is given up: a job never finds neither. Was it taken over? */
  async function publish(
    key: string,
    object: HeartbeatCheck,
    { publish: target }: CheckDeclaration,
    { publicId }: CheckRecord,
    isNew: boolean,
  ): Promise<boolean> {
    const url = `${options.pingUrl()}/ping/${publicId}`
    const result = await publishUrl(client, object, target, url, () => hold.now(key, object))
    if (result.kind === 'refused') {
      if (isNew) tell(object, 'Normal', CHANGES.created)
      options.onPublish('refused')
      throw new Stalled(result.reason, result.message)
    }
    options.onPublish(result.isChanged ? 'written' : 'unchanged')
    const before = object.status?.published
    if (before !== undefined && !isSamePlace(before, target)) await releaseTarget(client, object, before)
    const where = `the ping URL is in ${target.kind} ${target.name}, key ${target.key}`
    if (isNew) tell(object, 'Normal', { ...CHANGES.created, note: `${CHANGES.created.note}; ${where}` })
    else if (result.isChanged) tell(object, 'Normal', { reason: 'Published', note: where })
    return result.isTakenOver
  }

  /**
   * Nobody tells us that a Secret was given away, or a project made. Whoever just did it waits for the effect, so what stalled
   * a moment ago is looked at soon, and what has been stalled for long twice in a resync.
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

function isSamePlace(a: PublishedTarget, b: PublishedTarget): boolean {
  return a.kind === b.kind && a.name === b.name
}

function identityOf({ metadata }: HeartbeatCheck): Pick<Done, 'uid' | 'generation' | 'adoptId'> {
  const { uid, generation = 0, annotations } = metadata
  return { uid, generation, adoptId: annotations?.[ADOPT_CHECK_ANNOTATION] }
}

function isSame(last: Done, object: HeartbeatCheck): boolean {
  const { uid, generation, adoptId } = identityOf(object)
  return last.uid === uid && last.generation === generation && last.adoptId === adoptId
}
