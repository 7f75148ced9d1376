/**
 * What the files of this lane share: each has a fake API server, a database and an operator that polls and resyncs
 * often.
 */

import { afterAll, beforeAll } from 'vitest'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { fasterClock, type Scene, startScene } from '../support/operator.ts'

/** Of the operator's clock: what it waits for takes this part of its time. */
export const FASTER = 3

/**
 * Holds what Scene says from the first test of the file to its last. The clock is `FASTER`, unless `changes` say
 * otherwise.
 */
export function useScene(changes: Partial<OperatorOptions> = {}): Scene<FakeCluster> {
  const scene = {} as Scene<FakeCluster>
  const stack = new AsyncDisposableStack()
  beforeAll(async () => {
    const cluster = stack.use(await startFakeCluster({ secondMs: 1_000 / FASTER }))
    const often = { clock: fasterClock(FASTER), pollMs: 500, resyncMs: 2_500, seenEveryMs: 1_500 }
    Object.assign(scene, stack.use(await startScene(cluster, { ...often, ...changes })))
  })
  afterAll(() => stack.disposeAsync())
  return scene
}
