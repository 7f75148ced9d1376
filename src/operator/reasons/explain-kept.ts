/** What keeps a Job from its end although its container has ended or a container has failed: such as a proxy. Pure. */

import { firstBytes, toOneLine } from '../../domain/plain-text.ts'
import type { Failure } from './explain-failure.ts'
import { cutReason, howItEnded } from './explain-pod.ts'
import type { TrimmedPod } from './trim-pod.ts'

const MAX_BYTES = 600

/** Of the newest pod that is kept; null: none is. `exitCode`: null for one that has not failed. */
export function explainKept(pods: readonly TrimmedPod[]): Failure | null {
  const newestFirst = pods.toSorted((a, b) => b.createdAt - a.createdAt)
  const kept = newestFirst.find((pod) => pod.kept !== null && pod.deletedAt === null)?.kept ?? null
  if (kept === null) return null
  const { name, ended, by } = kept
  const how = ended.exitCode === 0 ? 'has ended (exit code 0)' : howItEnded(ended)
  const [others, keep] = by.length === 1 ? [`container ${by[0]}`, 'keeps'] : [`containers ${by.join(', ')}`, 'keep']
  return {
    firstLine: firstBytes(toOneLine(`container ${name} ${how}, and ${others} ${keep} the pod running`), MAX_BYTES),
    body: '',
    exitCode: ended.exitCode === 0 ? null : ended.exitCode,
    reason: cutReason(ended.reason ?? 'Completed'),
    container: null,
  }
}
