/** F7: when the time of the last ping is written. */

import { describe, expect, it } from 'vitest'
import {
  createPingTimes,
  type Interval,
  isPingTimeDue,
  type PingTimes,
} from '../../../../src/operator/status/ping-times.ts'
import { createManualClock } from '../../../support/manual-clock.ts'

const NOW = Date.UTC(2026, 0, 1)
const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

describe('the time of a ping is due after max(60 s, half the interval)', () => {
  it.each<[string, Interval, number]>([
    ['a period of 10 s', { periodSeconds: 10 }, 60 * SECOND_MS],
    ['a period of 120 s', { periodSeconds: 120 }, 60 * SECOND_MS],
    ['a period of 122 s', { periodSeconds: 122 }, 61 * SECOND_MS],
    ['a period of a day', { periodSeconds: 86_400, schedule: null, timeZone: null }, 12 * HOUR_MS],
    ['a schedule of each minute', { schedule: '* * * * *' }, 60 * SECOND_MS],
    ['a schedule of each day', { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' }, 12 * HOUR_MS],
    ['a schedule whose shortest gap is an hour', { schedule: '0 5,6 1 * *', timeZone: 'UTC' }, HOUR_MS / 2],
    [
      'a schedule whose next gap is longer than its shortest',
      { schedule: '0 2,13,23 * * *', timeZone: 'UTC' },
      1.5 * HOUR_MS,
    ],
    ['a schedule that is not valid', { schedule: '0 99 * * *' }, 60 * SECOND_MS],
    ['a job whose interval is unknown', {}, 60 * SECOND_MS],
  ])('%s', (_, job, stepMs) => {
    expect(isPingTimeDue(NOW, NOW + stepMs - 1, job)).toBe(false)
    expect(isPingTimeDue(NOW, NOW + stepMs, job)).toBe(true)
    expect(isPingTimeDue(null, NOW, job)).toBe(true)
  })
})

function aCluster(isHealthy: (key: string) => boolean = () => true) {
  const clock = createManualClock(NOW)
  const turns: { readonly at: number; readonly key: string }[] = []
  const pingTimes = createPingTimes({
    clock,
    enqueue(key) {
      if (!isHealthy(key)) return false
      turns.push({ at: clock.now() - NOW, key })
      return true
    },
  })
  return { clock, turns, pingTimes, keys: () => turns.map(({ key }) => key) }
}
/** Its whole reconcile. */
function reconcile(pingTimes: PingTimes, key: string): boolean {
  const hasTurn = pingTimes.take(key)
  pingTimes.end(key)
  return hasTurn
}
const turned = (key: string, turnedAt: number) => ({ key, shownAt: null, turnedAt })
const due = (key: string, shownAt: number | null = NOW) => ({ key, shownAt })

describe('the turns of a cluster', () => {
  it('are 200 ms apart, the oldest time first, and what shows none before all others', async () => {
    const { clock, turns, pingTimes } = aCluster()
    pingTimes.offer([due('c', 3), due('a', 1), due('none', null), due('b', 2)])
    for (let n = 0; n < 10; n += 1) {
      for (const { key } of turns) reconcile(pingTimes, key)
      await clock.advance(100)
    }
    expect(turns).toEqual([
      { at: 0, key: 'none' },
      { at: 200, key: 'a' },
      { at: 400, key: 'b' },
      { at: 600, key: 'c' },
    ])
  })

  it('are five a second, however many resources are due', async () => {
    const { clock, turns, pingTimes } = aCluster()
    const all = Array.from({ length: 10_000 }, (_, n) => due(`shop/n${n}`, n))
    const shown = new Map(all.map(({ key, shownAt }) => [key, shownAt]))
    for (let poll = 0; poll < 4; poll += 1) {
      pingTimes.offer([...shown].map(([key, shownAt]) => due(key, shownAt)))
      for (let passed = 0; passed < 15_000; passed += 100) {
        await clock.advance(100)
        for (const { key, at } of turns.slice(-1)) if (reconcile(pingTimes, key)) shown.set(key, NOW + at)
      }
    }
    expect(turns.length).toBeGreaterThanOrEqual(299)
    expect(turns.length).toBeLessThanOrEqual(301)
    // Each of the oldest had one.
    expect(turns.map(({ key }) => key).slice(0, 299)).toEqual(all.slice(0, 299).map(({ key }) => key))
  })

  it('alternate between jobs that became late, or are on time again, and times of pings, each the oldest first', async () => {
    const { clock, keys, pingTimes } = aCluster()
    pingTimes.offer([due('p2', 2), due('p1', 1), turned('l2', 9), due('p3', 3), turned('l1', 8), due('p4', 4)])
    for (let n = 0; n < 6; n += 1) {
      await clock.advance(200)
      for (const key of keys()) reconcile(pingTimes, key)
    }
    expect(keys()).toEqual(['l1', 'p1', 'l2', 'p2', 'p3', 'p4'])
  })

  it('leave the times of pings a half, however many jobs are late', async () => {
    const { clock, keys, pingTimes } = aCluster()
    const late = Array.from({ length: 1_000 }, (_, n) => turned(`late/n${n}`, n))
    const pings = Array.from({ length: 1_000 }, (_, n) => due(`ping/n${n}`, n))
    pingTimes.offer([...late, ...pings])
    for (let n = 0; n < 75; n += 1) {
      for (const key of keys().slice(-1)) reconcile(pingTimes, key)
      await clock.advance(200)
    }
    const first = keys().slice(0, 74)
    expect(first.filter((key) => key.startsWith('late/'))).toHaveLength(37)
    expect(first.filter((key) => key.startsWith('ping/'))).toHaveLength(37)
  })

  it('begin with an offer after none, or after all had theirs', async () => {
    const { clock, keys, pingTimes } = aCluster()
    for (const offered of [[], [due('a')], [], [due('b')]]) {
      pingTimes.offer(offered)
      await clock.advance(15_000)
    }
    expect(keys()).toEqual(['a', 'b'])
  })

  it('are taken once each, and only by the resource that has one', async () => {
    const { clock, pingTimes } = aCluster()
    pingTimes.offer([due('a')])
    await clock.settle()
    expect([pingTimes.take('b'), pingTimes.take('a'), pingTimes.take('a')]).toEqual([false, true, false])
  })

  it('wait while five are open, as when the API server stalls, and are not taken later than the next offer', async () => {
    const { clock, keys, pingTimes } = aCluster()
    const all = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((key) => due(key))
    pingTimes.offer(all)
    await clock.advance(10_000)
    expect(keys()).toEqual(['a', 'b', 'c', 'd', 'e'])
    expect(pingTimes.take('c')).toBe(true)
    await clock.advance(1_000)
    expect(keys()).toEqual(['a', 'b', 'c', 'd', 'e'])
    // Its reconcile has failed, or has found nothing to write.
    pingTimes.end('c')
    await clock.advance(200)
    expect(keys()).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    pingTimes.offer(all)
    expect(['a', 'b', 'd', 'e', 'f'].filter(pingTimes.take)).toEqual([])
  })

  it('pass to the next resource when one cannot be reconciled now', async () => {
    const { clock, keys, pingTimes } = aCluster((key) => key !== 'failing')
    pingTimes.offer([due('failing', 1), due('a', 2)])
    await clock.settle()
    expect(keys()).toEqual(['a'])
    expect(pingTimes.take('failing')).toBe(false)
  })

  it('are given to one more that comes between two offers, once, behind the others', async () => {
    const { clock, pingTimes, keys } = aCluster()
    pingTimes.add({ key: 'alone', shownAt: null })
    await clock.advance(200)
    pingTimes.offer([
      { key: 'first', shownAt: 1 },
      { key: 'second', shownAt: 2 },
    ])
    for (const key of ['more', 'more', 'second']) pingTimes.add({ key, shownAt: null })
    await clock.advance(2_000)
    expect(keys()).toEqual(['alone', 'first', 'second', 'more'])
  })

  it('end with the term', async () => {
    const { clock, keys, pingTimes } = aCluster()
    pingTimes.offer([due('a'), due('b')])
    await clock.settle()
    await pingTimes.stop()
    await clock.advance(10_000)
    expect(keys()).toEqual(['a'])
    expect(clock.wakeTimes()).toEqual([])
  })
})
