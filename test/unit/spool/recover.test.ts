import { describe, expect, it } from 'vitest'
import { SpoolFull } from '../../../src/spool/errors.ts'
import { encodeHeader } from '../../../src/spool/format.ts'
import { LOSE_ALL } from '../../support/fake-files.ts'
import { aside, createStage, FOLDER, flipped, HEADER, RECORD_HEADER, readAll, segment, text } from './stage.ts'

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
      "73706f6f6c0d0a1a020000000100000000000000",
      "0123456789ab4def8123456789abcdef4a735df4",
      "09000000f6ffffff652d8fdc3132333435363738",
      "3900000000ffffffff02000000",
    ]
  `)
})

describe('a last record that was cut off', () => {
  const records = ['one', 'two', 'the last'] as const
  const [, start, end] = ends(...records) as [number, number, number]

  it.each(Array.from({ length: end - start - 1 }, (_, index) => start + 1 + index))(
    'at byte %i is removed',
    async (length) => {
      const { files, path, bytes, open, problems } = await aClosedSpool(...records)
      files.put(path, bytes.subarray(0, length))
      const spool = await open()
      expect(problems).toEqual([{ kind: 'cut off', file: path, offset: start, bytes: length - start }])
      expect(await readAll(spool)).toEqual(['1 one', '2 two'])
      const [position] = await spool.append(text('new'))
      expect(position).toBeGreaterThan(2)
      await spool.close()
      problems.length = 0
      const again = await open()
      expect(problems).toEqual([])
      expect(await readAll(again)).toEqual(['1 one', '2 two', `${position} new`])
      expect(files.names().filter((name) => name.endsWith('.damaged'))).toEqual([])
    },
  )

  it('may be the first of its file', async () => {
    const { files, path, bytes, open, kinds } = await aClosedSpool('one')
    files.put(path, bytes.subarray(0, -1))
    const spool = await open()
    expect(kinds()).toEqual(['cut off'])
    expect(await readAll(spool)).toEqual([])
    const [position] = await spool.append(text('new'))
    expect(files.names()).toEqual([segment(position!).slice(FOLDER.length + 1)])
  })
})

describe('damage elsewhere', () => {
  it('of any bit of a record ends its file, which is kept aside when the records before it are forgotten', async () => {
    const records = ['one', 'two', 'three', 'four']
    const size = ends(...records).at(-1)!
    for (let at = ends('one')[0]!; at < size; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const { files, path, bytes, open, problems } = await aClosedSpool(...records)
        const damaged = flipped(bytes, at, bit)
        files.put(path, damaged)
        const spool = await open()
        const offset = ends(...records).findLast((end) => end <= at)!
        const keptAs = aside(1, spool)
        const before = ['1 one', '2 two', '3 three'].slice(0, ends(...records).indexOf(offset) + 1)
        expect(problems).toEqual([{ kind: 'damaged', file: path, offset, bytes: size - offset, keptAs }])
        expect(await readAll(spool)).toEqual(before)
        expect(spool.records).toBe(before.length)
        const [position] = await spool.append(text('new'))
        expect(position).toBeGreaterThan(4)
        await spool.forget(before.length)
        expect(files.content(keptAs)).toEqual(damaged)
        await spool.close()
        problems.length = 0
        const again = await open()
        expect(await readAll(again)).toEqual([`${position} new`])
        expect(again.bytes).toBe(files.used())
        expect(problems).toEqual([])
      }
    }
  })

  it.each([
    ['zeros', Buffer.alloc(12)],
    ['more zeros', Buffer.alloc(70_000)],
    ['other bytes', Buffer.from('another program wrote here')],
  ])('of %s behind the last record keeps them aside', async (_, rest) => {
    const { files, path, bytes, open, problems } = await aClosedSpool('one')
    files.put(path, Buffer.concat([bytes, rest]))
    const spool = await open()
    const found = { file: path, offset: bytes.length, bytes: rest.length, keptAs: aside(1, spool) }
    expect(problems).toEqual([{ kind: 'damaged', ...found }])
    expect(await readAll(spool)).toEqual(['1 one'])
  })

  it.each([
    ['a flipped bit in the middle', (bytes: Buffer) => flipped(bytes, -5)],
    ['a flipped bit in the last record', (bytes: Buffer) => flipped(bytes, -1)],
    ['a last record that is cut off', (bytes: Buffer) => bytes.subarray(0, -1)],
  ])('of an older file, %s, leaves the newer files as they are', async (_, damage) => {
    const { files, problems, open } = createStage({ segmentBytes: HEADER + 2 * (RECORD_HEADER + 2) })
    const spool = await open()
    for (const record of ['r1', 'r2', 'r3', 'r4', 'r5']) await spool.append(text(record))
    await spool.close()
    const damaged = damage(files.content(segment(3)))
    files.put(segment(3), damaged)
    const again = await open()
    expect(await readAll(again)).toEqual(['1 r1', '2 r2', '3 r3', '5 r5'])
    const offset = HEADER + RECORD_HEADER + 2
    const keptAs = aside(3, again)
    expect(problems).toEqual([{ kind: 'damaged', file: segment(3), offset, bytes: damaged.length - offset, keptAs }])
    expect(again.bytes).toBe(files.used())
    expect(await again.append(text('r6'))).toEqual([6])
    await again.forget(5)
    expect(files.content(keptAs)).toEqual(damaged)
    files.crash(LOSE_ALL)
    expect(files.content(keptAs)).toEqual(damaged)
    expect(await readAll(await open())).toEqual(['6 r6'])
  })

  it('of any bit of a header keeps the whole file aside at the start', async () => {
    for (let at = 0; at < HEADER; at += 1) {
      for (let bit = 0; bit < 8; bit += 1) {
        const { files, path, bytes, open, problems } = await aClosedSpool('one', 'two')
        const damaged = flipped(bytes, at, bit)
        files.put(path, damaged)
        const spool = await open()
        const keptAs = aside(1, spool)
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

  it.each([
    ['a flipped bit', (bytes: Buffer, end: number) => flipped(bytes, end + RECORD_HEADER)],
    ['a file that became shorter', (bytes: Buffer, end: number) => bytes.subarray(0, end)],
  ])('that came after the start, %s, ends the file for good, and later records are read', async (_, damage) => {
    const { files, path, open, problems } = await aClosedSpool('one', 'two', 'three')
    const [, end, size] = ends('one', 'two', 'three') as [number, number, number]
    const spool = await open()
    await spool.append(text('four'))
    const damaged = damage(files.content(path), end)
    files.put(path, damaged)
    expect(await readAll(spool)).toEqual(['1 one', '2 two', '4 four'])
    expect(await readAll(spool)).toEqual(['1 one', '2 two', '4 four'])
    const keptAs = aside(1, spool)
    expect(problems).toEqual([{ kind: 'damaged', file: path, offset: end, bytes: size - end, keptAs }])
    expect([spool.records, spool.state]).toEqual([3, 'open'])
    await spool.forget(2)
    expect(files.content(keptAs)).toEqual(damaged)
    expect(files.names()).not.toContain(path.slice(FOLDER.length + 1))
  })

  it('in the file that is written ends the file: the next append begins another one', async () => {
    const { files, open, kinds } = createStage()
    const spool = await open()
    await spool.append(text('one'))
    await spool.append(text('two'))
    files.put(segment(1), flipped(files.content(segment(1)), HEADER))
    expect(await readAll(spool)).toEqual([])
    expect([kinds(), spool.records, spool.state]).toEqual([['damaged'], 0, 'open'])
    expect(files.names()).toEqual([aside(1, spool).slice(FOLDER.length + 1)])
    expect(await spool.append(text('three'))).toEqual([3])
    expect(await readAll(spool)).toEqual(['3 three'])
    expect(spool.bytes).toBe(files.used())
    await spool.close()
    expect(await readAll(await open())).toEqual(['3 three'])
    expect(files.openFiles).toBe(1)
  })
})

it.each([
  ['of another version', (bytes: Buffer) => flipped(bytes, 8)],
  ['of another program', () => Buffer.from('something else')],
  ['without a byte', () => Buffer.alloc(0)],
  ['of another spool', () => encodeHeader({ id: '01234567-89ab-4def-8123-456789abcdef', first: 3 })],
  ['under the name of another file', (bytes: Buffer) => bytes],
])('a file %s is kept aside as it is, and the other files are read', async (_, contentOf) => {
  const { files, path, bytes, open, problems } = await aClosedSpool('one', 'two')
  const content = contentOf(bytes)
  files.put(segment(3), content)
  const spool = await open()
  const keptAs = aside(3, spool)
  expect(problems).toEqual([{ kind: 'damaged', file: segment(3), offset: 0, bytes: content.length, keptAs }])
  expect(await readAll(spool)).toEqual(['1 one', '2 two'])
  const [position] = await spool.append(text('new'))
  await spool.forget(2)
  expect(files.content(keptAs)).toEqual(content)
  expect(files.names()).not.toContain(path.slice(FOLDER.length + 1))
  expect(await readAll(spool)).toEqual([`${position} new`])
})

it('a file that repeats positions of an older file is kept aside', async () => {
  const { files, open, id, kinds } = await aClosedSpool('one', 'two')
  files.put(segment(2), encodeHeader({ id, first: 2 }))
  const spool = await open()
  expect([kinds(), await readAll(spool)]).toEqual([['damaged'], ['1 one', '2 two']])
  expect((await spool.append(text('new')))[0]).toBeGreaterThan(2)
})

it('the files around a missing one are read, other files are left alone, and a half-made file is removed', async () => {
  const { files, problems, open } = createStage({ segmentBytes: HEADER + RECORD_HEADER + 2 })
  const spool = await open()
  for (const record of ['r1', 'r2', 'r3']) await spool.append(text(record))
  await spool.close()
  await files.unlink(segment(2))
  files.put(`${segment(4)}.new`, Buffer.from('half'))
  files.put(`${FOLDER}/lost+found`, Buffer.from('theirs'))
  files.put(`${FOLDER}/9999999999999999.segment`, Buffer.from('no position'))
  expect(await readAll(await open())).toEqual(['1 r1', '3 r3'])
  expect(problems).toEqual([])
  expect(files.names()).toEqual(
    [
      '9999999999999999.segment',
      'lost+found',
      ...[1, 3, 4].map((first) => segment(first).slice(FOLDER.length + 1)),
    ].sort(),
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
