/** manifests/ on an API server of their own: they install everything, and grant the controller what it needs and no more. */

import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readConfig } from '../../src/config/config.ts'
import { type ControlPlane, startControlPlane } from '../../tools/cluster/control-plane.ts'
import { requestApi } from '../../tools/cluster/control-plane-access.ts'
import { type Cluster, openCluster } from '../support/cluster-client.ts'
import { eventually } from '../support/until.ts'

const NAMESPACE = 'heartbeat-operator'
const CONTROLLER = `${NAMESPACE}/heartbeat-operator-controller`
const API = `${NAMESPACE}/heartbeat-operator-api`

let plane: ControlPlane
let cluster: Cluster

beforeAll(async () => {
  plane = await startControlPlane()
  cluster = openCluster(plane)
})
afterAll(() => plane?.stop())

const place = (path: string) => new URL(`../../${path}`, import.meta.url).pathname
const apply = (...paths: string[]) =>
  cluster.kubectl('apply', '--validate=strict', '--warnings-as-errors', ...paths.flatMap((path) => ['-f', place(path)]))

interface PodSpec {
  readonly automountServiceAccountToken?: boolean
  readonly volumes?: readonly { name: string }[]
  readonly containers: readonly [
    {
      readonly env: readonly { name: string; value?: string; valueFrom?: { secretKeyRef: { key: string } } }[]
      readonly ports: readonly { name: string; containerPort: number }[]
    },
  ]
}

/** Of a cluster's user, whatever every user may do left out. */
async function listRights(account: string, namespace: string): Promise<string[]> {
  const token = await cluster.tokenFor(account)
  const { body } = await requestApi(plane, '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
    method: 'POST',
    body: { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } },
    token,
  })
  expect(body.status.incomplete).toBe(false)
  const rules: { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[] =
    body.status.resourceRules
  return rules
    .filter(({ resources }) => !resources.some((resource) => resource.startsWith('selfsubject')))
    .flatMap(({ apiGroups, resources, verbs, resourceNames = [] }) =>
      resources.map((resource) =>
        [[...apiGroups, resource].filter(Boolean).join('/'), ...resourceNames, ...verbs].join(' '),
      ),
    )
    .sort()
}

const IN_NAMESPACES = [
  'batch/cronjobs get list watch',
  'batch/jobs get list watch',
  'configmaps get create patch delete',
  'events list',
  'events.k8s.io/events create patch',
  'heartbeat-operator.io/heartbeatchannels get list watch patch',
  'heartbeat-operator.io/heartbeatchannels/status update patch',
  'heartbeat-operator.io/heartbeatchecks create delete',
  'heartbeat-operator.io/heartbeatchecks get list watch patch',
  'heartbeat-operator.io/heartbeatchecks/status update patch',
  'heartbeat-operator.io/heartbeatsilences get list watch patch',
  'heartbeat-operator.io/heartbeatsilences/status update patch',
  'namespaces get',
  'pods list watch',
  'secrets get create patch delete',
]
/** Of everything that is the cluster's. */
const EVERYWHERE = [...IN_NAMESPACES.filter((right) => right !== 'namespaces get'), 'namespaces get list watch'].sort()
const LEASE = ['coordination.k8s.io/leases create', 'coordination.k8s.io/leases heartbeat-operator get update']

/** What the pods of a Deployment get, as the kubelet would put it together. */
async function readEnvironment(deployment: string): Promise<Record<string, string>> {
  const { body } = await cluster.api('GET', `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${deployment}`)
  const { body: configMap } = await cluster.api('GET', `/api/v1/namespaces/${NAMESPACE}/configmaps/heartbeat-operator`)
  const secret: Record<string, string> = {
    DATABASE_URL: 'postgres://user:password@db:5432/heartbeat',
    SECRET_KEY: Buffer.alloc(32).toString('base64'),
    BOOTSTRAP_PASSWORD: 'correct horse',
    BOOTSTRAP_API_KEY: `hbk_abc_${'0123456789abcdef'.repeat(2)}`,
  }
  const { env } = (body.spec.template.spec as PodSpec).containers[0]
  const own = env.map(({ name, value, valueFrom }) => [name, value ?? secret[valueFrom!.secretKeyRef.key]!])
  return { ...configMap.data, ...Object.fromEntries(own) }
}

describe('install.yaml', () => {
  beforeAll(async () => {
    await apply('manifests/install.yaml')
  })

  it('changes nothing when it is applied again', async () => {
    const lines = (await apply('manifests/install.yaml')).trim().split('\n')
    expect(lines.filter((line) => !line.endsWith(' unchanged'))).toEqual([])
  })

  it('makes pods that the Pod Security standard restricted lets in', async () => {
    const pods = await eventually('two pods of each Deployment', async () => {
      const { body } = await cluster.api('GET', `/api/v1/namespaces/${NAMESPACE}/pods`)
      return body.items.length === 4 ? (body.items as { spec: PodSpec; metadata: { labels: object } }[]) : null
    })
    for (const { spec, metadata } of pods) {
      const isApi = JSON.stringify(metadata.labels).includes('"api"')
      const hasToken = (spec.volumes ?? []).some(({ name }) => name.startsWith('kube-api-access'))
      expect(hasToken, 'only the controller gets a token').toBe(!isApi)
      const ports = spec.containers[0].ports.map(({ name, containerPort }) => `${name} ${containerPort}`)
      expect(ports).toEqual(isApi ? ['ping 8080', 'api 8081', 'ops 9090'] : ['ops 9090'])
    }
  })

  it.each([
    ['heartbeat-operator-api', 'api'],
    ['heartbeat-operator-controller', 'controller'],
  ])('configures %s so that it starts', async (deployment, role) => {
    const config = readConfig(await readEnvironment(deployment), false)
    expect(config).toMatchObject({
      role,
      pingUrl: 'http://heartbeat-operator-ping.heartbeat-operator.svc',
      baseUrl: 'http://heartbeat-operator-api.heartbeat-operator.svc/api/v1',
      clusterName: 'default',
      watchNamespaces: null,
    })
  })

  it('has the addresses that it configures', async () => {
    for (const [service, port] of [
      ['ping', 'ping'],
      ['api', 'api'],
    ]) {
      const { body } = await cluster.api(
        'GET',
        `/api/v1/namespaces/${NAMESPACE}/services/heartbeat-operator-${service}`,
      )
      expect(body.spec.ports).toMatchObject([{ port: 80, targetPort: port }])
    }
  })

  it('grants the controller exactly what it needs, everywhere', async () => {
    expect(await listRights(CONTROLLER, 'default')).toEqual(EVERYWHERE)
    expect(await listRights(CONTROLLER, NAMESPACE)).toEqual([...EVERYWHERE, ...LEASE].sort())
  })

  it('grants the API nothing', async () => {
    expect(await listRights(API, NAMESPACE)).toEqual([])
  })

  it('lets those who may edit a namespace edit its HeartbeatChecks, and those who may view it see them', async () => {
    const can = async (role: string, verb: string) => {
      const { body } = await cluster.api('GET', `/apis/rbac.authorization.k8s.io/v1/clusterroles/${role}`)
      const rules: { apiGroups?: string[]; resources?: string[]; verbs: string[] }[] = body.rules ?? []
      return rules.some(({ resources = [], verbs }) => resources.includes('heartbeatchecks') && verbs.includes(verb))
    }
    await eventually('the roles are put together', () => can('admin', 'create'))
    expect(await can('edit', 'create')).toBe(true)
    expect(await can('view', 'list')).toBe(true)
    expect(await can('view', 'create')).toBe(false)
  })
})

describe('with its token the controller', () => {
  const secrets = '/api/v1/namespaces/default/secrets'
  const checks = '/apis/heartbeat-operator.io/v1/namespaces/default/heartbeatchecks'
  let token: string

  const call = async (method: string, path: string, body?: unknown, contentType?: string) =>
    (await requestApi(plane, path, { method, body, token, ...(contentType === undefined ? {} : { contentType }) }))
      .status

  beforeAll(async () => {
    token = await cluster.tokenFor(CONTROLLER)
    await cluster.applyManifest(
      '{apiVersion: heartbeat-operator.io/v1, kind: HeartbeatCheck, metadata: {name: a, namespace: default}, spec: {periodSeconds: 60}}',
    )
  })

  it('lists and watches checks, and writes their finalizers and status', async () => {
    expect(await call('GET', '/apis/heartbeat-operator.io/v1/heartbeatchecks')).toBe(200)
    expect(await call('GET', `${checks}?watch=1&timeoutSeconds=1`)).toBe(200)
    expect(await call('PATCH', `${checks}/a`, { metadata: { finalizers: ['heartbeat-operator.io/cleanup'] } })).toBe(
      200,
    )
    expect(await call('PATCH', `${checks}/a/status`, { status: { state: 'new' } })).toBe(200)
    expect(await call('PATCH', `${checks}/a`, { metadata: { finalizers: null } })).toBe(200)
  })

  it('makes, reads, changes and removes a Secret of a name that it knows, with an owner', async () => {
    const { body: owner } = await cluster.api('GET', `${checks}/a`)
    const { apiVersion, kind, metadata } = owner
    const { name, uid } = metadata
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'a-heartbeat',
        labels: { 'app.kubernetes.io/managed-by': 'heartbeat-operator' },
        ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: false }],
      },
      data: { HEARTBEAT_URL: 'eA==' },
    }
    const apply = (object: object) =>
      call('PATCH', `${secrets}/a-heartbeat?fieldManager=x&force=true`, object, 'application/apply-patch+yaml')
    expect(await apply(secret)).toBe(201)
    expect(await apply({ ...secret, data: { HEARTBEAT_URL: 'eQ==' } })).toBe(200)
    expect(await call('GET', `${secrets}/a-heartbeat`)).toBe(200)
    expect(await call('DELETE', `${secrets}/a-heartbeat`)).toBe(200)
  })

  it('cannot list Secrets or ConfigMaps, nor watch them, nor take a whole lot away', async () => {
    for (const resource of ['secrets', 'configmaps']) {
      expect(await call('GET', `/api/v1/${resource}`)).toBe(403)
      expect(await call('GET', `/api/v1/namespaces/default/${resource}?watch=1`)).toBe(403)
      expect(await call('DELETE', `/api/v1/namespaces/default/${resource}`)).toBe(403)
    }
  })

  it('takes, renews and reads its Lease, and touches no other', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'heartbeat-operator' } }
    expect(await call('POST', leases, lease)).toBe(201)
    const { body: held } = await cluster.api('GET', `${leases}/heartbeat-operator`)
    expect(await call('PUT', `${leases}/heartbeat-operator`, held)).toBe(200)
    expect(await call('GET', `${leases}/heartbeat-operator`)).toBe(200)
    expect(await call('GET', `${leases}/another`)).toBe(403)
    expect(await call('GET', '/apis/coordination.k8s.io/v1/namespaces/default/leases/heartbeat-operator')).toBe(403)
  })

  it('reads and lists Namespaces, and changes none', async () => {
    expect(await call('GET', '/api/v1/namespaces/kube-system')).toBe(200)
    expect(await call('GET', '/api/v1/namespaces?limit=1')).toBe(200)
    const annotations = { 'heartbeat-operator.io/projects': 'payments' }
    expect(await call('PATCH', '/api/v1/namespaces/default', { metadata: { annotations } })).toBe(403)
  })

  it('reads no CustomResourceDefinition', async () => {
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    expect(await call('GET', definitions)).toBe(403)
    expect(await call('GET', `${definitions}/heartbeatchecks.heartbeat-operator.io`)).toBe(403)
  })
})

describe('install-namespaced.yaml', () => {
  beforeAll(async () => {
    const bindings = ['controller', 'cronjobs'].map((part) => `${NAMESPACE}-${NAMESPACE}-${part}`)
    await cluster.kubectl('delete', 'clusterrolebinding', ...bindings)
    await apply('manifests/install-namespaced.yaml')
  })

  it('holds nothing that belongs to the cluster but its namespace', () => {
    const kinds = parseAllDocuments(readFileSync(place('manifests/install-namespaced.yaml'), 'utf8')).map(
      (document) => (document.toJS() as { kind: string }).kind,
    )
    expect(kinds).not.toContain('CustomResourceDefinition')
    expect(kinds.filter((kind) => kind.startsWith('Cluster'))).toEqual([])
  })

  it('grants the controller the same, in its own namespace alone', async () => {
    expect(await listRights(CONTROLLER, NAMESPACE)).toEqual([...IN_NAMESPACES, ...LEASE].sort())
    expect(await listRights(CONTROLLER, 'default')).toEqual([])
  })

  it('lets it read its own Namespace and no other', async () => {
    const token = await cluster.tokenFor(CONTROLLER)
    expect((await requestApi(plane, `/api/v1/namespaces/${NAMESPACE}`, { token })).status).toBe(200)
    expect((await requestApi(plane, '/api/v1/namespaces/kube-system', { token })).status).toBe(403)
  })

  it('configures the controller to watch that namespace', async () => {
    const config = readConfig(await readEnvironment('heartbeat-operator-controller'), false)
    expect(config.watchNamespaces).toEqual([NAMESPACE])
  })
})
