import { expect, it } from 'vitest'
import { shareMetrics, watchAreas } from '../../../src/kubernetes/areas.ts'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { createManualClock } from '../../support/manual-clock.ts'

it('a fault of a callback is no interruption: the first list is waited for, and nothing has to recover', async () => {
  const clock = createManualClock()
  const said: string[] = []
  const object = { metadata: { namespace: 'shop', name: 'a', uid: 'u', resourceVersion: '1' } }
  const secondPage = Promise.withResolvers<object>()
  const client = {
    list: (_: object, { continueToken }: { continueToken?: string }) =>
      continueToken === undefined
        ? { items: [object], resourceVersion: '10', continueToken: 'more' }
        : secondPage.promise,
    async *watch(_: object, { signal }: { signal: AbortSignal }) {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
    },
  } as unknown as KubernetesClient
  const areas = watchAreas({
    client,
    clock,
    type: CONFIG_MAPS,
    namespaces: ['shop'],
    grant: '',
    log: { warn: (_: object, text: string) => said.push(text) } as never,
    metrics: { restarted() {}, contact() {}, objects() {} },
    trim() {
      throw new Error('cannot trim')
    },
    onChange() {},
  })
  areas.start()
  await clock.settle()
  expect([areas.hasSynced(), said]).toEqual([false, ['a change of configmaps could not be taken in']])
  secondPage.resolve({ items: [], resourceVersion: '10', continueToken: null })
  await clock.settle()
  expect([areas.hasSynced(), areas.takeRecovery()]).toEqual([true, false])
  await areas.stop()
})

it('reports the oldest contact of all reflectors, and the sum of their objects', () => {
  const contacts: number[] = []
  const objects: number[] = []
  const restarts: string[] = []
  const [one, other] = shareMetrics(
    {
      contact: (atMs) => contacts.push(atMs),
      objects: (count) => objects.push(count),
      restarted: (reason) => restarts.push(reason),
    },
    2,
  )
  one!.contact(1_000)
  other!.contact(2_000)
  other!.contact(9_000)
  one!.contact(10_000)
  // Until the second was heard of, the resource was not.
  expect(contacts).toEqual([0, 1_000, 1_000, 9_000])

  one!.objects(3)
  other!.objects(4)
  one!.objects(1)
  expect(objects).toEqual([3, 7, 5])

  other!.restarted('stalled')
  expect(restarts).toEqual(['stalled'])
})
