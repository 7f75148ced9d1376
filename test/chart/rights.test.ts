/** What the chart's ServiceAccounts may do, and no more. */

import { describe, expect, it } from 'vitest'
import { SOURCE_KINDS, sourceKindOf } from '../../src/operator/sources/source-kinds.ts'
import { CASES } from './cases.ts'
import { type ChartObject, describeObject, pick, renderChart } from './chart.ts'

const ROLES = ['Role', 'ClusterRole']
const BINDINGS = ['RoleBinding', 'ClusterRoleBinding']

const rule = (group: string, resources: readonly string[], verbs: readonly string[], more: object = {}) => ({
  apiGroups: [group],
  resources,
  verbs,
  ...more,
})
const OURS = 'heartbeat-operator.io'
const OF_PUBLISHER = [rule('', ['secrets', 'configmaps'], ['get', 'create', 'patch', 'delete'])]
const ofController = (namespaces: readonly string[]) => [
  rule(OURS, ['heartbeatchecks', 'heartbeatchannels', 'heartbeatsilences'], ['get', 'list', 'watch', 'patch']),
  rule(OURS, ['heartbeatchecks/status', 'heartbeatchannels/status', 'heartbeatsilences/status'], ['update', 'patch']),
  ...OF_PUBLISHER,
  rule('', ['namespaces'], namespaces),
  rule('events.k8s.io', ['events'], ['create', 'patch']),
]
const EVERYWHERE = ofController(['get', 'list', 'watch'])
const OF_CRON_JOBS = [
  ...SOURCE_KINDS.map(sourceKindOf).map(({ type, runType }) =>
    rule(type.group, [type.plural, runType.plural], ['get', 'list', 'watch']),
  ),
  rule('', ['pods'], ['list', 'watch']),
  rule('', ['events'], ['list']),
  rule(OURS, ['heartbeatchecks'], ['create', 'delete']),
]
const LEASES = ['coordination.k8s.io', ['leases']] as const
const OF_LEASE = [
  rule(...LEASES, ['create']),
  rule(...LEASES, ['get', 'update'], { resourceNames: ['heartbeat-operator'] }),
]

/** Roles with their rules, of one component. */
const rolesOf = (objects: readonly ChartObject[], component: string) =>
  objects
    .filter(
      ({ kind, metadata }) => ROLES.includes(kind) && metadata.labels['app.kubernetes.io/component'] === component,
    )
    .map((object) => [describeObject(object), object.rules] as const)
    .sort(([one], [other]) => one.localeCompare(other))

describe('the rights', () => {
  it('of the controller are these, everywhere', async () => {
    expect(rolesOf(await renderChart(), 'controller')).toEqual([
      ['ClusterRole heartbeat-monitoring-controller', EVERYWHERE],
      ['ClusterRole heartbeat-monitoring-cronjobs', OF_CRON_JOBS],
      ['Role monitoring/heartbeat-lease', OF_LEASE],
    ])
  })

  it('of the controller end before Secrets, with rbac.secrets: namespaces, and are bound in each namespace by its administrator', async () => {
    for (const secrets of ['cluster', 'namespaces']) {
      const objects = await renderChart({ rbac: { secrets } })
      // There before it is needed, so that namespaces can be prepared for the change.
      expect(pick(objects, 'ClusterRole', 'heartbeat-monitoring-publisher').rules).toEqual(OF_PUBLISHER)
      expect(objects.filter(({ roleRef }) => roleRef?.name === 'heartbeat-monitoring-publisher')).toEqual([])
      const { rules } = pick(objects, 'ClusterRole', 'heartbeat-monitoring-controller')
      const left = EVERYWHERE.filter(({ resources }) => !resources.includes('secrets'))
      expect(rules).toEqual(secrets === 'cluster' ? EVERYWHERE : left)
    }
    // In single namespaces its Roles are bound already.
    const { rbac, ...namespaced } = { rbac: { secrets: 'namespaces' }, ...CASES.namespaced }
    expect(rolesOf(await renderChart({ rbac, ...namespaced }), 'controller')).toEqual(
      rolesOf(await renderChart(namespaced), 'controller'),
    )
  })

  it.each([{}, { watchNamespaces: ['shop'] }])(
    'of the controller to Jobs and pods are there unless cronJobs.watch is none, and those to logs with cronJobs.logs (%j)',
    async (place) => {
      const ofCronJobs = async (cronJobs: object) => {
        const objects = await renderChart({ ...place, cronJobs })
        const named = objects.filter(({ metadata }) => metadata.name.endsWith('-cronjobs'))
        expect(named.length === 2 || named.length === 0).toBe(true)
        const role = named.find(({ kind }) => ROLES.includes(kind))
        return role === undefined ? null : (role.rules as { resources: string[]; verbs: string[] }[])
      }
      const rules = await ofCronJobs({})
      expect(rules).toEqual(OF_CRON_JOBS)
      expect(await ofCronJobs({ watch: 'all' })).toEqual(rules)
      const ofLogs = { apiGroups: [''], resources: ['pods/log'], verbs: ['get'] }
      expect(await ofCronJobs({ logs: 'failed' })).toEqual([...rules!, ofLogs])
      expect(await ofCronJobs({ watch: 'none', logs: 'failed' })).toBeNull()
      for (const off of ['off', false]) expect(await ofCronJobs({ logs: off })).toEqual(rules)
    },
  )

  it('of the controller end at the namespaces that it watches', async () => {
    const objects = await renderChart(CASES.namespaced)
    expect(objects.filter(({ kind }) => kind.startsWith('Cluster')).map(describeObject)).toEqual([])
    expect(pick(objects, 'ValidatingAdmissionPolicy').metadata.name).toBe('heartbeat-monitoring-publishes')
    const rules = ofController(['get'])
    expect(rolesOf(objects, 'controller')).toEqual([
      ['Role monitoring/heartbeat-lease', OF_LEASE],
      ['Role payments/heartbeat-controller', rules],
      ['Role payments/heartbeat-cronjobs', OF_CRON_JOBS],
      ['Role shop/heartbeat-controller', rules],
      ['Role shop/heartbeat-cronjobs', OF_CRON_JOBS],
    ])
  })

  it('of the controller are limited by the policy, for its own account', async () => {
    const objects = await renderChart()
    const policy = pick(objects, 'ValidatingAdmissionPolicy')
    const account = 'system:serviceaccount:monitoring:heartbeat-controller'
    expect(policy.metadata.name).toBe('heartbeat-monitoring-publishes')
    expect(policy.spec.failurePolicy).toBe('Fail')
    expect(policy.spec.matchConditions).toEqual([
      { name: 'controller', expression: `request.userInfo.username == '${account}'` },
    ])
    expect(pick(objects, 'ValidatingAdmissionPolicyBinding').spec).toEqual({
      policyName: policy.metadata.name,
      validationActions: ['Deny', 'Audit'],
    })
    const { serviceAccountName } = pick(objects, 'Deployment', 'heartbeat-controller').spec.template.spec
    expect(account.endsWith(`:${serviceAccountName}`)).toBe(true)
    const kinds = (await renderChart({ admissionPolicy: { enabled: false } })).map(({ kind }) => kind)
    expect(kinds.filter((kind) => kind.startsWith('Validating'))).toEqual([])
  })

  it('are given once in a namespace that is named twice', async () => {
    const names = (await renderChart({ watchNamespaces: ['shop', 'shop'] })).map(describeObject)
    expect(names).toEqual([...new Set(names)])
    expect(names).toContain('Role shop/heartbeat-controller')
  })

  it.each([
    ['default', 1],
    ['namespaced', 2],
  ] as const)('of the Job of the uninstallation are to find checks and change them (%s)', async (name, count) => {
    const roles = rolesOf(await renderChart(CASES[name]), 'uninstall')
    expect(roles).toHaveLength(count + 1)
    const rules = roles.flatMap(([, rules]) => rules)
    const checks = {
      apiGroups: ['heartbeat-operator.io'],
      resources: ['heartbeatchecks', 'heartbeatchannels', 'heartbeatsilences'],
      verbs: ['list', 'patch'],
    }
    const statuses = { ...checks, resources: checks.resources.map((one) => `${one}/status`), verbs: ['patch'] }
    const lease = {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: ['heartbeat-operator'],
      verbs: ['get'],
    }
    for (const rule of rules) expect([checks, statuses, lease]).toContainEqual(rule)
  })

  it.each(['default', 'namespaced', 'everything'] as const)(
    'are bound to accounts that are there, each in the namespace of its role (%s)',
    async (name) => {
      const objects = await renderChart(CASES[name])
      const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount').map(describeObject)
      const bindings = objects.filter(({ kind }) => BINDINGS.includes(kind))
      expect(bindings.length).toBeGreaterThan(2)
      for (const binding of bindings) {
        const { roleRef, subjects, metadata } = binding
        const role = objects.find(
          (object) =>
            object.kind === roleRef.kind &&
            object.metadata.name === roleRef.name &&
            object.metadata.namespace === metadata.namespace,
        )
        expect(role, describeObject(binding)).toBeDefined()
        expect(subjects).toHaveLength(1)
        expect(accounts).toContain(`ServiceAccount ${subjects[0].namespace}/${subjects[0].name}`)
        expect(subjects[0].name, 'the api has no right').not.toBe('heartbeat-api')
        expect(role!.metadata.labels['app.kubernetes.io/component']).toBe(subjects[0].name.replace('heartbeat-', ''))
      }
    },
  )

  it('of people follow from those in their namespaces', async () => {
    const objects = await renderChart()
    const checks = ['heartbeatchecks', 'heartbeatsilences']
    const channels = ['heartbeatchannels']
    const write = ['create', 'update', 'patch', 'delete', 'deletecollection']
    for (const [name, roles, resources, verbs] of [
      [
        'view',
        ['view', 'edit', 'admin'],
        ['heartbeatchecks', ...channels, 'heartbeatsilences'],
        ['get', 'list', 'watch'],
      ],
      ['edit', ['edit', 'admin'], checks, write],
      ['admin', ['admin'], channels, write],
    ] as const) {
      const { rules, metadata } = pick(objects, 'ClusterRole', `heartbeat-monitoring-${name}`)
      expect(rules).toEqual([rule(OURS, resources, verbs)])
      const labels = Object.entries(metadata.labels).filter(([label]) => label.includes('aggregate-to-'))
      const wanted = roles.map((role) => [`rbac.authorization.k8s.io/aggregate-to-${role}`, 'true'])
      expect(labels.sort()).toEqual(wanted.sort())
    }
    const without = await renderChart({ rbac: { aggregatedRoles: false } })
    expect(without.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name)).not.toContain(
      'heartbeat-monitoring-edit',
    )
  })

  it('of two releases of one name, rendered without a cluster, share no object of the cluster', async () => {
    const [first, second] = await Promise.all(
      ['team-a', 'team-b'].map(async (namespace) => {
        const objects = await renderChart({ rbac: { secrets: 'namespaces' } }, { namespace })
        return objects.filter(({ kind, metadata }) => metadata.namespace === undefined && !kind.startsWith('Custom'))
      }),
    )
    expect(first!.length).toBeGreaterThan(8)
    const names = second!.map(describeObject)
    for (const object of first!) {
      expect(object.metadata.name, describeObject(object)).toMatch(/^heartbeat-team-a-/)
      expect(names).not.toContain(describeObject(object))
    }
  })

  it('are not granted with rbac.create: false', async () => {
    const objects = await renderChart({ rbac: { create: false } })
    expect(objects.filter(({ kind }) => [...ROLES, ...BINDINGS].includes(kind)).map(describeObject)).toEqual([])
    expect(objects.filter(({ kind }) => kind === 'ServiceAccount')).toHaveLength(3)
  })
})
