/** Many resources at once: nothing is made for a resource that a deletion would leave behind. */

import { expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { clientOf } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

/** Far more than are reconciled at once. */
const COUNT = 60
const names = Array.from({ length: COUNT }, (_, index) => `job-${String(index).padStart(2, '0')}`)
const t = useScene({ pollMs: 600_000, resyncMs: 600_000 })

/** The client, and what is written by it: `finalizer job-07`, `Secret job-07-heartbeat`, `status job-07`. */
function overhear(client: KubernetesClient): { client: KubernetesClient; writes: string[] } {
  const writes: string[] = []
  return {
    writes,
    client: {
      ...client,
      async replace(type, object, options) {
        if (options?.subresource === 'status') writes.push(`status ${object.metadata.name}`)
        return client.replace(type, object, options)
      },
      async create(...args) {
        if (args[0].plural === 'secrets') writes.push(`Secret ${args[1].metadata.name}`)
        return client.create(...args)
      },
      async mergePatch<T>(...args: Parameters<KubernetesClient['mergePatch']>) {
        const [, { name }, patch] = args
        try {
          return (await client.mergePatch(...args)) as T
        } finally {
          // Also when its answer comes too late: the next try finds the finalizer there.
          if ('finalizers' in ((patch as HeartbeatCheck).metadata ?? {})) writes.push(`finalizer ${name}`)
        }
      },
    },
  }
}

it('a finalizer that a person removed is back without a resync', async () => {
  await t.place.makeReady('held')
  await t.place.change('held', { metadata: { finalizers: null } })
  await eventually('it is back', async () => (await t.place.get('held')).metadata.finalizers?.length === 1)
})

it('each of many new resources has its finalizer before its Secret and its status', async () => {
  await t.operator().stop()
  for (const name of names) await t.place.apply(name)
  await using connection = clientOf(t.cluster.connection)
  const { client, writes } = overhear(connection)
  await t.restart({ client })
  for (const name of names) await t.place.ready(name)
  await t.operator().stop()
  for (const name of names) {
    const places = [`finalizer ${name}`, `Secret ${name}-heartbeat`, `status ${name}`].map((it) => writes.indexOf(it))
    expect(places, name).not.toContain(-1)
    expect(places, name).toEqual(places.toSorted((a, b) => a - b))
  }
})
