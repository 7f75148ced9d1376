/** What the watches of Jobs and their pods rely on, as tests for the real API server and the fake. */

import { beforeAll, describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import type { KubernetesObject, ResourceType } from '../../src/kubernetes/objects.ts'
import type { WatchEvent } from '../../src/kubernetes/watch-lines.ts'
import { PATIENCE_MS, refusalOf, type ServerUnderTest } from './api-contract.ts'
import { eventually } from './until.ts'

const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods' }

interface Pod extends KubernetesObject {
  readonly status?: { readonly phase?: string }
}

export function describeSelectorContract(open: () => Promise<ServerUnderTest>): void {
  let client: KubernetesClient
  let namespace: string

  beforeAll(async () => {
    const server = await open()
    client = server.client
    namespace = server.namespace
  })

  // The controllers of a real cluster give a new namespace its ServiceAccount first.
  const createPod = (name: string, labels: Record<string, string>) =>
    eventually(`the pod ${name} is created`, () =>
      client.create<Pod>(PODS, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace, labels },
        spec: { containers: [{ name: 'main', image: 'registry.invalid/none' }], nodeName: 'none' },
      }),
    )
  const setPhase = (name: string, phase: string) =>
    client.mergePatch<Pod>(PODS, { namespace, name }, { status: { phase } }, { subresource: 'status' })

  async function follow(
    where: { readonly labelSelector?: string; readonly fieldSelector?: string },
    resourceVersion: string,
    count: number,
  ): Promise<WatchEvent<Pod>[]> {
    const events: WatchEvent<Pod>[] = []
    const signal = AbortSignal.timeout(PATIENCE_MS)
    for await (const event of client.watch<Pod>(PODS, {
      namespace,
      ...where,
      resourceVersion,
      timeoutSeconds: 30,
      signal,
    })) {
      if (event.type !== 'BOOKMARK') events.push(event)
      if (events.length === count) break
    }
    return events
  }

  describe('selectors', () => {
    it('of a label that exists leave out what does not have it', async () => {
      await createPod('labelled', { 'batch.kubernetes.io/job-name': 'backup' })
      await createPod('plain', { team: 'shop' })
      const namesOf = async (labelSelector: string) =>
        (await client.list(PODS, { namespace, labelSelector })).items.map(({ metadata }) => metadata.name).sort()
      expect(await namesOf('batch.kubernetes.io/job-name')).toEqual(['labelled'])
      expect(await namesOf('!batch.kubernetes.io/job-name')).toEqual(['plain'])
      expect(await namesOf('team!=shop')).toEqual(['labelled'])
    })

    it('of a phase: a pod that no longer matches is deleted for the watch, as it was when it matched', async () => {
      const fieldSelector = 'status.phase!=Succeeded'
      const { metadata } = await createPod('works', { suite: 'phases' })
      await setPhase('works', 'Running')
      const { resourceVersion } = await setPhase('works', 'Succeeded').then((pod) => pod.metadata)
      const where = { labelSelector: 'suite=phases', fieldSelector }
      expect((await client.list(PODS, { namespace, ...where })).items).toEqual([])
      const [running, gone] = await follow(where, metadata.resourceVersion, 2)
      expect([running!.type, running!.object.status?.phase]).toEqual(['MODIFIED', 'Running'])
      expect([gone!.type, gone!.object.status?.phase, gone!.object.metadata.resourceVersion]).toEqual([
        'DELETED',
        'Running',
        resourceVersion,
      ])
    })

    it('of a field that cannot be selected are rejected', async () => {
      const refusal = await refusalOf(client.list(PODS, { namespace, fieldSelector: 'spec.hostname=a' }))
      expect(refusal).toMatchObject({ status: 400, reason: 'BadRequest' })
    })
  })
}
