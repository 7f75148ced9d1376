/**
 * The life of a release on an API server of its own, without nodes: what an upgrade, an uninstallation and another installation
 * leave as it was. The pods of hooks are played: their program runs here, with the rights of their ServiceAccount.
 */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FINALIZER } from '../../src/operator/names.ts'
import { type ControlPlane, startControlPlane } from '../../tools/cluster/control-plane.ts'
import { type Cluster, openCluster } from '../support/cluster-client.ts'
import { spawnService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'
import { CHART, type ChartObject, type HelmOutput, helm, NAMESPACE, RELEASE, type Values } from './chart.ts'

let plane: ControlPlane
let cluster: Cluster

beforeAll(async () => {
  plane = await startControlPlane()
  cluster = openCluster(plane)
})
afterAll(() => plane?.stop())

const CHECKS = '/apis/heartbeat-operator.io/v1/namespaces/default/heartbeatchecks'
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/heartbeatchecks.heartbeat-operator.io'
const within = (resource: string, namespace = NAMESPACE) => `/api/v1/namespaces/${namespace}/${resource}`

/** As the latest release has it. */
const RELEASED = fileURLToPath(new URL('../fixtures/release/chart.tgz', import.meta.url))

/** Helm on this API server, with the chart where the command takes one. */
function run(
  command: string,
  values: Values = {},
  { namespace = NAMESPACE, chart: ofCommand = CHART } = {},
  ...more: string[]
): Promise<HelmOutput> {
  const takesChart = ['install', 'upgrade'].includes(command)
  const chart = takesChart ? [ofCommand, '--values', '-'] : []
  const where = ['--namespace', namespace, '--kubeconfig', plane.kubeconfigPath, '--timeout', '60s']
  return helm(
    [command, RELEASE, ...chart, ...where, ...(command === 'install' ? ['--create-namespace'] : []), ...more],
    values,
  )
}

interface Kept {
  readonly uid: string
  readonly data: Record<string, string>
}

/** Secrets of the chart by name, as the cluster has them. */
async function readSecrets(): Promise<Record<string, Kept>> {
  const { body } = await cluster.api('GET', within('secrets'))
  const items: { metadata: { name: string; uid: string }; type: string; data: Record<string, string> }[] = body.items
  const ours = items.filter(({ type }) => type === 'Opaque')
  return Object.fromEntries(ours.map(({ metadata: { name, uid }, data }) => [name, { uid, data }]))
}

const claim = () =>
  eventually('the claim of PostgreSQL', async () => {
    const { status, body } = await cluster.api('GET', within('persistentvolumeclaims/data-heartbeat-postgresql-0'))
    return status === 200 && (body.metadata.uid as string)
  })

/** As the kubelet would: waits for the pod of a hook, runs its program, says how it ended. Resolves with what it printed. */
async function playPod(
  labels: string,
  program: (pod: Pod) => Promise<{ status: number | null; stdout: string }>,
): Promise<string> {
  const pod = await eventually(
    `a pod with ${labels}`,
    async () => {
      const { body } = await cluster.api('GET', `${within('pods')}?labelSelector=${encodeURIComponent(labels)}`)
      const [pod] = (body.items as Pod[]).filter(({ status }) => status.phase === 'Pending')
      return pod ?? null
    },
    30_000,
  )
  const { status: exitCode, stdout } = await program(pod)
  const terminated = { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error' }
  const [{ name, image }] = pod.spec.containers
  const { status } = await cluster.api('PATCH', `${within('pods')}/${pod.metadata.name}/status`, {
    status: {
      phase: exitCode === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [{ name, image, imageID: '', ready: false, restartCount: 0, state: { terminated } }],
    },
  })
  expect(status).toBe(200)
  return stdout
}

interface Pod {
  readonly metadata: { readonly name: string; readonly labels: Record<string, string> }
  readonly spec: {
    readonly serviceAccountName: string
    readonly containers: readonly [
      { name: string; image: string; args: string[]; env?: { name: string; value: string }[] },
    ]
  }
  readonly status: { readonly phase: string }
}

async function runAsPod({ spec }: Pod): Promise<{ status: number | null; stdout: string }> {
  const token = await cluster.tokenFor(`${NAMESPACE}/${spec.serviceAccountName}`)
  const KUBECONFIG = await cluster.writeKubeconfig({ credential: { token }, namespace: NAMESPACE })
  const [{ args, env = [] }] = spec.containers
  const own = Object.fromEntries(env.map(({ name, value }) => [name, value]))
  await using process_ = spawnService({ KUBECONFIG, KUBERNETES: 'auto', ...own }, { command: process.execPath, args })
  const { status } = await process_.end()
  return { status, stdout: process_.stdout + process_.stderr }
}

/** What `helm uninstall` leaves of the hooks of the chart, by kind. */
async function listHookObjects(): Promise<string[]> {
  const groups = [within('serviceaccounts'), `/apis/batch/v1/namespaces/${NAMESPACE}/jobs`]
  const rbac = '/apis/rbac.authorization.k8s.io/v1'
  const all = [
    ...groups,
    `${rbac}/clusterroles`,
    `${rbac}/clusterrolebindings`,
    `${rbac}/namespaces/${NAMESPACE}/roles`,
  ]
  const lists = await Promise.all(
    all.map(
      async (path) => (await cluster.api('GET', `${path}?labelSelector=app.kubernetes.io/component=uninstall`)).body,
    ),
  )
  return lists.flatMap(({ kind, items }) => items.map(({ metadata }: Pod) => `${kind} ${metadata.name}`))
}

describe('a release', () => {
  let secrets: Record<string, Kept>
  let volume: string

  it('is installed with secrets of its own, and says nothing of them', async () => {
    const { stdout, stderr } = await run('install', {}, { chart: RELEASED })
    expect(stdout).toContain('STATUS: deployed')
    secrets = await readSecrets()
    expect(Object.keys(secrets).sort()).toEqual(['heartbeat', 'heartbeat-postgresql'])
    for (const value of Object.values(secrets).flatMap(({ data }) => Object.values(data))) {
      expect(stdout + stderr).not.toContain(value)
      expect(stdout + stderr).not.toContain(Buffer.from(value, 'base64').toString())
    }
    volume = await claim()
  })

  it('is upgraded from the latest release to this chart, with its secrets and its volume', async () => {
    const { stdout } = await run('upgrade')
    expect(stdout).toContain('REVISION: 2')
    expect(await readSecrets()).toEqual(secrets)
    expect(await claim()).toBe(volume)
    const { body } = await cluster.api('GET', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`)
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    expect(body.items.map(({ metadata }: ChartObject) => metadata.labels['app.kubernetes.io/version'])).toEqual([
      version,
      version,
    ])
  })

  it('brings the kind HeartbeatCheck, which takes what its notes apply', async () => {
    const { stdout } = await helm(['get', 'notes', RELEASE, '-n', NAMESPACE, '--kubeconfig', plane.kubeconfigPath])
    const [, check, apply] = /echo '(.*)' \|\n\s+kubectl -n default (apply -f -)/.exec(stdout)!
    await eventually('the kind is there', async () => (await cluster.api('GET', CHECKS)).status === 200)
    expect(await cluster.kubectlWith({ input: check! }, '-n', 'default', ...apply!.split(' '))).toContain(
      'hello created',
    )
    await cluster.api('PATCH', `${CHECKS}/hello`, { metadata: { finalizers: [FINALIZER] } })
  })

  it('keeps secrets and volume when it is upgraded, whatever changes', async () => {
    await run('upgrade', {
      logLevel: 'debug',
      api: { replicas: 3 },
      postgresql: { parameters: { max_connections: '250' } },
    })
    expect(await readSecrets()).toEqual(secrets)
    await run('upgrade')
    expect(await readSecrets()).toEqual(secrets)
    expect(await claim()).toBe(volume)
  })

  it('gives each replica of the api a volume when it is asked to, and keeps these when that is taken back', async () => {
    const kinds = async () => {
      const found = await Promise.all(
        ['deployments', 'statefulsets'].map(async (kind) => {
          const path = `/apis/apps/v1/namespaces/${NAMESPACE}/${kind}/heartbeat-api`
          return (await cluster.api('GET', path)).status === 200 ? kind : null
        }),
      )
      return found.filter((kind) => kind !== null)
    }
    const readClaims = async () => {
      const { body } = await cluster.api('GET', within('persistentvolumeclaims'))
      const names = (body.items as Pod[]).map(({ metadata }) => metadata.name)
      return names.filter((name) => name.startsWith('spool-')).sort()
    }
    const claims = ['spool-heartbeat-api-0', 'spool-heartbeat-api-1']
    const withVolumes = (enabled: boolean) => ({ api: { spool: { persistentVolume: { enabled } } } })
    await run('upgrade', withVolumes(true))
    await eventually('only the StatefulSet is there', async () => (await kinds()).join() === 'statefulsets')
    // At the same time: podManagementPolicy is Parallel, and no pod becomes ready here.
    await eventually('two claims', async () => (await readClaims()).length === 2)
    expect(await readClaims()).toEqual(claims)
    await run('upgrade', withVolumes(false))
    await eventually('only the Deployment is there', async () => (await kinds()).join() === 'deployments')
    expect(await readClaims()).toEqual(claims)
    expect(await claim()).toBe(volume)
  })

  it('keeps a key that was added to its Secret, and generates a key that was removed', async () => {
    const path = within('secrets/heartbeat')
    await cluster.api('PATCH', path, { stringData: { PREVIOUS_SECRET_KEYS: 'old' }, data: { BOOTSTRAP_API_KEY: null } })
    await run('upgrade')
    const { heartbeat } = await readSecrets()
    expect(heartbeat!.data).toMatchObject({
      SECRET_KEY: secrets.heartbeat!.data.SECRET_KEY,
      PREVIOUS_SECRET_KEYS: Buffer.from('old').toString('base64'),
      BOOTSTRAP_API_KEY: expect.not.stringMatching(`^(${secrets.heartbeat!.data.BOOTSTRAP_API_KEY})?$`),
    })
    secrets = await readSecrets()
  })

  it('is tested by a pod that Helm waits for, and takes away when it was fine', async () => {
    const path = within('pods/heartbeat-test')
    const test = run('test')
    await playPod('app.kubernetes.io/component=test', async () => ({ status: 0, stdout: '' }))
    expect((await test).stdout).toContain('Phase:          Succeeded')
    await eventually('the pod is gone', async () => (await cluster.api('GET', path)).status === 404)
    const failing = run('test')
    const [, outcome] = await Promise.all([
      playPod('app.kubernetes.io/component=test', async () => ({ status: 1, stdout: '' })),
      failing.catch((error: Error) => error.message),
    ])
    expect(outcome).toContain('heartbeat-test failed')
    expect((await cluster.api('GET', path)).status).toBe(200)
  })

  it('takes our finalizers along when it is uninstalled, and leaves checks, kind, secrets and volume', async () => {
    const uninstalling = run('uninstall')
    const printed = await playPod('app.kubernetes.io/component=uninstall', runAsPod)
    expect(printed).toMatch(/1 HeartbeatCheck/)
    const { stdout } = await uninstalling
    expect(stdout).toContain('release "heartbeat" uninstalled')
    const { body: check } = await cluster.api('GET', `${CHECKS}/hello`)
    expect(check.metadata.finalizers).toBeUndefined()
    const conditions: { type: string; status: string }[] = check.status?.conditions ?? []
    expect(conditions.filter(({ type }) => type === 'Ready').map(({ status }) => status)).not.toContain('True')
    expect((await cluster.api('GET', CRD)).status).toBe(200)
    expect(await readSecrets()).toEqual(secrets)
    expect(await claim()).toBe(volume)
    await eventually('the hooks are gone', async () => (await listHookObjects()).length === 0)
    const { body } = await cluster.api('GET', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments`)
    expect(body.items).toEqual([])
  })

  it('finds all of it again when it is installed another time', async () => {
    await run('install')
    expect(await readSecrets()).toEqual(secrets)
    expect(await claim()).toBe(volume)
    const { body: crd } = await cluster.api('GET', CRD)
    expect(crd.metadata.annotations).toMatchObject({ 'meta.helm.sh/release-name': RELEASE })
    expect((await cluster.api('GET', `${CHECKS}/hello`)).status).toBe(200)
  })

  it('lets another one live beside it that keeps to its own namespace', async () => {
    const values = { crds: { enabled: false }, watchNamespaces: ['team'], clusterName: 'team' }
    await run('install', values, { namespace: 'team' })
    const { body } = await cluster.api('GET', '/apis/rbac.authorization.k8s.io/v1/namespaces/team/roles')
    expect(body.items.map(({ metadata }: Pod) => metadata.name)).toEqual([
      'heartbeat-controller',
      'heartbeat-cronjobs',
      'heartbeat-lease',
    ])
  })

  it('lets another one of the whole cluster have a policy and roles of its own', async () => {
    const values = { crds: { enabled: false }, fullnameOverride: 'other', clusterName: 'other' }
    await run('install', values, { namespace: 'second' })
    const admission = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies'
    const { body } = await cluster.api('GET', `${admission}/other-second-publishes`)
    expect(body.spec.matchConditions[0].expression).toContain("'system:serviceaccount:second:other-controller'")
    const releaseOf = async (role: string) => {
      const { body } = await cluster.api('GET', `/apis/rbac.authorization.k8s.io/v1/clusterroles/${role}`)
      return body.metadata.annotations['meta.helm.sh/release-namespace']
    }
    for (const role of ['controller', 'cronjobs', 'publisher', 'view', 'edit']) {
      expect(await releaseOf(`heartbeat-${NAMESPACE}-${role}`)).toBe(NAMESPACE)
      expect(await releaseOf(`other-second-${role}`)).toBe('second')
    }
  })
})
