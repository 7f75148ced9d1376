/** Whether a cache holds all that the API server had stored when the question was asked. */

import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../../src/kubernetes/client.ts'
import { confirmGroups, confirmPosition } from '../../../src/kubernetes/confirm.ts'
import { TransportError } from '../../../src/kubernetes/errors.ts'
import { anApiError } from '../../support/builders.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { type Reflecting, startReflecting } from './reflecting.ts'

const { signal } = new AbortController()

/** Something else in the cluster changes: its version moves, and the reflector hears nothing. */
const writeElsewhere = (a: Reflecting) =>
  a.server
    .collection(CONFIG_MAPS)
    .create({ metadata: { namespace: 'elsewhere', name: `n${a.server.requests.length}` } })

async function startIn(namespace = 'shop') {
  const a = await startReflecting({ namespace })
  a.write('a', '1')
  await a.follow()
  return a
}

describe('a reflector', () => {
  it('confirms with one request that it has reached the version of the API server', async () => {
    await using a = await startIn()
    expect(await a.reflector.confirm(signal)).toBe(true)
    expect([a.checks(), a.watchesAsked()]).toEqual([1, 1])
    // A consistent read, never of what the server has in its cache.
    expect(a.server.requests.at(-1)!.query.has('resourceVersion')).toBe(false)
  })

  it('confirms by a second watch that nothing has changed since its position', async () => {
    await using a = await startIn()
    writeElsewhere(a)
    const confirming = a.reflector.confirm(signal)
    await a.until(() => a.server.watches.length === 2)
    const [first, second] = a.server.watches
    expect(second!.query.get('resourceVersion')).toBe(first!.query.get('resourceVersion'))
    expect(second!.query.get('timeoutSeconds')).toBe('1')
    second!.end()
    expect(await confirming).toBe(true)
    expect([a.problems, a.restarts]).toEqual([[], []])
  })

  it('confirms no earlier than it has given to onChange what was stored before', async () => {
    await using a = await startIn()
    a.server.setPieceBytes(1)
    a.write('a', '2')
    expect(await a.reflector.confirm(signal)).toBe(true)
    expect(a.changes).toEqual(['shop/a: - -> 1', 'shop/a: 1 -> 2'])
  })

  it('replaces a watch that does not deliver what a second one does', async () => {
    await using a = await startIn()
    a.server.watches[0]!.silence()
    a.write('a', '2')
    const confirming = a.reflector.confirm(signal)
    await a.until(() => a.server.watches.length === 2)
    await a.clock.advance(300)
    a.server.watches[1]!.end()
    // It may deliver for a moment.
    await a.until(() => a.server.watches.length === 1)
    await a.clock.settle()
    await a.clock.advance(999)
    expect(a.problems).toEqual([])
    await a.clock.advance(1)
    expect(await confirming).toBe(false)
    await a.until(() => a.changes.length === 2)
    expect(a.problems).toEqual([expect.stringMatching(/^stall: watch configmaps shop: it has not delivered what/)])
    expect([a.restarts, a.lists()]).toEqual([['stalled'], 1])
    expect(await a.reflector.confirm(signal)).toBe(true)
  })

  it('confirms nothing before its first list, and nothing while a list is due', async () => {
    await using a = await startReflecting()
    expect(await a.reflector.confirm(signal)).toBe(false)
    expect(a.server.requests).toEqual([])
    await a.follow()
    const enable = a.server.disturb(({ isList, query }) => isList && query.get('limit') !== '1', { status: 403 }, 99)
    a.server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 500, message: 'etcd event lost' })
    await a.until(() => a.problems.length >= 2)
    expect(await a.reflector.confirm(signal)).toBe(false)
    enable()
    await a.until(() => a.lists() >= 3 && a.server.watches.length === 1)
    expect(await a.reflector.confirm(signal)).toBe(true)
  })

  it('leaves the watch alone when the API server does not respond', async () => {
    await using a = await startIn()
    a.server.disturb(({ isList }) => isList, { status: 403 })
    expect(await a.reflector.confirm(signal)).toBe(false)
    expect([a.problems, a.restarts, a.server.watches.length]).toEqual([[], [], 1])
  })
})

/**
 * The API server is at `listed`, and says so after `listMs`; the second watch delivers these, and then ends after
 * `restMs`.
 */
function ask(listed: string | Error, delivered: readonly string[] | Error = [], restMs = 1_000, listMs = 0) {
  const clock = createManualClock()
  const state = { position: '100', move: () => {} }
  const client = {
    async list() {
      await clock.sleep(listMs)
      if (listed instanceof Error) throw listed
      return { items: [], resourceVersion: listed, continueToken: null }
    },
    async *watch(_type: object, { signal }: { signal: AbortSignal }) {
      if (delivered instanceof Error) throw delivered
      for (const resourceVersion of delivered) yield { type: 'MODIFIED', object: { metadata: { resourceVersion } } }
      await clock.sleep(restMs, signal)
      signal.throwIfAborted()
    },
  } as unknown as KubernetesClient
  const result = confirmPosition({
    client,
    type: CONFIG_MAPS,
    where: {},
    position: () => state.position,
    onMoved(listener) {
      state.move = listener
      return () => {
        state.move = () => {}
      }
    },
    clock,
    signal,
  })
  return {
    clock,
    result,
    moveTo(position: string) {
      state.position = position
      state.move()
    },
  }
}

describe('a position', () => {
  it.each([
    ['is confirmed at the version of the API server', '100', [], 0, 'confirmed'],
    ['is behind an API server that was restored: its version is lower', '99', [], 0, 'behind'],
    ['is confirmed when a second watch delivers nothing', '120', [], 1_000, 'confirmed'],
    ['is confirmed when a second watch delivers what is known', '120', ['100'], 1_000, 'confirmed'],
    ['is behind when a second watch delivers more, a second after its end', '120', ['101'], 2_000, 'behind'],
    ['is behind when it is too old for a watch', '120', anApiError(410), 0, 'behind'],
    ['is unknown without the right to watch', '120', anApiError(403), 0, 'unknown'],
    ['is unknown without the right to list', anApiError(403), [], 0, 'unknown'],
    ['is unknown without a response', new TransportError('no'), [], 0, 'unknown'],
  ] as const)('%s', async (_, listed, delivered, tookMs, expected) => {
    const { clock, result } = ask(listed, delivered)
    const from = clock.now()
    let endedAt = 0
    void result.then(() => {
      endedAt = clock.now()
    })
    await clock.advance(6_000)
    expect(await result).toBe(expected)
    expect(endedAt - from).toBe(tookMs)
  })

  it('is confirmed when the first watch delivers the same a moment later', async () => {
    const { clock, result, moveTo } = ask('120', ['101', '105'])
    await clock.advance(1_500)
    moveTo('104')
    await clock.advance(499)
    moveTo('105')
    expect(await result).toBe('confirmed')
  })

  it('is unknown when the first watch is late and still delivers: to replace it would cost more than to wait', async () => {
    const { clock, result, moveTo } = ask('120', ['101', '105'])
    await clock.advance(1_500)
    moveTo('103')
    await clock.advance(500)
    expect(await result).toBe('unknown')
  })

  it.each([
    ['what the second one delivers until its end', '129'],
    ['what the list has, and not yet all of the second one', '120'],
  ])('is confirmed where changes never pause: the first watch delivers %s', async (_, reached) => {
    const { clock, result, moveTo } = ask('120', ['105', '129'], 100)
    await clock.advance(50)
    moveTo(reached)
    await clock.advance(1_100)
    expect(await result).toBe('confirmed')
  })

  it('is unknown after a second watch that delivered until its end: perhaps that was not all', async () => {
    const { clock, result, moveTo } = ask('120', ['105'], 249)
    moveTo('105')
    await clock.advance(250)
    expect(await result).toBe('unknown')
  })

  it.each([
    ['without a second watch', '120', 3_000, 'unknown'],
    ['with one, where the list came in time', '120', 2_999, 'confirmed'],
    ['without one, where the cache has reached the list', '100', 4_000, 'confirmed'],
  ])('is judged %s: a server lists past its own cache that lags', async (_, listed, listMs, expected) => {
    const { clock, result } = ask(listed, [], 1_000, listMs)
    await clock.advance(5_000)
    expect(await result).toBe(expected)
  })

  it.each([
    ['the second watch does not end', [], 60_000],
    ['the first watch would have more time', ['101'], 4_500],
  ])('is unknown after five seconds: %s', async (_, delivered, restMs) => {
    const { clock, result } = ask('120', delivered, restMs)
    await clock.advance(5_000)
    expect(await result).toBe('unknown')
  })
})

describe('many', () => {
  const inTwos = <T>(all: readonly T[]) => [all.slice(0, 2), all.slice(2, 4), all.slice(4)]
  const many = (count: number, isConfirmed: (index: number) => boolean) => {
    const clock = createManualClock()
    const from = clock.now()
    const askedAt: number[] = []
    const all = Array.from({ length: count }, (_, index) => ({
      async confirm() {
        askedAt.push(clock.now() - from)
        return isConfirmed(index)
      },
    }))
    return { clock, askedAt, all }
  }

  it('are asked together up to five', async () => {
    const { clock, askedAt, all } = many(5, () => true)
    expect(await confirmGroups([all], clock, signal)).toEqual([true])
    expect(askedAt).toEqual([0, 0, 0, 0, 0])
  })

  it('are asked at five requests a second from six on, two for each', async () => {
    const { clock, askedAt, all } = many(6, () => true)
    const result = confirmGroups(inTwos(all), clock, signal)
    await clock.advance(2_000)
    expect(await result).toEqual([true, true, true])
    expect(askedAt).toEqual([0, 400, 800, 1_200, 1_600, 2_000])
  })

  it('end with the first of a group that is not confirmed, while the other groups go on, and with the signal', async () => {
    const { clock, askedAt, all } = many(6, (index) => index !== 2)
    const result = confirmGroups(inTwos(all), clock, signal)
    await clock.advance(2_000)
    expect(await result).toEqual([true, false, true])
    expect(askedAt).toEqual([0, 400, 800, 1_600, 2_000])
    expect(await confirmGroups(inTwos(all), clock, AbortSignal.abort())).toEqual([false, false, false])
    expect(askedAt).toHaveLength(5)
  })
})
