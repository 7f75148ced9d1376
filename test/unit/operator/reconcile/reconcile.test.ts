/** What a reconcile returns; what it does is in test/operator. */

import { expect, it } from 'vitest'
import { newState } from '../../../../src/domain/transition.ts'
import { createReconcile, type ReconcilerOptions } from '../../../../src/operator/reconcile/reconcile.ts'
import { silentLog } from '../../../support/silent-log.ts'

it('the next read of what is published is no live change, whatever has called for this reconcile', async () => {
  const object = {
    metadata: { namespace: 'shop', name: 'nightly', uid: 'u1', resourceVersion: '7', generation: 1 },
    spec: { periodSeconds: 60, publish: { kind: 'None' } },
    status: { installation: 'i1', checkId: 'c1' },
  }
  const held = { ...object, metadata: { ...object.metadata, finalizers: ['heartbeat-operator.io/cleanup'] } }
  const check = { id: 'c1', key: 1, slug: 'nightly', publicId: 'p1', spec: { jobArea: null }, state: newState(0) }
  const reconcile = createReconcile({
    client: { replace: async () => held },
    cache: { get: () => held, put: () => {} },
    service: {
      now: () => 1_000,
      declareCheck: async () => ({ check, change: 'unchanged' }),
      armCheck: async () => check,
      listUnreportedFlips: async () => [],
    },
    cluster: 'default',
    claims: { installation: 'i1', takeOver: null, takenOver: new Set(), reported: new Map() },
    namespaces: { decidedBy: 'annotation', allowedProjects: async () => null, placeOf: async () => undefined },
    recorder: { record: () => {} },
    turns: { take: () => false },
    sourceWaitMs: () => 0,
    pingUrl: () => 'http://ping',
    now: () => 1_000,
    random: () => 0,
    resyncMs: 600_000,
    log: silentLog,
  } as unknown as ReconcilerOptions)
  const result = await reconcile('shop/nightly', new AbortController().signal)
  expect(result).toEqual({ kind: 'again', afterMs: 600_000, priority: 'background' })
})
