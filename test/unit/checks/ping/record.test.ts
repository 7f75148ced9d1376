/** The recorder over groups that the test commits, breaks and rejects as it likes: there is no database. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Ping, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../../src/checks/ping/record.ts'
import { settle } from '../../../support/until.ts'
import { BROKEN, createGroups, type Group, locked, lost, unsent } from './groups.ts'

let now: number
let failuresToConnect: number
let errors: [unknown, number][]
let made: ReturnType<typeof createGroups>
let groups: Group[]
let settled: [string, PingResult][]
let recorder: PingRecorder

beforeEach(() => {
  now = 1_000_000
  failuresToConnect = 0
  errors = []
  made = createGroups({ isConnectable: () => failuresToConnect-- <= 0 })
  ;({ groups, settled } = made)
  const onError = (error: unknown, pings: number) => errors.push([error, pings])
  recorder = createPingRecorder({ database: made.database, now: () => now, onGroup: () => {}, onError }, made.commit)
})

const send = (...ids: string[]) => made.send(recorder, ids)
const resultsOf = (...ids: string[]) => ids.map((id) => made.resultOf(id))
const many = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)

describe('groups', () => {
  it('pings that arrive while a group commits form the next group, in their order', async () => {
    await send('a')
    await send('b', 'c')
    await send('d')
    expect(groups.map(({ pings }) => pings)).toEqual([['a']])
    expect(recorder.waiting()).toBe(3)
    await groups[0]!.end('stored')
    expect(groups[1]!.pings).toEqual(['b', 'c', 'd'])
    expect(settled).toEqual([['a', 'stored']])
    await groups[1]!.end(['stored', 'unknown', 'duplicate'])
    expect(resultsOf('b', 'c', 'd')).toEqual(['stored', 'unknown', 'duplicate'])
    expect(made.connections()).toBe(1)
  })

  it('the next group is sent before the results of the last one are given', async () => {
    await send('a')
    let groupsThen = 0
    void recorder.record({ publicId: 'b' } as Ping).then(() => {
      groupsThen = groups.length
    })
    await groups[0]!.end('stored')
    await send('c')
    await groups[1]!.end('stored')
    expect(groupsThen).toBe(3)
  })

  it('a group holds 500 pings at most, and 20,000 may wait', async () => {
    await send('a')
    await send(...Array(20_001).fill('a'))
    expect(recorder.waiting()).toBe(20_000)
    expect(settled).toEqual([['a', 'unavailable']])
    await groups[0]!.end('stored')
    expect(groups[1]!.pings).toEqual(Array(500).fill('a'))
  })

  it('the oldest wait is that of a ping in flight, or of one that waits', async () => {
    expect(recorder.oldestWaitMs()).toBe(0)
    const sending = send('a')
    now += 100
    // Its connection is not open yet.
    expect(recorder.oldestWaitMs()).toBe(100)
    await sending
    await send('b')
    now += 50
    expect(recorder.oldestWaitMs()).toBe(150)
    await groups[0]!.end('stored')
    expect(recorder.oldestWaitMs()).toBe(50)
    await groups[1]!.end('stored')
    expect(recorder.oldestWaitMs()).toBe(0)
  })
})

describe('a connection that breaks', () => {
  it('pings that were not sent go out again on another connection, before those that wait', async () => {
    await send('a', 'b', 'c', 'd')
    await send('e')
    await groups[0]!.end(['stored', unsent, lost, unsent])
    expect(resultsOf('a', 'c')).toEqual(['stored', 'unavailable'])
    expect(groups[1]).toMatchObject({ pings: ['b', 'd', 'e'], connection: 2 })
    expect(errors).toEqual([[BROKEN, 1]])
    await groups[1]!.end('stored')
    expect(resultsOf('b', 'd', 'e')).toEqual(['stored', 'stored', 'stored'])
  })

  it('a ping is sent twice at most', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await send('b')
    await groups[1]!.end(unsent)
    expect(settled).toEqual([['a', 'unavailable']])
    // The other one has its second connection yet.
    expect(groups[2]).toMatchObject({ pings: ['b'], connection: 3 })
    await groups[2]!.end('stored')
    expect(resultsOf('b')).toEqual(['stored'])
  })

  it('pings that have waited for too long to be sent again are given up', async () => {
    await send('a')
    await send('b')
    now += 1_000
    await send('c')
    now += 1_501
    await groups[0]!.end(unsent)
    expect(settled).toEqual([
      ['a', 'unavailable'],
      ['b', 'unavailable'],
    ])
    expect(groups[1]!.pings).toEqual(['c'])
    expect(errors).toEqual([[BROKEN, 2]])
  })

  it('without any connection old pings fail first', async () => {
    failuresToConnect = 1
    const old = send('old')
    now += 2_501
    await Promise.all([old, send('young')])
    expect(settled).toEqual([['old', 'unavailable']])
    await settle()
    expect(groups[0]!.pings).toEqual(['young'])
  })

  it('a group whose commit throws is unavailable, and the next one is committed', async () => {
    const fault = new Error('a fault of the service')
    await send('a')
    await send('b')
    await groups[0]!.fail(fault)
    expect(settled).toEqual([['a', 'unavailable']])
    expect(errors).toEqual([[fault, 1]])
    await groups[1]!.end('stored')
    expect(settled).toEqual([
      ['a', 'unavailable'],
      ['b', 'stored'],
    ])
  })

  it('without any connection a group fails at each attempt', async () => {
    failuresToConnect = 2
    await send(...many(501))
    expect(new Set(settled.map(([, result]) => result))).toEqual(new Set(['unavailable']))
    expect(settled).toHaveLength(501)
    expect(errors).toEqual([
      [BROKEN, 500],
      [BROKEN, 1],
    ])
    expect(recorder.isWell()).toBe(false)
    await send('a')
    await groups[0]!.end('stored')
    expect(resultsOf('a')).toEqual(['stored'])
    expect(recorder.isWell()).toBe(true)
  })
})

describe('pings that cannot be stored', () => {
  it('are unavailable; each error is reported once', async () => {
    const error = new Error('poison')
    const rejected: PingOutcome = { kind: 'rejected', error }
    await send('a', 'b', 'c')
    await groups[0]!.end([rejected, 'stored', rejected])
    expect(resultsOf('a', 'b', 'c')).toEqual(['unavailable', 'stored', 'unavailable'])
    expect(errors).toEqual([[error, 2]])
    expect(recorder.isWell()).toBe(true)
  })

  it.each([
    ['an outage', { kind: 'outage', error: BROKEN }],
    ['a broken connection', lost],
  ] as [string, PingOutcome][])('after %s all is well again when a ping is stored', async (_, outcome) => {
    await send('a')
    await groups[0]!.end(outcome)
    expect(recorder.isWell()).toBe(false)
    for (const neither of ['unknown', 'duplicate'] as const) {
      await send('b')
      await groups.at(-1)!.end(neither)
      expect(recorder.isWell()).toBe(false)
    }
    await send('c')
    await groups.at(-1)!.end('run_refused')
    expect(recorder.isWell()).toBe(true)
  })

  it('after an outage all is well again when the beat says so', async () => {
    await send('a')
    await groups[0]!.end({ kind: 'outage', error: BROKEN })
    recorder.recovered()
    expect(recorder.isWell()).toBe(true)
  })
})

describe('a row that another session has locked', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  async function pass(ms: number): Promise<void> {
    now += ms
    await vi.advanceTimersByTimeAsync(ms)
    await settle()
    await settle()
  }
  const sent = () => groups.map(({ pings, wait }) => [wait, ...pings])

  it('is not waited for again: its ping is in each group, in front of newer ones of its check, and others go on', async () => {
    await send('a', 'b')
    await send('a', 'c')
    await groups[0]!.end([locked, 'stored'])
    expect(sent().slice(1)).toEqual([['skip locked', 'a', 'a', 'c']])
    await groups[1]!.end([locked, locked, 'stored'])
    expect(settled.map(([id]) => id)).toEqual(['b', 'c'])
    await pass(49)
    expect(groups).toHaveLength(2)
    await pass(1)
    expect(sent().slice(2)).toEqual([['skip locked', 'a', 'a']])
    await groups[2]!.end('stored')
    expect(settled.slice(2)).toEqual(Array(2).fill(['a', 'stored']))
    expect([recorder.waiting(), recorder.isWell(), errors]).toEqual([0, true, []])
    await send('a')
    expect(sent().at(-1)).toEqual(['wait', 'a'])
  })

  it.each([
    [1_999, []],
    [2_000, [['a', 'unavailable']]],
  ])('makes its ping unavailable after two seconds: %i ms', async (ms, expected) => {
    await send('a')
    now += ms
    await groups[0]!.end(locked)
    expect(settled).toEqual(expected)
  })

  it('is awaited by a hundred pings, and by no more: they are in each group', async () => {
    await send(...Array(101).fill('a'), 'b')
    await groups[0]!.end([...Array(101).fill(locked), 'stored'])
    expect(settled).toEqual([
      ['a', 'unavailable'],
      ['b', 'stored'],
    ])
    await pass(50)
    expect(groups[1]!.pings).toEqual(Array(100).fill('a'))
  })

  it('keeps no deadline of another check waiting', async () => {
    await send('a')
    now += 600
    expect(recorder.oldestWaitMs()).toBe(600)
    expect(recorder.lockedIds()).toEqual([])
    await groups[0]!.end(locked)
    expect([recorder.oldestWaitMs(), recorder.lockedIds()]).toEqual([0, ['a']])
    await send('b')
    now += 100
    expect(recorder.oldestWaitMs()).toBe(100)
    await pass(50)
    expect([groups[1]!.pings, recorder.lockedIds()]).toEqual([['a', 'b'], ['a']])
    await groups[1]!.end('stored')
    expect(recorder.lockedIds()).toEqual([])
  })

  it('does not let a ping come after a newer one of its check that was stored', async () => {
    await send('a', 'a', 'a')
    await groups[0]!.end([locked, 'stored', locked])
    expect(settled).toEqual([
      ['a', 'unavailable'],
      ['a', 'stored'],
    ])
  })

  it('is awaited by a stop', async () => {
    await send('a')
    await groups[0]!.end(locked)
    let isStopped = false
    void recorder.stop().then(() => (isStopped = true))
    await pass(50)
    expect(isStopped).toBe(false)
    await groups[1]!.end('stored')
    expect(isStopped).toBe(true)
    expect(settled).toEqual([['a', 'stored']])
  })
})

describe('the last second', () => {
  it.each([
    [999, true],
    [1_000, false],
  ])('has a ping, for a while: %i ms', async (ms, expected) => {
    expect(recorder.arePings()).toBe(false)
    await send('a')
    now += ms
    expect(recorder.arePings()).toBe(expected)
  })
})

describe('stop()', () => {
  it('finishes what was accepted, and accepts no more', async () => {
    await send('a')
    await send('b')
    const stopped = recorder.stop().then(() => settled.push(['stop', 'stored']))
    await send('c')
    await groups[0]!.end('stored')
    await groups[1]!.end('stored')
    await stopped
    expect(settled.map(([id]) => id)).toEqual(['c', 'a', 'b', 'stop'])
    expect(resultsOf('c')).toEqual(['unavailable'])
  })
})

describe('yieldToPings()', () => {
  it('ends when no ping waits and no group is in flight', async () => {
    await recorder.yieldToPings()
    await send('a')
    const yielded = recorder.yieldToPings().then(() => settled.push(['yielded', 'stored']))
    await groups[0]!.end('stored')
    await yielded
    expect(settled.map(([id]) => id)).toEqual(['a', 'yielded'])
  })

  it('ends after 20 ms all the same', async () => {
    await send('a')
    const startedAt = performance.now()
    await recorder.yieldToPings()
    expect(performance.now() - startedAt).toBeGreaterThan(15)
    expect(settled).toEqual([])
  })
})
