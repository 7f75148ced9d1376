/** The roles as processes (design, section 8): what each needs of a cluster, and what it says without one. */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { databaseEnvironment, type ServiceProcess, spawnService, startService } from '../support/service-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { openWorkplace, type Workplace } from '../support/workplace.ts'

const stack = new AsyncDisposableStack()
let testDatabase: TestDatabase
let cluster: FakeCluster
let place: Workplace
let folder: string

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  stack.defer(() => testDatabase.close())
  cluster = stack.use(await startFakeCluster())
  place = await openWorkplace(cluster)
  folder = stack.use(await makeTempFolder()).path
})
afterAll(() => stack.disposeAsync())

/** Without a kubeconfig of its own nothing is found: HOME holds none. */
const environmentOf = (more: Record<string, string>) => ({
  ...databaseEnvironment(testDatabase.url),
  HOME: join(folder, 'nobody'),
  KUBERNETES: 'auto',
  WATCH_NAMESPACES: place.name,
  LOG_FORMAT: 'json',
  ...more,
})

async function writeKubeconfig(server: string): Promise<string> {
  const path = join(folder, 'kubeconfig')
  const text = stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'fake',
    clusters: [{ name: 'fake', cluster: { server } }],
    contexts: [{ name: 'fake', context: { cluster: 'fake', namespace: 'default' } }],
  })
  await writeFile(path, text)
  return path
}

async function startController(kubeconfig: string): Promise<ServiceProcess & { ops: string }> {
  const service = spawnService(environmentOf({ ROLE: 'controller', KUBECONFIG: kubeconfig }))
  const [, ops] = await service.waitFor(/^ready ops=(\S+)$/m)
  return Object.assign(service, { ops: ops! })
}

const statusOf = async (url: string) => (await fetch(url)).status
const isLeading = async ({ ops }: { ops: string }) =>
  (await (await fetch(`${ops}/metrics`)).text()).includes(
    'leader_election_master_status{name="heartbeat-operator"} 1\n',
  )

/** All that it prints when it cannot start, with exit status 2. */
async function failureOf(environment: Record<string, string>): Promise<string> {
  await using service = spawnService(environmentOf(environment))
  expect(await service.end()).toEqual({ status: 2, signal: null })
  expect(service.stdout).toBe('')
  return service.stderr
}

it('ROLE=api serves although KUBECONFIG names no file: it never looks for a cluster', async () => {
  await using api = await startService(environmentOf({ ROLE: 'api', KUBECONFIG: join(folder, 'no-such-kubeconfig') }))
  expect(await statusOf(`${api.ops}/readyz`)).toBe(200)
  expect(await statusOf(`${api.api}/openapi.json`)).toBe(200)
  expect(api.stdout).not.toContain('cluster')
})

describe('ROLE=controller', () => {
  it('two of them: the standby leads within twenty seconds of a kill -9, and the next within five of a stop', async () => {
    const kubeconfig = await writeKubeconfig(cluster.server.url)
    await using first = await startController(kubeconfig)
    await eventually('the first one leads', () => isLeading(first), 20_000)
    await using second = await startController(kubeconfig)
    await eventually(
      'the standby is ready without leading',
      async () => (await statusOf(`${second.ops}/readyz`)) === 200,
    )
    expect(await isLeading(second)).toBe(false)
    expect(first.stdout).not.toMatch(/ping=|api=/)
    await place.makeReady('before')

    const killedAt = performance.now()
    await first.kill()
    await eventually('the second one leads', () => isLeading(second), 20_000)
    expect(performance.now() - killedAt).toBeLessThan(20_000)
    await place.makeReady('after-kill')

    await using third = await startController(kubeconfig)
    await eventually('the third one is ready', async () => (await statusOf(`${third.ops}/readyz`)) === 200)
    const stoppedAt = performance.now()
    const stopped = second.stop()
    await eventually('the third one leads', () => isLeading(third), 10_000)
    expect(performance.now() - stoppedAt).toBeLessThan(5_000)
    expect((await stopped).status).toBe(0)
    await place.makeReady('after-stop')
    expect((await third.stop()).status).toBe(0)
  })
})

it.each([
  [
    { ROLE: 'controller' },
    'no cluster was found, and ROLE controller needs one: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
  ],
  [
    { KUBERNETES: 'required' },
    'no cluster was found, and KUBERNETES is required: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
  ],
  [{ KUBECONFIG: '/no/such/kubeconfig' }, expect.stringMatching(/^[^\n]*\/no\/such\/kubeconfig[^\n]*\n$/)],
])('with %j the process ends with status 2 and one line that says what is missing', async (environment, said) => {
  expect(await failureOf(environment)).toEqual(said)
})

describe('ROLE=all', () => {
  it('says in one line that there is no cluster, and serves', async () => {
    await using service = await startService(environmentOf({}))
    expect(service.stdout.match(/^ {2}cluster .*$/gm)).toEqual([
      '  cluster  none: no kubeconfig and no ServiceAccount was found (set KUBECONFIG to reconcile HeartbeatChecks)',
    ])
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
  })

  it('serves beside a kubeconfig that a deleted cluster has left behind, and says what is wrong with it', async () => {
    const home = join(folder, 'left-behind')
    await mkdir(join(home, '.kube'), { recursive: true })
    await writeFile(join(home, '.kube', 'config'), 'apiVersion: v1\nkind: Config\ncurrent-context: ""\n')
    await using service = await startService(environmentOf({ HOME: home }))
    expect(service.stdout).toMatch(/^ {2}cluster {2}none: .*left-behind.*context/m)
    expect(await failureOf({ KUBERNETES: 'required', HOME: home })).toContain('left-behind')
  })

  it('serves pings while its cluster cannot be reached, and reconciles when it comes', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server.url).port))
    proxy.refuse()
    await place.apply('waiting')
    const kubeconfig = await writeKubeconfig(proxy.url.replace('https:', 'http:'))
    await using service = await startService(environmentOf({ KUBECONFIG: kubeconfig }))
    await eventually('it has tried', () => service.stderr.includes('the watch of HeartbeatChecks was interrupted'))
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
    expect(await statusOf(`${service.ping}/ping/00000000-0000-4000-8000-000000000000`)).toBe(404)

    await proxy.accept()
    await place.ready('waiting', 30_000)
    // The operator publishes where the ping port is.
    expect(await statusOf(await place.pingUrl('waiting'))).toBe(200)
  })
})

describe('a command', () => {
  const run = (...args: string[]) =>
    spawnService(
      { HOME: join(folder, 'nobody'), KUBERNETES: 'auto' },
      { command: process.execPath, args: ['src/main.ts', ...args] },
    )

  it('that does not exist is rejected with what there is', async () => {
    await using main = run('release', '--all')
    expect(await main.end()).toEqual({ status: 2, signal: null })
    expect(main.stdout).toBe('')
    expect(main.stderr.split('\n').slice(0, 2)).toEqual([
      'there is no command "release --all"',
      'usage: node src/main.ts           serves the role that ROLE names, until a signal',
    ])
  })

  it('release says what it needs when there is no cluster', async () => {
    await using release = run('release')
    expect(await release.end()).toEqual({ status: 2, signal: null })
    expect(release.stderr).toBe(
      'no cluster was found to release from: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
    )
  })
})
