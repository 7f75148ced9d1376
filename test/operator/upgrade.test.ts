/** An upgrade with data, the operator's part: the resources of a cluster whose checks the latest release declared. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { PING_URL, startTestOperator } from '../support/operator.ts'
import { readKnown } from '../support/upgrade/known.ts'
import { restoreRelease } from '../support/upgrade/restore.ts'
import { use } from '../support/use.ts'
import { workIn } from '../support/workplace.ts'

const { checks } = readKnown()
const SPEC = { periodSeconds: 86_400, graceSeconds: 86_400 }
const stack = new AsyncDisposableStack()
let cluster: FakeCluster

beforeAll(async () => {
  cluster = stack.use(await startFakeCluster())
  await cluster.api('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
})
const place = use(async () => workIn(cluster, 'shop'))
beforeAll(async () => {
  const restored = await restoreRelease()
  stack.defer(() => restored.close())
  const database = createDatabase({ url: restored.url, name: 'test', connections: 5, patient: true })
  stack.defer(() => database.close())
  await migrate(database)
  const { body: system } = await cluster.api('GET', '/api/v1/namespaces/kube-system')
  await database.query('update clusters set uid = $1', [system.metadata.uid])
  const testDatabase = { ...restored, database, clear: () => Promise.resolve(), close: () => Promise.resolve() }
  stack.use(await startTestOperator({ connection: cluster.connection, testDatabase }))
})
afterAll(() => stack.disposeAsync())

it.each([
  ['up', {}, 'up'],
  ['down', {}, 'down'],
  ['waiting', {}, 'new'],
  ['suspended', { suspend: true }, 'paused'],
  ['deleted', {}, 'new'],
])('the check of %s keeps its id, its URL and its state', async (name, more, state) => {
  const { id, publicId } = checks[`declared-${name}`]!
  const { status } = await place.makeReady(name, { ...SPEC, ...more })
  expect(status).toMatchObject({ checkId: id, state })
  expect(await place.pingUrl(name)).toBe(`${PING_URL}/ping/${publicId}`)
})
