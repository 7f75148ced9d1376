/** On a control plane of its own: what is too old, is too old for every client. */

import { fileURLToPath } from 'node:url'
import { afterAll, describe } from 'vitest'
import { createClient } from '../../src/kubernetes/client.ts'
import { findConnection } from '../../src/kubernetes/connection.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { startControlPlane } from '../../tools/cluster/control-plane.ts'
import { describeApiContract, type ServerUnderTest } from '../support/api-contract.ts'
import { describeSelectorContract } from '../support/api-contract-selectors.ts'
import { describeWriteContract } from '../support/api-contract-writes.ts'
import { openCluster } from '../support/cluster.ts'

const CRDS = fileURLToPath(new URL('../../crds', import.meta.url))

describe('the real API server', () => {
  const stack = new AsyncDisposableStack()
  afterAll(() => stack.disposeAsync())

  let server: Promise<ServerUnderTest> | undefined
  const open = () => (server ??= start())

  async function start(): Promise<ServerUnderTest> {
    const plane = stack.use(await startControlPlane({ crds: [CRDS] }))
    const connection = await findConnection({ KUBECONFIG: plane.kubeconfigPath }, { clock: systemClock })
    const client = createClient({ connection: connection!, clock: systemClock })
    stack.defer(() => client.close())
    const namespace = stack.use(await openCluster(plane).makeNamespace())
    return { client, namespace: namespace.name, bookmarkSeconds: 6, expire: plane.forgetHistory }
  }

  describeWriteContract(open)
  describeApiContract(open)
  describeSelectorContract(open)
})
