/** The leader and the stored version of HeartbeatChecks. The rules: test/unit/operator/cluster/migrate-storage.test.ts. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import { DEFINITIONS } from '../../src/operator/cluster/migrate-storage.ts'
import { DEFINITION_NAME } from '../../src/operator/names.ts'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { type FakeType, HEARTBEAT_CHECKS } from '../support/fake-api-server.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { fasterClock, startTestOperator, type TestOperator, whenLeading } from '../support/operator.ts'
import { eventually } from '../support/until.ts'

const CRDS: FakeType = { ...DEFINITIONS, kind: 'CustomResourceDefinition', hasStatus: true }
const clock = fasterClock(20)
const storageMs = 1_000

let stack: AsyncDisposableStack
let cluster: FakeCluster

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  cluster = stack.use(await startFakeCluster())
  cluster.server.add(CRDS)
  cluster.server.collection(CRDS).create({ metadata: { name: DEFINITION_NAME } })
})
afterEach(() => stack.disposeAsync())

/** The definition stores `version`, and objects may be stored in the other one too. */
function store(version: string, other: string): void {
  cluster.server.collection(HEARTBEAT_CHECKS).storeAs(version)
  const versions = [version, other].map((name) => ({ name, storage: name === version }))
  const crds = cluster.server.collection(CRDS)
  crds.mergePatch(DEFINITION_NAME, { spec: { versions } })
  crds.mergePatch(DEFINITION_NAME, { status: { storedVersions: [other, version] } }, { subresource: 'status' })
}

const readStored = () =>
  (cluster.server.collection(CRDS).get(DEFINITION_NAME).status as { storedVersions: string[] }).storedVersions
const untilStored = (version: string) =>
  eventually(`all are stored as ${version}`, () => readStored().length === 1 && readStored()[0] === version)

async function start(changes: Partial<OperatorOptions> = {}): Promise<TestOperator> {
  const operator = stack.use(
    await startTestOperator({ connection: cluster.connection, changes: { clock, storageMs, ...changes } }),
  )
  await whenLeading(operator)
  return operator
}

it('are moved to v1 at the start of the leader, and back while it leads when the definition stores v1alpha1', async () => {
  cluster.server.collection(HEARTBEAT_CHECKS).storeAs('v1alpha1')
  const { name: namespace } = await cluster.makeNamespace()
  const metadata = { namespace, name: 'nightly' }
  cluster.server.collection(HEARTBEAT_CHECKS).create({ metadata, spec: { periodSeconds: 3_600 } })
  store('v1', 'v1alpha1')
  await start()
  await untilStored('v1')
  const storedAs = () => cluster.server.collection(HEARTBEAT_CHECKS).get(`${namespace}/nightly`).apiVersion
  expect(storedAs()).toBe('heartbeat-operator.io/v1')
  store('v1alpha1', 'v1')
  await untilStored('v1alpha1')
  expect(storedAs()).toBe('heartbeat-operator.io/v1alpha1')
})

it('are left to an administrator when the operator sees single namespaces', async () => {
  store('v1', 'v1alpha1')
  await start({ namespaces: ['shop'] })
  await clock.sleep(5 * storageMs)
  expect(readStored()).toEqual(['v1alpha1', 'v1'])
  expect(cluster.server.requests.filter(({ path }) => path.includes('customresourcedefinitions'))).toEqual([])
})
