import { describe, expect, it } from 'vitest'
import { SpoolDamaged, SpoolFull, SpoolRejected } from '../../../src/spool/errors.ts'
import { encodeHeader } from '../../../src/spool/format.ts'
import { LOSE_ALL } from '../../support/fake-files.ts'
import { createStage, FOLDER, HEADER, RECORD_HEADER, readAll, segment, text } from './stage.ts'

/** A closed spool with one file of these records. */
async function aClosedSpool(...records: string[]) {
  const stage = createStage()
  const spool = await stage.open()
  for (const record of records) await spool.append(text(record))
  await spool.close()
  return { ...stage, id: spool.id, path: segment(1), bytes: stage.files.content(segment(1)) }
}

const ends = (...records: string[]) => {
  let end = HEADER
  return records.map((record) => (end += RECORD_HEADER + record.length))
}

const flipped = (bytes: Buffer, at: number, bit: number) => {
  const copy = Buffer.from(bytes)
  copy[at]! ^= 1 << bit
  return copy
}

it('the bytes of a segment', async () => {
  const { files } = createStage()
  files.put(segment(1), encodeHeader({ id: '01234567-89ab-4def-8123-456789abcdef', first: 1 }))
  const { open } = createStage({ files })
  const spool = await open()
  await spool.append(text('123456789', ''))
  expect(
    files
      .content(segment(1))
      .toString('hex')
      .match(/.{1,40}/g),
  ).toMatchInlineSnapshot(`
    [
      "73706f6f6c0d0a1a010000000100000000000000",
      "0123456789ab4def8123456789abcdeff2f8bda5",
      "090000003bcb4fdd6bd404ac3132333435363738",
      "3900000000134f18b9134f18b9",
    ]
  `)
})

describe('a last record that was cut off', () => {
  const records = ['one', 'two', 'the last'] as const
  const [, start, end] = ends(...records) as [number, number, number]

  it.each(Array.from({ length: end - start - 1 }, (_, index) => start + 1 + index))(
    'at byte %i is removed, its position stays unused',
    async (length) => {
      const { files, path, bytes, open, problems } = await aClosedSpool(...records)
      files.put(path, bytes.subarray(0, length))
      const spool = await open()
      expect(problems).toEqual([{ kind: 'cut off', file: path, offset: start, bytes: length - start }])
      expect(await readAll(spool)).toEqual(['1 one', '2 two'])
      expect(await spool.append(text('new'))).toEqual([4])
      await spool.close()
      problems.length = 0
      const again = await open()
      expect(problems).toEqual([{ kind: 'gap', file: segment(4), count: 1 }])
      expect(await readAll(again)).toEqual(['1 one', '2 two', '4 new'])
      expect(files.names().filter((name) => name.endsWith('.damaged'))).toEqual([])
    },
  )

  it('may be the first of its file', async () => {
    const { files, path, bytes, open, kinds } = await aClosedSpool('one')
    files.put(path, bytes.subarray(0, -1))
    const spool = await open()
    expect(kinds()).toEqual(['cut off'])
    expect(await readAll(spool)).toEqual([])
    expect(await spool.append(text('new'))).toEqual([2])
    expect(files.names()).toEqual([segment(2).slice(FOLDER.length + 1)])
  })

  it.each([1, 11, 12, 100, 70_000])('may be %i zeros', async (count) => {
    const { files, path, bytes, open, problems } = await aClosedSpool('one')
    files.put(path, Buffer.concat([bytes, Buffer.alloc(count)]))
    const spool = await open()
    expect(problems).toEqual([{ kind: 'cut off', file: path, offset: bytes.length, bytes: count }])
    expect(await readAll(spool)).toEqual(['1 one'])
  })

  it('a flipped bit of its payload or the sum of that removes it, one of its length or the sum of that keeps it aside', async () => {
    for (let at = start; at < end; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const { files, path, bytes, open, problems } = await aClosedSpool(...records)
        files.put(path, flipped(bytes, at, bit))
        const spool = await open()
        expect(await readAll(spool)).toEqual(['1 one', '2 two'])
        const keptAs = `${path}.${start}.damaged`
        const found = { file: path, offset: start, bytes: end - start }
        if (at >= start + 8) expect(problems).toEqual([{ kind: 'cut off', ...found }])
        else {
          expect(problems).toEqual([{ kind: 'damaged', ...found, keptAs }])
          expect(files.content(keptAs)).toEqual(flipped(bytes, at, bit).subarray(start))
        }
        expect((await spool.append(text('new')))[0]).toBeGreaterThan(3)
      }
    }
  })
})

describe('damage elsewhere', () => {
  it('of any bit of a record before the last keeps the rest of the file aside, once', async () => {
    const records = ['one', 'two', 'three', 'four']
    const [start, end, , size] = ends(...records) as [number, number, number, number]
    for (let at = start; at < end; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const { files, path, bytes, open, problems, kinds } = await aClosedSpool(...records)
        files.put(path, flipped(bytes, at, bit))
        const spool = await open()
        const keptAs = `${path}.${start}.damaged`
        expect(problems).toEqual([{ kind: 'damaged', file: path, offset: start, bytes: size - start, keptAs }])
        expect(files.content(keptAs)).toEqual(flipped(bytes, at, bit).subarray(start))
        expect(await readAll(spool)).toEqual(['1 one'])
        const [position] = await spool.append(text('new'))
        expect(position).toBeGreaterThan(4)
        await spool.close()
        problems.length = 0
        expect(await readAll(await open())).toEqual(['1 one', `${position} new`])
        expect(kinds()).toEqual(['gap'])
      }
    }
  })

  it.each([
    ['in the middle', 5],
    ['in the last record', 1],
  ])('of an older file, %s, leaves the newer files as they are', async (_, fromEnd) => {
    const { files, problems, open } = createStage({ segmentBytes: HEADER + 2 * (RECORD_HEADER + 2) })
    const spool = await open()
    for (const record of ['r1', 'r2', 'r3', 'r4', 'r5']) await spool.append(text(record))
    await spool.close()
    const bytes = files.content(segment(3))
    files.put(segment(3), flipped(bytes, bytes.length - fromEnd, 0))
    const again = await open()
    expect(await readAll(again)).toEqual(['1 r1', '2 r2', '3 r3', '5 r5'])
    const offset = HEADER + RECORD_HEADER + 2
    expect(problems.map(({ kind, ...rest }) => ({ kind, ...rest }))).toEqual([
      { kind: 'gap', file: segment(5), count: 1 },
      {
        kind: 'damaged',
        file: segment(3),
        offset,
        bytes: RECORD_HEADER + 2,
        keptAs: `${segment(3)}.${offset}.damaged`,
      },
    ])
    expect(again.bytes).toBe(files.used())
    expect(await again.append(text('r6'))).toEqual([6])
  })

  it('is kept aside on disk before it is cut off', async () => {
    const { files, path, bytes, open } = await aClosedSpool('one', 'two')
    files.put(path, flipped(bytes, HEADER, 0))
    await open()
    files.crash(LOSE_ALL)
    expect(files.content(`${path}.${HEADER}.damaged`)).toEqual(flipped(bytes, HEADER, 0).subarray(HEADER))
    expect(files.names()).toHaveLength(2)
  })

  it('for whose copy there is no room is left for another start', async () => {
    const { files, path, bytes, open, kinds } = await aClosedSpool('one', 'two', 'three')
    const [, second] = ends('one', 'two') as [number, number]
    files.put(path, flipped(bytes, second, 0))
    files.capacity = files.used() + HEADER + 5
    const spool = await open()
    expect([await readAll(spool), kinds()]).toEqual([['1 one', '2 two'], ['disk full']])
    await spool.close()
    files.capacity = 10_000
    const again = await open()
    expect([await readAll(again), kinds()]).toEqual([
      ['1 one', '2 two'],
      ['disk full', 'gap', 'damaged'],
    ])
    expect(files.content(`${path}.${second}.damaged`)).toEqual(flipped(bytes, second, 0).subarray(second))
  })

  it('of an older file that is cut off keeps what is left of the record aside', async () => {
    const { files, kinds, open } = createStage({ segmentBytes: HEADER + 2 * (RECORD_HEADER + 2) })
    const spool = await open()
    for (const record of ['r1', 'r2', 'r3']) await spool.append(text(record))
    await spool.close()
    files.put(segment(1), files.content(segment(1)).subarray(0, -1))
    expect(await readAll(await open())).toEqual(['1 r1', '3 r3'])
    expect(kinds()).toEqual(['gap', 'damaged'])
  })

  it('of any bit of a header keeps the file aside, or rejects the folder and leaves it as it is', async () => {
    for (let at = 0; at < HEADER; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const { files, path, bytes, open, problems } = await aClosedSpool('one', 'two')
        const damaged = flipped(bytes, at, bit)
        files.put(path, damaged)
        if (at < 12) {
          await expect(open()).rejects.toThrow(SpoolRejected)
          await expect(open()).rejects.toThrow(path)
          expect(files.content(path)).toEqual(damaged)
          continue
        }
        const spool = await open()
        const keptAs = `${path}.0.damaged`
        expect(problems).toEqual([{ kind: 'damaged', file: path, offset: 0, bytes: bytes.length, keptAs }])
        expect(files.content(keptAs)).toEqual(damaged)
        expect(await readAll(spool)).toEqual([])
        expect((await spool.append(text('new')))[0]).toBeGreaterThan(2)
        expect(spool.bytes).toBe(files.used())
      }
    }
  })

  it('what is kept aside counts for maxBytes', async () => {
    const { files, path, bytes, open } = await aClosedSpool('one', 'two')
    files.put(path, flipped(bytes, 12, 0))
    const room = 2 * HEADER + 2 * RECORD_HEADER + 6
    const most = createStage({ files, maxBytes: room + RECORD_HEADER + 3 })
    const spool = await most.open()
    await expect(spool.append(text('four'))).rejects.toThrow(SpoolFull)
    await spool.append(text('six'))
    expect(files.used()).toBe(room + RECORD_HEADER + 3)
    await spool.close()
    expect((await open()).bytes).toBe(files.used())
  })

  it('that came after the start ends a read with an error that names the place, behind the records before it', async () => {
    const { files, path, open } = await aClosedSpool('one', 'two', 'three')
    const spool = await open()
    const [, end] = ends('one', 'two') as [number, number]
    for (const bad of [flipped(files.content(path), end + RECORD_HEADER, 0), files.content(path).subarray(0, end)]) {
      files.put(path, bad)
      expect(await readAll(spool)).toEqual(['1 one', '2 two'])
      await expect(spool.read(2, { records: 1, bytes: 1 })).rejects.toThrow(SpoolDamaged)
      await expect(spool.read(2, { records: 1, bytes: 1 })).rejects.toThrow(
        `${path}: damaged at byte ${end}, position 3`,
      )
    }
  })
})

describe('a folder that is rejected, and stays as it was', () => {
  const unchanged = async (stage: Awaited<ReturnType<typeof aClosedSpool>>, message: string) => {
    const before = stage.files.names().map((name) => [name, stage.files.content(`${FOLDER}/${name}`)])
    await expect(stage.open()).rejects.toThrow(SpoolRejected)
    await expect(stage.open()).rejects.toThrow(message)
    expect(stage.files.names().map((name) => [name, stage.files.content(`${FOLDER}/${name}`)])).toEqual(before)
  }

  it('of another version', async () => {
    const stage = await aClosedSpool('one')
    const bytes = Buffer.from(stage.bytes)
    bytes.writeUInt32LE(2, 8)
    // As a crash of the other version may have left it.
    stage.files.put(stage.path, bytes.subarray(0, -1))
    await unchanged(stage, `${stage.path}: it has format version 2, and this program reads version 1`)
  })

  it('of another program', async () => {
    const stage = await aClosedSpool('one')
    stage.files.put(segment(2), Buffer.from('something else'))
    await unchanged(stage, `${segment(2)}: it is not a segment of a spool`)
  })

  it('with files of another spool', async () => {
    const stage = await aClosedSpool('one')
    stage.files.put(segment(2), encodeHeader({ id: '01234567-89ab-4def-8123-456789abcdef', first: 2 }))
    await unchanged(stage, `${segment(2)}: it belongs to another spool than ${segment(1)}`)
  })

  it('with positions that were stored twice', async () => {
    const stage = await aClosedSpool('one', 'two')
    stage.files.put(segment(2), encodeHeader({ id: stage.id, first: 2 }))
    await unchanged(stage, `${segment(2)}: it repeats records of an older file`)
  })

  it('with a file under the name of another', async () => {
    const stage = await aClosedSpool('one', 'two')
    await stage.files.rename(segment(1), segment(7))
    await unchanged(stage, `${segment(7)}: its header says that it begins with position 1`)
  })
})

it('a file that is missing is a gap, other files are left alone, and a half-made file is removed', async () => {
  const { files, problems, open } = createStage({ segmentBytes: HEADER + RECORD_HEADER + 2 })
  const spool = await open()
  for (const record of ['r1', 'r2', 'r3']) await spool.append(text(record))
  await spool.close()
  await files.unlink(segment(2))
  files.put(`${segment(4)}.new`, Buffer.from('half'))
  files.put(`${FOLDER}/lost+found`, Buffer.from('theirs'))
  expect(await readAll(await open())).toEqual(['1 r1', '3 r3'])
  expect(problems).toEqual([{ kind: 'gap', file: segment(3), count: 1 }])
  expect(files.names()).toEqual(
    ['lost+found', ...[1, 3, 4].map((first) => segment(first).slice(FOLDER.length + 1))].sort(),
  )
})

it('a start goes on in a file of its own, and restarts without records leave no files', async () => {
  const { files, open } = await aClosedSpool('one')
  for (let restart = 0; restart < 3; restart += 1) await (await open()).close()
  expect(files.names()).toHaveLength(2)
  const spool = await open()
  const synced = files.content(segment(1))
  await spool.append(text('two'))
  expect(files.content(segment(1))).toEqual(synced)
})

it('what a killed process had written, but not synced, is synced before it is shown', async () => {
  const { files, open } = createStage()
  const spool = await open()
  files.faultOf = (operation) => (['datasync', 'truncate'].includes(operation) ? 'EIO' : undefined)
  await expect(spool.append(text('one'))).rejects.toThrow('a write to the spool failed')
  files.kill()
  const again = await open()
  expect(await readAll(again)).toEqual(['1 one'])
  files.crash(LOSE_ALL)
  const last = await open()
  expect(await readAll(last)).toEqual(['1 one'])
  expect(await last.append(text('two'))).toEqual([2])
})
