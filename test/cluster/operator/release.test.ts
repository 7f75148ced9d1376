/** The command `release` as the chart's uninstall hook runs it: as a process, with the rights of its ServiceAccount and no more. */

import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, type TestNamespace, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator } from '../../support/operator.ts'
import { openWorkplace, type Workplace } from '../../support/operator-and-api.ts'
import { type ServiceProcess, spawnService } from '../../support/service-process.ts'

const FINALIZER = 'heartbeat-operator.io/cleanup'
const CHECK_RULE = { apiGroups: ['heartbeat-operator.io'], resources: ['heartbeatchecks'], verbs: ['list', 'patch'] }
const LEASE_RULE = {
  apiGroups: ['coordination.k8s.io'],
  resources: ['leases'],
  resourceNames: ['heartbeat-operator'],
  verbs: ['get'],
}

let testDatabase: TestDatabase
/** Where the Lease is, and the ServiceAccounts. */
let home: TestNamespace
let place: Workplace

beforeAll(async () => {
  ;[testDatabase, home, place] = await Promise.all([createTestDatabase(), cluster.makeNamespace(), openWorkplace()])
  await makeAccount('uninstall')
  await grant('uninstall', home.name, LEASE_RULE)
  await grant('uninstall', place.name, CHECK_RULE)
})
afterAll(async () => {
  await place?.remove()
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
const runMain = (args: readonly string[], environment: Record<string, string> = {}): ServiceProcess =>
  spawnService(
    { HOME: join(cluster.folder, 'nobody'), ...environment },
    {
      command: process.execPath,
      args: ['src/main.ts', ...args],
    },
  )

async function startRelease(account = 'uninstall', more: Record<string, string> = {}): Promise<ServiceProcess> {
  const KUBECONFIG = await kubeconfigOf(account)
  return runMain(['release'], { KUBECONFIG, WATCH_NAMESPACES: place.name, ...more })
}

const startOperator = () =>
  startTestOperator({
    kubeconfig: cluster.kubeconfigPath,
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
      `the finalizer ${FINALIZER} is off 3 HeartbeatChecks; the checks themselves stay in the database`,
    ])
    expect(await finalizersOf('kept')).toEqual([])
    expect(await finalizersOf('shared')).toEqual(['example.com/theirs'])
    await place.delete('removed')

    await using again = await startOperator()
    await waitFor('the finalizer is back', async () => (await finalizersOf('kept')).includes(FINALIZER), 30_000)
    expect(await place.pingUrl('kept')).toBe(url)
    await again.stop()
    await place.change('shared', { metadata: { finalizers: null } })
  })

  it('has nothing to do a second time', async () => {
    await place.create('free')
    await using first = await startRelease()
    expect((await first.end()).status).toBe(0)
    await using second = await startRelease()
    expect((await second.end()).status).toBe(0)
    expect(second.stdout).toBe(`no HeartbeatCheck holds the finalizer ${FINALIZER}: nothing to do\n`)
  })

  it('lets go of what is being deleted: it is gone at once', async () => {
    await using ending = await openWorkplace()
    await grant('uninstall', ending.name, CHECK_RULE)
    await ending.create('held', undefined, { finalizers: [FINALIZER] })
    await cluster.api('DELETE', `/apis/heartbeat-operator.io/v1alpha1/namespaces/${ending.name}/heartbeatchecks/held`)
    expect((await ending.get('held')).metadata.deletionTimestamp).toBeDefined()
    await using release = await startRelease('uninstall', { WATCH_NAMESPACES: `${place.name},${ending.name}` })
    expect((await release.end()).status).toBe(0)
    await expect(ending.get('held')).rejects.toThrow('404')
  })

  it('without the right to take them off fails with status 1, and says what is missing', async () => {
    await makeAccount('reader')
    await grant('reader', home.name, LEASE_RULE)
    await grant('reader', place.name, { ...CHECK_RULE, verbs: ['list'] })
    await place.create('stays', undefined, { finalizers: [FINALIZER] })
    await using release = await startRelease('reader')
    expect(await release.end()).toEqual({ status: 1, signal: null })
    expect(release.stderr).toMatch(/^a right is missing \(.*patch of HeartbeatChecks\): .*cannot patch resource.*\n$/)
    expect(await finalizersOf('stays')).toEqual([FINALIZER])
  })

  it('without a cluster says what it needs, with status 2', async () => {
    await using release = runMain(['release'])
    expect(await release.end()).toEqual({ status: 2, signal: null })
    expect(release.stderr).toBe(
      'no cluster was found to release from: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
    )
  })
})

describe('a command', () => {
  it.each([[['relase']], [['release', '--all']], [['serve']]])(
    'that does not exist is refused with what there is: %j',
    async (args) => {
      await using main = runMain(args)
      expect(await main.end()).toEqual({ status: 2, signal: null })
      expect(main.stdout).toBe('')
      expect(main.stderr.split('\n').slice(0, 2)).toEqual([
        `there is no command "${args.join(' ')}"`,
        'usage: node src/main.ts           serves what ROLE says, until a signal',
      ])
    },
  )
})
