/** What the chart's ServiceAccounts may do: what manifests/parts say, and no more. */

import { describe, expect, it } from 'vitest'
import { CASES } from './cases.ts'
import { type ChartObject, describeObject, pick, readPart, renderChart } from './chart.ts'

const ROLES = ['Role', 'ClusterRole']
const BINDINGS = ['RoleBinding', 'ClusterRoleBinding']

/** Roles with their rules, of one component. */
const rolesOf = (objects: readonly ChartObject[], component: string) =>
  objects
    .filter(
      ({ kind, metadata }) => ROLES.includes(kind) && metadata.labels['app.kubernetes.io/component'] === component,
    )
    .map((object) => [describeObject(object), object.rules] as const)
    .sort(([one], [other]) => one.localeCompare(other))

describe('the rights', () => {
  it('of the controller are those of manifests/, everywhere', async () => {
    expect(rolesOf(await renderChart(), 'controller')).toEqual([
      ['ClusterRole heartbeat-controller', pick(readPart('rbac'), 'ClusterRole').rules],
      ['Role monitoring/heartbeat-lease', pick(readPart('rbac-lease'), 'Role').rules],
    ])
  })

  it('of the controller end at the namespaces that it watches', async () => {
    const objects = await renderChart(CASES.namespaced)
    expect(objects.filter(({ kind }) => kind.startsWith('Cluster')).map(describeObject)).toEqual([])
    const { rules } = pick(readPart('rbac-namespaced'), 'Role')
    expect(rolesOf(objects, 'controller')).toEqual([
      ['Role monitoring/heartbeat-lease', pick(readPart('rbac-lease'), 'Role').rules],
      ['Role payments/heartbeat-controller', rules],
      ['Role shop/heartbeat-controller', rules],
    ])
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
      resources: ['heartbeatchecks'],
      verbs: ['list', 'patch'],
    }
    const lease = {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      resourceNames: ['heartbeat-operator'],
      verbs: ['get'],
    }
    for (const rule of rules) expect([checks, lease]).toContainEqual(rule)
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
    const [view, edit] = readPart('rbac-users')
    for (const [name, theirs] of [
      ['view', view!],
      ['edit', edit!],
    ] as const) {
      const ours = pick(objects, 'ClusterRole', `heartbeat-${name}`)
      expect(ours.rules).toEqual(theirs.rules)
      expect(ours.metadata.labels).toMatchObject(theirs.metadata.labels)
    }
    const without = await renderChart({ rbac: { aggregatedRoles: false } })
    expect(without.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name)).not.toContain(
      'heartbeat-edit',
    )
  })

  it('are not granted with rbac.create: false', async () => {
    const objects = await renderChart({ rbac: { create: false } })
    expect(objects.filter(({ kind }) => [...ROLES, ...BINDINGS].includes(kind)).map(describeObject)).toEqual([])
    expect(objects.filter(({ kind }) => kind === 'ServiceAccount')).toHaveLength(3)
  })
})
