import { afterAll, describe } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { describeApiContract } from '../../support/api-contract.ts'
import { describeSelectorContract } from '../../support/api-contract-selectors.ts'
import { describeWriteContract } from '../../support/api-contract-writes.ts'
import { CONFIG_MAPS, HEARTBEAT_CHECKS, PODS, startFakeApiServer } from '../../support/fake-api-server.ts'

describe('the fake API server', async () => {
  const server = await startFakeApiServer({ types: [CONFIG_MAPS, HEARTBEAT_CHECKS, PODS] })
  const client = createClient({ connection: server.connection, clock: systemClock })
  afterAll(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  const expire = async () => server.expire()
  const open = async () => ({ client, namespace: 'contract', bookmarkSeconds: 3, expire })
  describeWriteContract(open)
  describeApiContract(open)
  describeSelectorContract(open)
})
