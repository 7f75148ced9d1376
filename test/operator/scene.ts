/**
 * What the files of this lane share: each has a fake API server, a database and an operator that polls and resyncs
 * often.
 */

import type { OperatorOptions } from '../../src/operator/operator.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { fasterClock, type Scene, startScene } from '../support/operator.ts'
import { use } from '../support/use.ts'

/** Of the operator's clock: what it waits for takes this part of its time. */
export const FASTER = 3

/**
 * Holds what Scene says from the first test of the file to its last. The clock is `FASTER`, unless `changes` say
 * otherwise.
 */
export function useScene(
  changes: Partial<OperatorOptions> = {},
  environment: Record<string, string> = {},
): Scene<FakeCluster> {
  const cluster = use(() => startFakeCluster({ secondMs: 1_000 / FASTER }))
  const often = { pollMs: 500, resyncMs: 2_500, seenEveryMs: 450 }
  return use(() => startScene(cluster, { clock: fasterClock(FASTER), ...often, ...changes }, undefined, environment))
}
