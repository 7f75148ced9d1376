import { describe, expect, it } from 'vitest'
import { SpoolBroken, SpoolFull } from '../../../src/spool/errors.ts'
import type { Spool } from '../../../src/spool/spool.ts'
import { aside, createStage, EVERYTHING, flipped, HEADER, RECORD_HEADER, readAll, segment, text } from './stage.ts'

const RECORD = RECORD_HEADER + 2
const sizes = { segmentBytes: HEADER + 2 * RECORD }
const CHANGES = ['open', 'write', 'truncate', 'datasync', 'rename', 'unlink', 'syncFolder']

describe('after a failed', () => {
  it.each(['write', 'datasync', 'open', 'rename', 'syncFolder'] as const)(
    '%s nothing is accepted, and what was acknowledged stays readable, also after a restart',
    async (fault) => {
      const { files, problems, open } = createStage(sizes)
      const spool = await open()
      await spool.append(text('r1', 'r2'))
      files.faultOf = (operation) => (operation === fault ? 'EIO' : undefined)
      const appends = [spool.append(text('r3')), spool.append(text('r4', 'r5'))]
      for (const outcome of await Promise.allSettled(appends)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(SpoolBroken) })
      }
      expect(spool.state).toBe('broken')
      expect(problems.map(({ kind }) => kind)).toEqual(['broken'])
      files.faultOf = (operation) => (CHANGES.includes(operation) && operation !== 'open' ? expect.fail() : undefined)
      await expect(spool.append(text('r6'))).rejects.toThrow(SpoolBroken)
      await spool.forget(2)
      expect(await readAll(spool)).toEqual(['1 r1', '2 r2'])
      await spool.close()
      files.kill()
      const again = await open()
      expect(again.state).toBe('open')
      expect((await readAll(again)).slice(0, 2)).toEqual(['1 r1', '2 r2'])
      const [position] = await again.append(text('new'))
      expect(await readAll(again, position! - 1)).toEqual([`${position} new`])
    },
  )

  it('fsync the next one is not believed', async () => {
    const { files, open } = createStage()
    const spool = await open()
    let fsyncs = 0
    files.faultOf = (operation) => (operation === 'datasync' && fsyncs++ === 0 ? 'EIO' : undefined)
    const later = spool.append(text('r1')).catch(() => spool.append(text('r1')))
    await expect(later).rejects.toThrow(SpoolBroken)
    expect(fsyncs).toBe(1)
    await spool.close()
    expect(await readAll(await open())).toEqual([])
  })

  it('fsync that says the disk is full nothing is accepted either', async () => {
    const { files, open } = createStage()
    const spool = await open()
    files.faultOf = (operation) => (operation === 'datasync' ? 'ENOSPC' : undefined)
    await expect(spool.append(text('r1'))).rejects.toThrow(SpoolBroken)
  })

  it.each(['unlink', 'syncFolder', 'rename'] as const)('%s of a deletion nothing is accepted', async (fault) => {
    const { files, open } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    files.faultOf = (operation) => (operation === fault ? 'EIO' : undefined)
    await expect(spool.forget(2)).rejects.toThrow(SpoolBroken)
    expect(spool.state).toBe('broken')
    await spool.close()
    files.kill()
    expect(await (await open()).append(text('r3'))).toEqual([3])
  })

  it('fsync the records around a damaged one are read, and no file is changed', async () => {
    const { files, problems, open } = createStage(sizes)
    const spool = await open()
    for (const record of ['r1', 'r2', 'r3', 'r4', 'r5', 'r6']) await spool.append(text(record))
    files.faultOf = (operation) => (operation === 'datasync' ? 'EIO' : undefined)
    await expect(spool.append(text('r7'))).rejects.toThrow(SpoolBroken)
    files.faultOf = (operation) => (CHANGES.includes(operation) && operation !== 'open' ? expect.fail() : undefined)
    for (const first of [1, 5]) files.put(segment(first), flipped(files.content(segment(first)), HEADER))
    expect(await readAll(spool)).toEqual(['3 r3', '4 r4'])
    expect([spool.state, problems.map(({ kind }) => kind)]).toEqual(['broken', ['broken', 'damaged', 'damaged']])
    await spool.close()
    expect(files.openFiles).toBe(0)
  })

  it('read nothing else is wrong', async () => {
    const { files, open } = createStage()
    const spool = await open()
    await spool.append(text('r1'))
    files.faultOf = (operation) => (operation === 'read' ? 'EIO' : undefined)
    await expect(spool.read(0, EVERYTHING)).rejects.toThrow('EIO')
    files.kill()
    expect(await readAll(spool)).toEqual(['1 r1'])
    expect(spool.state).toBe('open')
  })
})

describe('on a full disk', () => {
  it.each([
    ['has no room', 0],
    ['has room for a part', RECORD],
    ['has room for all but a byte', 2 * RECORD - 1],
  ])('that %s an append leaves nothing behind, and there may be room later', async (_, room) => {
    const { files, problems, open } = createStage()
    const spool = await open()
    await spool.append(text('r1'))
    files.capacity = files.used() + room
    for (let attempt = 0; attempt < 2; attempt += 1)
      await expect(spool.append(text('r2', 'r3'))).rejects.toThrow(SpoolFull)
    expect(problems).toMatchObject([{ kind: 'disk full', error: { code: 'ENOSPC' } }])
    expect([spool.state, spool.bytes, files.used()]).toEqual(['full', HEADER + RECORD, HEADER + RECORD])
    files.capacity += 2 * RECORD - room
    expect(await spool.append(text('r2', 'r3'))).toEqual([2, 3])
    expect(spool.state).toBe('open')
    expect(problems).toHaveLength(1)
    await spool.close()
    // With a full disk a start still reads what is there.
    const again = await open()
    expect([again.state, again.bytes]).toEqual(['full', files.used()])
    expect(await readAll(again)).toEqual(['1 r1', '2 r2', '3 r3'])
    await expect(again.append(text('r4'))).rejects.toThrow(SpoolFull)
    await again.forget(3)
    expect([again.state, again.bytes, files.used()]).toEqual(['open', 0, 0])
    expect(await again.append(text('r4'))).toEqual([4])
    await again.close()
    expect(await readAll(await open())).toEqual(['4 r4'])
  })

  it.each(['open', 'write', 'rename'] as const)('that %s of the next file notices, too', async (fault) => {
    const { files, open } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    files.faultOf = (operation) => (operation === fault ? 'EDQUOT' : undefined)
    await expect(spool.append(text('r3'))).rejects.toThrow(SpoolFull)
    expect(spool.state).toBe('full')
    expect(files.names()).toHaveLength(1)
    files.kill()
    expect(await spool.append(text('r3'))).toEqual([3])
  })

  it('a failed truncate of what was written in part breaks it', async () => {
    const { files, problems, open } = createStage()
    const spool = await open()
    await spool.append(text('r1'))
    files.capacity = files.used() + 3
    files.faultOf = (operation) => (operation === 'truncate' ? 'EIO' : undefined)
    await expect(spool.append(text('r2'))).rejects.toThrow(SpoolBroken)
    expect([spool.state, problems.map(({ kind }) => kind)]).toEqual(['broken', ['broken']])
    expect(await readAll(spool)).toEqual(['1 r1'])
    files.kill()
    expect(await readAll(await open())).toEqual(['1 r1'])
  })

  it('a forget frees what it can', async () => {
    const { files, open } = createStage(sizes)
    const spool = await open()
    await spool.append(text('r1', 'r2'))
    await spool.append(text('r3'))
    files.capacity = files.used()
    await expect(spool.append(text('r4'))).rejects.toThrow(SpoolFull)
    files.capacity = 0
    await spool.forget(3)
    expect([spool.state, spool.bytes, spool.records]).toEqual(['open', HEADER + RECORD, 0])
    files.capacity = 10_000
    await spool.forget(3)
    expect([spool.bytes, files.used()]).toEqual([HEADER, HEADER])
    expect(await spool.append(text('r4'))).toEqual([4])
  })
})

describe('at the start', () => {
  /** An older file of another format, damage in the next one, a cut-off record behind whole ones, a half-made file. */
  async function aFolderToRepair() {
    const stage = createStage(sizes)
    const spool = await stage.open()
    for (const record of ['r1', 'r2', 'r3', 'r4', 'r5', 'r6']) await spool.append(text(record))
    await spool.close()
    const { files } = stage
    files.put(segment(1), Buffer.from('of another format'))
    files.put(segment(3), flipped(files.content(segment(3)), -3))
    files.put(segment(5), files.content(segment(5)).subarray(0, -1))
    files.put(`${segment(9)}.new`, Buffer.from('half'))
    return stage
  }

  it.each(['EIO', 'EROFS', 'ENOSPC'])('%s in any operation loses nothing', async (code) => {
    let rejected = 0
    let isDone = false
    for (let nth = 0; !isDone; nth += 1) {
      const { files, open } = await aFolderToRepair()
      let count = 0
      files.faultOf = () => (count++ === nth ? code : undefined)
      const outcome: Spool | Error = await open().catch((error) => error)
      files.faultOf = () => undefined
      isDone = count <= nth
      if (outcome instanceof Error) {
        rejected += 1
        expect(files.openFiles).toBe(0)
        expect({ ...outcome, ...(outcome.cause as object) }).toMatchObject({ code })
      } else {
        // The records can be read although there was no room, or a file could not be kept aside.
        if (code !== 'ENOSPC') expect(outcome.state).toBe(isDone ? 'open' : 'broken')
        expect(await readAll(outcome)).toEqual(['3 r3', '5 r5'])
        await outcome.close()
      }
      const again = await open()
      expect(await readAll(again)).toEqual(['3 r3', '5 r5'])
      expect((await again.append(text('new')))[0]).toBeGreaterThan(5)
      expect(files.names().filter((name) => name.endsWith('.new'))).toEqual([])
      expect(String(files.content(aside(1, again)))).toBe('of another format')
      await again.forget(5)
      expect(files.content(aside(3, again))).toHaveLength(HEADER + 2 * RECORD)
    }
    expect(rejected).toBeGreaterThan(12)
  })
})

it.each([
  ['EIO', 'a part'],
  ['EIO', 'all'],
  ['ENOSPC', 'a part'],
  ['ENOSPC', 'all'],
])('%s in any operation of a life in which %s is forgotten loses nothing that was acknowledged', async (code, part) => {
  let isDone = false
  let nth = 0
  for (; !isDone; nth += 1) {
    const { files, open } = createStage(sizes)
    const spool = await open()
    let count = 0
    files.faultOf = () => (count++ === nth ? code : undefined)
    const stored: string[] = []
    const append = async (...records: string[]) => {
      const positions = await spool.append(text(...records)).catch(() => [])
      stored.push(...positions.map((position, index) => `${position} ${records[index]}`))
    }
    await append('r1')
    await Promise.all([append('r2', 'r3'), append('r4')])
    const forgotten = part === 'all' ? Math.max(0, ...stored.map(positionOf)) : 2
    await spool.forget(forgotten).catch(() => {})
    await append('r5', 'r6')
    await append('r7')
    files.faultOf = () => undefined
    isDone = count <= nth
    await spool.close()
    expect(files.openFiles).toBe(0)
    const again = await open()
    const found = await readAll(again, forgotten)
    const wanted = stored.filter((entry) => positionOf(entry) > forgotten)
    expect(found.filter((entry) => wanted.includes(entry))).toEqual(wanted)
    // A broken spool may have stored what it did not acknowledge, but not twice.
    expect(new Set(found.map((entry) => entry.replace(/.* /, ''))).size).toBe(found.length)
    expect((await again.append(text('new')))[0]).toBeGreaterThan(Math.max(0, ...stored.map(positionOf)))
  }
  expect(nth).toBeGreaterThan(20)
})

const positionOf = (entry: string) => Number.parseInt(entry, 10)
