/**
 * Reconciles a resource that only declares something of the service: whose it is, whether it is deleted, its finalizer,
 * what the service has for it, and its status.
 */

import { isDeepStrictEqual } from 'node:util'
import { AppError } from '../../domain/errors.ts'
import { isNamespaceGoing } from '../../kubernetes/errors.ts'
import { splitKey } from '../../kubernetes/objects.ts'
import type { ReconcileResult } from '../../kubernetes/workers.ts'
import type { Namespaces } from '../namespaces/namespaces.ts'
import { ownershipOf } from '../ownership/ownership.ts'
import { describeForeign } from '../ownership/takeover.ts'
import type { Term } from '../term.ts'
import {
  addForeign,
  conditionOf,
  cutMessage,
  describeSync,
  isSameStatus,
  type Statement,
  type Sync,
  toCondition,
} from './conditions.ts'
import type { DeclaredKind, Described, Place } from './declared-kind.ts'
import { addFinalizer, createFinalization } from './finalizer.ts'
import { handledRequest, hasRequest } from './reconcile-request.ts'
import { type CommonStatus, placeOf, type Resource, regarding } from './resource.ts'
import { StalledResource, stalledRetryMs } from './stalled.ts'
import { createStatusWriter, describeRetry, patchStatus } from './write-status.ts'

export interface DeclareOptions<T extends Resource> {
  readonly cache: { get(key: string): T | undefined; put(object: T): void }
  readonly namespaces: Namespaces
  readonly resyncMs: number
}

const DONE = { kind: 'done' } as const

export function createDeclareReconcile<T extends Resource, Facts>(
  { client, service, cluster, claims, recorder, clock, random, metrics }: Term,
  of: DeclaredKind<T, Facts>,
  { cache, namespaces, resyncMs }: DeclareOptions<T>,
): (key: string, signal: AbortSignal) => Promise<ReconcileResult> {
  const { kind, type, what } = of
  const { installation } = claims
  /** By key: the uids of resources of other installations, and what these have for them, that have their report. */
  const reported = new Map<string, string>()
  const placeIn = (object: T): Place => ({ cluster, ...placeOf(object) })
  const record = (object: T, type: 'Normal' | 'Warning', event: { reason: string; note: string }) =>
    recorder.record(regarding(object, kind), { type, action: 'Reconcile', ...event })
  const replaceStatus = createStatusWriter<CommonStatus, T>({ client, cache, type, installation })
  const patch = (object: T, status: Partial<CommonStatus>) =>
    patchStatus<Resource>({ client, cache: { put: (written) => cache.put(written as T) } }, type, object, status)
  const finalize = createFinalization<T>({
    client,
    type,
    now: clock.now,
    cleanUp: (object) => of.retire(placeIn(object)),
    onForced(object) {
      metrics.forcedFinalizers.inc()
      const note = `the ${what} could not be removed for 10 minutes; the resource is deleted now, and the ${what} is removed later`
      record(object, 'Warning', { reason: 'CleanupTimeout', note })
    },
  })

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    if (object === undefined) return DONE
    const owner = ownershipOf(object, claims)
    if (owner.kind === 'foreign') return leave(key, object, owner.installation)
    reported.delete(key)
    if (object.metadata.deletionTimestamp !== undefined) {
      await finalize(object)
      return DONE
    }
    try {
      const { held, sync, facts, result } = await bringInLine(object, signal)
      signal.throwIfAborted()
      await report(held, sync, facts)
      if (owner.kind === 'takeover') {
        claims.takenOver.add(object.metadata.uid)
        const note = `taken over from the installation ${owner.from}: this one reconciles it from now on`
        record(object, 'Normal', { reason: 'TakenOver', note })
      }
      return result
    } catch (error) {
      if (isNamespaceGoing(error)) return DONE
      const current = cache.get(key)
      if (current !== undefined && ownershipOf(current, claims).kind === 'foreign')
        return { kind: 'again', afterMs: 0, priority: 'live' }
      // The API server itself may be the problem: then the status cannot be written either.
      if (current !== undefined) await reportRetrying(current, error).catch(() => {})
      throw error
    }
  }

  /** Throws errors that a retry may resolve. What a person has to correct is in `sync`. */
  async function bringInLine(given: T, signal: AbortSignal) {
    const place = placeIn(given)
    let held = given
    try {
      held = await addFinalizer(client, type, given)
      if (held !== given) cache.put(held)
      signal.throwIfAborted()
      const { facts, news } = await of.declare(held, place, await projectOf(held))
      if (news !== null) record(held, 'Normal', news)
      const afterMs = atChange(facts, resyncMs * (1 - 0.2 * random()))
      const result = { kind: 'again', afterMs, priority: 'background' } as const
      return { held, sync: { kind: 'synced' }, facts, result } as const
    } catch (error) {
      const stalled = toStalled(error, held)
      if (stalled === null) throw error
      const { reason, message } = stalled
      await of.onStalled?.(place, await projectOf(held))
      const before = conditionOf(held.status, 'Stalled')
      if (before?.message !== cutMessage(message)) record(held, 'Warning', { reason, note: message })
      const retryMs = stalledRetryMs(before?.lastTransitionTime, service.now(), resyncMs)
      const sync = { kind: 'stalled', reason, message } as const
      const facts = await of.find(held, place)
      return { held, sync, facts, result: { kind: 'stalled', retryMs: atChange(facts, retryMs) } } as const
    }
  }

  /** The status shows the facts: where they change before, the resource is looked at then. */
  function atChange(facts: Facts | null, afterMs: number): number {
    const at = facts === null ? null : (of.changesAt?.(facts) ?? null)
    return at === null ? afterMs : Math.max(0, Math.min(afterMs, at - service.now()))
  }

  /** Null for an error that a retry corrects. */
  function toStalled(error: unknown, object: T): StalledResource<string> | null {
    if (error instanceof StalledResource) return error
    if (!(error instanceof AppError)) return null
    if (error.code === 'forbidden') return new StalledResource('ProjectNotAllowed', error.message)
    if (error.code === 'not_found') return new StalledResource('ProjectNotFound', error.message)
    return of.toStalled(error, object)
  }

  async function projectOf(object: T) {
    const namespace = object.metadata.namespace!
    // Then a person waits for the effect of a change.
    const isAwaited = hasRequest(object) || conditionOf(object.status, 'Stalled') !== undefined
    const allowed = await namespaces.allowedProjects(namespace, isAwaited ? 'fresh' : 'cached')
    return { cluster, namespace, allowed, decidedBy: namespaces.decidedBy, wanted: null }
  }

  async function report(object: T, sync: Sync<string>, facts: Facts | null): Promise<void> {
    const now = service.now()
    const status = computeStatus(
      object,
      installation,
      describeSync(sync, of.synced),
      of.describe(object, facts, now),
      now,
    )
    if (isSameStatus(object.status, status)) return
    const problem = of.problem === undefined ? undefined : conditionOf(status, of.problem)
    if (problem?.status === 'False' && conditionOf(object.status, problem.type)?.status !== 'False')
      record(object, 'Warning', { reason: problem.reason, note: problem.message })
    await replaceStatus(object, status)
  }

  /** A failed resync is not reported. */
  async function reportRetrying(object: T, error: unknown): Promise<void> {
    const { status: before, metadata } = object
    if (before?.observedGeneration === metadata.generation || metadata.deletionTimestamp !== undefined) return
    const message = cutMessage(describeRetry(error))
    if (conditionOf(before, 'Reconciling')?.message === message) return
    const ours = describeSync({ kind: 'retrying', message }, of.synced)
    const others = before?.conditions?.filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type)) ?? []
    const conditions = [...ours.map((statement) => toCondition(object, statement, service.now())), ...others]
    // observedGeneration stays: kstatus waits for it.
    const claim = before?.installation === undefined ? { installation } : {}
    await patch(object, { ...claim, conditions })
  }

  /**
   * What we had for it goes once its owner shows something of its own. A name of an owner alone is no proof: who may
   * write a status could write any.
   */
  async function leave(key: string, object: T, owner: string): Promise<ReconcileResult> {
    const other = object.status === undefined ? undefined : of.idOf(object.status)
    const seen = `${object.metadata.uid} ${other ?? ''}`
    if (reported.get(key) === seen) return DONE
    if (other !== undefined) await of.retire({ cluster, ...splitKey(key) }, other)
    const message = describeForeign(kind, owner, installation)
    const conditions = addForeign(object, message, service.now())
    if (!isDeepStrictEqual(conditions, object.status?.conditions)) await patch(object, { conditions })
    reported.set(key, seen)
    record(object, 'Warning', { reason: 'ManagedElsewhere', note: message })
    return DONE
  }
  return reconcile
}

/** The status of a resource that was reconciled. Pure. */
export function computeStatus(
  object: Resource,
  installation: string,
  sync: readonly Statement[],
  { fields, statements }: Described,
  now: number,
): CommonStatus {
  return {
    observedGeneration: object.metadata.generation ?? 0,
    installation,
    ...fields,
    ...handledRequest(object, now),
    conditions: [...sync, ...statements].map((statement) => toCondition(object, statement, now)),
  }
}
