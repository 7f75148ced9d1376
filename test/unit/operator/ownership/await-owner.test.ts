import { expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { createOwnerWait, OWNER_WAIT_MS } from '../../../../src/operator/ownership/await-owner.ts'

const KEY = 'shop/nightly'
const resource = (fields: Partial<HeartbeatCheck> = {}, finalizers = ['heartbeat-operator.io/cleanup']) => ({
  metadata: { namespace: 'shop', name: 'nightly', uid: 'u1', resourceVersion: '7', finalizers },
  spec: { periodSeconds: 60 },
  ...fields,
})

/** Of a database that has no check. */
function createWait() {
  let now = 1_000
  let asked = 0
  const database = {
    query: async () => {
      asked += 1
      return { rows: [] }
    },
    queryColumns: async () => {
      asked += 1
      return []
    },
  }
  const wait = createOwnerWait({ context: { database: database as never }, cluster: 'default', now: () => now })
  const pass = (ms: number): void => {
    now += ms
  }
  return { wait, asked: () => asked, pass }
}

it('a resource that lost its status is left to its owner until the time for that is over', async () => {
  const { wait, pass } = createWait()
  expect(await wait.leftMs(KEY, resource())).toBe(OWNER_WAIT_MS)
  pass(OWNER_WAIT_MS - 1)
  expect(await wait.leftMs(KEY, resource({ status: { conditions: [] } }))).toBe(1)
  pass(1)
  expect(await wait.leftMs(KEY, resource())).toBe(0)
})

it('a new resource, and one that names its installation, is not waited for', async () => {
  const { wait, asked } = createWait()
  expect(await wait.leftMs(KEY, resource({}, []))).toBe(0)
  expect(await wait.leftMs(KEY, resource({ status: { installation: 'i1' } }))).toBe(0)
  expect(asked()).toBe(0)
})

it('a status that is lost again is waited for again', async () => {
  const { wait, pass } = createWait()
  await wait.leftMs(KEY, resource())
  pass(OWNER_WAIT_MS)
  await wait.leftMs(KEY, resource({ status: { installation: 'i1' } }))
  expect(await wait.leftMs(KEY, resource())).toBe(OWNER_WAIT_MS)
})
