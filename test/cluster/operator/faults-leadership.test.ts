/** Who leads when leaders hang, stop or lose the API server: never two at once, and not nobody for long. */

import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster, type TestNamespace, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator, type TestOperatorOptions } from '../../support/operator.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { checksOf, connectBy, listen, whenLeading } from './stage.ts'

let testDatabase: TestDatabase
let namespace: TestNamespace

beforeAll(async () => {
  testDatabase = await createTestDatabase()
})
afterAll(() => testDatabase?.close())
beforeEach(async () => {
  namespace = await cluster.makeNamespace()
})
afterEach(() => namespace?.remove())

function startOperator(changes: TestOperatorOptions['changes'] = {}, kubeconfig = cluster.kubeconfigPath) {
  return startTestOperator({
    kubeconfig,
    testDatabase,
    leaseNamespace: namespace.name,
    changes: { namespaces: [namespace.name], random: () => 0.5, ...changes },
  })
}

/** Ten minutes ahead. */
const fastClock = { now: () => systemClock.now() + 600_000, sleep: systemClock.sleep }

/** A client that notes when a reconcile asks something of it; only reconciles read Secrets. */
function noteReconciles(client: KubernetesClient, times: number[]): KubernetesClient {
  return {
    ...client,
    get(type, name, options) {
      if (type.plural === 'secrets') times.push(performance.now())
      return client.get(type, name, options)
    },
  }
}

async function holderOf(): Promise<string> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace.name}/leases/heartbeat-operator`
  return (await cluster.api('GET', path)).body.spec.holderIdentity ?? ''
}

describe('two operators', () => {
  it('never reconcile at once when one is cut off for twenty seconds, and change places in five when one stops', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    const proxiedConfig = await cluster.writeKubeconfig({
      credential: { token: cluster.adminToken },
      server: proxy.url,
    })
    await using proxied = await connectBy(proxiedConfig)
    await using direct = await connectBy(cluster.kubeconfigPath)
    const [ofFirst, ofSecond]: [number[], number[]] = [[], []]
    const { errors, log } = listen()
    await using first = await startOperator({ client: noteReconciles(proxied, ofFirst), resyncMs: 1, log })
    await whenLeading(first)
    await using second = await startOperator({
      client: noteReconciles(direct, ofSecond),
      resyncMs: 1,
      clock: fastClock,
    })
    const checks = checksOf(cluster, namespace.name)
    for (const name of ['one', 'two', 'three']) await checks.apply(name)
    for (const name of ['one', 'two', 'three']) await checks.whenReady(name)
    await waitFor('full passes repeat', () => ofFirst.length > 12)
    expect(ofSecond).toEqual([])

    proxy.stall()
    const stalledAt = performance.now()
    await whenLeading(second, 20_000)
    await waitFor('the second one reconciles', () => ofSecond.length > 3)
    // What hung in the first one was broken off before its lease could lapse.
    expect(Math.max(...ofFirst)).toBeLessThan(ofSecond[0]!)
    expect(errors.some((error) => error.includes('was lost: not renewed within 10000 ms'))).toBe(true)
    expect(errors.filter((error) => error.includes('has lapsed while the work of its former holder goes on'))).toEqual(
      [],
    )
    expect(first.operator.isLeader()).toBe(false)
    expect(performance.now() - stalledAt).toBeLessThan(20_000)

    const before = ofFirst.length
    proxy.resume()
    await waitFor(
      'the first one is back as a standby',
      async () => first.operator.hasSynced() && (await holderOf()) !== '',
    )
    await checks.apply('four')
    await checks.whenReady('four')
    expect(ofFirst.length).toBe(before)
    expect(first.operator.isLeader()).toBe(false)

    const stoppedAt = performance.now()
    await second.stop()
    await whenLeading(first, 5_000)
    await checks.apply('five')
    await checks.whenReady('five')
    expect(performance.now() - stoppedAt).toBeLessThan(5_000 + 1_000)
  })
})

describe('a stop in the middle of a reconcile', () => {
  it('lets it finish, gives the lease back, and the next one leads within five seconds', async () => {
    await using direct = await connectBy(cluster.kubeconfigPath)
    const held = Promise.withResolvers<void>()
    const begun = Promise.withResolvers<void>()
    const client: KubernetesClient = {
      ...direct,
      async create(type, object, options) {
        if (type.plural === 'secrets') {
          begun.resolve()
          await held.promise
        }
        return direct.create(type, object, options)
      },
    }
    const identity = randomUUID()
    await using first = await startOperator({ client, identity })
    await whenLeading(first)
    await using second = await startOperator()
    const checks = checksOf(cluster, namespace.name)
    await checks.apply('halfway')
    await begun.promise

    const stoppedAt = performance.now()
    const stopped = first.stop()
    expect(await holderOf()).toBe(identity)
    held.resolve()
    await stopped
    expect(await holderOf()).not.toBe(identity)
    const { status } = (await checks.find('halfway'))!
    expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
    expect(await checks.urlOf('halfway')).toContain('/ping/')
    await whenLeading(second, 5_000)
    expect(performance.now() - stoppedAt).toBeLessThan(5_000)
  })

  it('breaks off what hangs, and the next one brings it in line', async () => {
    await using direct = await connectBy(cluster.kubeconfigPath)
    const begun = Promise.withResolvers<void>()
    const client: KubernetesClient = {
      ...direct,
      create<T>(...[type, object, options]: Parameters<KubernetesClient['create']>): Promise<T> {
        if (type.plural !== 'secrets') return direct.create(type, object, options) as Promise<T>
        return new Promise((_, reject) => {
          begun.resolve()
          options?.signal?.addEventListener('abort', () => reject(options.signal?.reason))
        })
      },
    }
    await using first = await startOperator({ client })
    await whenLeading(first)
    await using second = await startOperator()
    const checks = checksOf(cluster, namespace.name)
    await checks.apply('halfway')
    await begun.promise

    const stoppedAt = performance.now()
    await first.stop()
    expect(performance.now() - stoppedAt).toBeLessThan(6_000)
    await checks.whenReady('halfway')
    expect(second.operator.isLeader()).toBe(true)
    expect(await checks.urlOf('halfway')).toContain('/ping/')
  })
})
