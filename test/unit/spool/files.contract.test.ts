import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { SpoolRejected } from '../../../src/spool/errors.ts'
import { diskFiles, type Files, readAt, writeAt } from '../../../src/spool/files.ts'
import { FakeFiles } from '../../support/fake-files.ts'

/** The file system of the tests does what a real one does, in what the spool uses. */

const parent = await mkdtemp(join(tmpdir(), 'heartbeat-files-'))
afterAll(() => rm(parent, { recursive: true }))

const kinds: { name: string; files: Files; folder: string; put: (path: string, bytes: Buffer) => unknown }[] = [
  { name: 'the disk', files: diskFiles, folder: join(parent, 'a', 'b'), put: (path, bytes) => writeFile(path, bytes) },
]
const fake = new FakeFiles()
kinds.push({ name: 'the fake', files: fake, folder: '/a/b', put: (path, bytes) => fake.put(path, bytes) })

it.each(kinds)('$name', async ({ files, folder, put }) => {
  const at = (name: string) => join(folder, name)
  const code = async (work: Promise<unknown>) =>
    await work.then(
      () => 'done',
      (error) => error.code,
    )
  expect(await files.mkdir(folder, { recursive: true, mode: 0o700 })).toBe(join(folder, '..'))
  expect(await files.mkdir(folder, { recursive: true, mode: 0o700 })).toBe(undefined)

  expect(await code(files.open(at('x'), 'r'))).toBe('ENOENT')
  expect(await code(files.open(at('x'), 'r+'))).toBe('ENOENT')
  expect(await code(files.unlink(at('x')))).toBe('ENOENT')
  expect(await code(files.rename(at('x'), at('y')))).toBe('ENOENT')

  const file = await files.open(at('x'), 'w', 0o600)
  await writeAt(file, Buffer.from('hello'), 0)
  await writeAt(file, Buffer.from('!'), 7)
  expect(await file.stat()).toMatchObject({ size: 8 })
  await file.truncate(9)
  await file.datasync()
  const reader = await files.open(at('x'), 'r')
  expect(await readAt(reader, 0, 100)).toEqual(Buffer.from('hello\0\0!\0'))
  expect(await readAt(reader, 6, 2)).toEqual(Buffer.from('\0!'))
  expect(await readAt(reader, 9, 5)).toEqual(Buffer.alloc(0))
  expect(await readAt(reader, 20, 5)).toEqual(Buffer.alloc(0))
  expect(await code(writeAt(reader, Buffer.from('a'), 0))).toBe('EBADF')

  await put(at('y'), Buffer.from('other'))
  expect((await files.readdir(folder)).sort()).toEqual(['x', 'y'])
  await files.rename(at('x'), at('y'))
  await files.syncFolder(folder)
  expect(await files.readdir(folder)).toEqual(['y'])
  // By its name or not, an open file stays what it was.
  await files.unlink(at('y'))
  await file.truncate(2)
  await writeAt(file, Buffer.from('y'), 1)
  expect(await readAt(reader, 0, 10)).toEqual(Buffer.from('hy'))
  expect(await files.readdir(folder)).toEqual([])
  await Promise.all([file.close(), reader.close()])

  await put(at('z'), Buffer.from('to be emptied'))
  await (await files.open(at('z'), 'w', 0o600)).close()
  const kept = await files.open(at('z'), 'r+')
  expect(await kept.stat()).toMatchObject({ size: 0 })
  await writeAt(kept, Buffer.from('z'), 0)
  await kept.close()
  expect(await code(files.mkdir(at('z'), { recursive: true, mode: 0o700 }))).toBe('EEXIST')

  const unlock = await files.lock(at('lock'))
  await expect(files.lock(at('lock'))).rejects.toThrow(SpoolRejected)
  await expect(files.lock(at('lock'))).rejects.toThrow(`${at('lock')} is locked`)
  unlock()
  ;(await files.lock(at('lock')))()
})

it('a folder is for its owner alone, and so are the files', async () => {
  const folder = join(parent, 'owned')
  await diskFiles.mkdir(folder, { recursive: true, mode: 0o700 })
  await (await diskFiles.open(join(folder, 'x'), 'w', 0o600)).close()
  ;(await diskFiles.lock(join(folder, 'lock')))()
  const mode = async (path: string) => (await stat(path)).mode & 0o777
  expect([await mode(folder), await mode(join(folder, 'x')), await mode(join(folder, 'lock'))]).toEqual([
    0o700, 0o600, 0o600,
  ])
})
