/** The recorder over groups that the test commits, breaks and rejects as it likes: there is no database. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { PendingPing } from '../../../../src/checks/ping/commit.ts'
import type { Ping, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../../src/checks/ping/record.ts'
import type { Database, Session } from '../../../../src/store/postgres/database.ts'

interface Group {
  /** The public ids of its pings. */
  readonly pings: string[]
  readonly connection: number
  /** Ends it; the same outcome for all pings when it is one. */
  end(outcome: PingOutcome | PingOutcome[]): Promise<void>
  /** Its commit throws, which is a fault of the service. */
  fail(error: Error): Promise<void>
}

const BROKEN = new Error('Connection terminated unexpectedly')
const unsent: PingOutcome = { kind: 'unsent', error: BROKEN }
const lost: PingOutcome = { kind: 'lost', error: BROKEN }
const held: PingOutcome = { kind: 'held', error: null }

/** Every promise reaction runs before. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

let now: number
let groups: Group[]
let connections: number
let failuresToConnect: number
let errors: [unknown, number][]
/** Pings in the order of their results. */
let settled: [string, PingResult][]
let recorder: PingRecorder

beforeEach(() => {
  now = 1_000_000
  groups = []
  connections = 0
  failuresToConnect = 0
  errors = []
  settled = []
  const database = {
    async session<T>(use: (session: Session) => Promise<T>): Promise<T> {
      await settle()
      if (failuresToConnect-- > 0) throw BROKEN
      connections += 1
      return use({ number: connections } as unknown as Session)
    },
  } as Database
  const commit = async (session: Session, group: readonly PendingPing[]) => {
    // As the real one, which sends its statement a microtask later.
    await undefined
    const { promise, resolve, reject } = Promise.withResolvers<readonly PingOutcome[]>()
    groups.push({
      pings: group.map(({ ping }) => ping.publicId),
      connection: (session as unknown as { number: number }).number,
      async end(outcome) {
        resolve(Array.isArray(outcome) ? outcome : group.map(() => outcome))
        await settle()
        await settle()
      },
      async fail(error) {
        reject(error)
        await settle()
        await settle()
      },
    })
    return promise
  }
  recorder = createPingRecorder(
    {
      database,
      cache: undefined as never,
      now: () => now,
      onGroup: () => {},
      onError: (error, pings) => errors.push([error, pings]),
    },
    commit,
  )
})

/** Records a ping of each id, and lets the group that they make go out. */
async function send(...ids: string[]): Promise<void> {
  for (const id of ids) {
    const result = recorder.record({ publicId: id } as Ping)
    void result.then((value) => settled.push([id, value]))
  }
  await settle()
  await settle()
}

const resultsOf = (...ids: string[]) => ids.map((id) => settled.find(([of]) => of === id)?.[1])
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
    expect(connections).toBe(1)
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

it('the waits beside a batch are those of the pings that were stored, from when they began to wait', async () => {
  await send('a')
  recorder.waits.begin()
  now += 5
  await send('b', 'rejected', 'unsent')
  now += 10
  await groups[0]!.end('stored')
  now += 20
  await groups[1]!.end(['stored', { kind: 'rejected', error: BROKEN }, unsent])
  // Its connection broke, and it is sent once more.
  now += 40
  await groups[2]!.end('stored')
  expect(recorder.waits.end()).toMatchObject({ besideMs: [15, 30, 70], arePings: true })
})

describe('a second group', () => {
  it('is in flight on another connection when 24 pings wait, and not before; a third one never is', async () => {
    await send('a')
    await send(...many(23))
    expect(groups).toHaveLength(1)
    await send('b')
    expect(groups[1]).toMatchObject({ pings: [...many(23), 'b'], connection: 2 })
    await send(...many(100))
    expect(groups).toHaveLength(2)
    expect(recorder.waiting()).toBe(100)
  })

  it('never holds a ping of a check of the first: that waits for its turn', async () => {
    await send('a')
    await send('a', ...many(23))
    expect(groups[1]!.pings).toEqual(many(23))
    await send('p0', 'a')
    await groups[1]!.end('stored')
    // Two pings wait, and one of them for the first group: no reason for a second one.
    expect(groups).toHaveLength(2)
    await groups[0]!.end('stored')
    expect(groups[2]).toMatchObject({ pings: ['a', 'p0', 'a'], connection: 1 })
    await groups[2]!.end('stored')
    expect(settled.map(([id]) => id).filter((id) => id === 'a' || id === 'p0')).toEqual(['p0', 'a', 'a', 'p0', 'a'])
    expect(recorder.waiting()).toBe(0)
  })

  it('does not start when most pings wait for checks of the first', async () => {
    await send('a')
    await send(...Array(13).fill('a'), ...many(11))
    expect(groups).toHaveLength(1)
    await groups[0]!.end('stored')
    expect(groups[1]!.pings).toHaveLength(24)
  })

  it('goes on when the connection of the first one breaks, and takes its pings that were not sent', async () => {
    await send('a')
    await send(...many(24))
    await groups[0]!.end(unsent)
    expect(groups).toHaveLength(2)
    await groups[1]!.end('stored')
    expect(groups[2]).toMatchObject({ pings: ['a'], connection: 2 })
    await groups[2]!.end('stored')
    expect(resultsOf('a', 'p23')).toEqual(['stored', 'stored'])
  })

  it('leaves what waits to the first, when it gets no connection', async () => {
    await send('a')
    failuresToConnect = 1
    now += 3_000
    await send(...many(24))
    expect(groups).toHaveLength(1)
    expect(settled).toEqual([])
    expect(recorder.isWell()).toBe(true)
    await groups[0]!.end('stored')
    expect(groups[1]!.pings).toEqual(many(24))
  })

  it('does not start while the first one only tries to connect', async () => {
    failuresToConnect = 1
    await send(...many(48))
    // One failure, and all are given up with it: a second one would have waited for its own connection.
    expect(resultsOf('p0', 'p47')).toEqual(['unavailable', 'unavailable'])
    expect(connections).toBe(0)
  })

  it('counts for the oldest wait, for background work and for a stop', async () => {
    await send('a')
    now += 10
    await send(...many(24))
    const ended = Promise.all([recorder.yieldToPings(), recorder.stop()]).then(() => settled.push(['end', 'stored']))
    await groups[0]!.end('stored')
    expect(settled.at(-1)).toEqual(['a', 'stored'])
    now += 10
    expect(recorder.oldestWaitMs()).toBe(10)
    await groups[1]!.end('stored')
    await ended
    expect(settled).toHaveLength(26)
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
  it('are unavailable; each error is reported once, and a row that is held is none', async () => {
    const error = new Error('poison')
    const rejected: PingOutcome = { kind: 'rejected', error }
    await send('a', 'b', 'c', 'd')
    await groups[0]!.end([rejected, held, 'stored', rejected])
    expect(resultsOf('a', 'b', 'c', 'd')).toEqual(['unavailable', 'unavailable', 'stored', 'unavailable'])
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
    for (const neither of ['unknown', 'duplicate', held] as const) {
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
