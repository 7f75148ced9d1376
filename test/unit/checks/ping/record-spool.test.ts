/** The recorder with a spool, over groups that the test commits and breaks as it likes: there is neither a database nor a disk. */

import { beforeEach, describe, expect, it, vi } from 'vitest'
import { PING_LIMITS, SPOOL_LIMITS } from '../../../../src/checks/ping/commit.ts'
import type { Ping, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../../src/checks/ping/record.ts'
import type { SpooledPing } from '../../../../src/checks/ping/spooled-ping.ts'
import { fakeTimers } from '../../../support/fake-timers.ts'
import { settle } from '../../../support/until.ts'
import { BROKEN, createGroups, type Group, locked, unsent } from './groups.ts'

const PING_ID = Buffer.from('0123456789abcdef')
const lost: PingOutcome = { kind: 'lost', error: BROKEN, pingId: PING_ID }
const outage: PingOutcome = { kind: 'outage', error: new Error('read-only') }
const rejected: PingOutcome = { kind: 'rejected', error: new Error('invalid') }

interface Append {
  readonly pings: readonly SpooledPing[]
  end(error?: Error): Promise<void>
}

let groups: Group[]
let appends: Append[]
let isConnectable: boolean
let accepts: boolean
let hasRoom: boolean
let onDisk: string[]
let begun: unknown[]
let errors: [unknown, number][]
let settled: [string, PingResult][]
let made: ReturnType<typeof createGroups>
let recorder: PingRecorder
let refusals: number
let isOpen: boolean
let now: number

beforeEach(() => {
  appends = []
  isConnectable = true
  accepts = true
  hasRoom = true
  onDisk = []
  begun = []
  errors = []
  refusals = 0
  isOpen = true
  now = 1_000_000
  made = createGroups({ isConnectable: () => isConnectable })
  ;({ groups, settled } = made)
  const spool = {
    accepts: () => accepts,
    hasRoom: () => accepts && hasRoom,
    isCaughtUp: () => onDisk.length === 0,
    append(pings: readonly SpooledPing[]) {
      const ids = pings.map(({ ping }) => ping.publicId)
      onDisk.push(...ids)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      appends.push({
        pings,
        async end(error) {
          if (error !== undefined) onDisk = onDisk.filter((id) => !ids.includes(id))
          if (error === undefined) resolve()
          else reject(error)
          await settle()
        },
      })
      return promise
    },
    noteRefusal: () => (refusals += 1),
  }
  recorder = createPingRecorder(
    {
      database: made.database,
      now: () => now,
      onGroup: () => {},
      onError: (error, pings) => errors.push([error, pings]),
      spool: {
        pings: () => (isOpen ? spool : null),
        isKnown: (id) => !id.startsWith('unknown'),
        onBegin: (error) => begun.push(error),
      },
    },
    made.commit,
  )
})

const send = (...ids: string[]) => made.send(recorder, ids)
const spooled = () => appends.map(({ pings }) => pings.map(({ ping }) => ping.publicId))
const resultOf = (id: string) => made.resultOf(id)

describe('a group that the database does not store', () => {
  it.each([
    ['lost', lost],
    ['unsent', unsent],
    ['refused in an outage', outage],
  ])(
    '(%s) is spooled, with all that waits behind it, and a ping has its result when it is on disk',
    async (_name, outcome) => {
      await send('a')
      await send('b', 'unknown-1')
      await groups[0]!.end(outcome)
      expect(spooled().flat()).toEqual(['a', 'b'])
      expect(settled).toEqual([['unknown-1', 'unconfirmed']])
      for (const append of appends) await append.end()
      expect(settled.slice(1)).toEqual([
        ['a', 'spooled'],
        ['b', 'spooled'],
      ])
      expect(recorder.isWell()).toBe(false)
      expect(recorder.isSpooling()).toBe(true)
      expect(begun).toHaveLength(1)
      expect(errors).toEqual([])
    },
  )

  it('takes the id along under which a lost ping may be stored, and none of others', async () => {
    await send('a', 'b')
    await groups[0]!.end([lost, unsent])
    await send('c')
    expect(appends.flatMap(({ pings }) => pings.map(({ pingId }) => pingId))).toEqual([PING_ID, null, null])
  })

  it('is not spooled where PostgreSQL rejects the ping', async () => {
    await send('a')
    await send('b')
    await groups[0]!.end('stored')
    await groups[1]!.end(rejected)
    expect(settled.slice(1).map(([, result]) => result)).toEqual(['unavailable'])
    expect(appends).toEqual([])
    expect(recorder.isSpooling()).toBe(false)
  })

  it('is spooled before newer pings of its checks are sent', async () => {
    await send('a')
    await send('a', 'b')
    await groups[0]!.end(outage)
    expect(spooled().flat()).toEqual(['a', 'a', 'b'])
    expect(groups).toHaveLength(1)
  })
})

it('a row that another session has locked is no outage, and its pings go to the disk in their order when there is one', async () => {
  await send('a', 'b')
  await groups[0]!.end([locked, 'stored'])
  expect(appends).toEqual([])
  await send('a', 'c')
  await new Promise((resolve) => setTimeout(resolve, 60))
  await settle()
  await groups[1]!.end([locked, locked, outage])
  expect(spooled().flat()).toEqual(['a', 'a', 'c'])
})

describe('while the database is unavailable', () => {
  it('pings are spooled without a try, and unknown ids are rejected', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await send('b', 'unknown-1', 'c')
    expect(groups).toHaveLength(1)
    expect(spooled()).toEqual([['a'], ['b'], ['c']])
    expect(resultOf('unknown-1')).toBe('unconfirmed')
  })

  it('a connection that cannot be opened is an outage', async () => {
    isConnectable = false
    await send('a', 'b')
    await settle()
    expect(spooled()).toEqual([['a', 'b']])
    expect(begun).toEqual([BROKEN])
  })

  it('pings that the disk does not take are unavailable', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    const full = new Error('full')
    await appends[0]!.end(full)
    expect(resultOf('a')).toBe('unavailable')
    expect(errors).toEqual([[full, 1]])
    expect(refusals).toBe(1)
  })

  it('a disk that takes pings again is used again', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await appends[0]!.end(new Error('full'))
    hasRoom = false
    await send('b')
    expect(spooled()).toEqual([['a']])
    // Whether there is room only an append can tell.
    await groups[1]!.end(outage)
    expect(spooled()).toEqual([['a'], ['b']])
  })

  it.each([
    ['is broken', () => (accepts = false)],
    ['is full', () => (hasRoom = false)],
    ['is not open', () => (isOpen = false)],
  ])('a spool that %s is the same as none, in every limit of time', async (_name, make) => {
    await send('a')
    expect(groups[0]!.limits).toEqual(SPOOL_LIMITS)
    make()
    await send('b')
    await groups[0]!.end('stored')
    expect(groups[1]!.limits).toEqual(PING_LIMITS)
    // What was not sent is sent once more, and what waits is not given up before the time that it has without a spool.
    now += 2_000
    await send('c')
    await groups[1]!.end(unsent)
    expect(groups[2]!.pings).toEqual(['b', 'c'])
    expect([spooled(), settled]).toEqual([[], [['a', 'stored']]])
  })

  it('what is not sent twice, or has waited for too long, tries whether a full disk has room again', async () => {
    hasRoom = false
    await send('a', 'b')
    await send('c')
    await groups[0]!.end([unsent, outage])
    expect([spooled(), groups[1]!.pings]).toEqual([[['b']], ['a', 'c']])
    await send('d')
    await groups[1]!.end([unsent, 'stored'])
    expect([spooled(), groups[2]!.pings]).toEqual([[['b'], ['a']], ['d']])
    isConnectable = false
    await groups[2]!.end(unsent)
    await settle()
    expect(spooled()).toEqual([['b'], ['a'], ['d']])
    await appends[2]!.end(new Error('full'))
    expect([resultOf('d'), settled.length]).toEqual(['unavailable', 2])
  })

  it('a disk that hangs is the same as none until it responds: pings go to the database', async () => {
    fakeTimers()
    await send('a')
    await groups[0]!.end(unsent)
    recorder.recovered()
    vi.advanceTimersByTime(2_499)
    await send('b')
    expect([settled, spooled()]).toEqual([[], [['a'], ['b']]])
    vi.advanceTimersByTime(1)
    await send('c')
    expect([settled, groups[1]!.pings]).toEqual([[['a', 'unavailable']], ['c']])
    expect(groups[1]!.limits).toEqual(PING_LIMITS)
    await groups[1]!.end(outage)
    expect(spooled()).toHaveLength(2)
    expect(resultOf('c')).toBe('unavailable')
    await appends[0]!.end()
    await send('d')
    expect(spooled().at(-1)).toEqual(['d'])
  })

  it('a disk that hangs and then fails gives the pings up once', async () => {
    fakeTimers()
    await send('a')
    await groups[0]!.end(unsent)
    vi.advanceTimersByTime(2_500)
    const once = errors.length
    await appends[0]!.end(new Error('no such device'))
    expect([once, errors.length, refusals]).toEqual([1, 1, 1])
  })

  it('a disk that has responded in time hangs never after', async () => {
    fakeTimers()
    await send('a')
    await groups[0]!.end(unsent)
    await appends[0]!.end()
    vi.advanceTimersByTime(2_500)
    await send('b')
    expect(spooled()).toEqual([['a'], ['b']])
    expect([settled, refusals]).toEqual([[['a', 'spooled']], 0])
  })

  it('a hundred pings are one append, and more are more: a file must take each with all bodies', async () => {
    await send('a')
    await send(...Array.from({ length: 200 }, (_, index) => `p${index}`))
    await groups[0]!.end(unsent)
    expect(spooled().map(({ length }) => length)).toEqual([100, 100, 1])
  })

  it('pings go to the database while the disk is full, and a read-back makes room', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await appends[0]!.end()
    recorder.recovered()
    hasRoom = false
    await send('b')
    expect(groups[1]!.pings).toEqual(['b'])
    hasRoom = true
    await send('c')
    expect(spooled()).toEqual([['a'], ['c']])
  })
})

it('a full queue refuses one more ping', async () => {
  await send('a')
  await send(...Array.from({ length: 20_000 }, (_, index) => `p${index}`))
  const before = refusals
  const sent = send('last')
  expect(refusals - before).toBe(1)
  await sent
  expect(['p0', 'p19999', 'last'].map(resultOf)).toEqual([undefined, undefined, 'unavailable'])
  expect(appends).toEqual([])
})

describe('spooling', () => {
  /** One ping is on disk. */
  beforeEach(async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await appends[0]!.end()
    settled.length = 0
  })

  it('goes on once the database is available, for all known ids, and unknown ones are looked up', async () => {
    recorder.recovered()
    await send('a', 'b', 'unknown-1')
    expect(spooled()).toEqual([['a'], ['a'], ['b']])
    expect(groups[1]!.pings).toEqual(['unknown-1'])
    expect(recorder.isSpooling()).toBe(true)
  })

  it.each([
    [599_999, true],
    [600_000, false],
  ])('%i ms after the database is back keeps deadlines waiting: %s', async (ms, expected) => {
    now += 3_600_000
    recorder.recovered()
    now += ms
    recorder.recovered()
    expect(recorder.isSpooling()).toBe(expected)
  })

  it('ends when the spool is closed', async () => {
    isOpen = false
    expect(recorder.isSpooling()).toBe(false)
    await send('b')
    expect(groups[1]!.pings).toEqual(['b'])
  })
})

it('what a process before this one left is recorded first', async () => {
  onDisk = ['a']
  expect(recorder.isSpooling()).toBe(true)
  await send('b')
  expect([spooled(), groups]).toEqual([[['b']], []])
})

describe('draining', () => {
  beforeEach(() => {
    onDisk = ['a']
  })

  it('pings queue meanwhile, and go to the database when the disk is empty', async () => {
    const work = Promise.withResolvers<void>()
    const drained = recorder.drain(() => work.promise)
    await send('a', 'unknown-1')
    expect([spooled(), groups, recorder.isSpooling()]).toEqual([[], [], true])
    onDisk = []
    work.resolve()
    await drained
    await settle()
    await settle()
    expect([spooled(), groups.map(({ pings }) => pings)]).toEqual([[], [['a', 'unknown-1']]])
    expect(recorder.isSpooling()).toBe(false)
  })

  it('a ping in flight does not let those that queue go before it is over', async () => {
    recorder.recovered()
    await send('unknown-1')
    const work = Promise.withResolvers<void>()
    const drained = recorder.drain(() => work.promise)
    await send('a')
    await groups[0]!.end('unknown')
    expect(groups).toHaveLength(1)
    onDisk = []
    work.resolve()
    await drained
    await settle()
    await settle()
    expect(groups[1]!.pings).toEqual(['a'])
  })

  it('whose work fails leaves the mode as it was', async () => {
    const drained = recorder.drain(async () => {
      await send('b')
      throw BROKEN
    })
    await expect(drained).rejects.toThrow(BROKEN)
    expect(spooled()).toEqual([['b']])
    expect(recorder.isSpooling()).toBe(true)
  })

  it('pings with bodies of 32 MiB queue meanwhile, and with one more byte all go to the disk', async () => {
    void recorder.drain(() => new Promise(() => {}))
    const long = (bytes: number) =>
      void recorder.record({ publicId: 'a', body: Buffer.alloc(bytes) } as Partial<Ping> as Ping)
    for (let count = 0; count < 32; count += 1) long(2 ** 20)
    expect(appends).toEqual([])
    long(1)
    expect(spooled().flat()).toHaveLength(33)
  })

  it('a ping queues for a second and a half at most: the database may have gone away again', async () => {
    fakeTimers()
    void recorder.drain(() => new Promise(() => {}))
    await send('a')
    vi.advanceTimersByTime(1_499)
    expect(spooled()).toEqual([])
    vi.advanceTimersByTime(1)
    expect(spooled()).toEqual([['a']])
    await send('a')
    expect(spooled()).toEqual([['a'], ['a']])
  })

  it('is awaited by a stop, with the pings that queue', async () => {
    const work = Promise.withResolvers<void>()
    void recorder.drain(() => work.promise)
    await send('a')
    let isStopped = false
    void recorder.stop().then(() => (isStopped = true))
    await settle()
    expect(isStopped).toBe(false)
    onDisk = []
    work.resolve()
    await settle()
    await settle()
    await settle()
    await groups[0]!.end('stored')
    expect([isStopped, settled]).toEqual([true, [['a', 'stored']]])
  })
})
