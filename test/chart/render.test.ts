/** What the chart makes of many sets of values. */

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { CASES, EACH_CASE } from './cases.ts'
import {
  CHART,
  type ChartObject,
  DEFINITIONS,
  describeObject,
  helm,
  listPods,
  parseObjects,
  pick,
  pickDefinition,
  RELEASE,
  readRefusal,
  renderChart,
  renderText,
} from './chart.ts'

const CLUSTER_WIDE = [
  ...['ClusterRole', 'ClusterRoleBinding', 'CustomResourceDefinition'],
  ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'],
]
describe.each(EACH_CASE)('with the values of "%s"', (_, values) => {
  it('passes helm lint --strict', async () => {
    const { stdout } = await helm(['lint', '--strict', CHART, '--values', '-'], values)
    expect(stdout).toContain('0 chart(s) failed')
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/)
  })

  it('makes no object twice, each in a namespace where its kind has one, with our labels', async () => {
    const objects = await renderChart(values)
    const names = objects.map(describeObject)
    expect(names).toEqual([...new Set(names)])
    for (const object of objects) {
      const { kind, metadata } = object
      expect(metadata.namespace !== undefined, describeObject(object)).toBe(!CLUSTER_WIDE.includes(kind))
      expect(metadata.labels, describeObject(object)).toMatchObject({
        'app.kubernetes.io/instance': 'heartbeat',
        'app.kubernetes.io/managed-by': 'Helm',
        'app.kubernetes.io/version': expect.any(String),
        'helm.sh/chart': expect.stringMatching(/^heartbeat-operator-\d/),
      })
    }
  })

  it('sets no variable of a container twice', async () => {
    for (const { owner, spec } of listPods(await renderChart(values))) {
      const names = (spec.containers[0].env ?? []).map(({ name }) => name)
      expect(names, describeObject(owner)).toEqual([...new Set(names)])
    }
  })

  it('makes pods that may do as little as they can', async () => {
    const pods = listPods(await renderChart(values))
    expect(pods.length).toBeGreaterThanOrEqual(3)
    for (const { owner, spec } of pods) {
      const { securityContext, resources } = spec.containers[0]
      expect(spec, describeObject(owner)).toMatchObject({
        enableServiceLinks: false,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: expect.any(Number),
          seccompProfile: { type: 'RuntimeDefault' },
        },
      })
      expect(securityContext, describeObject(owner)).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
      expect(resources, describeObject(owner)).toMatchObject({
        requests: { cpu: expect.any(String), memory: expect.any(String), 'ephemeral-storage': expect.any(String) },
        limits: { memory: expect.any(String), 'ephemeral-storage': expect.any(String) },
      })
    }
  })

  it('gives a token of Kubernetes only to the controller and to the Job of the uninstallation', async () => {
    const objects = await renderChart(values)
    for (const account of objects.filter(({ kind }) => kind === 'ServiceAccount'))
      expect(account.automountServiceAccountToken, describeObject(account)).toBe(false)
    const withToken = listPods(objects).filter(({ spec }) => spec.automountServiceAccountToken !== false)
    const components = withToken.map(({ labels }) => labels['app.kubernetes.io/component'])
    expect(components.filter((component) => component !== 'uninstall')).toEqual(['controller'])
    const accounts = listPods(objects).map(({ spec }) => spec.serviceAccountName)
    expect(new Set(accounts.filter(Boolean)).size).toBe(accounts.filter(Boolean).length)
  })

  it('has no Secret with a value in clear outside of Secrets', async () => {
    const objects = await renderChart(values)
    const secrets = objects.filter(({ kind }) => kind === 'Secret')
    const rest = JSON.stringify(objects.filter(({ kind }) => kind !== 'Secret'))
    for (const value of secrets.flatMap(({ data }) => Object.values(data as Record<string, string>))) {
      expect(rest).not.toContain(value)
      expect(rest).not.toContain(Buffer.from(value, 'base64').toString())
    }
  })
})

/** Whether Services, budgets and policies of this selector mean these pods. */
const selects = (selector: Record<string, string>, labels: Readonly<Record<string, string>>) =>
  Object.entries(selector).every(([label, value]) => labels[label] === value)

describe('selectors', () => {
  const componentsOf = (objects: readonly ChartObject[], selector: Record<string, string>) =>
    listPods(objects)
      .filter(({ labels }) => selects(selector, labels))
      .map(({ labels }) => labels['app.kubernetes.io/component'])

  it('of Services lead to the pods that have the port', async () => {
    const objects = await renderChart(CASES.everything)
    const services = objects.filter(({ kind }) => kind === 'Service')
    const found = services.map(({ metadata, spec }) => [metadata.name, componentsOf(objects, spec.selector)])
    expect(Object.fromEntries(found)).toEqual({
      'heartbeat-ping': ['api'],
      'heartbeat-api': ['api'],
      'heartbeat-ops': ['api', 'controller'],
      'heartbeat-postgresql': ['postgresql'],
    })
    for (const { spec } of services)
      for (const { labels, spec: pod } of listPods(objects).filter(({ labels }) => selects(spec.selector, labels)))
        expect(
          pod.containers[0].ports.map(({ name }: { name: string }) => name),
          labels['app.kubernetes.io/component'],
        ).toContain(spec.ports[0].targetPort)
  })

  it('of budgets, policies and workloads mean one component, and no label that changes with a version', async () => {
    const objects = await renderChart(CASES.everything)
    const owners = objects.filter(({ kind }) => ['PodDisruptionBudget', 'Deployment', 'StatefulSet'].includes(kind))
    const selectors = [
      ...owners.map((object) => ({ object, selector: object.spec.selector.matchLabels })),
      ...objects
        .filter(({ kind }) => kind === 'NetworkPolicy')
        .map((object) => ({ object, selector: object.spec.podSelector.matchLabels })),
    ]
    expect(selectors).toHaveLength(8)
    for (const { object, selector } of selectors) {
      expect(componentsOf(objects, selector), describeObject(object)).toEqual([
        object.metadata.labels['app.kubernetes.io/component'],
      ])
      expect(Object.keys(selector).sort()).toEqual([
        'app.kubernetes.io/component',
        'app.kubernetes.io/instance',
        'app.kubernetes.io/name',
      ])
    }
  })
})

describe('the Deployments', () => {
  it('of the api never has fewer pods than before while it is rolled out', async () => {
    const { spec } = pick(await renderChart(), 'Deployment', 'heartbeat-api')
    expect(spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 })
    expect(spec.replicas).toBe(2)
  })

  it('spread over nodes, counting only the pods of their own version', async () => {
    for (const name of ['api', 'controller']) {
      const { spec } = pick(await renderChart(), 'Deployment', `heartbeat-${name}`)
      expect(spec.template.spec.topologySpreadConstraints).toMatchObject([
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { 'app.kubernetes.io/component': name } },
          matchLabelKeys: ['pod-template-hash'],
        },
      ])
    }
    const least = await renderChart(CASES.least)
    for (const { spec } of listPods(least)) expect(spec.topologySpreadConstraints).toBeUndefined()
  })

  it('leave the number of replicas to the autoscaler where there is one', async () => {
    const objects = await renderChart({ api: { autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 9 } } })
    expect(pick(objects, 'Deployment', 'heartbeat-api').spec).not.toHaveProperty('replicas')
    expect(pick(objects, 'HorizontalPodAutoscaler').spec).toMatchObject({
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'heartbeat-api' },
      minReplicas: 3,
      maxReplicas: 9,
    })
  })

  it('are rolled out anew when their configuration changes', async () => {
    const sum = async (values: object) =>
      pick(await renderChart({ ...values }), 'Deployment', 'heartbeat-api').spec.template.metadata.annotations[
        'checksum/config'
      ]
    expect(await sum({ logLevel: 'debug' })).not.toBe(await sum({}))
    expect(await sum({})).toBe(await sum({ serviceMonitor: { enabled: true } }))
  })

  it('have a budget of disruptions only where one pod can be missed', async () => {
    const budgets = async (values: object) =>
      (await renderChart({ ...values }))
        .filter(({ kind }) => kind === 'PodDisruptionBudget')
        .map(({ metadata }) => metadata.name)
    expect(await budgets({})).toEqual(['heartbeat-api', 'heartbeat-controller'])
    expect(await budgets({ controller: { replicas: 1 } })).toEqual(['heartbeat-api'])
    expect(await budgets({ api: { autoscaling: { enabled: true, minReplicas: 1 } } })).toEqual(['heartbeat-controller'])
    expect(await budgets({ api: { replicas: 1, autoscaling: { enabled: true, minReplicas: 2 } } })).toHaveLength(2)
  })
})

describe('the image', () => {
  const images = async (values: object) =>
    listPods(await renderChart({ ...values })).map(({ spec }) => spec.containers[0].image)
  const OURS = 'ghcr.io/heartbeat-operator/heartbeat-operator'

  it('is that of this version, with PostgreSQL of its own', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
    const { appVersion, version: chartVersion } = parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'))
    expect({ appVersion, chartVersion }).toEqual({ appVersion: version, chartVersion: version })
    const [postgres, ...ours] = (await images({})).toSorted()
    expect(new Set(ours)).toEqual(new Set([`${OURS}:${version}`]))
    expect(postgres).toMatch(/^docker\.io\/library\/postgres:18@sha256:[0-9a-f]{64}$/)
  })

  it('is of the tag, or of the digest where there is one', async () => {
    expect(await images({ image: { tag: '9.9.9' } })).toContain(`${OURS}:9.9.9`)
    const digest = `sha256:${'a'.repeat(64)}`
    expect(await images({ image: { tag: '9.9.9', digest } })).toContain(`${OURS}@${digest}`)
    expect(await images({ postgresql: { image: { digest } } })).toContain(`docker.io/library/postgres@${digest}`)
  })
})

describe('names', () => {
  const prefix = async (values: object, release: string) =>
    pick(await renderChart({ ...values }, { release }), 'ConfigMap').metadata.name

  it('begin with the release, which says heartbeat or has the chart behind it', async () => {
    expect(await prefix({}, 'heartbeat')).toBe('heartbeat')
    expect(await prefix({}, 'my-heartbeats')).toBe('my-heartbeats')
    expect(await prefix({}, 'watch')).toBe('watch-heartbeat-operator')
    expect(await prefix({ fullnameOverride: 'ours' }, 'watch')).toBe('ours')
    expect(await prefix({}, 'my.heartbeat')).toBe('my-heartbeat')
  })

  it('stay within the limits of Kubernetes with the longest release', async () => {
    const release = 'r'.repeat(53)
    for (const object of await renderChart(CASES.everything, { release }))
      if (object.kind !== 'CustomResourceDefinition')
        expect(object.metadata.name.length, describeObject(object)).toBeLessThanOrEqual(63)
  })
})

describe('secrets that are generated', () => {
  const OWN = {
    secretKey: { existingSecret: 'keys' },
    bootstrap: { existingSecret: 'first-user' },
    postgresql: { existingSecret: 'database' },
  }

  it.each([
    ['secretKey', 'the Secret monitoring/heartbeat with the key SECRET_KEY is missing'],
    ['bootstrap', 'the Secret monitoring/heartbeat with the key BOOTSTRAP_PASSWORD is missing'],
    ['postgresql', 'the Secret monitoring/heartbeat-postgresql with the key password is missing'],
  ] as const)(
    'of %s are none where Helm sees no cluster: the rendering says which one is missing',
    async (name, words) => {
      const { [name]: left, ...others } = OWN
      const message = await readRefusal({ generateSecrets: false, ...others })
      expect(message).toContain(words)
      expect(message).toContain(`${name}.existingSecret, or set generateSecrets: true`)
    },
  )

  it('are not needed where each has a Secret of yours: two renderings are the same, byte for byte', async () => {
    const values = { generateSecrets: false, ...OWN }
    const text = await renderText(values)
    expect(await renderText(values)).toBe(text)
    const { postgresql, ...rest } = values
    expect(parseObjects(await renderText({ ...rest, database: { existingSecret: 'theirs' } }))).not.toEqual([])
  })

  it('are refused by default too', async () => {
    await expect(helm(['template', RELEASE, CHART, '-n', 'monitoring'])).rejects.toThrow('generateSecrets: true')
  })
})

describe('the notes', () => {
  const notes = async (values: object) => {
    const { stdout } = await helm(['install', RELEASE, CHART, '-n', 'monitoring', '--dry-run=client', '-f', '-'], {
      generateSecrets: true,
      ...values,
    })
    return stdout.slice(stdout.indexOf('NOTES:'))
  }

  it('lead to the dashboard, by its address or through a forwarded port, with the first log-in', async () => {
    const [inside, outside] = [await notes({}), await notes({ baseUrl: 'https://h.example.com/api/v1' })]
    expect(inside).toContain(
      '4. Open the dashboard: http://127.0.0.1:8081/ while this runs:\n\n  kubectl -n monitoring',
    )
    expect(inside).toContain('port-forward service/heartbeat-api 8081:80')
    expect(outside).toContain('4. Open the dashboard: https://h.example.com/\n')
    expect(outside).not.toContain('port-forward')
    for (const text of [inside, outside]) expect(text).toContain("-o jsonpath='{.data.BOOTSTRAP_PASSWORD}'")
  })

  it('name no password where there is no log-in with one, and no dashboard where it is disabled', async () => {
    const [tokens, disabled] = [await notes({ passwordLogin: false }), await notes({ dashboard: { enabled: false } })]
    expect(tokens).toContain('Open the dashboard')
    expect(tokens).not.toContain('BOOTSTRAP_PASSWORD')
    expect(disabled).not.toMatch(/the dashboard|BOOTSTRAP_PASSWORD/)
  })

  it('say how CronJobs are monitored, as far as the values have them monitored', async () => {
    const [labelled, all, none] = await Promise.all(
      ['labelled', 'all', 'none'].map((watch) => notes({ cronJobs: { watch }, watchNamespaces: ['shop'] })),
    )
    expect(labelled).toContain('\n\n  kubectl label namespace shop heartbeat-operator.io/watch=true\n')
    expect(all).toContain('all of them are monitored')
    expect(all).not.toContain('kubectl label')
    expect(none).not.toContain('CronJobs')
  })

  it('print the command that lets the controller publish, where it may not yet', async () => {
    const command =
      'kubectl create rolebinding heartbeat-operator-publisher -n default --clusterrole=heartbeat-monitoring-publisher --serviceaccount=monitoring:heartbeat-controller\n'
    expect(await notes({ rbac: { secrets: 'namespaces' } })).toContain(command)
    const controller = { serviceAccount: { name: 'theirs' } }
    expect(await notes({ rbac: { secrets: 'namespaces' }, controller })).toContain(
      command.replace('heartbeat-controller\n', 'theirs\n'),
    )
    expect(await notes({})).not.toContain('rolebinding')
    expect(await notes({ rbac: { secrets: 'namespaces' }, watchNamespaces: ['shop'] })).not.toContain('rolebinding')
    // Then the chart has no such role.
    expect(await notes({ rbac: { secrets: 'namespaces', create: false } })).not.toContain('rolebinding')
  })
})

describe.each(DEFINITIONS)('the definition of %s', (plural) => {
  const [crd] = parseAllDocuments(readFileSync(new URL(`../../crds/${plural}.yaml`, import.meta.url), 'utf8'))

  it('is that of crds/, and stays when the release goes', async () => {
    const { spec, metadata } = pickDefinition(await renderChart(), plural)
    expect(spec).toEqual((crd!.toJS() as ChartObject).spec)
    expect(metadata).toMatchObject({
      name: (crd!.toJS() as ChartObject).metadata.name,
      annotations: { 'helm.sh/resource-policy': 'keep' },
    })
  })

  it('is deleted with the release, or not installed at all, where the values say so', async () => {
    expect(pickDefinition(await renderChart({ crds: { keep: false } }), plural).metadata.annotations).toBeUndefined()
    expect((await renderChart({ crds: { enabled: false } })).map(({ kind }) => kind)).not.toContain(
      'CustomResourceDefinition',
    )
  })
})
