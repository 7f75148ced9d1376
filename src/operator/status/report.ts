/**
 * What people see of a HeartbeatCheck: its status, written only when it has changed, and its Events. The database holds
 * up to which flip they are written (store/history/reported-flips.ts): when a leader dies before it has saved that, the
 * next one records the rest again, and the name of the Event, made from the id of the flip, prevents a second one.
 */

import type { CheckRecord } from '../../checks/find-checks.ts'
import { isFlapping } from '../../domain/check.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'
import type { Condition } from '../../kubernetes/objects.ts'
import type { Occurrence, Recorder, Regarding } from '../../kubernetes/recorder.ts'
import {
  HEARTBEAT_CHECKS,
  type HeartbeatCheck,
  type HeartbeatCheckStatus,
  KIND,
  type PublishedTarget,
} from '../heartbeat-check.ts'
import type { Claims } from '../ownership/ownership.ts'
import { cutMessage, isSameStatus } from '../resource/conditions.ts'
import { regarding } from '../resource/resource.ts'
import { createStatusWriter, describeRetry, patchStatus } from '../resource/write-status.ts'
import type { Service } from '../service.ts'
import { sourceKeyOf } from '../sources/followers.ts'
import { readSource, type SourceReader } from '../sources/read-source.ts'
import type { Source } from '../sources/source-kind.ts'
import { typeOf } from '../sources/source-kinds.ts'
import { toFlipEvent } from './flip-event.ts'
import { computeStatus, type Findings, type FollowedFindings, isFollowing } from './status.ts'
import { isMinor } from './status-turns.ts'

/** What a reconcile found, without the check and its job. */
export type SyncFindings = Omit<Findings, 'installation' | 'check' | 'downReason' | 'downDetail' | 'followed'>

export interface ReporterOptions {
  readonly claims: Pick<Claims, 'installation'>
  readonly client: Pick<KubernetesClient, 'get' | 'mergePatch' | 'replace'>
  readonly cache: { put(object: HeartbeatCheck): void }
  readonly service: Pick<Service, 'now' | 'findFollowedFacts' | 'listUnreportedFlips' | 'saveReportedFlip'>
  readonly recorder: Pick<Recorder, 'record'>
  /** Null: none are read. Default: null. */
  readonly sources?: SourceReader | null
}

export interface Reporter {
  /** Records an Event about the sync, `isOfSource`: on the source too; with an id, once (kubernetes/event.ts). */
  recordEvent(
    object: HeartbeatCheck,
    type: Occurrence['type'],
    event: { reason: string; note: string; id?: string; isOfSource?: boolean },
  ): void
  /**
   * Records the flips that were not reported yet as Events, and writes the status; without a turn (status-turns.ts),
   * not for a minor change alone.
   */
  report(object: HeartbeatCheck, findings: SyncFindings, check: CheckRecord | null, hasTurn?: boolean): Promise<void>
  /**
   * Reports in the status that a new generation could not be synced yet and is retried. A failed resync is not
   * reported.
   */
  reportRetrying(object: HeartbeatCheck, error: unknown): Promise<void>
}

export function createReporter({
  client,
  cache,
  service,
  recorder,
  claims,
  sources = null,
}: ReporterOptions): Reporter {
  const { installation } = claims
  const replaceStatus = createStatusWriter<HeartbeatCheckStatus, HeartbeatCheck>({
    client,
    cache,
    type: HEARTBEAT_CHECKS,
    installation,
  })

  async function report(
    object: HeartbeatCheck,
    findings: SyncFindings,
    check: CheckRecord | null,
    hasTurn = true,
  ): Promise<void> {
    const downReason = check?.state.status === 'down' ? check.state.reason : null
    const { followed, detail } = await findFollowed(object, check)
    const downDetail = downReason === null ? null : detail
    const found = { ...findings, installation, check, downReason, downDetail, ...(followed && { followed }) }
    const status = computeStatus(object, found, service.now())
    // A new check has none yet, and thousands may be created at once.
    if (check !== null && object.status !== undefined) await recordFlips(object, check, followed?.source ?? null)
    if (isSameStatus(object.status, status)) return
    // A turn is for the cluster, which has few of them.
    if (!hasTurn && isMinor(object.status, status)) return
    await replaceStatus(object, status)
  }

  /** With `detail`: why its check has its status, in words. Without `followed`: it follows no source. */
  async function findFollowed(
    object: HeartbeatCheck,
    check: CheckRecord | null,
  ): Promise<{ readonly followed?: FollowedFindings; readonly detail: string | null }> {
    if (sourceKeyOf(object) === null) return { detail: null }
    const source = readSource(sources, object)
    const none = { lastRun: null, detail: null }
    const { lastRun, detail } = check === null ? none : await service.findFollowedFacts(check)
    const missingRights = sources?.missingReasonRights(object.metadata.namespace!) ?? []
    return { followed: { source, lastRun, missingRights }, detail }
  }

  /** On the resource, and on the source that it follows. */
  async function recordFlips(
    object: HeartbeatCheck,
    { key, spec, state }: CheckRecord,
    source: Source | null,
  ): Promise<void> {
    const flips = await service.listUnreportedFlips(key)
    const events = flips.flatMap((flip) => toFlipEvent(flip, isFlapping(state), isFollowing(spec)) ?? [])
    if (events.length === 0) return
    const on = [regarding(object, KIND), ...(source === null ? [] : regardingSource(object, source))]
    let left = events.length * on.length
    let saved: Promise<void> | undefined
    const onWritten = () => {
      left -= 1
      // What is lost, or cannot be saved, is recorded again by the next reconcile.
      if (left === 0) saved = service.saveReportedFlip(key, flips.at(-1)!.id).catch(() => {})
    }
    for (const event of events) for (const one of on) recorder.record(one, { ...event, onWritten })
    await saved
  }

  async function reportRetrying(object: HeartbeatCheck, error: unknown): Promise<void> {
    const { status: before, metadata } = object
    if (before?.observedGeneration === metadata.generation) return
    const message = cutMessage(describeRetry(error))
    if (before?.conditions?.some((known) => known.type === 'Reconciling' && known.message === message)) return
    const conditions = describeRetrying(object, message, before?.published ?? null, service.now())
    // A takeover claims the resource when its check is there.
    const claim = before?.installation === undefined ? { installation } : {}
    // observedGeneration stays: kstatus waits for it.
    await patchStatus({ client, cache }, HEARTBEAT_CHECKS, object, { ...claim, conditions })
  }

  return {
    report,
    reportRetrying,
    recordEvent(object, type, { isOfSource = false, ...event }) {
      const key = isOfSource ? sourceKeyOf(object) : null
      const source = key === null ? undefined : sources?.getSource(key)
      const occurrence = { type, ...event, action: 'Reconcile' }
      for (const on of [regarding(object, KIND), ...(source === undefined ? [] : regardingSource(object, source))])
        recorder.record(on, occurrence)
    },
  }
}

/** The conditions of a resource that is tried again: what is known of its job stays. */
export function describeRetrying(
  object: HeartbeatCheck,
  message: string,
  published: PublishedTarget | null,
  now: number,
): Condition[] {
  const sync = { kind: 'retrying', message } as const
  const findings = { sync, installation: '', published, check: null, downReason: null }
  const known = object.status?.conditions?.filter(({ type }) => type === 'DependenciesResolved' || type === 'Up') ?? []
  return [...computeStatus(object, findings, now).conditions!, ...known]
}

function regardingSource({ spec }: HeartbeatCheck, { metadata }: Source): Regarding[] {
  if (spec.sourceRef === undefined) return []
  const { namespace, name, uid, resourceVersion } = metadata
  return [{ ...typeOf(spec.sourceRef.kind), namespace, name, uid, resourceVersion }]
}
