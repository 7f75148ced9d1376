/**
 * What people see of a HeartbeatCheck: its status, written only when it has changed, and its Events. Events of flips are recorded
 * before the status is written: when a leader dies in between, the next one finds the old status and records them again, and
 * the name of the Event, made from the id of the flip, prevents a second one.
 */

import { listFlipsSince } from '../checks/declare/find-declared.ts'
import type { FlipReason, Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import { ApiError, type KubernetesClient } from '../kubernetes/client.ts'
import type { Occurrence, Recorder, Regarding } from '../kubernetes/recorder.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { toFlipEvent } from './flip-event.ts'
import {
  API_VERSION,
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type HeartbeatCheckStatus,
  KIND,
} from './heartbeat-check.ts'
import { computeStatus, type Findings, isSameStatus } from './status.ts'

/** What a reconcile found, without the check and its job. */
export type SyncFindings = Omit<Findings, 'check' | 'downReason'>

export interface ReporterOptions {
  readonly client: Pick<KubernetesClient, 'get' | 'mergePatch' | 'replace'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly context: Context
  readonly recorder: Pick<Recorder, 'record'>
}

export interface Reporter {
  /** Records an Event about the sync. */
  recordEvent(object: HeartbeatCheck, type: Occurrence['type'], event: { reason: string; note: string }): void
  /** Records the flips since the last status as Events, then writes the status. */
  report(object: HeartbeatCheck, findings: SyncFindings, check: CheckRecord | null): Promise<void>
  /** Reports in the status that a new generation could not be synced yet and is retried. A failed resync is not reported. */
  reportRetrying(object: HeartbeatCheck, error: unknown): Promise<void>
}

export function createReporter({ client, cache, context, recorder }: ReporterOptions): Reporter {
  async function report(object: HeartbeatCheck, findings: SyncFindings, check: CheckRecord | null): Promise<void> {
    const downReason = check?.state.status === 'down' ? await whyDown(check) : null
    const status = computeStatus(object, { ...findings, check, downReason }, context.clock.now())
    if (check !== null) await recordFlips(object, check, status)
    if (!isSameStatus(object.status, status)) await replaceStatus(object, status)
  }

  /** Replacing a status costs the API server a fifth less than patching it. */
  async function replaceStatus(object: HeartbeatCheck, status: HeartbeatCheckStatus): Promise<void> {
    const replace = (seen: HeartbeatCheck) =>
      client.replace<HeartbeatCheck>(HEARTBEAT_CHECKS, { ...seen, status }, { subresource: 'status' })
    try {
      cache.put(await replace(object))
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 409)) throw error
      // The resource has changed since we read it. The status names its generation; a new resource of the same name must not get it.
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

  async function recordFlips(object: HeartbeatCheck, { key }: CheckRecord, after: HeartbeatCheckStatus): Promise<void> {
    const { checkId, lastTransitionTime } = object.status ?? {}
    if (lastTransitionTime === undefined || checkId !== after.checkId) return
    if (lastTransitionTime === after.lastTransitionTime) return
    const since: Instant = Date.parse(lastTransitionTime)
    const flips = await listFlipsSince(context, key, since)
    // The status has no microseconds, and several flips may be within its millisecond: its own is the last of them.
    const reported = flips.findLastIndex(({ at }) => Math.floor(at) === since)
    for (const flip of flips.slice(reported + 1)) {
      const event = toFlipEvent(flip)
      if (event !== null) recorder.record(regarding(object), event)
    }
  }

  async function reportRetrying(object: HeartbeatCheck, error: unknown): Promise<void> {
    const { status: before, metadata } = object
    if (before?.observedGeneration === metadata.generation) return
    if (before?.conditions?.some(({ type }) => type === 'Reconciling')) return
    const message = error instanceof AppError ? error.message : 'it could not be brought in line yet; it is tried again'
    const sync = { kind: 'retrying', message } as const
    const findings = { sync, published: before?.published ?? null, check: null, downReason: null }
    const { conditions = [] } = computeStatus(object, findings, context.clock.now())
    const job = before?.conditions?.filter(({ type }) => type === 'Up') ?? []
    // observedGeneration stays: kstatus waits for it.
    await writeStatus(object, { status: { conditions: [...conditions, ...job] } })
  }

  return {
    report,
    reportRetrying,
    recordEvent(object, type, { reason, note }) {
      // The status says the same of a success, so its Event may wait.
      recorder.record(regarding(object), { type, reason, action: 'Reconcile', note, isPatient: type === 'Normal' })
    },
  }
}

/** The reference of an Event to its resource. */
export function regarding({ metadata }: HeartbeatCheck): Regarding {
  const { namespace, name, uid, resourceVersion } = metadata
  return { apiVersion: API_VERSION, kind: KIND, namespace: namespace!, name, uid, resourceVersion }
}
