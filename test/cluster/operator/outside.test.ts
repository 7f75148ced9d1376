/** F6: a controller outside of the cluster that it serves, as a process of its own, by a kubeconfig. The precedence of KUBECONFIG: test/process/roles.test.ts. */

import { rm } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LEASE_NAME } from '../../../src/operator/names.ts'
import { cluster, type TestNamespace } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { databaseEnvironment, spawnService, startService } from '../../support/service-process.ts'
import { workIn } from '../../support/workplace.ts'
import { installNamespacedRights, reach } from './stage.ts'

let namespace: TestNamespace
let testDatabase: TestDatabase
let kubeconfig: string
beforeAll(async () => {
  testDatabase = await createTestDatabase()
  namespace = await cluster.makeNamespace()
  kubeconfig = await installNamespacedRights(namespace.name)
})
afterAll(async () => {
  await namespace?.remove()
  await testDatabase?.close()
  await rm(kubeconfig, { force: true })
})

it('F6: a controller outside of the cluster serves it by a kubeconfig with a token, and has its Lease where the context says', async () => {
  const environment = { ...databaseEnvironment(testDatabase.url), HOME: '/nonexistent', LOG_FORMAT: 'json' }
  const outside = {
    ROLE: 'controller',
    KUBERNETES: 'required',
    KUBECONFIG: kubeconfig,
    WATCH_NAMESPACES: namespace.name,
  }
  await using api = await startService({ ...environment, ROLE: 'api' })
  await using controller = spawnService({ ...environment, ...outside, PING_URL: api.ping })
  const place = workIn(await reach(cluster), namespace.name)
  await place.makeReady('remote')
  expect((await fetch(await place.pingUrl('remote'))).status).toBe(200)
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/${LEASE_NAME}`
  expect((await cluster.api('GET', path)).body).toMatchObject({ spec: { holderIdentity: expect.any(String) } })
  await place.delete('remote')
  expect((await controller.stop()).status).toBe(0)
})
