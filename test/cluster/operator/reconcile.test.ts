/** The operator's own story on a real API server: a resource becomes a check, a Secret and a status, and follows its changes. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, waitFor } from '../../support/cluster.ts'
import { PING_URL, startTestOperator, type TestOperator } from '../../support/operator.ts'

let operator: TestOperator
let namespace: Awaited<ReturnType<typeof cluster.makeNamespace>>

beforeAll(async () => {
  namespace = await cluster.makeNamespace()
  operator = await startTestOperator({ kubeconfig: cluster.kubeconfigPath, leaseNamespace: namespace.name })
})

afterAll(async () => {
  await operator?.[Symbol.asyncDispose]()
  await namespace?.[Symbol.asyncDispose]()
})

const manifest = (name: string, spec: object, metadata: object = {}) => ({
  apiVersion: 'heartbeat-operator.io/v1alpha1',
  kind: 'HeartbeatCheck',
  metadata: { name, namespace: namespace.name, ...metadata },
  spec,
})
const kubectl = (...args: string[]) => cluster.kubectl('-n', namespace.name, ...args)
const ready = (name: string) => kubectl('wait', '--for=condition=Ready', `hbc/${name}`, '--timeout=15s')

describe('a new HeartbeatCheck', () => {
  it('becomes Ready, and its ping URL is in a Secret', async () => {
    await cluster.applyManifest(manifest('nightly', { schedule: '0 2 * * *' }))
    await ready('nightly')
    const url = await kubectl('get', 'secret', 'nightly-heartbeat', '-o', 'jsonpath={.data.HEARTBEAT_URL}')
    expect(Buffer.from(url, 'base64').toString()).toMatch(new RegExp(`^${PING_URL}/ping/[0-9a-f-]{36}$`))
    expect(await kubectl('get', 'hbc')).toMatch(/nightly +new +True +0 2 \* \* \*/)
  })
})
