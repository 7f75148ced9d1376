/** Who leads when leaders hang, stop or lose the API server: never two at once, and not nobody for long. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { createTestDatabase } from '../support/database.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import { clientOf, fasterClock, listen, startTestOperator, whenLeading } from '../support/operator.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'

/** Times in the names of these tests are by the operators' clocks. No faster: what a busy machine takes longer counts as often. */
const FASTER = 2
const clock = fasterClock(FASTER)
const fastClock = { now: () => clock.now() + 600_000, sleep: clock.sleep }

const cluster = use(startFakeCluster)
const testDatabase = use(createTestDatabase)
const place = useEach(() => openWorkplace(cluster))

function startOperator(changes: Partial<OperatorOptions> = {}) {
  return startTestOperator({
    connection: cluster.connection,
    testDatabase,
    changes: { namespaces: [place.name], random: () => 0.5, clock, ...changes },
  })
}

const sinceMs = (from: number) => (performance.now() - from) * FASTER

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

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/default/leases/heartbeat-operator'
const holderOf = async (): Promise<string> => (await cluster.api('GET', LEASE)).body.spec.holderIdentity ?? ''

describe('two operators', () => {
  it('never reconcile at the same time when one is cut off for twenty seconds, and hand over at once when one stops', async () => {
    await using proxy = await startTcpProxy(Number(new URL(cluster.server.url).port))
    const server = proxy.url.replace('https:', 'http:')
    await using proxied = clientOf({ ...cluster.connection, server })
    await using direct = clientOf(cluster.connection)
    const [ofFirst, ofSecond]: [number[], number[]] = [[], []]
    const { errors, log } = listen()
    await using first = await startOperator({ client: noteReconciles(proxied, ofFirst), resyncMs: 1, log })
    await whenLeading(first)
    await using second = await startOperator({
      client: noteReconciles(direct, ofSecond),
      resyncMs: 1,
      clock: fastClock,
    })
    for (const name of ['one', 'two', 'three']) await place.apply(name)
    for (const name of ['one', 'two', 'three']) await place.ready(name)
    await eventually('full passes repeat', () => ofFirst.length > 12)
    expect(ofSecond).toEqual([])

    proxy.stall()
    const stalledAt = performance.now()
    await whenLeading(second)
    await eventually('the second one reconciles', () => ofSecond.length > 3)
    // What hung in the first one was broken off before its lease could lapse.
    expect(Math.max(...ofFirst)).toBeLessThan(ofSecond[0]!)
    expect(errors.some((error) => error.includes('was lost: not renewed within 10000 ms'))).toBe(true)
    expect(errors.filter((error) => error.includes('has expired while the work of its former holder goes on'))).toEqual(
      [],
    )
    expect(first.operator.isLeader()).toBe(false)
    expect(sinceMs(stalledAt)).toBeLessThan(20_000)

    const before = ofFirst.length
    proxy.resume()
    await eventually(
      'the first one is back as a standby',
      async () => first.operator.hasSynced() && (await holderOf()) !== '',
    )
    await place.apply('four')
    await place.ready('four')
    expect(ofFirst.length).toBe(before)
    expect(first.operator.isLeader()).toBe(false)

    const stoppedAt = performance.now()
    await second.stop()
    await whenLeading(first)
    await place.apply('five')
    await place.ready('five')
    // Without a hand-over the first one waits until the lease of 15 s lapses.
    expect(sinceMs(stoppedAt)).toBeLessThan(10_000)
  })
})

describe('a stop in the middle of a reconcile', () => {
  /** The first one leads by a client whose creation of a Secret is `create`; the second one waits. */
  async function reconcileHalf(
    stack: AsyncDisposableStack,
    create: (signal: AbortSignal | undefined, go: () => Promise<unknown>) => Promise<unknown>,
  ) {
    const direct = stack.use(clientOf(cluster.connection))
    const begun = Promise.withResolvers<void>()
    const client: KubernetesClient = {
      ...direct,
      async create<T>(...[type, object, options]: Parameters<KubernetesClient['create']>) {
        const go = () => direct.create(type, object, options)
        if (type.plural !== 'secrets') return (await go()) as T
        begun.resolve()
        return (await create(options?.signal, go)) as T
      },
    }
    const identity = randomUUID()
    const first = stack.use(await startOperator({ client, identity }))
    await whenLeading(first)
    const second = stack.use(await startOperator())
    await place.apply('halfway')
    await begun.promise
    return { first, second, identity, stoppedAt: performance.now() }
  }

  it('lets it finish, gives the lease back, and the next one leads within five seconds', async () => {
    await using stack = new AsyncDisposableStack()
    const held = Promise.withResolvers<void>()
    const { first, second, identity, stoppedAt } = await reconcileHalf(stack, (_, go) => held.promise.then(go))
    const stopped = first.stop()
    expect(await holderOf()).toBe(identity)
    held.resolve()
    await stopped
    expect(await holderOf()).not.toBe(identity)
    const { status } = await place.get('halfway')
    expect(status?.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
    expect(await place.pingUrl('halfway')).toContain('/ping/')
    await whenLeading(second)
    expect(sinceMs(stoppedAt)).toBeLessThan(5_000)
  })

  it('breaks off what hangs, and the next one brings it in line', async () => {
    await using stack = new AsyncDisposableStack()
    const hang = (signal?: AbortSignal) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    const { first, second, stoppedAt } = await reconcileHalf(stack, hang)
    await first.stop()
    expect(sinceMs(stoppedAt)).toBeLessThan(6_000)
    await place.ready('halfway')
    expect(second.operator.isLeader()).toBe(true)
    expect(await place.pingUrl('halfway')).toContain('/ping/')
  })
})
