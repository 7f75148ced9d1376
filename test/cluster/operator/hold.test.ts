/** Many resources at once: what their jobs need comes before the finalizers, and nothing is forgotten over that (operator/hold.ts). */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listStates } from '../../../src/checks/declare/find-declared.ts'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster, type TestNamespace, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator } from '../../support/operator.ts'
import { type Checks, checksOf, connectBy, listen, type PingPort, startPingPort } from './stage.ts'

/** More than are worked on at once, by far. */
const COUNT = 60
const WORKERS = 16
const names = Array.from({ length: COUNT }, (_, index) => `job-${String(index).padStart(2, '0')}`)

let testDatabase: TestDatabase
let pings: PingPort
let namespace: TestNamespace
let checks: Checks

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  pings = await startPingPort(testDatabase)
})
afterAll(async () => {
  await pings?.[Symbol.asyncDispose]()
  await testDatabase?.close()
})
beforeEach(async () => {
  namespace = await cluster.makeNamespace()
  checks = checksOf(cluster, namespace.name)
})
afterEach(() => namespace?.remove())

async function startOperator(client: KubernetesClient) {
  const { log, said } = listen()
  // A poll between declaration and status finds that the status is behind, and has the resource looked at again before others.
  const changes = { client, namespaces: [namespace.name], pollMs: 60_000, pingUrl: () => pings.url, log }
  const operator = await startTestOperator({
    kubeconfig: cluster.kubeconfigPath,
    testDatabase,
    leaseNamespace: 'default',
    changes,
  })
  return { said, [Symbol.asyncDispose]: () => operator[Symbol.asyncDispose]() }
}

/** The client, and what is written by it: `status job-07`, `finalizer job-07`. Finalizers wait for `gate`. */
function overhear(client: KubernetesClient, gate: Promise<void>): { client: KubernetesClient; writes: string[] } {
  const writes: string[] = []
  return {
    writes,
    client: {
      ...client,
      async replace(type, object, options) {
        const answer = await client.replace(type, object, options)
        if (options?.subresource === 'status') writes.push(`status ${object.metadata.name}`)
        return answer
      },
      async mergePatch<T>(...args: Parameters<KubernetesClient['mergePatch']>) {
        const [, { name }, patch] = args
        const isFinalizer = 'finalizers' in ((patch as HeartbeatCheck).metadata ?? {})
        if (isFinalizer) await gate
        const answer = await client.mergePatch(...args)
        if (isFinalizer) writes.push(`finalizer ${name}`)
        return answer as T
      },
    },
  }
}

async function namesWithChecks(): Promise<string[]> {
  const states = await listStates({ database: testDatabase.database, clock: systemClock }, 'default')
  return states.filter((state) => state.namespace === namespace.name).map(({ name }) => name)
}

async function list(): Promise<HeartbeatCheck[]> {
  const path = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${namespace.name}/heartbeatchecks`
  return (await cluster.api('GET', path)).body.items
}

const isReady = ({ status }: HeartbeatCheck) =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
const isHeld = ({ metadata }: HeartbeatCheck) => metadata.finalizers?.length === 1

describe('more resources than can be worked on at once', () => {
  it('are Ready first and get their finalizers then, but for one whose check is to outlive it', async () => {
    const retained = names[20]!
    for (const name of names)
      await checks.apply(name, { periodSeconds: 60, ...(name === retained && { deletionPolicy: 'Retain' }) })
    await using connection = await connectBy(cluster.kubeconfigPath)
    const { client, writes } = overhear(connection, Promise.resolve())
    await using _ = await startOperator(client)
    await waitFor('all are Ready and held', async () => (await list()).every((item) => isReady(item) && isHeld(item)))

    const places = new Map(writes.map((write, index) => [write, index]))
    expect(places.size).toBeGreaterThanOrEqual(2 * COUNT)
    const isLate = (name: string) => places.get(`finalizer ${name}`)! > places.get(`status ${name}`)!
    const late = names.filter(isLate)
    // Once fewer wait than are worked on, there is nobody to go ahead of.
    expect(late.length).toBeGreaterThanOrEqual(COUNT - 2 * WORKERS - 1)
    const firstLate = Math.min(...late.map((name) => places.get(`finalizer ${name}`)!))
    const statuses = writes.slice(0, firstLate).filter((write) => write.startsWith('status'))
    expect(statuses.length).toBeGreaterThanOrEqual(COUNT - WORKERS)
    expect(isLate(retained)).toBe(false)
  })

  it("are held before they share what is somebody else's, which must not go with them", async () => {
    const sharing = names[20]!
    const secrets = `/api/v1/namespaces/${namespace.name}/secrets`
    const lent = {
      metadata: { name: 'lent', annotations: { 'heartbeat-operator.io/adopt': 'true' } },
      data: { A: 'YQ==' },
    }
    expect((await cluster.api('POST', secrets, lent)).status).toBe(201)
    for (const name of names)
      await checks.apply(name, { periodSeconds: 60, ...(name === sharing && { publish: { name: 'lent' } }) })
    await using connection = await connectBy(cluster.kubeconfigPath)
    const { client, writes } = overhear(connection, Promise.resolve())
    const owners: unknown[] = []
    const applying: KubernetesClient = {
      ...client,
      async mergePatch<T>(...args: Parameters<KubernetesClient['mergePatch']>) {
        const answer = await client.mergePatch(...args)
        if (args[1].name === sharing)
          owners.push((await cluster.api('GET', `${secrets}/lent`)).body.metadata.ownerReferences)
        return answer as T
      },
    }
    await using operator = await startOperator(applying)
    await waitFor('all are Ready and held', async () => (await list()).every((item) => isReady(item) && isHeld(item)))
    expect(writes.indexOf(`finalizer ${sharing}`)).toBeLessThan(writes.indexOf(`status ${sharing}`))
    expect(owners).toEqual([undefined])
    await checks.remove(sharing)
    const { status, body } = await cluster.api('GET', `${secrets}/lent`)
    expect({ status, data: body.data, owners: body.metadata.ownerReferences }).toEqual({
      status: 200,
      data: { A: 'YQ==' },
    })
    expect(operator.said).toEqual([])
  })

  it('take their checks along when they are deleted in between', async () => {
    for (const name of names) await checks.apply(name)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    await using connection = await connectBy(cluster.kubeconfigPath)
    const { client, writes } = overhear(connection, gate)
    await using operator = await startOperator(client)
    const doomed = names[20]!
    await checks.whenReady(doomed)
    // Every worker waits for a finalizer; the one of the doomed is queued behind them.
    await waitFor('nothing moves', () => writes.length >= COUNT - 2 * WORKERS)
    const url = await checks.urlOf(doomed)
    expect((await fetch(url)).status).toBe(200)
    await checks.remove(doomed)
    expect(await namesWithChecks()).toContain(doomed)

    open()
    await waitFor('its check is gone', async () => !(await namesWithChecks()).includes(doomed))
    expect((await fetch(url)).status).toBe(404)
    const left = await waitFor('the others are held', async () => {
      const items = await list()
      return items.every(isHeld) && items
    })
    expect(left).toHaveLength(COUNT - 1)
    expect((await namesWithChecks()).sort()).toEqual(names.filter((name) => name !== doomed))
    expect(operator.said).toEqual([])
  })

  it('take them along too when they go while their finalizer is on its way', async () => {
    for (const name of names) await checks.apply(name)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    await using connection = await connectBy(cluster.kubeconfigPath)
    await using operator = await startOperator(overhear(connection, gate).client)
    // The second passes begin in the order of the first.
    const doomed = names[0]!
    await checks.whenReady(doomed)
    await checks.remove(doomed)
    open()
    await waitFor('its check is gone', async () => !(await namesWithChecks()).includes(doomed))
    await waitFor('the others are held', async () => (await list()).every(isHeld))
    expect((await namesWithChecks()).sort()).toEqual(names.slice(1))
    expect(operator.said).toEqual([])
  })
})
