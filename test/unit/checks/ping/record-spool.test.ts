/** The recorder with a spool, over groups that the test commits and breaks as it likes: there is neither a database nor a disk. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { CommitGroup, PendingPing } from '../../../../src/checks/ping/commit.ts'
import type { Ping, PingOutcome } from '../../../../src/checks/ping/ping.ts'
import { createPingRecorder, type PingRecorder, type PingResult } from '../../../../src/checks/ping/record.ts'
import type { SpooledPing } from '../../../../src/checks/ping/spooled-ping.ts'
import type { Database, Session } from '../../../../src/store/postgres/database.ts'

const BROKEN = new Error('Connection terminated unexpectedly')
const PING_ID = Buffer.from('0123456789abcdef')
const lost: PingOutcome = { kind: 'lost', error: BROKEN, pingId: PING_ID }
const unsent: PingOutcome = { kind: 'unsent', error: BROKEN }
const outage: PingOutcome = { kind: 'outage', error: new Error('read-only') }
const held: PingOutcome = { kind: 'held', error: null }
const rejected: PingOutcome = { kind: 'rejected', error: new Error('invalid') }

interface Group {
  readonly pings: string[]
  readonly wait: 'wait' | 'skip locked'
  end(outcome: PingOutcome | PingOutcome[]): Promise<void>
}

interface Append {
  readonly pings: readonly SpooledPing[]
  end(error?: Error): Promise<void>
}

/** Every promise reaction runs before. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

let groups: Group[]
let appends: Append[]
let isConnectable: boolean
let accepts: boolean
let onDisk: string[]
let begun: unknown[]
let errors: [unknown, number][]
let settled: [string, PingResult][]
let recorder: PingRecorder
let refusals: number
let now: number

beforeEach(() => {
  groups = []
  appends = []
  isConnectable = true
  accepts = true
  onDisk = []
  begun = []
  errors = []
  settled = []
  refusals = 0
  now = 1_000_000
  const database = {
    async session<T>(use: (session: Session) => Promise<T>): Promise<T> {
      await settle()
      if (!isConnectable) throw BROKEN
      return use({} as Session)
    },
  } as Database
  const commit: CommitGroup = async (_session: Session, group: readonly PendingPing[], wait = 'wait') => {
    await undefined
    const { promise, resolve } = Promise.withResolvers<readonly PingOutcome[]>()
    groups.push({
      pings: group.map(({ ping }) => ping.publicId),
      wait,
      async end(outcome) {
        resolve(Array.isArray(outcome) ? outcome : group.map(() => outcome))
        await settle()
        await settle()
      },
    })
    return promise
  }
  const spool = {
    accepts: () => accepts,
    holds: (publicId: string) => onDisk.includes(publicId),
    isEmpty: () => onDisk.length === 0,
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
    flushed: async () => {},
    noteRefusal: () => (refusals += 1),
  }
  recorder = createPingRecorder(
    {
      database,
      cache: undefined as never,
      now: () => now,
      onGroup: () => {},
      onError: (error, pings) => errors.push([error, pings]),
      spool: { pings: () => spool, isKnown: (id) => !id.startsWith('unknown'), onBegin: (error) => begun.push(error) },
    },
    commit,
  )
})

/** Records a ping of each id, and lets the group that they make go out. */
async function send(...ids: string[]): Promise<void> {
  for (const id of ids) void recorder.record({ publicId: id } as Ping).then((value) => settled.push([id, value]))
  await settle()
  await settle()
}

const spooled = () => appends.map(({ pings }) => pings.map(({ ping }) => ping.publicId))
const resultOf = (id: string) => settled.find(([of]) => of === id)?.[1]

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
      expect(spooled()).toEqual([['a'], ['b']])
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

describe('a row that another session holds', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
  afterEach(() => void vi.useRealTimers())

  /** The time of a retry. */
  async function rest(ms = 100): Promise<void> {
    now += ms
    await vi.advanceTimersByTimeAsync(ms)
    await settle()
    await settle()
  }
  const sent = () => groups.map(({ pings, wait }) => [wait, ...pings])

  it('is tried again without waiting for it, with newer pings of its check behind it, while others go on', async () => {
    await send('a', 'b')
    await send('a', 'c')
    await groups[0]!.end([held, 'stored'])
    await send('a')
    expect(sent().slice(1)).toEqual([['wait', 'c']])
    await groups[1]!.end('stored')
    await rest()
    expect(sent().slice(2)).toEqual([['skip locked', 'a', 'a', 'a']])
    await groups[2]!.end('stored')
    expect(settled.map(([id, result]) => `${id} ${result}`)).toEqual([
      'b stored',
      'c stored',
      ...Array(3).fill('a stored'),
    ])
    expect([recorder.waiting(), recorder.isWell()]).toEqual([0, true])
    await send('a')
    expect(sent().at(-1)).toEqual(['wait', 'a'])
  })

  it('gives 503 for a ping that has waited for it as long as without a spool', async () => {
    await send('a')
    now += 1_400
    await groups[0]!.end(held)
    await rest(99)
    expect(groups).toHaveLength(1)
    await rest(1)
    await send('a')
    await groups[1]!.end(held)
    expect(settled).toEqual([['a', 'unavailable']])
    await rest()
    await groups[2]!.end('stored')
    expect(settled.slice(1)).toEqual([['a', 'stored']])
    expect([appends, errors]).toEqual([[], []])
  })

  it('has its pings spooled in their order when the database goes away', async () => {
    await send('a')
    await groups[0]!.end(held)
    await send('a', 'b')
    await groups[1]!.end(outage)
    expect(spooled().flat()).toEqual(['b', 'a', 'a'])
    await rest()
    expect(groups).toHaveLength(2)
  })

  it('is not tried again behind a newer ping of its check that was stored', async () => {
    await send('a', 'a')
    await groups[0]!.end([held, 'stored'])
    expect(settled.map(([, result]) => result)).toEqual(['unavailable', 'stored'])
  })

  it('is not tried for ever without a connection and a disk', async () => {
    accepts = false
    await send('a')
    await groups[0]!.end(held)
    isConnectable = false
    await rest()
    expect(settled).toEqual([['a', 'unavailable']])
  })

  it('is awaited by a stop', async () => {
    await send('a')
    await groups[0]!.end(held)
    let isStopped = false
    void recorder.stop().then(() => (isStopped = true))
    await rest()
    expect(isStopped).toBe(false)
    await groups[1]!.end('stored')
    expect(isStopped).toBe(true)
    expect(settled).toEqual([['a', 'stored']])
  })
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

  it('without a disk that accepts anything, all is as without a spool', async () => {
    accepts = false
    await send('a')
    await groups[0]!.end(outage)
    await send('b')
    expect(appends).toEqual([])
    expect(resultOf('a')).toBe('unavailable')
    expect(groups[1]!.pings).toEqual(['b'])
  })
})

describe('a full queue', () => {
  const ids = Array.from({ length: 20_000 }, (_, index) => `p${index}`)

  it('is spooled when the database has not answered for a while, but for the checks in flight', async () => {
    await send('a')
    await send(...Array.from({ length: 24 }, () => 'b'))
    now += 600
    await send('a', ...ids.slice(2), 'unknown-1')
    expect([groups.length, appends.length]).toEqual([2, 0])
    await send('last', 'b')
    expect(new Set(spooled().flat())).toEqual(new Set([...ids.slice(2), 'last']))
    expect([settled, begun.length, recorder.isSpooling()]).toEqual([[['unknown-1', 'unconfirmed']], 1, true])
    expect(refusals).toBe(0)
    await groups[0]!.end('stored')
    expect([resultOf('a'), recorder.isWell()]).toEqual(['stored', true])
    await groups[1]!.end('stored')
    expect(groups[2]!.pings).toEqual(['a', 'b'])
  })

  it('is not spooled while one of two groups is answered', async () => {
    await send('a')
    now += 600
    await send(...ids, 'last')
    expect([groups.length, settled, appends.length]).toEqual([2, [['last', 'unavailable']], 0])
  })

  it.each([
    ['the database answered a moment ago', 599, true],
    ['the spool is broken', 600, false],
  ])('refuses one more ping where %s', async (_name, ms, isAccepting) => {
    accepts = isAccepting
    await send('a')
    now += ms
    await send(...ids, 'last')
    expect(settled).toEqual([['last', 'unavailable']])
    expect([appends, refusals]).toEqual([[], 1])
  })
})

describe('order', () => {
  it('a ping whose older one is in flight is not spooled before it', async () => {
    await send('first')
    // Enough for a second group, which breaks while the first one still hangs.
    await send(...Array.from({ length: 24 }, (_, index) => `p${index}`))
    await groups[1]!.end(lost)
    await send('first', 'other')
    expect(spooled().flat()).not.toContain('first')
    expect(spooled().flat()).toContain('other')
    await groups[0]!.end(lost)
    const ofFirst = appends.flatMap(({ pings }) => pings).filter(({ ping }) => ping.publicId === 'first')
    expect(ofFirst.map(({ pingId }) => pingId)).toEqual([PING_ID, null])
  })

  it('once the database is available, a ping goes to it, unless older ones of its check are on disk', async () => {
    await send('a')
    await groups[0]!.end(unsent)
    await appends[0]!.end()
    recorder.recovered()
    await send('a', 'b')
    expect(spooled()).toEqual([['a'], ['a']])
    expect(groups[1]!.pings).toEqual(['b'])
    expect(recorder.isSpooling()).toBe(true)
    onDisk = []
    expect(recorder.isSpooling()).toBe(false)
  })

  it('an id that is not known goes to the database, which says whether it names a check', async () => {
    onDisk = ['unknown-1']
    await send('unknown-1')
    expect(groups[0]!.pings).toEqual(['unknown-1'])
  })

  it.each([
    [599_999, true],
    [600_000, false],
  ])(
    'pings that are still on disk %i ms after the database is back keep deadlines waiting: %s',
    async (ms, expected) => {
      await send('a')
      await groups[0]!.end(unsent)
      await appends[0]!.end()
      now += 3_600_000
      recorder.recovered()
      now += ms
      recorder.recovered()
      expect(recorder.isSpooling()).toBe(expected)
    },
  )

  it('a ping waits in memory while the last one of its check on disk is recorded, and goes to the database then', async () => {
    onDisk = ['a']
    const work = Promise.withResolvers<void>()
    const holding = recorder.holdBack(() => work.promise)
    await send('a')
    expect([spooled(), groups.length]).toEqual([[], 0])
    onDisk = []
    work.resolve()
    await holding
    await settle()
    await settle()
    expect([spooled(), groups.map(({ pings }) => pings)]).toEqual([[], [['a']]])
  })

  it('pings with bodies of 16 MiB wait in memory meanwhile, and with one more byte all go to the disk', async () => {
    onDisk = ['a']
    void recorder.holdBack(() => new Promise(() => {}))
    const long = (bytes: number) =>
      void recorder.record({ publicId: 'a', body: Buffer.alloc(bytes) } as Partial<Ping> as Ping)
    for (let count = 0; count < 16; count += 1) long(2 ** 20)
    expect(appends).toEqual([])
    long(1)
    expect(spooled().flat()).toHaveLength(17)
  })

  it('a ping waits in memory for a second and a half at most: the database may have gone away again', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      onDisk = ['a']
      void recorder.holdBack(() => new Promise(() => {}))
      await send('a')
      vi.advanceTimersByTime(1_499)
      expect(spooled()).toEqual([])
      vi.advanceTimersByTime(1)
      expect(spooled()).toEqual([['a']])
      await send('a')
      expect(spooled()).toEqual([['a'], ['a']])
    } finally {
      vi.useRealTimers()
    }
  })
})
