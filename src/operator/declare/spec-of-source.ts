/**
 * What a check takes from the source that it follows (design, section 6, "CronJobs"): its schedule, its suspension, and
 * how long a run may take. Pure, apart from the cache of sources that it reads.
 */

import type { GivenSpec } from '../../checks/find-checks.ts'
import { completeSpec, NO_SPEC, readSpec } from '../../checks/read-spec.ts'
import type { Instant } from '../../domain/check.ts'
import { AppError, describeError } from '../../domain/errors.ts'
import { FOLLOWED_DEFAULTS, type LimitFrom } from '../../domain/followed-defaults.ts'
import { LIMITS } from '../../domain/limits.ts'
import { keyOf } from '../../kubernetes/objects.ts'
import type { Follows } from '../heartbeat-check.ts'
import { RESTORE_RIGHTS } from '../names.ts'
import type { SourceReader } from '../sources/read-source.ts'
import type { Source, SourceRun, SourceSchedule } from '../sources/source-kind.ts'
import { sourceKindOf } from '../sources/source-kinds.ts'
import { Stalled } from '../status/stalled.ts'

export interface SourceOptions {
  /** Null: WATCH_CRONJOBS is none. Default: null. */
  readonly sources?: SourceReader | null
  /** The zone of the schedules of sources that name none. Default: Etc/UTC. */
  readonly sourceZone?: string
}

const DEFAULT_SOURCE_ZONE = 'Etc/UTC'
/**
 * In place of the schedule of a source that is not there, or whose schedule cannot be read: nothing is expected then.
 */
export const NO_SCHEDULE = { schedule: null, periodSeconds: null, timeZone: null }

/** `pauseDetail`: why nothing is expected of it now, in words; null: something is, or what was expected before. */
export type SpecOfSource =
  | {
      readonly kind: 'read'
      readonly spec: GivenSpec
      readonly limitFrom: LimitFrom
      readonly pauseDetail: string | null
      readonly succeededAt: Instant | null
    }
  /**
   * `begin`: what a check that is not there yet begins with, paused; null: none is made, as long as the fault lasts.
   */
  | {
      readonly kind: 'fault'
      readonly fault: Stalled
      readonly pauseDetail: string | null
      readonly begin: GivenSpec | null
    }

/** Call it when the sources of the namespace are not awaited. */
export function specOfSource(
  { sources = null, sourceZone = DEFAULT_SOURCE_ZONE }: SourceOptions,
  namespace: string,
  follows: Follows,
): SpecOfSource {
  const fail = (fault: Stalled, pauseDetail: string | null = null, begin: GivenSpec | null = null): SpecOfSource => ({
    kind: 'fault',
    fault,
    pauseDetail,
    begin,
  })
  const { kind, name } = follows
  if (sources === null) return fail(new Stalled('SourceForbidden', OFF))
  const missing = sources.missingRight(namespace)
  if (missing !== null) return fail(new Stalled('SourceForbidden', describeMissing(missing)))
  const source = sources.getSource(keyOf({ namespace, name }))
  const area = sources.areaOf(namespace)
  if (source === undefined) {
    const detail = `the namespace ${namespace} has no ${kind} ${name}`
    const message = `${detail}, which spec.sourceRef names: create it, or delete this HeartbeatCheck; the check is paused until the ${kind} is there`
    return fail(new Stalled('SourceNotFound', message), detail, toSpec(area, null, follows, NO_SCHEDULE))
  }
  const spec = readSchedule(area, source, sourceZone, follows)
  if (typeof spec !== 'string') {
    const pauseDetail = source.suspended ? `the ${kind} ${name} is suspended` : null
    const succeededAt = succeededAtOf(source, sources.runsOf(source.metadata.uid))
    return { kind: 'read', spec, limitFrom: limitFromOf(follows, source), pauseDetail, succeededAt }
  }
  const detail = `the ${kind} ${name} ${spec}`
  const message = `${detail}: correct it; until then the check is paused, and no run is expected`
  return fail(new Stalled('InvalidSpec', message, true), detail, toSpec(area, source, follows, NO_SCHEDULE))
}

const OFF =
  'the operator reads no CronJobs, because WATCH_CRONJOBS is none: it needs list and watch of cronjobs.batch, jobs.batch and pods. Set WATCH_CRONJOBS (in the chart cronJobs.watch) to labelled, or delete this HeartbeatCheck; until then no run is recorded and none is missed'

function describeMissing(right: string): string {
  const effect = / pods( |$)/.test(right)
    ? 'runs are recorded without the reasons of their pods, and no new check is made'
    : 'runs may be incomplete, and none is called missed'
  return `the operator may not ${right}: ${RESTORE_RIGHTS}. Until then ${effect}`
}

/** Returns what is wrong, in words that follow the name of the source. */
function readSchedule(jobArea: string, source: Source, zone: string, follows: Follows): GivenSpec | string {
  const read = sourceKindOf(follows.kind).scheduleOf(source, zone)
  if ('fault' in read) return read.fault
  const spec = toSpec(jobArea, source, follows, read)
  try {
    readSpec(completeSpec(spec, 'kubernetes'))
    return spec
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return `has a schedule by which no run can be expected: ${describeError(error, (field) => NAMES[field] ?? field).text}`
  }
}

/** `source`: null: it is not there. */
function toSpec(
  jobArea: string,
  source: Source | null,
  { graceSeconds, maxRuntimeSeconds, judging }: Follows,
  schedule: Exclude<SourceSchedule, { fault: string }> | typeof NO_SCHEDULE,
): GivenSpec {
  return {
    ...NO_SPEC,
    ...judging,
    ...schedule,
    graceSeconds: graceSeconds ?? FOLLOWED_DEFAULTS.graceSeconds,
    maxRuntimeSeconds: maxRuntimeSeconds ?? longestRun(source),
    jobArea,
  }
}

const NAMES: Readonly<Record<string, string>> = { schedule: 'spec.schedule', timeZone: 'spec.timeZone' }

function longestRun(source: Source | null): number {
  const activeDeadlineSeconds = source?.activeDeadlineSeconds ?? null
  const { maxRuntimeSeconds, beyondDeadlineSeconds } = FOLLOWED_DEFAULTS
  if (activeDeadlineSeconds === null) return maxRuntimeSeconds
  return Math.min(activeDeadlineSeconds + beyondDeadlineSeconds, LIMITS.maxRuntimeSeconds.max)
}

function limitFromOf({ maxRuntimeSeconds }: Follows, { activeDeadlineSeconds }: Source): LimitFrom {
  if (maxRuntimeSeconds !== null) return 'resource'
  return activeDeadlineSeconds === null ? 'default' : 'deadline'
}

/** When the newest run that has ended did so, if it succeeded; null: it failed, or none is known. */
export function succeededAtOf(
  { lastSuccessfulTime }: Pick<Source, 'lastSuccessfulTime'>,
  runs: Iterable<Pick<SourceRun, 'outcome' | 'endedAt'>>,
): Instant | null {
  // Of a run that is gone only the CronJob knows, and only of a success.
  let succeededAt = lastSuccessfulTime === null ? Number.NaN : Date.parse(lastSuccessfulTime)
  let failedAt = Number.NEGATIVE_INFINITY
  for (const { outcome, endedAt } of runs) {
    if (outcome === 'Succeeded' && !(endedAt! <= succeededAt)) succeededAt = endedAt!
    if (outcome === 'Failed') failedAt = Math.max(failedAt, endedAt!)
  }
  return succeededAt > failedAt ? succeededAt : null
}

/** Whether a change of the source changes what its checks expect of it. */
export function isRescheduled(before: Source, after: Source): boolean {
  const of = ({ metadata, schedule, timeZone, suspended, activeDeadlineSeconds }: Source) =>
    JSON.stringify([metadata.uid, schedule, timeZone, suspended, activeDeadlineSeconds])
  return of(before) !== of(after)
}
