import { expect, it } from 'vitest'
import { shareMetrics } from '../../../src/kubernetes/areas.ts'

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
