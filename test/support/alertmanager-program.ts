/** Where the real Alertmanager of the tests comes from: found on this machine, or fetched once from Debian. */

import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { takeLock } from '../cluster/lock.ts'

const run = promisify(execFile)

export type Environment = Readonly<Record<string, string | undefined>>

/** What kept the program from being had; the message says what to install or set. */
export class AlertmanagerMissing extends Error {
  override readonly name = 'AlertmanagerMissing'
}

const NAMES = ['prometheus-alertmanager', 'alertmanager']
const PACKAGE = 'prometheus-alertmanager'
/** Where the package has it. */
const INSIDE = join('usr', 'bin', PACKAGE)
const APT_MS = 300_000
const LOOK_MS = 250

/**
 * The path of an Alertmanager: ALERTMANAGER_BIN, else one in PATH, else the one of Debian's package, unpacked into the user's cache
 * folder (XDG_CACHE_HOME) and installed nowhere. Its first download is told through `note` (default: stderr). Throws
 * AlertmanagerMissing.
 */
export async function findAlertmanager(
  options: { environment?: Environment; note?: (line: string) => void } = {},
): Promise<string> {
  const { environment = process.env, note = (line) => process.stderr.write(`${line}\n`) } = options
  const { ALERTMANAGER_BIN: given = '', PATH = '' } = environment
  if (given !== '') {
    if (await isProgram(given)) return given
    throw new AlertmanagerMissing(`ALERTMANAGER_BIN is ${given}, which is no program: correct it, or leave it out`)
  }
  const folders = PATH.split(delimiter).filter(isAbsolute)
  for (const name of NAMES)
    for (const folder of folders) if (await isProgram(join(folder, name))) return join(folder, name)
  const cache = join(cacheFolder(environment), 'heartbeat-operator')
  return (await findUnpacked(cache)) ?? (await fetchOnce(cache, environment, note))
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function cacheFolder({ XDG_CACHE_HOME, HOME }: Environment): string {
  // The XDG base directory specification: a relative path is to be ignored.
  if (XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME)) return XDG_CACHE_HOME
  return join(HOME ?? homedir(), '.cache')
}

async function findUnpacked(cache: string): Promise<string | null> {
  const names = await readdir(cache).catch(() => [])
  for (const name of names
    .filter((name) => name.startsWith('alertmanager-'))
    .sort()
    .reverse())
    if (await isProgram(join(cache, name, INSIDE))) return join(cache, name, INSIDE)
  return null
}

/** Of two that want it at once one fetches it, and the other waits. */
async function fetchOnce(cache: string, environment: Environment, note: (line: string) => void): Promise<string> {
  await mkdir(cache, { recursive: true })
  for (let isTold = false; ; await sleep(LOOK_MS)) {
    const lock = await takeLock(join(cache, '.alertmanager.lock'))
    if ('release' in lock) {
      try {
        return (await findUnpacked(cache)) ?? (await fetchPackage(cache, environment, note))
      } finally {
        await lock.release()
      }
    }
    if (!isTold) note(`process ${lock.holder} fetches an Alertmanager into ${cache}; waiting for it`)
    isTold = true
  }
}

async function fetchPackage(cache: string, environment: Environment, note: (line: string) => void): Promise<string> {
  const folder = await mkdtemp(join(cache, '.alertmanager-'))
  // Lists and cache of its own: it needs no root, and the system's stay as they are.
  const own = { 'Dir::State::lists': join(folder, 'lists'), 'Dir::Cache': join(folder, 'cache') }
  const less = { 'Acquire::Languages': 'none', 'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false' }
  const options = Object.entries({ ...own, ...less }).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const startedAt = performance.now()
  const apt = async (...args: string[]) => {
    note(`apt-get ${args.join(' ')} ...`)
    await call('apt-get', [...options, ...args], folder, environment)
  }
  try {
    note(`no ${NAMES.join(' or ')} in PATH (ALERTMANAGER_BIN is not set): fetching Debian's into ${cache}`)
    note('only once; about 25 MB of downloads, from the sources that this system has in its apt configuration')
    await mkdir(join(folder, 'lists', 'partial'), { recursive: true })
    await mkdir(join(folder, 'cache', 'archives', 'partial'), { recursive: true })
    await apt('update')
    await apt('download', PACKAGE)
    const file = (await readdir(folder)).find((name) => name.startsWith(`${PACKAGE}_`) && name.endsWith('.deb'))
    if (file === undefined) throw new AlertmanagerMissing(`apt-get download left no ${PACKAGE}_*.deb. ${WAYS_OUT}`)
    const version = decodeURIComponent(file.split('_')[1]!)
    await call('dpkg-deb', ['-x', file, 'unpacked'], folder, environment)
    await relocate(join(folder, 'unpacked', INSIDE))
    const place = join(cache, `alertmanager-${version}`)
    await rm(place, { recursive: true, force: true })
    // Whole or not at all: nobody finds half a program.
    await rename(join(folder, 'unpacked'), place)
    note(`fetched Alertmanager ${version}: ${Math.round((performance.now() - startedAt) / 1_000)} s`)
    return join(place, INSIDE)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/**
 * Debian's looks for its templates, without which it does not start, in a folder of the system, where nothing is to be installed.
 * From now on it looks in its working folder: the same length, and no other byte is touched.
 */
async function relocate(program: string): Promise<void> {
  const bytes = await readFile(program)
  const there = Buffer.from(SYSTEM_TEMPLATES)
  const here = Buffer.from('.'.padEnd(there.length, '/'))
  for (let at = bytes.indexOf(there); at >= 0; at = bytes.indexOf(there, at)) here.copy(bytes, at)
  await writeFile(program, bytes)
}

const SYSTEM_TEMPLATES = '/usr/share/prometheus/alertmanager'

/** What a relocated one looks for in its working folder. */
export async function copyTemplates(program: string, folder: string): Promise<void> {
  const templates = join(dirname(program), '..', 'share', 'prometheus', 'alertmanager')
  for (const name of await readdir(templates).catch(() => []))
    if (name.endsWith('.tmpl')) await copyFile(join(templates, name), join(folder, name))
}

const WAYS_OUT =
  'Set ALERTMANAGER_BIN to the path of an Alertmanager, 0.25 or later (https://prometheus.io/download), or install one in PATH.'

async function call(command: string, args: readonly string[], cwd: string, environment: Environment): Promise<void> {
  try {
    await run(command, [...args], { cwd, env: { ...environment }, timeout: APT_MS })
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string }
    const why = code === 'ENOENT' ? 'there is none on this system' : (stderr?.trim() ?? '') || (error as Error).message
    throw new AlertmanagerMissing(
      `The tests need the real Alertmanager, and ${command} could not get Debian's: ${why}. ${WAYS_OUT}`,
      { cause: error },
    )
  }
}
