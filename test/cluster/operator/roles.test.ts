/** The roles as processes (design, section 8): what each needs of a cluster, and what it says without one. */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, type TestNamespace, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { databaseEnvironment, type ServiceProcess, spawnService, startService } from '../../support/service-process.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { checksOf } from './stage.ts'

let testDatabase: TestDatabase
let namespace: TestNamespace

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  namespace = await cluster.makeNamespace()
})
afterAll(async () => {
  await namespace?.remove()
  await testDatabase?.close()
})

/** Without a kubeconfig of its own nothing is found: HOME holds none. */
const environmentOf = (more: Record<string, string>) => ({
  ...databaseEnvironment(testDatabase.url),
  HOME: join(cluster.folder, 'nobody'),
  WATCH_NAMESPACES: namespace.name,
  LOG_FORMAT: 'json',
  ...more,
})

const kubeconfigThrough = (server: string) =>
  cluster.writeKubeconfig({ credential: { token: cluster.adminToken }, server, namespace: namespace.name })

async function startController(kubeconfig: string): Promise<ServiceProcess & { ops: string }> {
  const environment = environmentOf({ ROLE: 'controller', KUBERNETES: 'auto', KUBECONFIG: kubeconfig })
  const service = spawnService(environment)
  const [, ops] = await service.waitFor(/^ready ops=(\S+)$/m)
  return Object.assign(service, { ops: ops! })
}

const statusOf = async (url: string) => (await fetch(url)).status

async function readsMetric(ops: string, line: string): Promise<boolean> {
  return (await (await fetch(`${ops}/metrics`)).text()).split('\n').includes(line)
}
const isLeading = ({ ops }: { ops: string }) =>
  readsMetric(ops, 'leader_election_master_status{name="heartbeat-operator"} 1')

/** All that it prints when it cannot start, with exit status 2. */
async function failureOf(environment: Record<string, string>): Promise<string> {
  await using service = spawnService(environmentOf(environment))
  expect(await service.end()).toEqual({ status: 2, signal: null })
  expect(service.stdout).toBe('')
  return service.stderr
}

describe('ROLE=api', () => {
  it('serves without any credential, and does not even look at the cluster', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    for (const kubeconfig of [await kubeconfigThrough(proxy.url), join(cluster.folder, 'no-such-kubeconfig')]) {
      await using api = await startService(environmentOf({ ROLE: 'api', KUBERNETES: 'auto', KUBECONFIG: kubeconfig }))
      expect(await statusOf(`${api.ops}/readyz`)).toBe(200)
      expect(await statusOf(`${api.api}/openapi.json`)).toBe(200)
      expect(api.stdout).not.toContain('cluster')
      expect((await api.stop()).status).toBe(0)
    }
    expect(proxy.count().accepted).toBe(0)
  })
})

describe('ROLE=controller', () => {
  it('two of them: the standby leads within twenty seconds of a kill -9, and the next within five of a stop', async () => {
    const kubeconfig = await kubeconfigThrough(cluster.server)
    await using first = await startController(kubeconfig)
    await waitFor('the first one leads', () => isLeading(first), 20_000)
    await using second = await startController(kubeconfig)
    await waitFor('the standby is ready without leading', async () => (await statusOf(`${second.ops}/readyz`)) === 200)
    expect(await isLeading(second)).toBe(false)
    expect(first.stdout).not.toMatch(/ping=|api=/)
    const checks = checksOf(cluster, namespace.name)
    await checks.apply('before')
    await checks.whenReady('before')

    const killedAt = performance.now()
    await first.kill()
    await waitFor('the second one leads', () => isLeading(second), 20_000)
    expect(performance.now() - killedAt).toBeLessThan(20_000)
    await checks.apply('after-kill')
    await checks.whenReady('after-kill')

    await using third = await startController(kubeconfig)
    await waitFor('the third one is ready', async () => (await statusOf(`${third.ops}/readyz`)) === 200)
    const stoppedAt = performance.now()
    const stopped = second.stop()
    await waitFor('the third one leads', () => isLeading(third), 10_000)
    expect(performance.now() - stoppedAt).toBeLessThan(5_000)
    expect((await stopped).status).toBe(0)
    await checks.apply('after-stop')
    await checks.whenReady('after-stop')
    expect((await third.stop()).status).toBe(0)
  })

  it('needs a cluster', async () => {
    expect(await failureOf({ ROLE: 'controller', KUBERNETES: 'auto' })).toBe(
      'no cluster was found, and ROLE controller needs one: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
    )
  })
})

describe('ROLE=all', () => {
  it('says in one line that there is no cluster, and serves', async () => {
    await using service = await startService(environmentOf({ KUBERNETES: 'auto' }))
    expect(service.stdout.match(/^ {2}cluster .*$/gm)).toEqual([
      '  cluster  none: no kubeconfig and no ServiceAccount was found (set KUBECONFIG to have HeartbeatChecks reconciled)',
    ])
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
  })

  it('serves beside a kubeconfig that a deleted cluster has left behind, and says what is wrong with it', async () => {
    const home = join(cluster.folder, 'left-behind')
    await mkdir(join(home, '.kube'), { recursive: true })
    await writeFile(join(home, '.kube', 'config'), 'apiVersion: v1\nkind: Config\ncurrent-context: ""\n')
    await using service = await startService(environmentOf({ KUBERNETES: 'auto', HOME: home }))
    expect(service.stdout).toMatch(/^ {2}cluster {2}none: .*left-behind.*context/m)
    expect(await failureOf({ KUBERNETES: 'required', HOME: home })).toContain('left-behind')
  })

  it('with KUBERNETES=required needs one', async () => {
    expect(await failureOf({ KUBERNETES: 'required' })).toBe(
      'no cluster was found, and KUBERNETES is required: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
    )
  })

  it('names a kubeconfig that is not there', async () => {
    const missing = join(cluster.folder, 'no-such-kubeconfig')
    const said = await failureOf({ KUBERNETES: 'auto', KUBECONFIG: missing })
    expect(said).toContain(missing)
    expect(said.trim().split('\n')).toHaveLength(1)
  })

  it('serves pings while its cluster cannot be reached, and reconciles when it comes', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    proxy.refuse()
    const checks = checksOf(cluster, namespace.name)
    await checks.apply('waiting')
    await using service = await startService(
      environmentOf({ KUBERNETES: 'auto', KUBECONFIG: await kubeconfigThrough(proxy.url) }),
    )
    await waitFor('it has tried', () => service.stderr.includes('the watch of HeartbeatChecks was interrupted'))
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
    expect(await statusOf(`${service.ping}/ping/00000000-0000-4000-8000-000000000000`)).toBe(404)

    await proxy.accept()
    await checks.whenReady('waiting', 30_000)
    expect(await statusOf(await checks.urlOf('waiting'))).toBe(200)
    expect((await service.stop()).status).toBe(0)
  })
})
