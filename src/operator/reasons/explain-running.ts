/** What a Job does that takes too long: its newest pod, where it runs, and what is wrong with it. Pure. */

import { firstBytes } from '../../domain/plain-text.ts'
import { explainKept } from './explain-kept.ts'
import { explainEnd, explainWaitOf } from './explain-pod.ts'
import type { TrimmedPod } from './trim-pod.ts'

/** It follows the name of the Job and its limit in one detail. */
const MAX_BYTES = 700

/** Returns words that follow a colon; null: the Job has no pod that is known. */
export function explainRunning(pods: readonly TrimmedPod[]): string | null {
  const newestFirst = pods.toSorted((a, b) => b.createdAt - a.createdAt)
  const pod = newestFirst.find(({ phase, deletedAt }) => phase !== 'Failed' && deletedAt === null) ?? newestFirst[0]
  if (pod === undefined) return null
  const { node, metadata } = pod
  const where = `pod ${metadata.name}${node === null ? '' : ` on node ${node}`}`
  // Of a container that runs again, the attempt before is not what takes long.
  const fault =
    explainKept([pod])?.firstLine ??
    (explainWaitOf(pod) ?? (pod.phase === 'Failed' ? explainEnd(pod) : null))?.sentence ??
    null
  if (fault === null) return where
  return firstBytes(fault.startsWith(`pod ${metadata.name} `) ? fault : `${where}: ${fault}`, MAX_BYTES)
}
