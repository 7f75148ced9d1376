/** Every object of the chart on a real API server, in namespaces that let in only what Pod Security calls restricted. */

import { randomUUID } from 'node:crypto'
import { beforeAll, expect, it } from 'vitest'
import { applyCrds } from '../cluster/control-plane-crds.ts'
import { cluster } from '../support/cluster.ts'
import { EACH_CASE } from './cases.ts'
import { describeObject, listPods, parseObjects, renderChart, renderText } from './chart.ts'

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
  for (const name of [namespace, 'payments', 'shop']) await makeRestrictedNamespace(name)
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
