/**
 * What people in the cluster are told of a HeartbeatCheck: its status, written when it changed and never else, and its Events.
 * Flips are told before the status says so: whoever dies in between leaves the next one a reason to tell them again, and the
 * name of the Event, made from the flip, counts them once.
 */

import { listFlipsSince } from '../checks/declare/find-declared.ts'
import type { FlipReason, Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { Occurrence, Recorder, Regarding } from '../kubernetes/recorder.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import {
  API_VERSION,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type HeartbeatCheckStatus,
  KIND,
} from './heartbeat-check.ts'
import { computeStatus, type Findings, isSameStatus } from './status.ts'
import { storyOf } from './tell-flips.ts'

/** What a pass found, the check and its job apart. */
export type SyncFindings = Omit<Findings, 'check' | 'downReason'>

export interface ReporterOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'mergePatch' | 'replace'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Context
  readonly recorder: Pick<Recorder, 'record'>
}

export interface Reporter {
  /** An Event about the sync. */
  tell(object: HeartbeatCheck, type: Occurrence['type'], told: { reason: string; note: string }): void
  /** The flips since the last status as Events, and then the status. */
  report(object: HeartbeatCheck, findings: SyncFindings, check: CheckRecord | null): Promise<void>
  /** Whoever waits for this generation is told that it goes on; a resync that fails for a moment is nobody's concern. */
  admitTrouble(object: HeartbeatCheck, error: unknown): Promise<void>
}

export function createReporter({ client, cache, context, recorder }: ReporterOptions): Reporter {
  async function report(object: HeartbeatCheck, findings: SyncFindings, check: CheckRecord | null): Promise<void> {
    const downReason = check?.state.status === 'down' ? await whyDown(check) : null
    const status = computeStatus(object, { ...findings, check, downReason }, context.clock.now())
    if (check !== null) await tellFlips(object, check, status)
    if (!isSameStatus(object.status, status)) await replaceStatus(object, status)
  }

  /** A status that is replaced costs the API server a fifth less than one that is patched. */
  async function replaceStatus(object: HeartbeatCheck, status: HeartbeatCheckStatus): Promise<void> {
    const replace = (seen: HeartbeatCheck) =>
      client.replace<HeartbeatCheck>(HEARTBEAT_CHECKS, { ...seen, status }, { subresource: 'status' })
    try {
      cache.put(await replace(object))
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error
      // Somebody changed the resource since we saw it. The status says which generation it is about; a successor is not told it.
      const { namespace, name, uid } = object.metadata
      const current = await client.get<HeartbeatCheck>(HEARTBEAT_CHECKS, { namespace: namespace!, name })
      if (current.metadata.uid !== uid) throw error
      cache.put(await replace(current))
    }
  }

  async function writeStatus({ metadata }: HeartbeatCheck, patch: object): Promise<void> {
    const place = { namespace: metadata.namespace!, name: metadata.name }
    cache.put(await client.mergePatch<HeartbeatCheck>(HEARTBEAT_CHECKS, place, patch, { subresource: 'status' }))
  }

  async function whyDown({ key, state }: CheckRecord): Promise<FlipReason | null> {
    const flips = await listFlipsSince(context, key, state.since)
    return flips.findLast(({ to, from }) => to === 'down' && from !== 'down')?.reason ?? null
  }

  async function tellFlips(object: HeartbeatCheck, { key }: CheckRecord, status: HeartbeatCheckStatus): Promise<void> {
    const { checkId, lastTransitionTime } = object.status ?? {}
    if (lastTransitionTime === undefined || checkId !== status.checkId) return
    if (lastTransitionTime === status.lastTransitionTime) return
    const since: Instant = Date.parse(lastTransitionTime)
    const flips = await listFlipsSince(context, key, since)
    // The one that the status tells of may have been put on record after its date; the status has no microseconds.
    const told = flips.findLastIndex(({ at }) => Math.floor(at) === since)
    for (const flip of flips.slice(told + 1)) {
      const story = storyOf(flip)
      if (story !== null) recorder.record(regarding(object), story)
    }
  }

  async function admitTrouble(object: HeartbeatCheck, error: unknown): Promise<void> {
    const { status: before, metadata } = object
    if (before?.observedGeneration === metadata.generation) return
    if (before?.conditions?.some(({ type }) => type === 'Reconciling')) return
    const message = error instanceof AppError ? error.message : 'it could not be brought in line yet; it is tried again'
    const findings = { sync: { kind: 'retrying', message }, published: before?.published ?? null } as const
    const { conditions = [] } = computeStatus(
      object,
      { ...findings, check: null, downReason: null },
      context.clock.now(),
    )
    const job = before?.conditions?.filter(({ type }) => type === 'Up') ?? []
    // The generation is not observed yet: that is what kstatus waits for.
    await writeStatus(object, { status: { conditions: [...conditions, ...job] } })
  }

  return {
    report,
    admitTrouble,
    tell(object, type, { reason, note }) {
      // What went well the status says as well.
      recorder.record(regarding(object), { type, reason, action: 'Reconcile', note, isPatient: type === 'Normal' })
    },
  }
}

function regarding({ metadata }: HeartbeatCheck): Regarding {
  const { namespace, name, uid, resourceVersion } = metadata
  return { apiVersion: API_VERSION, kind: KIND, namespace: namespace!, name, uid, resourceVersion }
}
