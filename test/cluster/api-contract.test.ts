/** On a control plane of its own: what is too old, is too old for everybody. */

import { afterAll, describe } from 'vitest'
import { createClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { describeApiContract } from '../support/api-contract.ts'
import { openCluster } from '../support/cluster.ts'
import { startControlPlane } from './control-plane.ts'

describe('the real API server', () => {
  const stack = new AsyncDisposableStack()
  afterAll(() => stack.disposeAsync())

  describeApiContract(async () => {
    const plane = stack.use(await startControlPlane({}))
    const connection = await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock })
    const client = createClient({ connection: connection!, clock: systemClock })
    stack.defer(() => client.close())
    const namespace = stack.use(await openCluster(plane).makeNamespace())
    return {
      client,
      namespace: namespace.name,
      bookmarkSeconds: 6,
      expire: plane.forgetHistory,
    }
  })
})
