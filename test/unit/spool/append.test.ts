import { describe, expect, it } from 'vitest'
import { SpoolBroken, SpoolFull } from '../../../src/spool/errors.ts'
import { LOSE_ALL } from '../../support/fake-files.ts'
import { createStage, EVERYTHING, FOLDER, HEADER, RECORD_HEADER, readAll, segment, text } from './stage.ts'

describe('append and read', () => {
  it('gives each record a position, also over files and restarts, and reads them in order', async () => {
    const { files, open, problems } = createStage({ segmentBytes: HEADER + 2 * (RECORD_HEADER + 2) })
    const spool = await open()
    expect([spool.state, spool.records, spool.bytes]).toEqual(['open', 0, HEADER])
    expect(await spool.append(text('r1', 'r2'))).toEqual([1, 2])
    expect(await spool.append(text('r3'))).toEqual([3])
    expect(await spool.append([])).toEqual([])
    await spool.close()
    const again = await open()
    expect(again.id).toBe(spool.id)
    expect(await again.append(text('r4'))).toEqual([4])
    expect(await readAll(again)).toEqual(['1 r1', '2 r2', '3 r3', '4 r4'])
    expect(await readAll(again, 2)).toEqual(['3 r3', '4 r4'])
    expect(await readAll(again, 4)).toEqual([])
    expect([again.records, again.bytes]).toEqual([4, files.used()])
    expect(files.names()).toEqual([1, 3, 4].map((first) => segment(first).slice(FOLDER.length + 1)))
    expect(problems).toEqual([])
  })

  it('takes records of any length up to the limit of a file, and rejects a longer append', async () => {
    const { open } = createStage({ segmentBytes: 200_000, maxBytes: 10 ** 6 })
    const spool = await open()
    const longest = 200_000 - HEADER - RECORD_HEADER
    const records = [0, 1, 65_535, 65_536, longest].map((length) => Buffer.alloc(length, 'x'))
    for (const record of records) await spool.append([record])
    const read = await spool.read(0, EVERYTHING)
    expect(read.map(({ record }, index) => record.equals(records[index]!))).toEqual(records.map(() => true))
    await expect(spool.append([Buffer.alloc(longest + 1)])).rejects.toThrow(RangeError)
    await expect(spool.append([Buffer.alloc(longest - RECORD_HEADER), Buffer.alloc(1)])).rejects.toThrow(RangeError)
    expect(await spool.append([Buffer.alloc(longest - RECORD_HEADER), Buffer.alloc(0)])).toEqual([6, 7])
    expect(spool.state).toBe('open')
  })

  it('reads up to its limits, but one record at least, wherever the reads before ended', async () => {
    const { open } = createStage({ segmentBytes: HEADER + 3 * (RECORD_HEADER + 2) })
    const spool = await open()
    await Promise.all(['r1', 'r2', 'r3', 'r4', 'r5'].map((record) => spool.append(text(record))))
    const read = async (after: number, records: number, bytes: number) =>
      (await spool.read(after, { records, bytes })).map(({ position }) => position)
    expect(await read(0, 2, 100)).toEqual([1, 2])
    expect(await read(2, 2, 100)).toEqual([3, 4])
    expect(await read(1, 100, 6)).toEqual([2, 3, 4])
    expect(await read(1, 100, 5)).toEqual([2, 3])
    expect(await read(3, 100, 1)).toEqual([4])
    expect(await read(4, 100, 100)).toEqual([5])
    expect(await read(5, 100, 100)).toEqual([])
  })

  it('does not search for where the last read ended', async () => {
    const { files, open } = createStage({ segmentBytes: 2 ** 20, maxBytes: 2 ** 20 })
    const spool = await open()
    await spool.append(Array.from({ length: 8 }, () => Buffer.alloc(65_536)))
    await spool.read(0, { records: 6, bytes: 10 ** 6 })
    files.counts.read = 0
    expect((await spool.read(6, { records: 1, bytes: 1 })).map(({ position }) => position)).toEqual([7])
    // A piece, twice as much for a longer record, and the beginning of the next one.
    expect(files.counts.read).toBeLessThanOrEqual(4)
  })

  it('writes the calls of one turn together, and those that arrive meanwhile after them: one fsync each', async () => {
    const { files, open } = createStage({ segmentBytes: 100_000 })
    const spool = await open()
    files.counts.write = files.counts.datasync = 0
    const first = Array.from({ length: 64 }, (_, index) => spool.append(text(`a${index}`, `b${index}`)))
    const second: Promise<readonly number[]>[] = []
    files.faultOf = (operation) => {
      if (operation === 'write' && second.length === 0)
        for (let index = 0; index < 32; index += 1) second.push(spool.append(text(`c${index}`)))
      return undefined
    }
    expect((await Promise.all(first)).flat()).toEqual(Array.from({ length: 128 }, (_, index) => index + 1))
    expect((await Promise.all(second)).flat()).toEqual(Array.from({ length: 32 }, (_, index) => index + 129))
    expect([files.counts.write, files.counts.datasync]).toEqual([2, 2])
  })

  it('shows no record before it is on disk', async () => {
    const { files, open } = createStage()
    const spool = await open()
    let seen: Promise<string[]> | undefined
    files.faultOf = (operation) => {
      if (operation === 'datasync') seen ??= readAll(spool)
      return operation === 'datasync' ? 'EIO' : undefined
    }
    await expect(spool.append(text('a'))).rejects.toThrow(SpoolBroken)
    expect(await seen).toEqual([])
  })

  it('a write may take a part of the bytes', async () => {
    const { files, open } = createStage()
    files.mostWritten = 7
    const spool = await open()
    await spool.append(text('a record of some length', 'and another'))
    await spool.close()
    expect(await readAll(await open())).toEqual(['1 a record of some length', '2 and another'])
  })

  it('stores before it closes what was appended before, and nothing after', async () => {
    const { files, open } = createStage()
    const spool = await open()
    const appended = spool.append(text('a'))
    await Promise.all([spool.close(), spool.close()])
    expect(files.openFiles).toBe(0)
    expect(await appended).toEqual([1])
    await expect(spool.append(text('b'))).rejects.toThrow(SpoolBroken)
    const again = await open()
    expect(await readAll(again)).toEqual(['1 a'])
  })
})

describe('limits', () => {
  const RECORD = RECORD_HEADER + 2

  it('a spool of maxBytes rejects before it writes, and accepts what fits', async () => {
    const { files, open } = createStage({ maxBytes: HEADER + 3 * RECORD })
    const spool = await open()
    await spool.append(text('r1'))
    const outcomes = await Promise.allSettled([
      spool.append(text('no', 'no', 'no')),
      spool.append(text('r2', 'r3')),
      spool.append(text('no')),
    ])
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected'])
    expect((outcomes[0] as PromiseRejectedResult).reason).toBeInstanceOf(SpoolFull)
    expect([spool.state, spool.bytes, files.used()]).toEqual(['full', HEADER + 3 * RECORD, HEADER + 3 * RECORD])
    expect(await readAll(spool)).toEqual(['1 r1', '2 r2', '3 r3'])
  })

  it('counts what waits and what is being written', async () => {
    const { files, open } = createStage({ maxBytes: HEADER + 2 * RECORD })
    const spool = await open()
    let second: Promise<unknown> | undefined
    files.faultOf = (operation) => {
      if (operation === 'datasync') second ??= Promise.allSettled([spool.append(text('r2')), spool.append(text('no'))])
      return undefined
    }
    expect(await spool.append(text('r1'))).toEqual([1])
    expect(await second).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: expect.any(SpoolFull) }])
    expect([spool.state, spool.bytes, files.used()]).toEqual(['full', HEADER + 2 * RECORD, HEADER + 2 * RECORD])
  })

  it('counts the header of the next file', async () => {
    const sizes = { segmentBytes: HEADER + RECORD, maxBytes: 2 * (HEADER + RECORD) }
    const fits = createStage(sizes)
    const spool = await fits.open()
    await spool.append(text('r1'))
    await spool.append(text('r2'))
    expect(fits.files.used()).toBe(sizes.maxBytes)
    const none = createStage({ ...sizes, maxBytes: sizes.maxBytes - 1 })
    const fuller = await none.open()
    await fuller.append(text('r1'))
    await expect(fuller.append(text('r2'))).rejects.toThrow(SpoolFull)
    expect(none.files.names()).toHaveLength(1)
  })

  it('a copy of a record may exceed maxBytes by two files, and leaves no room for a new record', async () => {
    const segmentBytes = HEADER + RECORD
    const { open } = createStage({ segmentBytes, maxBytes: 2 * segmentBytes })
    const spool = await open()
    for (const record of ['r1', 'r2']) await spool.append(text(record))
    await expect(spool.append(text('r3'))).rejects.toThrow(SpoolFull)
    expect(await spool.append(text('r1'), 'move')).toEqual([3])
    expect(await spool.append(text('r2'), 'move')).toEqual([4])
    expect(spool.bytes).toBe(4 * segmentBytes)
    await expect(spool.append(text('r3'), 'move')).rejects.toThrow(SpoolFull)
    const states = [spool.state]
    for (const upTo of [1, 2, 3]) {
      await spool.forget(upTo)
      states.push(spool.state)
    }
    expect(states).toEqual(['full', 'full', 'open', 'open'])
    expect(await spool.append(text('r3'))).toEqual([5])
    expect(await readAll(spool)).toEqual(['4 r2', '5 r3'])
  })

  it('a file is at most segmentBytes long', async () => {
    const { files, open } = createStage({ segmentBytes: HEADER + 2 * RECORD })
    const spool = await open()
    await Promise.all(['r1', 'r2', 'r3'].map((record) => spool.append(text(record))))
    expect(files.content(segment(1))).toHaveLength(HEADER + 2 * RECORD)
    expect(files.content(segment(3))).toHaveLength(HEADER + RECORD)
    await expect(createStage({ segmentBytes: HEADER }).open()).rejects.toThrow(RangeError)
  })
})

describe('forget', () => {
  const RECORD = RECORD_HEADER + 2
  const sizes = { segmentBytes: HEADER + 2 * RECORD, maxBytes: 2 * (HEADER + 2 * RECORD) }

  it('deletes whole files, which makes room again, and counts the rest', async () => {
    const { files, open } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    await spool.append(text('r3', 'r4'))
    await expect(spool.append(text('r5'))).rejects.toThrow(SpoolFull)
    await spool.forget(1)
    expect([spool.state, spool.records, files.names().length]).toEqual(['full', 3, 2])
    await expect(spool.append(text('r5'))).rejects.toThrow(SpoolFull)
    await spool.forget(2)
    expect([spool.state, spool.records, files.names().length]).toEqual(['open', 2, 1])
    expect(await readAll(spool)).toEqual(['3 r3', '4 r4'])
    expect(await spool.append(text('r5'))).toEqual([5])
    await spool.forget(3)
    await spool.forget(1)
    expect([spool.records, spool.bytes]).toEqual([2, files.used()])
  })

  it('of everything leaves an empty file, which holds the next position', async () => {
    const { files, open, problems } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    await spool.append(text('r3'))
    await spool.forget(1_000)
    expect([spool.records, spool.bytes, files.used()]).toEqual([0, HEADER, HEADER])
    await spool.forget(1_000)
    expect(await readAll(spool)).toEqual([])
    await spool.close()
    const again = await open()
    expect([again.id, again.records]).toEqual([spool.id, 0])
    expect(await again.append(text('r4'))).toEqual([4])
    expect(await readAll(again)).toEqual(['4 r4'])
    expect(problems).toEqual([])
  })

  it('is on disk when it resolves', async () => {
    const { files, open } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    await spool.append(text('r3'))
    await spool.forget(2)
    files.crash(LOSE_ALL)
    expect(await readAll(await open())).toEqual(['3 r3'])
  })

  it('may be called while others read and append', async () => {
    const { open } = createStage({ ...sizes, maxBytes: 10_000 })
    const spool = await open()
    for (let at = 1; at < 50; at += 1) await spool.append(text(`r${at}`))
    const [read, , appended] = await Promise.all([readAll(spool), spool.forget(49), spool.append(text('new'))])
    expect(read).toHaveLength(49)
    expect(appended).toEqual([50])
    expect(await readAll(spool)).toEqual(['50 new'])
  })
})
