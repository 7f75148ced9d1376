/** The roles as processes (design, section 8): what each needs of a cluster, and what it says without one. */

import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { VERSION } from '../../src/runtime/version.ts'
import { createEmptyDatabase } from '../support/database.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import { type RoleStage, startRoleStage } from '../support/role-stage.ts'
import { spawnService, startService } from '../support/service-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/until.ts'
import { openWorkplace } from '../support/workplace.ts'

let stage: RoleStage
beforeAll(async () => {
  stage = await startRoleStage()
})
afterAll(() => stage[Symbol.asyncDispose]())

const statusOf = async (url: string) => (await fetch(url)).status
/** All that it prints when it cannot start, with exit status 2. */
async function failureOf(environment: Record<string, string>): Promise<string> {
  await using service = spawnService(stage.environmentOf(environment))
  expect(await service.end()).toEqual({ status: 2, signal: null })
  expect(service.stdout).toBe('')
  return service.stderr
}

it('ROLE=api serves although KUBECONFIG names no file: it never looks for a cluster', async () => {
  await using api = await startService(
    stage.environmentOf({ ROLE: 'api', KUBECONFIG: join(stage.folder, 'no-such-kubeconfig') }),
  )
  expect(await statusOf(`${api.ops}/readyz`)).toBe(200)
  expect(await statusOf(`${api.api}/openapi.json`)).toBe(200)
  expect(api.stdout).not.toContain('cluster')
})

describe('ROLE=controller', () => {
  it('in a pod with a mounted kubeconfig it serves that cluster, not the one that it runs in, and names itself', async () => {
    await using cluster = await startFakeCluster()
    const place = await openWorkplace(cluster)
    const KUBECONFIG = await stage.writeKubeconfig(cluster.server.url)
    const ofPod = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: '1' }
    const more = {
      ...ofPod,
      ROLE: 'controller',
      KUBERNETES: 'required',
      CLUSTER_NAME: 'elsewhere',
      WATCH_NAMESPACES: '',
    }
    await using controller = spawnService(stage.environmentOf({ ...more, KUBECONFIG }))
    await controller.waitFor(/^ready ops=/m)
    await place.makeReady('remote')
    expect(await place.pingUrl('remote')).toContain('/ping/')
    const agents = new Set(cluster.server.requests.map(({ headers }) => headers['user-agent']))
    agents.delete('test')
    const name = /^heartbeat-operator\/\d+\.\d+\.\d+\S* \((linux|darwin|windows)\/(amd64|arm64)\) controller$/
    expect([...agents]).toEqual([expect.stringMatching(name)])
    expect((await controller.stop()).status).toBe(0)
  })

  it('needs neither SECRET_KEY nor bootstrap values, and waits for the api to set an empty database up', async () => {
    const empty = await createEmptyDatabase()
    onTestFinished(() => empty.close())
    const all: Record<string, string> = stage.environmentOf({
      DATABASE_URL: empty.url,
      DATABASE_WAIT_SECONDS: '60',
      KUBECONFIG: await stage.writeKubeconfig(stage.cluster.server.url),
    })
    const isOfApi = (name: string) => /^(SECRET_KEY|BOOTSTRAP_.*)$/.test(name)
    const own = Object.fromEntries(Object.entries(all).filter(([name]) => !isOfApi(name)))
    await using controller = spawnService({ ...own, ROLE: 'controller', CLUSTER_NAME: 'waiting' })
    await controller.waitFor(/^waiting for a process with ROLE api or all, which sets the database up \.\.\.$/m)
    await using api = await startService({ ...all, ROLE: 'api' })
    await controller.waitFor(/^ready ops=/m)
    const me = { headers: { authorization: `Bearer ${all.BOOTSTRAP_API_KEY}` } }
    expect((await fetch(`${api.api}/me`, me)).status).toBe(200)
    expect((await controller.stop()).status).toBe(0)
  })

  it('says what to do when no process sets the database up', async () => {
    const empty = await createEmptyDatabase()
    onTestFinished(() => empty.close())
    const KUBECONFIG = await stage.writeKubeconfig(stage.cluster.server.url)
    const more = { ROLE: 'controller', DATABASE_URL: empty.url, DATABASE_WAIT_SECONDS: '0', KUBECONFIG }
    await using controller = spawnService(stage.environmentOf(more))
    expect((await controller.end()).status).toBe(2)
    expect(controller.stderr).toBe(
      `the database at ${new URL(empty.url).host} is empty: start a process with ROLE api or all on it first\n`,
    )
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
    await using service = await startService(stage.environmentOf({}))
    expect(service.stdout.match(/^ {2}cluster .*$/gm)).toEqual([
      '  cluster  none: no kubeconfig and no ServiceAccount was found (set KUBECONFIG to reconcile HeartbeatChecks)',
    ])
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
  })

  it('leaves the cluster of ~/.kube/config alone without KUBECONFIG, and says so in one line', async () => {
    await using cluster = await startFakeCluster()
    const home = join(stage.folder, 'at-home')
    const file = join(home, '.kube', 'config')
    await mkdir(join(home, '.kube'), { recursive: true })
    await copyFile(await stage.writeKubeconfig(cluster.server.url), file)
    await using service = await startService(stage.environmentOf({ HOME: home }))
    expect(service.stdout.match(/^ {2}cluster .*$/gm)).toEqual([
      `  cluster  none: ${file} is not used (set KUBECONFIG=${file} to reconcile its cluster)`,
    ])
    expect(cluster.server.requests).toEqual([])
    const said = await failureOf({ ROLE: 'controller', HOME: home })
    expect(said).toContain('no cluster was found, and ROLE controller needs one: set KUBECONFIG to a kubeconfig')
    expect(said).toContain(`(${file} is not used without KUBECONFIG)`)
  })

  it('uses ~/.kube/config with KUBERNETES=required, and says what is wrong with it', async () => {
    const home = join(stage.folder, 'left-behind')
    await mkdir(join(home, '.kube'), { recursive: true })
    await writeFile(join(home, '.kube', 'config'), 'apiVersion: v1\nkind: Config\ncurrent-context: ""\n')
    expect(await failureOf({ KUBERNETES: 'required', HOME: home })).toContain('left-behind')
  })

  it('beside the Lease of another installation it serves, reconciles nothing, and says why and what to do', async () => {
    await using cluster = await startFakeCluster()
    const other = '22222222-2222-4222-8222-222222222222'
    const LEASE = '/apis/coordination.k8s.io/v1/namespaces/monitoring/leases'
    await cluster.api('POST', LEASE, {
      metadata: {
        name: 'heartbeat-operator',
        namespace: 'monitoring',
        annotations: { 'heartbeat-operator.io/installation': other },
      },
      spec: { holderIdentity: '' },
    })
    const place = await openWorkplace(cluster)
    await place.apply('waiting')
    const KUBECONFIG = await stage.writeKubeconfig(cluster.server.url)
    const environment = stage.environmentOf({ KUBECONFIG, WATCH_NAMESPACES: '', CLUSTER_NAME: 'second' })
    await using service = await startService(environment)
    const why = `the Lease monitoring/heartbeat-operator belongs to the installation ${other}: HeartbeatChecks are not reconciled here.`
    const introduced = service.stdout.match(/^ {2}cluster .*$/gm)
    expect(introduced).toEqual([expect.stringContaining(`, not reconciled: ${why}`)])
    for (const way of ['kubectl delete lease -n monitoring heartbeat-operator', `TAKE_OVER=${other}`, 'KUBERNETES=off'])
      expect(introduced![0]).toContain(way)
    expect(service.stderr).toContain(why)
    const ready = await fetch(`${service.ops}/readyz`)
    expect({ status: ready.status, text: await ready.text() }).toEqual({
      status: 200,
      text: expect.stringContaining(`ok; ${why}`),
    })
    expect((await place.get('waiting')).status).toBeUndefined()

    {
      await using required = await startService({ ...environment, KUBERNETES: 'required' })
      expect(required.stdout).not.toContain('not reconciled')
      await place.ready('waiting')
      expect((await required.stop()).status).toBe(0)
    }
    // It looks again: with the Lease of the other one gone it begins.
    expect((await cluster.api('DELETE', `${LEASE}/heartbeat-operator`)).status).toBe(200)
    await eventually('it reconciles', async () =>
      (await fetch(`${service.ops}/readyz`)).text().then((text) => text === 'ok\n'),
    )
    await place.makeReady('next')
  })

  it('serves pings while its cluster cannot be reached, and reconciles when it comes', async () => {
    await using proxy = await startTcpProxy(Number(new URL(stage.cluster.server.url).port))
    proxy.refuse()
    // That of the installation of another test.
    await stage.cluster.api('DELETE', '/apis/coordination.k8s.io/v1/namespaces/default/leases/heartbeat-operator')
    await stage.place.apply('waiting')
    const kubeconfig = await stage.writeKubeconfig(proxy.url.replace('https:', 'http:'))
    await using service = await startService(stage.environmentOf({ KUBECONFIG: kubeconfig }))
    await eventually('it has tried', () => service.stderr.includes('the watch of HeartbeatChecks was interrupted'))
    expect(await statusOf(`${service.ops}/readyz`)).toBe(200)
    expect(await statusOf(`${service.ping}/ping/00000000-0000-4000-8000-000000000000`)).toBe(404)

    await proxy.accept()
    await stage.place.ready('waiting')
    // The operator publishes where the ping port is.
    expect(await statusOf(await stage.place.pingUrl('waiting'))).toBe(200)
  })
})

describe('a command', () => {
  const run = (...args: string[]) =>
    spawnService(
      { HOME: join(stage.folder, 'nobody'), KUBERNETES: 'auto' },
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

  it('--version prints that of package.json, whatever the configuration is', async () => {
    await using main = spawnService({ ROLE: 'none' }, { command: process.execPath, args: ['src/main.ts', '--version'] })
    expect(await main.end()).toEqual({ status: 0, signal: null })
    expect([main.stdout, main.stderr]).toEqual([`${VERSION}\n`, ''])
  })

  it('release says what it needs when there is no cluster', async () => {
    await using release = run('release')
    expect(await release.end()).toEqual({ status: 2, signal: null })
    expect(release.stderr).toBe(
      'no cluster was found to release from: set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount\n',
    )
  })
})
