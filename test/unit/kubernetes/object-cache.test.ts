import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createObjectCache, type KeyedChange } from '../../../src/kubernetes/object-cache.ts'
import type { KubernetesObject } from '../../../src/kubernetes/objects.ts'

const anObject = (name: string, version: number | string, uid = `uid-${name}`): KubernetesObject => ({
  metadata: { namespace: 'shop', name, uid, resourceVersion: String(version) },
})

/** `a: 1 -> 2`, `b: - -> 3`. */
const summarize = (changes: Iterable<KeyedChange<KubernetesObject>>) =>
  [...changes].map(([key, { before, after }]) => {
    const version = (object: KubernetesObject | undefined) => object?.metadata.resourceVersion ?? '-'
    return `${key.replace('shop/', '')}: ${version(before)} -> ${version(after)}`
  })

const contentOf = (cache: Pick<ReturnType<typeof createObjectCache<KubernetesObject>>, 'values'>) =>
  [...cache.values()].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).sort()

function cacheOf(version: number, ...objects: KubernetesObject[]) {
  const cache = createObjectCache<KubernetesObject>()
  cache.beginList()
  for (const _ of cache.replace(objects, String(version)));
  return cache
}

describe('a list', () => {
  it('adds, changes, and deletes what it lacks', () => {
    const cache = cacheOf(10, anObject('kept', 1), anObject('changed', 2), anObject('gone', 3))
    cache.beginList()
    const changes = cache.replace([anObject('kept', 1), anObject('changed', 11), anObject('new', 12)], '20')
    expect(summarize(changes)).toEqual(['changed: 2 -> 11', 'new: - -> 12', 'gone: 3 -> -'])
    expect(contentOf(cache)).toEqual(['changed@11', 'kept@1', 'new@12'])
    expect(cache.position()).toBe('20')
  })

  it('gives another uid as a deletion and an addition', () => {
    const cache = cacheOf(10, anObject('a', 1, 'first'))
    cache.beginList()
    expect(summarize(cache.replace([anObject('a', 11, 'second')], '20'))).toEqual(['a: 1 -> -', 'a: - -> 11'])
  })

  it('is the truth also when its versions are lower: etcd was restored', () => {
    const cache = cacheOf(1_000, anObject('a', 900), anObject('b', 950))
    cache.beginList()
    expect(summarize(cache.replace([anObject('a', 5)], '7'))).toEqual(['a: 900 -> 5', 'b: 950 -> -'])
    expect(cache.position()).toBe('7')
    expect(summarize(cache.apply('MODIFIED', anObject('a', 8)))).toEqual(['a: 5 -> 8'])
  })

  it('does not undo what we wrote after it was taken', () => {
    const cache = cacheOf(10, anObject('a', 1), anObject('b', 2))
    cache.beginList()
    cache.put(anObject('a', 21))
    expect(summarize(cache.replace([anObject('a', 1), anObject('b', 2)], '20'))).toEqual([])
    expect(contentOf(cache)).toEqual(['a@21', 'b@2'])
  })

  it('does undo what we wrote before it was taken', () => {
    const cache = cacheOf(10, anObject('a', 1), anObject('b', 2))
    cache.beginList()
    cache.put(anObject('a', 15))
    cache.put(anObject('b', 16))
    expect(summarize(cache.replace([anObject('b', 17)], '20'))).toEqual(['b: 16 -> 17', 'a: 15 -> -'])
  })

  it('forgets our earlier writes when the next one is asked for, also after one that failed', () => {
    const cache = cacheOf(10, anObject('a', 1))
    cache.put(anObject('a', 30))
    cache.beginList()
    cache.put(anObject('a', 31))
    cache.beginList()
    expect(summarize(cache.replace([anObject('a', 19)], '20'))).toEqual(['a: 31 -> 19'])
  })
})

describe('an event', () => {
  it('adds, changes and deletes', () => {
    const cache = cacheOf(10)
    expect(summarize(cache.apply('ADDED', anObject('a', 11)))).toEqual(['a: - -> 11'])
    expect(summarize(cache.apply('MODIFIED', anObject('a', 12)))).toEqual(['a: 11 -> 12'])
    expect(summarize(cache.apply('DELETED', anObject('a', 13)))).toEqual(['a: 12 -> -'])
    expect(cache.size()).toBe(0)
    expect(cache.position()).toBe('13')
  })

  it('is not news when it comes twice, or late', () => {
    const cache = cacheOf(10)
    for (const _ of cache.apply('ADDED', anObject('a', 12)));
    expect(summarize(cache.apply('ADDED', anObject('a', 12)))).toEqual([])
    expect(summarize(cache.apply('MODIFIED', anObject('a', 11)))).toEqual([])
    expect(cache.position()).toBe('12')
    expect(summarize(cache.apply('DELETED', anObject('none', 13)))).toEqual([])
    expect(contentOf(cache)).toEqual(['a@12'])
    expect(cache.position()).toBe('13')
  })

  it('an event with another uid is a deletion and an addition', () => {
    const cache = cacheOf(10, anObject('a', 9, 'first'))
    expect(summarize(cache.apply('MODIFIED', anObject('a', 12, 'second')))).toEqual(['a: 9 -> -', 'a: - -> 12'])
  })

  it('the DELETED event of an earlier object leaves the later one', () => {
    const cache = cacheOf(10, anObject('a', 9, 'first'))
    for (const _ of cache.apply('ADDED', anObject('a', 14, 'second')));
    expect(summarize(cache.apply('DELETED', anObject('a', 12, 'first')))).toEqual([])
    expect(contentOf(cache)).toEqual(['a@14'])
  })

  it('an event with a version that is not a number is applied in order of arrival', () => {
    const cache = cacheOf(10)
    expect(summarize(cache.apply('ADDED', anObject('a', 'zeta')))).toEqual(['a: - -> zeta'])
    expect(summarize(cache.apply('MODIFIED', anObject('a', 'alpha')))).toEqual(['a: zeta -> alpha'])
    expect(cache.position()).toBe('alpha')
  })
})

describe('a look at where the server is', () => {
  const cache = () => cacheOf(100, anObject('a', 50), anObject('b', 60))

  it('finds the history that we know when the first object is one of ours, changed or not', () => {
    expect(cache().isContinuedBy('100', anObject('a', 50))).toBe(true)
    expect(cache().isContinuedBy('300', anObject('a', 250))).toBe(true)
    // The first one was deleted.
    expect(cache().isContinuedBy('300', anObject('b', 60))).toBe(true)
    expect(cacheOf(100).isContinuedBy('100', undefined)).toBe(true)
  })

  it.each([
    ['its version is lower', '99', anObject('a', 50)],
    ['its version cannot be compared', 'x', anObject('a', 50)],
    ['the first object was made anew', '300', anObject('a', 250, 'another')],
    ['the first object is older than we have seen it', '300', anObject('a', 49)],
    ['the first object is unknown', '300', anObject('0', 250)],
    ['there is no object', '300', undefined],
  ])('finds another when %s', (_, version, first) => {
    expect(cache().isContinuedBy(version, first)).toBe(false)
  })
})

describe('our own write', () => {
  it('is taken over, and its echo is not news', () => {
    const cache = cacheOf(10, anObject('a', 9))
    cache.put(anObject('a', 11))
    expect(contentOf(cache)).toEqual(['a@11'])
    expect(summarize(cache.apply('MODIFIED', anObject('a', 11)))).toEqual([])
  })

  it('is not undone by events that happened before it', () => {
    const cache = cacheOf(10, anObject('a', 9))
    cache.put(anObject('a', 13))
    expect(summarize(cache.apply('MODIFIED', anObject('a', 12)))).toEqual([])
    expect(summarize(cache.apply('MODIFIED', anObject('a', 14)))).toEqual(['a: 13 -> 14'])
  })

  it('does not undo events that happened after it', () => {
    const cache = cacheOf(10, anObject('a', 9))
    for (const _ of cache.apply('MODIFIED', anObject('a', 12)));
    cache.put(anObject('a', 11))
    expect(contentOf(cache)).toEqual(['a@12'])
  })

  it('does not bring back what was deleted since', () => {
    const cache = cacheOf(10, anObject('a', 9))
    for (const _ of cache.apply('DELETED', anObject('a', 12)));
    cache.put(anObject('a', 11))
    expect(contentOf(cache)).toEqual([])
  })

  it('hides neither the creation of an object from the watch, nor that it was created again', () => {
    const cache = cacheOf(10, anObject('a', 9, 'first'))
    cache.put(anObject('a', 13, 'second'))
    cache.put(anObject('b', 14))
    expect(contentOf(cache)).toEqual(['a@9'])
    expect(summarize(cache.apply('DELETED', anObject('a', 11, 'first')))).toEqual(['a: 9 -> -'])
    cache.put(anObject('a', 13, 'second'))
    expect(summarize(cache.apply('ADDED', anObject('a', 12, 'second')))).toEqual(['a: - -> 12'])
    expect(summarize(cache.apply('ADDED', anObject('b', 14)))).toEqual(['b: - -> 14'])
  })

  it('our write with a version that is not a number counts for the same object only', () => {
    const cache = cacheOf(10, anObject('a', 'x', 'first'))
    cache.put(anObject('a', 'y', 'first'))
    cache.put(anObject('a', 'z', 'second'))
    expect(contentOf(cache)).toEqual(['a@y'])
  })
})

describe('whatever the order in which answers and events arrive', () => {
  /** A history of one object: writes of ours and of others, deletions, re-creations. */
  const histories = fc.array(fc.record({ what: fc.constantFrom('write', 'delete'), isOurs: fc.boolean() }), {
    maxLength: 30,
  })

  it('the cache ends with what the server has, and no object has come in silence', () => {
    fc.assert(
      fc.property(histories, fc.infiniteStream(fc.boolean()), (history, isLate) => {
        const cache = cacheOf(10)
        let current: KubernetesObject | undefined
        let uids = 0
        const late: KubernetesObject[] = []
        const reported = new Set<string>()
        const apply = (...event: Parameters<typeof cache.apply>) => {
          for (const [, { after }] of cache.apply(...event)) if (after !== undefined) reported.add(after.metadata.uid)
        }
        for (const [n, { what, isOurs }] of history.entries()) {
          const version = 11 + n
          if (what === 'delete') {
            if (current === undefined) continue
            const event = anObject('a', version, current.metadata.uid)
            current = undefined
            apply('DELETED', event)
            continue
          }
          if (current === undefined) uids += 1
          const type = current === undefined ? 'ADDED' : 'MODIFIED'
          current = anObject('a', version, `uid-${uids}`)
          // The answer to our write comes before its event, or at some time after it.
          if (isOurs && !isLate.next().value) cache.put(current)
          else if (isOurs) late.push(current)
          apply(type, current)
          if (isLate.next().value) for (const answer of late.splice(0)) cache.put(answer)
        }
        for (const answer of late) cache.put(answer)
        expect(cache.get('shop/a')).toEqual(current)
        expect(reported.size).toBe(uids)
      }),
    )
  })
})
