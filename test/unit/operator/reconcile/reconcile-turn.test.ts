/** F7: a reconcile takes the turn of its resource, and ends it in each case: five that stay open would keep all others waiting. */

import { expect, it } from 'vitest'
import { createReconciler, type ReconcilerOptions } from '../../../../src/operator/reconcile/reconcile.ts'

const options = (get: () => undefined, calls: string[]) =>
  ({
    cache: { get, put: () => {} },
    claims: { reported: new Map() },
    context: {},
    client: {},
    pingTimes: {
      take(key: string) {
        calls.push(`take ${key}`)
        return true
      },
      end: (key: string) => calls.push(`end ${key}`),
    },
    now: () => 0,
  }) as unknown as ReconcilerOptions

it.each([
  ['finds nothing to write', () => undefined],
  ['fails', () => expect.unreachable('the cache')],
])('a reconcile that %s', async (_, get) => {
  const calls: string[] = []
  const reconciler = createReconciler(options(get, calls))
  await reconciler.reconcile('shop/job', new AbortController().signal).catch(() => {})
  expect(calls).toEqual(['take shop/job', 'end shop/job'])
})
