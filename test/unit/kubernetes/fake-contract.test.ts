import { afterAll, describe } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { describeApiContract } from '../../support/api-contract.ts'
import { startFakeApiServer } from '../../support/fake-api-server.ts'

describe('the fake API server', async () => {
  const server = await startFakeApiServer()
  const client = createClient({ connection: server.connection, clock: systemClock })
  afterAll(async () => {
    await client.close()
    await server[Symbol.asyncDispose]()
  })
  const expire = async () => server.expire()
  describeApiContract(async () => ({ client, namespace: 'contract', bookmarkSeconds: 3, expire }))
})
