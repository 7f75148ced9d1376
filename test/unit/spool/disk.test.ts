import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { SpoolFull, SpoolRejected } from '../../../src/spool/errors.ts'
import { openSpool } from '../../../src/spool/open-spool.ts'
import type { Problem } from '../../../src/spool/recover.ts'
import { readAll, text } from './stage.ts'

/** The same on real disks; what the other files test in memory. */

const parent = await mkdtemp(join(tmpdir(), 'heartbeat-spool-'))
afterAll(() => rm(parent, { recursive: true }))

const problems: Problem[] = []
const open = (folder: string, maxBytes = 2 ** 24) =>
  openSpool({ folder, maxBytes, segmentBytes: 65_536, onProblem: (problem) => problems.push(problem) })

it('makes its folder, for its owner alone, stores, reads, forgets, and goes on after a restart', async () => {
  const folder = join(parent, 'data', 'spool')
  const spool = await open(folder)
  const stored = (await Promise.all([spool.append(text('r1', 'r2')), spool.append(text('r3'))])).flat()
  expect(stored).toEqual([1, 2, 3])
  await spool.append([Buffer.alloc(65_470, 'x')])
  await spool.forget(3)
  await spool.close()
  const again = await open(folder)
  expect([again.id, again.records]).toEqual([spool.id, 1])
  expect(await again.append(text('r5'))).toEqual([5])
  expect((await readAll(again, 4)).concat(await readAll(again, 5))).toEqual(['5 r5'])
  await again.forget(5)
  expect([again.records, again.bytes]).toEqual([0, 40])
  await again.close()
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  expect(problems).toEqual([])
})

it('a second spool on the folder is rejected, and does not end the lock of the first', async () => {
  const folder = join(parent, 'twice')
  const spool = await open(folder)
  for (let attempt = 0; attempt < 2; attempt += 1) {
    await expect(open(folder)).rejects.toThrow(SpoolRejected)
    await expect(open(folder)).rejects.toThrow(`another process uses this folder: ${join(folder, 'lock')} is locked`)
  }
  await spool.close()
  await (await open(folder)).close()
})

it('a file in place of the folder, or above it, is an error that names it', async () => {
  await writeFile(join(parent, 'file'), '')
  await expect(open(join(parent, 'file'))).rejects.toThrow(join(parent, 'file'))
  await expect(open(join(parent, 'file', 'spool'))).rejects.toThrow(/ENOTDIR.*file/)
})

it('a full disk is no failure, and there is room when another file is gone', async (context) => {
  const disk = join(parent, 'disk')
  await mkdir(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk], { stdio: 'pipe' })
  } catch (error) {
    context.skip(`no small disk can be mounted here: ${error}`)
  }
  try {
    await writeFile(join(disk, 'other'), Buffer.alloc(2 ** 19))
    const spool = await open(join(disk, 'spool'))
    const stored: number[] = []
    const fill = async () => {
      for (;;) stored.push(...(await spool.append([Buffer.alloc(1_000, 'x'), Buffer.alloc(501, 'y')])))
    }
    await expect(fill()).rejects.toThrow(SpoolFull)
    const before = stored.length
    expect([spool.state, before > 600]).toEqual(['full', true])
    await unlink(join(disk, 'other'))
    await expect(fill()).rejects.toThrow(SpoolFull)
    expect(stored.length).toBeGreaterThan(before + 600)
    await spool.close()
    const again = await open(join(disk, 'spool'))
    expect(stored).toEqual(Array.from({ length: stored.length }, (_, index) => index + 1))
    expect((await readAll(again)).map((entry) => Number.parseInt(entry, 10))).toEqual(stored)
    await again.forget(stored.length)
    expect(await again.append(text('new'))).toEqual([stored.length + 1])
    await again.close()
  } finally {
    execFileSync('umount', [disk])
  }
})
