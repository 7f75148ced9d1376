/** Programs and libraries of the tests that Debian has: unpacked into the user's cache folder once, and installed nowhere. */

import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, delimiter, dirname, join } from 'node:path'
import { makeRoot, openApt, readInstalled, UNPACK, unpack } from './apt.ts'
import { waitForLock } from './lock.ts'
import { cacheFolder } from './places.ts'
import { identifyProcess } from './process-identity.ts'
import type { Environment, Note } from './programs.ts'

export interface DebianPackages {
  /** For people, and the start of the folder's name. */
  readonly name: string
  readonly packages: readonly string[]
  /**
   * `missing`: the packages, and what they depend on as far as this system lacks it: to be run here. `whole`: everything
   * that they depend on too, as for the root file system of an image.
   */
  readonly scope: 'missing' | 'whole'
  /** Of another machine, as Debian names it. Default: of this one. */
  readonly architecture?: string
  /** Changes what was unpacked before another process finds it. After a change of this, change `name` too. */
  readonly prepare?: (root: string) => Promise<void>
  /** A sentence for the person who cannot have them from Debian. */
  readonly otherwise?: string
  readonly environment?: Environment
  /** Default: stderr. */
  readonly note?: Note
}

/** What kept the packages from being had. */
export class DebianPackagesMissing extends Error {
  override readonly name = 'DebianPackagesMissing'
}

/** Lies beside the root. */
const RECORD = 'packages.json'

interface PackageRecord {
  /** File names. */
  readonly archives: readonly string[]
  /** What was left out since the system has it. */
  readonly installed: readonly string[]
}

/**
 * The folder in which the packages lie as in a root file system with `/bin`, `/sbin` and `/lib` merged into `/usr`; their
 * install scripts are not run. They come from the sources of this system's apt configuration, as they are there at the first
 * call: later ones find them in XDG_CACHE_HOME and call no apt, unless packages of the system that they need have gone.
 * Throws DebianPackagesMissing.
 */
export async function fetchDebianPackages(options: DebianPackages): Promise<string> {
  const { name, environment = process.env, note = (line) => process.stderr.write(`${line}\n`) } = options
  const cache = cacheFolder(environment)
  const place = join(cache, `${name}-${await hashRequest(options)}`)
  if (await isComplete(place, environment)) return join(place, 'root')
  await mkdir(cache, { recursive: true })
  const release = await waitForLock(join(cache, `.${name}.lock`), (holder, waited) =>
    note(`process ${holder} fetches ${name} into ${cache}; waiting for it: ${waited} s`),
  )
  try {
    if (!(await isComplete(place, environment))) await fetchPackages(place, { ...options, environment, note })
  } finally {
    await release()
  }
  return join(place, 'root')
}

/** The environment in which programs of scope `missing` are found, before the system's, and find their libraries. */
export function unpackedEnvironment(root: string, environment: Environment = process.env): Record<string, string> {
  const libraries = join(root, 'usr', 'lib')
  const multiarch = existsSync(libraries) ? readdirSync(libraries).filter((name) => name.includes('-linux-gnu')) : []
  const own = {
    PATH: ['sbin', 'bin'].map((name) => join(root, 'usr', name)),
    LD_LIBRARY_PATH: multiarch.map((name) => join(libraries, name)),
  }
  const prepended = Object.entries(own).map(([name, folders]) => {
    const lists = [...folders, environment[name] ?? '']
    return [name, lists.filter((text) => text !== '').join(delimiter)]
  })
  return { ...environment, ...Object.fromEntries(prepended) } as Record<string, string>
}

/** Another release of the system has other packages, and another way of unpacking another result. */
async function hashRequest({ packages, scope, architecture = process.arch }: DebianPackages): Promise<string> {
  const release = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const system = ['ID', 'VERSION_ID'].map((key) => new RegExp(`^${key}=(.*)$`, 'm').exec(release)?.[1])
  const request = JSON.stringify([[...packages].sort(), scope, UNPACK, architecture, ...system])
  return createHash('sha256').update(request).digest('hex').slice(0, 12)
}

async function isComplete(place: string, environment: Environment): Promise<boolean> {
  const text = await readFile(join(place, RECORD), 'utf8').catch(() => null)
  if (text === null) return false
  const { installed } = JSON.parse(text) as PackageRecord
  if (installed.length === 0) return true
  const there = new Set((await readInstalled(environment)).map(({ name }) => name))
  return installed.every((name) => there.has(name))
}

type Request = DebianPackages & { readonly environment: Environment; readonly note: Note }

async function fetchPackages(place: string, request: Request): Promise<void> {
  const { name, packages, otherwise, note } = request
  const startedAt = performance.now()
  note(`fetching Debian's ${packages.join(', ')} into ${place}`)
  note('only once; from the sources of this system')
  const folder = await openDraft(dirname(place), name)
  try {
    const count = await fillDraft(folder, request)
    await replace(place, join(folder, 'unpacked'), join(folder, 'replaced'))
    note(`fetched ${name}: ${Math.round((performance.now() - startedAt) / 1000)} s, packages: ${count}`)
  } catch (error) {
    const why = `The tests need Debian's ${packages.join(', ')}: ${(error as Error).message}`
    throw new DebianPackagesMissing(otherwise === undefined ? why : `${why}\n${otherwise}`, { cause: error })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Resolves with the number of packages. */
async function fillDraft(folder: string, request: Request): Promise<number> {
  const { packages, scope, architecture, environment, note } = request
  const apt = await openApt(folder, environment, note, architecture)
  const whole = await apt.plan(packages, [])
  const system = await readInstalled(environment)
  const missing = scope === 'whole' ? whole : await apt.plan(packages, system)
  // Those that are installed are wanted too; what they need is there then.
  for (const wanted of packages) if (!missing.has(wanted)) missing.set(wanted, wanted)
  const archives = await apt.download([...missing.values()])
  const root = join(folder, 'unpacked', 'root')
  await makeRoot(root)
  for (const archive of archives) await unpack(archive, root, environment)
  await request.prepare?.(root)
  const installed = system.map((one) => one.name).filter((one) => whole.has(one) && !missing.has(one))
  const record: PackageRecord = { archives: archives.map((path) => basename(path)), installed: [...new Set(installed)] }
  await writeFile(join(folder, 'unpacked', RECORD), JSON.stringify(record))
  return archives.length
}

/** An empty folder in the cache; those of processes that were killed are removed. */
async function openDraft(cache: string, name: string): Promise<string> {
  const prefix = `.${name}.draft-`
  for (const other of (await readdir(cache)).filter((one) => one.startsWith(prefix))) {
    const pid = Number(other.slice(prefix.length))
    if (pid === process.pid || (await identifyProcess(pid)) === null)
      await rm(join(cache, other), { recursive: true, force: true })
  }
  const folder = join(cache, `${prefix}${process.pid}`)
  await mkdir(folder)
  return folder
}

/** Whole or not at all: no process finds half a program. */
async function replace(place: string, draft: string, old: string): Promise<void> {
  await rename(place, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  await rename(draft, place)
}
