/** What a reflector does when its watch goes wrong: it says so, mends it, loses nothing and invents nothing. */

import { describe, expect, it } from 'vitest'
import { MINUTE } from '../../support/builders.ts'
import { type Reflecting, startReflecting } from './reflecting.ts'

/** Bookmarks once a minute, as real servers send them. */
async function passMinutes(a: Reflecting, minutes: number): Promise<void> {
  for (let n = 0; n < minutes; n += 1) {
    await a.clock.advance(MINUTE)
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

  it('before its time, without an error, is looked into as well', async () => {
    await using a = await startReflecting()
    await a.follow()
    await passMinutes(a, 1)
    a.server.watches[0]!.end()
    await a.until(() => a.watchesAsked() === 2)
    expect([a.lists(), a.checks(), a.restarts, a.problems]).toEqual([1, 1, ['closed'], []])
  })

  it('again and again is opened ever more slowly, up to half a minute, until it holds', async () => {
    await using a = await startReflecting()
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
  it('a silent watch is replaced after 150 s, and the next one reports what was missed', async () => {
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
    expect(a.problems).toEqual([expect.stringMatching(/^stall: watch configmaps: nothing was received for 150 s/)])
    await a.until(() => a.changes.length === 4)
    expect(a.changes.slice(2)).toEqual(['shop/a: 1 -> 2', 'shop/b: 1 -> -'])
    expect([a.lists(), a.checks(), a.restarts]).toEqual([1, 1, ['stalled']])
  })

  it('a silent watch without a bookmark is replaced without a report: perhaps nothing has changed in the cluster', async () => {
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

  it('a watch that receives only bookmarks is not silent', async () => {
    await using a = await startReflecting({ random: () => 0.5 })
    await a.follow()
    await passMinutes(a, 7)
    expect([a.problems, a.watchesAsked()]).toEqual([[], 1])
  })

  it('a watch that does not end in time is replaced 30 s later', async () => {
    await using a = await startReflecting()
    await a.follow()
    await passMinutes(a, 5)
    await a.clock.advance(29_000)
    expect(a.problems).toEqual([])
    await a.clock.advance(1_000)
    await a.until(() => a.watchesAsked() === 2)
    expect(a.problems).toEqual([expect.stringMatching(/^stall: /)])
  })

  it('together with the sockets for requests is found out in 10 s more', async () => {
    await using a = await startReflecting()
    a.write('a', '1')
    await a.follow()
    await passMinutes(a, 1)
    a.server.watches[0]!.silence()
    a.write('a', '2')
    a.server.disturb(({ isList }) => isList, 'hang')
    const from = a.clock.now()
    await a.clock.advance(150_000)
    await a.until(() => a.checks() === 1)
    await a.clock.advance(10_000)
    await a.until(() => a.changes.length === 2)
    expect(a.clock.now() - from).toBe(150_000 + 800 + 10_000 + 1_600)
    expect(a.problems.slice(1)).toEqual(['list: list configmaps: no response within 10 s'])
  })
})

describe('a position that is too old', () => {
  it('a position that is too old leads to a list at once, which finds deletions, and is not reported', async () => {
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
    await using a = await startReflecting()
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

  it('a list whose next page is too old starts again, and deletes nothing', async () => {
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
