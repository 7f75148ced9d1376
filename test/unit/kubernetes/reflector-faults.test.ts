/** What a reflector does when something goes wrong: it says so, mends it, loses nothing and invents nothing. */

import { describe, expect, it } from 'vitest'
import { CONFIG_MAPS } from '../../support/fake-api-server.ts'
import { type Reflecting, startReflecting } from './reflecting.ts'

const MINUTE_MS = 60_000

/** Bookmarks once a minute, as real servers send them. */
async function passMinutes(a: Reflecting, minutes: number): Promise<void> {
  for (let n = 0; n < minutes; n += 1) {
    await a.clock.advance(MINUTE_MS)
    for (const watch of a.server.watches) watch.bookmark()
    await a.until(() => a.reflector.lastContactAt() === a.clock.now())
  }
}

describe('a watch that breaks', () => {
  it.each([
    ['reset', (a: Reflecting) => a.server.watches[0]!.reset()],
    [
      'reset in the middle of a line',
      (a: Reflecting) => {
        a.server.watches[0]!.send('{"type":"MODI')
        a.server.watches[0]!.reset()
      },
    ],
    ['broken by a line that is none', (a: Reflecting) => a.server.watches[0]!.send('{"type":"MODIFIED"}\n')],
  ])('%s is back within 2 s, without a list, and nothing is lost', async (_, disturb) => {
    await using a = await startReflecting({ random: () => 0.999 })
    a.write('a', '1')
    await a.follow()
    a.write('a', '2')
    await a.until(() => a.changes.length === 2)
    await passMinutes(a, 2)
    const from = a.clock.now()
    disturb(a)
    await a.until(() => a.problems.length === 1)
    a.write('a', '3')
    await a.until(() => a.watchesAsked() === 2)
    expect(a.clock.now() - from).toBeLessThan(2_000)
    await a.until(() => a.changes.length === 3)
    expect(a.changes).toEqual(['shop/a: - -> 1', 'shop/a: 1 -> 2', 'shop/a: 2 -> 3'])
    expect(a.problems[0]).toMatch(/^watch: /)
    expect([a.lists(), a.checks(), a.restarts]).toEqual([1, 1, ['error']])
  })

  it('whose bytes come torn is whole', async () => {
    await using a = await startReflecting()
    a.server.setPieceBytes(1)
    await a.follow()
    a.write('a', 'grüß dich, 世界 🦄')
    await a.until(() => a.changes.length === 1)
    expect(a.changes).toEqual(['shop/a: - -> grüß dich, 世界 🦄'])
  })

  it('before its time, without an error, is looked into as well', async () => {
    await using a = await startReflecting()
    await a.follow()
    await passMinutes(a, 1)
    a.server.watches[0]!.end()
    await a.until(() => a.watchesAsked() === 2)
    expect([a.lists(), a.checks(), a.restarts, a.problems]).toEqual([1, 1, ['closed'], []])
  })

  it('again and again is opened ever more slowly, up to half a minute, until it holds', async () => {
    await using a = await startReflecting({ random: () => 0 })
    await a.follow()
    const gaps: number[] = []
    for (let n = 1; n <= 8; n += 1) {
      const from = a.clock.now()
      a.server.watches[0]!.end()
      await a.until(() => a.problems.length === n)
      await a.clock.settle()
      const next = a.clock.wakeTimes().find((at) => at > from)
      await a.clock.advance(next! - from)
      await a.until(() => a.watchesAsked() === n + 1 && a.server.watches.length === 1)
      gaps.push(a.clock.now() - from)
    }
    expect(gaps).toEqual([800, 1_600, 3_200, 6_400, 12_800, 15_000, 15_000, 15_000])
    await passMinutes(a, 2)
    const from = a.clock.now()
    a.server.watches[0]!.reset()
    await a.until(() => a.watchesAsked() === 10)
    expect(a.clock.now() - from).toBe(800)
  })
})

describe('a watch that falls silent', () => {
  it('is given up after 150 s, and the next one tells what was missed', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    a.write('b', '1')
    await a.follow()
    await passMinutes(a, 1)
    const from = a.clock.now()
    a.server.watches[0]!.silence()
    a.write('a', '2')
    a.remove('b')
    await a.clock.advance(149_000)
    expect(a.problems).toEqual([])
    await a.clock.advance(1_000)
    await a.until(() => a.watchesAsked() === 2)
    expect(a.clock.now() - from).toBeLessThan(152_000)
    expect(a.problems).toEqual([expect.stringMatching(/^stall: watch configmaps: nothing was heard for 150 s/)])
    await a.until(() => a.changes.length === 4)
    expect(a.changes.slice(2)).toEqual(['shop/a: 1 -> 2', 'shop/b: 1 -> -'])
    expect([a.lists(), a.checks(), a.restarts]).toEqual([1, 1, ['stalled']])
  })

  it('and has had no bookmark, is opened anew without a word: there may be nothing to tell in the whole cluster', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    await a.follow()
    for (let n = 2; n <= 4; n += 1) {
      const from = a.clock.now()
      await a.clock.advance(150_000)
      await a.until(() => a.watchesAsked() === n && a.server.watches.length === 1)
      expect(a.clock.now() - from).toBe(150_000)
    }
    a.write('a', '2')
    await a.until(() => a.changes.length === 2)
    expect([a.problems, a.lists(), a.restarts]).toEqual([[], 1, ['quiet', 'quiet', 'quiet']])
  })

  it('is not one that only has nothing to tell', async () => {
    await using a = await startReflecting()
    await a.follow()
    await passMinutes(a, 7)
    expect([a.problems, a.watchesAsked()]).toEqual([[], 1])
  })

  it('or does not end in time is given up 30 s after it', async () => {
    await using a = await startReflecting({ random: () => 0 })
    await a.follow()
    await passMinutes(a, 5)
    await a.clock.advance(29_000)
    expect(a.problems).toEqual([])
    await a.clock.advance(1_000)
    await a.until(() => a.watchesAsked() === 2)
    expect(a.problems).toEqual([expect.stringMatching(/^stall: /)])
  })

  it('before its answer has begun is given up after 30 s', async () => {
    await using a = await startReflecting()
    a.server.disturb(({ isWatch }) => isWatch, 'hang')
    a.reflector.start()
    await a.until(() => a.watchesAsked() === 1)
    await a.clock.advance(30_000)
    await a.until(() => a.watchesAsked() === 2)
    expect(a.problems).toEqual(['watch: watch configmaps: no answer within 30 s'])
  })
})

describe('a position that is too old', () => {
  it('leads to a list at once, with what was deleted meanwhile, and is no problem', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    a.write('b', '1')
    await a.follow()
    await passMinutes(a, 1)
    a.server.watches[0]!.silence()
    a.remove('b')
    a.server.expire()
    const from = a.clock.now()
    a.server.watches[0]!.end()
    await a.until(() => a.lists() === 2 && a.server.watches.length === 1)
    expect(a.clock.now()).toBe(from)
    expect(a.changes.slice(2)).toEqual(['shop/b: 1 -> -'])
    expect([a.problems, a.restarts]).toEqual([[], ['closed', 'expired']])
  })

  it('again and again is not a loop without a pause', async () => {
    await using a = await startReflecting({ random: () => 0 })
    const error = { kind: 'Status', code: 410, reason: 'Expired', message: 'too old resource version' }
    a.reflector.start()
    const times: number[] = []
    for (let n = 1; n <= 4; n += 1) {
      await a.until(() => a.watchesAsked() === n && a.server.watches.length === 1)
      times.push(a.clock.now())
      a.server.watches[0]!.sendEvent('ERROR', error)
    }
    await a.until(() => a.problems.length === 3)
    expect(times.map((at) => at - times[0]!)).toEqual([0, 0, 1_600, 4_800])
    expect(a.problems[0]).toBe('watch: too old resource version')
  })

  it('in the middle of a list starts the list over, and deletes nothing', async () => {
    await using a = await startReflecting()
    for (let n = 0; n < 1_100; n += 1) a.write(`n${n}`, '1')
    await a.follow()
    a.server.disturb(({ query }) => query.has('continue'), { status: 410, reason: 'Expired' })
    a.server.watches[0]!.sendEvent('ERROR', { kind: 'Status', code: 500, message: 'etcd event lost' })
    await a.until(() => a.watchesAsked() === 2)
    expect(a.changes).toHaveLength(1_100)
    const pages = a.server.requests.filter(({ isList }) => isList).slice(3)
    expect(pages.map(({ query }) => query.has('continue'))).toEqual([false, true, false, true, true])
  })
})

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
    expect(a.problems.slice(1)).toEqual(Array(3).fill('list: the server answered 500 to: list configmaps'))
  })

  it('is tried ever more slowly while we may not list, and works once we may', async () => {
    await using a = await startReflecting({ random: () => 0 })
    a.write('a', '1')
    const message = 'configmaps is forbidden: User "jane" cannot list'
    const grant = a.server.disturb(() => true, { status: 403, reason: 'Forbidden', message }, Number.POSITIVE_INFINITY)
    const times: number[] = []
    a.reflector.start()
    for (let n = 1; n <= 8; n += 1) {
      await a.until(() => a.problems.length === n)
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

  it('for want of the resource works once that is there, also when it goes and comes again', async () => {
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
    await using a = await startReflecting({ random: () => 0 })
    a.write('a', '1')
    await a.follow()
    // Nobody told us.
    a.server.watches[0]!.silence()
    a.write('a', '2')
    const endWatch = async () => {
      for (let n = 0; n < 4; n += 1) {
        await a.clock.advance(MINUTE_MS)
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
})

describe('what we are called with', () => {
  it('may fail: it is reported, and all others are told', async () => {
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

  it('may fail to trim: then the object is kept whole', async () => {
    await using a = await startReflecting({
      trim() {
        throw new Error('cannot trim')
      },
    })
    a.write('a', '1')
    await a.follow()
    expect(a.problems).toEqual(['handler: cannot trim'])
    expect(a.changes).toEqual(['shop/a: - -> 1'])
  })
})
