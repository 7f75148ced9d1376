import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createPingSpool } from '../../../../src/checks/ping/ping-spool.ts'
import type { Spool } from '../../../../src/spool/spool.ts'
import { settle } from '../../../support/until.ts'

/** In memory. */
function createMemorySpool(overrides: Partial<Spool> = {}): Spool {
  const stored: Buffer[] = []
  let forgotten = 0
  return {
    id: randomUUID(),
    state: 'open',
    get records() {
      return stored.length - forgotten
    },
    bytes: 0,
    append: async (records) => records.map((record) => stored.push(record)),
    read: async (after) => stored.map((record, index) => ({ position: index + 1, record })).slice(after),
    async forget(upTo) {
      forgotten = upTo
    },
    close: async () => {},
    ...overrides,
  }
}

let now = 0
const publicId = randomUUID()
const pingAt = (at: number) => ({
  ping: { publicId, type: 'success', exitCode: 0, durationMs: null, runId: null, body: null, at } as const,
  pingId: null,
})

describe('the pings of a check on disk', () => {
  it('keep their order when the clock steps back', async () => {
    const pings = createPingSpool(createMemorySpool(), () => now)
    for (const at of [10_000, 4_000, 4_000, 12_000]) await pings.append([pingAt(at)])
    const times = (await pings.read(0)).map(({ ping }) => ping.at)
    expect(times).toEqual([...new Set(times)].sort((a, b) => a - b))
    expect([times[0], times[3]]).toEqual([10_000, 12_000])
  })

  it('hold no newer one back once they are recorded, also when their file cannot be deleted', async () => {
    const spool = createMemorySpool()
    let isBroken = true
    const forget = async (upTo: number) => {
      await spool.forget(upTo)
      if (isBroken) throw new Error('no fsync')
    }
    const pings = createPingSpool(
      {
        ...spool,
        get records() {
          return spool.records
        },
        forget,
      },
      () => now,
    )
    await pings.append([pingAt(1)])
    expect(pings.isCaughtUp()).toBe(false)
    await expect(pings.forget(1, await pings.read(0))).rejects.toThrow('no fsync')
    isBroken = false
    expect(pings.isCaughtUp()).toBe(true)
  })
})

describe('what the spool says of itself', () => {
  it('an open one takes pings, a full one will again, a broken one is not asked any more', () => {
    const said = (['open', 'full', 'broken'] as const).map((state) => {
      const pings = createPingSpool(createMemorySpool({ state, bytes: 7 }), () => now)
      return [pings.accepts(), pings.hasRoom(), pings.bytes()]
    })
    expect(said).toEqual([
      [true, true, 7],
      [true, false, 7],
      [false, false, 7],
    ])
  })

  it('pings whose rows are locked do not count as waiting, and are known by their checks', async () => {
    const pings = createPingSpool(createMemorySpool(), () => now)
    for (const at of [1_000, 2_000, 3_000]) await pings.append([pingAt(at)])
    pings.noteLocked(
      [1, 2, 3].map((position) => ({ ...pingAt(1), pingId: Buffer.alloc(16), position, key: position % 2 })),
    )
    expect([pings.pings(), pings.waiting(), pings.isCaughtUp(), pings.isEmpty()]).toEqual([3, 0, true, false])
    expect(pings.lockedKeys()).toEqual([1, 0])
    await pings.forget(2, (await pings.read(0)).slice(0, 2))
    expect([pings.pings(), pings.waiting(), pings.lockedKeys()]).toEqual([1, 0, [1]])
  })

  it('a ping that is being written waits, and those who want to read it back wait for it', async () => {
    const written = Promise.withResolvers<number[]>()
    const pings = createPingSpool(createMemorySpool({ append: () => written.promise }), () => now)
    const appended = pings.append([pingAt(1)])
    expect([pings.isEmpty(), pings.isCaughtUp()]).toEqual([false, false])
    let isFlushed = false
    const flushed = pings.flushed().then(() => {
      isFlushed = true
    })
    await settle()
    expect(isFlushed).toBe(false)
    written.resolve([1])
    await Promise.all([appended, flushed])
    expect(isFlushed).toBe(true)
  })

  it('the oldest ping is one of those that wait, and none of an earlier outage', async () => {
    const pings = createPingSpool(createMemorySpool(), () => now)
    await pings.append([pingAt(1_000)])
    await pings.forget(1, await pings.read(0))
    expect(pings.oldestAt()).toBeNull()
    await Promise.all([pings.append([pingAt(3_601_000)]), pings.append([pingAt(3_601_000)])])
    expect(pings.oldestAt()).toBe(3_601_000)
  })

  it('the oldest ping is about the last one that was recorded, while others wait', async () => {
    const pings = createPingSpool(createMemorySpool(), () => now)
    for (const at of [1_000, 2_000, 3_000]) await pings.append([pingAt(at)])
    await pings.forget(2, (await pings.read(0)).slice(0, 2))
    expect(pings.oldestAt()).toBe(2_000)
  })

  it('the oldest ping of a process before is known from the first one that is read', async () => {
    const spool = createMemorySpool()
    await createPingSpool(spool, () => now).append([pingAt(5_000)])
    const pings = createPingSpool({ ...spool, records: 1 }, () => now)
    expect(pings.isCaughtUp()).toBe(false)
    await pings.read(0)
    expect(pings.oldestAt()).toBe(5_000)
  })

  it('a broken one refuses pings all the time, whether one comes or not', () => {
    const refused = (state: Spool['state']) => createPingSpool(createMemorySpool({ state }), () => now).refusedAt()
    now = 7_000
    expect([refused('open'), refused('full'), refused('broken')]).toEqual([null, null, 7_000])
  })

  it('a refusal counts from when it is, not from the arrival of the ping', () => {
    const pings = createPingSpool(createMemorySpool(), () => now)
    now = 9_000
    pings.noteRefusal()
    expect(pings.refusedAt()).toBe(9_000)
  })
})

describe('a disk that is slow', () => {
  /** `count` appends of `size` pings that wait for it, and what frees it. */
  function fill(count: number, size: number, bytes: number) {
    const written = Promise.withResolvers<number[]>()
    const pings = createPingSpool(createMemorySpool({ append: () => written.promise }), () => now)
    const { ping, pingId } = pingAt(1)
    // 27 bytes are before the body, and one is the exit code.
    const one = { ping: { ...ping, body: Buffer.alloc(bytes - 28) }, pingId }
    const appended = Array.from({ length: count }, () => pings.append(Array.from({ length: size }, () => one)))
    return { pings, one, appended, written }
  }

  it.each([
    ['50,000 pings', 500, 100, 50],
    ['32 MiB', 32, 32, 2 ** 15],
  ])('keeps %s waiting, and rejects others until it has stored them', async (_name, count, size, bytes) => {
    const { pings, one, appended, written } = fill(count, size, bytes)
    await expect(pings.append([one])).rejects.toThrow('too slow')
    written.resolve([])
    await Promise.all(appended)
    await expect(pings.append([one])).resolves.toBeUndefined()
  })

  it.each([
    ['50,000 pings', 500, 100, 50],
    ['32 MiB', 32, 32, 2 ** 15],
  ])('takes more below %s', async (_name, count, size, bytes) => {
    const { pings, one, written } = fill(count - 1, size, bytes)
    const last = pings.append([one])
    written.resolve([])
    await expect(last).resolves.toBeUndefined()
  })
})
