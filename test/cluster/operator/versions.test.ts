/**
 * An upgrade of the stored version and the way back, on a control plane of its own: the definition belongs to the whole cluster. The objects
 * are those of the release before v1 (test/fixtures/v1alpha1), the checks those of test/fixtures/release. Rules in detail:
 * test/unit/operator/cluster/migrate-storage.test.ts. With Helm: test/chart/life.test.ts.
 */

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import { migrate } from '../../../src/store/postgres/migrate.ts'
import { type Cluster, openCluster, waitFor } from '../../support/cluster-client.ts'
import type { TestDatabase } from '../../support/database.ts'
import { listBlocksOf } from '../../support/documents.ts'
import { connectionOf, fasterClock, PING_URL, startTestOperator, type TestOperator } from '../../support/operator.ts'
import { readKnown } from '../../support/upgrade/known.ts'
import { restoreRelease } from '../../support/upgrade/restore.ts'
import { type Published, type Workplace, workIn } from '../../support/workplace.ts'
import { type ControlPlane, startControlPlane } from '../control-plane.ts'
import { applyCrds, changeStoredVersion } from '../control-plane-crds.ts'
import { reach } from './stage.ts'

const fixture = (name: string) => fileURLToPath(new URL(`../../fixtures/v1alpha1/${name}`, import.meta.url))
const FORMER_CRD = fixture('heartbeatchecks.yaml')
const CRD = fileURLToPath(new URL('../../../crds/heartbeatchecks.yaml', import.meta.url))
const CRD_PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/heartbeatchecks.heartbeat-operator.io'
const FORMER = '/apis/heartbeat-operator.io/v1alpha1/namespaces/shop/heartbeatchecks'
const PRESENT = FORMER.replace('v1alpha1', 'v1')
const NAMES = ['up', 'down']
const part = (name: string) => readFileSync(new URL(`../../../manifests/parts/${name}.yaml`, import.meta.url), 'utf8')

const { checks } = readKnown()
const stack = new AsyncDisposableStack()
let plane: ControlPlane
let cluster: Cluster
let place: Workplace
let testDatabase: TestDatabase
let kubeconfig: string

beforeAll(async () => {
  plane = stack.use(await startControlPlane({ crds: [FORMER_CRD] }))
  cluster = openCluster(plane)
  await cluster.api('POST', '/api/v1/namespaces', { metadata: { name: 'shop' } })
  for (const name of NAMES) await putAsBefore(name)
  const restored = await restoreRelease()
  stack.defer(() => restored.close())
  const database = createDatabase({ url: restored.url, name: 'test', connections: 5, patient: true })
  stack.defer(() => database.close())
  await migrate(database)
  const { body: system } = await cluster.api('GET', '/api/v1/namespaces/kube-system')
  await database.query('update clusters set uid = $1', [system.metadata.uid])
  testDatabase = { ...restored, database, clear: () => Promise.resolve(), close: () => Promise.resolve() }
  await cluster.applyManifest(['namespace', 'service-accounts', 'rbac-lease', 'rbac'].map(part).join('\n---\n'))
  const token = await cluster.tokenFor('heartbeat-operator/heartbeat-operator')
  kubeconfig = await cluster.writeKubeconfig({ credential: { token }, namespace: 'heartbeat-operator' })
  place = workIn(await reach(cluster, kubeconfig), 'shop')
})
afterAll(() => stack.disposeAsync())

/** A HeartbeatCheck with its Secret, as the release before wrote them. */
async function putAsBefore(name: string): Promise<void> {
  const { check, secret } = JSON.parse(readFileSync(fixture(`${name}.json`), 'utf8'))
  const { id, publicId } = checks[`declared-${name}`]!
  check.status.checkId = id
  secret.data.HEARTBEAT_URL = Buffer.from(`${PING_URL}/ping/${publicId}`).toString('base64')
  const { body: made } = await cluster.api('POST', FORMER, check)
  expect(await cluster.api('PUT', `${FORMER}/${name}/status`, { ...made, status: check.status })).toMatchObject({
    status: 200,
  })
  const [owner] = secret.metadata.ownerReferences
  expect(owner.apiVersion).toBe('heartbeat-operator.io/v1alpha1')
  secret.metadata.ownerReferences = [{ ...owner, uid: made.metadata.uid }]
  const path = '/api/v1/namespaces/shop/secrets?fieldManager=heartbeat-operator'
  expect(await cluster.api('POST', path, secret)).toMatchObject({ status: 201 })
}

async function startOperator(): Promise<TestOperator> {
  const changes = { clock: fasterClock(20), storageMs: 1_000 }
  const connection = await connectionOf(kubeconfig)
  return startTestOperator({ connection, testDatabase, leaseNamespace: 'heartbeat-operator', changes })
}

async function readSecrets(): Promise<Published[]> {
  return Promise.all(NAMES.map(async (name) => (await place.find('secrets', `${name}-heartbeat`))!))
}
const identityOf = ({ metadata: { uid }, data }: Published) => ({ uid, data })
const urlsOf = (secrets: Published[]) =>
  secrets.map(({ data }) => Buffer.from(data!.HEARTBEAT_URL!, 'base64').toString())

const storedVersions = async () => (await cluster.api('GET', CRD_PATH)).body.status.storedVersions as string[]
const untilStored = (...versions: string[]) =>
  waitFor(
    `storedVersions is ${versions}`,
    async () => JSON.stringify(await storedVersions()) === JSON.stringify(versions),
  )

it('Upgrade: resources of v1alpha1 with their Secrets move to v1 without a change of URL, and back', async () => {
  const secrets = await readSecrets()
  const urls = NAMES.map((name) => `${PING_URL}/ping/${checks[`declared-${name}`]!.publicId}`)
  expect(urlsOf(secrets)).toEqual(urls)

  // The upgrade.
  await applyCrds(plane, [CRD])
  expect(await storedVersions()).toEqual(['v1alpha1', 'v1'])
  await using operator = await startOperator()
  const upgraded = await Promise.all(NAMES.map((name) => place.ready(name)))
  await untilStored('v1')
  expect(upgraded.map(({ status }) => status!.checkId)).toEqual(NAMES.map((name) => checks[`declared-${name}`]!.id))
  expect((await readSecrets()).map(identityOf)).toEqual(secrets.map(identityOf))
  const uids = upgraded.map(({ metadata }) => metadata.uid)

  // The API server stores v1 now, and keeps a definition without it away.
  await expect(applyCrds(plane, [FORMER_CRD])).rejects.toThrow(/storedVersions.*v1/)

  // The way back, as the chart's crds.storedVersion goes it.
  await changeStoredVersion(plane, 'v1alpha1')
  await untilStored('v1alpha1')
  await operator.stop()
  await applyCrds(plane, [FORMER_CRD])
  const statusOf = async (path: string) => (await cluster.api('GET', path)).status
  await waitFor(
    'v1alpha1 alone is served',
    async () => (await statusOf(PRESENT)) === 404 && (await statusOf(FORMER)) === 200,
  )
  const { body: back } = await cluster.api('GET', FORMER)
  expect(back.items.map(({ metadata }: Published) => metadata.uid).sort()).toEqual([...uids].sort())
  expect((await readSecrets()).map(identityOf)).toEqual(secrets.map(identityOf))

  // Once more up, after the release before has changed one of them.
  await cluster.api('PATCH', `${FORMER}/up`, { spec: { graceSeconds: 43_200 } })
  await applyCrds(plane, [CRD])
  await using again = await startOperator()
  await untilStored('v1')
  expect((await place.ready('up')).spec.graceSeconds).toBe(43_200)
  expect((await readSecrets()).map(identityOf)).toEqual(secrets.map(identityOf))
  await again.stop()
})

it('Upgrade: an administrator stores them anew where no operator sees all of them', async () => {
  const { text } = listBlocksOf('test/cluster/operator/versions.test.ts')[0]!
  await changeStoredVersion(plane, 'v1alpha1')
  await changeStoredVersion(plane, 'v1')
  expect((await storedVersions()).sort()).toEqual(['v1', 'v1alpha1'])
  // The program of the control plane as the kubectl of the commands.
  const kubectl = `kubectl() { '${plane.kubectlPath}' --kubeconfig '${plane.kubeconfigPath}' "$@"; }`
  const run = promisify(execFile)
  await waitFor('the definition is in effect', async () => {
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${kubectl}\n${text}`])
    return stdout.includes('heartbeatcheck.heartbeat-operator.io/up replaced')
  })
  expect(await storedVersions()).toEqual(['v1'])
})
