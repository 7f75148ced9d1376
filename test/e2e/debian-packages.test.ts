/** Debian's packages for the tests, with the real apt and a repository of our own on disk: no network, and no megabytes. */

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type DebianPackages, fetchDebianPackages, unpackedEnvironment } from '../support/debian-packages.ts'

const run = promisify(execFile)

let folder: string
let notes: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-debian-'))
  notes = []
  for (const name of ['repository', 'dpkg', 'bin']) await mkdir(at(name))
  await writeFile(at('repository', 'Packages'), '')
  await writeFile(at('dpkg', 'status'), '')
  await writeFile(at('sources.list'), `deb [trusted=yes] copy:${at('repository')} ./\n`)
  const config = {
    'Dir::Etc::sourcelist': at('sources.list'),
    'Dir::Etc::sourceparts': at('none'),
    'Acquire::Retries': '0',
  }
  const lines = Object.entries(config).map(([name, value]) => `${name} "${value}";\n`)
  await writeFile(at('apt.conf'), lines.join(''))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)
const cached = async () => (await readdir(at('cache', 'heartbeat-operator')).catch(() => [])).sort()

interface Published {
  readonly version?: string
  readonly depends?: string
  readonly recommends?: string
}

/** As apt and dpkg have it, of a package that has no other version. */
function describePackage(name: string, { version = '1:1.0-1', depends, recommends }: Published = {}): string {
  const optional = Object.entries({ Depends: depends, Recommends: recommends })
  const fields = [
    ['Package', name],
    ['Version', version],
    ['Architecture', 'all'],
    ['Maintainer', 'Test <test@example.org>'],
    ...optional.filter(([, value]) => value !== undefined),
    ['Description', 'of the test'],
  ]
  return fields.map(([field, value]) => `${field}: ${value}\n`).join('')
}

/** A package with a program of its own name in /bin, and a library in /lib. */
async function publish(name: string, options: Published = {}): Promise<void> {
  const { version = '1:1.0-1' } = options
  const source = at('source', name)
  const control = describePackage(name, options)
  const files = {
    'DEBIAN/control': control,
    [`bin/${name}`]: `#!/bin/sh\necho ${name} ${version}\n`,
    [`lib/x86_64-linux-gnu/lib${name}.so`]: name,
  }
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(source, path)), { recursive: true })
    await writeFile(join(source, path), text, { mode: path.startsWith('bin/') ? 0o755 : 0o644 })
  }
  const file = `${name}_${version.replace(':', '%3a')}_all.deb`
  await run('dpkg-deb', ['--build', '--root-owner-group', source, at('repository', file)])
  const archive = await readFile(at('repository', file))
  const sha256 = createHash('sha256').update(archive).digest('hex')
  const entry = `${control}Filename: ./${file}\nSize: ${archive.length}\nSHA256: ${sha256}\n\n`
  await writeFile(at('repository', 'Packages'), entry, { flag: 'a' })
}

const INSTALLED = 'install ok installed'
/** Was installed, and is no more. */
const REMOVED = 'deinstall ok config-files'

const setInstalled = (stanzas: readonly string[], status = INSTALLED) =>
  writeFile(at('dpkg', 'status'), stanzas.map((stanza) => `${stanza}Status: ${status}\n\n`).join(''))

const install = (...names: string[]) => setInstalled(names.map((name) => describePackage(name)))

const environment = () => ({
  PATH: `${at('bin')}:${process.env.PATH}`,
  HOME: folder,
  XDG_CACHE_HOME: at('cache'),
  APT_CONFIG: at('apt.conf'),
  DPKG_ADMINDIR: at('dpkg'),
})

const fetchPackages = (options: Partial<DebianPackages> = {}) =>
  fetchDebianPackages({
    name: 'some',
    packages: ['tool'],
    scope: 'missing',
    environment: environment(),
    note: (line) => notes.push(line),
    ...options,
  })

const listPrograms = async (root: string) => (await readdir(join(root, 'usr', 'bin'))).sort()

/** From now on apt is not to be called: it would fail. */
const breakApt = () => writeFile(at('bin', 'apt-get'), '#!/bin/sh\necho broken >&2; exit 100\n', { mode: 0o755 })

it('brings what this system lacks of what the packages need, and no more', async () => {
  await publish('library')
  await publish('other')
  await publish('decoration')
  await publish('tool', { depends: 'library, other', recommends: 'decoration' })
  await install('library')
  expect(await listPrograms(await fetchPackages())).toEqual(['other', 'tool'])
})

it('brings what is asked for also where it is installed', async () => {
  await publish('library')
  await publish('tool', { depends: 'library' })
  await setInstalled([describePackage('library'), describePackage('tool', { depends: 'library' })])
  expect(await listPrograms(await fetchPackages())).toEqual(['tool'])
})

it('brings a newer one of what is too old here', async () => {
  await publish('library', { version: '1:2.0-1' })
  await publish('tool', { depends: 'library (>= 1:2)' })
  await install('library')
  expect(await listPrograms(await fetchPackages())).toEqual(['library', 'tool'])
})

it('brings everything for an image, whatever is installed here', async () => {
  await publish('library')
  await publish('tool', { depends: 'library' })
  await install('library', 'tool')
  const root = await fetchPackages({ scope: 'whole' })
  expect(await listPrograms(root)).toEqual(['library', 'tool'])
  for (const name of ['bin', 'sbin', 'lib', 'lib64'])
    expect((await lstat(join(root, name))).isSymbolicLink(), name).toBe(true)
  expect((await readdir(join(root, 'usr', 'lib', 'x86_64-linux-gnu'))).sort()).toEqual(['liblibrary.so', 'libtool.so'])
  expect((await lstat(root)).mode & 0o777).toBe(0o755)
})

it('lets programs be found before those of the system, with their libraries', async () => {
  await publish('tool')
  const root = await fetchPackages()
  const env = unpackedEnvironment(root, { PATH: process.env.PATH, LD_LIBRARY_PATH: '/given', KEPT: 'as it is' })
  expect((await run('sh', ['-c', 'tool; echo "$KEPT"'], { env })).stdout).toBe('tool 1:1.0-1\nas it is\n')
  expect(env.LD_LIBRARY_PATH).toBe(`${root}/usr/lib/x86_64-linux-gnu:/given`)
  expect(unpackedEnvironment(root, {}).LD_LIBRARY_PATH).toBe(`${root}/usr/lib/x86_64-linux-gnu`)
})

it('fetches once, and again when a package of the system that it needs has gone', async () => {
  await publish('library')
  await publish('tool', { depends: 'library' })
  await install('library', 'unrelated')
  const root = await fetchPackages()
  await breakApt()
  notes = []
  await install('library')
  expect([await fetchPackages(), notes]).toEqual([root, []])
  await rm(at('bin', 'apt-get'))
  await setInstalled([describePackage('library')], REMOVED)
  expect(await fetchPackages()).toBe(root)
  expect(await listPrograms(root)).toEqual(['library', 'tool'])
  expect(await cached()).toEqual([basename(dirname(root))])
})

it('has a folder for each set of packages and each scope', async () => {
  await publish('tool')
  await publish('other')
  const roots = [
    await fetchPackages(),
    await fetchPackages({ scope: 'whole' }),
    await fetchPackages({ packages: ['tool', 'other'] }),
  ]
  expect(new Set(roots).size).toBe(3)
  expect(await fetchPackages({ packages: ['other', 'tool'] })).toBe(roots[2])
})

it('shows nobody what is not prepared yet, and leaves nothing of what could not be', async () => {
  await publish('tool')
  const prepare = async (root: string) => {
    await writeFile(join(root, 'prepared'), '')
    expect((await cached()).filter((name) => !name.startsWith('.'))).toEqual([])
  }
  await expect(fetchPackages({ prepare: () => Promise.reject(new Error('no room')) })).rejects.toThrow('no room')
  expect(await cached()).toEqual([])
  expect(await readdir(await fetchPackages({ prepare }))).toContain('prepared')
})

it('tells what apt said and what to do instead, and leaves nothing that looks fetched', async () => {
  await publish('tool', { depends: 'nowhere (>= 2)' })
  const told =
    /^The tests need Debian's tool: apt-get failed\. It said:\n.*tool : Depends: nowhere \(>= 2\).*\nDo this\.$/s
  await expect(fetchPackages({ otherwise: 'Do this.' })).rejects.toThrow(told)
  await expect(fetchPackages({ packages: ['absent'] })).rejects.toThrow('Unable to locate package absent')
  expect(await cached()).toEqual([])
})

it('tells which source does not answer, and takes the package from another', async () => {
  await publish('tool')
  await writeFile(at('sources.list'), 'deb [trusted=yes] http://127.0.0.1:1/debian ./\n', { flag: 'a' })
  expect(await listPrograms(await fetchPackages())).toEqual(['tool'])
  expect(notes.join('\n')).toMatch(/W: .*http:\/\/127\.0\.0\.1:1\/debian/)
})

it('lets one fetch and the other wait for it', async () => {
  await publish('tool')
  const [one, other] = await Promise.all([fetchPackages(), fetchPackages()])
  expect(one).toBe(other)
  expect(notes.filter((note) => note.startsWith("fetching Debian's tool"))).toHaveLength(1)
  expect(notes.filter((note) => note.startsWith(`process ${process.pid} fetches some into`))).not.toEqual([])
})

it('removes what a killed process left, and not what a living one is making', async () => {
  await publish('tool')
  const killed = execFile('true')
  await new Promise((resolve) => killed.once('close', resolve))
  const drafts = [killed.pid, process.ppid].map((pid) => `.some.draft-${pid}`)
  for (const draft of drafts) await mkdir(at('cache', 'heartbeat-operator', draft, 'state'), { recursive: true })
  const root = await fetchPackages()
  expect(await cached()).toEqual([drafts[1], basename(dirname(root))])
})
