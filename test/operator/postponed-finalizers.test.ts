/** Many resources at once: what their jobs need comes before the finalizers, and nothing is forgotten over that (operator/deletion/ensure-finalizer.ts). */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { listDeclaredStates } from '../../src/store/checks/declared-checks.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { type FakeCluster, startFakeCluster } from '../support/fake-cluster.ts'
import { clientOf, listen, startTestOperator, testDatabaseOf } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { openWorkplace, type Workplace } from '../support/workplace.ts'

/** Far more than are reconciled at once. */
const COUNT = 60
const WORKERS = 16
const names = Array.from({ length: COUNT }, (_, index) => `job-${String(index).padStart(2, '0')}`)

let app: TestApp
let cluster: FakeCluster
let place: Workplace

beforeAll(async () => {
  cluster = await startFakeCluster()
  app = await startTestApp()
})
afterAll(async () => {
  await app?.close()
  await cluster?.[Symbol.asyncDispose]()
})
beforeEach(async () => {
  place = await openWorkplace(cluster)
})

async function startOperator(client: KubernetesClient) {
  const { log, said } = listen()
  // A poll between declaration and status finds that the status is behind, and has the resource looked at again before others.
  const changes = {
    client,
    namespaces: [place.name],
    pollMs: 600_000,
    pingUrl: () => app.pingUrl,
    log,
  }
  const testDatabase = await testDatabaseOf(app)
  const operator = await startTestOperator({ connection: cluster.connection, testDatabase, changes })
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
  const states = await listDeclaredStates(app.database, 'default')
  return states.filter((state) => state.namespace === place.name).map(({ name }) => name)
}

const isReady = ({ status }: HeartbeatCheck) =>
  status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true
const isHeld = ({ metadata }: HeartbeatCheck) => metadata.finalizers?.length === 1

describe('more resources than can be worked on at once', () => {
  it('are Ready first and get their finalizers then, but for one whose check is to outlive it', async () => {
    const retained = names[20]!
    for (const name of names)
      await place.apply(name, { periodSeconds: 60, ...(name === retained && { deletionPolicy: 'Retain' }) })
    await using connection = clientOf(cluster.connection)
    const { client, writes } = overhear(connection, Promise.resolve())
    await using _ = await startOperator(client)
    await eventually('all are Ready and held', async () =>
      (await place.list()).every((item) => isReady(item) && isHeld(item)),
    )

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

  it('are held before they share what belongs to others, which must not go with them', async () => {
    const sharing = names[20]!
    const lent = {
      metadata: { name: 'lent', annotations: { 'heartbeat-operator.io/adopt': 'true' } },
      data: { A: 'YQ==' },
    }
    await place.put('secrets', lent)
    for (const name of names)
      await place.apply(name, { periodSeconds: 60, ...(name === sharing && { publish: { name: 'lent' } }) })
    await using connection = clientOf(cluster.connection)
    const { client, writes } = overhear(connection, Promise.resolve())
    const owners: unknown[] = []
    const applying: KubernetesClient = {
      ...client,
      async mergePatch<T>(...args: Parameters<KubernetesClient['mergePatch']>) {
        const answer = await client.mergePatch(...args)
        if (args[1].name === sharing) owners.push((await place.find('secrets', 'lent'))?.metadata.ownerReferences)
        return answer as T
      },
    }
    await using operator = await startOperator(applying)
    await eventually('all are Ready and held', async () =>
      (await place.list()).every((item) => isReady(item) && isHeld(item)),
    )
    expect(writes.indexOf(`finalizer ${sharing}`)).toBeLessThan(writes.indexOf(`status ${sharing}`))
    expect(owners).toEqual([undefined])
    await place.delete(sharing)
    const left = await place.find('secrets', 'lent')
    expect({ data: left?.data, owners: left?.metadata.ownerReferences }).toEqual({ data: { A: 'YQ==' } })
    expect(operator.said).toEqual([])
  })

  it('take their checks along when they are deleted in between', async () => {
    for (const name of names) await place.apply(name)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    await using connection = clientOf(cluster.connection)
    const { client, writes } = overhear(connection, gate)
    await using operator = await startOperator(client)
    const doomed = names[20]!
    await place.ready(doomed)
    // Every worker waits for a finalizer; the one of the doomed is queued behind them.
    await eventually('nothing moves', () => writes.length >= COUNT - 2 * WORKERS)
    const url = await place.pingUrl(doomed)
    expect((await fetch(url)).status).toBe(200)
    await place.delete(doomed)
    expect(await namesWithChecks()).toContain(doomed)

    open()
    await eventually('its check is gone', async () => !(await namesWithChecks()).includes(doomed))
    expect((await fetch(url)).status).toBe(404)
    const left = await eventually('the others are held', async () => {
      const items = await place.list()
      return items.every(isHeld) && items
    })
    expect(left).toHaveLength(COUNT - 1)
    expect((await namesWithChecks()).sort()).toEqual(names.filter((name) => name !== doomed))
    expect(operator.said).toEqual([])
  })

  it('take them along too when they go while their finalizer is on its way', async () => {
    for (const name of names) await place.apply(name)
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    await using connection = clientOf(cluster.connection)
    await using operator = await startOperator(overhear(connection, gate).client)
    // The second passes begin in the order of the first.
    const doomed = names[0]!
    await place.ready(doomed)
    await place.delete(doomed)
    open()
    await eventually('its check is gone', async () => !(await namesWithChecks()).includes(doomed))
    await eventually('the others are held', async () => (await place.list()).every(isHeld))
    expect((await namesWithChecks()).sort()).toEqual(names.slice(1))
    expect(operator.said).toEqual([])
  })
})
