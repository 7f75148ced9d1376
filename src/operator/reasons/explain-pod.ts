/** A pod in one sentence: what ended it, or what it waits for. */

import type { Instant } from '../../domain/check.ts'
import { firstBytes, toOneLine } from '../../domain/plain-text.ts'
import {
  byEnd,
  hasNotRun,
  type Termination,
  type TrimmedContainer,
  type TrimmedPod,
  type Words,
  wasSignalled,
} from './trim-pod.ts'

export interface Explanation {
  /** At most SENTENCE_BYTES. */
  readonly sentence: string
  /** The word of Kubernetes for it: `OOMKilled`. */
  readonly reason: string | null
  /** The container that it is about. */
  readonly container: TrimmedContainer | null
}

/** The size that a note, a detail and a message of a condition can hold with room to spare. */
export const SENTENCE_BYTES = 1_000
const REASON_BYTES = 128
const SKEW_MS = 5_000
/** Signals that have names; a program that exits with a higher code chose it. */
const MAX_SIGNAL = 31

/** A pod that waits for nothing but its own start has no reason to give. */
const STARTING = new Set(['ContainerCreating', 'PodInitializing'])
/** What containerd and runc say before the fault: 200 characters. */
const RUNTIME = /^.*?container process(?: caused)?: (?:error during container init: )?/s

const withoutRuntime = (message: string | null): string | null => message?.replace(RUNTIME, '') ?? null

/** Returns why the pod failed; null: it did not, or does not say. */
export function explainEnd(pod: TrimmedPod): Explanation | null {
  const failed = findFailed(pod)
  const disruption = explainDisruption(pod)
  const reason = pod.status?.reason ?? null
  if (disruption !== null)
    return explanation(disruption.sentence, reason ?? failed?.failed?.reason ?? disruption.reason, failed)
  // Kubernetes ended the pod and the containers with the pod: how the containers ended says less. Beside a message
  // alone, the signals of the containers show an end by Kubernetes.
  const isEnded = pod.phase === 'Failed' && pod.status !== null
  if (failed !== null && !(isEnded && (reason !== null || wasSignalled(failed.failed!))))
    return explainContainer(failed, failed.failed!)
  return isEnded ? explanation(`pod ${pod.metadata.name} failed${join(pod.status!)}`, reason, failed) : null
}

/** Returns what the pod waits for before it can run; null: for nothing, or it does not say. */
export function explainWaitOf(pod: TrimmedPod): Explanation | null {
  const stuck = pod.containers.find(({ waiting }) => waiting !== null && saysMore(waiting))
  if (stuck !== undefined) return explainStuck(stuck, stuck.waiting!)
  if (pod.unscheduled === null) return null
  const { reason, message } = pod.unscheduled
  return explanation(`pod ${pod.metadata.name} could not be scheduled${join({ reason: null, message })}`, reason, null)
}

/**
 * Returns the container that failed first by itself: after it, others are ended. An init container fails before all
 * others.
 */
export function findFailed(pod: TrimmedPod): TrimmedContainer | null {
  const failures = pod.containers.map((one) => ownFailureOf(one, pod)).filter(({ failed }) => failed !== null)
  const byItself = failures.filter((one) => !wasKilled(one, pod.deletedAt))
  const [first] = (byItself.length > 0 ? byItself : failures).toSorted(byBlame)
  return first ?? null
}

function byBlame(a: TrimmedContainer, b: TrimmedContainer): number {
  return (
    Number(b.isInit) - Number(a.isInit) ||
    Number(a.isSidecar) - Number(b.isSidecar) ||
    Number(a.isRestarted) - Number(b.isRestarted) ||
    // Of attempts that others followed, the last one used up the limit of the Job.
    (a.isRestarted ? timeOf(b) - timeOf(a) : 0) ||
    byEnd(a.failed!, b.failed!)
  )
}

const timeOf = ({ failed }: TrimmedContainer): Instant => failed?.finishedAt ?? Number.MAX_SAFE_INTEGER

/**
 * With restartPolicy OnFailure a Job reaches its backoff limit while the container runs again, and deletes the pod: the
 * attempt before says why. Kubernetes has times in seconds, so an end in the second of the deletion may be either; the
 * attempt before failed in any case.
 */
function ownFailureOf(container: TrimmedContainer, { deletedAt, disruption, status }: TrimmedPod): TrimmedContainer {
  const { failedBefore, endedAt } = container
  if (failedBefore === null || deletedAt === null || disruption !== null || status !== null) return container
  const isEnded = wasKilled(container, deletedAt) || (endedAt !== null && endedAt >= deletedAt)
  return isEnded ? { ...container, failed: failedBefore, isRestarted: true } : container
}

/** Whether the deletion of its pod ended it. Its own signals may come first: the clock of the node may be behind. */
export function wasKilled({ failed, isRestarted }: TrimmedContainer, deletedAt: Instant | null): boolean {
  // Another attempt followed this one.
  if (deletedAt === null || failed === null || failed.finishedAt === null || isRestarted) return false
  return failed.finishedAt > deletedAt - (wasSignalled(failed) ? SKEW_MS : 0)
}

/** A reason of Kubernetes as a word for a status; it comes from a cluster, so its length is limited. */
export const cutReason = (reason: string): string => firstBytes(toOneLine(reason), REASON_BYTES)

/** A container in a crash loop waits because it failed, and that is what to correct. */
function explainStuck(container: TrimmedContainer, waiting: Words): Explanation {
  const { failed, restarts } = container
  if (failed === null)
    return explanation(`${nameOf(container)} could not start${join(waiting)}`, waiting.reason, container)
  const times = restarts === 0 ? '' : `, restarted ${restarts === 1 ? 'once' : `${restarts} times`}`
  return explanation(`${nameOf(container)} ${howItEnded(failed)}${times}${join(waiting)}`, failed.reason, container)
}

function saysMore({ reason, message }: Words): boolean {
  return message !== null || (reason !== null && !STARTING.has(reason))
}

function explainDisruption(pod: TrimmedPod): { sentence: string; reason: string | null } | null {
  const { metadata, status, disruption, node } = pod
  const say = (what: string, words: Words) => ({
    sentence: `pod ${metadata.name} ${what}${join({ reason: null, message: words.message })}`,
    reason: words.reason,
  })
  if (status?.reason === 'Evicted') return say('was evicted', status)
  if (status?.reason === 'Preempting') return say('was preempted', status)
  if (status?.reason === 'NodeLost') return say(lost(node), status)
  switch (disruption?.reason) {
    case 'PreemptionByScheduler':
      return say('was preempted', disruption)
    case 'EvictionByEvictionAPI':
    case 'DeletionByTaintManager':
      return say('was evicted', disruption)
    case 'DeletionByPodGC':
      return say(lost(node), disruption)
    case 'TerminationByKubelet':
      return say('was ended by its node', status?.message ? status : disruption)
    default:
      return null
  }
}

const lost = (node: string | null) => (node === null ? 'was lost' : `was lost with node ${node}`)

function explainContainer(container: TrimmedContainer, failed: Termination): Explanation {
  return explanation(`${nameOf(container)} ${howItEnded(failed)}`, failed.reason, container)
}

/** In words that follow the name of the container. */
export function howItEnded(failed: Termination): string {
  const { reason, exitCode } = failed
  const code = `(exit code ${exitCode})`
  if (reason === 'OOMKilled') return `was OOMKilled ${code}`
  if (hasNotRun(failed)) return `could not start${join({ reason, message: withoutRuntime(failed.message) })}`
  if (reason === 'ContainerStatusUnknown') return `was lost${join({ ...failed, reason: null })} ${code}`
  const signal = failed.signal ?? (exitCode > 128 && exitCode <= 128 + MAX_SIGNAL ? exitCode - 128 : null)
  return signal === null ? `failed ${code}` : `was killed by signal ${signal} ${code}`
}

const nameOf = ({ name, isInit }: TrimmedContainer) => `${isInit ? 'init container' : 'container'} ${name}`

/** `: REASON: message`, without the parts that have no content. */
export function join({ reason, message }: Words): string {
  const parts = [reason, message].map((part) => toOneLine(part ?? '')).filter((part) => part !== '')
  return parts.map((part) => `: ${part}`).join('')
}

function explanation(sentence: string, reason: string | null, container: TrimmedContainer | null): Explanation {
  return { sentence: firstBytes(toOneLine(sentence), SENTENCE_BYTES), reason, container }
}
