/**
 * `cronJobs.watch: all` on an API server of its own: helm installs, and a controller runs with the settings and the ServiceAccount of its release,
 * as its pod would. What each value renders: test/chart/configuration.test.ts, test/chart/rights.test.ts.
 */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { type ControlPlane, startControlPlane } from '../../tools/cluster/control-plane.ts'
import { type Cluster, openCluster } from '../support/cluster-client.ts'
import { cronJobsIn, WATCH_LABEL } from '../support/cron-jobs.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { connectionOf } from '../support/operator.ts'
import { LOW_COST } from '../support/passwords.ts'
import { spawnService } from '../support/service-process.ts'
import { type TestCluster, workIn } from '../support/workplace.ts'
import { CHART, helm, RELEASE, type Values } from './chart.ts'

let plane: ControlPlane
let cluster: Cluster
let reached: TestCluster
let testDatabase: TestDatabase

beforeAll(async () => {
  ;[plane, testDatabase] = await Promise.all([startControlPlane(), createTestDatabase()])
  // As the first pod of the api does: a controller waits for it.
  const context = { database: testDatabase.database, clock: systemClock, passwordCost: LOW_COST }
  await bootstrap(context, { email: 'admin@example.com' })
  cluster = openCluster(plane)
  const { api, makeNamespace } = cluster
  reached = { connection: await connectionOf(plane.kubeconfigPath), api, makeNamespace }
})
afterAll(async () => {
  await testDatabase?.close()
  await plane?.stop()
})

/** The program of the controller's pod, after `helm install`. */
async function install(namespace: string, values: Values) {
  const where = ['--namespace', namespace, '--create-namespace', '--kubeconfig', plane.kubeconfigPath]
  await helm(['install', RELEASE, CHART, '--values', '-', ...where], values)
  const { body } = await cluster.api('GET', `/api/v1/namespaces/${namespace}/configmaps/${RELEASE}`)
  const token = await cluster.tokenFor(`${namespace}/${RELEASE}-controller`)
  const KUBECONFIG = await cluster.writeKubeconfig({ credential: { token }, namespace })
  const own = { ROLE: 'controller', KUBERNETES: 'required', KUBECONFIG, DATABASE_URL: testDatabase.url }
  return spawnService({ ...body.data, ...own })
}

async function openNamespace(name: string) {
  const { status } = await cluster.api('POST', '/api/v1/namespaces', { metadata: { name } })
  expect(status).toBe(201)
  const place = workIn(reached, name)
  return { ...place, cronJobs: cronJobsIn(reached, place) }
}

async function listChecks(): Promise<string[]> {
  const { body } = await cluster.api('GET', '/apis/heartbeat-operator.io/v1/heartbeatchecks')
  const items: { metadata: { namespace: string; name: string } }[] = body.items
  return items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()
}

it('watches every CronJob of the cluster without a label, but those labelled false', async () => {
  const [shop, payments] = [await openNamespace('shop'), await openNamespace('payments')]
  await payments.cronJobs.create('excluded', { labels: { [WATCH_LABEL]: 'false' } })
  await shop.cronJobs.create('backup')
  await using controller = await install('monitoring', { cronJobs: { watch: 'all' } })
  await shop.ready('backup')
  // Also one that comes later, in another namespace.
  await payments.cronJobs.create('report')
  await payments.ready('report')
  expect(await listChecks()).toEqual(['payments/report', 'shop/backup'])
  expect((await controller.stop()).status).toBe(0)
})

it('with watchNamespaces watches those of these namespaces, and may read no others', async () => {
  const [team, others] = [await openNamespace('team'), await openNamespace('others')]
  await others.cronJobs.create('backup')
  await team.cronJobs.create('backup')
  const values = {
    cronJobs: { watch: 'all' },
    watchNamespaces: ['team'],
    clusterName: 'team',
    crds: { enabled: false },
  }
  await using controller = await install('team', values)
  await team.ready('backup')
  expect((await listChecks()).filter((name) => /^(team|others)\//.test(name))).toEqual(['team/backup'])
  const account = '--as=system:serviceaccount:team:heartbeat-controller'
  const canList = (namespace: string) =>
    cluster.kubectl('auth', 'can-i', 'list', 'cronjobs', '-n', namespace, account).catch(() => 'no')
  expect([await canList('team'), await canList('others')].map((answer) => answer.trim())).toEqual(['yes', 'no'])
  expect((await controller.stop()).status).toBe(0)
})
