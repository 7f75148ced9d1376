/**
 * Why no run of a CronJob has started for a slot: what its pods wait for, why its Job has no pod, why it has no Job,
 * which Job blocks others (docs/use/cronjobs.md). Pure.
 */

import type { Instant } from '../../domain/check.ts'
import { firstBytes, toOneLine } from '../../domain/plain-text.ts'
import { type CoreEvent, toTime } from '../../kubernetes/objects.ts'
import { FIELD_MANAGER } from '../names.ts'
import type { Source, SourceRun } from '../sources/source-kind.ts'
import { explainWaitOf, join, SENTENCE_BYTES } from './explain-pod.ts'
import type { TrimmedPod } from './trim-pod.ts'

/** What is in the caches of a slot without a started run. */
export interface WaitingSlot {
  readonly source: Source
  readonly slotAt: Instant
  readonly now: Instant
  /** That of its runs that waits for the slot: it has neither started nor ended. */
  readonly run: SourceRun | null
  /** Of `run`; where no run waits, of the one that blocks others. */
  readonly pods: readonly TrimmedPod[]
}

export interface WaitReason {
  /** The Job that waits, or that blocks others. */
  readonly job: string | null
  /** One sentence, at most 1,000 bytes. */
  readonly detail: string
}

/** An object whose Events say more than its fields. */
export interface Subject {
  readonly kind: 'CronJob' | 'Job' | 'Pod'
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The newest Warning of an object. */
export interface Warning {
  readonly reason: string
  readonly message: string
  readonly at: Instant
}

/** The clocks of the controllers may be behind ours. */
const SKEW_MS = 60_000
const MESSAGE_LENGTH = 2_048
/** The Event of a CronJob about a Job that its controller did not make. */
const MANUAL = 'UnexpectedJob'

/** What decides which run waits for a slot. */
export interface MissedSlot {
  readonly source: Pick<Source, 'concurrencyPolicy'>
  readonly slotAt: Instant
  /** The uids of the runs that are recorded as started: they may look as if they had not, between two attempts. */
  readonly started: readonly string[]
}

/** Returns the newest; with Forbid, one of a slot before blocks the missed one, and does not wait for it. */
export function findWaitingRun(runs: Iterable<SourceRun>, { source, slotAt, started }: MissedSlot): SourceRun | null {
  const from = source.concurrencyPolicy === 'Forbid' ? slotAt : Number.NEGATIVE_INFINITY
  let newest: SourceRun | null = null
  for (const run of runs) {
    const isWaiting = run.outcome === null && run.slotAt >= from && !started.includes(run.metadata.uid)
    if (isWaiting && (newest === null || run.createdAt > newest.createdAt)) newest = run
  }
  return newest
}

/** Returns the name of the Job beside which Forbid lets no other start. */
export function findBlockingJob({
  concurrencyPolicy,
  active,
}: Pick<Source, 'concurrencyPolicy' | 'active'>): string | null {
  return concurrencyPolicy === 'Forbid' ? (active[0] ?? null) : null
}

/** Returns whose Events to list; null: the caches hold the reason. */
export function findSubject(slot: WaitingSlot): Subject | null {
  const { source, run } = slot
  if (explainFromFields(slot) !== null) return null
  if (run === null) return { kind: 'CronJob', ...nameOf(source) }
  const pod = newestOf(slot.pods)
  return pod === null ? { kind: 'Job', ...nameOf(run) } : { kind: 'Pod', ...nameOf(pod) }
}

/** `warning`: of the object that findSubject names; null: it has none, or that is not known. */
export function explainWait(slot: WaitingSlot, warning: Warning | null): WaitReason {
  const { job, detail } = explainFromFields(slot) ?? explainFromWarning(slot, warning) ?? explainFromState(slot)
  return { job, detail: firstBytes(toOneLine(detail), SENTENCE_BYTES) }
}

/** What client-go puts before the message of an Event that stands for many. */
const COMBINED = /^\(combined from similar events\): /

/** What the operator itself reports explains nothing, nor does a Job that a person made from the CronJob. */
export function newestWarning(events: readonly CoreEvent[]): Warning | null {
  const warnings = events.filter(
    (event) => event.type === 'Warning' && event.message && !isOurs(event) && event.reason !== MANUAL,
  )
  const [newest] = warnings.toSorted((a, b) => timeOf(b) - timeOf(a))
  if (newest === undefined) return null
  const { reason = '', message = '' } = newest
  return { reason, message: message.replace(COMBINED, '').slice(0, MESSAGE_LENGTH), at: timeOf(newest) }
}

function explainFromFields({ source, run, pods }: WaitingSlot): WaitReason | null {
  if (run === null) return explainBlock(source, pods)
  const job = run.metadata.name
  if (run.suspended)
    return { job, detail: `Job ${job} is suspended: its queue starts it, or set spec.suspend to false` }
  const newestFirst = pods.toSorted((a, b) => b.createdAt - a.createdAt)
  for (const pod of newestFirst) {
    const wait = explainWaitOf(pod)
    if (wait !== null) return { job, detail: wait.sentence }
  }
  const pod = newestFirst[0]
  if (pod === undefined || !pod.isUnready) return null
  return { job, detail: `pod ${pod.metadata.name} runs but is not ready: see its readiness probe` }
}

/** A Job that blocks others because it cannot start itself says why. */
function explainBlock(source: Source, pods: readonly TrimmedPod[]): WaitReason | null {
  const job = findBlockingJob(source)
  if (job === null) return null
  const pod = newestOf(pods)
  const wait = pod === null ? null : explainWaitOf(pod)
  const blocks = `Job ${job} is still active, and concurrencyPolicy Forbid lets no other Job start beside it`
  return { job, detail: wait === null ? blocks : `${blocks}: ${wait.sentence}` }
}

function explainFromWarning({ run, pods, slotAt }: WaitingSlot, warning: Warning | null): WaitReason | null {
  // A CronJob has Events of the slots before, too.
  if (warning === null || (run === null && warning.at < slotAt - SKEW_MS)) return null
  const { reason, message } = warning
  const pod = newestOf(pods)
  // Of a Job and a CronJob the message is a sentence.
  const detail = pod === null ? message : `pod ${pod.metadata.name} could not start${join({ reason, message })}`
  return { job: run?.metadata.name ?? null, detail }
}

const isOurs = ({ reportingComponent, source }: CoreEvent) =>
  (reportingComponent || source?.component) === FIELD_MANAGER

function explainFromState({ source, slotAt, now, run, pods }: WaitingSlot): WaitReason {
  const job = run?.metadata.name ?? null
  const pod = newestOf(pods)
  if (pod !== null) {
    const waiting = pod.containers.find((container) => container.waiting !== null)?.waiting?.reason
    return { job, detail: `pod ${pod.metadata.name} has not started: ${waiting ?? pod.phase}` }
  }
  if (job !== null) return { job, detail: `Job ${job} has no pod: see kubectl describe job ${job}` }
  return { job, detail: explainSource(source, slotAt, now) }
}

function explainSource(source: Source, slotAt: Instant, now: Instant): string {
  const { metadata, suspended, startingDeadlineSeconds: deadline, lastScheduleTime } = source
  const name = `CronJob ${metadata.name}`
  const slot = `the slot at ${toTime(slotAt)}`
  if (suspended) return `${name} is suspended`
  if (lastScheduleTime !== null && Date.parse(lastScheduleTime) >= slotAt)
    return `the Job of ${name} for ${slot} was deleted before it started`
  if (deadline !== null && now > slotAt + deadline * 1_000)
    return `${name} created no Job for ${slot} within startingDeadlineSeconds (${deadline})`
  const last = lastScheduleTime === null ? 'it has never created one' : `its last schedule time is ${lastScheduleTime}`
  return `${name} created no Job for ${slot}, and ${last}: check that kube-controller-manager runs`
}

function timeOf({ series, lastTimestamp, eventTime, firstTimestamp, metadata }: CoreEvent): Instant {
  const times = [series?.lastObservedTime, lastTimestamp, eventTime, firstTimestamp, metadata.creationTimestamp]
  return Math.max(0, ...times.map((time) => Date.parse(time ?? '')).filter((at) => !Number.isNaN(at)))
}

function newestOf(pods: readonly TrimmedPod[]): TrimmedPod | null {
  return pods.toSorted((a, b) => b.createdAt - a.createdAt)[0] ?? null
}

const nameOf = ({ metadata: { namespace, name, uid } }: Source | SourceRun | TrimmedPod) => ({ namespace, name, uid })
