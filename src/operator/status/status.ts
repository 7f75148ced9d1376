/**
 * Computes the status of a HeartbeatCheck from the findings of a reconcile (design, section 6). Pure. `Ready`,
 * `Reconciling` and `Stalled` follow kstatus and describe the sync: the service holds exactly this spec and the URL is
 * published. `Up` describes the job. A missed job never makes Ready False, or `helm --wait` would hang because of last
 * night's backup.
 */

import type { CheckRecord, StoredSpec } from '../../checks/find-checks.ts'
import { type FlipReason, type Instant, shownStatus } from '../../domain/check.ts'
import type { LastRun } from '../../domain/last-run.ts'
import { isUnarmed } from '../../domain/transition.ts'
import { type Condition, toTime } from '../../kubernetes/objects.ts'
import { type DependencyFindings, describeDependencies } from '../declare/dependencies.ts'
import {
  type HeartbeatCheck,
  type HeartbeatCheckStatus,
  type PublishedTarget,
  publishesNothing,
} from '../heartbeat-check.ts'
import { RESTORE_RIGHTS } from '../names.ts'
import { cutMessage, describeSync, type Sync as GivenSync, isSameStatus, toCondition } from '../resource/conditions.ts'
import { handledRequest } from '../resource/reconcile-request.ts'
import type { ConditionType, REASONS, StalledReason } from '../schema/reasons.ts'
import type { SourceRef } from '../schema/source-ref.ts'
import { MAX_ACTIVE } from '../schema/status.ts'
import type { Source } from '../sources/source-kind.ts'
import { sourceKindOf } from '../sources/source-kinds.ts'
import type { ReasonRight } from '../sources/watch-sources.ts'
import { isPingTimeDue } from './ping-time.ts'

/** The result of a sync. */
export type Sync = GivenSync<StalledReason>

export interface Findings {
  /** The id of this installation. */
  readonly installation: string
  readonly sync: Sync
  /** Null while the service holds no check. */
  readonly check: CheckRecord | null
  /** Where the URL is published now; null: nowhere. */
  readonly published: PublishedTarget | null
  /** Why the check went down, while it is down. */
  readonly downReason: FlipReason | null
  /** What is known of that, in words, as in the history. Default: null. */
  readonly downDetail?: string | null
  /** Of a check that follows a source. */
  readonly followed?: FollowedFindings
  /** Left out: the resource depends on none, or it is not known what became of its names. */
  readonly dependencies?: DependencyFindings
}

export interface FollowedFindings {
  /** Null: it is not there. Undefined: it cannot be read. */
  readonly source: Source | null | undefined
  readonly lastRun: LastRun | null
  /** What only reasons need. Default: nothing is missing. */
  readonly missingRights?: readonly ReasonRight[]
}

export function computeStatus(object: HeartbeatCheck, findings: Findings, now: Instant): HeartbeatCheckStatus {
  const { sync, check, published, installation } = findings
  const before = object.status ?? {}
  const generation = object.metadata.generation ?? 0
  const conditions: Condition[] = []
  const add = (statement: Statement) => conditions.push(toCondition(object, statement, now))
  for (const one of describeSync(sync, describeSynced(published, findings.followed?.missingRights))) add(one)
  if (published !== null || !publishesNothing(object.spec)) add(describePublished(sync, published))
  if (findings.dependencies !== undefined) add(describeDependencies(findings.dependencies))
  const job = check && withRun(describeJob(check, findings, now), check, findings.followed?.lastRun ?? null)
  if (job !== null) add(job)
  const status = {
    observedGeneration: generation,
    installation,
    ...(check === null
      ? {}
      : {
          checkId: check.id,
          slug: check.slug,
          state: shownStatus(check.state, now),
          stateTime: toTime(check.state.since),
          ...describeSchedule(check),
          ...(check.state.lastPingAt === null ? {} : { lastPingTime: toTime(check.state.lastPingAt) }),
        }),
    ...(job === null || job.status === 'True' ? {} : { reason: job.reason }),
    ...(sync.kind === 'retrying' ? {} : handledRequest(object, now)),
    ...(published === null ? {} : { published }),
    ...(findings.followed === undefined ? {} : describeFollowed(object, findings.followed)),
    conditions,
  }
  return check === null ? status : holdPingTime(before, status, check)
}

function describeFollowed({ status, spec }: HeartbeatCheck, { source, lastRun }: FollowedFindings) {
  const shown =
    source === undefined ? status?.source : source === null ? undefined : describeSource(spec.sourceRef!, source)
  return {
    ...(shown === undefined ? {} : { source: shown }),
    ...(lastRun === null ? {} : { lastRun: describeRun(lastRun) }),
  }
}

export function describeSource(
  { kind }: Pick<SourceRef, 'kind'>,
  { metadata: { name, uid }, suspended, lastScheduleTime, active }: Source,
): SourceStatus {
  return {
    apiGroup: sourceKindOf(kind).type.group,
    kind,
    name,
    uid,
    suspended,
    ...(lastScheduleTime === null ? {} : { lastScheduleTime }),
    active: active.slice(0, MAX_ACTIVE),
  }
}

function describeRun({ job, outcome, ...rest }: LastRun): LastRunStatus {
  const { startTime, completionTime, exitCode, reason, message } = rest
  return {
    name: job,
    ...(startTime === null ? {} : { startTime }),
    ...(completionTime === null ? {} : { completionTime }),
    outcome,
    ...(exitCode === null ? {} : { exitCode }),
    ...(reason === null ? {} : { reason }),
    ...(message === null ? {} : { message: cutMessage(message) }),
  }
}

export type SourceStatus = NonNullable<HeartbeatCheckStatus['source']>
type LastRunStatus = NonNullable<HeartbeatCheckStatus['lastRun']>

/** A ping alone changes the status only when its time is due. */
function holdPingTime(
  before: HeartbeatCheckStatus,
  after: HeartbeatCheckStatus,
  { spec, state }: CheckRecord,
): HeartbeatCheckStatus {
  if (!isPingAlone(before, after)) return after
  const shownAt = before.lastPingTime === undefined ? null : Date.parse(before.lastPingTime)
  return isPingTimeDue(shownAt, state.lastPingAt!, spec) ? after : before
}

/** Whether nothing but the time of a ping has changed. */
function isPingAlone(before: HeartbeatCheckStatus | undefined, after: HeartbeatCheckStatus): boolean {
  if (before === undefined || after.lastPingTime === undefined || before.lastPingTime === after.lastPingTime)
    return false
  return isSameStatus({ ...before, lastPingTime: after.lastPingTime }, after)
}

/**
 * What the service holds, which is not what the resource says while that is not in the service. Of a source that cannot
 * be read it holds no schedule.
 */
function describeSchedule({ spec }: CheckRecord) {
  const { periodSeconds, schedule, timeZone, graceSeconds } = spec
  if (schedule === null && periodSeconds === null) return { graceSeconds }
  return {
    ...(schedule === null ? {} : { schedule }),
    ...(periodSeconds === null ? {} : { periodSeconds }),
    cadence: schedule ?? `every ${describePeriod(periodSeconds!)}`,
    ...(timeZone === null ? {} : { timeZone }),
    graceSeconds,
  }
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['m', 60],
] as const

/** In the largest unit that needs no second one: `1h`, `90s`. */
function describePeriod(seconds: number): string {
  const [unit, size] = UNITS.find(([, size]) => seconds % size === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}

/** A condition of one type, with a reason of that type. */
type Statement<Type extends ConditionType = ConditionType> = {
  [T in Type]: { readonly type: T; readonly reason: (typeof REASONS)[T][number] } & Pick<
    Condition,
    'status' | 'message'
  >
}[Type]

function describeSynced(published: PublishedTarget | null, missing: readonly ReasonRight[] = []): string {
  const where = published === null ? '' : `; its ping URL is in ${published.kind} ${published.name}`
  const limits = missing.map(({ right, effect }) => `; the operator may not ${right}, so ${effect}`).join('')
  return `the service holds this specification${where}${limits}${limits === '' ? '' : `: ${RESTORE_RIGHTS}`}`
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

const up = (status: Condition['status'], reason: Statement<'Up'>['reason'], message: string): Statement<'Up'> => ({
  type: 'Up',
  status,
  reason,
  message,
})

/** No message holds a time that changes with each ping: each change of a message is a write. */
function describeJob(
  { spec, state }: CheckRecord,
  { downReason, downDetail = null }: Pick<Findings, 'downReason' | 'downDetail'>,
  now: Instant,
): Statement<'Up'> {
  switch (shownStatus(state, now)) {
    case 'new': {
      const due = isUnarmed(state)
        ? '; nothing is expected before its ping URL is published'
        : state.dueAt === null
          ? ''
          : `; it counts as missed at ${toTime(state.dueAt)}`
      return up('Unknown', 'New', `nothing to judge yet: no completion since it was made or resumed${due}`)
    }
    case 'up':
      return up('True', 'OnTime', 'the job reports on time')
    case 'late': {
      const due = state.dueAt === null ? '' : `, it counts as missed at ${toTime(state.dueAt)}`
      const awaited = isFollowing(spec) ? 'a run was expected to start' : 'a completion was expected'
      return up('True', 'Late', `${awaited} at ${toTime(state.expectedAt!)}${due}`)
    }
    case 'down':
      return explainDown(describeDown(downReason, toTime(state.since), isFollowing(spec)), downDetail)
    case 'paused': {
      const until = state.pause?.until ?? null
      const end = until === null ? '' : ` until ${toTime(until)}`
      return up('Unknown', 'Suspended', `the check is paused${end}: nothing is expected of the job`)
    }
  }
}

/** Whether it awaits the start of a run of its source, not a completion. */
export function isFollowing({ jobArea }: Pick<StoredSpec, 'jobArea'>): boolean {
  return jobArea != null
}

/**
 * Adds what a run in progress says: another container may still do the work of the run, or only keep the pod. The
 * reason of a check that is down says so itself.
 */
function withRun(statement: Statement<'Up'>, { state }: CheckRecord, lastRun: LastRun | null): Statement<'Up'> {
  if (state.status === 'down' || lastRun?.outcome !== 'Running' || lastRun.message === null) return statement
  if (!state.runs.some(({ id }) => id === lastRun.runId)) return statement
  return { ...statement, message: `${statement.message}; a run in progress: ${lastRun.message}` }
}

/** The detail is a sentence of its own, and stays the same until the next flip. */
function explainDown(statement: Statement<'Up'>, detail: string | null): Statement<'Up'> {
  return detail === null ? statement : { ...statement, message: `${statement.message}: ${detail}` }
}

function describeDown(reason: FlipReason | null, at: string, isFollowed: boolean): Statement<'Up'> {
  switch (reason) {
    case 'failed':
      return up('False', 'JobFailed', `the job reported a failure at ${at}`)
    case 'overran':
      return up(
        'False',
        'Overran',
        isFollowed ? `a run had not ended by ${at}` : `a run had taken longer than maxRuntimeSeconds at ${at}`,
      )
    default:
      return up('False', 'Missed', isFollowed ? `no run had started by ${at}` : `no completion was reported by ${at}`)
  }
}
