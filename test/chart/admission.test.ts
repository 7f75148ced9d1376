/** Every object of the chart on a real API server, in namespaces that let in only what Pod Security calls restricted. */

import { randomUUID } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { applyCrds } from '../../tools/cluster/control-plane-crds.ts'
import { cluster } from '../support/cluster.ts'
import { EACH_CASE } from './cases.ts'
import { type ChartObject, describeObject, listPods, parseObjects, renderChart, renderText } from './chart.ts'

const CRDS = new URL('../fixtures/crds', import.meta.url).pathname
const namespace = `chart-${randomUUID().slice(0, 8)}`

async function makeRestrictedNamespace(name: string): Promise<void> {
  const modes = ['enforce', 'warn'].map((mode) => [`pod-security.kubernetes.io/${mode}`, 'restricted'])
  const { status } = await cluster.api('POST', '/api/v1/namespaces', {
    metadata: { name, labels: Object.fromEntries(modes) },
  })
  expect(status).toBe(201)
}

beforeAll(async () => {
  await applyCrds(cluster, [CRDS])
  const runtime = { metadata: { name: 'gvisor' }, handler: 'runsc' }
  expect((await cluster.api('POST', '/apis/node.k8s.io/v1/runtimeclasses', runtime)).status).toBe(201)
  for (const name of [namespace, 'payments', 'shop', 'prometheus']) await makeRestrictedNamespace(name)
})

/** Nothing is kept. Fails for a field that the server does not know, and for each warning of it. */
const tryOut = (yaml: string) =>
  cluster.kubectlWith(
    { input: yaml },
    ...['apply', '--server-side', '--force-conflicts', '--dry-run=server'],
    ...['--validate=strict', '--warnings-as-errors', '-f', '-'],
  )

it.each(EACH_CASE)('takes every object without a warning, with the values of "%s"', async (_, values) => {
  const yaml = await renderText(values, { namespace })
  const lines = (await tryOut(yaml)).trim().split('\n')
  expect(lines).toHaveLength(parseObjects(yaml).length)
  for (const line of lines) expect(line).toMatch(/ serverside-applied \(server dry run\)$/)
})

/** Whether the API server has each field as it is rendered; defaults may be added. */
const holds = (stored: unknown, wanted: unknown): boolean => {
  if (typeof wanted !== 'object' || wanted === null || typeof stored !== 'object' || stored === null)
    return stored === wanted
  if (Array.isArray(wanted) && wanted.length !== (stored as unknown[]).length) return false
  return Object.entries(wanted).every(([name, value]) => holds((stored as Record<string, unknown>)[name], value))
}

it.each(EACH_CASE)(
  'is stored as it is rendered, with the values of "%s": nothing is left to ignore',
  async (_, values) => {
    const yaml = await renderText(values, { namespace })
    const command = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-o', 'json', '-f', '-']
    const { items } = JSON.parse(await cluster.kubectlWith({ input: yaml }, ...command)) as { items: ChartObject[] }
    const stored = new Map(items.map((object) => [describeObject(object), object]))
    // The pod of `helm test` is no part of the installation, and gets tolerations when it is made.
    for (const wanted of parseObjects(yaml).filter(({ kind }) => kind !== 'Pod'))
      for (const [field, value] of Object.entries(wanted))
        if (!holds(stored.get(describeObject(wanted))?.[field], value))
          expect(stored.get(describeObject(wanted))?.[field], `${describeObject(wanted)}, ${field}`).toMatchObject(
            value,
          )
  },
)

it('would warn of a pod that may do more', async () => {
  const values = { securityContext: { allowPrivilegeEscalation: null } }
  await expect(tryOut(await renderText(values, { namespace }))).rejects.toThrow(/would violate PodSecurity "restricted/)
})

it.each(EACH_CASE)('lets in the pods that Deployments and others make, with the values of "%s"', async (_, values) => {
  // Without what is not there: accounts and classes are looked up when a pod is made.
  const pods = listPods(await renderChart(values, { namespace }))
  for (const { owner, labels, spec } of pods) {
    // A StatefulSet puts its claims among the volumes.
    const claims: { metadata: { name: string } }[] = owner.spec.volumeClaimTemplates ?? []
    const volumes = [
      ...((spec.volumes as object[]) ?? []),
      ...claims.map(({ metadata: { name } }) => ({ name, emptyDir: {} })),
    ]
    const { serviceAccountName: _account, priorityClassName: _class, imagePullSecrets: _secrets, ...rest } = spec
    const pod = {
      metadata: { generateName: 'pod-', labels },
      spec: { ...rest, volumes, restartPolicy: rest.restartPolicy ?? 'Always' },
    }
    const { status, headers, body } = await cluster.api(
      'POST',
      `/api/v1/namespaces/${namespace}/pods?dryRun=All&fieldValidation=Strict`,
      pod,
    )
    expect(status, `${describeObject(owner)}: ${body.message}`).toBe(201)
    expect(headers.warning, describeObject(owner)).toBeUndefined()
  }
})
