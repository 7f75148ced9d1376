/**
 * Computes the status of a HeartbeatCheck from the findings of a reconcile (design, section 6). Pure. `Ready`, `Reconciling` and
 * `Stalled` follow kstatus and describe the sync: the service holds exactly this spec and the URL is published. `Up` describes
 * the job. A missed job never makes Ready False, or `helm --wait` would hang because of last night's backup.
 */

import { isDeepStrictEqual } from 'node:util'
import { type FlipReason, type Instant, shownStatus } from '../domain/check.ts'
import { toIso } from '../domain/instant.ts'
import { type Condition, toTime } from '../kubernetes/objects.ts'
import type { CheckRecord } from '../store/checks/checks.ts'
import type { HeartbeatCheck, HeartbeatCheckStatus, PublishedTarget } from './heartbeat-check.ts'

/** The result of a sync. */
export type Sync =
  | { readonly kind: 'synced' }
  /** A person has to change something first. */
  | { readonly kind: 'stalled'; readonly reason: StalledReason; readonly message: string }
  /** It is retried. */
  | { readonly kind: 'retrying'; readonly message: string }

export type StalledReason =
  | 'InvalidSpec'
  | 'ProjectNotAllowed'
  | 'ProjectNotFound'
  | 'AdoptionRefused'
  | 'TargetNotOwned'
  | 'PublishRefused'

export interface Findings {
  readonly sync: Sync
  /** Null while the service holds no check. */
  readonly check: CheckRecord | null
  /** Where the URL is published now; null: nowhere. */
  readonly published: PublishedTarget | null
  /** Why the check went down, while it is down. */
  readonly downReason: FlipReason | null
}

/** metav1.Condition allows 32,768; people read the first line. */
const MAX_MESSAGE_LENGTH = 1_024
/** The status does not follow every ping: the time of the last one is updated at most this often. */
export const LAST_PING_STEP_MS = 60_000

export function computeStatus(object: HeartbeatCheck, findings: Findings, now: Instant): HeartbeatCheckStatus {
  const { sync, check, published } = findings
  const before = object.status ?? {}
  const generation = object.metadata.generation ?? 0
  const conditions: Condition[] = []
  const add = (condition: Statement) => {
    const old = before.conditions?.find(({ type }) => type === condition.type)
    const isSame = old?.status === condition.status
    conditions.push({
      ...condition,
      message: cutMessage(condition.message),
      lastTransitionTime: isSame ? old.lastTransitionTime : toTime(now),
      observedGeneration: generation,
    })
  }
  for (const condition of describeSync(sync, published)) add(condition)
  add(describePublished(sync, published))
  if (check !== null) add(describeJob(check, findings.downReason, now))
  return {
    observedGeneration: generation,
    ...(check === null
      ? {}
      : {
          checkId: check.id,
          slug: check.slug,
          state: shownStatus(check.state, now),
          // With milliseconds: the flips between two reconciles are found by it (report.ts).
          lastTransitionTime: toIso(check.state.since),
          ...lastPing(before.lastPingTime, check.state.lastPingAt),
        }),
    ...(published === null ? {} : { published }),
    conditions,
  }
}

type Statement = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

function describeSync(sync: Sync, published: PublishedTarget | null): Statement[] {
  switch (sync.kind) {
    case 'synced': {
      const where = published === null ? '' : `; its ping URL is in ${published.kind} ${published.name}`
      const message = `the service holds this specification${where}`
      return [{ type: 'Ready', status: 'True', reason: 'Synced', message }]
    }
    case 'stalled':
      return [
        { type: 'Ready', status: 'False', reason: sync.reason, message: sync.message },
        { type: 'Stalled', status: 'True', reason: sync.reason, message: sync.message },
      ]
    case 'retrying':
      return [
        { type: 'Ready', status: 'False', reason: 'ProgressingWithRetry', message: sync.message },
        { type: 'Reconciling', status: 'True', reason: 'ProgressingWithRetry', message: sync.message },
      ]
  }
}

function describePublished(sync: Sync, published: PublishedTarget | null): Statement {
  if (published !== null) {
    const message = `the ping URL is in ${published.kind} ${published.name}`
    const isRejected = sync.kind === 'stalled' && (sync.reason === 'TargetNotOwned' || sync.reason === 'PublishRefused')
    if (!isRejected) return { type: 'Published', status: 'True', reason: 'Published', message }
  }
  return sync.kind === 'stalled'
    ? { type: 'Published', status: 'False', reason: sync.reason, message: sync.message }
    : { type: 'Published', status: 'False', reason: 'NotPublishedYet', message: 'the ping URL is not published yet' }
}

const up = (status: Condition['status'], reason: string, message: string) => ({ type: 'Up', status, reason, message })

/** No message holds a time that changes with each ping: each change of a message is a write. */
function describeJob({ state }: CheckRecord, downReason: FlipReason | null, now: Instant): Statement {
  switch (shownStatus(state, now)) {
    case 'new': {
      const due = state.dueAt === null ? '' : `; it counts as missed at ${toTime(state.dueAt)}`
      return up('Unknown', 'New', `no completion was reported yet${due}`)
    }
    case 'up':
      return up('True', 'OnTime', 'the job reports on time')
    case 'late': {
      const due = state.dueAt === null ? '' : `, it counts as missed at ${toTime(state.dueAt)}`
      return up('True', 'Late', `a completion was expected at ${toTime(state.expectedAt!)}${due}`)
    }
    case 'down':
      return describeDown(downReason, toTime(state.since))
    case 'paused':
      return up('Unknown', 'Suspended', 'the check is paused: nothing is expected of the job')
  }
}

function describeDown(reason: FlipReason | null, at: string): Statement {
  switch (reason) {
    case 'failed':
      return up('False', 'JobFailed', `the job reported a failure at ${at}`)
    case 'overran':
      return up('False', 'Overran', `a run had taken longer than maxRuntimeSeconds at ${at}`)
    default:
      return up('False', 'Missed', `no completion was reported by ${at}`)
  }
}

function lastPing(before: string | undefined, at: Instant | null): { lastPingTime?: string } {
  if (at === null) return {}
  const isRecent = before !== undefined && Math.abs(at - Date.parse(before)) < LAST_PING_STEP_MS
  return { lastPingTime: isRecent ? before : toIso(at) }
}

/** Cuts a message to the length that a condition here may have. */
export function cutMessage(message: string): string {
  if (message.length <= MAX_MESSAGE_LENGTH) return message
  // The server replaces half a character, and then the status would never equal the written one.
  return `${message.slice(0, MAX_MESSAGE_LENGTH - 1).toWellFormed()}…`
}

/** Whether the status need not be written. */
export function isSameStatus(before: HeartbeatCheckStatus | undefined, after: HeartbeatCheckStatus): boolean {
  return before !== undefined && isDeepStrictEqual(before, after)
}
