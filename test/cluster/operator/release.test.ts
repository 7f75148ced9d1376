/** The command `release` as the chart's uninstall hook runs it: as a process, with the rights of its ServiceAccount and no more. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, type TestNamespace } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { connectionOf, startTestOperator } from '../../support/operator.ts'
import { type ServiceProcess, spawnService } from '../../support/service-process.ts'
import { eventually } from '../../support/until.ts'
import { type Workplace, workIn } from '../../support/workplace.ts'
import { reach } from './stage.ts'

const FINALIZER = 'heartbeat-operator.io/cleanup'
const CHECK_RULE = {
  apiGroups: ['heartbeat-operator.io'],
  resources: ['heartbeatchecks', 'heartbeatchannels', 'heartbeatsilences'],
  verbs: ['list', 'patch'],
}
const LEASE_RULE = {
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  resourceNames: ['heartbeat-operator'],
  verbs: ['get'],
}

let testDatabase: TestDatabase
/** Where the Lease is, and the ServiceAccounts. */
let home: TestNamespace
let namespace: TestNamespace
let place: Workplace

beforeAll(async () => {
  ;[testDatabase, home, namespace] = await Promise.all([
    createTestDatabase(),
    cluster.makeNamespace(),
    cluster.makeNamespace(),
  ])
  place = workIn(await reach(cluster), namespace.name)
  await makeAccount('uninstall')
  await grant('uninstall', home.name, LEASE_RULE)
  await grant('uninstall', place.name, CHECK_RULE)
})
afterAll(async () => {
  await namespace?.remove()
  await home?.remove()
  await testDatabase?.close()
})

async function makeAccount(name: string): Promise<void> {
  await cluster.applyManifest({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: home.name } })
}

async function grant(account: string, namespace: string, rule: object): Promise<void> {
  const apiVersion = 'rbac.authorization.k8s.io/v1'
  const metadata = { name: account, namespace }
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: account }
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: home.name }]
  await cluster.applyManifest([
    { apiVersion, kind: 'Role', metadata, rules: [rule] },
    { apiVersion, kind: 'RoleBinding', metadata, roleRef, subjects },
  ])
}

const kubeconfigOf = async (account: string) =>
  cluster.writeKubeconfig({
    credential: { token: await cluster.tokenFor(`${home.name}/${account}`) },
    namespace: home.name,
  })

/** No DATABASE_URL: by then the database may be gone. */
async function startRelease(account = 'uninstall'): Promise<ServiceProcess> {
  const environment = { KUBECONFIG: await kubeconfigOf(account), WATCH_NAMESPACES: place.name }
  return spawnService(environment, { command: process.execPath, args: ['src/main.ts', 'release'] })
}

const startOperator = async () =>
  startTestOperator({
    connection: await connectionOf(cluster.kubeconfigPath),
    leaseNamespace: home.name,
    testDatabase,
    changes: { namespaces: [place.name] },
  })

const finalizersOf = async (name: string) => (await place.get(name)).metadata.finalizers ?? []

describe('release', () => {
  it('waits for the controller to stop, then leaves nothing that hangs; one that comes back finds each URL as it was', async () => {
    await using operator = await startOperator()
    const others = { finalizers: ['example.com/theirs'] }
    await Promise.all([
      place.makeReady('kept'),
      place.makeReady('removed'),
      place.makeReady('shared', undefined, others),
    ])
    const url = await place.pingUrl('kept')
    expect(await finalizersOf('shared')).toEqual(['example.com/theirs', FINALIZER])

    await using release = await startRelease()
    await release.waitFor(/^waiting for \S+ to give back the Lease \S+ \.\.\.$/m)
    expect(await finalizersOf('kept')).toEqual([FINALIZER])
    await operator.stop()
    expect(await release.end()).toEqual({ status: 0, signal: null })
    expect(release.stderr).toBe('')
    expect(release.stdout.trim().split('\n').slice(1)).toEqual([
      `the finalizer ${FINALIZER} is off 3 HeartbeatChecks; what they declare stays in the database, and silences go on`,
    ])
    expect(await finalizersOf('kept')).toEqual([])
    expect(await finalizersOf('shared')).toEqual(['example.com/theirs'])
    await place.delete('removed')

    await using again = await startOperator()
    await eventually('the finalizer is back', async () => (await finalizersOf('kept')).includes(FINALIZER))
    expect(await place.pingUrl('kept')).toBe(url)
    await again.stop()
    await place.change('shared', { metadata: { finalizers: null } })
  })

  it('release without the right to patch fails with status 1, and names the right', async () => {
    await makeAccount('reader')
    await grant('reader', home.name, LEASE_RULE)
    await grant('reader', place.name, { ...CHECK_RULE, verbs: ['list'] })
    await place.apply('stays', undefined, { finalizers: [FINALIZER] })
    await using release = await startRelease('reader')
    expect(await release.end()).toEqual({ status: 1, signal: null })
    expect(release.stderr).toMatch(
      /^a right is missing \(.*patch of HeartbeatChecks, HeartbeatChannels, and HeartbeatSilences\): .*cannot patch resource.*\n$/,
    )
    expect(await finalizersOf('stays')).toEqual([FINALIZER])
  })
})
