/** What a reflector does while all is well; its faults are next door. */

import { describe, expect, it } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { createReflector, type ReflectorOptions } from '../../../src/kubernetes/reflector.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import { CONFIG_MAPS, startFakeApiServer } from '../../support/fake-api-server.ts'
import { eventually } from '../../support/until.ts'
import { type Note, startReflecting } from './reflecting.ts'

describe('a reflector', () => {
  it('lists what is there, and follows what happens', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    a.write('b', '1')
    expect(a.reflector.hasSynced()).toBe(false)
    await a.follow()
    expect(a.reflector.hasSynced()).toBe(true)
    expect(a.changes.splice(0)).toEqual(['shop/a: - -> 1', 'shop/b: - -> 1'])
    a.write('c', '1')
    a.write('a', '2')
    a.remove('b')
    await a.until(() => a.changes.length === 3)
    expect(a.changes).toEqual(['shop/c: - -> 1', 'shop/a: 1 -> 2', 'shop/b: 1 -> -'])
    expect([...a.reflector.keys()].sort()).toEqual(['shop/a', 'shop/c'])
    expect([...a.reflector.values()].map(({ data }) => data?.text).sort()).toEqual(['1', '2'])
    expect(a.reflector.get('shop/a')?.kind).toBe('ConfigMap')
    expect(a.reflector.get('shop/b')).toBeUndefined()
    expect(a.problems).toEqual([])
  })

  it('lists page by page, and watches from where the list was taken', async () => {
    await using a = await startReflecting()
    for (let n = 0; n < 1_200; n += 1) a.write(`n${n}`, '1')
    await a.follow()
    expect(a.changes).toHaveLength(1_200)
    expect(a.counts.at(-1)).toBe(1_200)
    const lists = a.server.requests.filter(({ isList }) => isList)
    expect(lists.map(({ query }) => [query.get('limit'), query.has('continue'), query.get('resourceVersion')])).toEqual(
      [
        ['500', false, null],
        ['500', true, null],
        ['500', true, null],
      ],
    )
    const watch = a.server.watches[0]!.query
    expect(watch.get('resourceVersion')).toBe('1300')
    expect(watch.get('allowWatchBookmarks')).toBe('true')
  })

  it.each([
    [0, 300],
    [0.999, 599],
  ])('asks for watches of 5 to 10 minutes (chance %f: %i s)', async (chance, seconds) => {
    await using a = await startReflecting({ random: () => chance })
    await a.follow()
    expect(a.server.watches[0]!.query.get('timeoutSeconds')).toBe(String(seconds))
  })

  it('keeps to a namespace, to labels and to fields', async () => {
    const fieldSelector = 'metadata.name!=c'
    await using a = await startReflecting({ namespace: 'shop', labelSelector: 'a=b', fieldSelector })
    await a.follow()
    expect(new Set(a.server.requests.map(({ path }) => path))).toEqual(new Set(['/api/v1/namespaces/shop/configmaps']))
    expect(a.server.requests.map(({ query }) => query.get('labelSelector'))).toEqual(['a=b', 'a=b'])
    expect(a.server.requests.map(({ query }) => query.get('fieldSelector'))).toEqual([fieldSelector, fieldSelector])
  })

  it('says of a change whether two lists differ, or the watch has reported it', async () => {
    const changes: string[] = []
    const onChange: ReflectorOptions<Note>['onChange'] = (key, { before, after, isListed }) =>
      changes.push(`${key} ${before ? 1 : 0}${after ? 1 : 0} ${isListed ? 'listed' : 'watched'}`)
    await using a = await startReflecting({ onChange })
    a.write('a', '1')
    await a.follow()
    a.write('b', '1')
    a.remove('b')
    await a.until(() => changes.length === 3)
    a.server.watches[0]!.silence()
    a.remove('a')
    a.server.expire()
    a.server.watches[0]!.reset()
    await a.until(() => changes.length === 4)
    expect(changes).toEqual(['shop/a 01 listed', 'shop/b 01 watched', 'shop/b 10 watched', 'shop/a 10 listed'])
  })

  it('keeps only what is left after trimming, wherever it comes from', async () => {
    const trim = ({ metadata, data }: Note): Note => ({ metadata, data: { text: `trimmed ${data?.text}` } })
    await using a = await startReflecting({ trim })
    a.write('a', '1')
    await a.follow()
    a.write('b', '1')
    await a.until(() => a.changes.length === 2)
    a.reflector.put(
      await a.client.mergePatch<Note>(CONFIG_MAPS, { namespace: 'shop', name: 'a' }, { data: { text: '2' } }),
    )
    expect(a.changes).toEqual(['shop/a: - -> trimmed 1', 'shop/b: - -> trimmed 1'])
    expect(a.reflector.get('shop/a')).toMatchObject({ data: { text: 'trimmed 2' } })
    expect(a.reflector.get('shop/a')?.kind).toBeUndefined()
  })

  it('caches another shape than the API server sends, and makes it once for each version', async () => {
    await using server = await startFakeApiServer()
    const client = createClient({ connection: server.connection, clock: systemClock })
    const made: string[] = []
    const reflector = createReflector<{ metadata: Note['metadata']; text: string }, Note>({
      client,
      type: CONFIG_MAPS,
      clock: systemClock,
      relistMs: 0,
      random: () => 0,
      trim({ metadata, data }) {
        made.push(metadata.name)
        return { metadata, text: data?.text ?? '' }
      },
      onChange() {},
      onProblem() {},
    })
    server.collection(CONFIG_MAPS).create({ metadata: { namespace: 'shop', name: 'a' }, data: { text: '1' } })
    reflector.start()
    await eventually('the watch is open', () => server.watches.length === 1)
    expect(reflector.get('shop/a')?.text).toBe('1')
    server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 410, message: 'too old resource version' })
    await eventually(
      'the second list has come, and the watch is open',
      () => server.requests.filter(({ isList }) => isList).length === 2 && server.watches.length === 1,
    )
    expect(made).toEqual(['a'])
    await reflector.stop()
    await client.close()
  })

  it('goes on from its bookmark when a watch has had its time, without a pause and without a list', async () => {
    await using a = await startReflecting({ random: () => 0.5 })
    await a.follow()
    await a.clock.advance(100_000)
    a.server.watches[0]!.bookmark('777')
    await a.clock.settle()
    await a.until(() => a.reflector.lastContactAt() === a.clock.now())
    for (let n = 0; n < 3; n += 1) {
      await a.clock.advance(100_000)
      a.server.watches[0]!.bookmark('777')
      await a.until(() => a.reflector.lastContactAt() === a.clock.now())
    }
    await a.clock.advance(50_000)
    const from = a.clock.now()
    a.server.watches[0]!.end()
    await a.until(() => a.watchesAsked() === 2)
    expect(a.clock.now()).toBe(from)
    expect(a.server.watches[0]!.query.get('resourceVersion')).toBe('777')
    expect([a.lists(), a.checks(), a.problems, a.restarts]).toEqual([1, 0, [], ['timeout']])
  })

  it('reports an object that was created again as another one', async () => {
    await using a = await startReflecting()
    a.write('a', 'old')
    await a.follow()
    const seen: (Note | undefined)[] = []
    a.changes.push = (text: string) => {
      seen.push(a.reflector.get('shop/a'))
      return Array.prototype.push.call(a.changes, text)
    }
    // As after a gap: no DELETED in between.
    const metadata = { namespace: 'shop', name: 'a', uid: 'another', resourceVersion: '500' }
    a.server.watches[0]!.sendEvent('MODIFIED', { kind: 'ConfigMap', metadata, data: { text: 'new' } })
    await a.until(() => a.changes.length === 3)
    expect(a.changes.slice(1)).toEqual(['shop/a: old -> -', 'shop/a: - -> new'])
    expect(seen.map((note) => note?.data?.text)).toEqual([undefined, 'new'])
  })

  it('gives way to others while it hands out a long list', async () => {
    let now = 0
    // Each look at this clock takes a millisecond.
    const clock: Clock = {
      now: () => now++,
      sleep: (_, signal) => new Promise((done) => signal?.addEventListener('abort', () => done())),
    }
    const items = Array.from({ length: 1_000 }, (_, n) => ({
      metadata: { namespace: 'shop', name: `n${n}`, uid: `u${n}`, resourceVersion: String(n + 1) },
    }))
    let handed = 0
    const seenByOthers: number[] = []
    const look = () => {
      seenByOthers.push(handed)
      if (handed < items.length) setImmediate(look)
    }
    const reflector = createReflector({
      client: {
        list: async () => ({ items: items as never[], resourceVersion: '1000', continueToken: null }),
        watch: async function* (_, { signal }) {
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
        },
      },
      type: CONFIG_MAPS,
      clock,
      onChange() {
        handed += 1
        if (handed === 1) look()
      },
      onProblem: () => {},
    })
    reflector.start()
    await eventually('the list has come', () => reflector.hasSynced())
    const steps = seenByOthers.slice(1).map((count, n) => count - seenByOthers[n]!)
    expect(steps.length).toBeGreaterThan(50)
    expect(Math.max(...steps)).toBeLessThan(20)
    await reflector.stop()
  })
})

describe('starting and stopping', () => {
  it('twice is once', async () => {
    await using a = await startReflecting()
    a.reflector.start()
    a.reflector.start()
    await a.follow()
    a.reflector.start()
    expect([a.lists(), a.watchesAsked()]).toEqual([1, 1])
    await Promise.all([a.reflector.stop(), a.reflector.stop()])
    a.reflector.start()
    await a.until(() => a.server.watches.length === 0)
    expect([a.lists(), a.watchesAsked()]).toEqual([1, 1])
    expect(a.clock.wakeTimes()).toEqual([])
    expect(a.problems).toEqual([])
  })

  it('stops in the middle of a list', async () => {
    await using a = await startReflecting()
    a.server.disturb(() => true, 'hang')
    a.reflector.start()
    await a.until(() => a.lists() === 1)
    await a.reflector.stop()
    expect(a.clock.wakeTimes()).toEqual([])
    expect(a.problems).toEqual([])
  })

  it('stops in the middle of a pause', async () => {
    await using a = await startReflecting()
    a.server.disturb(() => true, { status: 403, message: 'no' }, Number.POSITIVE_INFINITY)
    a.reflector.start()
    await a.until(() => a.problems.length >= 5)
    await a.reflector.stop()
    expect(a.clock.wakeTimes()).toEqual([])
  })

  it('is no stop before a start, and lets nothing start after it', async () => {
    await using a = await startReflecting()
    await a.reflector.stop()
    a.reflector.start()
    await a.clock.advance(60_000)
    expect(a.server.requests).toHaveLength(0)
  })
})
