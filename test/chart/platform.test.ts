/** What a team that runs clusters for others sets: accounts, mirrors of registries, fields of pods and Services. */

import { describe, expect, it } from 'vitest'
import { CASES } from './cases.ts'
import {
  type ChartObject,
  DEFINITIONS,
  describeObject,
  listPods,
  pick,
  pickDefinition,
  RELEASE,
  renderChart,
  renderText,
} from './chart.ts'

const COMPONENTS = ['api', 'controller'] as const

const podOf = (objects: readonly ChartObject[], component: string) =>
  listPods(objects).find(({ labels }) => labels['app.kubernetes.io/component'] === component)!

describe('an account of yours', () => {
  const OWN = { create: false, name: 'theirs' }

  it('is used by the pods of its component, and not created', async () => {
    const objects = await renderChart({ api: { serviceAccount: OWN } })
    expect(podOf(objects, 'api').spec.serviceAccountName).toBe('theirs')
    const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name)
    expect(accounts.sort()).toEqual(['heartbeat-controller', 'heartbeat-uninstall'])
  })

  it.each([
    ['everywhere', {}],
    ['in single namespaces', CASES.namespaced],
  ])('gets the rights of the controller, and its limits, %s', async (_, values) => {
    const objects = await renderChart({ ...values, controller: { serviceAccount: OWN } })
    expect(podOf(objects, 'controller').spec.serviceAccountName).toBe('theirs')
    const bindings = objects.filter(
      ({ kind, metadata }) =>
        kind.endsWith('RoleBinding') && metadata.labels['app.kubernetes.io/component'] === 'controller',
    )
    expect(bindings.length).toBeGreaterThanOrEqual(3)
    for (const { subjects } of bindings) expect(subjects).toMatchObject([{ name: 'theirs', namespace: 'monitoring' }])
    expect(pick(objects, 'ValidatingAdmissionPolicy').spec.matchConditions).toMatchObject([
      { expression: "request.userInfo.username == 'system:serviceaccount:monitoring:theirs'" },
    ])
  })

  it('may be made by the chart under another name, with labels', async () => {
    const labels = { 'azure.workload.identity/use': 'true' }
    const objects = await renderChart({ api: { serviceAccount: { name: 'ours', labels } } })
    expect(pick(objects, 'ServiceAccount', 'ours').metadata.labels).toMatchObject(labels)
    expect(podOf(objects, 'api').spec.serviceAccountName).toBe('ours')
  })

  it.each([
    ['everywhere', {}],
    ['in single namespaces', CASES.namespaced],
  ])('has a name that is a text, also where the name is a number, %s', async (_, values) => {
    const api = { serviceAccount: { name: '1000' } }
    const objects = await renderChart({ ...values, api, controller: { serviceAccount: { name: '2000' } } })
    for (const [component, name] of [
      ['api', '1000'],
      ['controller', '2000'],
    ] as const) {
      expect(pick(objects, 'ServiceAccount', name).metadata.name).toBe(name)
      expect(podOf(objects, component).spec.serviceAccountName).toBe(name)
    }
    for (const { subjects = [] } of objects)
      for (const { name } of subjects) expect(['2000', 'heartbeat-uninstall']).toContain(name)
  })
})

describe('a mirror of registries', () => {
  const imagesWith = async (values: object) =>
    listPods(await renderChart({ ...values })).map(({ spec }) => spec.containers[0].image.replace(/[:@].*/, ''))
  const MIRROR = 'mirror.example.com/cache'

  it.each([MIRROR, `${MIRROR}/`])('%s takes the place of the registry in every image', async (imageRegistry) => {
    const images = await imagesWith({ global: { imageRegistry } })
    expect(new Set(images)).toEqual(
      new Set([`${MIRROR}/heartbeat-operator/heartbeat-operator`, `${MIRROR}/library/postgres`]),
    )
  })

  it.each([
    ['registry.example.com:5000/team/heartbeat', 'team/heartbeat'],
    ['localhost/heartbeat', 'heartbeat'],
    ['team/heartbeat', 'team/heartbeat'],
    ['heartbeat', 'heartbeat'],
  ])('of the image %s has the path %s', async (repository, path) => {
    const images = await imagesWith({ global: { imageRegistry: 'mirror' }, image: { repository } })
    expect(images).toContain(`mirror/${path}`)
  })

  it('has its Secrets in every pod, as names or as Kubernetes writes them, each once', async () => {
    const objects = await renderChart({
      global: { imagePullSecrets: ['mirror', { name: 'other' }] },
      imagePullSecrets: [{ name: 'own' }, { name: 'mirror' }],
    })
    const pods = listPods(objects)
    expect(pods).toHaveLength(5)
    for (const { owner, spec } of pods)
      expect(spec.imagePullSecrets, describeObject(owner)).toEqual([
        { name: 'mirror' },
        { name: 'other' },
        { name: 'own' },
      ])
    for (const { spec } of listPods(await renderChart())) expect(spec).not.toHaveProperty('imagePullSecrets')
  })
})

describe('the pods', () => {
  it.each(COMPONENTS)('of the %s have what is set for them, and those of the other one do not', async (component) => {
    const { runtimeClassName, dnsConfig, hostAliases, extraContainers, initContainers } = CASES.everything[
      component
    ] as Record<string, object[]>
    const fields = { runtimeClassName, dnsConfig, hostAliases, initContainers }
    const objects = await renderChart({ [component]: { ...fields, extraContainers } })
    const [other] = COMPONENTS.filter((name) => name !== component)
    const { spec } = podOf(objects, component)
    expect(spec).toMatchObject(fields)
    expect(spec.containers.map(({ name }) => name)).toEqual([component, 'beside'])
    const { spec: rest } = podOf(objects, other!)
    expect(rest.containers).toHaveLength(1)
    for (const field of Object.keys(fields)) expect(rest, field).not.toHaveProperty(field)
  })

  it('of hooks run where those of their component run, without the containers beside', async () => {
    const objects = await renderChart(CASES.everything)
    for (const [hook, component] of [
      ['test', 'api'],
      ['uninstall', 'controller'],
    ] as const) {
      const { runtimeClassName, dnsConfig, hostAliases, nodeSelector, tolerations } = podOf(objects, component).spec
      expect(podOf(objects, hook).spec).toMatchObject({
        runtimeClassName,
        dnsConfig,
        hostAliases,
        nodeSelector,
        tolerations,
      })
      expect(podOf(objects, hook).spec.containers).toHaveLength(1)
      expect(podOf(objects, hook).spec).not.toHaveProperty('initContainers')
    }
  })

  it.each([...COMPONENTS])('of the %s are replaced as the strategy says', async (component) => {
    const specOf = async (values: object) =>
      pick(await renderChart({ [component]: values }), 'Deployment', `heartbeat-${component}`).spec
    expect(await specOf({ strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } })).toMatchObject({
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
      revisionHistoryLimit: 10,
    })
    // Kubernetes takes no rollingUpdate beside it, and the chart has one by default.
    const { strategy, revisionHistoryLimit } = await specOf({ strategy: { type: 'Recreate' }, revisionHistoryLimit: 0 })
    expect([strategy, revisionHistoryLimit]).toEqual([{ type: 'Recreate' }, 0])
  })

  it('keep the labels by which they are selected, whatever label is added', async () => {
    const name = { 'app.kubernetes.io/name': 'theirs' }
    const objects = await renderChart({ commonLabels: name, api: { podLabels: name }, postgresql: { podLabels: name } })
    for (const { owner, labels } of listPods(objects))
      expect(labels['app.kubernetes.io/name'], describeObject(owner)).toBe('heartbeat-operator')
  })

  it('are scraped, whatever label is added', async () => {
    const metrics = { 'heartbeat-operator.io/metrics': 'false' }
    // A key that is there twice makes invalid YAML, which parseObjects() rejects.
    const objects = await renderChart({ commonLabels: metrics, controller: { podLabels: metrics } })
    for (const component of COMPONENTS)
      expect(podOf(objects, component).labels['heartbeat-operator.io/metrics'], component).toBe('true')
  })

  it('have labels that are texts, in a release whose name is a number', async () => {
    const objects = await renderChart({ nameOverride: '1e3' }, { release: '12' })
    const { labels } = podOf(objects, 'api')
    expect([labels['app.kubernetes.io/instance'], labels['app.kubernetes.io/name']]).toEqual(['12', '1e3'])
  })

  it('and all else are in the namespace of the release, also where its name is a number', async () => {
    const objects = await renderChart({ ...CASES.everything, podMonitor: { enabled: true } }, { namespace: '12' })
    const namespaces = objects.map(({ metadata }) => metadata.namespace).filter((name) => name !== undefined)
    expect(new Set(namespaces)).toEqual(new Set(['12', 'prometheus']))
    expect(pick(objects, 'PodMonitor').spec.namespaceSelector.matchNames).toEqual(['12'])
    const [{ namespace }] = pick(objects, 'RoleBinding', 'heartbeat-lease').subjects
    expect(namespace).toBe('12')
  })
})

it.each(['imagePullSecrets', 'global'])('%s without a value is the same as none', async (name) => {
  for (const { owner, spec } of listPods(await renderChart({ [name]: null })))
    expect(spec, describeObject(owner)).not.toHaveProperty('imagePullSecrets')
})

describe('annotations', () => {
  it('are on every object, beside its own', async () => {
    const values = { commonAnnotations: { 'example.com/owner': 'a', 'helm.sh/resource-policy': 'delete' } }
    const objects = await renderChart(values)
    for (const { kind, metadata } of objects)
      expect(metadata.annotations, kind).toMatchObject({ 'example.com/owner': 'a' })
    const definitions = DEFINITIONS.map((plural) => pickDefinition(objects, plural))
    for (const kept of [...definitions, pick(objects, 'Secret', RELEASE)])
      expect(kept.metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' })
  })

  it.each([
    ['Deployment', {}],
    ['StatefulSet', { spool: { persistentVolume: { enabled: true } } }],
  ])('of a %s are on it alone', async (kind, api) => {
    const deploymentAnnotations = { 'reloader.example.com/auto': 'true' }
    const objects = await renderChart({ api: { ...api, deploymentAnnotations } })
    const annotated = objects.filter(({ metadata }) => metadata.annotations?.['reloader.example.com/auto'] === 'true')
    expect(annotated.map(describeObject)).toEqual([`${kind} monitoring/heartbeat-api`])
    expect(podOf(objects, 'api').owner.spec.template.metadata.annotations).not.toMatchObject(deploymentAnnotations)
  })
})

describe('the Services', () => {
  const serviceOf = async (name: string, values: object) =>
    pick(await renderChart({ service: { [name]: values } }), 'Service', `heartbeat-${name}`).spec

  it.each(['ping', 'api'])('of %s have what a load balancer needs', async (name) => {
    const { nodePort, annotations, ...fields } = (CASES.everything.service as Record<string, Record<string, unknown>>)
      .ping!
    const spec = await serviceOf(name, { nodePort, ...fields })
    expect(spec).toMatchObject({ ...fields, ports: [{ name, port: 80, nodePort }] })
  })

  it.each(['ping', 'api'])('of %s have a port of every node, without the rest', async (name) => {
    const spec = await serviceOf(name, { type: 'NodePort', nodePort: 30_080, externalTrafficPolicy: 'Local' })
    expect(spec).toMatchObject({ type: 'NodePort', externalTrafficPolicy: 'Local', ports: [{ nodePort: 30_080 }] })
  })

  it.each(['ping', 'api'])('of %s are plain by default', async (name) => {
    const { selector, ...spec } = await serviceOf(name, {})
    expect(spec).toEqual({ type: 'ClusterIP', ports: [{ name, port: 80, targetPort: name }] })
  })
})

describe('objects of yours', () => {
  const template = '{"url": "{{ .url }}"}'
  const external = {
    apiVersion: 'external-secrets.io/v1',
    kind: 'ExternalSecret',
    metadata: { name: 'heartbeat-db', namespace: 'monitoring' },
    spec: { target: { template: { data: { template } } } },
  }

  it('are in the release as they are, also with templates of others', async () => {
    expect(pick(await renderChart({ extraObjects: [external] }), 'ExternalSecret')).toEqual(external)
  })

  it('are templates of Helm where they are texts', async () => {
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-theirs}\ndata: {a: "1"}\n'
    const objects = await renderChart({ extraObjects: [text, external] })
    expect(pick(objects, 'ConfigMap', 'heartbeat-theirs').data).toEqual({ a: '1' })
    expect(pick(objects, 'ExternalSecret')).toEqual(external)
  })
})

describe('two renderings', () => {
  const SECRETS = {
    secretKey: { existingSecret: 'keys' },
    bootstrap: { existingSecret: 'first-user' },
    postgresql: { existingSecret: 'database' },
  }

  it.each(Object.entries(CASES))('are the same, byte for byte, with the values of "%s"', async (_, values) => {
    const all = { ...values, generateSecrets: false, ...SECRETS }
    const text = await renderText(all)
    expect(text.length).toBeGreaterThan(10_000)
    expect(await renderText(all)).toBe(text)
  })

  it('differ where secrets are generated', async () => {
    expect(await renderText()).not.toBe(await renderText())
  })
})
