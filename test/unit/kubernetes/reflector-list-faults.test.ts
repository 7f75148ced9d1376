/** What a reflector does when lists fail, when the cluster is another one, and when its callers fail. */

import { describe, expect, it } from 'vitest'
import { MINUTE } from '../../support/builders.ts'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { eventually } from '../../support/until.ts'
import { startReflecting } from './reflecting.ts'

describe('a list that fails', () => {
  it('deletes nothing, and is tried until it is whole', async () => {
    await using a = await startReflecting()
    for (let n = 0; n < 600; n += 1) a.write(`n${n}`, '1')
    await a.follow()
    const mend = a.server.disturb(({ query }) => query.has('continue'), { status: 500 }, Number.POSITIVE_INFINITY)
    a.remove('n0')
    a.server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 500, message: 'etcd event lost' })
    await a.until(() => a.problems.length === 4)
    expect(a.reflector.hasSynced()).toBe(true)
    expect([...a.reflector.keys()]).toHaveLength(599)
    mend()
    await a.until(() => a.watchesAsked() === 2)
    expect([...a.reflector.keys()]).toHaveLength(599)
    expect(a.changes.filter((change) => change.endsWith('-> -'))).toEqual(['shop/n0: 1 -> -'])
    expect(a.problems.slice(1)).toEqual(Array(3).fill('list: the server responded 500 to: list configmaps'))
  })

  it('is tried ever more slowly while we may not list, and works once we may', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    const message = 'configmaps is forbidden: User "jane" cannot list'
    const grant = a.server.disturb(() => true, { status: 403, reason: 'Forbidden', message }, Number.POSITIVE_INFINITY)
    const times: number[] = []
    a.reflector.start()
    for (let n = 1; n <= 8; n += 1) {
      // The clock is moved below, and by nobody else.
      await eventually(`${n} problems are reported`, () => a.problems.length === n)
      times.push(a.clock.now())
      await a.clock.settle()
      await a.clock.advance(a.clock.wakeTimes()[0]! - a.clock.now())
    }
    const gaps = times.slice(1).map((at, n) => at - times[n]!)
    expect(gaps).toEqual([800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000])
    expect(new Set(a.problems)).toEqual(new Set([`list: ${message}`]))
    expect(a.reflector.hasSynced()).toBe(false)
    grant()
    await a.clock.advance(15_000)
    await a.until(() => a.server.watches.length === 1)
    expect(a.changes).toEqual(['shop/a: - -> 1'])
  })

  it('a list of an unknown resource works once the resource is served, also after it was removed', async () => {
    await using a = await startReflecting()
    a.server.remove(CONFIG_MAPS)
    a.reflector.start()
    await a.until(() => a.problems.length === 2)
    expect(a.problems[0]).toBe('list: the server could not find the requested resource')
    a.server.add(CONFIG_MAPS)
    a.write('a', '1')
    a.write('b', '1')
    await a.until(() => a.server.watches.length === 1)
    a.server.remove(CONFIG_MAPS)
    await a.until(() => a.problems.length >= 4)
    // What was there is kept for as long as nobody says otherwise.
    expect([...a.reflector.keys()]).toEqual(['shop/a', 'shop/b'])
    a.server.add(CONFIG_MAPS)
    a.write('a', 'again')
    await a.until(() => a.server.watches.length === 1)
    expect(a.changes.slice(2)).toEqual(['shop/a: 1 -> -', 'shop/a: - -> again', 'shop/b: 1 -> -'])
  })

  it.each([
    ['list', false],
    ['watch', true],
  ])('or a %s that comes too often waits as long as it is asked to', async (_, isWatch) => {
    await using a = await startReflecting()
    const busy = { status: 429, message: 'too many requests', headers: { 'retry-after': '45' } }
    a.server.disturb((request) => request.isWatch === isWatch, busy)
    a.reflector.start()
    await a.until(() => a.problems.length === 1)
    await a.clock.settle()
    await a.clock.advance(44_000)
    expect(a.server.watches).toHaveLength(0)
    await a.clock.advance(1_000)
    await a.until(() => a.server.watches.length === 1)
    expect(a.problems).toEqual([`${isWatch ? 'watch' : 'list'}: too many requests`])
    expect(a.lists()).toBe(isWatch ? 1 : 2)
  })
})

describe('a cluster that is another one', () => {
  it.each([
    ['behind the one that we knew', 0],
    ['ahead of it already', 200],
  ])('is noticed when the watch breaks, with a history %s', async (_, writes) => {
    await using a = await startReflecting()
    for (const name of ['a', 'b', 'c']) a.write(name, 'old')
    await a.follow()
    a.server.empty()
    for (let n = 0; n < writes; n += 1) a.write('a', `${n}`)
    a.write('a', 'new')
    a.write('c', 'new')
    await a.until(() => a.lists() === 2 && a.server.watches.length === 1)
    expect(a.changes.slice(3)).toEqual([
      'shop/a: old -> -',
      'shop/a: - -> new',
      'shop/c: old -> -',
      'shop/c: - -> new',
      'shop/b: old -> -',
    ])
    a.write('d', 'new')
    await a.until(() => a.changes.length === 9)
    expect(a.changes.at(-1)).toBe('shop/d: - -> new')
  })

  it('is supposed when the first object is one that we do not know, or there is none', async () => {
    await using a = await startReflecting()
    a.write('b', '1')
    await a.follow()
    a.server.watches[0]!.silence()
    a.write('a', '1')
    a.server.watches[0]!.reset()
    await a.until(() => a.lists() === 2 && a.server.watches.length === 1)
    expect(a.changes.slice(1)).toEqual(['shop/a: - -> 1'])
    a.server.watches[0]!.silence()
    a.remove('a')
    a.remove('b')
    a.server.watches[0]!.reset()
    await a.until(() => a.lists() === 3 && a.server.watches.length === 1)
    expect([...a.reflector.keys()]).toEqual([])
    // Nothing there, and nothing known: that agrees.
    a.server.watches[0]!.reset()
    await a.until(() => a.watchesAsked() === 4)
    expect(a.lists()).toBe(3)
  })
})

describe('whatever else may go wrong', () => {
  it('does not stay wrong for more than an hour and a watch', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    await a.follow()
    // No response said so.
    a.server.watches[0]!.silence()
    a.write('a', '2')
    const endWatch = async () => {
      for (let n = 0; n < 4; n += 1) {
        await a.clock.advance(MINUTE)
        a.server.watches[0]!.send('{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"102"}}}\n')
        await a.until(() => a.reflector.lastContactAt() === a.clock.now())
      }
      await a.clock.advance(58_000)
      const asked = a.watchesAsked()
      a.server.watches[0]!.end()
      await a.until(() => a.watchesAsked() === asked + 1 && a.server.watches.length === 1)
    }
    for (let n = 0; n < 12; n += 1) await endWatch()
    expect([a.lists(), a.changes]).toEqual([1, ['shop/a: - -> 1']])
    await endWatch()
    expect([a.lists(), a.changes]).toEqual([2, ['shop/a: - -> 1', 'shop/a: 1 -> 2']])
    expect(a.problems).toEqual([])
  })

  it.each([
    ['at its time', 4, 60_000, 2],
    ['at its time', 4, 600_000, 1],
    ['before, as by a proxy', 2, 60_000, 2],
    ['before, as by a proxy', 2, 600_000, 1],
  ])(
    'after a watch that ends %s, %i minutes old, lists if %i ms have passed: %i lists',
    async (_, minutes, relistMs, lists) => {
      await using a = await startReflecting({ relistMs })
      await a.follow()
      for (let n = 0; n < minutes; n += 1) {
        await a.clock.advance(MINUTE)
        a.server.watches[0]!.bookmark()
        await a.until(() => a.reflector.lastContactAt() === a.clock.now())
      }
      await a.clock.advance(58_000)
      a.server.watches[0]!.end()
      await a.until(() => a.watchesAsked() === 2)
      expect(a.lists()).toBe(lists)
    },
  )
})

describe('what we are called with', () => {
  it('a failing callback is reported, and all other changes are delivered', async () => {
    const problems: string[] = []
    await using a = await startReflecting({
      onChange(key) {
        if (key === 'shop/a') throw new Error('cannot cope')
        if (key === 'shop/b') return Promise.reject(new Error('cannot cope later')) as unknown as undefined
        return undefined
      },
      onProblem(error, kind) {
        problems.push(`${kind}: ${(error as Error).message}`)
        throw new Error('nor can I')
      },
    })
    for (const name of ['a', 'b', 'c']) a.write(name, '1')
    await a.follow()
    a.write('a', '2')
    a.write('d', '1')
    await a.until(() => a.reflector.get('shop/d') !== undefined)
    expect(problems).toEqual(['handler: cannot cope', 'handler: cannot cope later', 'handler: cannot cope'])
    expect(a.reflector.get('shop/a')?.data?.text).toBe('2')
    expect(a.watchesAsked()).toBe(1)
  })

  it('an object that cannot be trimmed stays as it is known: in a watch, in a list, and in the response to a write', async () => {
    let isFailing = false
    await using a = await startReflecting({
      trim(note) {
        if (isFailing && note.metadata.name === 'a') throw new Error('cannot trim')
        return note
      },
    })
    a.write('a', '1')
    await a.follow()
    isFailing = true
    a.write('a', '2')
    a.write('b', '1')
    await a.until(() => a.changes.length === 2)
    a.server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 500, message: 'etcd event lost' })
    await a.until(() => a.watchesAsked() === 2)
    a.reflector.put({ metadata: { ...a.reflector.get('shop/a')!.metadata, resourceVersion: '999' } })
    expect(a.changes).toEqual(['shop/a: - -> 1', 'shop/b: - -> 1'])
    expect(a.reflector.get('shop/a')?.data?.text).toBe('1')
    expect(a.problems.filter((problem) => problem === 'handler: cannot trim')).toHaveLength(3)
    isFailing = false
    a.server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 500, message: 'etcd event lost' })
    await a.until(() => a.changes.length === 3)
    expect(a.changes[2]).toBe('shop/a: 1 -> 2')
  })
})
