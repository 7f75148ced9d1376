/**
 * Why a Job failed, from its condition and its pods (docs/use/cronjobs.md). Pure: the texts of containers and of the
 * cluster are data of others.
 */

import type { Instant } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { cleanOutput, firstBytes, lastBytes, toOneLine } from '../../domain/plain-text.ts'
import {
  cutReason,
  type Explanation,
  explainEnd,
  explainWaitOf,
  findFailed,
  join,
  SENTENCE_BYTES,
  wasKilled,
} from './explain-pod.ts'
import { hasNotRun, type Termination, type TrimmedPod } from './trim-pod.ts'

/** What a failure says of itself. */
export interface Failure {
  /** One sentence, which is also the message of the last run; at most 1,000 bytes. */
  readonly firstLine: string
  /** Plain text of several lines, which begins with `firstLine`; at most 10,240 bytes. */
  readonly body: string
  /** Of the container that failed, 1 to 255. */
  readonly exitCode: number | null
  /** The container's (`OOMKilled`, `Error`), otherwise the pod's, otherwise that of the Job's condition. */
  readonly reason: string
  /** Whose log shows more. */
  readonly container: FailedContainer | null
}

export interface FailedContainer {
  readonly pod: string
  readonly name: string
  /** It runs again since. */
  readonly isRestarted: boolean
}

/** What is needed of a failed Job. */
export interface FailedRun {
  readonly metadata: { readonly name: string }
  /** Of type Failed. */
  readonly condition: { readonly reason: string; readonly message: string } | null
  readonly backoffLimit: number | null
  readonly failedPods: number
  /** Of an indexed Job: `1,3-5`. */
  readonly failedIndexes?: string | null
}

const CONDITION_BYTES = 2_048
const TERMINATION_MESSAGE_BYTES = 4_096

/** `log`: the last lines of `container`, where it may be read. */
export function explainFailure(run: FailedRun, pods: readonly TrimmedPod[], log: string | null = null): Failure {
  const { name } = run.metadata
  const isTooLong = run.condition?.reason === 'DeadlineExceeded'
  const pod = findCulprit(run, pods)
  const end = pod === null ? null : explainEnd(pod)
  const cause = (isTooLong ? null : end) ?? (pod === null ? null : explainWaitOf(pod))
  const failed = pod === null ? null : findFailed(pod)
  const jobLine = firstBytes(
    `Job ${name} failed${join(run.condition ?? { reason: null, message: null })}`,
    CONDITION_BYTES,
  )

  const firstLine =
    cause?.sentence ??
    (isTooLong ? `Job ${name} ran longer than activeDeadlineSeconds` : firstBytes(jobLine, SENTENCE_BYTES))
  const lines = [firstLine]
  if (jobLine !== firstLine) lines.push(jobLine)
  if (run.failedIndexes) lines.push(firstBytes(`failed indexes: ${toOneLine(run.failedIndexes)}`, SENTENCE_BYTES))
  // Before the Job ended it: an attempt that failed by itself.
  if (isTooLong && end !== null && !wasEndedByDeletion(pod!)) lines.push(end.sentence)
  if (pod !== null) lines.push(describePod(run, pod))

  const container = failed ?? cause?.container ?? null
  return {
    firstLine,
    body: addOutput(lines.join('\n'), container?.name ?? null, outputOf(failed?.failed), log),
    exitCode: exitCodeOf(failed?.failed?.exitCode),
    reason: cutReason(reasonOf(run, end, cause, pod)),
    container:
      pod === null || failed === null
        ? null
        : { pod: pod.metadata.name, name: failed.name, isRestarted: failed.isRestarted },
  }
}

function reasonOf(run: FailedRun, end: Explanation | null, cause: Explanation | null, pod: TrimmedPod | null): string {
  const ofPod = end?.reason ?? cause?.reason ?? pod?.status?.reason ?? pod?.disruption?.reason
  return ofPod ?? (run.condition?.reason || 'Failed')
}

/**
 * The pod that the Job's condition names, otherwise the newest of those that failed by themselves, otherwise the
 * newest.
 */
function findCulprit({ condition }: FailedRun, pods: readonly TrimmedPod[]): TrimmedPod | null {
  const named = /\bpod [^\s/]+\/(\S+)/i.exec(condition?.message ?? '')?.[1]
  const found = pods.find(({ metadata }) => metadata.name === named)
  if (found !== undefined) return found
  const byTime = pods.toSorted((a, b) => lastTimeOf(b) - lastTimeOf(a))
  // The attempt that was too long is the last one, however those before it ended.
  if (condition?.reason === 'DeadlineExceeded') return byTime.find(isAlive) ?? byTime[0] ?? null
  const failed = byTime.filter((pod) => explainEnd(pod) !== null && !wasEndedByDeletion(pod))
  return failed[0] ?? byTime.find((pod) => explainWaitOf(pod) !== null) ?? byTime[0] ?? null
}

/** It ran or waited when its Job was ended. */
const isAlive = (pod: TrimmedPod) => pod.phase !== 'Failed' || wasEndedByDeletion(pod)

/** When a Job ends, the pods that still run are deleted, and their containers are killed. */
function wasEndedByDeletion(pod: TrimmedPod): boolean {
  if (pod.deletedAt === null || pod.disruption !== null || pod.status !== null) return false
  const failed = findFailed(pod)
  return failed === null || wasKilled(failed, pod.deletedAt)
}

function lastTimeOf(pod: TrimmedPod): Instant {
  return findFailed(pod)?.failed?.finishedAt ?? pod.createdAt
}

/** `pod NAME (index 3) on node worker-3, attempt 4 of 4`. */
function describePod({ backoffLimit, failedPods }: FailedRun, pod: TrimmedPod): string {
  const { metadata, node, index, containers } = pod
  const where = `${index === null ? '' : ` (index ${index})`}${node === null ? '' : ` on node ${toOneLine(node)}`}`
  // Pods of an indexed Job run side by side: the Job counts no attempts of one.
  if (backoffLimit === null || index !== null) return `pod ${metadata.name}${where}`
  // Either pods are replaced or their containers restarted, as the pod's restartPolicy says.
  const attempt = Math.max(1, failedPods) + Math.max(0, ...containers.map(({ restarts }) => restarts))
  const isKnown = attempt <= backoffLimit + 1
  return `pod ${metadata.name}${where}${isKnown ? `, attempt ${attempt} of ${backoffLimit + 1}` : ''}`
}

const exitCodeOf = (code: number | undefined): number | null =>
  code !== undefined && code >= 1 && code <= LIMITS.exitCode ? code : null

/** What the container wrote. Without a run the first line has the message, which is of the runtime. */
const outputOf = (failed: Termination | null | undefined) =>
  failed == null || hasNotRun(failed) ? null : failed.message

function addOutput(head: string, container: string | null, message: string | null, log: string | null): string {
  let body = head
  const last = log === null ? '' : cleanOutput(log)
  const left = cleanOutput(message ?? '')
  // With FallbackToLogsOnError the message is the end of the log.
  if (left !== '' && !last.includes(left))
    body += `\n--- termination message\n${firstBytes(left, TERMINATION_MESSAGE_BYTES)}`
  if (last === '') return body
  body += `\n--- last lines of container ${container}\n`
  return body + lastBytes(last, LIMITS.pingBodyBytes - Buffer.byteLength(body))
}
