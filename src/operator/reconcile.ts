/**
 * One pass over one HeartbeatCheck (design, section 7): look it up, bring the service and the published URL in line with it,
 * write its status if that changed. A full pass follows a change of the resource, and comes again once in a resync to set
 * right what somebody changed elsewhere; in between, a flip only costs a look at the database and a status.
 */

import { declareCheck } from '../checks/declare-check.ts'
import { findDeclared, listFlipsSince } from '../checks/find-declared.ts'
import type { Parts } from '../checks/parts.ts'
import type { FlipReason } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import { keyOf, splitKey } from '../kubernetes/objects.ts'
import type { Recorder } from '../kubernetes/recorder.ts'
import type { ReconcileResult } from '../kubernetes/workers.ts'
import type { CheckRecord } from '../store/checks.ts'
import { resolveProject } from '../tenancy/namespace-projects.ts'
import { addFinalizer, finalizeCheck } from './finalize.ts'
import {
  ADOPT_CHECK_ANNOTATION,
  API_VERSION,
  type CheckDeclaration,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type HeartbeatCheckStatus,
  KIND,
  readHeartbeatCheck,
} from './heartbeat-check.ts'
import type { Namespaces } from './namespaces.ts'
import { publishUrl, releaseTarget } from './publish.ts'
import { computeStatus, type Findings, patchOf, type StalledReason } from './status.ts'
import { storyOf } from './tell-flips.ts'

/** What the reconciler sees of the reflector. */
export interface CheckCache {
  get(key: string): HeartbeatCheck | undefined
  put(object: HeartbeatCheck): void
}

export interface ReconcilerOptions {
  readonly client: KubernetesClient
  readonly cache: CheckCache
  readonly parts: Parts
  readonly cluster: string
  readonly namespaces: Namespaces
  readonly recorder: Pick<Recorder, 'record'>
  /** Without a slash at the end. */
  readonly pingUrl: () => string
  /** This process's clock; the database's is in `parts`. */
  readonly now: () => number
  readonly random: () => number
  readonly resyncMs: number
  readonly onPublish: (result: 'written' | 'unchanged' | 'refused') => void
  readonly onFinalizerForced: () => void
}

export interface Reconciler {
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>
}

/** What stalls is looked at again this late: nobody tells us that a Secret was given away, or a project made. */
const STALLED_RETRY_MS = 300_000
/** The collector may still delete what we took over from a check's predecessor. */
const TAKEN_OVER_RETRY_MS = 10_000

/** What the last full pass brought in line. */
interface Done {
  readonly uid: string
  readonly generation: number
  readonly adoptId: string | undefined
  readonly nextAt: number
  readonly findings: Omit<Findings, 'check' | 'downReason'>
}

/** Somebody has to change something first. */
class Stalled extends Error {
  readonly reason: StalledReason

  constructor(reason: StalledReason, message: string) {
    super(message)
    this.reason = reason
  }
}

export function createReconciler(options: ReconcilerOptions): Reconciler {
  const { client, cache, parts, cluster, recorder, now, random, resyncMs } = options
  const done = new Map<string, Done>()

  async function reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const object = cache.get(key)
    if (object === undefined) {
      // Gone with its finalizer done, or lost with the cluster's memory: follow-changes.ts decides about what is left behind.
      done.delete(key)
      return { kind: 'done' }
    }
    if (object.metadata.deletionTimestamp !== undefined) {
      done.delete(key)
      await finalizeCheck(options, object)
      return { kind: 'done' }
    }
    const last = done.get(key)
    const isDue = last === undefined || !isSame(last, object) || now() >= last.nextAt
    try {
      const pass = isDue ? await bringInLine(object, signal) : await lookAgain(object, last)
      signal.throwIfAborted()
      await writeStatus(pass.object, pass.findings)
      return pass.result
    } catch (error) {
      if (isNamespaceGoing(error)) return { kind: 'done' }
      await admitTrouble(cache.get(key), error)
      throw error
    }
  }

  /** Everything: the check, the published URL, and what became of it. */
  async function bringInLine(given: HeartbeatCheck, signal: AbortSignal) {
    const key = keyOf(given.metadata as { namespace: string; name: string })
    const resource = { cluster, ...splitKey(key) }
    let object = given
    let check: CheckRecord | null = null
    let published = given.status?.published ?? null
    try {
      const declaration = readDeclaration(given)
      object = await addFinalizer(client, given)
      cache.put(object)
      signal.throwIfAborted()
      const declared = await declare(object, declaration)
      check = declared.check
      if (declared.change !== 'unchanged') tell(object, 'Normal', CHANGES[declared.change])
      signal.throwIfAborted()
      const { isTakenOver } = await publish(object, declaration, check, (now) => {
        published = now
      })
      const nextAt = now() + (isTakenOver ? TAKEN_OVER_RETRY_MS : resyncMs * (0.9 + 0.2 * random()))
      const findings = { sync: { kind: 'synced' }, published } as const
      done.set(key, { ...identityOf(object), nextAt, findings })
      return { object, findings: await withCheck(findings, check), result: againAt(nextAt) }
    } catch (error) {
      if (!(error instanceof Stalled)) throw error
      const { reason, message } = error
      const isNews = object.status?.conditions?.find(({ type }) => type === 'Stalled')?.message !== message
      if (isNews) tell(object, 'Warning', { reason, note: message })
      done.delete(key)
      check ??= await findDeclared(parts, resource)
      const findings = { sync: { kind: 'stalled', reason, message }, published } as const
      const result = { kind: 'stalled', retryMs: STALLED_RETRY_MS } as const
      return { object, findings: await withCheck(findings, check), result }
    }
  }

  /** The resource is in line: only the job's own state may have moved. */
  async function lookAgain(object: HeartbeatCheck, last: Done) {
    const check = await findDeclared(parts, { cluster, ...splitKey(keyOf(object.metadata)) })
    if (check === null) {
      done.delete(keyOf(object.metadata))
      return bringInLine(object, new AbortController().signal)
    }
    return { object, findings: await withCheck(last.findings, check), result: againAt(last.nextAt) }
  }

  async function declare(object: HeartbeatCheck, declaration: CheckDeclaration) {
    const { namespace, name } = object.metadata as { namespace: string; name: string }
    const { displayName, description, spec, suspend, project } = declaration
    try {
      const { id: projectId } = await resolveProject(parts, {
        cluster,
        namespace,
        allowed: await options.namespaces.allowedProjects(namespace),
        wanted: project,
      })
      const adoptId = object.metadata.annotations?.[ADOPT_CHECK_ANNOTATION] ?? null
      const resource = { cluster, namespace, name }
      return await declareCheck(parts, { resource, projectId, name: displayName, description, spec, suspend, adoptId })
    } catch (error) {
      throw toStalled(error) ?? error
    }
  }

  /** The new place is written before the old one is given up: a job never finds neither. */
  async function publish(
    object: HeartbeatCheck,
    { publish: target }: CheckDeclaration,
    { publicId }: CheckRecord,
    onPublished: (now: HeartbeatCheckStatus['published'] & object) => void,
  ): Promise<{ isTakenOver: boolean }> {
    const result = await publishUrl(client, object, target, `${options.pingUrl()}/ping/${publicId}`)
    if (result.kind === 'refused') {
      options.onPublish('refused')
      throw new Stalled(result.reason, result.message)
    }
    options.onPublish(result.isChanged ? 'written' : 'unchanged')
    const before = object.status?.published
    if (before !== undefined && (before.kind !== target.kind || before.name !== target.name))
      await releaseTarget(client, object, before)
    onPublished({ kind: target.kind, name: target.name })
    if (result.isChanged) {
      const note = `the ping URL is in ${target.kind} ${target.name}, key ${target.key}`
      tell(object, 'Normal', { reason: 'Published', note })
    }
    return { isTakenOver: result.isTakenOver }
  }

  async function withCheck(findings: Omit<Findings, 'check' | 'downReason'>, check: CheckRecord | null): Promise<Findings> {
    return { ...findings, check, downReason: check?.state.status === 'down' ? await whyDown(check) : null }
  }

  async function whyDown({ key, state }: CheckRecord): Promise<FlipReason | null> {
    const flips = await listFlipsSince(parts, key, state.since)
    return flips.findLast(({ to, from }) => to === 'down' && from !== 'down')?.reason ?? null
  }

  async function writeStatus(object: HeartbeatCheck, findings: Findings): Promise<void> {
    const { namespace, name } = object.metadata
    const status = computeStatus(object, findings, parts.clock.now())
    if (findings.check !== null) await tellFlips(object, findings.check, status)
    const patch = patchOf(object.status, status)
    if (patch === null) return
    cache.put(
      await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace: namespace!, name }, patch, {
        subresource: 'status',
      }),
    )
  }

  /** Told before the status says so: whoever dies in between leaves the next one a reason to tell them again, and they count once. */
  async function tellFlips(object: HeartbeatCheck, { key }: CheckRecord, status: HeartbeatCheckStatus): Promise<void> {
    const since = object.status?.lastTransitionTime
    if (since === undefined || object.status?.checkId !== status.checkId || since === status.lastTransitionTime) return
    for (const flip of await listFlipsSince(parts, key, Date.parse(since))) {
      const story = storyOf(flip)
      if (story !== null && flip.at > Date.parse(since)) recorder.record(regarding(object), story)
    }
  }

  function tell(object: HeartbeatCheck, type: 'Normal' | 'Warning', { reason, note }: { reason: string; note: string }) {
    recorder.record(regarding(object), { type, reason, action: 'Reconcile', note })
  }

  /** Whoever waits for this generation is told that it goes on; a resync that fails for a moment is nobody's concern. */
  async function admitTrouble(object: HeartbeatCheck | undefined, error: unknown): Promise<void> {
    if (object === undefined || object.metadata.deletionTimestamp !== undefined) return
    if (object.status?.observedGeneration === object.metadata.generation) return
    if (object.status?.conditions?.some(({ type }) => type === 'Reconciling')) return
    const message = error instanceof AppError ? error.message : 'it could not be brought in line yet; it is tried again'
    const published = object.status?.published ?? null
    const findings = { sync: { kind: 'retrying', message }, published, check: null, downReason: null } as const
    const { observedGeneration: _, ...status } = computeStatus(object, findings, now())
    const kept = object.status === undefined ? status : { ...object.status, conditions: status.conditions }
    const { namespace, name } = object.metadata
    await client
      .mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace: namespace!, name }, { status: kept }, { subresource: 'status' })
      .then(cache.put)
      // The trouble may be with the API server itself.
      .catch(() => {})
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

function readDeclaration(object: HeartbeatCheck): CheckDeclaration {
  const read = readHeartbeatCheck(object)
  if (read.ok) return read.declaration
  throw new Stalled('InvalidSpec', read.faults.join('; '))
}

/** What a person has to set right; null for what passes by itself. */
function toStalled(error: unknown): Stalled | null {
  if (!(error instanceof AppError)) return null
  if (error.code !== 'unavailable' && error.details?.[0]?.path === 'adoptId')
    return new Stalled('AdoptionRefused', error.message)
  switch (error.code) {
    case 'invalid':
      return new Stalled('InvalidSpec', error.message)
    case 'forbidden':
      return new Stalled('ProjectNotAllowed', error.message)
    case 'not_found':
      return new Stalled('ProjectNotFound', error.message)
    default:
      return null
  }
}

function identityOf({ metadata }: HeartbeatCheck): Pick<Done, 'uid' | 'generation' | 'adoptId'> {
  const { uid, generation = 0, annotations } = metadata
  return { uid, generation, adoptId: annotations?.[ADOPT_CHECK_ANNOTATION] }
}

function isSame(last: Done, object: HeartbeatCheck): boolean {
  const { uid, generation, adoptId } = identityOf(object)
  return last.uid === uid && last.generation === generation && last.adoptId === adoptId
}

function regarding({ metadata }: HeartbeatCheck) {
  const { namespace, name, uid, resourceVersion } = metadata
  return { apiVersion: API_VERSION, kind: KIND, namespace: namespace!, name, uid, resourceVersion }
}

/** Nothing can be made in it any more; its deletion comes to each of its objects by itself. */
function isNamespaceGoing(error: unknown): boolean {
  return error instanceof ApiError && error.status === 403 && error.message.includes('being terminated')
}
