/** F3: how often published objects are looked at, and what a look leads to. */

import { describe, expect, it } from 'vitest'
import { ApiError, TransportError } from '../../../../src/kubernetes/errors.ts'
import type { KubernetesObject } from '../../../../src/kubernetes/objects.ts'
import { createPublishedLooks, type Seen } from '../../../../src/operator/publish/look-at-published.ts'
import { createManualClock } from '../../../support/manual-clock.ts'

const MINUTE = 60_000
const object = (name: string, resourceVersion = '7'): KubernetesObject => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion },
})
const seen = (name: string, version = `uid-${name}/7`): Seen => ({ kind: 'Secret', namespace: 'shop', name, version })
const rejection = (status: number) =>
  new ApiError({ request: 'r', status, reason: 'x', message: 'x', details: null, retryAfterSeconds: null })

function start(answer: (name: string) => Promise<KubernetesObject> = async (name) => object(name)) {
  const clock = createManualClock()
  const from = clock.now()
  const looks: { name: string; at: number }[] = []
  const changed: string[] = []
  const options: unknown[] = []
  const part = createPublishedLooks({
    client: {
      get: (async (_type: unknown, { name }: { name: string }, { signal: _, ...rest }: { signal: unknown }) => {
        looks.push({ name, at: clock.now() - from })
        options.push(rest)
        return answer(name)
      }) as never,
    },
    clock,
    onChange: (key) => changed.push(key),
  })
  part.start()
  const publish = (count: number) => {
    for (let index = 0; index < count; index += 1) part.saw(`shop/s${index}`, seen(`s${index}`))
  }
  return { clock, looks, changed, options, part, publish }
}

/** The most looks in any second. */
function busiestSecond(looks: readonly { at: number }[]): number {
  return Math.max(...looks.map(({ at }) => looks.filter((other) => other.at >= at && other.at < at + 1_000).length))
}

/** The longest time without a look at one and the same object. */
function longestGap(looks: readonly { name: string; at: number }[]): number {
  const last = new Map<string, number>()
  let longest = 0
  for (const { name, at } of looks) {
    longest = Math.max(longest, at - (last.get(name) ?? 0))
    last.set(name, at)
  }
  return longest
}

describe('looks at published objects', () => {
  it.each([1, 7, 1_000])('come to each of %i once a minute, from the cache of the API server', async (count) => {
    const { clock, looks, options, publish } = start()
    publish(count)
    await clock.advance(3 * MINUTE)
    expect(looks).toHaveLength(3 * count)
    expect(longestGap(looks)).toBeLessThanOrEqual(MINUTE + 1)
    expect(options[0]).toEqual({ resourceVersion: '0' })
  })

  it('are spread evenly, also after a start in which all were published at once', async () => {
    const { clock, looks, publish } = start()
    publish(1_000)
    await clock.advance(2 * MINUTE)
    expect(busiestSecond(looks)).toBe(17)
    const gaps = looks.slice(1).map(({ at }, index) => at - looks[index]!.at)
    expect(Math.max(...gaps)).toBeLessThan(61)
  })

  it('stay under 20 in a second with more than 1,000 objects: the interval grows', async () => {
    const { clock, looks, publish } = start()
    publish(2_500)
    await clock.advance(5 * MINUTE)
    expect(looks).toHaveLength(5_000)
    expect(busiestSecond(looks)).toBe(17)
    expect(longestGap(looks)).toBeLessThanOrEqual(2.5 * MINUTE + 1)
  })

  it('come to the one that was read longest ago, whether by a look or by a full sync', async () => {
    const { clock, looks, part, publish } = start()
    publish(3)
    part.saw('shop/s0', seen('s0'))
    await clock.advance(MINUTE)
    expect(looks.map(({ name }) => name)).toEqual(['s1', 's2', 's0'])
  })

  it('come in time to the few that are left when many are gone', async () => {
    const { clock, looks, part, publish } = start()
    publish(600)
    await clock.advance(30_000)
    for (let index = 1; index < 600; index += 1) part.forget(`shop/s${index}`)
    looks.length = 0
    await clock.advance(31_000)
    expect(looks.map(({ name }) => name)).toEqual(['s0'])
  })

  it('leave the cache of the API server a second after a write, also after an hour without objects', async () => {
    const { clock, looks, publish } = start()
    await clock.advance(60 * MINUTE)
    publish(1)
    await clock.advance(999)
    expect(looks).toEqual([])
    await clock.advance(1)
    expect(looks).toHaveLength(1)
  })

  it('do not wait when many come while few are looked at', async () => {
    const { clock, looks, publish } = start()
    publish(1)
    await clock.advance(30_000)
    publish(1_000)
    await clock.advance(MINUTE)
    expect(new Set(looks.map(({ name }) => name)).size).toBe(1_000)
  })

  it('end with the term as leader, also those in flight', async () => {
    const { clock, looks, part, publish } = start(() => new Promise(() => {}))
    publish(1)
    await clock.advance(MINUTE)
    void part.stop()
    await clock.advance(5 * MINUTE)
    expect(looks).toHaveLength(1)
    expect(clock.wakeTimes()).toEqual([])
  })

  it('are left out while the API server takes too long, and at most eight wait for it', async () => {
    const responses: (() => void)[] = []
    const { clock, looks, publish } = start(
      (name) => new Promise((resolve) => responses.push(() => resolve(object(name)))),
    )
    publish(100)
    await clock.advance(MINUTE)
    expect(looks.map(({ name }) => name)).toEqual(['s0', 's1', 's2', 's3', 's4', 's5', 's6', 's7'])
    for (const respond of responses) respond()
    await clock.advance(1_000)
    expect(looks[8]?.name).toBe('s8')
  })
})

describe('a look leads to a full sync', () => {
  it.each<[string, () => Promise<KubernetesObject>]>([
    ['of a changed object', async () => object('s0', '8')],
    [
      'of one that was deleted and created again, with the same number after a restored etcd',
      async () => ({
        metadata: { ...object('s0').metadata, uid: 'other' },
      }),
    ],
    ['of a deleted object', () => Promise.reject(rejection(404))],
    ['without the right to read it', () => Promise.reject(rejection(403))],
  ])('%s', async (_, answer) => {
    const { clock, changed, publish } = start(answer)
    publish(1)
    await clock.advance(MINUTE)
    expect(changed).toEqual(['shop/s0'])
  })

  it.each<[string, () => Promise<KubernetesObject>]>([
    ['an unchanged object', async () => object('s0')],
    ['no response', () => Promise.reject(new TransportError('reset'))],
    ['a busy API server', () => Promise.reject(rejection(429))],
    ['credentials that have expired', () => Promise.reject(rejection(401))],
    ['a broken API server', () => Promise.reject(rejection(500))],
  ])('but not for %s', async (_, answer) => {
    const { clock, changed, looks, publish } = start(answer)
    publish(1)
    await clock.advance(2 * MINUTE)
    expect(changed).toEqual([])
    expect(looks).toHaveLength(2)
  })

  it('but not when a full sync wrote the object meanwhile, or its resource is gone', async () => {
    const responses: ((found: KubernetesObject) => void)[] = []
    const { clock, changed, part, publish } = start(() => new Promise((resolve) => responses.push(resolve)))
    publish(2)
    await clock.advance(MINUTE)
    part.saw('shop/s0', seen('s0', 'uid-s0/8'))
    part.forget('shop/s1')
    responses[0]!(object('s0', '6'))
    responses[1]!(object('s1', '6'))
    await clock.settle()
    expect(changed).toEqual([])
  })
})
