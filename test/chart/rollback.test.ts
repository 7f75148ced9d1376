/**
 * The way back with Helm, on an API server of its own without nodes: from this chart to one whose definition serves v1alpha1 alone. The leader
 * is played: its migration runs here, with the rights of its ServiceAccount. With an operator: test/cluster/operator/versions.test.ts.
 */

import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createStorageMigration } from '../../src/operator/cluster/migrate-storage.ts'
import { type ControlPlane, startControlPlane } from '../cluster/control-plane.ts'
import { type Cluster, openCluster, waitFor } from '../support/cluster-client.ts'
import { clientOf, connectionOf, fasterClock } from '../support/operator.ts'
import { silentLog } from '../support/silent-log.ts'
import { CHART, type HelmOutput, helm, NAMESPACE, RELEASE, type Values } from './chart.ts'

const FORMER_CRD = fileURLToPath(new URL('../fixtures/v1alpha1/heartbeatchecks.yaml', import.meta.url))
const CHECKS = '/apis/heartbeat-operator.io/v1alpha1/namespaces/default/heartbeatchecks'
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/heartbeatchecks.heartbeat-operator.io'
const TEMPLATE = 'templates/crds/heartbeatchecks.yaml'

let plane: ControlPlane
let cluster: Cluster
/** This chart with the definition of the release before v1. */
let formerChart: string

beforeAll(async () => {
  plane = await startControlPlane()
  cluster = openCluster(plane)
  formerChart = join(await mkdtemp(join(plane.folder, 'former-')), 'heartbeat-operator')
  await cp(CHART, formerChart, { recursive: true })
  const [template, former] = await Promise.all([readFile(join(CHART, TEMPLATE), 'utf8'), readFile(FORMER_CRD, 'utf8')])
  const head = template.slice(0, template.indexOf('\nspec:\n'))
  const spec = former.slice(former.indexOf('\nspec:\n'))
  await writeFile(join(formerChart, TEMPLATE), `${head}${spec}{{- end }}\n`)
})
afterAll(() => plane?.stop())

function run(command: readonly string[], values: Values = {}): Promise<HelmOutput> {
  const where = ['--namespace', NAMESPACE, '--kubeconfig', plane.kubeconfigPath, '--timeout', '60s']
  return helm([...command, ...where], values)
}
const upgrade = (chart: string, values: Values = {}) =>
  run(['upgrade', RELEASE, chart, '--install', '--create-namespace', '--values', '-'], values)

/** What the leader does, with the account of the controller. */
async function migrateStorage(): Promise<void> {
  const token = await cluster.tokenFor(`${NAMESPACE}/heartbeat-controller`)
  const kubeconfig = await cluster.writeKubeconfig({ credential: { token }, namespace: NAMESPACE })
  await using client = clientOf(await connectionOf(kubeconfig))
  await createStorageMigration({ client, clock: fasterClock(50), log: silentLog })(new AbortController().signal)
}

const storedVersions = async () => (await cluster.api('GET', CRD)).body.status.storedVersions

it('Upgrade: a release is rolled back to one without v1 when crds.storedVersion has moved the objects back', async () => {
  await upgrade(formerChart)
  const check = { metadata: { name: 'nightly' }, spec: { periodSeconds: 3_600 } }
  const owner = { apiVersion: 'heartbeat-operator.io/v1alpha1', kind: 'HeartbeatCheck' }
  await waitFor('the kind is served', async () => (await cluster.api('GET', CHECKS)).status === 200)
  const { body: made } = await cluster.api('POST', CHECKS, { ...owner, ...check })

  await upgrade(CHART)
  await migrateStorage()
  expect(await storedVersions()).toEqual(['v1'])

  // Without the step before it, the API server rejects the definition of the previous release.
  await expect(run(['rollback', RELEASE, '1'])).rejects.toThrow(/storedVersions/)

  await upgrade(CHART, { crds: { storedVersion: 'v1alpha1' } })
  await migrateStorage()
  expect(await storedVersions()).toEqual(['v1alpha1'])
  await run(['rollback', RELEASE, '1'])
  const { body: definition } = await cluster.api('GET', CRD)
  expect(definition.spec.versions.map(({ name }: { name: string }) => name)).toEqual(['v1alpha1'])
  const { body: kept } = await cluster.api('GET', `${CHECKS}/nightly`)
  expect([kept.metadata.uid, kept.spec.periodSeconds]).toEqual([made.metadata.uid, 3_600])
})
