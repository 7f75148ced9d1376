/** What the files of this lane share: each has a fake API server, a database and an operator that polls and resyncs often. */

import type { OperatorOptions } from '../../src/operator/operator.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { type Scene, startScene } from '../support/operator.ts'
import { use } from '../support/use.ts'

/** Holds what Scene says from the first test of the file to its last. */
export function useScene(changes: Partial<OperatorOptions> = {}): Scene<FakeCluster> {
  const cluster = use(startFakeCluster)
  return use(() => startScene(cluster, { pollMs: 100, resyncMs: 500, seenEveryMs: 300, ...changes }))
}
