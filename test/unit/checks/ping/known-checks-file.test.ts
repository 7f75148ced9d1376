/** The file of known checks: what a process saved, another one loads, and nothing else. The database is away. */

import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createKnownChecks, type KnownChecks } from '../../../../src/checks/ping/known-checks.ts'
import type { Queryable } from '../../../../src/store/postgres/database.ts'
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts'

const IDS = Array.from({ length: 1_000 }, () => randomUUID())
const database = { queryColumns: () => Promise.reject(new Error('away')) } as unknown as Queryable

let folder: string
let path: string
let clock: ManualClock
let ignored: [string, string][]
beforeEach(async () => {
  folder = join(await mkdtemp(join(tmpdir(), 'known-')), 'spool')
  path = join(folder, 'known-checks')
  clock = createManualClock()
  ignored = []
})
afterEach(() => rm(join(folder, '..'), { recursive: true }))

/** A process. */
const create = () => createKnownChecks({ database, clock, onIgnored: (...file) => ignored.push(file) })

async function saved(): Promise<KnownChecks> {
  const known = create()
  for (const [index, id] of IDS.entries()) known.learn(id, index + 1)
  expect(await known.save(folder)).toBe(true)
  return known
}

async function loaded(): Promise<KnownChecks> {
  const known = create()
  await known.load(folder)
  return known
}

it('has the ids that were saved, and no keys: the database may be another one by then', async () => {
  await saved()
  const known = await loaded()
  expect(known.size).toBe(IDS.length)
  for (const id of IDS) expect([known.has(id), known.keyOf(id)]).toEqual([true, undefined])
  expect(known.has(randomUUID())).toBe(false)
  expect(ignored).toEqual([])
})

it('loads nothing over a key that was read', async () => {
  await saved()
  const known = create()
  known.learn(IDS[0]!, 77)
  expect(await known.load(folder)).toBe(IDS.length - 1)
  expect(known.keyOf(IDS[0]!)).toBe(77)
})

it('is for its owner alone, and leaves nothing beside it', async () => {
  await saved()
  expect(await readdir(folder)).toEqual(['known-checks'])
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
})

it('is written when ids have come or gone, and not more often than its size allows', async () => {
  const known = await saved()
  expect(await known.save(folder)).toBe(false)
  known.learn(IDS[0]!, 5)
  expect(await known.save(folder, 'last')).toBe(false)
  known.forget(IDS[0]!)
  expect(await known.save(folder)).toBe(false)
  // 16 KB.
  await clock.advance(170)
  expect(await known.save(folder)).toBe(true)
  known.forget(IDS[1]!)
  expect(await known.save(folder, 'last')).toBe(true)
  expect((await loaded()).size).toBe(IDS.length - 2)
})

it('is neither read nor written without a folder', async () => {
  const known = create()
  known.learn(IDS[0]!, 1)
  expect([await known.load(null), await known.save(null), await known.save(null, 'last')]).toEqual([0, false, false])
})

it('is missed at the first start, without a word', async () => {
  expect((await loaded()).size).toBe(0)
  expect(ignored).toEqual([])
})

it('is ignored when it is damaged, wherever that is', async () => {
  await saved()
  const whole = await readFile(path)
  for (let at = 0; at < whole.length; at += at < 40 ? 1 : 977) {
    const damaged = Buffer.from(whole)
    damaged[at]! ^= 0x10
    await writeFile(path, damaged)
    expect((await loaded()).size).toBe(0)
  }
  for (const length of [0, 7, 31, 32, 33, whole.length - 16, whole.length - 1]) {
    await writeFile(path, whole.subarray(0, length))
    expect((await loaded()).size).toBe(0)
  }
  await writeFile(path, Buffer.concat([whole, Buffer.alloc(16)]))
  expect((await loaded()).size).toBe(0)
  expect(new Set(ignored.map(([of]) => of))).toEqual(new Set([path]))
  expect(new Set(ignored.map(([, reason]) => reason.replace(/\d+/g, 'N')))).toEqual(
    new Set([
      'it is not a file of known checks',
      'it has version N, this release reads version N',
      'its header is damaged',
      'it has N bytes instead of N',
      'it is damaged',
    ]),
  )
})

it('of another version is ignored, and replaced by the next save', async () => {
  await mkdir(folder)
  const other = Buffer.alloc(64)
  other.write('HB-KNOWN')
  other.writeUInt32BE(2, 8)
  await writeFile(path, other)
  const known = await loaded()
  expect(ignored).toEqual([[path, 'it has version 2, this release reads version 1']])
  known.learn(IDS[0]!, 1)
  await known.save(folder)
  expect((await loaded()).size).toBe(1)
})

it('is ignored when it cannot be read', async () => {
  await mkdir(path, { recursive: true })
  expect((await loaded()).size).toBe(0)
  expect(ignored).toEqual([[path, 'it cannot be read: EISDIR']])
})

it('stays as it was when the next one cannot be written', async () => {
  const known = await saved()
  const whole = await readFile(path)
  known.forget(IDS[0]!)
  await mkdir(`${path}.new`)
  await expect(known.save(folder, 'last')).rejects.toThrow('EISDIR')
  expect(await readFile(path)).toEqual(whole)
  await rm(`${path}.new`, { recursive: true, force: true })
  // It is tried again, as nothing was written.
  expect(await known.save(folder, 'last')).toBe(true)
})
